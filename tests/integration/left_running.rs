//! If Sprag itself is killed by SIGKILL, everything that the run has started ends.
//!
//! Only the started processes have the writing end of a named pipe open: its end of file means that they
//! have all ended.

use crate::sandbox::everywhere;
use crate::support::proc::{assert_nothing_left, end_of, left_in, signal, wait_until};
use crate::support::project::{Project, plan};
use crate::support::user::User;
use rustix::fs::{Mode, OFlags};
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::process::{Child, Stdio};

/// Processes that are hard to find or to end: a daemon in its own session with an empty environment, an
/// orphan, one that ignores signals, a stopped one, and one with a child. Each writes `up`.
const STARTS: &[&str] = &[
    "env -i setsid sh -c '(echo up >&9; exec sleep 1000) &'",
    "(sh -c 'echo up >&9; exec sleep 1000' &)",
    "sh -c 'trap \"\" TERM HUP INT QUIT; echo up >&9; while :; do sleep 1; done' &",
    "sh -c 'echo up >&9; kill -STOP $$; exec sleep 1000' &",
    "sh -c 'setsid sh -c \"echo up >&9; exec sleep 1000\" & exec sleep 1000' &",
];

/// The reading end of a named pipe that scripts open as their descriptor 9.
struct Held {
    pipe: File,
    said: String,
}

impl Held {
    fn new(project: &Project) -> Self {
        let path = project.outside("held");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Self {
            pipe: rustix::fs::open(&path, flags, Mode::empty())
                .unwrap()
                .into(),
            said: String::new(),
        }
    }

    /// Waits until this many processes have started.
    fn wait_for(&mut self, count: usize) {
        wait_until("the processes are up", || {
            self.read();
            self.said.matches("up").count() >= count
        });
    }

    /// Waits until no process has the pipe open.
    fn wait_for_end(&mut self) {
        wait_until("every process has ended", || self.read());
    }

