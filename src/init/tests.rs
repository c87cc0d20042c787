use super::{
    CONFIG, EXAMPLE_PLAN, Form, WORKFLOW, Written, config, files, list, on_github, scalar,
};
use crate::detect::{Found, Listing, propose};
use crate::domain::checks::verdict::{Check, CheckKind};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn text_of(listing: &Listing, wanted: &str) -> String {
    let mut found = files(&propose(listing), Form::OneJob);
    found.retain(|(path, _)| path.as_os_str() == wanted);
    found.remove(0).1
}

#[test]
fn the_configuration_holds_what_was_found() {
    let mut root = Listing::new();
    root.name("Cargo.toml");
    root.name("uv.lock");
    root.text("pyproject.toml", "[tool.pytest]");
    assert_eq!(
        yaml(&text_of(&root, CONFIG)),
        json!({
            "setup": ["uv sync --locked"],
            "verify": [
                {"name": "build", "run": "cargo build", "kind": "build"},
                {"name": "cargo-test", "run": "cargo test", "kind": "test"},
                {"name": "pytest", "run": "uv run --locked python -m pytest", "kind": "test"},
            ],
        })
    );
}

#[test]
fn a_configuration_of_nothing_is_all_comment() {
    let text = text_of(&Listing::new(), CONFIG);
    assert!(
        text.lines()
            .all(|line| line.is_empty() || line.starts_with('#')),
        "{text}"
    );
}

#[test]
fn a_timeout_is_written_where_it_is_not_the_default() {
    let check = Check {
        name: "slow: one".to_owned(),
        run: "a 'b' # c".to_owned(),
        kind: CheckKind::Other,
        timeout_ms: 1_800_500,
        junit: None,
        problem_matcher: None,
    };
    let from = "a\nb".to_owned();
    assert_eq!(
        yaml(&config(&[], &[Found { what: check, from }])),
        json!({"verify": [
            {"name": "slow: one", "run": "a 'b' # c", "kind": "other", "timeout": "1801s"}
        ]})
    );
}

#[test]
fn no_placeholder_is_left() {
    for (path, text) in files(&propose(&Listing::new()), Form::OneJob) {
        let mut rest = text.replace("${{", "");
        rest.retain(|c| !c.is_whitespace());
        assert!(!rest.contains("{{"), "{}: {text}", path.display());
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
    }
}

