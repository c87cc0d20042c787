//! Sample facts for tests.

use super::*;
use crate::domain::sandbox::{Level, SandboxLine};
use crate::domain::settings::Sandbox;
use crate::domain::snapshot::RevId;

fn place(path: &str) -> Place {
    Place {
        path: path.to_owned(),
        exists: true,
        writable: true,
        free: Some(14 << 30),
    }
}

/// A laptop without any problem.
pub(crate) fn laptop() -> Facts {
    Facts {
        in_actions: false,
        git: Some(Program {
            path: "/usr/bin/git".into(),
            version: "2.47.3".into(),
        }),
        repository: Ok(Repository {
            work_tree: "/home/anna/widget".into(),
            closed: None,
            lock: None,
            identity: Ok(Some("Anna <anna@example.org>".into())),
            changes: Ok(UncommittedChanges::default()),
            checkout: Ok(Checkout {
                branch: Some("main".into()),
                commit: Some(RevId("3f2f3ad648251c0d4a8dcd52b2d1ea39a2b8f1de".into())),
                refs: vec!["refs/heads/main".into()],
                depth: None,
            }),
            credentials: Ok(Vec::new()),
            nested: Ok(Nested::default()),
            jj: None,
        }),
        configuration: Ok(Configuration {
            file: Some(".sprag/config.yaml".into()),
            checks: vec!["build".into(), "test".into()],
            ..Configuration::default()
        }),
        agent: Some(Agent {
            gateway: None,
            requires_gateway: false,
            named_by: Some("a flag"),
            kind: AgentKind::Cli(Cli {
                spec: &crate::agents::codex::SPEC,
                path: Some("/usr/local/bin/codex".into()),
                version: Ok("0.169.0".into()),
                login: crate::agents::Login::Variable("OPENAI_API_KEY".into()),
                key_mistake: None,
            }),
        }),
        actions_job: ActionsJob::Outside,
        trigger: Trigger::None,
        network: Network {
            routes: Vec::new(),
            certificates: Ok("142 built-in roots and 140 of this machine".into()),
        },
        machine: Machine {
            is_root: false,
            user_namespaces: Some(true),
            landlock: true,
            confinement: Some(Confinement {
                setting: Sandbox::Auto,
                line: SandboxLine {
                    level: Level::Files,
                    missing: None,
                    network: None,
                },
                highest: SandboxLine {
                    level: Level::Namespaces,
                    missing: None,
                    network: None,
                },
                obstacle: Obstacle::Unknown,
            }),
            subreaper: true,
            lists_processes: true,
            run_directory: place("/home/anna/.local/state/sprag/widget-01020304"),
            state_directory: place("/home/anna/.local/state/sprag"),
            home: Some(place("/home/anna")),
            temporary: place("/tmp"),
        },
    }
}

fn right(area: Area) -> Right {
    Right {
        area,
        read: PermissionState::Known,
        write: PermissionState::Unknown,
    }
}

/// GitHub's answers about a private repository to a job's token.
pub(crate) fn answer() -> Answer {
    let areas = [
        Area::Contents,
        Area::Issues,
        Area::PullRequests,
        Area::Checks,
        Area::Actions,
    ];
    Answer {
        repository: "acme/widget".into(),
        private: true,
        login: Some("github-actions[bot]".into()),
        rate: Some((993, 1000)),
        rights: areas.map(right).to_vec(),
        ..Answer::default()
    }
}

/// A typical job: everything works, with some warnings.
pub(crate) fn job() -> Facts {
    let mut facts = laptop();
    facts.in_actions = true;
    if let Ok(repository) = &mut facts.repository {
        repository.work_tree = "/home/runner/work/widget/widget".into();
        repository.checkout = Ok(Checkout {
            branch: None,
            commit: Some(RevId("3f2f3ad648251c0d4a8dcd52b2d1ea39a2b8f1de".into())),
            refs: vec!["refs/remotes/pull/7/merge".into()],
            depth: Some(1),
        });
        repository.credentials = Ok(vec![Credential {
            key: "http.https://github.com/.extraheader".into(),
            file: "/home/runner/work/_temp/git-credentials-1.config".into(),
            local: true,
        }]);
    }
    facts.agent = Some(Agent {
        gateway: None,
        requires_gateway: false,
        named_by: None,
        kind: AgentKind::Builtin {
            model: "claude-sonnet-5-5".into(),
            provider: "anthropic".into(),
            base: "https://api.anthropic.com/v1".into(),
            key: Some("ANTHROPIC_API_KEY".into()),
        },
    });
    facts.actions_job = ActionsJob::Inside(JobFacts {
        repository: Some("acme/widget".into()),
        api: "https://api.github.com".into(),
        token: Some(TokenKind::Installation),
        answer: Some(Ok(answer())),
    });
    facts.trigger = Trigger::Asks {
        event: "issue_comment".into(),
        who: Some("anna".into()),
        what: "a task: fix the flaky test".into(),
        needs_hub: true,
        of_fork: false,
    };
    facts
}
