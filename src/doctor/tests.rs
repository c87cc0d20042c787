//! Tests each rule with one difference from a place without problems.

use super::actions_job::{Job, token_kind};
use super::machine::{APPARMOR, CONTAINER, LIMIT, Place};
use super::samples::{
    closed, comment, event, github, job, laptop, levels, place, refusing, survey, with,
};
use super::*;
use crate::agents::Login;
use crate::agents::codex::SPEC;
use crate::domain::sandbox::Level;
use crate::domain::settings::{Report, Resolved, Sandbox};
use crate::error::Error;
use crate::git::UncommittedChanges;
use crate::github::api::{Area, Error as ApiError, ErrorKind};
use crate::http::{Fault, ProxyInUse};
use crate::run::begin::requirements::MissingProgram;
use finding::judged;
use serde_json::json;

fn of(findings: &[Finding], check: &str) -> Finding {
    let found = findings.iter().find(|finding| finding.check == check);
    found.unwrap().clone()
}

/// The state of one check of a job after a change.
fn state(check: &str, settings: &Resolved, change: impl FnOnce(&mut Job<'_>)) -> State {
    let mut job = github(settings);
    change(&mut job);
    of(&job.findings(), check).state
}

fn away() -> ApiError {
    ApiError {
        what: "GET /repos".into(),
        kind: ErrorKind::Unreachable,
        message: "GitHub said no".into(),
    }
}

#[test]
fn a_place_where_all_is_well_has_nothing_to_remedy() {
    let findings = laptop();
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
    let error = Error::environment("no git");
    let broken = vec![
        repository::program(None),
        repository::unusable(None, &error),
        machine::user(true),
    ];
    let settings = Resolved::default();
    let mut unreachable = github(&settings);
    unreachable.survey = Some(Err(away()));
    for findings in [laptop(), job(), broken, unreachable.findings()] {
        for finding in findings {
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
        let found = repository::work_tree(&changes, allowed, false);
        assert_eq!(found.state, expected, "{changes:?} {allowed}");
    }
}

#[test]
fn shallow_and_detached_checkouts_are_well() {
    let found = of(&job(), "checkout");
    assert_eq!(found.state, State::Ok);
    assert_eq!(
        found.found,
        "detached at 3f2f3ad64825 (refs/remotes/pull/7/merge), shallow: 1 commit of its history; a run for a pull request switches to its head branch"
    );
}

#[test]
fn what_git_could_not_say_is_unknown_and_no_failure() {
    let why = "git status failed";
    let unknown = judged("work-tree", Err(why), |()| {
        panic!("there is nothing to judge")
    });
    assert_eq!(
        (unknown.state, unknown.found.as_str()),
        (State::Unknown, why)
    );
    assert!(could_work(&with(laptop(), vec![unknown])));
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
        let found = agent::program(&SPEC, Some((Ok(version.to_owned()), "codex".into())));
        assert_eq!(found.state, expected, "{version}");
    }
    assert_eq!(agent::program(&SPEC, None).state, State::Fail);
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
        let found = agent::login(&SPEC, &login, None);
        assert_eq!(found.state, expected, "{login:?}");
    }
}

#[test]
fn tokens_are_told_by_how_they_begin() {
    let table = [
        ("ghs_x", "of the job or of an app (ghs_), acts", State::Ok),
        ("ghp_x", "a personal token (ghp_), acts", State::Warn),
        ("github_pat_x", "a fine-grained personal token", State::Warn),
        ("gho_x", "a person's token issued to an app", State::Warn),
        ("ghu_x", "a person's token issued to an app", State::Warn),
        ("0123456789abcdef", "of an unknown kind", State::Unknown),
    ];
    let settings = Resolved::default();
    for (token, words, expected) in table {
        let mut job = github(&settings);
        job.token = token_kind(token);
        let found = of(&job.findings(), "token");
        assert_eq!(found.state, expected, "{token}");
        assert!(found.found.starts_with(words), "{}", found.found);
    }
}