#[test]
fn the_example_plan_has_two_tasks_in_order() {
    let plan = yaml(&text_of(&Listing::new(), EXAMPLE_PLAN));
    let ids: Vec<_> = plan["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (&task["id"], &task["depends_on"]))
        .collect();
    assert_eq!(
        ids,
        [
            (&json!("commands"), &Value::Null),
            (&json!("layout"), &json!(["commands"])),
        ]
    );
}

/// The files of a new project, written below `root`.
fn write_new(root: &std::path::Path) -> anyhow::Result<Written> {
    super::write_new(root, &propose(&list(root, &BTreeSet::new())?), Form::OneJob)
}

#[test]
fn only_addresses_on_github_name_a_repository() {
    for (address, name) in [
        ("https://github.com/o/r.git", Some("o/r")),
        ("https://github.com/o/r", Some("o/r")),
        ("git@github.com:o/r.x.git", Some("o/r.x")),
        ("ssh://git@github.com/o/r", Some("o/r")),
        ("https://user:secret@github.com/o/r", None),
        ("https://github.com/o", None),
        ("https://github.com/o/r/x", None),
        ("https://gitlab.com/o/r", None),
        ("/srv/r.git", None),
    ] {
        assert_eq!(on_github(address), name, "{address}");
    }
}

#[test]
fn the_workflow_installs_the_toolchain_of_the_checks() {
    let mut root = Listing::new();
    root.name("go.mod");
    root.name("Cargo.toml");
    root.text("package.json", "{}");
    let workflow = yaml(&text_of(&root, WORKFLOW));
    let steps = workflow["jobs"]["sprag"]["steps"].as_array().unwrap();
    let uses = |index: usize| {
        steps[index]["uses"]
            .as_str()
            .unwrap()
            .split('@')
            .next()
            .unwrap()
    };
    assert_eq!(
        [uses(1), uses(2)],
        ["actions/setup-node", "actions/setup-go"]
    );
    assert_eq!(
        steps[2]["with"],
        json!({"go-version-file": "go.mod", "cache": false})
    );
    assert_eq!(steps[3]["name"], json!("Install Rust"));
    assert_eq!(uses(7), "sprag-ci/sprag");
}

#[test]
fn the_job_with_the_agent_can_write_nothing_in_the_form_of_two_jobs() {
    let mut root = Listing::new();
    root.name("go.mod");
    let mut found = files(&propose(&root), Form::TwoJobs);
    let workflow = yaml(&found.remove(2).1);
    let jobs = workflow["jobs"].as_object().unwrap();
    assert_eq!(jobs.keys().collect::<Vec<_>>(), ["run", "publish"]);
    let run = &jobs["run"];
    let granted = run["permissions"].as_object().unwrap();
    assert!(granted.values().all(|it| it == "read"), "{granted:?}");
    let sprag = &run["steps"][5]["with"];
    assert_eq!(
        [&sprag["push"], &sprag["report"]],
        [&json!(false), &json!("none")]
    );
    let steps = jobs["publish"]["steps"].as_array().unwrap();
    let text = jobs["publish"].to_string();
    assert!(
        !text.contains("secrets") && !text.contains("setup-go"),
        "{text}"
    );
    assert_eq!(
        steps.last().unwrap()["with"]["publish"],
        json!("${{ runner.temp }}/sprag-run")
    );
}

fn workflow() -> Value {
    yaml(&text_of(&Listing::new(), WORKFLOW))
}

#[test]
fn the_workflow_listens_to_comments_and_starts_by_hand() {
    let workflow = workflow();
    assert_eq!(
        workflow["on"]["issue_comment"],
        json!({"types": ["created"]})
    );
    let plan = &workflow["on"]["workflow_dispatch"]["inputs"]["plan"];
    assert_eq!(plan["default"], json!(EXAMPLE_PLAN));
    let job = &workflow["jobs"]["sprag"];
    let condition = job["if"].as_str().unwrap();
    assert!(condition.contains("contains(github.event.comment.body, '/sprag')"));
    let group = job["concurrency"]["group"].as_str().unwrap();
    // A request to stop must not wait for the run that it stops.
    assert!(group.contains("!startsWith(github.event.comment.body, '/sprag stop')"));
    assert!(!group.contains('\n'), "{group}");
    assert_eq!(job["concurrency"]["cancel-in-progress"], json!(false));
}

#[test]
fn the_workflow_grants_little_and_pins_what_it_uses() {
    let workflow = workflow();
    let job = &workflow["jobs"]["sprag"];
    assert_eq!(workflow["permissions"], json!({}));
    assert_eq!(
        job["permissions"],
        json!({
            "contents": "write",
            "pull-requests": "write",
            "issues": "write",
            "checks": "write",
            "actions": "write",
        })
    );
    assert_eq!(job["timeout-minutes"], json!(60));
    let steps = job["steps"].as_array().unwrap();
    assert_eq!(steps[0]["with"], json!({"persist-credentials": false}));
    let at = |uses: &str| {
        let mut steps = steps.iter();
        let is_it = |step: &Value| step["uses"].as_str().is_some_and(|it| it.starts_with(uses));
        steps.position(is_it).unwrap()
    };
    let sprag = at("sprag-ci/sprag@");
    assert_eq!(steps[sprag]["with"]["deadline"], json!("50m"));
    // The binary is stored before the agent could change it.
    assert_eq!(steps[sprag]["with"]["binary"], json!("sprag"));
    assert!(at("actions/cache/restore@") < at("actions/cache/save@"));
    assert!(at("actions/cache/save@") < sprag);
    let elsewhere = steps.iter().filter_map(|step| step["uses"].as_str());
    let elsewhere: Vec<_> = elsewhere
        .filter(|uses| !uses.starts_with("sprag-ci/"))
        .map(|uses| uses.split_once('@').unwrap().1)
        .collect();
    assert_eq!(elsewhere.len(), 4);
    for pin in elsewhere {
        assert!(
            pin.len() == 40 && pin.chars().all(|c| c.is_ascii_hexdigit()),
            "{pin}"
        );
    }
    // No foreign text is part of a script.
    let mut scripts = steps.iter().filter_map(|step| step["run"].as_str());
    assert!(scripts.all(|script| !script.contains("${{")));
}

#[test]
fn a_link_to_nowhere_is_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = root.path().join("elsewhere");
    fs::create_dir(root.path().join(".sprag")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, root.path().join(CONFIG)).unwrap();
    assert_eq!(
        write_new(root.path()).unwrap().kept,
        [std::path::Path::new(CONFIG)]
    );
    assert!(!elsewhere.exists());
}

#[test]
fn a_file_in_the_way_of_a_directory_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(".sprag"), "").unwrap();
    assert_eq!(
        write_new(root.path()).unwrap_err().to_string(),
        format!("cannot write {CONFIG}")
    );
}

#[test]
fn manifests_are_read_and_other_files_are_named() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::write(path("Makefile"), "test:\n").unwrap();
    fs::write(path("notes.txt"), "secret").unwrap();
    fs::write(path("setup.cfg"), [0xff]).unwrap();
    fs::create_dir(path("package.json")).unwrap();
    std::os::unix::fs::symlink("notes.txt", path("tox.ini")).unwrap();
    fs::write(path("setup.py"), vec![b' '; super::FILE_LIMIT as usize + 1]).unwrap();

    let mut expected = Listing::new();
    expected.text("Makefile", "test:\n");
    for name in [
        "notes.txt",
        "setup.cfg",
        "package.json",
        "tox.ini",
        "setup.py",
    ] {
        expected.name(name);
    }
    assert_eq!(list(root.path(), &BTreeSet::new()).unwrap(), expected);
}

proptest! {
    #[test]
    fn a_scalar_reads_back_as_the_text(text in "[ -~\u{a0}-\u{2fff}\n\t]{0,24}") {
        prop_assert_eq!(yaml(&format!("- {}\n", scalar(&text))), json!([text]));
    }
}
