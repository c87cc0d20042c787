//! Reviewer, tester and fixer: the phases of a task beside the one that does it.

use crate::support::has;
use crate::support::project::{Project, Run, plan};
use serde_json::{Value, json};

/// Notes who was called for what, so that the order can be looked at.
const NOTE: &str = "echo $SPRAG_ROLE:$SPRAG_PURPOSE:$SPRAG_ATTEMPT >> $OUT/order\n";

fn project() -> Project {
    let project = Project::new(&[("a.txt", "old\n")]);
    project.write("plan.yaml", &plan("! grep -q broken a.txt"));
    project.commit_all("plan");
    project
}

fn reviewed(project: &Project, script: &str, args: &[&str]) -> Run {
    let agent = project.agent(&format!("{NOTE}{script}"));
    let args: Vec<&str> = ["--review"].iter().chain(args).copied().collect();
    project.run(&agent, &args)
}

fn texts<'a>(all: &'a Value, key: &str) -> Vec<&'a str> {
    let all = all.as_array().unwrap().iter();
    all.map(|one| one[key].as_str().unwrap_or("none")).collect()
}

fn has_warning(run: &Run, part: &str) -> bool {
    let warnings = run.summary["warnings"].as_array().unwrap();
    warnings
        .iter()
        .any(|one| one.as_str().unwrap().contains(part))
}

#[test]
fn work_that_the_reviewer_accepts_is_committed_with_the_implementers_message() {
    let project = project();
    let script = "case $SPRAG_ROLE in
  implementer) echo new > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Write new' ;;
  reviewer) echo 'SUGGESTED_COMMIT_MESSAGE: Review it'; echo '**VERDICT:** ACCEPTABLE' ;;
esac";
    let run = reviewed(&project, script, &[]).expect(0);
    assert_eq!(
        project.notes("order"),
        ["implementer:implement:1", "reviewer:review:1"]
    );
    let task = run.task(0);
    assert_eq!(
        (&task["status"], &task["reason"]),
        (&json!("done"), &json!("verified"))
    );
    assert_eq!(
        (&task["attempts"], &task["retries"], &task["nudges"]),
        (&json!(1), &json!(0), &json!(0))
    );
    assert_eq!(texts(&task["turns"], "role"), ["implementer", "reviewer"]);
    assert_eq!(texts(&task["turns"], "phase"), ["implement", "review"]);
    assert_eq!(task["turns"][1]["cycle"], 1);
    assert_eq!(task["findings"], json!([]));
    assert_eq!(project.commits(), 3);
    assert_eq!(
        project.git(&["log", "-1", "--format=%s"]).trim(),
        "Write new"
    );
    assert_eq!(project.checks(), 0);
    let prompt = project.prompt(2);
    for part in [
        "+new",
        "a.txt",
        "Every check passes",
        "VERDICT: ACCEPTABLE",
        "Change no file",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    assert!(!prompt.contains("SUGGESTED_COMMIT_MESSAGE"), "{prompt}");
    has(&run.stdout, "review 1 of at most 6: ACCEPTABLE");
    assert!(run.event_names().contains(&"review.ended"));
}

#[test]
fn what_the_reviewer_finds_is_fixed_with_retries_of_its_own_and_reviewed_again() {
    let project = project();
    let script = "case $SPRAG_ROLE-$SPRAG_PURPOSE in
  implementer-implement) echo broken > a.txt; echo done ;;
  implementer-retry) echo good > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: First' ;;
  fixer-fix) echo 'broken again' > a.txt; echo tried ;;
  fixer-retry) echo better > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Better' ;;
  reviewer-review) if grep -q better a.txt; then echo 'VERDICT: ACCEPTABLE'; else
    echo '- a.txt:1: not good enough'; echo '- b.txt:7:2: missing'; echo 'VERDICT: NEEDS_FIXES'; fi ;;
