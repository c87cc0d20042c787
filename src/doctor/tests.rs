//! Tests each rule with one difference from a place without problems.

use super::samples::{answer, job, laptop};
use super::*;
use crate::agents::Login;
use crate::domain::trigger::payload;
use crate::domain::trigger::settings::TriggerSettings;
use crate::run::begin::programs::MissingProgram;
use serde_json::json;

/// The state of one check after a change.
fn state(facts: Facts, check: &str, change: impl FnOnce(&mut Facts)) -> Option<State> {
    let mut facts = facts;
    change(&mut facts);
    let findings = examine(&facts);
    let found = findings.into_iter().find(|it| it.check == check);
    found.map(|found| found.state)
}

fn repository(facts: &mut Facts) -> &mut Repository {
    facts.repository.as_mut().unwrap()
}

fn configuration(facts: &mut Facts) -> &mut Configuration {
    facts.configuration.as_mut().unwrap()
}

fn cli(facts: &mut Facts) -> &mut Cli {
    match &mut facts.agent.as_mut().unwrap().kind {
        AgentKind::Cli(cli) => cli,
        other => panic!("{other:?}"),
    }
}

fn here(facts: &mut Facts) -> &mut JobFacts {
    match &mut facts.actions_job {
        ActionsJob::Inside(here) => here,
        ActionsJob::Outside => panic!("outside"),
    }
}

fn refuse(facts: &mut Facts, kind: RefusedKind) {
    let message = "GitHub said no".to_owned();
    here(facts).answer = Some(Err(Refused { kind, message }));
}

#[test]
fn a_place_where_all_is_well_has_nothing_to_remedy() {
    let findings = examine(&laptop());
    assert!(could_work(&findings));
    for finding in findings {
        let expected = match finding.check {
            "github" => State::Unknown,
            _ => State::Ok,
        };
        assert_eq!(finding.state, expected, "{finding:?}");
    }
}