/// A run with its own plan needs no GitHub. An event that must be looked up, or a setting for GitHub, does.
#[test]
fn github_is_needed_where_something_was_asked_of_it() {
    let defaults = Resolved::default();
    let reports = Resolved {
        report: Report::Github,
        ..Resolved::default()
    };
    let table = [
        (&defaults, None, State::Warn),
        (&reports, None, State::Fail),
        (&defaults, Some(true), State::Fail),
    ];
    for (settings, asks, expected) in table {
        let no_token = state("token", settings, |job| {
            job.asks = asks;
            job.token = None;
            job.survey = None;
        });
        assert_eq!(no_token, expected);
        let unreachable = state("api", settings, |job| {
            job.asks = asks;
            job.survey = Some(Err(away()));
        });
        assert_eq!(unreachable, expected);
    }
    let wrong = state("token", &defaults, |job| {
        job.asks = None;
        job.survey = Some(Err(ApiError {
            kind: ErrorKind::Unauthorised,
            what: "GET /repos".into(),
            message: "GitHub said no".into(),
        }));
    });
    assert_eq!(wrong, State::Fail);
}

#[test]
fn a_right_that_is_refused_is_a_failure_where_the_run_was_told_to_use_it() {
    let refused = |area: Area, check: &str, settings: &Resolved| {
        state(check, settings, |job| {
            job.survey = Some(Ok(refusing(area)));
        })
    };
    let defaults = Resolved::default();
    let contents = |push: Option<bool>| {
        let settings = Resolved {
            push,
            ..Resolved::default()
        };
        refused(Area::Contents, "may-contents", &settings)
    };
    assert_eq!(contents(None), State::Fail);
    assert_eq!(contents(Some(false)), State::Warn);
    let checks = refused(Area::Checks, "may-checks", &defaults);
    assert_eq!(checks, State::Warn);
    // Permission to read is enough to read logs.
    let actions = refused(Area::Actions, "may-actions", &defaults);
    assert_eq!(actions, State::Ok);
    let dispatches = Resolved {
        dispatch_workflows: vec!["ci.yml".into()],
        ..Resolved::default()
    };
    let actions = refused(Area::Actions, "may-actions", &dispatches);
    assert_eq!(actions, State::Warn);
}

#[test]
fn what_a_personal_token_cannot_is_said_with_what_can() {
    let settings = Resolved::default();
    let mut job = github(&settings);
    job.token = token_kind("ghp_x");
    job.survey = Some(Ok(refusing(Area::Checks)));
    assert_eq!(
        of(&job.findings(), "may-checks").remedy.as_deref(),
        Some(
            "use the job's own token with `permissions: checks: write`; only apps write check runs"
        )
    );
}

#[test]
fn a_repository_that_cannot_be_changed_is_a_failure_for_a_run_that_pushes() {
    let settings = Resolved::default();
    for (asks, expected) in [(Some(false), State::Fail), (None, State::Warn)] {
        let found = state("github-repository", &settings, |job| {
            let mut survey = survey();
            survey.facts.archived = true;
            job.survey = Some(Ok(survey));
            job.asks = asks;
        });
        assert_eq!(found, expected);
    }
}

#[test]
fn a_wrong_configuration_leaves_the_agent_unknown() {
    let error = Error::config(".sprag/config.yaml:3:1: unknown key `agnet`");
    let findings = configuration::invalid(&error);
    assert!(!could_work(&findings));
    assert_eq!(of(&findings, "configuration").state, State::Fail);
    assert_eq!(
        (agent::unknown().state, of(&findings, "checks").state),
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
        let place = Place {
            free,
            ..place("/runs")
        };
        let found = machine::room("run-directory", &place, "--run-dir");
        assert_eq!(found.state, expected, "{free:?}");
    }
    let found = machine::state_directory(&closed("/state", true));
    assert_eq!(found.state, State::Fail);
}

#[test]
fn a_home_that_is_missing_is_not_called_closed() {
    for (exists, said) in [(true, "cannot be written"), (false, "does not exist")] {
        let found = machine::home(Some(&closed("/home/anna", exists)));
        assert!(found.found.ends_with(said), "{}", found.found);
        assert_eq!(found.remedy.unwrap().starts_with("create it"), !exists);
    }
}

#[test]
fn an_event_is_said_in_the_words_of_what_it_asks_for() {
    let repository = json!({ "full_name": "acme/widget", "default_branch": "main" });
    let anna = json!({ "login": "anna", "type": "User" });
    let found = event("issue_comment", &comment("/sprag fix the\nbuild"));
    assert_eq!(
        (found.state, found.found.as_str()),
        (
            State::Ok,
            "issue_comment by anna asks for a task: fix the build, if that is permitted"
        )
    );
    let found = event("issue_comment", &comment("nice"));
    assert_eq!(
        (found.state, found.found.as_str()),
        (
            State::Warn,
            "issue_comment starts nothing: no line of the comment begins with `/sprag`"
        )
    );
    let two = json!({
        "repository": repository, "sender": anna, "ref": "refs/heads/main",
        "inputs": { "plan": "a.yaml", "queue": "plans" },
    });
    assert_eq!(event("workflow_dispatch", &two).state, State::Fail);
    let schedule = event("schedule", &json!({ "repository": repository }));
    assert_eq!(
        schedule.found,
        "schedule asks for the work that the step names"
    );
}

