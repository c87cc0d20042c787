//! What a check of `sprag doctor` found.

use serde::Serialize;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// A run can work, and somebody should know this.
    Warn,
    /// No run can work.
    Fail,
    /// It was not found out.
    Unknown,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which check; the names stay the same.
    pub check: &'static str,
    /// How it came out.
    pub state: State,
    /// What was found, on one line.
    pub found: String,
    /// What to do about it, where it is not as it should be; of several ways one a line.
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

    /// A failure where a run needs it, and otherwise a warning.
    pub(super) fn bad(
        needed: bool,
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        match needed {
            true => Self::fail(check, found, remedy),
            false => Self::warn(check, found, remedy),
        }
    }
}

/// Whether a run could work.
pub fn could_work(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.state != State::Fail)
}

/// At most so many names, and how many there are besides.
pub(super) fn some_of(names: &[String], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
