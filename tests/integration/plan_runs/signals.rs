//! SIGINT and SIGTERM: nothing is committed, nothing is left running, and the run goes on later.

use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{assert_nothing_recorded, end, events, fixable, kept, statuses};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

/// Sends a signal to a process that this test started.
pub fn send(signal: &str, pid: &str) {
    let sent = Command::new("kill").args([signal, pid]).status().unwrap();
    assert!(sent.success(), "kill {signal} {pid}");
}

/// Whether a process is still there and not only waiting to be reaped.
pub fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|text| {
        let state = text
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}

/// Makes a named pipe of the test's own.
pub fn fifo(project: &Project, name: &str) {
    let made = Command::new("mkfifo")
        .arg(project.outside(name))
        .status()
        .unwrap();
    assert!(made.success());
}

/// Waits until a script writes to a named pipe, and returns what it wrote.
pub fn heard(project: &Project, name: &str) -> String {
    fs::read_to_string(project.outside(name))
        .unwrap()
        .trim()
        .to_owned()
}

/// Starts `sprag run` on `plan.yaml`.
pub fn started(project: &Project, agent: &str) -> Child {
    project.start(&["run", "--plan", "plan.yaml", "--agent-command", agent])
}

/// Waits for the end of a run.
pub fn ended(project: &Project, child: Child) -> Run {
    project.finished(&child.wait_with_output().unwrap())
}

/// An agent whose first turn leaves half of the work, a child and a daemon, and never ends. The
/// processes' ids go to the pipe `working`.
const HALF: &str = "[ $N = 1 ] || { echo fixed > a.txt; echo Done.; exit; }
echo half > a.txt; echo new > b.txt
sleep 1000 & CHILD=$!
setsid sh -c 'echo $$ > $OUT/daemon; trap \"\" TERM INT HUP; exec sleep 1000' > /dev/null 2>&1 &
while [ ! -s $OUT/daemon ]; do :; done
echo $$ $CHILD $(cat $OUT/daemon) > $OUT/working
wait";

fn interrupted(signal: &str) -> (Project, Run, String) {
    let project = fixable();
    fifo(&project, "working");
    let head = project.head();
    let agent = project.agent(&format!("export OUT\n{HALF}"));
    let child = started(&project, &agent);
    let pids = heard(&project, "working");
    send(signal, &child.id().to_string());
    let run = ended(&project, child);
    let left: Vec<&str> = pids.split(' ').filter(|pid| is_alive(pid)).collect();
    assert!(left.is_empty(), "{left:?} of {pids} are alive");
    assert_nothing_recorded(&project, &head);
    (project, run, agent)
}

#[test]
fn ctrl_c_and_sigterm() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let (project, run, agent) = interrupted(signal);
        let run = run.expect(code);
        assert_eq!(end(&run.summary), ("cancelled", "cancelled"));
        assert_eq!(run.summary["exit_code"], code);
        assert_eq!(end(run.task(0)), ("pending", "cancelled"));
        assert_eq!(project.checks(), 1);
        assert_eq!(project.status(), " M a.txt\n?? b.txt");
        let patch = kept(&run, "patches/fix.patch");
        assert!(patch.contains("+half") && patch.contains("+new"), "{patch}");
        let requested = events(&run, "cancel.requested");
        assert_eq!(requested.len(), 1);
        assert_eq!(requested[0]["signal"], if code == 130 { 2 } else { 15 });
        // The end of the turn is what came of it.
        let names = run.event_names();
        let at = |name| names.iter().position(|it| *it == name).unwrap();
        assert_eq!(at("cancel.requested") + 1, at("turn.ended"), "{names:?}");
        // What is there is accepted, and the task is finished with one commit.
        let resumed = project
            .sprag(&["run", "--resume", "--agent-command", &agent])
            .expect(0);
        assert_eq!(end(resumed.task(0)), ("done", "verified"));
        assert_eq!(resumed.summary["run_id"], run.summary["run_id"]);
        assert_eq!(project.calls(), 2);
        assert_eq!(project.commits(), 3);
        assert_eq!(
            statuses(&project.git(&["show", "HEAD:plan.yaml"])),
            ["done"]
        );
        assert_eq!(project.git(&["show", "HEAD:b.txt"]), "new");
        assert_eq!(project.status(), "");
        assert_eq!(project.run_dirs().len(), 1);
    }
}

