//! Tests with real children: shells that do what an agent or a build may do.

#![expect(
    clippy::disallowed_methods,
    reason = "victims and processes of their own are started by hand"
)]

mod left_behind;
mod own_process;

use std::env;
use std::fs;
use std::process::Command;

use tokio::sync::Notify;
use uuid::Uuid;

use super::host::{self, Proc, State};
use super::*;
use crate::domain::settings::variables::PROCESS_ID;
use std::ffi::OsString;
use std::time::Duration;

impl Quiescence {
    /// A moment after as many children.
    pub(crate) fn after(started: u64) -> Self {
        Self { started }
    }
}

/// Names everything that a test starts, so that it can see what it left and nothing else.
const TAG: &str = "SPRAG_TEST_TAG";
/// Longer than any test.
const AGES: Duration = Duration::from_secs(3600);

struct Trial {
    spec: CommandSpec,
    tag: String,
    cancel: Cancel,
}

/// What a trial came to.
struct Seen {
    ended: Ended,
    stdout: String,
    left: Vec<Proc>,
}

impl Trial {
    fn sh(script: &str) -> Self {
        let tag = Uuid::new_v4().to_string();
        let spec = CommandSpec {
            program: "sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            env: vec![("PATH".into(), path()), (TAG.into(), OsString::from(&tag))],
            stdin: Input::Null,
            limits: Limits {
                grace: AGES,
                ..Limits::default()
            },
            sandbox: None,
        };
        Self {
            spec,
            tag,
            cancel: Cancel::new(),
        }
    }

    fn stdin(mut self, stdin: Input) -> Self {
        self.spec.stdin = stdin;
        self
    }

    async fn run(self) -> Seen {
        self.run_and(|_, _| {}).await
    }

    /// Runs it and lets the test react to the output so far.
    async fn run_and(self, mut react: impl FnMut(&str, &Cancel)) -> Seen {
        let mut stdout = Vec::new();
        let mut on_output = |kind, chunk: &[u8]| {
            if kind == StreamKind::Stdout {
                stdout.extend_from_slice(chunk);
                react(&String::from_utf8_lossy(&stdout), &self.cancel);
            }
        };
        let ended = run(&self.spec, &self.cancel, &mut on_output).await;
        let stdout = String::from_utf8_lossy(&stdout).into_owned();
        Seen {
            ended,
            stdout,
            left: tagged(&self.tag),
        }
    }
}

fn path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into())
}

/// The living processes with this tag.
fn tagged(tag: &str) -> Vec<Proc> {
    let entry = format!("{TAG}={tag}");
    host::scan()
        .into_iter()
        .filter(|proc| proc.state != State::Dead)
        .filter(|proc| host::environ_contains(proc.pid, &[entry.as_bytes()]))
        .collect()
}

