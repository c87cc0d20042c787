//! Sample findings for tests: those that a laptop and a job give.

use super::actions_job::{AREAS, Job, outside, token_kind};
use super::agent::{named, of_builtin, program as agent_program};
use super::machine::Place;
use super::trigger::Trigger;
use super::{Finding, agent, configuration, machine, network, repository, trigger};
use crate::agents::Login;
use crate::agents::codex::SPEC;
use crate::domain::sandbox::{Level, SandboxLine};
use crate::domain::settings::{IfUnverified, Resolved, Sandbox};
use crate::domain::snapshot::RevId;
use crate::domain::trigger::payload;
use crate::domain::trigger::settings::TriggerSettings;
use crate::error::Error;
use crate::git::{
    Checkout, GitVersion, Identity, PersistedCredential, PersistedKind, UncommittedChanges,
};
use crate::github::api::{Area, AreaAccess, Facts, PermissionState, RateLimit, Survey};
use crate::http::Trusted;
use crate::run::begin::isolation::ConfinementLevels;
use serde_json::{Value, json};
use sprag_agent::access::{Access, WireFormat};
use std::path::Path;

const COMMIT: &str = "3f2f3ad648251c0d4a8dcd52b2d1ea39a2b8f1de";

/// The same findings with these in the place of those of the same check.
pub(crate) fn with(findings: Vec<Finding>, others: Vec<Finding>) -> Vec<Finding> {
    findings
        .into_iter()
        .map(|finding| {
            let other = others.iter().find(|other| other.check == finding.check);
            other.cloned().unwrap_or(finding)
        })
        .collect()
}

/// A directory that can be written.
pub(super) fn place(path: &str) -> Place {
    Place {
        path: path.to_owned(),
        exists: true,
        is_writable: true,
        free: Some(14 << 30),
    }
}

/// A directory that cannot be written.
pub(super) fn closed(path: &str, exists: bool) -> Place {
    Place {
        exists,
        is_writable: false,
        ..place(path)
    }
}

pub(super) fn levels(got: Level, highest: Level) -> ConfinementLevels {
    let line = |level| SandboxLine {
        open: Vec::new(),
        level,
        missing: None,
        network: None,
    };
    ConfinementLevels {
        line: line(got),
        highest: line(highest),
    }
}

/// An event of `issue_comment` by Anna.
pub(super) fn comment(body: &str) -> Value {
    let anna = json!({ "login": "anna", "type": "User" });
    json!({
        "action": "created", "sender": anna,
        "repository": { "full_name": "acme/widget", "default_branch": "main" },
        "issue": { "number": 7, "title": "t", "body": "", "state": "open", "user": anna },
        "comment": { "id": 1, "body": body, "user": anna, "author_association": "OWNER" },
    })
}

pub(super) fn event(name: &str, payload: &Value) -> Finding {
    let event = payload::parse(name, payload).unwrap();
    let trigger = Trigger::new(name.to_owned(), &event, &TriggerSettings::default());
    trigger::finding(&Ok(trigger))
}

/// GitHub's answers about a private repository to a job's token.
pub(super) fn survey() -> Survey {
    let areas = AREAS.iter().map(|(area, ..)| AreaAccess {
        area: *area,
        read: PermissionState::Known,
        write: PermissionState::Unknown,
    });
    Survey {
        facts: Facts {
            full_name: "acme/widget".into(),
            default_branch: "main".into(),
            private: true,
            archived: false,
            permissions: None,
        },
        rate: Some(RateLimit {
            remaining: 993,
            limit: 1000,
        }),
        areas: areas.collect(),
        broke_off: None,
    }
}

/// The same, with the permission to write in an area refused.
pub(super) fn refusing(area: Area) -> Survey {
    let mut survey = survey();
    let mut areas = survey.areas.iter_mut();
    areas.find(|known| known.area == area).unwrap().write = PermissionState::Refused;
    survey
}

/// A job with its own token, for a comment that asks for work.
pub(super) fn github(settings: &Resolved) -> Job<'_> {
    Job {
        repository: Some("acme/widget".into()),
        api: "https://api.github.com".into(),
        token: token_kind("ghs_x"),
        login: Some("github-actions[bot]".into()),
        survey: Some(Ok(survey())),
        settings,
        asks: Some(true),
    }
}

