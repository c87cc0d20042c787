//! How much a run asks of GitHub.

use super::pushes::{assert_checks_over, on_pull};
use crate::support::is_full;
use crate::support::runner::{Runner, Step};
use std::time::Instant;

/// A run of so many tasks, of which the first three need a retry.
fn many(runner: &mut Runner, tasks: u32) -> Step {
    let mut plan =
        "title: Many\nverify:\n  - { name: test, run: \"test ! -e wrong\" }\ntasks:\n".to_owned();
    for n in 1..=tasks {
        plan += &format!("  - {{ id: n{n}, title: Number {n} }}\n");
    }
    runner.push("feature", "plan.yaml", &plan);
    let agent = runner.project.agent(
        "echo $N > $SPRAG_TASK_ID.txt; rm -f wrong\n\
         case $SPRAG_TASK_ID-$SPRAG_ATTEMPT in n[123]-1) touch wrong;; esac",
    );
    runner.step(&["--plan", "plan.yaml", "--agent-command", &agent])
}

/// Requests of which something comes that a person sees, by GitHub's limits.
fn writes(runner: &Runner) -> usize {
    let requests = runner.github.requests();
    let writes = requests.iter().filter(|request| {
        request.method != "GET" && request.endpoint.as_deref() != Some("POST /graphql")
    });
    writes.count()
}

#[test]
fn a_run_of_many_tasks_takes_few_calls_and_stays_under_the_limit_of_a_minute() {
    // Two hundred take minutes; scripts/test-full has them.
    let tasks = if is_full() { 200 } else { 10 };
    let (mut runner, number, _) = on_pull();
    let start = Instant::now();
    let step = many(&mut runner, tasks).expect(0);
    let minutes = start.elapsed().as_secs() / 60 + 1;
    assert_eq!(step.output("tasks-done"), tasks.to_string());
    assert_eq!(step.output("retries"), "3");
    let (calls, writes) = (runner.github.requests().len(), writes(&runner));
    assert!(tasks > 10 || calls <= 25, "{calls} calls, {writes} writes");
    assert!(writes as u64 <= 20 + 5 * minutes, "{writes} in {minutes}");
    assert!(runner.comment(number).is_some());
    assert_checks_over(&runner);
}
