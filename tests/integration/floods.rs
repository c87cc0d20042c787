//! Output of any size and shape in bounded memory and bounded files.

use crate::support::proc::{assert_nothing_left, run_with_peak_memory};
use crate::support::project::{Project, Run, plan};
use crate::support::{due, is_full};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";
/// The most that Sprag may ever take, in KiB.
const MAX_MEMORY_KIB: u64 = 100 << 10;
/// The most that a transcript or a check's log takes, in bytes, and a notice of what was cut.
const LOG: u64 = (64 << 20) + 200;

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

fn size(run: &Run, name: &str) -> u64 {
    fs::metadata(run.dir.as_ref().unwrap().join(name))
        .unwrap()
        .len()
}

/// Runs an agent and fails if it took much memory or left large files.
fn flood(project: &Project, script: &str) -> Run {
    let agent = project.agent(script);
    weigh(project, &["--agent-command", &agent], 0)
}

fn weigh(project: &Project, args: &[&str], code: i32) -> Run {
    let all = [&["run", "--plan", "plan.yaml"], args].concat();
    let (run, peak) = run_with_peak_memory(project, &all);
    let run = run.expect(code);
    eprintln!("{peak} KiB for {args:?}");
    assert!(peak < MAX_MEMORY_KIB, "{peak} KiB");
    for name in [
        "events.jsonl",
        "state/events.jsonl",
        "summary.json",
        "report.md",
    ] {
        assert!(size(&run, name) < 48 << 20, "{name}");
    }
    assert_nothing_left(project);
    run
}

fn transcript(run: &Run) -> Vec<u8> {
    fs::read(run.dir.as_ref().unwrap().join("turns/01-command.jsonl")).unwrap()
}

#[test]
fn one_line_without_end() {
    let project = project();
    let run = flood(
        &project,
        &format!("printf BEGIN; head -c 100000000 /dev/zero | tr '\\0' x; printf END; {FIX}"),
    );
    let kept = transcript(&run);
    assert!(kept.len() as u64 <= LOG);
    assert!(kept.starts_with(b"BEGINx") && kept.ends_with(b"xENDDone.\n"));
}

#[test]
fn lines_without_number() {
    let project = project();
    let run = flood(&project, &format!("yes | head -c 100000000; {FIX}"));
    assert!(size(&run, "events.jsonl") < 8 << 20);
    let raw = run
        .events
        .iter()
        .filter(|event| event["event"] == "agent.raw");
    let lines: Vec<&str> = raw.map(|event| event["line"].as_str().unwrap()).collect();
    assert_eq!(lines.len(), 10_001);
    // Fifty million lines and the last.
    assert_eq!(
        lines[10_000],
        "[sprag: 49990001 more lines or events of this turn are in its transcript only]"
    );
    assert!(transcript(&run).ends_with(b"y\nDone.\n"));
}

#[test]
fn the_end_of_a_flood_is_still_the_final_message() {
    let project = project();
    let run = flood(
        &project,
        &format!("yes | head -c 20000000; {FIX}; echo 'SUGGESTED_COMMIT_MESSAGE: Mend a.txt'"),
    );
    assert_eq!(run.summary["status"], "success");
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "Mend a.txt");
}

#[test]
fn standard_error_alone() {
    let project = project();
    flood(
        &project,
        &format!("head -c 150000000 /dev/zero >&2; yes | head -c 50000000 >&2; {FIX}"),
    );
}

#[test]
fn a_final_message_of_a_gigabyte() {
    let project = project();
    flood(
        &project,
        &format!(
            "truncate -s 1G \"$SPRAG_FINAL_FILE\"; printf '\\nDone.\\nSUGGESTED_COMMIT_MESSAGE: Mend a.txt\\n' >>\"$SPRAG_FINAL_FILE\"; {FIX}"
        ),
    );
    assert_eq!(project.git(&["log", "-1", "--format=%s"]), "Mend a.txt");
}

