//! Machines that die at a random moment with everything that is on them: work tree, home and run directory. Another
//! machine goes on from what the remote has.
//!
//! `SPRAG_TEST_FULL=1` (scripts/test-full) does it with 50 seeds; `SPRAG_TEST_SEED` and `SPRAG_TEST_MACHINES` choose others.

use super::kept_work::{kept, kill, on_a_new_machine};
use super::with_pull;
use crate::support::github::git;
use crate::support::kill::{Dice, Hit, Moment, killed_in};
use crate::support::proc::{left_in, wait_until};
use crate::support::runner::Runner;
use crate::support::{is_full, number};
use std::collections::BTreeSet;
use std::fs;

const TASKS: [&str; 4] = ["one", "two", "three", "four"];
const PLAN: &str = "title: Four steps\nverify: [{name: test, run: 'test -e one.txt', kind: test}]\ntasks:\n  \
    - { id: one, title: One }\n  - { id: two, title: Two }\n  - { id: three, title: Three }\n  - { id: four, title: Four }\n";
/// Notes what has to be paid for, and does its task.
const WORKS: &str = "echo $SPRAG_TASK_ID >> $OUT/paid\necho $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt";
/// Lines of the history of an undisturbed run, about.
const LINES: u64 = 32;
/// Seeds in the default run of the tests, and with `SPRAG_TEST_FULL`.
const SEEDS: (u64, u64) = (2, 50);

/// What was paid for on the present machine and those before, in order.
fn paid(runner: &Runner) -> Vec<String> {
    let text = fs::read_to_string(runner.project.outside("paid")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// The tasks that have a commit on the remote, on the branch or in a reference that keeps unfinished work.
fn safe(runner: &Runner) -> BTreeSet<String> {
    let mut refs = kept(runner);
    refs.push("refs/heads/feature".to_owned());
    let args: Vec<&str> = ["log", "--format=%B"]
        .into_iter()
        .chain(refs.iter().map(String::as_str))
        .collect();
    let log = git(&runner.bare(), &args);
    let tasks = log
        .lines()
        .filter_map(|line| line.strip_prefix("Sprag-Task: "));
    tasks
        .filter_map(|task| Some(task.rsplit_once('/')?.1.to_owned()))
        .collect()
}

/// A job that dies at this moment, if it does not end before.
fn dies(runner: &mut Runner, at: Moment) -> bool {
    let agent = runner.project.agent(WORKS);
    let command = runner.command(&["--agent-command", &agent]);
    let newest = || runner.run_dir();
    let ended = killed_in(command, &newest, at);
    wait_until("nothing is left", || {
        let left = left_in(&runner.project, &[]);
        left.keys().for_each(|pid| kill(*pid));
        left.is_empty()
    });
    ended.is_none()
}

fn survives(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut runner = with_pull();
    runner.push("feature", "plans/steps.yaml", PLAN);
    let comment = runner.say(1, "grace", "/sprag run plans/steps.yaml");
    let mut attempt = 1;
    for _ in 0..=dice.below(3) {
        let at = Moment {
            hit: Hit::All,
            ..dice.moment(0, LINES)
        };
        let (before, was_safe) = (paid(&runner), safe(&runner));
        if !dies(&mut runner, at) {
            break;
        }
        let (now, is_safe) = (paid(&runner), safe(&runner));
        let lost: Vec<&String> = was_safe.difference(&is_safe).collect();
        assert!(lost.is_empty(), "{lost:?} is gone from the remote");
        let again: Vec<&String> = now[before.len()..]
            .iter()
            .filter(|task| was_safe.contains(*task))
            .collect();
        assert!(again.is_empty(), "{again:?} was paid for twice");
        // Whoever works on a task has kept the commits of those before.
        let earlier = now.split_last().map_or(&[][..], |(_, earlier)| earlier);
        let unkept: Vec<&String> = earlier
            .iter()
            .filter(|task| !is_safe.contains(*task))
            .collect();
        let last = now.last();
        let unkept: Vec<&&String> = unkept.iter().filter(|task| Some(**task) != last).collect();
        assert!(unkept.is_empty(), "{unkept:?} was verified and is lost");
        on_a_new_machine(&mut runner);
        attempt += 1;
        runner
            .project
            .env("GITHUB_RUN_ATTEMPT", attempt.to_string());
        runner.commented(comment);
    }
    let (before, was_safe) = (paid(&runner), safe(&runner));
    runner.by(WORKS, &[]).expect(0);
    for task in &paid(&runner)[before.len()..] {
        assert!(!was_safe.contains(task), "{task} was paid for twice");
    }
    for task in TASKS {
        assert_eq!(
            runner.file("feature", &format!("{task}.txt")),
            format!("{task}\n")
        );
        let end = format!("/{task}");
        let log = git(
            &runner.bare(),
            &["log", "--format=%B", "refs/heads/feature"],
        );
        let made = log
            .lines()
            .filter(|line| line.starts_with("Sprag-Task: ") && line.ends_with(&end));
        assert_eq!(made.count(), 1, "{task} has one commit");
    }
    assert_eq!(kept(&runner), Vec::<String>::new());
}

#[test]
fn nothing_verified_is_lost_and_no_task_is_paid_for_twice() {
    let first = number("SPRAG_TEST_SEED").unwrap_or(1);
    let count = number("SPRAG_TEST_MACHINES").unwrap_or(if is_full() { SEEDS.1 } else { SEEDS.0 });
    for seed in first..first + count {
        let survived = std::panic::catch_unwind(|| survives(seed));
        if let Err(panic) = survived {
            eprintln!("seed {seed}: again with SPRAG_TEST_SEED={seed} SPRAG_TEST_MACHINES=1");
            std::panic::resume_unwind(panic);
        }
    }
    eprintln!("{count} runs on machines that died, seeds from {first}: nothing was lost");
}