    /// Reads the available text. Returns whether no process has the pipe open.
    fn read(&mut self) -> bool {
        let mut part = [0; 256];
        match self.pipe.read(&mut part) {
            Ok(count) => {
                self.said.push_str(&String::from_utf8_lossy(&part[..count]));
                count == 0
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// The command of a script that opens the pipe and then executes `what`.
fn script(project: &Project, name: &str, what: &str) -> String {
    let path = project.outside(name);
    let held = project.outside("held");
    fs::write(&path, format!("exec 9>{}\n{what}\n", held.display())).unwrap();
    format!("sh {}", path.display())
}

/// Starts all of these processes and does not end.
fn hangs() -> String {
    format!("{}\necho up >&9\nexec sleep 1000", STARTS.join("\n"))
}

/// The number of processes of [`hangs`] that write `up`.
fn count() -> usize {
    STARTS.len() + 1
}

/// Starts a run at this level. `None` if the user cannot reach the project.
fn start(user: User, project: &Project, level: u8, agent: &str, more: &[&str]) -> Option<Child> {
    let required = format!("require:{level}");
    let outside = project.outside("").display().to_string();
    let mut args = vec!["run", "--agent-command", agent, "--sandbox", &required];
    args.extend(["--sandbox-write", &outside]);
    args.extend(more);
    let mut command = user.command(project, &args)?;
    let limit = level.to_string();
    command.env("SPRAG_SANDBOX_LIMIT", limit);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Some(command.spawn().unwrap())
}

fn kill(sprag: &mut Child) {
    signal(sprag.id(), "KILL");
    sprag.wait().unwrap();
}

/// Kills a run when all processes have started, and waits for their end.
fn is_ended_with_the_run(make: impl Fn(&Project) -> String) {
    everywhere(&[1, 2, 3], |user, level| {
        let project = Project::new(&[]);
        let agent = make(&project);
        let mut held = Held::new(&project);
        let plan = ["--plan", "plan.yaml"];
        let Some(mut sprag) = start(user, &project, level, &agent, &plan) else {
            return;
        };
        held.wait_for(count());
        kill(&mut sprag);
        held.wait_for_end();
        wait_until("the launchers have ended", || {
            left_in(&project, &[]).is_empty()
        });
    });
}

fn with_plan(project: &Project, text: &str) {
    project.write("plan.yaml", text);
    project.commit_all("plan");
}

#[test]
fn what_an_agent_has_started_ends_with_a_run_that_is_killed() {
    is_ended_with_the_run(|project| {
        with_plan(project, &plan("true"));
        script(project, "agent.sh", &hangs())
    });
}

#[test]
fn what_a_check_has_started_ends_with_a_run_that_is_killed() {
    is_ended_with_the_run(|project| {
        with_plan(project, &plan(&script(project, "check.sh", &hangs())));
        script(project, "agent.sh", "echo fixed > a.txt")
    });
}

#[test]
fn what_a_hook_has_started_ends_with_a_run_that_is_killed() {
    is_ended_with_the_run(|project| {
        with_plan(project, &plan("true"));
        project.hook("pre-commit", &script(project, "hook.sh", &hangs()));
        script(project, "agent.sh", "echo fixed > a.txt")
    });
}

#[test]
fn what_setup_leaves_running_ends_with_a_run_that_is_killed() {
    is_ended_with_the_run(|project| {
        let setup = script(project, "setup.sh", &STARTS.join("\n"));
        with_plan(project, &format!("setup: [ {setup} ]\n{}", plan("true")));
        script(
            project,
            "agent.sh",
            "echo up >&9; exec 9>&-; exec sleep 1000",
        )
    });
}

/// The end of the run continues a launcher that its child has stopped.
#[test]
fn a_child_that_stops_its_launcher_ends_with_a_run_that_is_killed() {
    everywhere(&[1, 2, 3], |user, level| {
        let project = Project::new(&[]);
        with_plan(&project, &plan("true"));
        let go = project.outside("go").display().to_string();
        let stops = format!(
            "{}\nwhile ! [ -e {go} ]; do sleep 0.02; done\necho up >&9\nkill -STOP 0",
            STARTS.join("\n")
        );
        let agent = script(&project, "agent.sh", &stops);
        let mut held = Held::new(&project);
        let Some(mut sprag) = start(user, &project, level, &agent, &["--plan", "plan.yaml"]) else {
            return;
        };
        held.wait_for(STARTS.len());
        fs::write(&go, "").unwrap();
        held.wait_for(count());
        let is_stopped = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains(") T ")
        };
        wait_until("the agent is stopped", || {
            let left = left_in(&project, &[]).into_iter();
            let mut agents = left.filter(|(_, line)| line.contains("agent.sh"));
            agents.any(|(pid, _)| is_stopped(&pid))
        });
        kill(&mut sprag);
        held.wait_for_end();
        wait_until("the launchers have ended", || {
            left_in(&project, &[]).is_empty()
        });
    });
}

#[test]
fn a_run_that_was_killed_is_taken_up_as_ever() {
    everywhere(&[1, 2, 3], |user, level| {
        let project = Project::new(&[]);
        let again = project.outside("again").display().to_string();
        let setup = script(&project, "setup.sh", STARTS[0]);
        with_plan(
            &project,
            &format!("setup: [ {setup} ]\n{}", plan("grep -q fixed a.txt")),
        );
        let what = format!(
            "[ -e {again} ] && {{ echo fixed > a.txt; exit; }}; {}",
            hangs()
        );
        let agent = script(&project, "agent.sh", &what);
        let mut held = Held::new(&project);
        let Some(mut sprag) = start(user, &project, level, &agent, &["--plan", "plan.yaml"]) else {
            return;
        };
        held.wait_for(count() + 1);
        kill(&mut sprag);
        held.wait_for_end();
        fs::write(&again, "").unwrap();
        let Some(mut sprag) = start(user, &project, level, &agent, &["--resume"]) else {
            return;
        };
        assert_eq!(end_of(&mut sprag).code(), Some(0));
        held.wait_for_end();
        assert_nothing_left(&project);
        assert_eq!(
            project.left(0).summary["commits"].as_array().unwrap().len(),
            1
        );
    });
}

/// The run treats the end of a launcher as the end of its child. From level 2 on, a child cannot kill its launcher.
#[test]
fn a_child_that_kills_its_launcher_ends_with_it() {
    everywhere(&[1, 2], |user, level| {
        let project = Project::new(&[]);
        with_plan(&project, &plan("true"));
        let kills = format!(
            "{}\necho up >&9\nkill -9 $PPID && exec sleep 1000\necho fixed > a.txt",
            STARTS.join("\n")
        );
        let agent = script(&project, "agent.sh", &kills);
        let mut held = Held::new(&project);
        let more = ["--plan", "plan.yaml", "--max-retries", "0"];
        let Some(mut sprag) = start(user, &project, level, &agent, &more) else {
            return;
        };
        held.wait_for(count());
        end_of(&mut sprag);
        held.wait_for_end();
        assert_nothing_left(&project);
    });
}