#[test]
fn events_without_number_or_bound() {
    let project = project();
    let event = r#"{"event":"agent.message","text":"0123456789012345678901234567890123456789"}"#;
    let run = flood(
        &project,
        &format!(
            "yes '{event}' | head -n 60000; printf '{{\"event\":\"agent.message\",\"text\":\"'; head -c 15000000 /dev/zero | tr '\\0' x; printf '\"}}\\n'; {FIX}"
        ),
    );
    let told = run
        .events
        .iter()
        .filter(|event| event["event"] == "agent.message");
    assert_eq!(told.count(), 50_000);
}

/// An agent of the name on `PATH` that prints what the script prints.
fn on_path(project: &mut Project, name: &str, script: &str) {
    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join(name);
    fs::write(&program, format!("#!/bin/sh\ncat >/dev/null\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{path}", bin.display()));
}

/// What a line of JSON can be made of to cost the most: one string, one of escapes, very many
/// values, deep nesting, bytes that are no text, no end at all.
const MATTER: [(&str, &str); 6] = [
    (
        "a string",
        r#""x"; head -c 15000000 /dev/zero | tr '\0' x; printf '"'"#,
    ),
    (
        "escapes",
        r#""; yes '\n' | tr -d '\n' | head -c 15000000; printf '"'"#,
    ),
    (
        "values",
        r#"[; yes '0,' | tr -d '\n' | head -c 15000000; printf '0]'"#,
    ),
    ("depth", r#"; yes '[' | tr -d '\n' | head -c 15000000"#),
    (
        "no text",
        r#""; head -c 15000000 /dev/zero | tr '\0' '\377'; printf '"'"#,
    ),
    (
        "no end",
        r#""; head -c 200000000 /dev/zero | tr '\0' x; printf '"'"#,
    ),
];

fn matter(text: &str) -> String {
    let (first, rest) = text.split_once(';').unwrap();
    format!("printf '%s' '{first}'; {rest}")
}

#[test]
fn lines_of_codex_of_any_make() {
    for &(name, text) in due(&MATTER, 2) {
        let mut project = project();
        on_path(
            &mut project,
            "codex",
            &format!(
                "echo '{{\"type\":\"thread.started\",\"thread_id\":\"t1\"}}'; printf '{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"id\":\"1\",\"text\":'; {}; echo '}}}}'; echo fixed > a.txt; echo '{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"id\":\"2\",\"text\":\"Done.\"}}}}'; echo '{{\"type\":\"turn.completed\",\"usage\":{{}}}}'",
                matter(text)
            ),
        );
        project.env("OPENAI_API_KEY", "none");
        let run = weigh(&project, &["--agent", "codex"], 0);
        let mut messages = run
            .events
            .iter()
            .filter(|event| event["event"] == "agent.message");
        assert_eq!(messages.next_back().unwrap()["text"], "Done.", "{name}");
    }
}

#[test]
fn lines_of_claude_of_any_make() {
    for &(name, text) in due(&MATTER[1..], 2).chain(is_full().then_some(&MATTER[0])) {
        let mut project = project();
        on_path(
            &mut project,
            "claude",
            &format!(
                "printf '{{\"type\":\"assistant\",\"message\":{{\"content\":[{{\"type\":\"text\",\"text\":'; {}; echo '}}]}}}}'; echo fixed > a.txt; echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"Done.\"}}'",
                matter(text)
            ),
        );
        project.env("ANTHROPIC_API_KEY", "none");
        let run = weigh(&project, &["--agent", "claude"], 0);
        assert_eq!(run.task(0)["turns"][0]["assessment"], "changed", "{name}");
    }
}

#[test]
fn the_output_of_a_check() {
    let project = project();
    let check = format!(
        "echo FIRST; head -c 68000000 /dev/zero | tr '\\0' x; yes failure | head -c 500000; echo LAST; {CHECK}"
    );
    let agent = project.agent(FIX);
    let run = weigh(
        &project,
        &["--agent-command", &agent, "--verify", &check],
        0,
    );
    let log = run.task(0)["checks"][0]["log"].as_str().unwrap();
    let log = fs::read(run.dir.as_ref().unwrap().join(log)).unwrap();
    assert!(log.len() as u64 <= LOG, "{}", log.len());
    assert!(log.starts_with(b"FIRST\nx") && log.ends_with(b"failure\nLAST\n"));
}

#[test]
fn the_output_of_a_failing_check() {
    let project = project();
    let check = "echo FIRST; yes 'error: src/a.rs:1:1: no' | head -c 500000; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo LAST; false";
    let agent = project.agent(FIX);
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        check,
        "--max-retries",
        "0",
    ];
    let run = weigh(&project, &args, 1);
    assert_eq!(run.task(0)["reason"], "verification_failed");
}

