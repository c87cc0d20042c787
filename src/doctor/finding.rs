//! The result of a check of `sprag doctor`.

use crate::error::Error;
use serde::Serialize;
use std::fmt::Display;

/// The state of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything is correct.
    Ok,
    /// A run can work, but the user should know about this.
    Warn,
    /// No run can work.
    Fail,
    /// The state could not be determined.
    Unknown,
}

/// The finding of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check. The names are stable.
    pub check: &'static str,
    /// The state.
    pub state: State,
    /// The finding in one line.
    pub found: String,
    /// The remedy, unless the state is `Ok`. Alternatives are on separate lines.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            state: State::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    pub(super) fn warn(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Warn,
            remedy: Some(remedy.into()),
            ..Self::ok(check, found)
        }
    }

    pub(super) fn fail(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Fail,
            ..Self::warn(check, found, remedy)
        }
    }

    pub(super) fn unknown(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: State::Unknown,
            ..Self::ok(check, found)
        }
    }

    /// A failure with the causes and hints of an error.
    pub(super) fn of_error(check: &'static str, error: &Error) -> Self {
        let found = error.without_hints();
        Self::fail(check, found, error.hints.join("\n"))
    }

    /// A failure if a run needs it, otherwise a warning.
    pub(super) fn bad(
        needed: bool,
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        if needed {
            Self::fail(check, found, remedy)
        } else {
            Self::warn(check, found, remedy)
        }
    }
}

/// The finding of a check that judges an answer, which is unknown without one.
pub(super) fn judged<T, E: Display>(
    check: &'static str,
    answer: Result<T, E>,
    judge: impl FnOnce(T) -> Finding,
) -> Finding {
    match answer {
        Ok(answer) => judge(answer),
        Err(error) => Finding::unknown(check, error.to_string()),
    }
}

/// Whether a run could work.
pub fn could_work(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Fail)
}
