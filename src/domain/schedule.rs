//! What comes next across tasks: dependencies, keep-going and the end of the plan.

use super::outcome::{NoChanges, Outcome, RunStatus, TaskEnd};
use std::collections::{BTreeMap, BTreeSet};

/// What the schedule needs of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// Ids of tasks that must be done first.
    pub depends_on: Vec<String>,
}

/// What the schedule needs of the run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Go on after a failed task.
    pub keep_going: bool,
    /// What a task that changed nothing counts as.
    pub no_changes: NoChanges,
    /// Tasks whose dependencies do not count because they were asked for by name.
    pub alone: BTreeSet<String>,
}

/// The next step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStep {
    /// Work on this task.
    Run(String),
    /// This task cannot be worked on: a dependency failed.
    Skip {
        /// The task.
        id: String,
        /// The dependency.
        on: String,
    },
    /// Nothing is left to do.
    End,
}

/// The next step, from the selected tasks in order, the ids that were done before the run, and what
/// this run has brought so far.
pub fn next_task(
    order: &[Item],
    done_before: &BTreeSet<String>,
    outcomes: &BTreeMap<String, Outcome>,
    rules: &Rules,
) -> TaskStep {
    if outcomes.values().any(|outcome| stops(outcome, rules)) {
        return TaskStep::End;
    }
    let mut left = order.iter().filter(|item| !outcomes.contains_key(&item.id));
    let Some(item) = left.next() else {
        return TaskStep::End;
    };
    let undone = |id: &&String| {
        !done_before.contains(*id)
            && outcomes
                .get(*id)
                .is_none_or(|outcome| outcome.task_end() != TaskEnd::Done)
    };
    match item.depends_on.iter().find(undone) {
        Some(on) if !rules.alone.contains(&item.id) => TaskStep::Skip {
            id: item.id.clone(),
            on: on.clone(),
        },
        _ => TaskStep::Run(item.id.clone()),
    }
}

/// Whether the run goes no further after this outcome.
fn stops(outcome: &Outcome, rules: &Rules) -> bool {
    if outcome.ends_run() {
        return true;
    }
    let counts_as_failure = !matches!(
        outcome.run_status(rules.no_changes),
        RunStatus::Success | RunStatus::Unverified | RunStatus::NoWork
    );
    counts_as_failure && !rules.keep_going
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(spec: &[(&str, &[&str])]) -> Vec<Item> {
        spec.iter()
            .map(|(id, on)| Item {
                id: (*id).into(),
                depends_on: on.iter().map(|on| (*on).into()).collect(),
            })
            .collect()
    }

    fn run(items: &[Item], outcome_of: impl Fn(&str) -> Outcome, rules: &Rules) -> Vec<String> {
        let mut outcomes = BTreeMap::new();
        let mut log = Vec::new();
        for _ in 0..100 {
            match next_task(items, &BTreeSet::new(), &outcomes, rules) {
                TaskStep::Run(id) => {
                    log.push(format!("run {id}"));
                    let outcome = outcome_of(&id);
                    outcomes.insert(id, outcome);
                }
                TaskStep::Skip { id, on } => {
                    log.push(format!("skip {id} for {on}"));
                    outcomes.insert(id, Outcome::DependencyFailed { on });
                }
                TaskStep::End => {
                    log.push("end".into());
                    break;
                }
            }
        }
        log
    }

    fn done(_: &str) -> Outcome {
        Outcome::Verified { commit: None }
    }

    fn second_fails(id: &str) -> Outcome {
        match id {
            "b" => Outcome::VerificationFailed,
            _ => done(id),
        }
    }

    #[test]
    fn goes_through_all_tasks_in_order() {
        let items = items(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        assert_eq!(
            run(&items, done, &Rules::default()),
            ["run a", "run b", "run c", "end"]
        );
    }

    #[test]
    fn stops_after_a_failed_task() {
        let items = items(&[("a", &[]), ("b", &[]), ("c", &[])]);
        assert_eq!(
            run(&items, second_fails, &Rules::default()),
            ["run a", "run b", "end"]
        );
    }

    #[test]
    fn keep_going_skips_only_the_dependents_of_a_failed_task() {
        let items = items(&[
            ("a", &[]),
            ("b", &[]),
            ("c", &["b"]),
            ("d", &["c"]),
            ("e", &["a"]),
        ]);
        let rules = Rules {
            keep_going: true,
            ..Rules::default()
        };
        assert_eq!(
            run(&items, second_fails, &rules),
            [
                "run a",
                "run b",
                "skip c for b",
                "skip d for c",
                "run e",
                "end"
            ]
        );
    }

    #[test]
    fn a_cancel_ends_the_run_whatever_keep_going_says() {
        let items = items(&[("a", &[]), ("b", &[])]);
        let rules = Rules {
            keep_going: true,
            ..Rules::default()
        };
        let log = run(&items, |_| Outcome::Cancelled { signal: 2 }, &rules);
        assert_eq!(log, ["run a", "end"]);
    }

    #[test]
    fn a_task_asked_for_by_name_runs_alone() {
        let items = items(&[("b", &["a"])]);
        let rules = Rules {
            alone: BTreeSet::from(["b".to_owned()]),
            ..Rules::default()
        };
        assert_eq!(run(&items, done, &rules), ["run b", "end"]);
    }

    #[test]
    fn a_task_that_changed_nothing_stops_the_run_only_where_that_is_a_failure() {
        let items = items(&[("a", &[]), ("b", &[])]);
        let idle = |_: &str| Outcome::PlanningOnly;
        assert_eq!(run(&items, idle, &Rules::default()), ["run a", "end"]);
        let rules = Rules {
            no_changes: NoChanges::Ok,
            ..Rules::default()
        };
        assert_eq!(run(&items, idle, &rules), ["run a", "run b", "end"]);
    }
}
