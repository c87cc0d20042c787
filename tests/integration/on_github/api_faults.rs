//! GitHub's API in trouble: the work arrives, the report as far as it can, the exit code is the run's.

use super::FIX;
use super::pushes::{assert_checks_over, conclusion, fix, fix_on_push, on_pull, on_push};
use crate::actions::commands;
use crate::support::github::{Access, Area, Fault, Subject, Token, Trouble};
use crate::support::runner::{Runner, TOKEN};
use crate::support::time_limit::under_limit;
use std::time::Duration;

const CHECKS: &str = "/repos/acme/widget/check-runs";
const CHECK: &str = "/repos/acme/widget/check-runs/*";
const COMMENTS: &str = "/repos/acme/widget/issues/*/comments";
const EVERYTHING: &str = "/**";

/// The whole report is where it belongs, once.
fn assert_reported(runner: &Runner, number: u64, asked: u64) {
    let head = runner.at("feature");
    assert_eq!(runner.log("feature")[0], "Say fixed");
    assert_eq!(conclusion(runner, &head), "success");
    assert_checks_over(runner);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&head), "{comment}");
    let state = runner.github.state();
    let mut reactions = state.reactions_on(Subject::Comment(asked));
    reactions.retain(|(login, _)| *login == "github-actions[bot]");
    let words: Vec<&str> = reactions.iter().map(|(_, content)| *content).collect();
    assert_eq!(words, ["eyes", "rocket"]);
}

#[test]
fn a_fault_that_passes_leaves_nothing_twice_and_nothing_out() {
    let create = |trouble: Trouble| {
        [
            Fault::next(1, "POST", CHECKS, trouble.clone()),
            Fault::next(1, "POST", COMMENTS, trouble),
        ]
    };
    for faults in [
        create(Trouble::Lost),
        create(Trouble::secondary(403, 0)),
        [
            Fault::nth(2, "POST", CHECKS, Trouble::Lost),
            Fault::next(1, "PATCH", CHECK, Trouble::Torn),
        ],
        [
            Fault::next(2, "PATCH", CHECK, Trouble::bad_gateway()),
            Fault::next(2, "GET", EVERYTHING, Trouble::bad_gateway()),
        ],
    ] {
        let (mut runner, number, asked) = on_pull();
        for fault in &faults {
            runner.github.fault(fault.clone());
        }
        let step = fix(&mut runner, &[]).expect(0);
        assert_eq!(step.output("report-status"), "ok");
        assert_reported(&runner, number, asked);
    }
}

#[test]
fn a_wait_that_github_asks_for_is_kept() {
    let (mut runner, number, asked) = on_pull();
    runner
        .github
        .fault(Fault::next(1, "POST", CHECKS, Trouble::secondary(429, 2)));
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("report-status"), "ok");
    let obeyed = commands(&step.run.stdout);
    assert!(
        obeyed.iter().any(|line| line.starts_with("::group::")),
        "the log is folded beside a check run, too: {obeyed:?}"
    );
    assert_reported(&runner, number, asked);
}

#[test]
fn a_token_without_checks_has_annotations_in_the_log_and_the_step_summary() {
    let (mut runner, number, _) = on_pull();
    let token = Token::job().may(Area::Checks, Access::Read);
    runner.github.token(TOKEN, token);
    let check = "grep -q fixed a.txt || { echo 'a.txt:1:1: error: it says broken'; exit 1; }";
    let step = runner
        .by(
            "printf wrong-$N > a.txt",
            &["--verify", check, "--max-retries", "1"],
        )
        .expect(1);
    assert_eq!(step.output("status"), "failed");
    assert_eq!(step.output("report-status"), "degraded");
    assert!(step.summary.contains("it says broken"), "{}", step.summary);
    let obeyed = commands(&step.run.stdout);
    let expected = ["::group::", "::endgroup::", "::error file=a.txt,line=1,"];
    for command in expected {
        let is_there = obeyed.iter().any(|line| line.starts_with(command));
        assert!(is_there, "no {command} in {obeyed:?}");
    }
    let told = step.run.stderr.matches("no check run").count();
    assert_eq!(told, 1, "{}", step.run.stderr);
    assert!(runner.comment(number).is_some());
    assert!(runner.github.state().checks.is_empty());
}

