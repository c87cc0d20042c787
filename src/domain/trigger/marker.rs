//! The state that Sprag keeps in its own comment between runs: one invisible HTML comment in the first line.
//! Readers must check that the comment is Sprag's own. Even then other workflows of the repository can have written
//! it, so it holds counts, ids and titles, but no text that an agent gets.

pub use super::run_name::MARKER;
use super::run_name::RunName;
use super::{Request, head};
use crate::outcome::RunStatus;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The beginning of a review posted by a run, see [`super::run_name::RunName::review_marker`].
const OWN: &str = "<!-- sprag:review ";

/// The maximum size of a marker in bytes: a quarter of a comment's maximum size.
pub const MAX_MARKER_BYTES: usize = 16 * 1024;

const CLOSE: &str = " -->";
const MAX_ANSWERED: usize = 200;
const MAX_DAYS: usize = 7;
const MAX_DONE: usize = 50;
const MAX_WORD_BYTES: usize = 200;

/// The state of the runs on one issue or pull request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The keys of the requests that were answered, newest last: see
    /// [`super::triage::Candidate::answer_key`].
    pub answered: Vec<String>,
    /// The number of consecutive runs that no person started.
    pub depth: u32,
    /// The number of runs per day (UTC, `2026-01-31`), for the newest seven days.
    pub runs_by_day: BTreeMap<String, u32>,
    /// The status of the last run; `None` while a run is in progress or before the first.
    pub last_status: Option<RunStatus>,
    /// The key of the request of the last run, for `retry` and `continue`, which read it again.
    pub asked: Option<String>,
    /// Whether the last run ended with a question, for `answer`.
    pub asks: bool,
    /// The workflow run of the run that is in progress, for `stop`.
    pub workflow_run: Option<u64>,
    /// The check run of the last run.
    pub check_run_id: Option<u64>,
    /// The titles of the tasks in an issue's plan that are done and pushed, for `continue`.
    pub done: Vec<String>,
}

/// A run that starts.
#[derive(Debug, Clone, Copy)]
pub struct Begin<'a> {
    /// The current day (UTC, `2026-01-31`).
    pub day: &'a str,
    /// The key of the request that it answers.
    pub answers: Option<&'a str>,
    /// Whether no person requested it.
    pub by_machine: bool,
    /// The request.
    pub request: &'a Request,
}

impl State {
    /// The state while the run is in progress. `retry` and `continue` keep the key of the last run's request.
    #[must_use]
    pub fn begin(mut self, run: &Begin<'_>) -> Self {
        self.depth = if run.by_machine {
            self.depth.saturating_add(1)
        } else {
            0
        };
        let today = self.runs_by_day.entry(run.day.to_owned()).or_default();
        *today = today.saturating_add(1);
        self.note_answered(run.answers);
        if *run.request != Request::Retry && !run.request.continues() {
            self.asked = run.answers.map(str::to_owned);
        }
        if !run.request.continues() {
            self.done.clear();
        }
        self.last_status = None;
        self.check_run_id = None;
        self.bounded()
    }

    /// The state before a run that has already started, so that the job that reports its end does not count
    /// it again. Unchanged if the state does not contain the run.
    #[must_use]
    pub fn before(mut self, run: &Begin<'_>) -> Self {
        let Some(key) = run.answers.filter(|key| self.has_answered(key)) else {
            return self;
        };
        self.answered.retain(|known| known != key);
        if let Some(runs) = self.runs_by_day.get_mut(run.day) {
            *runs = runs.saturating_sub(1);
        }
        if run.by_machine {
            self.depth = self.depth.saturating_sub(1);
        }
        self
    }

    /// Records that a key was answered.
    pub fn note_answered(&mut self, key: Option<&str>) {
        if let Some(key) = key {
            self.answered.retain(|known| known != key);
            self.answered.push(key.to_owned());
        }
    }

