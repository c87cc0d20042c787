//! Standard streams that nobody reads, that are closed or full: nothing waits for them for ever.

use crate::support::proc::{assert_nothing_left, end_of, signal, wait_until};
use crate::support::project::{Project, Run, plan};
use std::fs::{self, File};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::process::{Child, Command, Output, Stdio};

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

/// A prompt of a million bytes, as long as one may be, for an agent that is this script itself, with nothing around it.
fn with_long_prompt(script: &str) -> Run {
    let project = project();
    let prompt = project.outside("prompt.md");
    fs::write(
        &prompt,
        format!("Fix a.txt\n\n{}", "some words\n".repeat(85_000)),
    )
    .unwrap();
    let run = project.sprag(&[
        "run",
        "--prompt-file",
        prompt.to_str().unwrap(),
        "--verify",
        CHECK,
        "--agent-command",
        script,
    ]);
    assert_nothing_left(&project);
    run
}

#[test]
fn a_prompt_of_any_size_is_read_at_once_slowly_in_part_or_not_at_all() {
    let whole = format!("test $(wc -c) -gt 900000 && {FIX}");
    let slowly = format!(
        "for i in 1 2 3 4 5; do dd bs=1000 count=1 2>/dev/null >/dev/null; sleep 0.1; done; test $(wc -c) -gt 900000 && {FIX}"
    );
    let ends = [
        whole,
        slowly,
        FIX.to_owned(),
        format!("head -c 5 >/dev/null; exec <&-; sleep 0.5; {FIX}"),
        // It answers while it is still being asked.
        format!("tr s x; {FIX}"),
    ];
    for script in ends {
        let run = with_long_prompt(&script);
        assert_eq!(run.code, 0, "{script}\n{}\n{}", run.stdout, run.stderr);
    }
}

#[test]
fn an_agent_that_closes_its_output_early_is_waited_for() {
    for closed in [">&-", "<&- >&- 2>&-"] {
        let project = project();
        let agent = project.agent(&format!("exec {closed}; sleep 1; echo fixed > a.txt"));
        project.run(&agent, &[]).expect(0);
        assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed");
    }
}