/// A laptop without any problem.
pub(crate) fn laptop() -> Vec<Finding> {
    let git = GitVersion {
        program: "/usr/bin/git".into(),
        version: "2.47.3".into(),
    };
    let identity = Identity {
        name: "Anna".into(),
        email: "anna@example.org".into(),
    };
    let checkout = Checkout {
        branch: Some("main".into()),
        commit: Some(RevId(COMMIT.into())),
        refs: vec!["refs/heads/main".into()],
        depth: None,
    };
    let trusted = Trusted {
        built_in: 142,
        added: 140,
        variables: Vec::new(),
    };
    let version = Some((Ok("0.169.0".to_owned()), "/usr/local/bin/codex".into()));
    let state = "/home/anna/.local/state/sprag";
    let run = format!("{state}/widget-01020304");
    vec![
        repository::program(Some(&git)),
        repository::top(Path::new("/home/anna/widget"), None),
        repository::identity(Some(identity)),
        repository::work_tree(&UncommittedChanges::default(), false, false),
        repository::checkout(&checkout, false),
        repository::credentials(&[]),
        configuration::valid(Some(".sprag/config.yaml")),
        configuration::checks(&["build".into(), "test".into()], IfUnverified::Fail),
        named("codex", Some("a flag")),
        agent_program(&SPEC, version),
        agent::login(&SPEC, &Login::Variable("OPENAI_API_KEY".into()), None),
        outside(),
        network::proxy(&[]),
        network::certificates(Ok(trusted)),
        machine::user(false),
        machine::sandbox(Some(true), true),
        machine::sandbox_level(
            Sandbox::Auto,
            &levels(Level::Files, Level::Namespaces),
            None,
        ),
        machine::processes(true, true),
        machine::room("run-directory", &place(&run), "--run-dir"),
        machine::state_directory(&place(state)),
        machine::home(Some(&place("/home/anna"))),
        machine::temporary_directory(&place("/tmp"), true),
    ]
}

/// A typical job: everything works, with some warnings.
pub(crate) fn job() -> Vec<Finding> {
    let checkout = Checkout {
        branch: None,
        commit: Some(RevId(COMMIT.into())),
        refs: vec!["refs/remotes/pull/7/merge".into()],
        depth: Some(1),
    };
    let credential = PersistedCredential {
        key: "http.https://github.com/.extraheader".into(),
        file: "/home/runner/work/_temp/git-credentials-1.config".into(),
        kind: PersistedKind::Header,
        local: true,
    };
    let access = Access {
        provider: "anthropic",
        wire: WireFormat::Messages,
        base: "https://api.anthropic.com/v1".into(),
        model: "claude-sonnet-5-5".into(),
        key: None,
        window_tokens: 0,
        response_tokens: 0,
        price: None,
    };
    let others = [
        vec![
            repository::top(Path::new("/home/runner/work/widget/widget"), None),
            repository::identity_of_job(),
            repository::checkout(&checkout, true),
            repository::credentials(&[credential]),
        ],
        of_builtin(&access, Some("ANTHROPIC_API_KEY"), None),
    ]
    .concat();
    let mut findings = with(laptop(), others);
    findings.retain(|finding| finding.check != "agent-program");
    let place = findings
        .iter()
        .position(|finding| finding.check == "github")
        .unwrap();
    let mut of_job = github(&Resolved::default()).findings();
    of_job.push(event(
        "issue_comment",
        &comment("/sprag fix the flaky test"),
    ));
    findings.splice(place..=place, of_job);
    findings
}

/// The findings about an agent that is missing.
pub(crate) fn no_agent() -> Finding {
    let error = Error::environment("no agent is configured").hint("name one");
    Finding::of_error("agent", &error.hint("or set a key"))
}

/// A directory that cannot be written.
pub(crate) fn closed_run_directory() -> Finding {
    machine::room("run-directory", &closed("/runs", true), "--run-dir")
}

/// Another one.
pub(crate) fn closed_state_directory() -> Finding {
    machine::state_directory(&closed("/state", true))
}

/// A work tree with another name.
pub(crate) fn work_tree(name: &str) -> Finding {
    repository::top(Path::new(name), None)
}
