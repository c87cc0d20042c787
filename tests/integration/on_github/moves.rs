//! A run that dies while it moves the branch: before and after each of git's commands on the way there and back.
//!
//! `SPRAG_TEST_FULL=1` (scripts/test-full) does it at all of these moments.

use super::rebases::drop_file;
use super::{FIX, IS_FIXED, with_pull_over};
use crate::support::is_full;
use crate::support::kill::each;
use crate::support::runner::{Runner, Step, commit};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs};

/// Why the branch is moved.
#[derive(Debug, Clone, Copy)]
enum Story {
    /// The base is merged, and the checks do not pass with it.
    Rebase,
    /// Somebody has pushed meanwhile, and the work is put on top of that.
    Push,
}

impl Story {
    /// A job for this, and its arguments. The commits to which the branch moves add, change and delete files.
    fn job(self) -> (Runner, Vec<String>) {
        let mut runner = with_pull_over(&[("a.txt", "broken"), ("gone.txt", "here")]);
        // Then the branch moves as often as the story needs, and no more moments are tried.
        runner.project.without_proofs();
        let args = match self {
            Self::Rebase => {
                runner.push("main", "a.txt", "changed");
                runner.push("main", "dir/new.txt", "new");
                drop_file(&runner.bare(), "main", "gone.txt");
                runner.say(1, "grace", "/sprag rebase");
                ["--agent-command", "false", "--verify", "test -e gone.txt"].map(str::to_owned)
            }
            Self::Push => {
                runner.server.move_before_next_push(|bare| {
                    commit(bare, "feature", "feature", "b.txt", "changed");
                    commit(bare, "feature", "feature", "dir/new.txt", "new");
                    drop_file(bare, "feature", "gone.txt");
                });
                runner.say(1, "grace", "/sprag make a.txt say fixed");
                let agent = runner.project.agent(FIX);
                ["--agent-command", &agent, "--verify", IS_FIXED].map(str::to_owned)
            }
        };
        (runner, args.to_vec())
    }

    /// Whether the job has ended as one that nobody killed.
    fn expect(self, runner: &Runner, step: &Step, before: &str) {
        let (reason, head) = match self {
            Self::Rebase => ("verification_failed", before.to_owned()),
            Self::Push => {
                assert_eq!(runner.log("feature")[..2], ["Say fixed", "Drop it"]);
                ("verified", runner.at("feature"))
            }
        };
        assert_eq!(step.output("reason"), reason);
        assert_eq!(runner.at("feature"), head);
        assert_eq!(runner.project.head(), head);
        assert_eq!(runner.project.status(), "");
    }
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
  # Two of them may run at once.
  test {at} -gt 0 && test $(wc -l < {calls}) -ge {at} && mkdir {calls}.killed || continue
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

/// Kills the job before and after each of git's commands from the moment at which a move is noted, and takes it up again.
/// `moves` is how often the branch moves where nobody is killed.
fn survives(story: Story, moves: usize) {
    let (mut runner, args) = story.job();
    let before = runner.at("feature");
    let calls = with_killing_git(&mut runner, Kill::Never);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let step = runner.step(&args);
    story.expect(&runner, &step, &before);
    let calls = fs::read_to_string(calls).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    let moved = calls.iter().filter(|call| call.contains("update-ref"));
    assert_eq!(moved.count(), moves, "{calls:#?}");
    let moments = 2 * calls.len();
    let step = if is_full() { 1 } else { 14 };
    let deaths = AtomicUsize::new(0);
    each(moments / step, |n| {
        let n = n * step + n % step;
        let kill = match (n / 2 + 1, n % 2) {
            (at, 0) => Kill::Before(at),
            (at, _) => Kill::After(at),
        };
        let (mut runner, args) = story.job();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let before = runner.at("feature");
        with_killing_git(&mut runner, kill);
        let killed = runner.command(&args).output().unwrap();
        eprintln!("{kill:?}: {}", calls[n / 2]);
        // git is called less often where the times of files tell that nothing has changed.
        if killed.status.code().is_some() {
            let step = runner.ended(&killed);
            return story.expect(&runner, &step, &before);
        }
        deaths.fetch_add(1, Ordering::SeqCst);
        runner.project.env("PATH", env::var_os("PATH").unwrap());
        let output = runner.command(&["--resume"]).output().unwrap();
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        let step = runner.ended(&output);
        story.expect(&runner, &step, &before);
    });
    let deaths = deaths.into_inner();
    assert!(2 * deaths > moments / step, "{deaths} of {moments}");
}

#[test]
fn a_run_that_dies_while_the_branch_moves_is_taken_up_with_the_branch_as_it_was() {
    survives(Story::Rebase, 2);
}

#[test]
fn a_run_that_dies_while_its_work_is_put_on_top_of_a_push_is_taken_up_and_pushes_it() {
    survives(Story::Push, 1);
}
