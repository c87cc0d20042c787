//! The order of tasks in a run: dependencies, `keep_going` and the end of the plan.

use super::outcome::{Outcome, RunStatus, TaskEnd};
use super::settings::OnFinding;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A task, as far as the schedule needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: String,
    /// Ids of the tasks that must be done first.
    pub depends_on: Vec<String>,
}

/// The run's settings, as far as the schedule needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Whether to continue after a failed task.
    pub keep_going: bool,
    /// How to treat a task that changed nothing.
    pub no_changes: OnFinding,
    /// Tasks that were selected by name: they ignore dependencies that were not selected.
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
    /// No task is left.
    End,
}

/// The tasks of a run that are still to come. Each task is visited once.
#[derive(Debug)]
pub struct Schedule<'p> {
    left: std::slice::Iter<'p, Item>,
    selected: HashSet<&'p str>,
    rules: &'p Rules,
    ended: HashSet<String>,
    done: HashSet<String>,
    stopped: bool,
}

impl<'p> Schedule<'p> {
    /// Creates a schedule from the selected tasks in order, the ids of the tasks that were done before the
    /// run, and the outcomes from an earlier process of the run.
    pub fn new(
        order: &'p [Item],
        done_before: &BTreeSet<String>,
        outcomes: &BTreeMap<String, Outcome>,
        rules: &'p Rules,
    ) -> Self {
        let mut schedule = Self {
            left: order.iter(),
            selected: order.iter().map(|item| item.id.as_str()).collect(),
            rules,
            ended: HashSet::new(),
            done: done_before.iter().cloned().collect(),
            stopped: false,
        };
        for (id, outcome) in outcomes {
            schedule.end(id, outcome);
        }
        schedule
    }

    /// Records how a task ended.
    pub fn end(&mut self, id: &str, outcome: &Outcome) {
        let status = outcome.run_status(self.rules.no_changes);
        self.stopped |= outcome.ends_run() || !(status.is_complete() || self.rules.keep_going);
        // Tasks that depend on one that changed nothing and did not have to run too.
        if outcome.task_end() == TaskEnd::Done || status == RunStatus::NoWork {
            self.done.insert(id.to_owned());
        }
        self.ended.insert(id.to_owned());
    }

    /// The next step. Its task must end before the next call.
    pub fn next_task(&mut self) -> TaskStep {
        if self.stopped {
            return TaskStep::End;
        }
        let Some(item) = self.left.find(|item| !self.ended.contains(&item.id)) else {
            return TaskStep::End;
        };
        let is_alone = self.rules.alone.contains(&item.id);
        let counts = |id: &str| !is_alone || self.selected.contains(id);
        let undone = |id: &&String| counts(id.as_str()) && !self.done.contains(*id);
        match item.depends_on.iter().find(undone) {
            Some(on) => TaskStep::Skip {
                id: item.id.clone(),
                on: on.clone(),
            },
            None => TaskStep::Run(item.id.clone()),
        }
    }
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
        run_after(&BTreeMap::new(), items, outcome_of, rules)
    }

    fn run_after(
        earlier: &BTreeMap<String, Outcome>,
        items: &[Item],
        outcome_of: impl Fn(&str) -> Outcome,
        rules: &Rules,
    ) -> Vec<String> {
        let mut schedule = Schedule::new(items, &BTreeSet::new(), earlier, rules);
        let mut log = Vec::new();
        for _ in 0..100 {
            match schedule.next_task() {
                TaskStep::Run(id) => {
                    log.push(format!("run {id}"));
                    schedule.end(&id, &outcome_of(&id));
                }
                TaskStep::Skip { id, on } => {
                    log.push(format!("skip {id} for {on}"));
                    schedule.end(&id, &Outcome::DependencyFailed { on });
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
    fn what_an_earlier_process_has_done_is_done() {
        let items = items(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        let rules = Rules::default();
        let earlier = |outcome| BTreeMap::from([("a".to_owned(), outcome)]);
        assert_eq!(
            run_after(&earlier(done("a")), &items, done, &rules),
            ["run b", "run c", "end"]
        );
        let failed = earlier(Outcome::VerificationFailed);
        assert_eq!(run_after(&failed, &items, done, &rules), ["end"]);
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
    fn tasks_asked_for_together_wait_for_each_other() {
        let items = items(&[("b", &["a"]), ("c", &["b"])]);
        let rules = Rules {
            keep_going: true,
            alone: BTreeSet::from(["b".to_owned(), "c".to_owned()]),
            ..Rules::default()
        };
        assert_eq!(
            run(&items, second_fails, &rules),
            ["run b", "skip c for b", "end"]
        );
    }

    #[test]
    fn a_task_that_changed_nothing_stops_the_run_only_where_that_is_a_failure() {
        let items = items(&[("a", &[]), ("b", &["a"])]);
        let idle = |_: &str| Outcome::PlanningOnly;
        assert_eq!(run(&items, idle, &Rules::default()), ["run a", "end"]);
        let rules = Rules {
            no_changes: OnFinding::Ok,
            ..Rules::default()
        };
        assert_eq!(run(&items, idle, &rules), ["run a", "run b", "end"]);
    }
}