esac";
    let run = reviewed(&project, script, &["--max-retries", "1"]).expect(0);
    let order = [
        "implementer:implement:1",
        "implementer:retry:2",
        "reviewer:review:2",
        "fixer:fix:1",
        "fixer:retry:2",
        "reviewer:review:2",
    ];
    assert_eq!(project.notes("order"), order);
    let task = run.task(0);
    assert_eq!(
        (&task["attempts"], &task["retries"]),
        (&json!(4), &json!(2))
    );
    assert_eq!(run.summary["totals"]["retries"], 2);
    let cycles: Vec<&Value> = task["turns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| &turn["cycle"])
        .collect();
    assert_eq!(
        cycles,
        [1, 1, 1, 2, 2, 2]
            .map(|n| json!(n))
            .iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        task["findings"],
        json!([
            {"path": "a.txt", "line": 1, "text": "not good enough", "round": 1, "resolved": true},
            {"path": "b.txt", "line": 7, "text": "missing", "round": 1, "resolved": true},
        ])
    );
    let fix = project.prompt(4);
    assert!(
        fix.contains("a.txt:1: not good enough") && !fix.contains("CRITICAL"),
        "{fix}"
    );
    let retry = project.prompt(5);
    has(&retry, "This is retry attempt 1 of 1.");
    has(&retry, "not good enough");
    let again = project.prompt(6);
    has(&again, "review 2 of at most 6");
    has(&again, "not good enough");
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Better");
    assert_eq!(project.commits(), 3);
}

#[test]
fn work_that_is_never_accepted_ends_after_six_reviews_and_is_not_committed() {
    let project = project();
    // A verdict that is missing, empty, or both words at once is none.
    let script = "case $SPRAG_ROLE in
  reviewer) echo \"- a.txt:$(wc -l < a.txt): wrong $(wc -l < a.txt)\"; echo '- a.txt:1: the same'
    [ $(wc -l < a.txt) = 2 ] && echo 'VERDICT:'; [ $(wc -l < a.txt) = 3 ] && echo 'VERDICT: ACCEPTABLE or NEEDS_FIXES' ;;
  *) echo line >> a.txt; echo done ;;
esac";
    let run = reviewed(&project, script, &[]).expect(1);
    let order = project.notes("order");
    let count = |role: &str| order.iter().filter(|line| line.starts_with(role)).count();
    assert_eq!(
        (count("implementer"), count("fixer"), count("reviewer")),
        (1, 5, 6)
    );
    let task = run.task(0);
    assert_eq!(
        (&task["status"], &task["reason"]),
        (&json!("failed"), &json!("review_findings"))
    );
    assert_eq!(run.summary["status"], "failed");
    assert_eq!(project.commits(), 2);
    let findings = task["findings"].as_array().unwrap();
    let open: Vec<&Value> = findings
        .iter()
        .filter(|it| it["resolved"] == false)
        .collect();
    assert_eq!(findings.len(), 7);
    assert_eq!(open.len(), 2, "{open:?}");
    assert_eq!(
        (&open[0]["text"], &open[0]["round"]),
        (&json!("the same"), &json!(1))
    );
    assert_eq!(task["reviews"].as_array().unwrap().len(), 6);
    has(&run.stdout, "2 review findings unresolved after 6 reviews");
    assert!(task["patch"].is_string());
}

#[test]
fn what_a_reviewer_changes_is_undone_and_its_verdict_stands() {
    let project = project();
    let script = "case $SPRAG_ROLE in
  implementer) echo new > a.txt; mkdir d; echo mine > d/own.txt; echo done ;;
  reviewer) echo mean > a.txt; rm -r d; echo x > left.txt; git add -A; git commit -qm 'I did it'
    echo more > more.txt; echo 'VERDICT: ACCEPTABLE' ;;
esac";
    let run = reviewed(&project, script, &[]).expect(0);
    assert_eq!(project.commits(), 3);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "new");
    assert_eq!(project.git(&["show", "HEAD:d/own.txt"]), "mine");
    assert_eq!(
        project.git(&["ls-tree", "--name-only", "HEAD"]),
        "a.txt\nd\nplan.yaml"
    );
    assert_eq!(project.status(), "");
    assert!(
        has_warning(&run, "the reviewer of task"),
        "{}",
        run.summary["warnings"]
    );
    for part in ["a.txt", "left.txt", "more.txt", "removed from the branch"] {
        assert!(
            has_warning(&run, part),
            "{part}: {}",
            run.summary["warnings"]
        );
    }
    assert_eq!(run.task(0)["agent_commits"], 0);
}