#[test]
fn what_is_not_well_has_a_remedy_and_what_is_well_has_none() {
    let mut broken = job();
    broken.git = None;
    broken.machine.is_root = true;
    refuse(&mut broken, RefusedKind::Away);
    for facts in [laptop(), job(), broken] {
        for finding in examine(&facts) {
            let wants = matches!(finding.state, State::Warn | State::Fail);
            assert_eq!(finding.remedy.is_some(), wants, "{finding:?}");
            assert!(!finding.found.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn a_tree_that_a_run_would_refuse_is_a_failure() {
    let changes = |changed: &[&str], untracked: &[&str]| UncommittedChanges {
        changed: changed.iter().map(ToString::to_string).collect(),
        untracked: untracked.iter().map(ToString::to_string).collect(),
    };
    let table = [
        (changes(&[], &[]), false, State::Ok),
        (changes(&["a"], &[]), false, State::Fail),
        (changes(&[], &["plan.yaml"]), false, State::Warn),
        (changes(&[], &["a", "b"]), false, State::Fail),
        (changes(&["a"], &["b"]), true, State::Warn),
    ];
    for (changes, allowed, expected) in table {
        let found = state(laptop(), "work-tree", |facts| {
            repository(facts).changes = Ok(changes.clone());
            configuration(facts).allow_dirty = allowed;
        });
        assert_eq!(found, Some(expected), "{changes:?} {allowed}");
    }
}

#[test]
fn shallow_and_detached_checkouts_are_well() {
    assert_eq!(state(job(), "checkout", |_| {}), Some(State::Ok));
    let findings = examine(&job());
    let found = findings.iter().find(|it| it.check == "checkout").unwrap();
    assert_eq!(
        found.found,
        "detached at 3f2f3ad64825 (refs/remotes/pull/7/merge), shallow: 1 commit of its history; a run for a pull request switches to its head branch"
    );
}

#[test]
fn what_git_could_not_say_is_unknown_and_no_failure() {
    let mut facts = laptop();
    let why = || "git status failed".to_owned();
    *repository(&mut facts) = Repository {
        identity: Err(why()),
        changes: Err(why()),
        checkout: Err(why()),
        credentials: Err(why()),
        nested: Err(why()),
        ..repository(&mut facts).clone()
    };
    let findings = examine(&facts);
    assert!(could_work(&findings));
    let unknown = findings.iter().filter(|it| it.found == why());
    assert_eq!(unknown.count(), 5);
}

#[test]
fn versions_are_compared_by_their_numbers() {
    let table = [
        ("0.169.0", State::Ok),
        ("0.1000.0", State::Ok),
        ("1.0.0", State::Ok),
        ("0.99.9", State::Warn),
        ("0.168.9-beta.1", State::Warn),
    ];
    for (version, expected) in table {
        let found = state(laptop(), "agent-program", |facts| {
            cli(facts).version = Ok(version.to_owned());
        });
        assert_eq!(found, Some(expected), "{version}");
    }
    let found = state(laptop(), "agent-program", |facts| cli(facts).path = None);
    assert_eq!(found, Some(State::Fail));
}

#[test]
fn an_agent_without_any_key_is_a_failure_and_one_that_may_have_one_a_warning() {
    let table = [
        (Login::File("/root/.codex/auth.json".into()), State::Ok),
        (
            Login::Perhaps("/root/.codex/config.toml".into()),
            State::Warn,
        ),
        (Login::Nothing, State::Fail),
    ];
    for (login, expected) in table {
        let found = state(laptop(), "model-key", |facts| {
            cli(facts).login = login.clone();
        });
        assert_eq!(found, Some(expected), "{login:?}");
    }
}

#[test]
fn tokens_are_told_by_how_they_begin() {
    let table = [
        ("ghs_x", TokenKind::Installation, State::Ok),
        ("ghp_x", TokenKind::Classic, State::Warn),
        ("github_pat_x", TokenKind::FineGrained, State::Warn),
        ("gho_x", TokenKind::OnBehalf, State::Warn),
        ("ghu_x", TokenKind::OnBehalf, State::Warn),
        ("0123456789abcdef", TokenKind::Other, State::Unknown),
    ];
    for (token, kind, expected) in table {
        assert_eq!(TokenKind::of(token), kind);
        let found = state(job(), "token", |facts| here(facts).token = Some(kind));
        assert_eq!(found, Some(expected), "{token}");
    }
}

/// A run with its own plan needs no GitHub. An event that must be looked up, or a setting for GitHub, does.
#[test]
fn github_is_needed_where_something_was_asked_of_it() {
    let alone = |facts: &mut Facts| facts.trigger = Trigger::None;
    let told = |facts: &mut Facts| {
        facts.trigger = Trigger::None;
        configuration(facts).delivery.report = true;
    };
    let asked = |_: &mut Facts| {};
    type Needs<'n> = &'n dyn Fn(&mut Facts);
    let table: [(Needs<'_>, State); 3] = [
        (&alone, State::Warn),
        (&told, State::Fail),
        (&asked, State::Fail),
    ];
    for (needs, expected) in table {
        let no_token = state(job(), "token", |facts| {
            needs(facts);
            here(facts).token = None;
            here(facts).answer = None;
        });
        assert_eq!(no_token, Some(expected));
        let away = state(job(), "api", |facts| {
            needs(facts);
            refuse(facts, RefusedKind::Away);
        });
        assert_eq!(away, Some(expected));
    }
    let wrong = state(job(), "token", |facts| {
        alone(facts);
        refuse(facts, RefusedKind::Token);
    });
    assert_eq!(wrong, Some(State::Fail));
}

#[test]
fn a_right_that_is_refused_is_a_failure_where_the_run_was_told_to_use_it() {
    let refused = |area: Area| {
        move |facts: &mut Facts| {
            let right = Right {
                area,
                read: PermissionState::Known,
                write: PermissionState::Refused,
            };
            let mut answer = answer();
            answer.rights.retain(|known| known.area != area);
            answer.rights.push(right);
            here(facts).answer = Some(Ok(answer));
        }
    };
    let contents = |push: Option<bool>| {
        state(job(), "may-contents", |facts| {
            refused(Area::Contents)(facts);
            configuration(facts).delivery.push = push;
        })
    };
    assert_eq!(contents(None), Some(State::Fail));
    assert_eq!(contents(Some(false)), Some(State::Warn));
    let checks = state(job(), "may-checks", refused(Area::Checks));
    assert_eq!(checks, Some(State::Warn));
    // Permission to read is enough to read logs.
    let actions = state(job(), "may-actions", refused(Area::Actions));
    assert_eq!(actions, Some(State::Ok));
    let actions = state(job(), "may-actions", |facts| {
        refused(Area::Actions)(facts);
        configuration(facts).delivery.dispatch = true;
    });
    assert_eq!(actions, Some(State::Warn));
}

#[test]
fn what_a_personal_token_cannot_is_said_with_what_can() {
    let mut facts = job();
    here(&mut facts).token = Some(TokenKind::Classic);
    let mut known = answer();
    known.rights = vec![Right {
        area: Area::Checks,
        read: PermissionState::Known,
        write: PermissionState::Refused,
    }];
    here(&mut facts).answer = Some(Ok(known));
    let findings = examine(&facts);
    let found = findings.iter().find(|it| it.check == "may-checks").unwrap();
    assert_eq!(
        found.remedy.as_deref(),
        Some(
            "use the job's own token with `permissions: checks: write`; only apps write check runs"
        )
    );
}

#[test]
fn a_wrong_configuration_leaves_the_agent_unknown() {
    let mut facts = laptop();
    facts.configuration = Err(Problem {
        message: ".sprag/config.yaml:3:1: unknown key `agnet`".into(),
        hints: Vec::new(),
    });
    facts.agent = None;
    let findings = examine(&facts);
    assert!(!could_work(&findings));
    let of = |check: &str| findings.iter().find(|it| it.check == check).unwrap().state;
    assert_eq!(of("configuration"), State::Fail);
    assert_eq!(
        (of("agent"), of("checks")),
        (State::Unknown, State::Unknown)
    );
}

#[test]
fn room_is_judged_in_steps() {
    let table = [
        (Some(10 << 20), State::Fail),
        (Some(500 << 20), State::Warn),
        (Some(2 << 30), State::Ok),
        (None, State::Ok),
    ];
    for (free, expected) in table {
        let found = state(laptop(), "run-directory", |facts| {
            facts.machine.run_directory.free = free;
        });
        assert_eq!(found, Some(expected), "{free:?}");
    }
    let closed = state(laptop(), "state-directory", |facts| {
        facts.machine.state_directory.writable = false;
    });
    assert_eq!(closed, Some(State::Fail));
}

#[test]
fn a_home_that_is_missing_is_not_called_closed() {
    for (exists, said) in [(true, "cannot be written"), (false, "does not exist")] {
        let mut facts = laptop();
        let home = facts.machine.home.as_mut().unwrap();
        (home.exists, home.writable) = (exists, false);
        let found = examine(&facts)
            .into_iter()
            .find(|it| it.check == "home")
            .unwrap();
        assert!(found.found.ends_with(said), "{}", found.found);
        assert_eq!(found.remedy.unwrap().starts_with("create it"), !exists);
    }
}

#[test]
fn an_event_is_said_in_the_words_of_what_it_asks_for() {
    let settings = TriggerSettings::default();
    let said = |name: &str, payload: serde_json::Value| {
        let event = payload::parse(name, &payload).unwrap();
        let facts = Facts {
            trigger: read(name, &event, &settings),
            ..job()
        };
        let found = examine(&facts)
            .into_iter()
            .find(|it| it.check == "trigger")
            .unwrap();
        (found.state, found.found)
    };
    let repository = json!({ "full_name": "acme/widget", "default_branch": "main" });
    let anna = json!({ "login": "anna", "type": "User" });
    let comment = |body: &str| {
        json!({
            "action": "created", "repository": repository, "sender": anna,
            "issue": { "number": 7, "title": "t", "body": "", "state": "open", "user": anna },
            "comment": { "id": 1, "body": body, "user": anna, "author_association": "OWNER" },
        })
    };
    assert_eq!(
        said("issue_comment", comment("/sprag fix the\nbuild")),
        (
            State::Ok,
            "issue_comment by anna asks for a task: fix the build, if that is permitted".to_owned()
        )
    );
    assert_eq!(
        said("issue_comment", comment("nice")),
        (
            State::Warn,
            "issue_comment starts nothing: no line of the comment begins with `/sprag`".to_owned()
        )
    );
    let (state, found) = said(
        "workflow_dispatch",
        json!({ "repository": repository, "sender": anna, "ref": "refs/heads/main", "inputs": { "plan": "a.yaml", "queue": "plans" } }),
    );
    assert_eq!(state, State::Fail, "{found}");
    let schedule = said("schedule", json!({ "repository": repository }));
    assert_eq!(schedule.1, "schedule asks for the work that the step names");
}

#[test]
fn the_way_to_each_server_is_told_and_a_setting_that_cannot_be_used_is_a_failure() {
    let proxy = Route::Proxy {
        proxy: "http://p:3128".into(),
        variable: "HTTPS_PROXY".into(),
    };
    let mut facts = laptop();
    facts.network.routes = vec![("a".into(), Ok(proxy)), ("b".into(), Ok(Route::Direct))];
    let findings = examine(&facts);
    let found = findings.iter().find(|it| it.check == "proxy").unwrap();
    assert_eq!(
        (found.state, found.found.as_str()),
        (
            State::Ok,
            "a through http://p:3128 (HTTPS_PROXY); b directly"
        )
    );
    let trouble = || Problem {
        message: "it cannot be used".into(),
        hints: vec!["set it right".into()],
    };
    let failed = state(facts.clone(), "proxy", |facts| {
        facts.network.routes.push(("c".into(), Err(trouble())));
    });
    assert_eq!(failed, Some(State::Fail));
    let failed = state(facts, "certificates", |facts| {
        facts.network.certificates = Err(trouble())
    });
    assert_eq!(failed, Some(State::Fail));
}

#[test]
fn a_program_that_a_command_needs_is_missed_before_the_run() {
    let finding = |has_setup: bool, in_setup: bool| {
        let mut facts = laptop();
        let Ok(configuration) = &mut facts.configuration else {
            panic!("the sample has a configuration");
        };
        configuration.has_setup = has_setup;
        let missing = MissingProgram {
            of: "check lint".into(),
            in_setup,
            program: "eslint".into(),
            also_called: None,
        };
        configuration.missing = vec![missing.clone(), missing];
        let findings = examine(&facts);
        let found = findings
            .into_iter()
            .find(|it| it.check == "programs")
            .unwrap();
        assert_eq!(found.found, "not found: check lint needs eslint");
        found.state
    };
    assert_eq!(finding(false, false), State::Fail);
    assert_eq!(finding(true, false), State::Warn);
    assert_eq!(finding(true, true), State::Fail);
}

#[test]
fn a_program_that_has_another_name_here_is_told_by_it() {
    let mut facts = laptop();
    let Ok(configuration) = &mut facts.configuration else {
        panic!("the sample has a configuration");
    };
    configuration.missing = vec![MissingProgram {
        of: "check test".into(),
        in_setup: false,
        program: "python".into(),
        also_called: Some("python3"),
    }];
    let findings = examine(&facts);
    let found = findings.into_iter().find(|it| it.check == "programs");
    assert_eq!(
        found.unwrap().remedy.as_deref(),
        Some("python3 is installed: write python3 instead of python")
    );
}

#[test]
fn the_level_of_a_run_is_told_with_what_gives_the_next() {
    use crate::domain::sandbox::{Level, SandboxLine};
    use crate::domain::settings::Sandbox;
    let told = |setting, got, highest, obstacle| {
        let mut facts = laptop();
        let line = |level| SandboxLine {
            level,
            missing: None,
            network: None,
        };
        facts.machine.confinement = Some(Confinement {
            setting,
            line: line(got),
            highest: line(highest),
            obstacle,
        });
        let mut findings = examine(&facts).into_iter();
        let found = findings.find(|it| it.check == "sandbox-level").unwrap();
        let text = format!("{} {}", found.found, found.remedy.unwrap_or_default());
        (found.state, text)
    };
    use Level::{Files, Namespaces, Privileges};
    use Obstacle::{AppArmor, Container, Limit, Unknown};
    let cases = [
        (
            Sandbox::Auto,
            Files,
            Namespaces,
            Unknown,
            State::Ok,
            "`sandbox: require` gives level 3",
        ),
        (
            Sandbox::Auto,
            Files,
            Files,
            AppArmor,
            State::Ok,
            "apparmor_restrict_unprivileged_userns=0",
        ),
        (
            Sandbox::Auto,
            Files,
            Files,
            Limit,
            State::Ok,
            "max_user_namespaces",
        ),
        (
            Sandbox::Auto,
            Privileges,
            Files,
            Container,
            State::Warn,
            "keep the run directory",
        ),
        (
            Sandbox::Auto,
            Privileges,
            Privileges,
            Container,
            State::Warn,
            "Landlock",
        ),
        (
            Sandbox::Require,
            Namespaces,
            Namespaces,
            Unknown,
            State::Ok,
            "a run gets level 3",
        ),
        (
            Sandbox::Require,
            Files,
            Files,
            Container,
            State::Fail,
            "--cap-add SYS_ADMIN",
        ),
        (
            Sandbox::RequireTwo,
            Files,
            Files,
            Unknown,
            State::Ok,
            "level 2",
        ),
        (
            Sandbox::Off,
            Level::Off,
            Namespaces,
            Unknown,
            State::Warn,
            "`auto`, the default",
        ),
    ];
    for (setting, got, highest, obstacle, state, words) in cases {
        let (found, text) = told(setting, got, highest, obstacle);
        assert_eq!(found, state, "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn processes_that_are_not_listed_are_not_found() {
    let processes = |change: fn(&mut Facts)| state(laptop(), "processes", change);
    assert_eq!(processes(|_| {}), Some(State::Ok));
    assert_eq!(
        processes(|facts| facts.machine.lists_processes = false),
        Some(State::Warn)
    );
}