#[test]
fn a_token_that_may_only_read_has_the_failed_push_as_an_error_in_the_log() {
    let (mut runner, _, _) = on_pull();
    runner.github.token(TOKEN, Token::fork());
    runner.server.read_only(TOKEN);
    let agent = runner.project.agent(FIX);
    let args = ["--agent-command", &agent, "--verify", "grep -q fixed a.txt"];
    let step = runner.step(&args).expect(4);
    let start = "::error file=.github,title=The commits are not on the branch::not pushed feature";
    let obeyed = commands(&step.run.stdout);
    let told = obeyed.iter().find(|line| line.starts_with(start));
    assert!(
        told.is_some_and(|line| line.contains("contents: write")),
        "{obeyed:?}"
    );
    let told = step
        .summary
        .lines()
        .find(|line| line.starts_with("Not pushed feature"));
    assert!(
        told.is_some_and(|line| line.contains("contents: write")),
        "{}",
        step.summary
    );
}

#[test]
fn refusals_are_asked_once_and_change_no_exit_code() {
    let (mut runner, number, _) = on_pull();
    for method in ["POST", "PATCH"] {
        for path in [CHECKS, CHECK] {
            let fault = Fault::every(method, path, Trouble::status(422, "Validation Failed"));
            runner.github.fault(fault);
        }
    }
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("report-status"), "degraded");
    assert_eq!(runner.log("feature")[0], "Say fixed");
    let asked = runner
        .github
        .requests_to("POST /repos/{owner}/{repo}/check-runs");
    // Each of the three that are worth asking for, once.
    assert!(asked.len() <= 3, "{asked:#?}");
    assert!(runner.comment(number).is_some());
    assert!(!step.summary.is_empty());
}

#[test]
fn a_server_that_hangs_or_drips_is_left_to_itself() {
    for trouble in [Trouble::Hang, Trouble::Drip(Duration::from_millis(50))] {
        // The limit is one of all requests, so that a slow machine also misses it with those that are answered.
        let (runner, step) = under_limit(|limit| {
            let (mut runner, _, _) = on_pull();
            let limit = (limit * 150).to_string();
            runner.project.env("SPRAG_GITHUB_REQUEST_MS", limit);
            for path in [CHECKS, CHECK, COMMENTS] {
                for method in ["POST", "PATCH"] {
                    runner
                        .github
                        .fault(Fault::every(method, path, trouble.clone()));
                }
            }
            let step = fix(&mut runner, &[]);
            (step.run.code == 0).then_some((runner, step))
        });
        assert_eq!(step.output("status"), "success");
        assert_eq!(step.output("report-status"), "degraded", "{trouble:?}");
        assert_eq!(runner.log("feature")[0], "Say fixed");
    }
}

#[test]
fn a_limit_that_ends_in_40_minutes_is_not_waited_for_with_another_clock() {
    let (mut runner, number, _) = on_pull();
    let reset = {
        let mut state = runner.github.state();
        state.clock_ahead = -3600;
        u64::try_from(state.epoch()).unwrap() + 2400
    };
    for method in ["POST", "PATCH"] {
        for path in [
            CHECKS,
            CHECK,
            COMMENTS,
            "/repos/acme/widget/issues/comments/*",
        ] {
            let limit = Trouble::rate_limit(403, reset);
            runner.github.fault(Fault::every(method, path, limit));
        }
    }
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("report-status"), "degraded");
    assert_eq!(runner.log("feature")[0], "Say fixed");
    let told = step
        .summary
        .lines()
        .filter_map(|line| line.strip_prefix("- GitHub: "));
    let told: Vec<&str> = told.collect();
    for (at, line) in told.iter().enumerate() {
        let others = told.iter().enumerate().filter(|(other, _)| *other != at);
        let mut twice = others.filter(|(_, other)| other.contains(line));
        assert_eq!(twice.next(), None, "{line}");
    }
    assert!(!told.is_empty(), "{}", step.summary);
    assert!(
        step.run.stderr.contains("rate limit"),
        "{}",
        step.run.stderr
    );
    assert!(runner.comment(number).is_none());
}