    /// Records the titles of the plan's completed tasks, which a later `continue` leaves out.
    pub fn note_done<'a>(&mut self, titles: impl IntoIterator<Item = &'a str>) {
        let kept = |title: &str| head(title, MAX_WORD_BYTES).to_owned();
        self.done = titles.into_iter().map(kept).collect();
    }

    /// Whether a task was done by the runs that `continue` resumes.
    pub fn is_done(&self, title: &str) -> bool {
        let title = head(title, MAX_WORD_BYTES);
        self.done.iter().any(|done| done == title)
    }

    /// The state after the run ended.
    #[must_use]
    pub fn end(mut self, status: RunStatus) -> Self {
        // A run that could not work leaves the question of the run before it open.
        self.asks &= matches!(status, RunStatus::Environment | RunStatus::Cancelled);
        self.last_status = Some(status);
        self.workflow_run = None;
        self
    }

    /// Whether a key was answered before.
    pub fn has_answered(&self, key: &str) -> bool {
        self.answered.iter().any(|known| known == key)
    }

    /// The number of runs on a day.
    pub fn runs_on(&self, day: &str) -> u32 {
        self.runs_by_day.get(day).copied().unwrap_or_default()
    }

    /// The state with only the newest entries of its lists.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let word = |text: &mut String| text.truncate(head(text, MAX_WORD_BYTES).len());
        keep_newest(&mut self.answered, MAX_ANSWERED);
        self.done.truncate(MAX_DONE);
        self.done.iter_mut().for_each(word);
        self.answered.iter_mut().for_each(word);
        while self.runs_by_day.len() > MAX_DAYS {
            self.runs_by_day.pop_first();
        }
        self.runs_by_day
            .retain(|day, _| day.len() <= MAX_WORD_BYTES);
        self
    }

    /// The first line of the comment for runs with this name, without a line end, of at most
    /// [`MAX_MARKER_BYTES`]. The oldest entries are left out if there is no room.
    pub fn encode(&self, name: &RunName) -> String {
        let open = name.marker();
        let mut state = self.clone().bounded();
        loop {
            // Base64 has neither `--` nor `>`, so nothing in the state can end the comment.
            let json = serde_json::to_vec(&state).unwrap_or_default();
            let line = format!("{open}{}{CLOSE}", STANDARD.encode(json));
            if line.len() <= MAX_MARKER_BYTES {
                return line;
            }
            if state.answered.len() > 20 {
                let half = state.answered.len() / 2;
                keep_newest(&mut state.answered, half);
            } else if !state.done.is_empty() {
                state.done.clear();
            } else {
                state = Self::default();
            }
        }
    }
}

fn keep_newest(list: &mut Vec<String>, most: usize) {
    list.drain(..list.len().saturating_sub(most));
}

/// Whether a comment's first line marks it as Sprag's.
pub fn is_marked(body: &str) -> bool {
    body.starts_with(MARKER) || body.starts_with(OWN)
}

