//! `--tdd`: tests that fail, then the work that makes them pass, then one turn to improve it.

use crate::support::has;
use crate::support::project::{Project, Run};
use serde_json::{Value, json};

const NOTE: &str = "echo $SPRAG_ROLE:$SPRAG_PURPOSE:$SPRAG_ATTEMPT >> $OUT/order\n";

/// The check runs every script in `tests`.
fn project() -> Project {
    let project = Project::new(&[("a.txt", "old\n"), ("tests/base.sh", "[ -f a.txt ]\n")]);
    let check = project.check("for t in tests/*.sh; do echo $t; sh $t || exit 1; done");
    let check = serde_json::to_string(&check).unwrap();
    let text = format!(
        "title: Example\nverify: [ {{ name: test, run: {check}, kind: test }} ]\ntasks:\n  - id: t\n    title: T\n"
    );
    project.write("plan.yaml", &text);
    project.commit_all("plan");
    project
}

fn tests_first(project: &Project, script: &str, args: &[&str]) -> Run {
    let agent = project.agent(&format!("{NOTE}{script}"));
    let args: Vec<&str> = ["--tdd"].iter().chain(args).copied().collect();
    project.run(&agent, &args)
}

fn phases(run: &Run) -> Vec<String> {
    let turns = run.task(0)["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| {
            format!(
                "{}-{}",
                turn["phase"].as_str().unwrap(),
                turn["purpose"].as_str().unwrap()
            )
        })
        .collect()
}

fn has_warning(run: &Run, part: &str) -> bool {
    let warnings = run.summary["warnings"].as_array().unwrap();
    warnings
        .iter()
        .any(|one| one.as_str().unwrap().contains(part))
}

const RED: &str = "echo 'grep -q new a.txt' > tests/new.sh; echo 'Wrote the test.'";

#[test]
fn a_test_that_fails_then_the_work_then_a_turn_to_improve_it_are_one_commit() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  green) echo new > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Make it new' ;;
  refactor) echo 'new and tidy' > a.txt; echo tidied ;;
esac"
    );
    let run = tests_first(&project, &script, &[]).expect(0);
    assert_eq!(
        phases(&run),
        ["red-red", "green-green", "refactor-refactor"]
    );
    let order = [
        "implementer:red:1",
        "implementer:green:1",
        "implementer:refactor:1",
    ];
    assert_eq!(project.notes("order"), order);
    assert_eq!((project.commits(), project.checks()), (3, 4));
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "new and tidy");
    assert_eq!(
        project.git(&["log", "-1", "--format=%s"]).trim(),
        "Make it new"
    );
    let task = run.task(0);
    assert_eq!(
        (&task["reason"], &task["attempts"], &task["retries"]),
        (&json!("verified"), &json!(3), &json!(0))
    );
    has(&project.prompt(1), "Only tests may change");
    has(&project.prompt(2), "tests/new.sh");
    has(&project.prompt(3), "Improve the code");
    assert!(!project.prompt(3).contains("SUGGESTED_COMMIT_MESSAGE"));
    let line = json!({"kind": "new_tests", "names": ["tests/new.sh"]});
    assert_eq!(task["evidence"], json!([line]));
}

#[test]
fn tests_that_pass_at_once_are_nudged_and_never_valid() {
    let project = project();
    let script = "echo 'grep -q old a.txt' > tests/new.sh; echo \"turn $SPRAG_TURN\" >> tests/new.sh.txt; echo done";
    let run = tests_first(&project, script, &["--nudges", "2"]).expect(1);
    assert_eq!(phases(&run), ["red-red", "red-nudge", "red-nudge"]);
    let task = run.task(0);
    assert_eq!(
        (&task["status"], &task["reason"]),
        (&json!("failed"), &json!("tdd_violation"))
    );
    assert_eq!(task["nudges"], 2);
    assert_eq!(project.commits(), 2);
    let prompt = project.prompt(2);
    has(&prompt, "proves nothing");
    has(&prompt, "Write the failing tests now");
}

#[test]
fn as_many_nudges_for_a_test_are_announced_as_there_are() {
    let run = tests_first(&project(), "echo 'All done.'", &[]).expect(1);
    assert_eq!(run.task(0)["nudges"], 3);
    for n in 1..=3 {
        let nudge = format!("nudge {n} of 3: Implementer: wrote no test");
        assert!(run.stdout.contains(&nudge), "{}", run.stdout);
    }
}

