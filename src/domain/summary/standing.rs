//! The standing of a task: the one value from which every report takes the task's symbol, colour and word.

use super::{RunSummary, TaskSummary, TurnSummary};
use crate::attempt::Role;
use crate::outcome::{Conclusion, Reason, RunStatus, TaskEnd, listed};
use crate::review;
use crate::text::{count, some_of};
use std::collections::BTreeSet;

/// How a task stands. A report draws only [`Standing::Verified`] and [`Standing::DoneBefore`] as success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Standing {
    /// The task is done: the checks or the reviewer confirm it, or it was to draft a plan, which is valid.
    #[strum(serialize = "done")]
    Verified,
    /// The task was done before the run began.
    #[strum(serialize = "done")]
    DoneBefore,
    /// The work is accepted, and nothing confirms it.
    #[strum(serialize = "not verified")]
    Unverified,
    /// The task asked a question, and the agent answered it.
    Answered,
    /// The task only reviews, and the reviewer does not accept the change.
    Reviewed,
    /// The task failed.
    Failed,
    /// The work needs a permission.
    #[strum(serialize = "waits for you")]
    Waits,
    /// The task is blocked until a person acts.
    Blocked,
    /// The task is still to be done.
    Pending,
    /// The task was left out because a task that it depends on is not done.
    Skipped,
}

/// The colour in which every report draws a task or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hue {
    /// It is done.
    Green,
    /// A person should look at it, or has to act.
    Amber,
    /// It failed.
    Red,
    /// It is not finished.
    Grey,
}

impl Standing {
    /// Its colour.
    pub fn hue(self) -> Hue {
        match self {
            Self::Verified | Self::DoneBefore => Hue::Green,
            Self::Unverified | Self::Answered | Self::Reviewed | Self::Waits | Self::Blocked => {
                Hue::Amber
            }
            Self::Failed => Hue::Red,
            Self::Pending | Self::Skipped => Hue::Grey,
        }
    }

    /// The word for a person.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl TaskSummary {
    /// How the task stands.
    pub fn standing(&self) -> Standing {
        match self.status {
            TaskEnd::Done if self.reason.is_none() => Standing::DoneBefore,
            TaskEnd::Done if self.reason == Some(Reason::Answered) => Standing::Answered,
            TaskEnd::Done if self.verified || self.reason == Some(Reason::Drafted) => {
                Standing::Verified
            }
            TaskEnd::Done => Standing::Unverified,
            TaskEnd::Failed if self.is_review() => Standing::Reviewed,
            TaskEnd::Failed => Standing::Failed,
            TaskEnd::Blocked if self.reason == Some(Reason::NeedsPermission) => Standing::Waits,
            TaskEnd::Blocked => Standing::Blocked,
            TaskEnd::Pending => Standing::Pending,
            TaskEnd::Skipped => Standing::Skipped,
        }
    }

    /// Whether it has done nothing but a review that asks for changes.
    fn is_review(&self) -> bool {
        let by_reviewer = |turn: &TurnSummary| {
            let place = turn.place.as_ref();
            place.is_some_and(|place| place.role == Role::Reviewer)
        };
        self.reason == Some(Reason::ReviewFindings) && self.turns.iter().all(by_reviewer)
    }
}

impl RunSummary {
    /// The colour of the run.
    pub fn hue(&self) -> Hue {
        match self.status.map(RunStatus::conclusion) {
            None => Hue::Grey,
            _ if self.review_in_words().is_some() => Hue::Amber,
            Some(Conclusion::Success) => Hue::Green,
            Some(Conclusion::Failure) => Hue::Red,
            Some(_) => Hue::Amber,
        }
    }

    /// The findings of a run that only reviews and asks for changes, in words. Such a run has done its work.
    pub fn review_in_words(&self) -> Option<String> {
        let [task] = self.tasks.as_slice() else {
            return None;
        };
        let open = review::open(&task.findings).count() as u64;
        let is_incomplete = task.reviews.last().is_some_and(|review| review.incomplete);
        (task.standing() == Standing::Reviewed).then(|| match open {
            0 if is_incomplete => "the reviewer gave no verdict".to_owned(),
            _ => format!("{}, changes requested", count(open, "finding")),
        })
    }

    /// The tasks of several that failed or are blocked, in words.
    fn failed_in_words(&self) -> String {
        let words = [Standing::Failed, Standing::Blocked].map(|standing| {
            let tasks = self.tasks.iter().filter(|task| task.standing() == standing);
            match tasks.map(|task| task.id.as_str()).collect::<Vec<_>>() {
                ids if ids.is_empty() || self.tasks.len() == 1 => String::new(),
                ids => format!(", {} {}", some_of(&ids, 1), standing.as_str()),
            }
        });
        words.concat()
    }

