//! Faults of the machine and of git that a run survives, or stops at with its state whole.

use crate::support::project::{Project, plan};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

#[test]
fn odd_bytes_in_all_output_are_survived_and_kept_raw() {
    let check = format!("printf '\\377\\000\\033[31mred\\r\\n'; {CHECK}");
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(&check))]);
    let agent = project.agent(&format!(
        "printf '\\377\\376\\000\\033]0;x\\007\\rx\\n'; {FIX}"
    ));
    let run = project.run(&agent, &["-vv"]).expect(0);
    let log = run.task(0)["checks"][0]["log"].as_str().unwrap();
    let dir = run.dir.as_ref().unwrap();
    let raw = fs::read(dir.join("turns/01-command.jsonl")).unwrap();
    assert!(raw.starts_with(b"\xff\xfe\x00\x1b]0;x\x07\rx\n"), "{raw:?}");
    assert_eq!(fs::read_to_string(dir.join(log)).unwrap(), "\u{fffd}red\n");
    assert!(!run.stdout.contains('\u{1b}'), "{}", run.stdout);
    assert!(!run.stdout.contains('\0'), "{}", run.stdout);
}

#[test]
fn a_closed_standard_output_costs_the_log_and_not_the_work() {
    let project = project();
    let agent = project.agent(FIX);
    let mut child = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    let run = project.finished(&output).expect(0);
    assert!(first.starts_with("Sprag: "), "{first}");
    assert_eq!(project.commits(), 2);
    assert_eq!(run.summary["status"], "success");
}

#[test]
fn conflict_markers_are_never_committed() {
    let project = project();
    let agent = project.agent(
        "printf '<<<<<<< HEAD\\nfixed\\n=======\\nbroken\\n>>>>>>> other\\n' > a.txt; echo Done.",
    );
    let base = project.head();
    let run = project.run(&agent, &[]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_eq!(run.task(0)["reason"], "commit_rejected");
    assert_eq!(project.head(), base);
}

#[test]
fn odd_file_names_are_told_and_in_the_patch_of_a_failed_task() {
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan("false"))]);
    let names =
        r#"-rf '::error::x' "a 'b\" c;\$(d)" "$(printf 'with\nnewline')" "$(printf '\377\376')""#;
    let agent = format!("for name in {names}; do echo x > \"./$name\"; done; {FIX}");
    let run = project.run(&project.agent(&agent), &["--max-retries", "0"]);
    let run = run.expect(1);
    let changed = run.task(0)["changed_files"].as_array().unwrap();
    assert_eq!(changed.len(), 6, "{changed:?}");
    let patch = run.dir.as_ref().unwrap().join("patches/fix.patch");
    project.git(&["stash", "-qu"]);
    project.git(&["apply", patch.to_str().unwrap()]);
    assert_eq!(project.status().lines().count(), 6);
}

#[test]
fn a_work_tree_of_any_name_works() {
    let names: [&[u8]; 2] = [b"it's a; \"tree\" $(touch pwned)\nnew", b"\xff\xfe"];
    for name in names {
        let project = project();
        let place = project.outside("place").join(OsStr::from_bytes(name));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::rename(project.repo(), &place).unwrap();
        let agent = project.agent(FIX);
        let output = project
            .command(&["run", "--plan", "plan.yaml", "--agent-command", &agent])
            .current_dir(&place)
            .output()
            .unwrap();
        let run = project.finished(&output);
        assert_eq!(run.code, 0, "{name:?}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "fixed\n");
        assert_eq!(run.summary["status"], "success");
        for dir in [place.parent().unwrap(), &place, &project.outside("")] {
            assert!(!dir.join("pwned").exists(), "{}", dir.display());
        }
    }
}

#[test]
fn a_run_without_a_home_keeps_its_state_in_the_temporary_directory() {
    let project = project();
    let agent = project.agent(FIX);
    let output = project
        .command(&["run", "--plan", "plan.yaml", "--agent-command", &agent])
        .env_remove("HOME")
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(project.commits(), 2);
}

#[test]
fn each_setup_command_has_lines_events_and_a_log() {
    let text = format!(
        "setup: [ 'echo installing', 'echo half; exit 7' ]\n{}",
        plan(CHECK)
    );
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &text)]);
    let run = project.run(&project.agent(FIX), &[]).expect(4);
    assert!(run.stderr.contains("half"), "{}", run.stderr);
    assert_eq!(run.summary["status"], "environment");
    assert_eq!(run.summary["exit_code"], 4);
    assert_eq!(run.event_names().last(), Some(&"run.ended"));
    assert_eq!(project.calls(), 0);
    // The remedy is the next step, and not a part of the warning.
    let warning = run.stdout.lines().find(|line| line.contains("warning: "));
    assert!(!warning.unwrap().contains("no agent"), "{}", run.stdout);
    let names = ["run.started", "setup.started", "setup.ended"];
    assert_eq!(run.event_names()[..3], names);
    let of = |name: &str| -> Vec<Value> {
        let events = run.events.iter().filter(|event| event["event"] == name);
        events.cloned().collect()
    };
    let commands: Vec<Value> = of("setup.started")
        .iter()
        .map(|it| it["command"].clone())
        .collect();
    assert_eq!(commands, ["echo installing", "echo half; exit 7"]);
    let ended = of("setup.ended");
    let said = |it: &Value| (it["exit"].clone(), it["passed"].clone());
    assert_eq!(said(&ended[0]), (json!("code 0"), json!(true)));
    assert_eq!(said(&ended[1]), (json!("code 7"), json!(false)));
    let log = |it: &Value| {
        let dir = run.dir.as_ref().unwrap();
        fs::read_to_string(dir.join(it["log"].as_str().unwrap())).unwrap()
    };
    assert_eq!(
        (log(&ended[0]), log(&ended[1])),
        ("installing\n".into(), "half\n".into())
    );
    for line in [
        "setup echo installing: running",
        "setup echo installing passed (",
        "setup echo half; exit 7 failed: code 7 (",
        "log: verify/setup-02.log",
        "    no agent was started; fix",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
}

#[test]
fn two_runs_on_one_repository_are_one_run_and_a_refusal() {
    let project = project();
    let first = project.agent("touch \"$OUT/here\"; while test ! -e \"$OUT/go\"; do sleep 0.05; done; echo fixed > a.txt; echo Done.");
    let child = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &first]);
    while !project.outside("here").exists() {
        std::thread::yield_now();
    }
    let second = project.sprag(&["run", "--plan", "plan.yaml", "--agent-command", "true"]);
    assert_eq!(second.code, 4, "{}", second.stderr);
    let holder = format!("(pid {})", child.id());
    assert!(second.stderr.contains(&holder), "{}", second.stderr);
    let third = project.sprag(&["run", "--resume", "--agent-command", "true"]);
    assert_eq!(third.code, 4, "{}", third.stderr);
    fs::write(project.outside("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(project.commits(), 2);
}