/// The state in the first line of a comment for runs with this name. `None` if there is none, or none that
/// this version can read.
pub fn decode(body: &str, name: &RunName) -> Option<State> {
    let line = body.split(['\n', '\r']).next().unwrap_or_default();
    if line.len() > MAX_MARKER_BYTES {
        return None;
    }
    let text = line
        .strip_prefix(&name.marker())?
        .trim_end()
        .strip_suffix(CLOSE)?;
    let json = STANDARD.decode(text).ok()?;
    let state: State = serde_json::from_slice(&json).ok()?;
    Some(state.bounded())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name() -> RunName {
        RunName::of_job(Some("CI"), Some("fix"))
    }

    fn line(state: &State) -> String {
        state.encode(&name())
    }

    fn begun(state: State, key: &str, by_machine: bool) -> State {
        state.begin(&Begin {
            day: "2026-01-31",
            answers: Some(key),
            by_machine,
            request: &Request::Instruction("fix -- it -->".to_owned()),
        })
    }

    #[test]
    fn a_run_that_is_told_of_by_another_job_is_counted_once() {
        for by_machine in [false, true] {
            let run = Begin {
                day: "2026-01-31",
                answers: Some("comment-1"),
                by_machine,
                request: &Request::IssuePlan,
            };
            let before = begun(State::default(), "comment-0", true);
            let once = before.clone().begin(&run);
            assert_eq!(once.clone().before(&run).begin(&run), once);
            assert_eq!(before.clone().before(&run), before);
        }
    }

    #[test]
    fn runs_are_counted() {
        let state = begun(State::default(), "comment:1", true);
        let state = begun(state, "comment:2", true);
        assert_eq!((state.depth, state.runs_on("2026-01-31")), (2, 2));
        assert!(state.has_answered("comment:1") && !state.has_answered("comment:3"));
        let state = begun(state, "comment:1", false).end(RunStatus::Failed);
        assert_eq!(state.depth, 0);
        assert_eq!(state.answered, ["comment:2", "comment:1"]);
    }

    #[test]
    fn continue_alone_keeps_what_is_done() {
        let mut state = begun(State::default(), "comment:1", false);
        let long = "x".repeat(MAX_WORD_BYTES + 1);
        state.note_done(["Write it", &long]);
        let state = decode(&line(&state.end(RunStatus::Partial)), &name()).unwrap();
        assert!(state.is_done("Write it") && state.is_done(&long) && !state.is_done("Test it"));
        for (request, kept) in [
            (Request::Continue, 2),
            (Request::Retry, 0),
            (Request::IssuePlan, 0),
        ] {
            let next = state.clone().begin(&Begin {
                day: "2026-02-01",
                answers: None,
                by_machine: false,
                request: &request,
            });
            assert_eq!(next.done.len(), kept, "{request:?}");
        }
    }

    #[test]
    fn retry_keeps_what_was_asked_for() {
        let state = begun(State::default(), "comment:1", false);
        let again = state.clone().begin(&Begin {
            day: "2026-02-01",
            answers: None,
            by_machine: false,
            request: &Request::Retry,
        });
        assert_eq!(again.asked.as_deref(), Some("comment:1"));
    }

    #[test]
    fn only_the_first_line_counts() {
        let line = line(&State::default());
        let decode = |body: &str| decode(body, &name());
        assert_eq!(decode(&format!("{line}\r\ntext")), Some(State::default()));
        let of_other = State::default().encode(&RunName::chosen("other"));
        assert_eq!(decode(&of_other), None);
        assert!(is_marked(&of_other));
        for body in [
            format!("text\n{line}"),
            format!(" {line}"),
            format!("> {line}"),
            line.replace("v2", "v3"),
            "<!-- sprag:state v1 e30= -->".to_owned(),
            format!("{} -->", name().marker()),
            format!("{}e30", name().marker()),
            String::new(),
        ] {
            assert_eq!(decode(&body), None, "{body}");
        }
        assert!(is_marked(&line.replace("v2", "v3")) && !is_marked(" <!-- sprag:state v2"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn states_come_back(
            answered in prop::collection::vec(any::<u64>(), 0..300),
            long in "\\PC{0,300}",
            depth: u32,
            days in prop::collection::btree_map("[0-9-]{0,12}", any::<u32>(), 0..12),
        ) {
            let mut answered: Vec<String> = answered.iter().map(|id| format!("comment:{id}")).collect();
            answered.push(long.clone());
            let state = State {
                answered, depth, runs_by_day: days,
                asked: Some(long.chars().take(20).collect()),
                last_status: Some(RunStatus::Blocked),
                ..State::default()
            };
            let line = line(&state);
            prop_assert!(line.len() <= MAX_MARKER_BYTES);
            prop_assert!(!line.trim_start_matches("<!--").trim_end_matches("-->").contains("--"));
            prop_assert!(!line.contains('\n'));
            let back = decode(&line, &name()).expect("it decodes");
            prop_assert_eq!(back.depth, depth);
            prop_assert_eq!(back.encode(&name()), line);
            if state.answered.len() <= 10 {
                prop_assert_eq!(back, state.bounded());
            }
        }

        #[test]
        fn no_marker_is_too_strange(begins: bool, rest in "(\\PC|\n)*( -->)?") {
            let begin = if begins { name().marker() } else { String::new() };
            let _ = decode(&format!("{begin}{rest}"), &name());
        }
    }

    #[test]
    fn a_state_that_is_too_large_loses_what_is_oldest() {
        let answered = (0..200)
            .map(|n| format!("{n}:{}", "x".repeat(190)))
            .collect();
        let line = State {
            answered,
            done: vec!["y".repeat(190); 50],
            ..State::default()
        }
        .encode(&name());
        assert!(line.len() <= MAX_MARKER_BYTES);
        let back = decode(&line, &name()).expect("it decodes");
        assert!(
            back.answered
                .last()
                .expect("some are left")
                .starts_with("199:")
        );
    }
}
