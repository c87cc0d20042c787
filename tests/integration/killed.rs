//! A run killed at any moment and taken up again, as often as it takes, ends as if nothing had
//! happened: the same tree, plan, statuses and report, and one commit a task.
//!
//! `SPRAG_TEST_FULL=1` (scripts/test-full) kills at every event and every record of each story, and at 200 random moments;
//! `SPRAG_TEST_SEED` and `SPRAG_TEST_KILLS` choose others.

use crate::support::kill::{
    Dice, Hit, Moment, assert_same_end, each, end_of, has_reported_its_end, killed, lines,
};
use crate::support::project::{Project, Run};
use crate::support::{is_full, number};
use serde_json::Value;
use std::time::Duration;

/// Random kills in the default run of the tests, and with `SPRAG_TEST_FULL`.
const KILLS: (u64, u64) = (3, 200);

/// What is worked on.
struct Story {
    name: &'static str,
    plan: &'static str,
    agent: &'static str,
    flags: &'static [&'static str],
    code: i32,
}

/// Three tasks with set-up, hook, check artifacts and a process left behind by each turn. The first is
/// planned only, then done wrong, then mended.
const MENDED: Story = Story {
    name: "mended",
    plan: "title: Example
setup: [ 'echo made > from-setup' ]
verify:
  - name: test
    run: 'echo dropping > dropping; ! grep -q broken a.txt'
    kind: test
tasks:
  - id: one
    title: Mend a.txt
  - id: two
    title: Write b.txt
  - id: three
    title: Nothing to do
",
    agent: r#"sleep 300 > /dev/null 2>&1 &
case "$SPRAG_TASK_ID-$SPRAG_PURPOSE" in
  one-implement) echo 'Plan: I will edit a.txt.' ;;
  one-nudge) echo broken > a.txt; echo Done. ;;
  one-retry) echo fixed > a.txt; echo Done. ;;
  two-*) echo text > b.txt; echo Done. ;;
  three-*) echo 'ALREADY_SATISFIED: it is there' ;;
esac"#,
    flags: &[],
    code: 0,
};

/// The first task fails and its work is put aside, the second holds a commit of the agent's, the
/// third cannot be worked on, the fourth is blocked.
const KEPT_GOING: Story = Story {
    name: "kept going",
    plan: "title: Example
verify:
  - { name: test, run: '! grep -q broken a.txt', kind: test }
tasks:
  - id: one
    title: Mend a.txt
  - id: two
    title: Write b.txt
  - id: three
    title: Go on with a.txt
    depends_on: [ one ]
  - id: four
    title: Write d.txt
",
    agent: r#"rm -f .git/*.lock .git/refs/heads/*.lock
case "$SPRAG_TASK_ID" in
  one) echo broken > a.txt; echo new > new.txt; echo Done. ;;
  two) echo text > b.txt; git add b.txt; git commit -q -m own > /dev/null 2>&1; echo more > c.txt; echo Done. ;;
  four) echo half > d.txt; echo 'FAILED: no key' ;;
esac"#,
    flags: &["--keep-going", "--max-retries", "0"],
    code: 3,
};

/// A reviewer that changes what it may not, finds something and then accepts the fix.
const REVIEWED: Story = Story {
    name: "reviewed",
    plan: "title: Example
review: true
roles: { tester: {} }
verify:
  - { name: test, run: '! grep -q broken a.txt', kind: test }
tasks:
  - id: one
    title: Mend a.txt
",
    agent: r#"rm -f .git/*.lock .git/refs/heads/*.lock
case "$SPRAG_ROLE-$SPRAG_PURPOSE" in
  implementer-implement) echo broken > a.txt; echo Done. ;;
  implementer-retry) echo better > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Mend it' ;;
  tester-*) mkdir -p tests; echo true > tests/t.sh; echo Done. ;;
  fixer-*) echo good > a.txt; echo Done. ;;
  reviewer-*) if grep -q good a.txt; then verdict=ACCEPTABLE; else verdict=NEEDS_FIXES; echo '- a.txt:1: weak'; fi
    echo mine > a.txt; echo x > x.txt; git add -A; git commit -q -m own > /dev/null 2>&1; echo "VERDICT: $verdict" ;;
esac"#,
    flags: &[],
    code: 0,
};

/// A test that fails, the work, and an improvement that is undone.
const TESTS_FIRST: Story = Story {
    name: "tests first",
    plan: "title: Example
tdd: true
verify:
  - { name: test, run: 'for t in tests/*.sh; do sh $t || exit 1; done', kind: test }
tasks:
  - id: one
    title: Mend a.txt
",
    agent: r#"rm -f .git/*.lock
case "$SPRAG_PURPOSE" in
  red) mkdir -p tests; echo 'grep -q good a.txt' > tests/t.sh; echo bad > a.txt; echo Done. ;;
  nudge) echo 'The test is there.' ;;
  green) echo good > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Mend it' ;;
  refactor) echo worse > a.txt; echo x > x.txt; echo Done. ;;
esac"#,
    flags: &[],
    code: 0,
};

impl Story {
    fn project(&self) -> (Project, String) {
        let project = Project::new(&[("a.txt", "old\n"), ("plan.yaml", self.plan)]);
        project.git(&["tag", "base"]);
        project.hook("pre-commit", "exit 0");
        let agent = project.agent(self.agent);
        (project, agent)
    }

