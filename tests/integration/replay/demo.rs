//! How the recording of `sprag demo` is made: a model server that follows the script below, and
//! `sprag run --record`. After a change to the script, or to the format of recordings:
//!
//! ```text
//! cargo test --test integration replay::demo::the_recording_is_made_anew -- --ignored
//! ```

use super::{calls, run_with};
use crate::support::model_api::{ModelApi, Step};
use crate::support::project::Project;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/commands/demo/recording.jsonl"
);

fn project() -> Project {
    Project::new(&[
        (
            "slug.sh",
            include_str!("../../../src/commands/demo/slug.sh"),
        ),
        (
            "test.sh",
            include_str!("../../../src/commands/demo/test.sh"),
        ),
        (
            "plan.yaml",
            include_str!("../../../src/commands/demo/plan.yaml"),
        ),
    ])
}

fn shell(command: &str) -> (&'static str, Value) {
    ("run_command", json!({"command": command}))
}

fn edit(search: &str, replace: &str) -> (&'static str, Value) {
    (
        "edit_file",
        json!({"path": "slug.sh", "search": search, "replace": replace}),
    )
}

fn plan(items: &[&str]) -> (&'static str, Value) {
    let items = items
        .iter()
        .map(|text| json!({"text": text, "state": "pending"}));
    ("update_plan", json!({"items": items.collect::<Vec<_>>()}))
}

fn finish(summary: &str) -> (&'static str, Value) {
    ("finish", json!({"summary": summary}))
}

/// It looks, plans, and stops at that: also when it is told that nothing was changed.
fn only_plans() -> Vec<Step> {
    vec![
        calls(
            "I look at the function and at what its tests expect.",
            vec![
                ("read_file", json!({"path": "slug.sh"})),
                ("read_file", json!({"path": "test.sh"})),
            ],
        ),
        calls(
            "",
            vec![finish(
                "I've looked at slug.sh. It replaces spaces only.\n\n\
                 Plan:\n1. Pipe the title through tr to change its case\n2. Run the tests\n\n\
                 I'll implement this now:",
            )],
        ),
        calls(
            "",
            vec![finish(
                "Plan:\n1. Change the tr of slug.sh so that it maps A-Z to a-z\n\
                 2. Run the tests\n\nI'll implement this now:",
            )],
        ),
    ]
}

/// It acts, and tries what it made with letters that have no accents.
fn forgets_the_accents() -> Vec<Step> {
    vec![
        calls(
            "tr can change the case along with the spaces.",
            vec![
                plan(&["slug.sh: make slugs lower case"]),
                edit("tr ' ' '-'", "tr 'A-Z ' 'a-z-'"),
                shell(". ./slug.sh; slug 'Release Notes'"),
            ],
        ),
        calls(
            "",
            vec![finish(
                "slug.sh now changes A-Z to lower case.\n\n\
                 SUGGESTED_COMMIT_MESSAGE: Make slugs lower case",
            )],
        ),
    ]
}

/// It sees the failure for itself, mends its cause and sees the tests pass.
fn mends_it() -> Vec<Step> {
    vec![
        calls(
            "I run the failing test first.",
            vec![
                shell("sh test.sh lowercase"),
                ("read_file", json!({"path": "slug.sh"})),
            ],
        ),
        calls(
            "tr works on bytes, so the accented letters stay as they are. sed can change those first.",
            vec![
                edit(
                    "printf '%s' \"$1\" | tr",
                    "printf '%s' \"$1\" | sed 's/É/é/g; s/È/è/g; s/Ä/ä/g; s/Ö/ö/g; s/Ü/ü/g' | tr",
                ),
                shell("sh test.sh lowercase"),
            ],
        ),
        calls(
            "",
            vec![finish(
                "The accented letters go through sed first; the rest is done by tr as before.\n\n\
                 SUGGESTED_COMMIT_MESSAGE: Make slugs lower case, accented letters too",
            )],
        ),
    ]
}

/// The second task, in one go.
fn squeezes_dashes() -> Vec<Step> {
    vec![
        calls(
            "",
            vec![
                ("read_file", json!({"path": "slug.sh"})),
                ("search", json!({"pattern": "check '", "path": "test.sh"})),
                plan(&["slug.sh: one dash for a run of spaces, none at the ends"]),
            ],
        ),
        calls(
            "tr -s squeezes the runs, and sed takes the dashes off the ends.",
            vec![
                edit(
                    "tr 'A-Z ' 'a-z-'\n",
                    "tr 'A-Z ' 'a-z-' |\n    tr -s '-' | sed 's/^-//; s/-$//'\n",
                ),
                shell("sh -n slug.sh && sh test.sh all"),
            ],
        ),
        calls(
            "",
            vec![finish(
                "Runs of dashes are squeezed and those at the ends removed.\n\n\
                 SUGGESTED_COMMIT_MESSAGE: Squeeze and trim the dashes of slugs",
            )],
        ),
    ]
}

fn script() -> Vec<Step> {
    [
        only_plans(),
        forgets_the_accents(),
        mends_it(),
        squeezes_dashes(),
    ]
    .concat()
}

fn recorded(project: &mut Project) -> String {
    let api = ModelApi::start(script()).unwrap();
    let file = project.outside("recording.jsonl");
    let record = ["--record", file.to_str().unwrap()];
    run_with(project, &api, "scripted", &record).expect(0);
    assert_eq!(api.steps_left(), 0);
    fs::read_to_string(file).unwrap()
}

/// What the model said: the responses without what a run measures.
fn responses(recording: &str) -> Vec<Value> {
    let lines = recording
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let said = lines.filter_map(|mut line: Value| {
        let said = line["observation"]["observed"] == "model_responded";
        line["observation"]["elapsed_ms"] = 0.into();
        said.then_some(line)
    });
    said.collect()
}

#[test]
#[ignore = "writes src/commands/demo/recording.jsonl"]
fn the_recording_is_made_anew() {
    fs::write(RECORDING, recorded(&mut project())).unwrap();
}

#[test]
fn the_recording_is_what_its_script_makes() {
    let made = recorded(&mut project());
    let kept = fs::read_to_string(RECORDING).unwrap();
    assert_eq!(responses(&kept), responses(&made), "make it anew");
}

#[test]
fn the_recording_is_decided_as_it_was() {
    let project = Project::new(&[]);
    let run = project.sprag(&["replay", RECORDING]).expect(0);
    let end = "21 decisions in 4 sessions, all as they were recorded\n";
    assert!(run.stdout.ends_with(end), "{}", run.stdout);
    assert!(
        !run.stdout.contains("is another one"),
        "make it anew: {}",
        run.stdout
    );
}

#[test]
fn the_demo_leaves_sessions_that_are_decided_the_same() {
    let project = Project::new(&[]);
    let place = project.beside("demo");
    let place = place.to_str().unwrap();
    project.sprag(&["demo", "--dir", place]).expect(0);
    let run_dir = Path::new(place).join("run");
    let run = project
        .sprag(&["replay", run_dir.to_str().unwrap()])
        .expect(0);
    assert!(
        run.stdout
            .contains("in 4 sessions, all as they were recorded"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("said: tr works on bytes"),
        "{}",
        run.stdout
    );
}
