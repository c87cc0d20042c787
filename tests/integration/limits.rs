//! Limits of time: of a turn, of its silence, of checks, hooks, setup and of the whole run.

use crate::support::proc::{assert_nothing_left, end_of, is_alive, pids, wait_until};
use crate::support::project::{Project, plan};
use crate::support::tasks::{USAGE, assessments};
use crate::support::time_limit::{turns_under_limit, under_limit};
use serde_json::json;
use std::fs;

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

/// A child that hangs with a daemon beside it.
const HANG: &str = "(setsid sleep 1000 &); sleep 1000";

#[test]
fn a_hang_that_talks_meets_the_turns_limit_and_a_silent_one_the_limit_of_silence() {
    let expected = ["turn_timeout", "agent_transient", "changed"];
    let (project, run) = turns_under_limit(&expected, |limit| {
        let project = project();
        let agent = project.agent(&format!(
            "case $N in 1) echo half > half.txt; while :; do echo busy; sleep 0.1; done ;; 2) {HANG} ;; *) {FIX} ;; esac"
        ));
        let [turn, stall] = [2 * limit, limit].map(|limit| format!("{limit}s"));
        let run = project.run(
            &agent,
            &["--turn-timeout", &turn, "--stall-timeout", &stall],
        );
        (project, run)
    });
    assert_eq!(run.expect(0).task(0)["attempts"], 2);
    assert_nothing_left(&project);
}

#[test]
fn output_on_either_stream_is_no_silence() {
    let (_, run) = turns_under_limit(&["changed"], |limit| {
        let project = project();
        // It works for twice the limit.
        let pause = f64::from(limit) / 5.0;
        let agent = project.agent(&format!(
            "for i in 1 2 3 4 5; do echo x >&2; sleep {pause}; printf x; sleep {pause}; done; {FIX}"
        ));
        let run = project.run(&agent, &["--stall-timeout", &format!("{limit}s")]);
        (project, run)
    });
    run.expect(0);
}

#[test]
fn the_deadline_ends_turns_checks_hooks_and_setup() {
    for place in ["agent", "check", "hook", "setup"] {
        under_limit(|limit| the_deadline_ends(place, limit));
    }
}

/// `None` if the deadline came before what hangs.
fn the_deadline_ends(place: &str, limit: u32) -> Option<()> {
    let project = project();
    let pid = project.outside("pid");
    let hang = format!("echo $$ >{}; {HANG}", pid.display());
    let (agent, check) = match place {
        "agent" => (hang.as_str(), CHECK),
        "check" => (FIX, hang.as_str()),
        "hook" => {
            project.hook("pre-commit", &hang);
            (FIX, CHECK)
        }
        _ => {
            let setup = serde_json::to_string(&hang).unwrap();
            project.write("plan.yaml", &format!("setup: [ {setup} ]\n{}", plan(CHECK)));
            project.commit_all("setup");
            (FIX, CHECK)
        }
    };
    let head = project.head();
    let agent = project.agent(agent);
    let all = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let deadline = format!("{limit}s");
    let limit = ["--verify", check, "--deadline", &deadline];
    let mut child = project.start(&[&all[..], &limit].concat());
    let status = end_of(&mut child);
    let run = project.finished(&child.wait_with_output().unwrap());
    if pids(&pid).is_empty() {
        return None;
    }
    let shown = format!("{place}\n{}\n{}", run.stdout, run.stderr);
    assert_eq!(status.code(), Some(5), "{shown}");
    assert_eq!(run.summary["status"], "deadline", "{shown}");
    assert_eq!(project.head(), head, "{shown}");
    assert_eq!(pids(&pid).len(), 1, "{shown}");
    assert!(pids(&pid).iter().all(|pid| !is_alive(*pid)), "{shown}");
    assert_nothing_left(&project);
    fs::remove_file(&pid).unwrap();
    Some(())
}

#[test]
fn a_deadline_that_has_passed_starts_nothing_more() {
    let (project, run) = under_limit(|limit| {
        let project = project();
        let agent = project.agent(&format!("sleep {}; {FIX}", limit + 1));
        let run = project.run(&agent, &["--deadline", &format!("{limit}s")]);
        (project.calls() > 0).then_some((project, run))
    });
    let run = run.expect(5);
    assert_eq!(
        (project.calls(), run.task(0)["reason"].as_str()),
        (1, Some("deadline"))
    );
    wait_until("nothing is left", || {
        crate::support::proc::left_in(&project, &[]).is_empty()
    });
}

/// The turn has no assessment, but its tokens are the run's, before and after it is taken up.
#[test]
fn what_a_turn_has_used_up_until_the_deadline_is_counted() {
    let (project, run) = under_limit(|limit| {
        let project = project();
        let agent = project.agent(&format!(
            "{USAGE}; test $N = 2 || {{ touch \"$OUT/used\"; {HANG}; }}; {FIX}"
        ));
        let run = project.run(&agent, &["--deadline", &format!("{limit}s")]);
        let has_used = project.outside("used").exists();
        has_used.then_some((project, run))
    });
    let run = run.expect(5);
    let used = |tokens_in: u32, tokens_out: u32| json!({"tokens_in": tokens_in, "tokens_out": tokens_out, "cost_usd": null});
    assert_eq!(run.summary["usage"], used(90, 30));
    assert_eq!(run.task(0)["usage"], used(90, 30));
    assert_eq!(assessments(run.task(0)), [""; 0]);

    let resumed = ["run", "--resume", "--deadline", "1h", "--max-tokens", "121"];
    let run = project.sprag(&resumed).expect(0);
    assert_eq!(run.summary["usage"], used(180, 60));
    assert_eq!(run.task(0)["usage"], used(180, 60));
    assert_eq!(assessments(run.task(0)), ["changed"]);
}
