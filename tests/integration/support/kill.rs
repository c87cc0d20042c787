//! Runs that are killed at moments that can be named again, and what they left.

use super::proc::{end_of as end_of_process, processes};
use super::project::{Project, Run};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Runs at once. They wait for children and for the disk more than they compute.
const WORKERS: usize = 3;

/// Whom a kill hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// `sprag` alone: what it started lives on.
    Sprag,
    /// The process group of `sprag`, as a shell's job control does.
    Group,
    /// `sprag` and everything below it at once, as when the machine or the container goes.
    All,
}

/// When a run is killed.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The file of the run directory that is watched.
    pub file: &'static str,
    /// How many lines it must have; 0 is the start of the process.
    pub lines: usize,
    /// How long after that.
    pub after: Duration,
    /// Whom it hits.
    pub hit: Hit,
}

/// A small generator of numbers (splitmix64): a seed names a whole test case.
pub struct Dice(u64);

impl Dice {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// Any moment in a run that writes up to `lines` lines more than it has.
    pub fn moment(&mut self, there: usize, lines: u64) -> Moment {
        let file = ["history.jsonl", "state/events.jsonl"][usize::try_from(self.below(2)).unwrap()];
        let hit = match self.below(10) {
            0..=4 => Hit::Sprag,
            5..=6 => Hit::Group,
            _ => Hit::All,
        };
        let lines = there + usize::try_from(self.below(lines)).unwrap();
        let most = [0, 500, 5_000, 60_000][usize::try_from(self.below(4)).unwrap()];
        let after = Duration::from_micros(self.below(most + 1));
        Moment {
            file,
            lines,
            after,
            hit,
        }
    }
}

/// Does the work of all numbers below `count` on several threads, and fails if any of them failed.
pub fn each(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let worker = || {
        loop {
            let n = next.fetch_add(1, Ordering::SeqCst);
            if n >= count {
                return;
            }
            let work = std::panic::AssertUnwindSafe(|| work(n));
            if std::panic::catch_unwind(work).is_err() {
                failed.lock().unwrap().push(n);
            }
        }
    };
    std::thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(worker))));
    let failed = failed.into_inner().unwrap();
    assert_eq!(failed, Vec::<usize>::new(), "of {count} these failed");
}

/// Lines that the newest run of the project has in this file.
pub fn lines(project: &Project, file: &str) -> usize {
    let dir = project.run_dirs().into_iter().next_back();
    dir.map_or(0, |dir| lines_of(&dir.join(file)))
}

/// Lines of a file that others write: it is read only if its length has changed.
#[derive(Default)]
struct Watched {
    length: u64,
    lines: usize,
}

impl Watched {
    fn lines(&mut self, path: &Path) -> usize {
        let length = fs::metadata(path).map_or(0, |file| file.len());
        if length != self.length {
            self.length = length;
            self.lines = lines_of(path);
        }
        self.lines
    }
}

fn lines_of(path: &Path) -> usize {
    let text = fs::read(path).unwrap_or_default();
    text.iter().filter(|byte| **byte == b'\n').count()
}

/// Starts `sprag` and kills it at this moment. Returns its exit code when it came to its end before.
pub fn killed(project: &Project, args: &[&str], at: Moment) -> Option<i32> {
    let dir = || project.run_dirs().into_iter().next_back();
    killed_in(project.command(args), &dir, at)
}

/// Starts `sprag` and sends it a signal at this moment. Returns what it left where it came to its end, by itself or
/// upon the signal; `None` where it was killed.
pub fn disturbed(project: &Project, args: &[&str], at: Moment, signal: &str) -> Option<Run> {
    let (out, err) = (project.outside("stdout"), project.outside("stderr"));
    let mut child = project
        .command(args)
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .process_group(0)
        .spawn()
        .unwrap();
    let dir = || project.run_dirs().into_iter().next_back();
    let mut ended = wait_for(&mut child, &dir, at);
    if ended.is_none() && signal == "KILL" {
        kill(&mut child, at.hit);
        return None;
    }
    if ended.is_none() {
        send(&format!("-{signal}"), &[child.id().to_string()]);
        ended = Some(end_of_process(&mut child));
    }
    // A signal before anybody listens to it kills.
    let status = ended.filter(|status| status.code().is_some())?;
    let read = |path: &Path| fs::read(path).unwrap();
    let output = Output {
        status,
        stdout: read(&out),
        stderr: read(&err),
    };
    Some(project.finished(&output))
}

