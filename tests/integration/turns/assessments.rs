//! Each row of the table of assessments, as far as the others do not show it.

use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{
    assert_nothing_recorded, assessments, end, ends, events, fixable, fixable_by, kept, logged,
    several, statuses,
};

#[test]
fn a_question_and_an_empty_turn_are_nudged() {
    let project = fixable();
    let agent = project.agent(
        "[ $N = 1 ] && { echo 'Should I go ahead and edit a.txt?'; exit; }; [ $N = 2 ] && exit; echo fixed > a.txt; echo Done.",
    );
    let run = project.run(&agent, &[]).expect(0);
    let assessed = ["awaiting_input", "empty", "changed"];
    assert_eq!(assessments(run.task(0)), assessed);
    assert!(project.prompt(2).contains("Nobody will answer"));
    for line in [
        "nudge 1 of 3: Implementer asked instead of executing",
        "nudge 2 of 3: Implementer ended without a message or a change",
    ] {
        assert!(logged(&run, line), "{}", run.stdout);
    }
}

#[test]
fn reports_blocked() {
    let project = fixable();
    let head = project.head();
    let agent = project
        .agent("echo 'I cannot go on: the file system is read-only and every write is refused.'");
    let run = project.run(&agent, &[]).expect(1);
    // One nudge, then as a claim: one verification for evidence and the end.
    assert_eq!(
        assessments(run.task(0)),
        ["reports_blocked", "reports_blocked"]
    );
    has(
        &project.prompt(2),
        "Either do the work after all, or begin your final message with `FAILED:",
    );
    assert_eq!(end(run.task(0)), ("failed", "no_progress"));
    assert_eq!(project.checks(), 2);
    assert_nothing_recorded(&project, &head);
}

#[test]
fn already_satisfied() {
    let project = several(&["one", "two"]);
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = one ] && { echo 'ALREADY_SATISFIED: it is there'; exit; }; touch two; echo Done.",
    );
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(
        ends(&run),
        [("done", "already_satisfied"), ("done", "verified")]
    );
    assert_eq!(assessments(run.task(0)), ["already_satisfied"]);
    assert_eq!(run.task(0)["commit"], serde_json::Value::Null);
    assert_eq!(run.task(0)["changes_made"], false);
    assert_eq!(project.checks(), 4, "of each task before and after it");
    // Its status rides in the next commit.
    assert_eq!(project.commits(), 3);
    let plan = project.git(&["show", "HEAD:plan.yaml"]);
    assert_eq!(statuses(&plan), ["done", "done"]);
    assert_eq!(plan.matches("completed_at: ").count(), 2, "{plan}");
    assert_eq!(end(&run.summary), ("success", "verified"));
}

#[test]
fn already_satisfied_and_the_checks_say_no() {
    let project = fixable();
    let agent = project.agent(
        "[ $N = 1 ] && { echo 'ALREADY_SATISFIED: it says fixed'; exit; }; echo fixed > a.txt; echo Done.",
    );
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(assessments(run.task(0)), ["already_satisfied", "changed"]);
    assert_eq!(run.task(0)["attempts"], 2);
    assert!(project.prompt(2).contains("This is retry attempt 1 of 3."));
}

#[test]
fn already_satisfied_without_a_check() {
    let project = Project::new(&[(
        "plan.yaml",
        "title: Example\ntasks: [ { id: fix, title: Fix } ]\n",
    )]);
    let agent = project.agent("echo 'ALREADY_SATISFIED: nothing to do'");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "already_satisfied"));
    assert_eq!(run.summary["status"], "unverified");
}

#[test]
fn already_satisfied_after_work_of_its_own_is_a_claim() {
    let project = fixable();
    let agent = project.agent(
        "[ $N = 1 ] && { echo wrong > a.txt; echo Done.; exit; }; echo 'ALREADY_SATISFIED: it says so'",
    );
    let run = project.run(&agent, &[]).expect(1);
    assert_eq!(assessments(run.task(0)), ["changed", "already_satisfied"]);
    assert_eq!(end(run.task(0)), ("failed", "no_progress"));
    assert_eq!(project.checks(), 2);
    assert_eq!(
        run.task(0)["message"],
        "No progress detected - agent made no file changes"
    );
    assert_eq!(events(&run, "verification.skipped").len(), 1);
    assert_eq!(run.summary["totals"]["verifications_skipped"], 1);
}

#[test]
fn claims_done() {
    let project = fixable();
    let agent = project
        .agent("[ $N = 2 ] && echo fixed > a.txt; echo 'I have fixed a.txt; all tests pass.'");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(assessments(run.task(0)), ["claims_done", "changed"]);
    let prompt = project.prompt(2);
    let head = project.git(&["rev-parse", "HEAD~1"]);
    has(&prompt, format!("(HEAD is {}", head.get(..7).unwrap()));
    assert!(prompt.contains("no file has changed"), "{prompt}");
    for way in [
        "`ALREADY_SATISFIED: <why>`",
        "`FAILED: <summary in one line>`",
    ] {
        assert!(prompt.contains(way), "{prompt}");
    }
}