#[test]
fn a_terminal_changes_nothing() {
    let may = Command::new("script")
        .args(["-qec", "true", "/dev/null"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if !may {
        eprintln!("SKIPPED a_terminal_changes_nothing: there is no script(1) here");
        return;
    }
    let project = project();
    let agent = project.agent(&format!("test -t 0 && exit 9; test -t 1 && exit 9; {FIX}"));
    let command = format!(
        "{} run --plan plan.yaml --agent-command '{agent}'",
        env!("CARGO_BIN_EXE_sprag")
    );
    let mut command = project.program("script", &["-qec", &command, "/dev/null"]);
    let output = command.env("TERM", "xterm").output().unwrap();
    let run = project.finished(&output).expect(0);
    assert_eq!(run.summary["status"], "success");
    assert!(run.stdout.contains('\u{1b}'), "{}", run.stdout);
}

/// Sprag with a standard output of one page that nobody reads, and an agent of which every line is
/// shown.
fn unread(project: &Project, agent: &str, args: &[&str]) -> (Child, PipeReader) {
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let given = [
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        agent,
        "-vv",
    ];
    let child = project
        .command(&[&given, args].concat())
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    (child, reader)
}

fn ended(project: &Project, mut child: Child) -> Run {
    let status = end_of(&mut child);
    let mut stderr = Vec::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_end(&mut stderr)
        .unwrap();
    project.finished(&Output {
        status,
        stdout: Vec::new(),
        stderr,
    })
}

fn warned(run: &Run, what: &str) -> bool {
    let warnings = run.summary["warnings"].as_array().unwrap().iter();
    warnings
        .filter(|text| text.as_str().unwrap().contains(what))
        .count()
        == 1
}

const CHATTER: &str = "yes 'a line of words that nobody will ever read' | head -n 5000";

#[test]
fn a_run_whose_output_nobody_reads_goes_on_to_its_end() {
    let project = project();
    let agent = project.agent(&format!("{CHATTER}; {FIX}"));
    let (child, reader) = unread(&project, &agent, &[]);
    let run = ended(&project, child).expect(0);
    drop(reader);
    assert_eq!(project.commits(), 2);
    assert_eq!(run.summary["status"], "success");
    assert!(
        warned(&run, "the log report is incomplete: the reader has stalled"),
        "{}",
        run.summary
    );
}

#[test]
fn more_than_can_wait_for_a_reader_is_given_up() {
    let project = project();
    let long = format!("yes $(printf 'x%.0s' $(seq 1900)) | head -n 9000; {FIX}");
    let agent = project.agent(&long);
    let (child, reader) = unread(&project, &agent, &["--events", "-"]);
    let run = ended(&project, child).expect(0);
    drop(reader);
    assert!(
        warned(&run, "the JSONL report"),
        "{}",
        run.summary["warnings"]
    );
    assert_eq!(project.commits(), 2);
}

/// The end of a pipe that has no room, and whose reader reads nothing.
fn full_pipe() -> (PipeReader, PipeWriter) {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    // A piece may not fit where a byte does.
    for size in [4096, 1] {
        while writer.write(&vec![b'x'; size]).is_ok() {}
    }
    fcntl_setfl(&writer, flags).unwrap();
    (reader, writer)
}

#[test]
fn nothing_waits_for_a_reader_of_errors() {
    let project = project();
    for (args, code) in [
        (&["run", "--plan", "missing.yaml"][..], 2),
        (&["run", "--plna"], 2),
        (
            &[
                "run",
                "--plan",
                "plan.yaml",
                "-vv",
                "--events",
                "-",
                "--agent-command",
                FIX,
            ],
            0,
        ),
    ] {
        let (_out, stdout) = full_pipe();
        let (_err, stderr) = full_pipe();
        let mut command = project.command(args);
        let mut child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        assert_eq!(end_of(&mut child).code(), Some(code), "{args:?}");
    }
    assert_eq!(project.commits(), 2);
}

/// Such as the pipe of a program that is written with an event loop.
#[test]
fn a_pipe_that_does_not_block_gets_all_of_the_output() {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let project = project();
    let args = ["schema", "config"];
    let whole = project.command(&args).output().unwrap().stdout;
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
    let flags = fcntl_getfl(&writer).unwrap();
    fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
    let mut child = project.command(&args).stdout(writer).spawn().unwrap();
    let (mut read, mut piece) = (Vec::<u8>::new(), [0; 16]);
    while let count @ 1.. = reader.read(&mut piece).unwrap() {
        read.extend(&piece[..count]);
    }
    assert_eq!(end_of(&mut child).code(), Some(0));
    assert!(read == whole);
}

#[test]
fn limits_hold_while_nobody_reads() {
    let project = project();
    let agent = project.agent(&format!(
        "{CHATTER}; while :; do {CHATTER}; sleep 0.05; done"
    ));
    let limit = ["--turn-timeout", "2s", "--max-retries", "0"];
    let (child, reader) = unread(&project, &agent, &limit);
    let run = ended(&project, child).expect(1);
    drop(reader);
    assert_eq!(run.task(0)["reason"], "turn_timeout");
    assert_nothing_left(&project);
}

#[test]
fn signals_work_while_nobody_reads() {
    let project = project();
    let agent = project.agent(&format!(
        "{CHATTER}; touch \"$OUT/began\"; {CHATTER}; sleep 1000"
    ));
    let (child, reader) = unread(&project, &agent, &[]);
    wait_until("the agent has written", || {
        project.outside("began").exists()
    });
    signal(child.id(), "INT");
    let run = ended(&project, child).expect(130);
    drop(reader);
    assert_eq!(run.summary["status"], "cancelled");
    assert_nothing_left(&project);
}

#[test]
fn a_full_disk_behind_standard_output_costs_the_log_and_not_the_work() {
    for args in [&["-vv"][..], &["--events", "-"], &["-q"]] {
        let mut project = project();
        project.env("GITHUB_OUTPUT", project.outside("output"));
        let agent = project.agent(FIX);
        let all = [
            &["run", "--plan", "plan.yaml", "--agent-command", &agent],
            args,
        ]
        .concat();
        let output = project
            .command(&all)
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let run = project.finished(&output).expect(0);
        assert_eq!(project.commits(), 2);
        let shown = format!("{args:?} {}", run.summary["warnings"]);
        assert!(warned(&run, "No space left on device"), "{shown}");
        let said = run
            .stderr
            .lines()
            .filter(|it| it.starts_with("warning: the "));
        assert_eq!(said.count(), 1, "{args:?} {}", run.stderr);
        let outputs = fs::read_to_string(project.outside("output")).unwrap();
        assert!(outputs.contains("\ndegraded\n"), "{shown}\n{outputs}");
    }
}

#[test]
fn events_for_a_reader_that_has_gone_cost_the_events_and_not_the_work() {
    let project = project();
    let fifo = project.outside("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let agent = project.agent(&format!("{CHATTER}; {FIX}"));
    let path = fifo.to_str().unwrap();
    let mut child = project
        .command(&[
            "run",
            "--plan",
            "plan.yaml",
            "--agent-command",
            &agent,
            "--events",
            path,
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    File::open(&fifo).unwrap().read_exact(&mut first).unwrap();
    assert_eq!(end_of(&mut child).code(), Some(0));
    let run = ended(&project, child).expect(0);
    assert_eq!(project.commits(), 2);
    assert!(
        warned(&run, "the JSONL report"),
        "{}",
        run.summary["warnings"]
    );
}
