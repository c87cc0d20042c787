//! A run of the reviewer alone: what a branch has and its base has not is reviewed, and nothing is written.

use crate::support::has;
use crate::support::proc::{signal, wait_until};
use crate::support::project::{Project, Run};
use serde_json::{Value, json};

/// Notes who was called for what.
const NOTE: &str = "echo $SPRAG_ROLE:$SPRAG_PURPOSE >> $OUT/order\n";

/// A repository on a branch with two commits that `main` has not, and one on `main` that the branch has not.
fn on_a_branch() -> Project {
    let project = Project::new(&[("a.txt", "old\n")]);
    project.git(&["branch", "-M", "main"]);
    project.git(&["switch", "-q", "-c", "feature"]);
    project.write("a.txt", "old\nnew\n");
    project.commit_all("Add a line");
    project.write("b.txt", "b\n");
    project.commit_all("Add b.txt");
    project.git(&["switch", "-q", "main"]);
    project.write("of-main.txt", "main\n");
    project.commit_all("Go on");
    project.git(&["switch", "-q", "feature"]);
    project
}

fn review(project: &Project, script: &str, args: &[&str]) -> Run {
    let agent = project.agent(&format!("{NOTE}{script}"));
    let first = ["run", "--review-only", "--agent-command", &agent];
    project.sprag(&[&first[..], args].concat())
}

fn end(run: &Run) -> [&Value; 4] {
    let task = run.task(0);
    [
        &run.summary["status"],
        &run.summary["reason"],
        &task["status"],
        &task["reason"],
    ]
}

#[test]
fn an_acceptable_change_is_a_success_and_nothing_is_written() {
    let project = on_a_branch();
    let head = project.head();
    let run = review(
        &project,
        "echo 'VERDICT: ACCEPTABLE'",
        &["--verify", "touch checked"],
    )
    .expect(0);
    let words = ["success", "acceptable", "done", "acceptable"].map(|word| json!(word));
    assert_eq!(end(&run), words.each_ref());
    assert_eq!(project.notes("order"), ["reviewer:review"]);
    assert_eq!((project.head(), project.status()), (head, String::new()));
    assert!(!project.repo().join("checked").exists(), "no check is run");
    let turn = &run.task(0)["turns"][0];
    assert_eq!(
        [&turn["role"], &turn["phase"], &turn["cycle"]],
        [&json!("reviewer"), &json!("review"), &json!(1)]
    );
    assert_eq!(run.task(0)["reviews"][0]["verdict"], "acceptable");
    assert_eq!(run.summary["commits"], json!([]));
    let prompt = project.prompt(1);
    for part in [
        "Add a line",
        "Add b.txt",
        "+new",
        "+++ b/b.txt",
        "what it changes of main",
        "Change no file",
        "suggestion",
    ] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    for part in [
        "of-main.txt",
        "Go on",
        "SUGGESTED_COMMIT_MESSAGE",
        "round",
        "at most",
    ] {
        assert!(!prompt.contains(part), "{part}: {prompt}");
    }
}

#[test]
fn findings_end_with_exit_1_and_what_the_reviewer_changes_is_undone() {
    let project = on_a_branch();
    let head = project.head();
    let script = "echo mean > a.txt; git commit -qam mine; echo left > left.txt
echo '- a.txt:2: should be newer'; echo '  ```suggestion'; echo '  newer'; echo '  ```'
echo '- b.txt:1-3: too long'; echo 'VERDICT: NEEDS_FIXES'";
    let run = review(&project, script, &[]).expect(1);
    let words = ["failed", "review_findings", "failed", "review_findings"].map(|word| json!(word));
    assert_eq!(end(&run), words.each_ref());
    let told = "Sprag: 2 findings, changes requested in ";
    assert!(run.stdout.contains(told), "{}", run.stdout);
    assert_eq!(project.notes("order"), ["reviewer:review"]);
    assert_eq!((project.head(), project.status()), (head, String::new()));
    assert_eq!(project.read("a.txt"), "old\nnew\n");
    let warnings = run.summary["warnings"].to_string();
    has(&warnings, "the reviewer of task review");
    assert_eq!(
        run.task(0)["findings"],
        json!([
            {"path": "a.txt", "line": 2, "text": "should be newer", "suggestion": "newer",
             "round": 1, "resolved": false},
            {"path": "b.txt", "line": 1, "end_line": 3, "text": "too long", "round": 1,
             "resolved": false},
        ])
    );
    assert!(run.task(0)["patch"].is_null(), "nothing is left to be kept");
    has(&run.stdout, "2 review findings unresolved after 1 review");
    assert!(!run.stdout.contains('✗'), "{}", run.stdout);
    // A run that is resumed reviews the same change again, and none once a fix is committed.
    assert!(
        run.stdout.contains("start the same command again") && !run.stdout.contains("--resume"),
        "{}",
        run.stdout
    );
}