#[test]
fn claims_done_with_passing_checks_is_no_success() {
    let project = fixable_by("true");
    let head = project.head();
    let agent = project.agent("echo 'I have fixed a.txt; all tests pass.'");
    let run = project.run(&agent, &[]).expect(1);
    assert_eq!(project.calls(), 2);
    assert_eq!(assessments(run.task(0)), ["claims_done", "claims_done"]);
    assert_eq!(end(run.task(0)), ("failed", "no_progress"));
    assert_eq!(run.task(0)["checks"][0]["passed"], true);
    assert_eq!(run.task(0)["changes_made"], false);
    assert!(!run.stdout.contains("appears to have planned"));
    assert_nothing_recorded(&project, &head);
}

#[test]
fn revert_to_the_start_is_no_progress() {
    let project = fixable_by("grep -q broken a.txt");
    let head = project.head();
    let agent =
        project.agent("[ $N = 1 ] && echo wrong > a.txt || echo broken > a.txt; echo Done.");
    let run = project.run(&agent, &[]).expect(1);
    assert_eq!(assessments(run.task(0)), ["changed", "changed"]);
    assert_eq!(end(run.task(0)), ("failed", "no_progress"));
    assert_nothing_recorded(&project, &head);
}

#[test]
fn agent_crashed_to_the_end() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("echo half > b.txt; kill -9 $$");
    let run = project.run(&agent, &["--max-retries", "1"]).expect(1);
    assert_eq!(project.calls(), 2);
    assert_eq!(end(run.task(0)), ("failed", "agent_crashed"));
    assert_eq!((project.checks(), project.status()), (1, "?? b.txt".into()));
    assert_nothing_recorded(&project, &head);
    assert!(kept(&run, "patches/fix.patch").contains("+half"));
}

#[test]
fn policy_violation() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("mkdir -p .github/workflows; echo x > .github/workflows/a.yml; echo fixed > a.txt; echo Done.");
    let run = project.run(&agent, &["--on-protected", "block"]).expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "policy_violation"));
    has(
        run.task(0)["message"].as_str().unwrap(),
        ".github/workflows/a.yml",
    );
    assert_eq!(project.checks(), 1);
    assert_nothing_recorded(&project, &head);
}

#[test]
fn a_change_of_a_protected_path_is_held_back_and_the_rest_is_verified_without_it() {
    let project = fixable();
    let agent = project.agent(
        "mkdir -p .github/workflows; echo x > .github/workflows/a.yml\n\
         ln -s . .claude; echo fixed > a.txt; echo Done.",
    );
    let check = "grep -q fixed a.txt && test ! -e .github && test ! -L .claude";
    let run = project.run(&agent, &["--verify", check]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed");
    assert_eq!(project.status(), "");
    let files = project.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(
        !files.contains(".github") && !files.contains(".claude"),
        "{files}"
    );
    let headline =
        "1 of 1 task done without `.claude`, `.github/workflows/a.yml`, which wait for you";
    assert!(run.stdout.contains(headline), "{}", run.stdout);
    let told = run.summary["warnings"].to_string();
    has(&told, ".github/workflows/a.yml");
    has(&told, ".claude");
    let name = told
        .split("kept as ")
        .nth(1)
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    let dir = std::path::PathBuf::from(run.summary["run_dir"].as_str().unwrap());
    let patch = dir.join(name);
    project.git(&["apply", patch.to_str().unwrap()]);
    let put = std::fs::read_to_string(project.repo().join(".github/workflows/a.yml"));
    assert_eq!(put.unwrap(), "x\n");
}

#[test]
fn a_task_that_changes_nothing_but_protected_paths_needs_permission_or_is_blocked() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("mkdir .github; echo x > .github/a.yml; echo Done.");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(end(run.task(0)), ("blocked", "needs_permission"));
    assert_eq!(
        (end(&run.summary), project.calls()),
        (("unverified", "needs_permission"), 1)
    );
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("`protected_paths`"), "{message}");
    assert!(run.stdout.contains("1 waiting for you"), "{}", run.stdout);
    let patch = run.task(0)["held"][0]["patch"].as_str().unwrap();
    assert!(message.contains(patch), "{message}");
    assert_eq!((project.head(), project.status()), (head, "".into()));
    let patch = run.dir.as_ref().unwrap().join(patch);
    project.git(&["apply", "--check", patch.to_str().unwrap()]);
}
