//! Repositories of every kind: what is committed is exactly what the agent did, or it is said why not.

mod filters;
mod kinds;
mod names;
mod nested;
mod operations;
mod oracle;
mod owners;
mod sparse;

use crate::support::project::{Project, Run};

/// Lets an agent do `script` in the work tree, with a check that passes and no plan file.
fn work(project: &Project, script: &str) -> Run {
    work_at(project, ".", script, &[])
}

/// As [`work`], in the repository at `dir` and with more arguments.
fn work_at(project: &Project, dir: &str, script: &str, more: &[&str]) -> Run {
    let agent = project.agent(&format!("{script}\necho Done."));
    let mut args = vec!["run", "-C", dir, "--prompt", "Do it", "--verify", "true"];
    args.extend(["--max-retries", "0", "--agent-command", &agent]);
    args.extend(more);
    project.sprag(&args)
}

/// What the commits from `base` to HEAD changed, as git's plumbing tells it: `M a.txt`, sorted.
pub fn delta(project: &Project, base: &str) -> Vec<String> {
    delta_at(project, ".", base)
}

fn delta_at(project: &Project, dir: &str, base: &str) -> Vec<String> {
    let told = project.git(&[
        "-C",
        dir,
        "diff-tree",
        "-r",
        "-z",
        "--no-renames",
        "--name-status",
        base,
        "HEAD",
    ]);
    let fields: Vec<&str> = told.split_terminator('\0').collect();
    let mut lines: Vec<String> = fields.chunks(2).map(|pair| pair.join(" ")).collect();
    lines.sort();
    lines
}

fn warnings(run: &Run) -> Vec<&str> {
    let all = run.summary["warnings"].as_array().unwrap();
    all.iter().map(|one| one.as_str().unwrap()).collect()
}

/// Fails unless the run made one commit that holds exactly these changes, and left a clean tree.
fn assert_exact(project: &Project, run: Run, base: &str, expected: &[&str]) -> Run {
    let run = run.expect(0);
    assert_eq!(delta(project, base), expected, "{}", run.stdout);
    assert_eq!(project.git(&["rev-parse", "HEAD~"]), base);
    assert_eq!(project.status(), "");
    run
}

/// Fails unless the run was refused before any turn, with these words on standard error.
fn assert_refused(project: &Project, run: &Run, code: i32, said: &str) {
    assert_eq!(run.code, code, "{}\n{}", run.stdout, run.stderr);
    assert_eq!((run.stderr.as_str(), project.calls()), (said, 0));
}

/// A command of the real world that a test needs. Without it the test has nothing to do, and its
/// reader is told so; with `SPRAG_CI_STRICT=1` that is a failure.
pub fn has(what: &str, command: &[&str]) -> bool {
    use std::io::Write as _;
    let found = std::process::Command::new(command[0])
        .args(&command[1..])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        let strict = std::env::var_os("SPRAG_CI_STRICT").is_some_and(|strict| strict == "1");
        assert!(!strict, "{what} is missing");
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("a test");
        let told = format!("\n!!! NOT TESTED: {test} NEEDS {what}\n");
        let _ = std::io::stderr().write_all(told.as_bytes());
    }
    found
}
