//! Processes, as a test sees them from outside.

use super::project::Project;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest that anything is waited for. What takes so long has hung.
pub const HUNG: Duration = Duration::from_secs(240);

/// Waits until something is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < HUNG, "waited in vain: {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Waits for the end of a process; one that hangs is killed and fails the test.
pub fn end_of(child: &mut Child) -> ExitStatus {
    end_within(child, HUNG)
}

/// The same for a process that must end long before others would.
pub fn end_within(child: &mut Child, hung: Duration) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > hung {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("it hangs");
        }
        sleep(Duration::from_millis(5));
    }
}

/// Sends a signal.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success(), "kill -{name} {pid}");
}

/// The ids of all processes, each with its directory in `/proc`.
pub fn processes() -> impl Iterator<Item = (u32, PathBuf)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
}

/// The command lines of the processes that still work in a project's directories, by id, but those
/// named. Zombies are none.
pub fn left_in(project: &Project, but: &[u32]) -> BTreeMap<u32, String> {
    let root = project.repo().parent().unwrap().to_path_buf();
    let mut left = BTreeMap::new();
    for (pid, path) in processes() {
        let cwd = fs::read_link(path.join("cwd")).unwrap_or_default();
        if cwd.starts_with(&root) && !but.contains(&pid) {
            let line = fs::read(path.join("cmdline")).unwrap_or_default();
            left.insert(pid, String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    left
}

/// Fails if anything still works in a project's directories.
pub fn assert_nothing_left(project: &Project) {
    assert_eq!(left_in(project, &[]), BTreeMap::new());
}

/// The children of a process, zombies included.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let pids = lists.iter().flat_map(|list| list.split_whitespace());
    pids.map(|pid| pid.parse().unwrap()).collect()
}

/// Whether a process is there and no zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

/// Runs `sprag` to its end and returns what it left with the largest resident size it had, in KiB.
pub fn run_with_peak_memory(project: &Project, args: &[&str]) -> (super::project::Run, u64) {
    let log = project.outside("log");
    let mut child = project
        .command(args)
        .stdout(fs::File::create(&log).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    let began = Instant::now();
    let status = loop {
        peak = peak.max(peak_kib(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(began.elapsed() < HUNG, "it hangs");
        sleep(Duration::from_millis(2));
    };
    assert!(peak > 0, "the size could not be read");
    let output = std::process::Output {
        status,
        stdout: fs::read(&log).unwrap(),
        stderr: Vec::new(),
    };
    (project.finished(&output), peak)
}

fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The ids that scripts have written to a file, one a line.
pub fn pids(path: &Path) -> Vec<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}