fn ends_with(marker: &'static str, action: impl Fn(&Cancel)) -> impl FnMut(&str, &Cancel) {
    let mut done = false;
    move |stdout, cancel| {
        if !done && stdout.ends_with(marker) {
            done = true;
            action(cancel);
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_child_that_ends_by_itself_is_told_by_its_status() {
    let cases = [
        ("exit 0", Status::Code(0)),
        ("exit 126", Status::Code(126)),
        ("kill -KILL $$", Status::Signal(9)),
        ("exec >&- 2>&-; exit 7", Status::Code(7)),
    ];
    for (script, raw) in cases {
        let seen = Trial::sh(script).run().await;
        let expected = Ended {
            exit: raw.into(),
            raw: Some(raw),
            elapsed: seen.ended.elapsed,
            leaked: vec![],
        };
        assert_eq!(seen.ended, expected, "{script}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_child_that_cannot_start_is_told_by_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("plain"), "exit 0\n").unwrap();
    fs::write(at("orphan"), "#!/nowhere/interpreter\n").unwrap();
    fs::create_dir(at("folder")).unwrap();
    assert!(
        Command::new("chmod")
            .arg("755")
            .arg(at("orphan"))
            .status()
            .unwrap()
            .success()
    );
    let fail = |program: &str, cwd: &str| {
        let mut trial = Trial::sh("");
        trial.spec.program = program.into();
        trial.spec.cwd = at(cwd);
        trial.spec.env = vec![("PATH".into(), directory.path().into())];
        trial
    };
    let root = directory.path().display();
    let cases = [
        (fail("absent", ""), "not found".to_owned()),
        (fail("./absent", ""), "not found".to_owned()),
        (fail("", ""), "not found".to_owned()),
        (
            fail("./plain", ""),
            format!("not executable: {root}/./plain: permission denied"),
        ),
        (
            fail("plain", ""),
            format!("not executable: {root}/plain: permission denied"),
        ),
        (
            fail("./folder", ""),
            format!("not executable: {root}/./folder: a directory"),
        ),
        (
            fail("orphan", ""),
            format!("not executable: the interpreter or loader of {root}/orphan is missing"),
        ),
        (
            fail("sh", "absent"),
            format!(
                "could not be started: working directory {root}/absent: \
                 No such file or directory (os error 2)"
            ),
        ),
    ];
    for (trial, expected) in cases {
        let seen = trial.run().await;
        assert_eq!(
            (seen.ended.exit.to_string(), seen.ended.raw),
            (expected, None)
        );
    }
}

#[tokio::test(flavor = "current_thread")]
async fn the_environment_is_what_was_given_and_the_marker() {
    let mut trial = Trial::sh("");
    trial.spec.program = "env".into();
    trial.spec.args.clear();
    let seen = trial.run().await;
    let mut names: Vec<&str> = seen
        .stdout
        .lines()
        .filter_map(|l| l.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["PATH", PROCESS_ID, TAG]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_cancelled_child_is_cancelled_whatever_it_exits_with() {
    let script = "trap 'echo bye; exit 0' TERM; echo ready; sleep 1000 & wait";
    let cancel = ends_with("ready\n", |cancel| cancel.trigger(CancelReason::Interrupt));
    let seen = Trial::sh(script).run_and(cancel).await;
    assert_eq!(seen.ended.exit, Exit::Cancelled(CancelReason::Interrupt));
    assert_eq!(seen.ended.raw, Some(Status::Code(0)));
    assert_eq!((seen.stdout.as_str(), seen.left), ("ready\nbye\n", vec![]));
}

#[tokio::test(flavor = "current_thread")]
async fn force_does_not_wait_for_the_grace() {
    let script = "trap 'echo asked' TERM; echo ready; while :; do sleep 1000 & wait; done";
    let mut cancelled = ends_with("ready\n", |cancel| cancel.trigger(CancelReason::Interrupt));
    let mut forced = ends_with("asked\n", |cancel| cancel.force(CancelReason::Interrupt));
    let seen = Trial::sh(script)
        .run_and(|stdout, cancel| {
            cancelled(stdout, cancel);
            forced(stdout, cancel);
        })
        .await;
    assert_eq!(seen.ended.exit, Exit::Cancelled(CancelReason::Interrupt));
    assert_eq!(
        (seen.ended.raw, seen.left),
        (Some(Status::Signal(9)), vec![])
    );
}

#[tokio::test(flavor = "current_thread")]
async fn nothing_is_started_once_cancelled() {
    let trial = Trial::sh("echo started").stdin(Input::Bytes(b"x".to_vec()));
    trial.cancel.trigger(CancelReason::Deadline);
    let seen = trial.run().await;
    let expected = Ended {
        exit: Exit::Cancelled(CancelReason::Deadline),
        raw: None,
        elapsed: seen.ended.elapsed,
        leaked: vec![],
    };
    assert_eq!((seen.ended, seen.stdout.as_str()), (expected, ""));
}

#[tokio::test(flavor = "current_thread")]
async fn an_abandoned_run_leaves_nothing_behind() {
    let trial = Trial::sh("setsid sleep 1000 & (setsid sleep 1000 &) ; echo ready; wait");
    let ready = Notify::new();
    let mut on_output = |_, _: &[u8]| ready.notify_one();
    tokio::select! {
        _ = run(&trial.spec, &trial.cancel, &mut on_output) => panic!("it ended by itself"),
        () = ready.notified() => {}
    }
    assert_eq!(tagged(&trial.tag), vec![]);
}

#[tokio::test(flavor = "current_thread")]
async fn output_is_handed_on_as_it_is() {
    let trial = Trial::sh(r"printf '\377\000\033[1m\r\n'; printf '\302' >&2");
    let mut chunks = Vec::new();
    let mut on_output = |kind, chunk: &[u8]| chunks.push((kind, chunk.to_vec()));
    run(&trial.spec, &trial.cancel, &mut on_output).await;
    chunks.sort_by_key(|(kind, _)| *kind == StreamKind::Stderr);
    let expected = [
        (StreamKind::Stdout, b"\xff\0\x1b[1m\r\n".to_vec()),
        (StreamKind::Stderr, b"\xc2".to_vec()),
    ];
    assert_eq!(chunks, expected);
}

/// Answers each line of a child with a line, and ends the dialogue at `bye`.
async fn converse(script: &str, grace: Duration, interrupt: bool) -> (Ended, String) {
    let dialogue = Dialogue::default();
    let mut trial = Trial::sh(script).stdin(Input::Dialogue(dialogue.clone()));
    trial.spec.limits.grace = grace;
    dialogue.say(b"hello\n");
    dialogue.set_farewell(b"stop\n".to_vec());
    let mut heard = String::new();
    let mut on_output = |_, chunk: &[u8]| {
        let text = String::from_utf8_lossy(chunk);
        heard.push_str(&text);
        if text.contains("more?") {
            dialogue.say(b"more\n");
        }
        if text.contains("wait") && interrupt {
            trial.cancel.trigger(CancelReason::Interrupt);
        }
        if text.contains("bye") {
            dialogue.end();
        }
    };
    let ended = run(&trial.spec, &trial.cancel, &mut on_output).await;
    assert_eq!(tagged(&trial.tag), vec![]);
    (ended, heard)
}

#[tokio::test(flavor = "current_thread")]
async fn a_child_is_answered_until_the_dialogue_is_over() {
    let script = "read a; echo got $a, more?; read b; echo got $b, bye; read c || echo end";
    let (ended, heard) = converse(script, AGES, false).await;
    assert_eq!(heard, "got hello, more?\ngot more, bye\nend\n");
    assert_eq!(ended.exit, Exit::Code(0));
}

#[tokio::test(flavor = "current_thread")]
async fn a_child_that_stays_when_its_dialogue_is_over_is_dismissed() {
    let (ended, _) = converse("echo bye; exec sleep 1000", AGES, false).await;
    assert_eq!(
        (ended.exit, ended.raw),
        (Exit::Dismissed, Some(Status::Signal(15)))
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_cancelled_child_hears_the_farewell_before_the_signal() {
    let script = "trap 'echo killed; exit 1' TERM; read a; echo wait; read b; echo $b, bye; exit 0";
    let (ended, heard) = converse(script, AGES, true).await;
    assert_eq!(heard, "wait\nstop, bye\n");
    assert_eq!(ended.exit, Exit::Cancelled(CancelReason::Interrupt));
    let deaf = "trap 'exit 7' TERM; echo wait; while :; do sleep 0.05; done";
    // A slow machine needs more than a part of a second to end by itself.
    for grace in [1, 10, 100].map(Duration::from_secs) {
        let (ended, _) = converse(deaf, grace, true).await;
        if ended.raw == Some(Status::Code(7)) {
            return;
        }
    }
    panic!("the signal did not come before the end of the grace");
}
