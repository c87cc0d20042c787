//! What a run shows on GitHub where it is a lot, and where a process dies in between.

use super::pushes::{assert_checks_over, conclusion, fix, on_pull};
use crate::support::github::{Fault, Subject, Trouble};
use crate::support::http::Response;
use crate::support::proc::{end_of, signal, wait_until};
use crate::support::runner::Runner;
use sprag::domain::trigger::run_name::RunName;
use std::collections::BTreeSet;

const CHECK: &str = "/repos/acme/widget/check-runs/*";

/// Ends with a failed task whose check named so many places.
fn complaining(runner: &mut Runner, places: usize) -> crate::support::runner::Step {
    let check = format!(
        "for n in $(seq {places}); do echo \"src/a.txt:$n:1: error: wrong in line $n\"; done; exit 1"
    );
    runner
        .by(
            "echo $N > a.txt",
            &["--verify", &check, "--max-retries", "0"],
        )
        .expect(1)
}

fn annotations(runner: &Runner) -> Vec<String> {
    let state = runner.github.state();
    assert_eq!(state.checks.len(), 1);
    let notes = state.checks[0].annotations.iter();
    notes.map(|note| note.to_string()).collect()
}

#[test]
fn annotations_come_in_batches_up_to_200() {
    for (places, least, most) in [(130, 130, 140), (400, 200, 200)] {
        let (mut runner, _, _) = on_pull();
        let step = complaining(&mut runner, places);
        assert_eq!(step.output("report-status"), "ok");
        let notes = annotations(&runner);
        let distinct: BTreeSet<&String> = notes.iter().collect();
        assert_eq!(distinct.len(), notes.len());
        assert!((least..=most).contains(&notes.len()), "{}", notes.len());
        for update in &runner.github.state().checks[0].updates {
            let batch = update["output"]["annotations"].as_array();
            assert!(batch.is_none_or(|batch| batch.len() <= 50));
        }
        assert_checks_over(&runner);
        let state = runner.github.state();
        let summary = state.checks[0].summary.as_deref().unwrap();
        let rest = summary
            .lines()
            .find_map(|line| line.split_once(" annotations more, for which"));
        let rest: usize = rest.map_or(0, |(count, _)| count.parse().unwrap());
        // The task and the kept work have annotations of their own.
        let all = places + 1..=places + 3;
        assert!(rest == 0 || all.contains(&(rest + 200)), "{summary}");
        assert_eq!(rest > 0, places > 200, "{summary}");
        let linked = summary.contains("the report of the [workflow run](http");
        assert_eq!(linked, places > 200, "{summary}");
        let failures = format!("… and {} failures more", places - 3);
        assert!(summary.contains(&failures), "{summary}");
    }
}

#[test]
fn a_fault_among_the_annotations_loses_none_and_doubles_none() {
    let (mut runner, _, _) = on_pull();
    // The conclusion and the first batch pass.
    let fault = Fault::nth(5, "PATCH", CHECK, Trouble::Lost);
    runner.github.fault(fault);
    let step = complaining(&mut runner, 400);
    assert_eq!(step.output("report-status"), "ok");
    let notes = annotations(&runner);
    let distinct: BTreeSet<&String> = notes.iter().collect();
    assert_eq!((notes.len(), distinct.len()), (200, 200));
    assert_checks_over(&runner);
}

#[test]
fn text_of_any_size_fits() {
    let (mut runner, number, _) = on_pull();
    let agent = runner.project.agent(
        "printf fixed > a.txt\nfor n in $(seq 20000); do printf '🦀'; done; echo\necho '```'",
    );
    let check = "for n in $(seq 20000); do printf '🦀'; done; grep -q nothing a.txt";
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        check,
        "--max-retries",
        "0",
    ];
    let step = runner.step(&args).expect(1);
    assert_eq!(step.output("report-status"), "ok");
    let comment = runner.comment(number).unwrap();
    assert!(comment.chars().count() <= 65_536);
    let state = runner.github.state();
    for check in &state.checks {
        for text in [&check.summary, &check.text].into_iter().flatten() {
            assert!(text.len() <= 65_535);
            assert_eq!(text.matches("\n```").count() % 2, 0, "{text}");
        }
    }
}