/// The same for a command whose newest run has the directory that `newest` finds.
pub fn killed_in(
    mut command: Command,
    newest: &dyn Fn() -> Option<PathBuf>,
    at: Moment,
) -> Option<i32> {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    match wait_for(&mut child, newest, at) {
        Some(status) => Some(status.code().unwrap()),
        None => {
            kill(&mut child, at.hit);
            None
        }
    }
}

/// Waits for the moment; gives how the process ended where that came first.
fn wait_for(
    child: &mut Child,
    newest: &dyn Fn() -> Option<PathBuf>,
    at: Moment,
) -> Option<ExitStatus> {
    let mut dir: Option<PathBuf> = None;
    let mut reached = None;
    let mut watched = Watched::default();
    loop {
        if dir.is_none() {
            dir = newest();
        }
        let there = dir
            .as_ref()
            .map_or(0, |dir| watched.lines(&dir.join(at.file)));
        if reached.is_none() && there >= at.lines {
            reached = Some(Instant::now());
        }
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if let Some(since) = reached {
            std::thread::sleep(at.after.saturating_sub(since.elapsed()));
            return None;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn kill(child: &mut Child, hit: Hit) {
    let pid = child.id();
    let mut victims = vec![pid.to_string()];
    match hit {
        Hit::Sprag => {}
        Hit::Group => victims = vec![format!("-{pid}")],
        Hit::All => {
            send("-STOP", &victims);
            let mut known = BTreeSet::from([pid]);
            while let Some(next) = descendants(&known) {
                let found: Vec<String> = next.iter().map(u32::to_string).collect();
                send("-STOP", &found);
                known.extend(next);
            }
            victims = known.iter().map(u32::to_string).collect();
        }
    }
    send("-KILL", &victims);
    child.wait().unwrap();
}

/// A process that has just ended is no fault of the test.
fn send(signal: &str, to: &[String]) {
    let mut command = Command::new("kill");
    command.arg(signal).arg("--").args(to);
    command.stderr(Stdio::null()).status().unwrap();
}

/// Children of these processes that are not among them; `None` when there are none.
fn descendants(known: &BTreeSet<u32>) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for (pid, path) in processes() {
        let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let parent = rest.split_whitespace().nth(1);
        let parent: Option<u32> = parent.and_then(|parent| parent.parse().ok());
        if parent.is_some_and(|parent| known.contains(&parent)) && !known.contains(&pid) {
            found.insert(pid);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Whether the newest run had nothing left to do but to exit.
pub fn has_reported_its_end(project: &Project) -> bool {
    let Some(dir) = project.run_dirs().into_iter().next_back() else {
        return false;
    };
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap_or_default();
    let events = read("state/events.jsonl");
    let last: Option<Value> = events
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(line).ok());
    let ended = read("state/ended");
    let is_over = last.is_some_and(|last| last["seq"].as_u64() == ended.parse().ok());
    let code = serde_json::from_str::<Value>(&read("summary.json"))
        .map(|summary| summary["exit_code"].clone());
    is_over && (dir.join("state/finished").exists() || code.is_ok_and(|code| code != 0))
}

/// Processes that belong to the run and are still there.
pub fn left_behind(run_id: &str) -> Vec<String> {
    let id = format!("SPRAG_RUN_ID={run_id}");
    let mut found = Vec::new();
    for (_, path) in processes() {
        let environ = fs::read(path.join("environ")).unwrap_or_default();
        if environ
            .split(|byte| *byte == 0)
            .any(|one| one == id.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

/// Fails with the lines in which two ends differ.
pub fn assert_same_end(end: &Value, expected: &Value, what: &str) {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let (end, expected) = (pretty(end), pretty(expected));
    let only = |these: &str, those: &str, mark: char| -> Vec<String> {
        let those: Vec<&str> = those.lines().collect();
        let lines = these.lines().filter(|line| !those.contains(line));
        lines.map(|line| format!("{mark} {line}")).collect()
    };
    let differ = [only(&expected, &end, '-'), only(&end, &expected, '+')].concat();
    assert!(
        end == expected,
        "{what}\nit ended otherwise:\n{}",
        differ.join("\n")
    );
}

/// Everything about the end of a run that a kill on the way to it must not change: the repository
/// whole, its files, its commits, the plan, and what the summary says but for times, ids, and how
/// often turns and checks were begun.
pub fn end_of(project: &Project, run: &Run) -> Value {
    let tree = project.git(&["ls-tree", "-r", "HEAD"]);
    let tree: Vec<&str> = tree
        .lines()
        .filter(|line| !line.ends_with("\tplan.yaml"))
        .collect();
    let summary = &run.summary;
    let commits: Vec<&str> = summary["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap())
        .collect();
    let format = "--format=%H %(trailers:key=Sprag-Run,separator=%x20)";
    let made = project.git(&["log", "--reverse", format, "base..HEAD"]);
    let own: Vec<&str> = made
        .lines()
        .filter(|line| line.contains("Sprag-Run: "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(commits, own, "the summary does not know the commits");
    let subjects = project.git(&["log", "--reverse", "--format=%s"]);
    let totals = ["tasks", "done", "attempts", "retries", "nudges"];
    let totals = totals.map(|name| summary["totals"][name].clone());
    let head = project.head();
    assert_eq!(summary["head"], head.as_str());
    json!({
        "code": run.code,
        "tree": tree,
        "committed plan": timeless(&project.git(&["show", "HEAD:plan.yaml"])),
        "plan": timeless(project.read("plan.yaml").trim_end()),
        "subjects": subjects.lines().collect::<Vec<_>>(),
        "status": project.status(),
        "fsck": project.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]),
        "refs": project.git(&["for-each-ref", "--format=%(refname)", "refs/heads", "refs/tags"]),
        "locks": locks(&project.repo().join(".git")),
        "left behind": left_behind(summary["run_id"].as_str().unwrap()),
        "run": [&summary["status"], &summary["reason"], &summary["exit_code"], &summary["branch"], &summary["plan"]],
        "changed files": summary["changed_files"],
        "totals": totals,
        "tasks": summary["tasks"].as_array().unwrap().iter().map(|task| task_end(project, run, task)).collect::<Vec<_>>(),
    })
}

fn task_end(project: &Project, run: &Run, task: &Value) -> Value {
    let names = [
        "id",
        "status",
        "reason",
        "attempts",
        "retries",
        "nudges",
        "history",
        "failed_report",
        "changes_made",
        "changed_files",
        "patch",
        "agent_commits",
    ];
    let told = names.map(|name| task[name].clone());
    let turns = task["turns"].as_array().unwrap().iter();
    let turns: Vec<String> = turns
        .map(|turn| {
            format!(
                "{} {} {}",
                turn["turn"], turn["purpose"], turn["assessment"]
            )
        })
        .collect();
    let patch = task["patch"].as_str().map(|name| {
        let patch = fs::read_to_string(run.dir.as_ref().unwrap().join(name)).unwrap();
        patch
            .lines()
            .filter(|line| !line.starts_with("index "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    });
    let subject = task["commit"]
        .as_str()
        .map(|id| project.git(&["log", "-1", "--format=%s", id]));
    json!({
        "task": told,
        "turns": turns,
        "patch": patch,
        "subject": subject,
    })
}

fn timeless(plan: &str) -> Vec<&str> {
    plan.lines()
        .filter(|line| !line.trim_start().starts_with("completed_at:"))
        .collect()
}

fn locks(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(locks(&path));
        } else if path.extension().is_some_and(|ending| ending == "lock") {
            found.push(path.display().to_string());
        }
    }
    found
}
