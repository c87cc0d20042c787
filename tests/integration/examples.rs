//! The workflows that people copy: they give the action inputs that it has, grant nothing to the whole
//! workflow, pin what they use, and leave time to report. zizmor and a schema check see to the rest.

use crate::action_file::{ROOT, yaml};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Every example by its name.
fn examples() -> Vec<(String, Value)> {
    let directory = Path::new(ROOT).join("examples/workflows");
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    names.sort_unstable();
    assert!(names.len() >= 12, "{names:?}");
    let read = |name: String| {
        let workflow = yaml(&format!("examples/workflows/{name}"));
        (name, workflow)
    };
    names.into_iter().map(read).collect()
}

/// Every job of every example, with its name for messages.
fn jobs() -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (name, workflow) in examples() {
        for (job, body) in workflow["jobs"].as_object().unwrap() {
            all.push((format!("{name}: {job}"), body.clone()));
        }
    }
    all
}

fn uses<'a>(job: &'a Value, action: &str) -> Vec<&'a Value> {
    let steps = job["steps"].as_array().unwrap().iter();
    let is_it = |step: &&Value| {
        step["uses"]
            .as_str()
            .is_some_and(|uses| uses.split('@').next() == Some(action))
    };
    steps.filter(is_it).collect()
}

#[test]
fn the_action_has_every_input_that_an_example_gives() {
    let declared = yaml("action.yml");
    for (name, job) in jobs() {
        let steps = uses(&job, "sprag-ci/sprag");
        assert_eq!(steps.len(), 1, "{name}");
        for input in steps[0]["with"].as_object().unwrap().keys() {
            let known = declared["inputs"].get(input.as_str()).is_some();
            assert!(known, "{name}: {input}");
        }
    }
}

#[test]
fn permissions_are_the_jobs_own_and_the_checkout_keeps_no_credential() {
    for (name, workflow) in examples() {
        assert_eq!(workflow["permissions"], json!({}), "{name}");
    }
    for (name, job) in jobs() {
        assert!(job["permissions"].is_object(), "{name}");
        for checkout in uses(&job, "actions/checkout") {
            let with = json!({"persist-credentials": false});
            assert_eq!(checkout["with"], with, "{name}");
        }
    }
}

#[test]
fn what_others_made_is_pinned_to_a_commit() {
    for (name, job) in jobs() {
        for step in job["steps"].as_array().unwrap() {
            let Some((action, at)) = step["uses"].as_str().and_then(|uses| uses.split_once('@'))
            else {
                continue;
            };
            let is_commit = at.len() == 40 && at.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_commit || action == "sprag-ci/sprag", "{name}: {action}");
        }
    }
}

#[test]
fn the_deadline_leaves_time_to_report() {
    for (name, job) in jobs() {
        let limit = Duration::from_secs(60 * job["timeout-minutes"].as_u64().unwrap());
        let with = &uses(&job, "sprag-ci/sprag")[0]["with"];
        // These run neither an agent nor the project's checks.
        if ["publish", "matrix"]
            .iter()
            .any(|name| !with[*name].is_null())
        {
            continue;
        }
        let deadline = with["deadline"].as_str().unwrap();
        let deadline = sprag::domain::duration::parse(deadline).unwrap();
        assert!(deadline + Duration::from_secs(300) <= limit, "{name}");
    }
}

#[test]
fn no_text_of_an_event_is_part_of_a_script() {
    for (name, job) in jobs() {
        for step in job["steps"].as_array().unwrap() {
            let script = step["run"].as_str().unwrap_or_default();
            assert!(!script.contains("${{"), "{name}: {script}");
        }
    }
}

#[test]
fn every_example_is_explained() {
    let documentation = fs::read_to_string(Path::new(ROOT).join("docs/github-actions.md")).unwrap();
    for (name, _) in examples() {
        let link = format!("| [{name}](../examples/workflows/{name}) |");
        assert!(documentation.contains(&link), "{name}");
    }
}

/// Every text for people: the workflows and the pages.
fn texts() -> Vec<(String, String)> {
    let root = Path::new(ROOT);
    let in_directory = |directory: &str| {
        let entries = fs::read_dir(root.join(directory)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    let all = ["", "docs", "examples/workflows", "action", "docker"].map(in_directory);
    let read = |path: std::path::PathBuf| {
        let is_text = path
            .extension()
            .is_some_and(|ending| ending == "md" || ending == "yml");
        let name = path.strip_prefix(root).unwrap().display().to_string();
        is_text.then(|| (name, fs::read_to_string(path).unwrap()))
    };
    all.into_iter().flatten().filter_map(read).collect()
}

/// With the first release this test, and the lines that it demands, go.
#[test]
fn who_meets_a_version_that_does_not_exist_yet_is_told_what_to_use_until_then() {
    let told = "# `v0` comes with the first release; until then: https://github.com/sprag-ci/sprag/tree/main/examples/workflows";
    let mut count = 0;
    for (name, text) in texts() {
        let is_in_code = |line: &str| line.trim_start().starts_with(['-', 'u']);
        let mut before = "";
        for line in text.lines() {
            if line.contains("uses: sprag-ci/sprag") && line.contains("@v0") {
                count += 1;
                let is_told = if is_in_code(line) {
                    before.trim() == told
                } else {
                    text.contains("examples/workflows/README.md#before-the-first-release")
                };
                assert!(is_told, "{name}: {line}");
            }
            before = line;
        }
    }
    assert!(count >= 20, "{count}");
    let page = fs::read_to_string(Path::new(ROOT).join("examples/workflows/README.md")).unwrap();
    assert!(page.contains("## Before the first release"));
}