/// A run that is killed when `killed` says so, and taken up.
fn killed(killed: impl Fn(&Runner) -> bool, agent: &str) -> (Runner, u64, u64) {
    let (mut runner, number, asked) = on_pull();
    let agent = runner.project.agent(agent);
    let check = "grep -q fixed a.txt";
    let args = ["--agent-command", &agent, "--verify", check];
    let mut child = runner
        .command(&args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the moment", || killed(&runner));
    signal(child.id(), "KILL");
    end_of(&mut child);
    std::fs::write(runner.project.outside("go"), "").unwrap();
    let step = runner
        .step(&["--resume", "--agent-command", &agent, "--verify", check])
        .expect(0);
    assert_eq!(step.output("report-status"), "ok");
    (runner, number, asked)
}

fn assert_one_of_each(runner: &Runner, number: u64) {
    assert_checks_over(runner);
    let head = runner.at("feature");
    assert_eq!(conclusion(runner, &head), "success");
    assert_eq!(runner.log("feature").len(), 3);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&head), "{comment}");
}

#[test]
fn a_run_that_died_in_the_middle_goes_on_with_its_check_run_and_comment() {
    let agent =
        "touch \"$OUT/here\"; until test -e \"$OUT/go\"; do sleep 0.05; done\nprintf fixed > a.txt";
    let in_the_middle = |runner: &Runner| {
        let state = runner.github.state();
        runner.project.outside("here").exists()
            && state.checks.len() == 1
            && state.comments.len() == 2
    };
    let (runner, number, _) = killed(in_the_middle, agent);
    assert_one_of_each(&runner, number);
}

#[test]
fn a_run_that_died_before_it_knew_its_check_run_finds_it() {
    let agent = "until test -e \"$OUT/go\"; do sleep 0.05; done\nprintf fixed > a.txt";
    // GitHub has it, and the process has not been told.
    let unknown = |runner: &Runner| runner.github.state().checks.len() == 1;
    let (runner, number, _) = killed(unknown, agent);
    assert_one_of_each(&runner, number);
}

#[test]
fn a_run_that_died_after_its_push_has_one_check_run_on_each_head() {
    let (mut runner, number, _) = on_pull();
    // The last words do not get through before the process dies.
    runner
        .github
        .fault(Fault::every("PATCH", CHECK, Trouble::Hang));
    let agent = runner.project.agent("printf fixed > a.txt");
    let args = ["--agent-command", &agent, "--verify", "grep -q fixed a.txt"];
    let mut child = runner
        .command(&args)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the second check run", || {
        runner.github.state().checks.len() == 2
    });
    signal(child.id(), "KILL");
    end_of(&mut child);
    runner.github.heal();
    let args = [&["--resume"], &args[..]].concat();
    runner.step(&args).expect(0);
    assert_one_of_each(&runner, number);
}

#[test]
fn of_the_comments_of_two_runs_that_began_at_once_the_first_stays() {
    let (mut runner, number, _) = on_pull();
    let marker = RunName::of_job(Some("Sprag"), Some("fix")).marker();
    let other = format!("{marker}\nof a run that begins at the same time");
    let first = runner
        .github
        .state()
        .comment(number, "github-actions[bot]", &other);
    // It is written after this run has looked.
    let nothing = Trouble::Answer(Response {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: b"[]".to_vec(),
    });
    let comments = format!("/repos/acme/widget/issues/{number}/comments");
    let fault = Fault::next(2, "GET", &comments, nothing);
    runner.github.fault(fault);
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("report-status"), "ok");
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&runner.at("feature")), "{comment}");
    let state = runner.github.state();
    assert!(state.comments.iter().any(|comment| comment.id == first));
}