#[test]
fn without_a_verdict_a_change_needs_fixes() {
    let project = on_a_branch();
    let run = review(&project, "echo 'It looks good to me.'", &[]).expect(1);
    assert_eq!(run.task(0)["reason"], "review_findings");
    assert_eq!(project.calls(), 1);
    has(&run.stdout, "Sprag: the reviewer gave no verdict in ");
    assert!(!run.stdout.contains("fixes of the findings"));
}

#[test]
fn the_base_is_a_branch_or_a_commit_and_the_prompt_says_what_to_look_for() {
    let project = on_a_branch();
    let accept = "echo 'VERDICT: ACCEPTABLE'";
    for base in ["HEAD~1", project.git(&["rev-parse", "HEAD~1"]).trim()] {
        review(
            &project,
            accept,
            &["--base", base, "--prompt", "Look for leaks."],
        )
        .expect(0);
        let prompt = project.prompt(project.calls());
        assert!(prompt.contains("Look for leaks."), "{prompt}");
        assert!(
            prompt.contains("Add b.txt") && !prompt.contains("Add a line"),
            "{prompt}"
        );
    }
    let unknown = review(&project, accept, &["--base", "nowhere"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("nowhere"), "{}", unknown.stderr);
    project.git(&["switch", "-q", "main"]);
    let calls = project.calls();
    let nothing = review(&project, accept, &[]);
    assert_eq!(
        (nothing.code, project.calls()),
        (0, calls),
        "{}",
        nothing.stderr
    );
}

#[test]
fn a_review_takes_no_plan_and_no_plan_asks_for_one() {
    let project = on_a_branch();
    project.write(
        "plan.yaml",
        "title: P\nreview_only: true\ntasks: [{ title: T }]\n",
    );
    project.commit_all("plan");
    let both = review(&project, "true", &["--plan", "plan.yaml"]);
    assert_eq!(both.code, 2);
    assert!(both.stderr.contains("review_only"), "{}", both.stderr);
    let planned = project.by("true", &[]);
    assert_eq!(planned.code, 2);
    has(&planned.stderr, "review_only is set in the plan");
    assert_eq!(project.calls(), 0);
}

#[test]
fn the_agent_of_the_role_reviews_and_a_crash_is_asked_again() {
    let project = on_a_branch();
    let reviewer = project.outside("reviewer.sh");
    let script =
        "echo x >> $0.calls; [ $(wc -l < $0.calls) = 1 ] && kill -9 $$; echo 'VERDICT: ACCEPTABLE'";
    std::fs::write(&reviewer, script).unwrap();
    let roles = format!(
        "{{reviewer: {{agent_command: 'sh {}'}}}}",
        reviewer.display()
    );
    let run = review(&project, "true", &["--roles", &roles]).expect(0);
    assert_eq!(project.calls(), 0);
    assert_eq!(project.notes("reviewer.sh.calls").len(), 2);
    assert_eq!(run.task(0)["turns"].as_array().unwrap().len(), 2);
}

#[test]
fn a_review_that_was_stopped_goes_on_with_the_same_change() {
    let project = on_a_branch();
    let script = "[ $N = 1 ] && { touch \"$OUT/began\"; sleep 1000; }; echo 'VERDICT: ACCEPTABLE'";
    let agent = project.agent(script);
    let args = [
        "run",
        "--review-only",
        "--agent-command",
        &agent,
        "--base",
        "HEAD~1",
    ];
    let sprag = project.start(&args);
    wait_until("the agent waits", || project.outside("began").exists());
    signal(sprag.id(), "TERM");
    project
        .finished(&sprag.wait_with_output().unwrap())
        .expect(143);
    let run = project.sprag(&["run", "--resume"]).expect(0);
    assert_eq!(run.summary["reason"], "acceptable");
    let prompt = project.prompt(project.calls());
    assert!(
        prompt.contains("Add b.txt") && !prompt.contains("Add a line"),
        "{prompt}"
    );
}

#[test]
fn a_dry_run_shows_what_a_reviewer_is_told() {
    let project = on_a_branch();
    let run = review(&project, "true", &["--dry-run"]).expect(0);
    assert!(run.stdout.contains("Your part: review"), "{}", run.stdout);
    has(&run.stdout, "this is only reviewed");
    assert_eq!(project.calls(), 0);
}
