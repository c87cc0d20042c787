//! Runs in worlds that follow from a seed: agents that plan only, lie, commit, delete tests, write secrets, fork
//! daemons or never end, with kills and signals at any moment. Whatever happens, the branch only moves by verified
//! commits, the plan says nothing that is not committed, no secret is told, no work is lost and nothing is left running.
//!
//! `SPRAG_TEST_FULL=1` (scripts/test-full) makes 300 runs; `SPRAG_TEST_SEED` and `SPRAG_TEST_RUNS` choose others.

use crate::support::kill::{
    Dice, Moment, disturbed, each, has_reported_its_end, left_behind, lines,
};
use crate::support::proc::{left_in, wait_until};
use crate::support::project::{Project, Run};
use crate::support::{is_full, number};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Runs in the default run of the tests, and with `SPRAG_TEST_FULL`.
const RUNS: (u64, u64) = (6, 300);

/// A secret of the job that agents know of all the same.
const SECRET: &str = "soak-secret-0123456789abcdef";

/// What an agent does in one turn, as a part of a shell script in which `$T` is the task and `$N` the number of the turn.
/// What is made is noted where the test finds it, once it is there.
const TURNS: &[(&str, &str)] = &[
    ("plans only", "echo 'Plan: I will edit $T.txt.'"),
    ("works", "make fixed; echo Done."),
    (
        "works again",
        "make fixed; echo 'SUGGESTED_COMMIT_MESSAGE: Mend it'",
    ),
    ("is wrong", "make broken; echo Done."),
    (
        "lies",
        "echo 'Everything is implemented and all tests pass.'",
    ),
    (
        "commits",
        "make fixed; git add -A; git -c user.name=x -c user.email=x@y commit -qm own >/dev/null 2>&1; echo Done.",
    ),
    (
        "commits what is wrong",
        "make broken; git add -A; git -c user.name=x -c user.email=x@y commit -qm own >/dev/null 2>&1",
    ),
    (
        "moves the branch",
        "make fixed; git tag evil; git branch -f other HEAD; echo Done.",
    ),
    ("deletes the tests", "make fixed; rm -rf tests; echo Done."),
    (
        "weakens the tests",
        "make broken; echo true > tests/t.sh; echo Done.",
    ),
    (
        "writes a secret",
        "make fixed; echo $SECRET > key.txt; echo Done.",
    ),
    (
        "prints a secret",
        "make fixed; echo The key is $SECRET; echo $SECRET >&2",
    ),
    (
        "suggests a secret",
        "make fixed; echo \"SUGGESTED_COMMIT_MESSAGE: Use $SECRET\"",
    ),
    (
        "leaves daemons",
        "make fixed; setsid sh -c 'setsid sleep 600 & sleep 600' >/dev/null 2>&1 & (sleep 600 &) ; echo Done.",
    ),
    (
        "never ends",
        "make fixed; trap '' TERM; while :; do sleep 600; done",
    ),
    ("fails", "echo 'FAILED: there is no key'"),
    ("crashes", "make broken; exit 3"),
    (
        "has had nothing to do",
        "echo 'ALREADY_SATISFIED: it is there'",
    ),
    (
        "writes into the plan",
        "make fixed; sed -i 's/title: Mend/status: done\\n    title: Mend/' plan.yaml; echo Done.",
    ),
    (
        "configures git",
        "make fixed; git config core.hooksPath /tmp; echo '*' > .git/info/exclude; echo 'exit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    ),
    ("removes git", "make fixed; rm -rf .git/refs .git/HEAD"),
    (
        "touches workflows",
        "make fixed; mkdir -p .github/workflows; echo x > .github/workflows/x.yml; echo Done.",
    ),
    (
        "makes odd files",
        "make fixed; mkfifo pipe; mkdir -p 'a\n b'; echo x > 'a\n b/-rf'; ln -s /etc out; echo Done.",
    ),
    (
        "floods",
        "make fixed; head -c 3000000 /dev/zero | tr '\\0' x; echo Done.",
    ),
];

const PLAN: &str = "title: Soak
verify:
  - name: test
    run: 'sh tests/t.sh'
    kind: test
tasks:
  - id: one
    title: Mend one.txt
  - id: two
    title: Mend two.txt
";

const TEST: &str = "! grep -q broken one.txt two.txt\n";

/// One run with everything that happens to it.
struct World {
    project: Project,
    begin: Vec<String>,
    base: String,
    /// The blob of the test as it was at first.
    test: String,
    told: String,
}

impl World {
    fn new(dice: &mut Dice) -> Self {
        let files = [
            ("one.txt", "old\n"),
            ("two.txt", "old\n"),
            ("tests/t.sh", TEST),
            ("plan.yaml", PLAN),
        ];
        let mut project = Project::new(&files);
        project.git(&["tag", "base"]);
        let mut told = String::new();
        let mut pick = |told: &mut String, from: &[&str]| {
            let word = from[usize::try_from(dice.below(from.len() as u64)).unwrap()];
            writeln!(told, "  {word}").unwrap();
            word.to_owned()
        };
        project.env("DEPLOY_TOKEN", SECRET);
        for (name, words) in [
            ("SPRAG_BASELINE", &["off", "on-failure", "first"][..]),
            ("SPRAG_FLAKY_RERUNS", &["0", "1"]),
            ("SPRAG_TEST_CHANGES", &["prove", "fail", "warn"]),
            ("SPRAG_SANDBOX", &["off", "off", "auto"]),
            ("SPRAG_AGENT_COMMITS", &["squash", "reject"]),
            ("SPRAG_ON_PROTECTED", &["hold", "block"]),
        ] {
            let word = pick(&mut told, words);
            project.env(name, word);
        }
        let names: Vec<&str> = TURNS.iter().map(|(name, _)| *name).collect();
        let mut script = format!(
            "SECRET={SECRET}\nT=$SPRAG_TASK_ID\n\
             make() {{ echo \"$1 by turn $N\" > $T.txt; echo \"made in turn $N\" > made-$N.txt; echo \"made in turn $N\" >> \"$OUT/made\"; }}\n\
             case $N in\n"
        );
        for turn in 1..=30 {
            let name = pick(&mut told, &names);
            let (_, does) = TURNS.iter().find(|(known, _)| *known == name).unwrap();
            writeln!(script, "{turn}) {does} ;;").unwrap();
        }
        script += "*) make fixed ;;\nesac";
        let agent = project.agent(&script);
        let mut begin = vec!["run", "--plan", "plan.yaml", "--turn-timeout", "3s"];
        begin.extend(["--agent-command", &agent]);
        let retries = pick(&mut told, &["0", "1", "2"]);
        begin.extend(["--max-retries", &retries]);
        if pick(&mut told, &["stops at a failure", "keeps going"]) == "keeps going" {
            begin.push("--keep-going");
        }
        let begin = begin.into_iter().map(str::to_owned).collect();
        let base = project.head();
        let test = project.git(&["rev-parse", "HEAD:tests/t.sh"]);
        Self {
            project,
            begin,
            base,
            test,
            told,
        }
    }

    /// Runs, disturbed up to three times, until a run has come to its end.
    fn live(&mut self, dice: &mut Dice) -> Run {
        let mut disturbances = dice.below(4);
        for _ in 0..20 {
            let is_begun = !self.project.run_dirs().is_empty();
            let args: Vec<&str> = if is_begun {
                vec!["run", "--resume"]
            } else {
                self.begin.iter().map(String::as_str).collect()
            };
            let run = match disturbances {
                0 => self.project.sprag(&args),
                _ => {
                    disturbances -= 1;
                    let there = lines(&self.project, "history.jsonl");
                    let moment: Moment = dice.moment(there, 25);
                    let signal = ["KILL", "KILL", "INT", "TERM"][dice.below(4) as usize];
                    writeln!(self.told, "SIG{signal} at {moment:?}").unwrap();
                    match disturbed(&self.project, &args, moment, signal) {
                        Some(run) => run,
                        None => {
                            self.holds(false);
                            if has_reported_its_end(&self.project) {
                                return self.project.left(0);
                            }
                            continue;
                        }
                    }
                }
            };
            writeln!(
                self.told,
                "exit {}\n{}\n{}",
                run.code, run.stdout, run.stderr
            )
            .unwrap();
            assert!(!run.stderr.contains("panicked"), "a panic");
            assert!([0, 1, 3, 130, 143].contains(&run.code), "exit {}", run.code);
            for text in [&run.stdout, &run.stderr] {
                assert!(!text.contains(SECRET), "the log tells the secret");
            }
            self.holds(true);
            self.nothing_is_left(&run);
            if run.code < 128 {
                return run;
            }
        }
        panic!("it does not come to its end");
    }

    /// What holds at every moment. After a kill in its turn, what the agent did to the repository is not put right yet.
    fn holds(&self, is_at_rest: bool) {
        let project = &self.project;
        let git = |args: &[&str]| project.git(args);
        let line = format!("{}..refs/heads/main", self.base);
        let is_missing = |name: &&str| !project.repo().join(".git").join(name).exists();
        if !is_at_rest && ["HEAD", "refs/heads/main"].iter().any(is_missing) {
            return;
        }
        let commits = git(&["log", "--first-parent", "--format=%H %an", &line]);
        let commits: Vec<&str> = commits.lines().collect();
        if !is_at_rest && commits.iter().any(|commit| commit.ends_with(" x")) {
            return;
        }
        let mut done = BTreeSet::new();
        let ids = commits
            .iter()
            .map(|commit| commit.split(' ').next().unwrap());
        for commit in ids.clone() {
            let format = "--format=%(trailers:key=Sprag-Task,valueonly)";
            let task = git(&["log", "-1", format, commit]);
            let who = git(&["log", "-1", "--format=%an|%cn|%B", commit]);
            assert!(
                who.starts_with("Tester|Tester|"),
                "{commit} is of somebody else: {who}"
            );
            assert!(!who.contains(SECRET), "{commit} tells the secret");
            let task = task.trim().rsplit('/').next().unwrap();
            done.insert(task.to_owned());
            let tree = git(&["ls-tree", "-r", "--name-only", commit]);
            assert!(!tree.contains(".github"), "{commit} has a workflow");
            for file in ["one.txt", "two.txt"] {
                let text = git(&["show", &format!("{commit}:{file}")]);
                let test = git(&["ls-tree", commit, "tests/t.sh"]);
                let weak = !test.contains(&self.test);
                assert!(weak || !text.contains("broken"), "{commit} is not verified");
            }
        }
        let tip = ids.clone().next().unwrap_or(&self.base);
        let ancestor = git(&["merge-base", &self.base, tip]);
        assert_eq!(ancestor, self.base, "the branch has lost its base");
        let line = format!("{}..{tip}", self.base);
        let with_secret = git(&["log", "--format=%h", &format!("-S{SECRET}"), &line]);
        assert_eq!(with_secret, "", "a secret is committed");
        // What was there already needs no commit.
        for dir in project.run_dirs() {
            let events = fs::read_to_string(dir.join("state/events.jsonl")).unwrap_or_default();
            let satisfied = events
                .lines()
                .filter(|line| line.contains("already_satisfied"));
            for line in satisfied {
                let mut tasks = ["one", "two"].into_iter();
                let task = tasks.find(|task| line.contains(&format!("\"task\":\"{task}\"")));
                done.extend(task.map(str::to_owned));
            }
        }
        let plan = git(&["show", &format!("{tip}:plan.yaml")]);
        self.says_what_is_so(&plan, &done);
    }

    /// The plan says of no task that it is done which has no commit.
    fn says_what_is_so(&self, plan: &str, done: &BTreeSet<String>) {
        let mut task = "";
        for line in plan.lines().map(str::trim) {
            if let Some(id) = line.strip_prefix("- id: ") {
                task = id;
            }
            let is_done = line == "status: done";
            assert!(
                !is_done || done.contains(task),
                "{task} is not done:\n{plan}"
            );
        }
    }

    /// What holds once a run has come to an orderly end.
    fn nothing_is_left(&self, run: &Run) {
        if let Some(id) = run.summary["run_id"].as_str() {
            wait_until("the processes of the run are gone", || {
                left_behind(id).is_empty()
            });
        }
        let left = left_in(&self.project, &[]);
        assert!(left.is_empty(), "these are left: {left:?}");
        for dir in self.project.run_dirs() {
            no_file_tells(&dir, SECRET);
        }
    }

    /// What an agent has made is in the branch, in the work tree, in a reference or in a patch.
    fn no_work_is_lost(&self) {
        for made in self.project.notes("made") {
            let turn = made.rsplit(' ').next().unwrap();
            let name = format!("made-{turn}.txt");
            let in_tree = self.project.repo().join(&name).exists();
            let refs = self
                .project
                .git(&["log", "--all", "--format=%h", "--", &name]);
            let in_patch = || {
                let dirs = self.project.run_dirs();
                let mut patches = dirs
                    .iter()
                    .flat_map(|dir| fs::read_dir(dir.join("patches")));
                let mut files = patches.by_ref().flatten().flatten();
                files.any(|file| {
                    let patch = fs::read(file.path()).unwrap_or_default();
                    String::from_utf8_lossy(&patch).contains(&made)
                })
            };
            assert!(in_tree || !refs.is_empty() || in_patch(), "{name} is lost");
        }
    }
}

/// Looks into every file below a directory.
fn no_file_tells(dir: &Path, secret: &str) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            no_file_tells(&entry.path(), secret);
        } else if kind.is_file() {
            let text = fs::read(entry.path()).unwrap();
            let told = text
                .windows(secret.len())
                .any(|part| part == secret.as_bytes());
            assert!(!told, "{} tells the secret", entry.path().display());
        }
    }
}

fn lives(seed: u64) {
    let mut dice = Dice::new(seed);
    let mut world = World::new(&mut dice);
    let lived = std::panic::AssertUnwindSafe(|| {
        let _ = world.live(&mut dice);
        world.no_work_is_lost();
        let fsck = ["fsck", "--strict", "--no-dangling", "--no-progress"];
        assert_eq!(world.project.git(&fsck), "");
    });
    if let Err(panic) = std::panic::catch_unwind(lived) {
        let once = "SPRAG_TEST_RUNS=1 cargo test --test integration soak";
        eprintln!(
            "{}\nseed {seed}: again with SPRAG_TEST_SEED={seed} {once}",
            world.told
        );
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn whatever_happens_to_a_run_what_it_promises_holds() {
    let first = number("SPRAG_TEST_SEED").unwrap_or(1);
    let default = if is_full() { RUNS.1 } else { RUNS.0 };
    let count = number("SPRAG_TEST_RUNS").unwrap_or(default);
    each(usize::try_from(count).unwrap(), |n| lives(first + n as u64));
    eprintln!("{count} runs, seeds from {first}: all kept what is promised");
}