#[test]
fn an_agent_that_ignores_sigterm_is_killed() {
    let project = fixable();
    fifo(&project, "working");
    let agent =
        project.agent("trap '' TERM INT; echo $$ > $OUT/working; while :; do sleep 1; done");
    let child = started(&project, &agent);
    let pid = heard(&project, "working");
    send("-TERM", &child.id().to_string());
    ended(&project, child).expect(143);
    assert!(!is_alive(&pid));
}

#[test]
fn a_signal_during_a_check() {
    let mut project = Project::new(&[("a.txt", "broken\n")]);
    // The first check is then the one of the work.
    project.env("SPRAG_BASELINE", "off");
    let once = project.outside("once");
    let check = project.check(&format!(
        "test -e {once} || {{ touch {once}; echo $$ > {pipe}; sleep 1000; }}; grep -q fixed a.txt",
        once = once.display(),
        pipe = project.outside("working").display()
    ));
    project.write("plan.yaml", &plan(&check));
    project.commit_all("plan");
    fifo(&project, "working");
    let head = project.head();
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let child = started(&project, &agent);
    let pid = heard(&project, "working");
    send("-INT", &child.id().to_string());
    let run = ended(&project, child).expect(130);
    assert!(!is_alive(&pid));
    assert_nothing_recorded(&project, &head);
    assert_eq!(end(run.task(0)), ("pending", "cancelled"));
    assert_eq!(project.status(), " M a.txt");
    // The verification was not spent: the check runs again and no turn does.
    let resumed = project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(project.checks(), 2);
    assert_eq!(end(resumed.task(0)), ("done", "verified"));
    assert_eq!(resumed.task(0)["attempts"], 1);
    assert_eq!(project.commits(), 3);
}

#[test]
fn a_signal_during_a_hook() {
    let project = fixable();
    fifo(&project, "working");
    let (once, pipe) = (project.outside("once"), project.outside("working"));
    project.hook(
        "pre-commit",
        &format!(
            "test -e {once} || {{ touch {once}; echo $$ > {pipe}; sleep 1000; }}",
            once = once.display(),
            pipe = pipe.display()
        ),
    );
    let head = project.head();
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let child = started(&project, &agent);
    let pid = heard(&project, "working");
    send("-TERM", &child.id().to_string());
    let run = ended(&project, child).expect(143);
    assert!(!is_alive(&pid));
    assert_nothing_recorded(&project, &head);
    assert_eq!(run.summary["commits"], serde_json::json!([]));
    project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(project.commits(), 3);
    assert_eq!(project.status(), "");
}

#[test]
fn a_signal_between_tasks_keeps_what_is_done() {
    let project = crate::support::tasks::several(&["one", "two"]);
    fifo(&project, "working");
    let agent = project.agent(
        "touch $SPRAG_TASK_ID; [ $N = 2 ] && { echo $$ > $OUT/working; sleep 1000; }; echo Done.",
    );
    let child = started(&project, &agent);
    heard(&project, "working");
    send("-INT", &child.id().to_string());
    let run = ended(&project, child).expect(130);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(end(run.task(1)), ("pending", "cancelled"));
    assert_eq!(project.commits(), 3);
    let resumed = project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!(resumed.summary["totals"]["done"], 2);
    assert_eq!(resumed.summary["commits"].as_array().unwrap().len(), 2);
    assert_eq!(project.calls(), 3);
    assert_eq!(project.commits(), 4);
    assert_eq!(statuses(&project.read("plan.yaml")), ["done", "done"]);
}
