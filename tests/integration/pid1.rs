//! As the first process of a container: it has no parent and everybody's orphans, and the kernel
//! drops signals that it does not handle.

use crate::support::proc::{children, end_of, signal, wait_until};
use crate::support::project::{Project, plan};
use std::process::{Child, Command, Stdio};

const CHECK: &str = "grep -q fixed a.txt";
const FIX: &str = "echo fixed > a.txt; echo Done.";

/// What gives a process its own ids and its own /proc; `None` where that is not permitted.
fn container() -> Option<Vec<&'static str>> {
    let ways = [
        vec!["--pid", "--fork", "--mount-proc"],
        vec![
            "--user",
            "--map-root-user",
            "--pid",
            "--fork",
            "--mount-proc",
        ],
    ];
    let works = |way: &Vec<&str>| {
        let tried = Command::new("unshare").args(way).arg("true").output();
        tried.is_ok_and(|output| output.status.success())
    };
    let way = ways.into_iter().find(works);
    if way.is_none() {
        eprintln!("SKIPPED a test of the first process: no new process namespaces here");
    }
    way
}

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

fn start(project: &Project, way: &[&str], agent: &str) -> Child {
    let run = [
        "run",
        "--plan",
        "plan.yaml",
        "--max-retries",
        "0",
        "--agent-command",
        agent,
    ];
    let args = [way, &[env!("CARGO_BIN_EXE_sprag")], &run].concat();
    let mut command = project.program("unshare", &args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Fails the agent unless the zombies are gone in a while, and it sees Sprag as the first process.
const REAPED: &str = "test \"$(tr '\\0' ' ' </proc/1/cmdline | cut -d' ' -f2)\" = run || exit 9; \
    n=0; while grep -qs '^State:.Z' /proc/[0-9]*/status; do n=$((n+1)); test $n -lt 600 || exit 9; sleep 0.1; done";

#[test]
fn orphans_are_reaped_while_it_runs_and_ended_with_it() {
    let Some(way) = container() else { return };
    let project = project();
    let agent = project.agent(&format!(
        "for i in $(seq 50); do (setsid true &); done | cat; {REAPED}; sleep 300 & (env -i setsid sleep 300 &) ; {FIX}"
    ));
    let mut child = start(&project, &way, &agent);
    assert_eq!(end_of(&mut child).code(), Some(0));
    let run = project.finished(&child.wait_with_output().unwrap());
    assert_eq!(run.summary["status"], "success");
    let warning = run.summary["warnings"][0].as_str().unwrap();
    assert!(
        warning.starts_with("the agent left 2 processes running"),
        "{warning}"
    );
    assert_eq!(project.commits(), 2);
}

#[test]
fn its_exit_code_is_the_runs() {
    let Some(way) = container() else { return };
    for (agent, code) in [("exit 3", 1), ("echo 'FAILED: no'", 3), ("exit 127", 4)] {
        let project = project();
        let agent = project.agent(agent);
        assert_eq!(
            end_of(&mut start(&project, &way, &agent)).code(),
            Some(code),
            "{agent}"
        );
    }
}

#[test]
fn signals_cancel_it() {
    let Some(way) = container() else { return };
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let project = project();
        let agent = project.agent("(setsid sleep 300 &); touch \"$OUT/began\"; sleep 300");
        let mut child = start(&project, &way, &agent);
        wait_until("the turn begins", || project.outside("began").exists());
        let [first] = children(child.id())[..] else {
            panic!("one child of unshare is expected");
        };
        signal(first, name);
        assert_eq!(end_of(&mut child).code(), Some(code), "{name}");
        let run = project.finished(&child.wait_with_output().unwrap());
        assert_eq!(run.summary["status"], "cancelled", "{name}");
        assert_eq!(run.summary["exit_code"], code, "{name}");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let Some(way) = container() else { return };
    let project = project();
    let agent = project
        .agent("trap ': > \"$OUT/asked\"' TERM; touch \"$OUT/began\"; while :; do sleep 0.1; done");
    let mut child = start(&project, &way, &agent);
    wait_until("the turn begins", || project.outside("began").exists());
    let first = children(child.id())[0];
    signal(first, "TERM");
    wait_until("the agent is asked to end", || {
        project.outside("asked").exists()
    });
    signal(first, "INT");
    assert_eq!(end_of(&mut child).code(), Some(143));
}