#[test]
fn verified_work_is_pushed_with_the_api_down_from_the_beginning() {
    let mut runner = on_push();
    runner
        .github
        .fault(Fault::every("*", EVERYTHING, Trouble::Down));
    let step = fix_on_push(&mut runner, &[]).expect(0);
    assert_eq!(runner.log("main"), ["Say fixed", "base"]);
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("report-status"), "degraded");
    assert_eq!(step.output("head-sha"), runner.at("main"));
    assert!(!step.summary.is_empty());
    assert!(step.dir.unwrap().join("report.html").is_file());
    assert!(runner.github.state().checks.is_empty());
}

#[test]
fn a_report_that_is_nowhere_has_failed_and_the_run_has_not() {
    let mut runner = on_push();
    let everything = Fault::every("*", EVERYTHING, Trouble::Down);
    runner.github.fault(everything);
    let agent = runner.project.agent("printf fixed > a.txt; echo Done.");
    let nowhere = runner.project.outside("no/such/directory");
    let args = ["--prompt", "Fix it", "--agent-command", &agent];
    let mut command = runner.command(&[&args[..], &["--verify", "true"]].concat());
    let ended = command
        .env("GITHUB_STEP_SUMMARY", nowhere)
        .output()
        .unwrap();
    let step = runner.ended(&ended).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("report-status"), "failed");
}

#[test]
fn verified_work_is_pushed_with_the_api_down_from_the_middle() {
    let (mut runner, number, _) = on_pull();
    // The check run is made, and from then on nothing.
    for method in ["PATCH", "GET"] {
        runner
            .github
            .fault(Fault::every(method, EVERYTHING, Trouble::Down));
    }
    runner.github.heal();
    let down = "touch \"$OUT/down\"; until test -e \"$OUT/is-down\"; do sleep 0.05; done\n";
    let agent = runner.project.agent(&format!("{down}printf fixed > a.txt"));
    let args = ["--agent-command", &agent, "--verify", "grep -q fixed a.txt"];
    let (started, over) = (
        runner.project.outside("down"),
        runner.project.outside("is-down"),
    );
    let child = runner.command(&args);
    let ended = std::thread::scope(|scope| {
        let mut child = child;
        let running = scope.spawn(move || child.output().unwrap());
        crate::support::proc::wait_until("the agent", || started.exists());
        crate::support::proc::wait_until("the comment", || runner.comment(number).is_some());
        runner
            .github
            .fault(Fault::every("*", EVERYTHING, Trouble::Down));
        std::fs::write(&over, "").unwrap();
        running.join().unwrap()
    });
    let step = runner.ended(&ended).expect(0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(step.output("report-status"), "degraded");
    assert_eq!(runner.log("feature").len(), 3);
    assert!(step.dir.as_ref().unwrap().join("summary.json").is_file());
    assert!(!step.summary.is_empty());
}

#[test]
fn what_did_not_come_through_at_first_is_there_in_the_end() {
    let (mut runner, number, asked) = on_pull();
    for path in [CHECKS, COMMENTS] {
        let fault = Fault::next(4, "POST", path, Trouble::bad_gateway());
        runner.github.fault(fault);
    }
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("report-status"), "ok");
    assert_reported(&runner, number, asked);
}

#[test]
fn a_repository_that_was_renamed_meanwhile_gets_the_whole_report() {
    let (mut runner, number, asked) = on_pull();
    {
        let mut state = runner.github.state();
        state.former_name = Some(state.repository.full_name.clone());
        state.repository.full_name = "acme/gadget".to_owned();
    }
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("report-status"), "ok");
    assert_reported(&runner, number, asked);
}
