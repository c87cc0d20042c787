//! A run that dies while it moves the branch: before and after each of git's commands on the way there and back.
//!
//! `SPRAG_TEST_FULL=1` (scripts/test-full) does it at all of these moments.

use super::rebases::drop_file;
use super::with_pull_over;
use crate::support::kill::each;
use crate::support::runner::Runner;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::{env, fs};

/// The base has a file more, one less and one that is another, and the checks do not pass with it.
fn asked() -> (Runner, Vec<String>) {
    let mut runner = with_pull_over(&[("a.txt", "broken"), ("gone.txt", "here")]);
    runner.push("main", "a.txt", "changed");
    runner.push("main", "dir/new.txt", "new");
    drop_file(&runner, "main", "gone.txt");
    runner.say(1, "grace", "/sprag rebase");
    let check = "test -e gone.txt";
    let args = ["--agent-command", "false", "--verify", check];
    (runner, args.map(str::to_owned).to_vec())
}

/// When the process that called git is killed.
#[derive(Debug, Clone, Copy)]
enum Kill {
    Never,
    Before(usize),
    After(usize),
}

/// Has Sprag find a git that kills it at a call, counted from when a move of the branch was noted. Gives the file
/// with a line for each of these calls.
fn with_killing_git(runner: &mut Runner, kill: Kill) -> PathBuf {
    let search_path = env::var_os("PATH").unwrap();
    let mut places = env::split_paths(&search_path).map(|dir| dir.join("git"));
    let git = places.find(|path| path.is_file()).unwrap();
    let (git, calls) = (git.display(), runner.project.outside("calls"));
    let (at, after) = match kill {
        Kill::Never => (0, false),
        Kill::Before(at) => (at, false),
        Kill::After(at) => (at, true),
    };
    let script = format!(
        "#!/bin/sh
PATH=/usr/bin:/bin
for noted in {}/sprag/*/state/move.json; do
  test -e \"$noted\" || continue
  echo \"$*\" >> {calls}
  test $(wc -l < {calls}) -eq {at} || continue
  {after} && {git} \"$@\"
  kill -9 $PPID
  exit 1
done
exec {git} \"$@\"\n",
        runner.project.beside("runner").display(),
        calls = calls.display(),
    );
    let dir = runner.project.beside("killing-git");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("git"), script).unwrap();
    fs::set_permissions(dir.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let first = std::iter::once(dir);
    let all = env::join_paths(first.chain(env::split_paths(&search_path))).unwrap();
    runner.project.env("PATH", all);
    calls
}

#[test]
fn a_run_that_dies_while_the_branch_moves_is_taken_up_with_the_branch_as_it_was() {
    let (mut runner, args) = asked();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let calls = with_killing_git(&mut runner, Kill::Never);
    runner.step(&args).expect(1);
    let calls = fs::read_to_string(calls).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    let moves = calls.iter().filter(|call| call.contains("update-ref"));
    assert_eq!(moves.count(), 2, "there and back: {calls:#?}");
    let moments = 2 * calls.len();
    // A fourth of them takes ten seconds.
    let step = match env::var_os("SPRAG_TEST_FULL").is_some_and(|value| value == "1") {
        true => 1,
        false => 4,
    };
    each(moments / step, |n| {
        let n = n * step + n % step;
        let kill = match (n / 2 + 1, n % 2) {
            (at, 0) => Kill::Before(at),
            (at, _) => Kill::After(at),
        };
        let (mut runner, args) = asked();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let before = runner.at("feature");
        with_killing_git(&mut runner, kill);
        let killed = runner.command(&args).output().unwrap();
        let shown = format!("{kill:?}: {}\n{killed:?}", calls[n / 2]);
        assert_eq!(killed.status.code(), None, "{shown}");
        runner.project.env("PATH", env::var_os("PATH").unwrap());
        let output = runner.command(&["--resume"]).output().unwrap();
        let step = runner.ended(&output);
        assert_eq!(
            step.output("reason"),
            "verification_failed",
            "{shown}\n{output:?}"
        );
        assert_eq!(runner.project.head(), before, "{shown}");
        assert_eq!(runner.project.status(), "", "{shown}");
        assert_eq!(runner.at("feature"), before, "{shown}");
    });
}