    /// The tasks in words: `2 of 3 tasks done`, or each standing with its number if the work of a task is not
    /// verified or a task was only answered, since a count of done tasks would hide that.
    pub fn tasks_in_words(&self) -> String {
        let counted = self.counted_tasks();
        let tasks = self.tasks.iter();
        let held = tasks
            .filter(|task| task.status == TaskEnd::Done)
            .flat_map(|task| task.work.held.iter().flat_map(|held| &held.paths));
        let paths: BTreeSet<String> = held.map(|path| format!("`{path}`")).collect();
        let paths: Vec<String> = paths.into_iter().collect();
        let wait = match paths.len() {
            0 => return counted,
            1 => "waits",
            _ => "wait",
        };
        format!("{counted} without {}, which {wait} for you", listed(&paths))
    }

    fn counted_tasks(&self) -> String {
        let all = |standing| {
            self.tasks
                .iter()
                .filter(move |task| task.standing() == standing)
        };
        let of = |standing| all(standing).count() as u64;
        let (unverified, waiting) = (of(Standing::Unverified), of(Standing::Waits));
        let answered = of(Standing::Answered);
        if unverified + waiting + answered == 0 {
            let tasks = count(u64::from(self.totals.tasks), "task");
            let (done, failed) = (self.totals.done, self.failed_in_words());
            return format!("{done} of {tasks} done{failed}");
        }
        let committed = all(Standing::Unverified).filter(|task| task.commit.is_some());
        let committed = committed.count() as u64;
        let left = of(Standing::Pending) + of(Standing::Skipped);
        let parts = [
            (of(Standing::Verified), "verified"),
            (of(Standing::DoneBefore), "done before"),
            (committed, "committed but not verified"),
            (unverified - committed, "not verified"),
            (waiting, "waiting for you"),
            (answered, "answered without a change"),
            (left, "left"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| format!("{number} {word}"))
            .collect();
        parts.join(", ") + &self.failed_in_words()
    }
}

#[cfg(test)]
mod tests {
    use super::Standing;
    use crate::event::TaskLine;
    use crate::outcome::{Outcome, Reason, TaskEnd};
    use crate::summary::{RunSummary, TaskSummary};

    fn summary(ends: &[(TaskEnd, Option<Reason>, bool)]) -> RunSummary {
        let task = |(status, reason, verified): &(TaskEnd, Option<Reason>, bool)| {
            let line = TaskLine {
                id: "t1".into(),
                title: String::new(),
                done: false,
                selected: true,
                line: None,
                max_retries: 3,
            };
            TaskSummary {
                status: *status,
                reason: *reason,
                verified: *verified,
                commit: (*status == TaskEnd::Done).then(|| "9b1e44c".into()),
                ..TaskSummary::from_line(&line)
            }
        };
        let mut summary = RunSummary {
            tasks: ends.iter().map(task).collect(),
            ..RunSummary::default()
        };
        summary.totals.tasks = ends.len() as u32;
        summary.totals.done = ends
            .iter()
            .filter(|(end, ..)| *end == TaskEnd::Done)
            .count() as u32;
        summary
    }

    #[test]
    fn a_count_of_done_tasks_needs_all_of_them_verified() {
        let verified = (TaskEnd::Done, Some(Reason::Verified), true);
        let unverified = (TaskEnd::Done, Some(Reason::ChangedExpectations), false);
        let failed = (TaskEnd::Failed, Some(Reason::NoProgress), false);
        let before = (TaskEnd::Done, None, false);
        assert_eq!(
            summary(&[verified, before, failed]).tasks_in_words(),
            "2 of 3 tasks done, t1 failed"
        );
        assert_eq!(
            summary(&[verified, unverified, failed, before]).tasks_in_words(),
            "1 verified, 1 done before, 1 committed but not verified, t1 failed"
        );
        let blocked = (TaskEnd::Blocked, Some(Reason::NeedsAnswer), false);
        assert_eq!(
            summary(&[failed, failed, blocked, before]).tasks_in_words(),
            "1 of 4 tasks done, t1 and 1 more failed, t1 blocked"
        );
    }

    #[test]
    fn work_that_nothing_confirms_is_not_drawn_as_done() {
        let outcomes = [
            Outcome::Unverified {
                commit: None,
                accepted: true,
            },
            Outcome::KnownFailures {
                commit: None,
                tests: Vec::new(),
            },
            Outcome::AlreadySatisfied { verified: false },
        ];
        let standing = |outcome: &Outcome| {
            let end = (TaskEnd::Done, Some(outcome.reason()), outcome.is_verified());
            summary(&[end]).tasks[0].standing()
        };
        for outcome in &outcomes {
            assert_eq!(standing(outcome), Standing::Unverified, "{outcome:?}");
        }
        let verified = Outcome::AlreadySatisfied { verified: true };
        assert_eq!(standing(&verified), Standing::Verified);
    }
}
