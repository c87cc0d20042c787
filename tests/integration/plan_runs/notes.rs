//! What an agent notes down for later tasks.

use crate::support::tasks::{kept, several};
use serde_json::{Value, json};

const HEADING: &str = "## Notes of earlier tasks, newest first";
const NOTED: &str =
    "touch $SPRAG_TASK_ID; echo Done.; echo \"NOTE: $SPRAG_TASK_ID was here, in turn $SPRAG_TURN\"";

/// The notes of a prompt, without their times.
fn told(prompt: &str) -> Vec<String> {
    let Some((_, rest)) = prompt.split_once(HEADING) else {
        return Vec::new();
    };
    let section = rest.split("\n## ").next().unwrap();
    let notes = section.lines().filter_map(|line| line.strip_prefix("- "));
    let bare = |line: &str| line.split_once("Z, task ").unwrap().1.to_owned();
    notes.map(bare).collect()
}

fn texts(summary: &Value) -> Vec<(&str, &str)> {
    let notes = summary["notes"].as_array().unwrap().iter();
    notes
        .map(|note| {
            (
                note["task"].as_str().unwrap(),
                note["text"].as_str().unwrap(),
            )
        })
        .collect()
}

#[test]
fn later_tasks_are_given_the_notes_of_earlier_ones_and_of_failed_attempts() {
    let project = several(&["one", "two", "three"]);
    let agent = project.agent(&format!(
        "{NOTED}\n[ $SPRAG_TASK_ID = two ] && {{ if [ $SPRAG_ATTEMPT = 1 ]; then touch bad; else rm bad; fi; }}; true"
    ));
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(told(&project.prompt(1)), [""; 0]);
    assert_eq!(told(&project.prompt(2)), ["one: one was here, in turn 1"]);
    assert_eq!(told(&project.prompt(3)), ["one: one was here, in turn 1"]);
    let all = [
        "two: two was here, in turn 2",
        "two: two was here, in turn 1",
        "one: one was here, in turn 1",
    ];
    assert_eq!(told(&project.prompt(4)), all);
    assert_eq!(
        texts(&run.summary),
        [
            ("one", "one was here, in turn 1"),
            ("two", "two was here, in turn 1"),
            ("two", "two was here, in turn 2"),
            ("three", "three was here, in turn 1"),
        ]
    );
    let at = run.summary["notes"][0]["at"].as_str().unwrap();
    assert!(at.parse::<jiff::Timestamp>().is_ok(), "{at}");
    let assessed = run
        .events
        .iter()
        .find(|event| event["event"] == "turn.assessed");
    assert_eq!(
        assessed.unwrap()["notes"],
        json!(["one was here, in turn 1"])
    );
    for report in ["report.md", "report.html"] {
        let text = kept(&run, report);
        assert!(text.contains("Notes for later tasks"), "{report}");
        assert!(text.contains("two was here, in turn 1"), "{report}");
    }
}

#[test]
fn a_later_run_of_the_same_plan_is_given_them_and_another_plan_is_not() {
    let project = several(&["one", "two"]);
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = two ] && { echo 'FAILED: no key'; echo; echo 'NOTE: the key is missing'; exit; }; touch one; echo Done.",
    );
    project.run(&agent, &[]).expect(3);
    let agent = project.agent(NOTED);
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(told(&project.prompt(3)), ["two: the key is missing"]);
    assert_eq!(texts(&run.summary), [("two", "two was here, in turn 1")]);

    project.write("other.yaml", "tasks:\n  - title: Something else\n");
    project.commit_all("another plan");
    let args = ["run", "--plan", "other.yaml", "--agent-command", &agent];
    project.sprag(&args).expect(0);
    assert_eq!(told(&project.prompt(4)), [""; 0]);
}

#[test]
fn secrets_in_notes_are_redacted_everywhere() {
    let mut project = several(&["one", "two"]);
    let secret = "hunter2-hunter2-hunter2";
    project.env("DEPLOY_TOKEN", secret);
    let agent = project.agent(&format!(
        "touch $SPRAG_TASK_ID; echo 'NOTE: the token is {secret}'"
    ));
    let run = project.run(&agent, &[]).expect(0);
    assert!(told(&project.prompt(2))[0].starts_with("one: the token is "));
    assert!(!project.prompt(2).contains(secret));
    for file in [
        "state/notes.json",
        "summary.json",
        "report.md",
        "report.html",
        "events.jsonl",
    ] {
        let text = kept(&run, file);
        assert!(text.contains("the token is"), "{file}");
        assert!(!text.contains(secret), "{file}");
    }
}

#[test]
fn a_resumed_run_still_has_them() {
    let project = several(&["one", "two"]);
    let agent = project.agent(&format!(
        "{NOTED}\n[ $SPRAG_TASK_ID = two ] && touch bad; true"
    ));
    project.run(&agent, &["--max-retries", "0"]).expect(1);
    let agent = project.agent(&format!("rm -f bad; {NOTED}"));
    let args = ["run", "--resume", "--agent-command", &agent];
    let run = project.sprag(&args).expect(0);
    assert_eq!(told(&project.prompt(3)), ["one: one was here, in turn 1"]);
    let left = texts(&run.summary);
    assert_eq!(
        left[..2],
        [
            ("one", "one was here, in turn 1"),
            ("two", "two was here, in turn 1")
        ]
    );
}
