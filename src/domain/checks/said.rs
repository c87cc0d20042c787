//! What the output of a check says about its tests.

use super::counts::Counts;
use super::tools::{TABLE, hollow_results};
use super::unfinished::is_unfinished;
use crate::pattern::Pattern;
use crate::text;
use serde::{Deserialize, Serialize};

/// The words with which test runners say that they ran no test.
static NO_TEST: Pattern = Pattern::new(
    r"(?i)\bno (?:matching )?(?:tests?|examples|specs) (?:cases? |files? |suites? |specs? )?(?:(?:is|are|were|was|have been) )?(?:available|collected|defined|discovered|executed|found|ran|run|selected|to run)\b|\[no test files\]|^Result: NOTESTS\b|\btests are skipped\b|:test NO-SOURCE\b|\b(?:collected|executed|found|ran|running) (?:0|zero) tests?\b",
);

/// What one run of a check reported about its tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Said {
    /// Whether a known tool reported the result of its tests.
    pub is_reported: bool,
    /// Whether tests have begun of which what is kept of a long output does not show the end.
    #[serde(default)]
    pub is_open: bool,
    /// Results that stand for a file in which no test ran, as `node --test` reports them.
    pub hollow: u64,
    /// Whether the output says in words that no test ran, and no tool reports a number of tests.
    #[serde(default)]
    pub says_none_ran: bool,
}

impl Said {
    /// What the output of the command `run` says. `report` has the numbers of the check's report files, if it wrote
    /// any. An output that is not whole may have had the missing end of its tests in the middle.
    pub fn read(run: &str, output: &str, is_whole: bool, report: Option<Counts>) -> Self {
        let plain = text::plain(output);
        let lines: Vec<&str> = plain.lines().collect();
        let is_reported =
            report.is_some() || TABLE.iter().any(|tool| tool.counts(&lines).is_some());
        Self {
            is_reported,
            says_none_ran: !is_reported && lines.iter().any(|line| NO_TEST.is_match(line)),
            is_open: !is_whole && report.is_none() && is_unfinished(run, output),
            hollow: match report {
                Some(_) => 0,
                None => hollow_results(&lines),
            },
        }
    }
}