    fn begun<'a>(&'a self, agent: &'a str) -> Vec<&'a str> {
        let given = ["run", "--plan", "plan.yaml", "--agent-command", agent];
        [&given[..], self.flags].concat()
    }

    /// The end of a run that nobody disturbed, and the lines of its history and of its events.
    fn undisturbed(&self) -> (Value, [usize; 2]) {
        let (project, agent) = self.project();
        let run = project.sprag(&self.begun(&agent)).expect(self.code);
        let lines = ["history.jsonl", "state/events.jsonl"].map(|file| lines(&project, file));
        (end_of(&project, &run), lines)
    }

    /// Kills at each of these moments, the later ones in the resumed run, and goes on to the end.
    fn survives(&self, moments: &mut dyn FnMut(usize) -> Option<Moment>) -> (Value, String) {
        let (project, agent) = self.project();
        let mut told = String::new();
        let mut there = 0;
        loop {
            let is_begun = !project.run_dirs().is_empty();
            let args = if is_begun {
                vec!["run", "--resume"]
            } else {
                self.begun(&agent)
            };
            let Some(moment) = moments(there) else {
                let run = project.sprag(&args);
                let shown = format!("{told}\n{}\n{}", run.stdout, run.stderr);
                return (self.checked(&project, &run, &shown), shown);
            };
            told += &format!("{moment:?}\n");
            if let Some(code) = killed(&project, &args, moment) {
                told += &format!("it had ended with {code}\n");
                assert_eq!(code, self.code, "{}: {told}", self.name);
                let run = project.left(code);
                return (self.checked(&project, &run, &told), told);
            }
            if has_reported_its_end(&project) {
                let run = project.left(self.code);
                return (self.checked(&project, &run, &told), told);
            }
            there = lines(&project, moment.file);
        }
    }

    fn checked(&self, project: &Project, run: &Run, shown: &str) -> Value {
        assert!(!run.stderr.contains("panicked"), "{shown}");
        assert_eq!(run.code, self.code, "{}: {shown}", self.name);
        end_of(project, run)
    }
}

/// Kills once at every `step`th line of one of the two records, from 0: before the first.
fn killed_at_each_line(story: &Story, which: usize, file: &'static str, step: usize) {
    let (expected, lines) = story.undisturbed();
    assert!(lines[which] > 15, "{lines:?}");
    each(lines[which] / step + 1, |n| {
        let n = n * step;
        let mut moments = Some(Moment {
            file,
            lines: n,
            after: Duration::ZERO,
            hit: [Hit::Sprag, Hit::All][n / step % 2],
        });
        let (end, told) = story.survives(&mut |_| moments.take());
        assert_same_end(&end, &expected, &format!("{}: {told}", story.name));
    });
}

/// Every twelfth record in the default run of the tests.
fn step() -> usize {
    if is_full() { 1 } else { 12 }
}

#[test]
fn killed_at_records() {
    killed_at_each_line(&MENDED, 0, "history.jsonl", step());
}

#[test]
fn killed_at_records_and_kept_going() {
    killed_at_each_line(&KEPT_GOING, 0, "history.jsonl", step());
}

#[test]
fn killed_at_records_and_reviewed() {
    killed_at_each_line(&REVIEWED, 0, "history.jsonl", step());
}

#[test]
fn killed_at_records_with_tests_first() {
    killed_at_each_line(&TESTS_FIRST, 0, "history.jsonl", step());
}

/// At every event in the full run of the tests, at some in the default one.
#[test]
fn killed_at_events() {
    let step = if is_full() { 1 } else { 40 };
    killed_at_each_line(&MENDED, 1, "state/events.jsonl", step);
    killed_at_each_line(&KEPT_GOING, 1, "state/events.jsonl", step);
}

/// One to three kills at moments that follow from the seed.
fn killed_at_random(seed: u64, story: &Story, expected: &Value, lines: [usize; 2]) {
    let mut dice = Dice::new(seed);
    let mut kills = [1, 1, 2, 3][usize::try_from(dice.below(4)).unwrap()];
    let most = u64::try_from(lines[0].max(lines[1])).unwrap();
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let (end, told) = story.survives(&mut |there| {
            let again = there > 0;
            let moment = dice.moment(there, if again { most / 3 } else { most });
            kills -= 1;
            (kills >= 0).then_some(moment)
        });
        assert_same_end(&end, expected, &told);
    }));
    if let Err(panic) = done {
        let once = "SPRAG_TEST_KILLS=1 cargo test --test integration killed::at_random";
        eprintln!(
            "seed {seed} ({}): again with SPRAG_TEST_SEED={seed} {once}",
            story.name
        );
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn at_random_moments() {
    let first = number("SPRAG_TEST_SEED").unwrap_or(1);
    let default = if is_full() { KILLS.1 } else { KILLS.0 };
    let count = number("SPRAG_TEST_KILLS").unwrap_or(default);
    let stories = [
        (&MENDED, MENDED.undisturbed()),
        (&KEPT_GOING, KEPT_GOING.undisturbed()),
    ];
    each(usize::try_from(count).unwrap(), |n| {
        let seed = first + u64::try_from(n).unwrap();
        let (story, (expected, lines)) = &stories[usize::from(seed.is_multiple_of(3))];
        killed_at_random(seed, story, expected, *lines);
    });
    eprintln!(
        "{count} runs killed at random moments, seeds from {first}: all ended as if undisturbed"
    );
}