#[test]
fn a_reviewer_that_crashes_is_asked_once_more() {
    let script = |crashes: u32| {
        format!(
            "case $SPRAG_ROLE in
  implementer) echo new > a.txt; echo done ;;
  reviewer) if [ $N -le {} ]; then kill -9 $$; fi; echo 'VERDICT: ACCEPTABLE' ;;
esac",
            crashes + 1
        )
    };
    let once = project();
    let run = reviewed(&once, &script(1), &[]).expect(0);
    let order = [
        "implementer:implement:1",
        "reviewer:review:1",
        "reviewer:review:1",
    ];
    assert_eq!(once.notes("order"), order);
    assert_eq!(
        (&run.task(0)["attempts"], &run.task(0)["retries"]),
        (&json!(1), &json!(0))
    );
    let twice = project();
    let run = reviewed(&twice, &script(2), &[]).expect(1);
    assert_eq!(twice.notes("order"), order);
    assert_eq!(run.task(0)["reason"], "agent_crashed");
    assert_eq!(twice.commits(), 2);
}

#[test]
fn a_fixer_that_changes_nothing_is_nudged_once_and_its_answer_goes_to_the_reviewer() {
    let project = project();
    let script = "case $SPRAG_ROLE-$SPRAG_PURPOSE in
  implementer-*) echo new > a.txt; echo done ;;
  fixer-*) echo 'The finding is wrong: new is what the task asks for.' ;;
  reviewer-*) [ $SPRAG_TURN = 2 ] && echo '- a.txt:1: should be old' || echo 'VERDICT: ACCEPTABLE' ;;
esac";
    let run = reviewed(&project, script, &[]).expect(0);
    let order = [
        "implementer:implement:1",
        "reviewer:review:1",
        "fixer:fix:1",
        "fixer:nudge:1",
        "reviewer:review:1",
    ];
    assert_eq!(project.notes("order"), order);
    assert_eq!(run.task(0)["nudges"], 1);
    has(&project.prompt(5), "The finding is wrong");
    assert_eq!(run.task(0)["findings"][0]["resolved"], true);
}

#[test]
fn a_tester_works_before_the_checks_and_its_red_tests_go_to_the_implementer() {
    let project = Project::new(&[("a.txt", "old\n")]);
    let check = project.check("[ ! -f tests/t.sh ] || sh tests/t.sh");
    let check = serde_json::to_string(&check).unwrap();
    let text = format!(
        "title: Example\nreview: true\nroles: {{ tester: {{}} }}\nverify: [ {{ name: test, run: {check}, kind: test }} ]\ntasks:\n  - id: t\n    title: T\n"
    );
    project.write("plan.yaml", &text);
    project.commit_all("plan");
    let run = project.by(&format!("{NOTE}case $SPRAG_ROLE-$SPRAG_PURPOSE in implementer-implement) echo half > a.txt; echo done ;; tester-test) mkdir -p tests; echo 'grep -q whole a.txt' > tests/t.sh; echo 'SUGGESTED_COMMIT_MESSAGE: Tests' ;; implementer-retry) echo whole > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Whole' ;; reviewer-*) echo 'VERDICT: ACCEPTABLE' ;; esac"), &[]).expect(0);
    let order = [
        "implementer:implement:1",
        "tester:test:1",
        "implementer:retry:2",
        "reviewer:review:2",
    ];
    assert_eq!(project.notes("order"), order);
    assert_eq!(project.checks(), 3);
    let task = run.task(0);
    assert_eq!(
        (&task["attempts"], &task["retries"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "Whole");
    has(
        &project.git(&["ls-tree", "-r", "--name-only", "HEAD"]),
        "tests/t.sh",
    );
}

#[test]
fn each_role_has_its_own_agent() {
    let project = project();
    let reviewer = project.outside("reviewer.sh");
    std::fs::write(
        &reviewer,
        "echo \"$@\" > $0.args; echo 'VERDICT: ACCEPTABLE'",
    )
    .unwrap();
    let roles = format!(
        "{{reviewer: {{agent_command: 'sh {0} \"$@\"', agent_args: [one, two]}}}}",
        reviewer.display()
    );
    let run = reviewed(
        &project,
        "echo new > a.txt; echo done",
        &["--roles", &roles],
    )
    .expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(project.notes("reviewer.sh.args"), ["one two"]);
    assert_eq!(run.task(0)["reviews"][0]["verdict"], "acceptable");
    let unknown = reviewed(&project, "true", &["--roles", "{reviwer: {}}"]);
    assert_eq!(unknown.code, 2);
    has(&unknown.stderr, "did you mean");
    has(&unknown.stderr, "reviewer");
}

#[test]
fn a_role_whose_program_is_missing_is_found_before_the_first_turn() {
    let project = project();
    for (command, missing) in [
        ("sprag-no-such-program --strict", "sprag-no-such-program"),
        ("/no/such/reviewer", "/no/such/reviewer"),
    ] {
        let roles = format!("{{reviewer: {{agent_command: '{command}'}}}}");
        let refused = reviewed(&project, "true", &["--roles", &roles]).expect(4);
        let said = format!("the reviewer's agent_command needs {missing}, which was not found");
        assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    }
    assert_eq!((project.calls(), project.run_dirs().len()), (0, 0));
    // The implementer may write the program of a role that lies in the work tree.
    let roles = "{reviewer: {agent_command: ./review.sh}}";
    let script = "printf '#!/bin/sh\\necho \"VERDICT: ACCEPTABLE\"\\n' > review.sh
chmod +x review.sh; echo new > a.txt; echo done";
    reviewed(&project, script, &["--roles", roles]).expect(0);
}

#[test]
fn an_ignored_file_outlives_what_becomes_of_the_rules_that_ignore_it() {
    let project = project();
    project.write(".gitignore", "*.env\n");
    project.commit_all("ignore");
    project.write("own.env", "secret\n");
    let script = "case $SPRAG_ROLE in
  implementer) echo new > a.txt; echo done ;;
  reviewer) rm .gitignore; echo x > left.txt; echo 'VERDICT: ACCEPTABLE' ;;
esac";
    let run = reviewed(&project, script, &[]).expect(0);
    assert_eq!(project.read("own.env"), "secret\n");
    assert_eq!(project.status(), "");
    assert!(
        has_warning(&run, "the changes were undone: .gitignore, left.txt"),
        "{}",
        run.summary["warnings"]
    );
}

