//! What `sprag doctor` says: facts in, findings with their remedies out.

mod agent;
mod facts;
pub mod gather;
mod hub;
mod machine;
mod network;
mod repository;
mod trigger;

pub use facts::*;
pub use trigger::read;

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
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            check,
            state: State::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn warn(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Warn,
            remedy: Some(remedy.into()),
            ..Self::ok(check, found)
        }
    }

    fn fail(check: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            state: State::Fail,
            ..Self::warn(check, found, remedy)
        }
    }

    fn unknown(check: &'static str, found: impl Into<String>) -> Self {
        Self {
            state: State::Unknown,
            ..Self::ok(check, found)
        }
    }

    /// A failure where a run needs it, and otherwise a warning.
    fn bad(
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

/// Judges everything that was found out, in the order in which a run needs it.
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![repository::program(facts)];
    findings.extend(repository::findings(facts));
    findings.extend(agent::configuration(facts));
    findings.extend(agent::findings(facts.agent.as_ref()));
    findings.extend(hub::findings(facts));
    findings.extend(trigger::finding(&facts.trigger));
    findings.extend(network::findings(&facts.network));
    findings.extend(machine::findings(facts));
    findings
}

/// At most so many names, and how many there are besides.
fn some_of(names: &[String], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// `1 file`, `2 files`.
fn count(number: u64, one: &str) -> String {
    match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    }
}

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