#[test]
fn the_output_of_setup_and_of_hooks() {
    let project = project();
    let flood = "head -c 70000000 /dev/zero | tr '\\0' x; yes | head -c 10000000 >&2";
    let setup = serde_json::to_string(flood).unwrap();
    project.write("plan.yaml", &format!("setup: [ {setup} ]\n{}", plan(CHECK)));
    project.commit_all("setup");
    project.hook("pre-commit", flood);
    let agent = project.agent(FIX);
    weigh(&project, &["--agent-command", &agent], 0);
    assert_eq!(project.commits(), 3);
}

#[test]
fn a_plan_that_the_agent_makes_large() {
    let project = project();
    flood(&project, &format!("truncate -s 1G plan.yaml; {FIX}"));
    assert!(project.read("plan.yaml").contains("status: done"));
}

#[test]
fn a_file_that_the_agent_makes_larger_than_any_disk_names_it_and_takes_no_time() {
    let mut project = project();
    // What searches for this does not read more than what compares.
    project.env("DEPLOY_TOKEN", "canary-of-a-deployment-0123456789");
    let agent = project.agent(&format!("truncate -s 4T huge; {FIX}"));
    let run = weigh(&project, &["--agent-command", &agent], 1);
    assert_eq!(run.task(0)["reason"], "commit_rejected");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(
        message.contains("huge") && message.contains(".gitignore"),
        "{message}"
    );
    assert_eq!(project.commits(), 1);
}

#[test]
fn a_directory_of_jj_that_the_agent_makes_is_neither_waited_for_nor_used() {
    let named = "printf %s \"$PWD/.git\" > .jj/repo/store/git_target";
    for script in ["mkfifo .jj/repo/store/git_target", named] {
        let mut project = project();
        let jj = project.outside("programs/jj");
        fs::create_dir(jj.parent().unwrap()).unwrap();
        let note = project.outside("jj-ran");
        fs::write(&jj, format!("#!/bin/sh\ntouch {}\n", note.display())).unwrap();
        fs::set_permissions(&jj, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!(
            "{}:{}",
            jj.parent().unwrap().display(),
            std::env::var("PATH").unwrap()
        );
        project.env("PATH", path);
        flood(
            &project,
            &format!("mkdir -p .jj/repo/store; {script}; {FIX}"),
        );
        assert_eq!(project.commits(), 2);
        assert!(!note.exists(), "jj has run for {script}");
    }
}

#[test]
fn a_pipe_or_a_link_that_a_hook_leaves_for_its_message_is_refused() {
    let hooks = [
        ("true", 0),
        ("rm \"$1\"; mkfifo \"$1\"", 1),
        ("rm \"$1\"; ln -s /dev/zero \"$1\"", 1),
        ("rm \"$1\"; ln -s /etc/hostname \"$1\"", 1),
        ("truncate -s 4T \"$1\"", 1),
    ];
    for (script, code) in hooks {
        let project = project();
        project.hook("commit-msg", script);
        let agent = project.agent(FIX);
        weigh(&project, &["--agent-command", &agent], code);
        assert_eq!(project.commits(), if code == 0 { 2 } else { 1 }, "{script}");
    }
}