#[test]
fn a_failure_that_was_there_before_is_no_failing_test() {
    let mut project = Project::new(&[
        ("a.txt", "old\n"),
        ("tests/base.sh", "echo 'not ok 1 - base'; false\n"),
    ]);
    let text = "title: Example\nverify: [ { name: test, run: 'for t in tests/*.sh; do sh $t || bad=1; done; [ -z \"$bad\" ]', kind: test } ]\ntasks:\n  - id: t\n    title: T\n";
    project.write("plan.yaml", text);
    project.commit_all("plan");
    project.env("SPRAG_BASELINE", "on-failure");
    let run = tests_first(
        &project,
        "echo true > tests/new.sh; echo done",
        &["--nudges", "0"],
    )
    .expect(1);
    assert_eq!(run.task(0)["reason"], "tdd_violation");
    assert_eq!(run.task(0)["proofs"][0]["proof"], "baseline");
    has(&run.stdout, "failed before the new tests");
}

#[test]
fn what_is_no_test_is_undone_where_only_tests_may_change() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED}; echo new > a.txt; echo x > x.txt; git add -A; git commit -qm own ;;
  nudge) echo 'The test is there.' ;;
  green) echo 'new at last' > a.txt; echo done ;;
  refactor) echo 'Nothing to improve.' ;;
esac"
    );
    let run = tests_first(&project, &script, &[]).expect(0);
    assert_eq!(
        phases(&run),
        ["red-red", "red-nudge", "green-green", "refactor-refactor"]
    );
    assert_eq!(run.task(0)["reason"], "verified");
    for part in ["a.txt", "x.txt", "removed from the branch"] {
        assert!(
            has_warning(&run, part),
            "{part}: {}",
            run.summary["warnings"]
        );
    }
    assert_eq!(project.commits(), 3);
    let files = project.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(
        files.contains("tests/new.sh") && !files.contains("x.txt"),
        "{files}"
    );
    let only = tests_first(
        &self::project(),
        "echo new > a.txt; echo done",
        &["--nudges", "1"],
    );
    assert_eq!(only.code, 1);
    assert_eq!(only.task(0)["reason"], "tdd_violation");
    assert_eq!(only.task(0)["nudges"], 1);
}

#[test]
fn work_that_fails_is_retried_and_an_improvement_that_fails_is_undone() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  green) echo almost > a.txt; echo done ;;
  retry) echo new > a.txt; echo 'NOTE: a.txt is new'; echo 'SUGGESTED_COMMIT_MESSAGE: Make it new' ;;
  refactor) echo worse > a.txt; mkdir d; echo x > d/x.txt; git rm -q --cached a.txt
    echo 'NOTE: a.txt is worse'; echo 'SUGGESTED_COMMIT_MESSAGE: Make it worse' ;;
esac"
    );
    let run = tests_first(&project, &script, &[]).expect(0);
    assert_eq!(
        project.git(&["log", "-1", "--format=%s"]).trim(),
        "Make it new"
    );
    let notes = run.summary["notes"].as_array().unwrap();
    assert_eq!(
        (notes.len(), &notes[0]["text"]),
        (1, &json!("a.txt is new"))
    );
    assert_eq!(
        phases(&run),
        ["red-red", "green-green", "green-retry", "refactor-refactor"]
    );
    let task = run.task(0);
    assert_eq!(
        (&task["reason"], &task["retries"]),
        (&json!("verified"), &json!(1))
    );
    assert_eq!(task["history"][3]["outcome"], "failed_tests");
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "new");
    assert_eq!(project.status(), "");
    assert!(!project.repo().join("d").exists());
    assert!(
        has_warning(&run, "did not pass and was undone"),
        "{}",
        run.summary["warnings"]
    );
}

#[test]
fn tests_that_are_taken_away_again_prove_nothing() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  *) rm -f tests/new.sh; echo \"$SPRAG_TURN\" > a.txt; echo done ;;
esac"
    );
    let run = tests_first(&project, &script, &["--max-retries", "1"]).expect(1);
    assert_eq!(run.task(0)["reason"], "tdd_violation");
    let prompt = project.prompt(3);
    let said = "your work is not accepted: the tests that were written first are gone.";
    assert!(prompt.contains(said), "{prompt}");
    assert_eq!(run.task(0)["history"][1]["outcome"], "failed_tests");
    assert_eq!(project.commits(), 2);
}

#[test]
fn tests_that_are_weakened_once_they_have_failed_prove_nothing() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  *) echo true > tests/new.sh; echo \"$SPRAG_TURN\" > a.txt; echo done ;;
esac"
    );
    let run = tests_first(&project, &script, &["--max-retries", "0"]).expect(1);
    assert_eq!(
        run.task(0)["reason"],
        "verification_failed",
        "{}",
        run.stdout
    );
    assert!(
        run.task(0)["message"]
            .as_str()
            .unwrap()
            .contains("tests/new.sh"),
        "{}",
        run.task(0)["message"]
    );
    assert_eq!(project.commits(), 2);
}