#[test]
fn any_role_may_report_that_it_cannot_go_on() {
    let project = project();
    let script = "case $SPRAG_ROLE in
  reviewer) echo 'FAILED: the task contradicts itself' ;;
  *) echo new > a.txt; echo done ;;
esac";
    let run = reviewed(&project, script, &[]).expect(3);
    assert_eq!(run.task(0)["reason"], "failed_report");
    assert_eq!(project.commits(), 2);
}

#[test]
fn a_hook_that_refuses_accepted_work_takes_a_round() {
    let project = project();
    project.hook(
        "pre-commit",
        "! grep -q 'no semicolon' a.txt || { echo 'semicolon, please'; exit 1; }",
    );
    let script = "case $SPRAG_ROLE in
  implementer) echo 'no semicolon' > a.txt; echo done ;;
  fixer) echo 'a ;' > a.txt; echo done ;;
  reviewer) echo 'VERDICT: ACCEPTABLE' ;;
esac";
    reviewed(&project, script, &[]).expect(0);
    let order = [
        "implementer:implement:1",
        "reviewer:review:1",
        "fixer:fix:1",
        "reviewer:review:1",
    ];
    assert_eq!(project.notes("order"), order);
    has(&project.prompt(3), "semicolon, please");
    assert_eq!(project.commits(), 3);
}

#[test]
fn without_being_asked_for_nothing_is_told_of_roles() {
    let project = project();
    let agent = project.agent(&format!("{NOTE}echo new > a.txt; echo done"));
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(project.notes("order"), ["implementer:implement:1"]);
    for event in &run.events {
        for key in ["role", "cycle", "phase"] {
            assert!(event.get(key).is_none(), "{event}");
        }
    }
    let history = std::fs::read_to_string(run.dir.as_ref().unwrap().join("history.jsonl")).unwrap();
    for word in [
        "\"name\":\"",
        "\"phase\":\"",
        "\"review\":{",
        "\"purpose\":\"review",
        "\"undone\":[\"",
        "\"message\":\"done",
    ] {
        assert!(!history.contains(word), "{word}: {history}");
    }
    assert!(!has_warning(&run, "roles"), "{}", run.summary["warnings"]);
    project.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let idle = project
        .run(&agent, &["--roles", "{reviewer: {}}"])
        .expect(0);
    assert!(
        has_warning(&idle, "`roles` has no effect"),
        "{}",
        idle.summary["warnings"]
    );
}