#[test]
fn the_way_to_each_server_is_told_and_a_setting_that_cannot_be_used_is_a_failure() {
    let proxy = ProxyInUse {
        proxy: "http://p:3128".into(),
        variable: "HTTPS_PROXY",
    };
    let fault = || Fault("it cannot be used".into());
    let mut routes = vec![
        ("a".to_owned(), Ok(Some(proxy))),
        ("b".to_owned(), Ok(None)),
    ];
    let found = network::proxy(&routes);
    assert_eq!(
        (found.state, found.found.as_str()),
        (
            State::Ok,
            "a through http://p:3128 (HTTPS_PROXY); b directly"
        )
    );
    routes.push(("c".to_owned(), Err(fault())));
    assert_eq!(network::proxy(&routes).state, State::Fail);
    assert_eq!(network::certificates(Err(fault())).state, State::Fail);
}

#[test]
fn a_program_that_a_command_needs_is_missed_before_the_run() {
    let state = |has_setup: bool, in_setup: bool| {
        let missing = MissingProgram {
            of: "check lint".into(),
            in_setup,
            program: "eslint".into(),
            also_called: None,
        };
        let found = configuration::programs(&[missing.clone(), missing], has_setup).unwrap();
        assert_eq!(found.found, "not found: check lint needs eslint");
        found.state
    };
    assert_eq!(state(false, false), State::Fail);
    assert_eq!(state(true, false), State::Warn);
    assert_eq!(state(true, true), State::Fail);
    assert_eq!(configuration::programs(&[], false), None);
}

#[test]
fn a_program_that_has_another_name_here_is_told_by_it() {
    let missing = MissingProgram {
        of: "check test".into(),
        in_setup: false,
        program: "python".into(),
        also_called: Some("python3"),
    };
    assert_eq!(
        configuration::programs(&[missing], false)
            .unwrap()
            .remedy
            .as_deref(),
        Some("python3 is installed: write python3 instead of python")
    );
}

#[test]
fn the_level_of_a_run_is_told_with_what_gives_the_next() {
    use Level::{Files, Namespaces, Privileges};
    let cases = [
        (
            Sandbox::Auto,
            Files,
            Namespaces,
            None,
            State::Ok,
            "`sandbox: require` gives level 3",
        ),
        (
            Sandbox::Auto,
            Files,
            Files,
            Some(&APPARMOR),
            State::Ok,
            "apparmor_restrict_unprivileged_userns=0",
        ),
        (
            Sandbox::Auto,
            Files,
            Files,
            Some(&LIMIT),
            State::Ok,
            "max_user_namespaces",
        ),
        (
            Sandbox::Auto,
            Privileges,
            Files,
            Some(&CONTAINER),
            State::Warn,
            "keep the run directory",
        ),
        (
            Sandbox::Auto,
            Privileges,
            Privileges,
            Some(&CONTAINER),
            State::Warn,
            "Landlock",
        ),
        (
            Sandbox::Require,
            Namespaces,
            Namespaces,
            None,
            State::Ok,
            "a run gets level 3",
        ),
        (
            Sandbox::Require,
            Files,
            Files,
            Some(&CONTAINER),
            State::Fail,
            "--cap-add SYS_ADMIN",
        ),
        (
            Sandbox::RequireTwo,
            Files,
            Files,
            None,
            State::Ok,
            "level 2",
        ),
        (
            Sandbox::Off,
            Level::Off,
            Namespaces,
            None,
            State::Warn,
            "`auto`, the default",
        ),
    ];
    for (setting, got, highest, obstacle, state, words) in cases {
        let found = machine::sandbox_level(setting, &levels(got, highest), obstacle);
        let text = format!("{} {}", found.found, found.remedy.unwrap_or_default());
        assert_eq!(found.state, state, "{text}");
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn processes_that_are_not_listed_are_not_found() {
    assert_eq!(machine::processes(true, true).state, State::Ok);
    assert_eq!(machine::processes(true, false).state, State::Warn);
}