#[test]
fn a_comment_that_somebody_deletes_meanwhile_is_written_again_at_the_end() {
    let (mut runner, number, _) = on_pull();
    let agent = runner.project.agent(
        "touch \"$OUT/here\"; until test -e \"$OUT/go\"; do sleep 0.05; done\nprintf fixed > a.txt",
    );
    let args = ["--agent-command", &agent, "--verify", "grep -q fixed a.txt"];
    let child = runner
        .command(&args)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the comment", || {
        runner.project.outside("here").exists() && runner.comment(number).is_some()
    });
    let is_own = |author: &str| author == "github-actions[bot]";
    let mut state = runner.github.state();
    state.comments.retain(|comment| !is_own(&comment.author));
    drop(state);
    std::fs::write(runner.project.outside("go"), "").unwrap();
    let step = runner.ended(&child.wait_with_output().unwrap()).expect(0);
    assert_eq!(step.output("report-status"), "ok");
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&runner.at("feature")), "{comment}");
}

#[test]
fn without_a_report_the_work_is_pushed_and_nothing_is_said() {
    let (mut runner, number, asked) = on_pull();
    let step = fix(&mut runner, &["--report", "none"]).expect(0);
    assert_eq!(runner.log("feature")[0], "Say fixed");
    assert_eq!(step.output("head-sha"), runner.at("feature"));
    assert_eq!(runner.comment(number), None);
    let state = runner.github.state();
    assert!(state.checks.is_empty());
    assert!(state.reactions_on(Subject::Comment(asked)).is_empty());
}

#[test]
fn without_a_status_comment_the_check_runs_tell_all() {
    let (mut runner, number, _) = on_pull();
    runner.project.env("INPUT_STATUS-COMMENT", "false");
    let step = fix(&mut runner, &[]).expect(0);
    assert_eq!(step.output("report-status"), "ok");
    assert_eq!(runner.comment(number), None);
    assert_eq!(conclusion(&runner, &runner.at("feature")), "success");
    assert_checks_over(&runner);
}

/// Prints what pytest does of two tests of which the first is red from the beginning, and the second once
/// `a.txt` has been changed.
const TWO_TESTS: &str = r#"
fails() {
  printf '%s\n' "____________________ $1 ____________________" '' "    def $1():" '>       assert False' \
    'E       assert False' '' "tests/test_x.py:$2: AssertionError"
}
echo '=================================== FAILURES ==================================='
fails test_old 2
grep -q broken a.txt || fails test_new 9
echo '=========================== short test summary info ============================'
echo 'FAILED tests/test_x.py::test_old - assert False'
grep -q broken a.txt || echo 'FAILED tests/test_x.py::test_new - assert False'
exit 1
"#;

#[test]
fn whom_a_failing_test_is_to_be_blamed_on_stands_on_its_line_in_the_comment_and_in_an_output() {
    let (mut runner, number, _) = on_pull();
    runner.project.env("SPRAG_BASELINE", "on-failure");
    let agent = runner.project.agent("echo $N > a.txt");
    let check = runner.project.outside("two-tests.sh");
    std::fs::write(&check, TWO_TESTS).unwrap();
    let check = format!("sh {}", check.display());
    let args = ["--agent-command", &agent, "--verify", &check];
    let step = runner
        .step(&[&args[..], &["--max-retries", "0"]].concat())
        .expect(1);
    let state = runner.github.state();
    let notes = &state.checks[0].annotations;
    for (line, level, blame) in [(2, "warning", "was red before"), (9, "failure", "new")] {
        let note = notes
            .iter()
            .find(|note| note["start_line"] == line)
            .unwrap_or_else(|| panic!("nothing on line {line}: {notes:#?}"));
        assert_eq!(note["path"], "tests/test_x.py");
        assert_eq!(note["annotation_level"], level, "{note}");
        let title = note["title"].as_str().unwrap();
        assert!(title.ends_with(&format!("({blame})")), "{title}");
    }
    drop(state);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("was red before"), "{comment}");
    let known = step.output("known-failures");
    assert!(
        known.contains("test_old") && !known.contains("test_new"),
        "{known}"
    );
}
