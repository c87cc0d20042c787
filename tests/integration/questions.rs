//! Questions to the agent, and questions of the agent.

use crate::support::has;
use crate::support::tasks::{assert_nothing_recorded, end, fixable, kept, warnings};

#[test]
fn an_answer_changes_nothing_and_runs_no_check() {
    let project = fixable();
    let head = project.head();
    let agent =
        project.agent("echo no > a.txt; echo 'It is read in **one** place.\n\nSee @ada #1.'");
    let check = project.check("false");
    let run = project
        .sprag(&[
            "ask",
            "Where is a.txt read?",
            "--agent-command",
            &agent,
            "--verify",
            &check,
        ])
        .expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(project.checks(), 0);
    assert_eq!(end(run.task(0)), ("done", "answered"));
    assert_eq!(
        run.task(0)["answer"],
        "It is read in **one** place.\n\nSee @ada #1."
    );
    assert_eq!(run.summary["status"], "answered");
    has(&run.stdout, "      It is read in **one** place.");
    let undone =
        "changed files that it may not change in this phase; the changes were undone: a.txt";
    assert!(
        warnings(&run)
            .iter()
            .any(|warning| warning.contains(undone))
    );
    let report = kept(&run, "report.md");
    assert!(report.contains("### Answer of `t1`"), "{report}");
    has(&report, r"> It is read in \*\*one\*\* place.");
    assert!(!report.contains("@ada"), "{report}");
    assert!(!project.prompt(1).contains("SUGGESTED_COMMIT_MESSAGE"));
    assert_nothing_recorded(&project, &head);
}

#[test]
fn an_announcement_is_no_answer_and_a_plan_may_be_one() {
    let project = fixable();
    for (said, reason) in [
        ("Let me check the CI logs first:", "no_progress"),
        (
            "Plan:\n1. The reader moves to its own module, with its tests.\n2. The writer follows it.\n3. I will remove the old one at the end.",
            "answered",
        ),
    ] {
        let agent = project.agent(&format!("printf '{said}'"));
        let args = ["ask", "How would you do it?", "--agent-command", &agent];
        let run = project.sprag(&args);
        assert_eq!(run.task(0)["reason"], reason, "{said}");
    }
}

#[test]
fn a_task_that_is_a_question_may_be_answered() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("echo 'a.txt is read by the build alone.'");
    let args = ["run", "Who reads a.txt?", "--agent-command", &agent];
    let run = project.sprag(&args).expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(end(run.task(0)), ("done", "answered"));
    assert_nothing_recorded(&project, &head);
}

#[test]
fn a_question_of_the_agent_is_shown_whole() {
    let project = fixable();
    let head = project.head();
    let agent =
        project.agent("echo 'There are two drafts here.\n\nWhich licence should the file have?'");
    let run = project.run(&agent, &[]).expect(3);
    // The nudge says that nobody answers, and the agent asks the same again.
    assert_eq!(project.calls(), 2);
    assert_eq!(end(run.task(0)), ("blocked", "needs_answer"));
    for said in [
        "There are two drafts here.",
        "answer it:\n      sprag run --resume",
    ] {
        assert!(run.stdout.contains(said), "{}", run.stdout);
    }
    assert!(kept(&run, "report.md").contains("### Question of the agent"));
    assert_nothing_recorded(&project, &head);
}

#[test]
fn an_agent_that_asks_something_else_or_for_permission_is_nudged_on() {
    for (asks, reason) in [
        (
            "echo \"Which licence should file $SPRAG_TURN have?\"",
            "needs_answer",
        ),
        ("echo 'Shall I go on?'", "planning_only"),
    ] {
        let project = fixable();
        let agent = project.agent(asks);
        let run = project.run(&agent, &[]);
        assert_eq!(project.calls(), 4, "{}", run.stdout);
        assert_eq!(end(run.task(0)).1, reason);
    }
}

#[test]
fn a_run_goes_on_after_a_question_that_is_answered() {
    let project = fixable();
    let plan = "tasks:\n  - { id: ask, title: Where is a.txt read?, kind: ask }\n  - { id: fix, title: Fix a.txt }\n";
    project.write("asks.yaml", plan);
    project.commit_all("ask first");
    let agent = project
        .agent("[ $SPRAG_TASK_ID = ask ] && { echo 'In the build.'; exit; }; echo fixed > a.txt");
    let check = project.check("grep -q fixed a.txt");
    let args = [
        "run",
        "--plan",
        "asks.yaml",
        "--agent-command",
        &agent,
        "--verify",
        &check,
    ];
    let run = project.sprag(&args).expect(0);
    assert_eq!(end(run.task(0)), ("done", "answered"));
    assert_eq!(end(run.task(1)), ("done", "verified"));
    assert_eq!(run.summary["status"], "success");
}

/// An agent whose first turn asks, and that writes what the answer says. It keeps what it was given.
const ASKS: &str = "[ $SPRAG_TASK_ID = b ] && { echo fixed > a.txt; exit; }
grep -q '^MIT' $SPRAG_PROMPT_FILE || { echo 'Which licence should the file have?'; exit; }
echo 'It has the MIT licence.'";

#[test]
fn an_answered_question_lets_the_run_go_on() {
    let project = fixable();
    let agent = project.agent(ASKS);
    let check = project.check("grep -q fixed a.txt");
    project.write("plan.yaml", "tasks: [{ id: a, title: 'Which licence has a.txt?', kind: ask }, { id: b, title: Fix a.txt }]\n");
    project.commit_all("plan");
    let args = [
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        &agent,
        "--verify",
        &check,
    ];
    let run = project.sprag(&args).expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "needs_answer"));
    let command = run.stdout.lines().find(|line| line.contains("--answer"));
    let command = command.unwrap_or_else(|| panic!("{}", run.stdout)).trim();
    assert!(run.stdout.contains("answer it:\n"), "{}", run.stdout);
    assert!(!run.stdout.contains("continue from here"), "{}", run.stdout);
    assert!(kept(&run, "report.md").contains("Answer it: `sprag run --resume"));
    let id = command.split(' ').nth(3).unwrap();
    assert_eq!(command, format!("sprag run --resume {id} --answer '…'"));
    let empty = project.sprag(&["run", "--resume", id, "--answer", " "]);
    assert_eq!(empty.code, 2);
    has(&empty.stderr, "the answer is empty");
    let run = project
        .sprag(&["run", "--resume", id, "--answer", "MIT, please"])
        .expect(0);
    assert_eq!(end(run.task(0)), ("done", "answered"));
    let prompt = project.prompt(2);
    for part in [
        "```\nWhich licence should the file have?\n```",
        "\n\nMIT, please\n",
    ] {
        assert!(prompt.contains(part), "{prompt}");
    }
    assert!(
        !project.prompt(3).contains("MIT, please"),
        "{}",
        project.prompt(3)
    );
    let again = project.sprag(&["run", "--resume", id, "--answer", "GPL"]);
    assert_eq!(again.code, 2);
    has(&again.stderr, "has no open question");
}

#[test]
fn an_answer_needs_a_run() {
    let project = fixable();
    let run = project.sprag(&["run", "Fix it", "--answer", "MIT"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--resume"), "{}", run.stderr);
}
