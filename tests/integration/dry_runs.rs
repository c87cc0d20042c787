//! What `sprag check` and `sprag run --dry-run` show and refuse, without doing anything.

use crate::support::has;
use crate::support::project::{Project, files};
use crate::support::tasks::fixable_by;
use serde_json::{Value, json};

const CHECK: &str =
    "grep -qx fixed a.txt || { echo \"FAIL greeting: expected fixed, got $(cat a.txt)\"; exit 1; }";
const AGENT: &str = "test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done.";

fn project() -> Project {
    fixable_by(CHECK)
}

#[test]
fn check_tells_what_would_be_done() {
    let project = project();
    let text = project.sprag(&["check", "plan.yaml"]).expect(0);
    for part in [
        "plan.yaml is valid: Example (1 task)\n",
        "task fix (pending): Fix a.txt",
        "  agent: none (name one: --agent codex",
        "  retries: 3, nudges: 3\n",
        "    test (test, at most 10m): ",
    ] {
        assert!(text.stdout.contains(part), "{part} in:\n{}", text.stdout);
    }
    has(
        &project.sprag(&["check"]).expect(0).stdout,
        "the configuration is valid",
    );
    let run = project.sprag(&["check", "plan.yaml", "--json"]).expect(0);
    let value: Value = serde_json::from_str(&run.stdout).unwrap();
    let task = &value["tasks"][0];
    assert_eq!(
        (&value["title"], &value["warnings"]),
        (&json!("Example"), &json!([]))
    );
    assert_eq!(
        (
            &task["id"],
            &task["status"],
            &task["max_retries"],
            &task["line"]
        ),
        (&json!("fix"), &json!("pending"), &json!(3), &json!(5))
    );
    assert_eq!(
        (&task["checks"][0]["name"], &task["checks"][0]["kind"]),
        (&json!("test"), &json!("test"))
    );
}

#[test]
fn check_refuses_what_run_refuses() {
    let project = project();
    project.write("wrong.yaml", "max_retries: 11\ntasks:\n  - title: A\n");
    for args in [
        &["check", "wrong.yaml"][..],
        &["check", "wrong.yaml", "--json"],
    ] {
        let run = project.sprag(args).expect(2);
        assert_eq!(run.stdout, "");
        assert_eq!(
            run.stderr,
            "error: wrong.yaml:1:14: max_retries must be a whole number from 0 to 10, got 11\n"
        );
    }
    project.write("odd.yaml", "max_retrys: 1\ntasks:\n  - title: A\n");
    let run = project.sprag(&["check", "odd.yaml"]).expect(2);
    has(&run.stderr, "odd.yaml:1:1");
    has(&run.stderr, "did you mean `max_retries`?");
}

#[test]
fn what_the_whole_run_would_refuse_is_refused_by_check_and_a_dry_run() {
    let project = Project::new(&[]);
    let tasks = "tasks: [{ title: A }]\n";
    for (setting, said) in [
        ("output_schema: nope.json\n", "there is no output schema"),
        (
            "output_schema: '{\"type\": 3}'\n",
            "output_schema: it is not a JSON Schema",
        ),
        ("review_only: true\n", "review_only is set in the plan"),
    ] {
        project.write("odd.yaml", &format!("{setting}{tasks}"));
        for args in [
            &["check", "odd.yaml"][..],
            &["run", "--plan", "odd.yaml", "--dry-run"],
        ] {
            let run = project.sprag(args).expect(2);
            assert!(run.stderr.contains(said), "{args:?}: {}", run.stderr);
        }
    }
    project.write(".sprag/config.yaml", "output_schema: nope.json\n");
    let run = project.sprag(&["check"]).expect(2);
    has(&run.stderr, "there is no output schema");
}

/// What `sprag run` would refuse is no valid plan.
#[test]
fn a_plan_whose_state_cannot_be_written_is_not_called_valid() {
    let project = Project::new(&[]);
    project.write(
        "odd.yaml",
        "title: T\ntasks:\n  - ? id\n    : a\n    ? title\n    : A\n",
    );
    let check = project.sprag(&["check", "odd.yaml"]).expect(2);
    let said = "the plan's status cannot be written back: odd.yaml:";
    assert!(check.stderr.contains(said), "{}", check.stderr);
}

#[test]
fn a_dry_run_touches_nothing() {
    let project = project();
    let root = project.repo().parent().unwrap().to_owned();
    let agent = project.agent(AGENT);
    let before = files(&root);
    let run = project.run(&agent, &["--dry-run"]).expect(0);
    assert_eq!(files(&root), before);
    assert_eq!((project.calls(), project.checks()), (0, 0));
    for part in [
        "plan: Example\n",
        "task fix: Fix a.txt",
        "agent: command",
        "test (test, at most 10m): ",
        "a.txt must say fixed",
        "DO NOT commit your changes",
    ] {
        assert!(run.stdout.contains(part), "{part} in:\n{}", run.stdout);
    }
}

#[test]
fn a_dry_run_shows_a_later_prompt_as_it_is_after_the_earlier_tasks() {
    let plan = "title: P\nverify: ['true']\ntasks: [{ id: a, title: A }, { id: b, title: B }]\n";
    let project = Project::new(&[("plan.yaml", plan)]);
    let dry = [
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        "true",
        "--dry-run",
    ];
    let shown = project.sprag(&dry).expect(0).stdout;
    let (_, of_second) = shown.split_once("\ntask b: B\n").unwrap();
    assert!(
        of_second.contains("Tasks that are done:\n    \n    - a: A\n"),
        "{shown}"
    );
    assert!(!of_second.contains("come later"), "{shown}");
}

#[test]
fn a_dry_run_shows_the_prompt_that_is_given() {
    let reviewer = "{reviewer: {agent_command: echo}}";
    for (flags, phases) in [
        (&[][..], None),
        (
            &["--tdd"],
            Some("red (command), green (command), refactor (command)\n"),
        ),
        (
            &["--review", "--roles", reviewer],
            Some(
                "implement (command), review (command), then at most 5 rounds: fix (command), review (command)\n",
            ),
        ),
    ] {
        let project = project();
        let agent = project.agent(AGENT);
        let dry = project
            .run(&agent, &[flags, &["--dry-run"]].concat())
            .expect(0);
        let (settings, shown) = dry.stdout.split_once("  prompt:\n").unwrap();
        let told = settings.split_once("  phases: ").map(|(_, told)| told);
        assert!(told.is_some() == phases.is_some(), "{settings}");
        assert!(
            told.unwrap_or_default()
                .starts_with(phases.unwrap_or_default()),
            "{settings}"
        );
        let shown: Vec<&str> = shown
            .lines()
            .map(|line| line.strip_prefix("    ").unwrap())
            .collect();
        if phases.is_none() {
            project.run(&agent, flags);
            assert_eq!(shown.join("\n"), project.prompt(1).trim_end());
        }
    }
}