#[test]
fn tests_that_are_mended_and_fail_without_the_work_all_the_same_are_taken() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  green) echo 'grep -qx new a.txt' > tests/new.sh; echo new > a.txt; echo done ;;
  refactor) echo 'Nothing to improve.' ;;
esac"
    );
    let run = tests_first(&project, &script, &[]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(run.task(0)["proofs"][0]["proof"], "baseline");
    assert_eq!(run.task(0)["proofs"][1]["proof"], "new_tests");
    assert_eq!(
        project.git(&["show", "HEAD:tests/new.sh"]),
        "grep -qx new a.txt"
    );
}

#[test]
fn an_improvement_that_weakens_the_tests_is_undone() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  green) echo new > a.txt; echo done ;;
  refactor) echo true > tests/new.sh; echo done ;;
esac"
    );
    let run = tests_first(&project, &script, &[]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(
        project.git(&["show", "HEAD:tests/new.sh"]),
        "grep -q new a.txt"
    );
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "new");
}

/// A test that failed first, as it should, and passes by now is not what failed.
#[test]
fn reports_name_the_phase_of_each_attempt_and_no_failure_that_is_gone() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE in
  red) {RED} ;;
  green) echo almost > a.txt; echo done ;;
  retry) echo new > a.txt; echo done ;;
  refactor) echo 'Nothing to improve.' ;;
  review) echo '- a.txt:1: wrong'; echo 'VERDICT: NEEDS_FIXES' ;;
  fix) echo \"new $SPRAG_TURN\" > a.txt; echo done ;;
esac"
    );
    let run = tests_first(&project, &script, &["--review"]).expect(1);
    let task = run.task(0);
    assert_eq!(task["reason"], "review_findings");
    assert_eq!(task["failing_tests"], json!([]));
    let improved = ["refactor-refactor", "review-review"];
    assert_eq!(phases(&run)[3..5], improved);
    let checks = task["checks"].as_array().unwrap().iter();
    let ran: Vec<String> = checks
        .map(|check| format!("{} {} {}", check["phase"], check["cycle"], check["attempt"]))
        .collect();
    assert_eq!(ran[..3], ["\"red\" 1 1", "\"green\" 1 1", "\"green\" 1 2"]);
    assert_eq!(
        ran[3..],
        [2, 3, 4, 5, 6].map(|round| format!("\"fix\" {round} 1"))
    );
    let dir = project.run_dirs().remove(0);
    let report = std::fs::read_to_string(dir.join("report.md")).unwrap();
    assert!(report.contains("- Attempt 2 of green: "), "{report}");
    has(&report, "- Attempt 1 of fix in round 6: ");
    assert!(
        !report.contains("Failing tests") && !report.contains("**Check"),
        "{report}"
    );
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert_eq!(page.matches("<h3>Attempt 1 of red</h3>").count(), 1);
    assert_eq!(
        page.matches("<h3>Attempt 1 of fix in round 2</h3>").count(),
        1
    );
}

#[test]
fn without_a_check_there_is_nothing_that_could_fail() {
    let project = Project::new(&[("plan.yaml", "title: E\ntasks:\n  - id: t\n    title: T\n")]);
    let run = tests_first(&project, "true", &[]);
    assert_eq!(run.code, 2);
    has(&run.stderr, "no check is configured");
    assert_eq!(project.calls(), 0);
}

/// What is known of turns and phases at the end, for comparison.
#[test]
fn counts_are_those_of_each_phase() {
    let project = project();
    let script = format!(
        "case $SPRAG_PURPOSE-$SPRAG_TURN in
  red-*) echo 'Plan: write a test.' ;;
  nudge-2) {RED} ;;
  green-*) echo 'Plan: write it.' ;;
  nudge-4) echo new > a.txt; echo done ;;
  refactor-*) echo 'Nothing to improve.' ;;
esac"
    );
    let run = tests_first(&project, &script, &["--nudges", "1"]).expect(0);
    assert_eq!(
        phases(&run),
        [
            "red-red",
            "red-nudge",
            "green-green",
            "green-nudge",
            "refactor-refactor"
        ]
    );
    assert_eq!(run.task(0)["nudges"], 2);
    let totals: &Value = &run.summary["totals"];
    assert_eq!(
        (&totals["nudges"], &totals["turns"]),
        (&json!(2), &json!(5))
    );
}
