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
fn odd_file_names_are_committed_patched_and_told() {
    let project = project();
    let names: [&[u8]; 5] = [
        b"-rf",
        b"with\nnewline",
        b"\xff\xfe",
        b"::error::x",
        b"a 'b\" c;$(d)",
    ];
    let script = project.outside("names.sh");
    let mut text = Vec::new();
    for name in names {
        text.extend_from_slice(b"printf x > ./$(printf '");
        for byte in name {
            text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
        text.extend_from_slice(b"') || printf x > \"./$(printf '");
        for byte in name {
            text.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
        text.extend_from_slice(b"')\"\n");
    }
    fs::write(&script, b"set -f; IFS=; \n").unwrap();
    let mut whole = b"set -f; IFS=\n".to_vec();
    whole.extend_from_slice(&text);
    fs::write(&script, whole).unwrap();
    let sh = format!(". {}", script.display());
    let agent = project.agent(&format!("{sh}; {FIX}"));
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(project.status(), "");
    let listed = project.git(&["ls-tree", "-z", "--name-only", "HEAD"]);
    assert!(
        listed.contains("-rf") && listed.contains("with\nnewline"),
        "{listed:?}"
    );
    // The five and a.txt; the plan's status is Sprag's own.
    assert_eq!(run.summary["changed_files"].as_array().unwrap().len(), 6);
    let failing = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan("false"))]);
    let agent = failing.agent(&format!("{sh}; {FIX}"));
    let run = failing.run(&agent, &["--max-retries", "0"]).expect(1);
    let patch = run.dir.unwrap().join("patches/fix.patch");
    failing.git(&["stash", "-qu"]);
    failing.git(&["apply", patch.to_str().unwrap()]);
    assert_eq!(failing.git(&["status", "--porcelain"]).lines().count(), 6);
}

#[test]
fn a_work_tree_of_any_name_works() {
    let names: [&[u8]; 3] = [b"it's a; \"tree\" $(x)", b"new\nline", b"\xff\xfe"];
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
fn a_setup_that_fails_is_reported() {
    let text = format!("setup: [ 'echo no network; exit 7' ]\n{}", plan(CHECK));
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &text)]);
    let run = project.by(FIX, &[]);
    assert_eq!(run.code, 4, "{}", run.stdout);
    assert!(run.stderr.contains("no network"), "{}", run.stderr);
    assert_eq!(run.summary["status"], "environment");
    assert_eq!(run.summary["exit_code"], 4);
    assert_eq!(run.events.last().unwrap()["event"], "run.ended");
    // The remedy is the next step, and not a part of the warning.
    let warning = run.stdout.lines().find(|line| line.contains("warning: "));
    assert!(!warning.unwrap().contains("no agent"), "{}", run.stdout);
    assert!(
        run.stdout.contains("    no agent was started; fix"),
        "{}",
        run.stdout
    );
    assert_eq!(project.calls(), 0);
}

#[test]
fn each_setup_command_has_lines_events_and_a_log() {
    let text = format!(
        "setup: [ 'echo installing', 'echo half; exit 7' ]\n{}",
        plan(CHECK)
    );
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &text)]);
    let run = project.run(&project.agent(FIX), &[]).expect(4);
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
