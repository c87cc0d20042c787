//! What a large plan costs: `cargo bench --bench plan`.
//!
//! Prints how long it takes to load a plan (reading and checking it), to put its tasks in order, to
//! step through them, and to write the state of one task and of many, for growing numbers of tasks.
//! Each time should grow as the number of tasks does.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and gives up loudly"
)]

use sprag::domain::outcome::Outcome;
use sprag::domain::plan::{Plan, StatusUpdate, TaskStatus, parse, selection, set_statuses};
use sprag::domain::schedule::{Item, Rules, Schedule, TaskStep};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs of which the fastest counts: the others were disturbed.
const RUNS: usize = 5;

/// Tasks whose states are written at once.
const STATES: usize = 25;

fn main() {
    println!("| tasks | load and check, ms | order | schedule | one state | {STATES} states |");
    println!("|--:|--:|--:|--:|--:|--:|");
    for tasks in [1_250, 2_500, 5_000] {
        let text = plan(tasks);
        let read = parse("plan.yaml", text.as_bytes()).unwrap().value;
        let load = fastest(|| drop(black_box(parse("plan.yaml", text.as_bytes()).unwrap())));
        let order = fastest(|| drop(black_box(selection(&read, &[]).unwrap())));
        let schedule = fastest(|| assert_eq!(step_through(&read), tasks));
        let one = fastest(|| drop(black_box(with_states(&read, &text, 1))));
        let many = fastest(|| drop(black_box(with_states(&read, &text, STATES))));
        println!("| {tasks} | {load} | {order} | {schedule} | {one} | {many} |");
    }
}

/// A chain of tasks that depend on two others each.
fn plan(tasks: usize) -> String {
    let mut text = String::from("title: Large\nverify: ['true']\ntasks:\n");
    for n in 1..=tasks {
        let _ = writeln!(text, "  - id: t{n}\n    title: Task {n} of many");
        let _ = writeln!(
            text,
            "    description: Do what is to be done for number {n}"
        );
        let _ = writeln!(text, "    acceptance: [it works, it is tested]");
        match n {
            1 => {}
            2..=4 => drop(writeln!(text, "    depends_on: [t{}]", n - 1)),
            _ => drop(writeln!(text, "    depends_on: [t{}, t{}]", n - 1, n / 2)),
        }
    }
    text
}

fn step_through(plan: &Plan) -> usize {
    let items: Vec<Item> = selection(plan, &[])
        .unwrap()
        .into_iter()
        .map(|task| Item {
            id: task.id.to_string(),
            depends_on: task.depends_on.iter().map(ToString::to_string).collect(),
        })
        .collect();
    let (rules, done) = (Rules::default(), Outcome::Verified { commit: None });
    let mut schedule = Schedule::new(&items, &BTreeSet::new(), &BTreeMap::new(), &rules);
    let mut steps = 0;
    while let TaskStep::Run(id) = schedule.next_task() {
        schedule.end(&id, &done);
        steps += 1;
    }
    steps
}

fn with_states(plan: &Plan, text: &str, states: usize) -> String {
    let update = StatusUpdate {
        status: TaskStatus::Done,
        attempts: Some(1),
        completed_at: Some("2000-01-01T00:00:00Z".into()),
    };
    let updates: Vec<_> = plan
        .tasks
        .iter()
        .take(states)
        .map(|task| (&task.id, &update))
        .collect();
    set_statuses("plan.yaml", text, &updates).unwrap()
}

fn fastest(mut work: impl FnMut()) -> String {
    let time = |work: &mut dyn FnMut()| {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    let best = (0..RUNS)
        .map(|_| time(&mut work))
        .min()
        .unwrap_or(Duration::ZERO);
    format!("{:.1}", best.as_secs_f64() * 1000.0)
}
