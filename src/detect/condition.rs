//! Decides whether the condition of a job keeps it from running for a change that is not merged yet.

use super::matrix::{Row, expression, quoted};
use crate::domain::yaml::Node;

/// The event by which a workflow runs for a change that is not merged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// A pull request.
    Pull,
    /// A push to a branch.
    Push,
    /// That of a calling workflow.
    Caller,
}

/// The names of branches that changes are merged into.
const MERGED_INTO: [&str; 2] = ["main", "master"];

impl Change {
    /// The event for a workflow with these triggers.
    pub(super) fn of(on: &Node) -> Self {
        let has = |event: &str| {
            let in_list = on.items().iter().filter_map(Node::text);
            on.text() == Some(event)
                || on.get(event).is_some()
                || in_list.into_iter().any(|it| it == event)
        };
        match has("pull_request") || has("pull_request_target") {
            true => Self::Pull,
            false if has("workflow_call") => Self::Caller,
            false => Self::Push,
        }
    }

    /// Whether a job with this condition is known not to run for the change.
    pub(super) fn is_excluded(self, condition: &str, row: &Row) -> bool {
        self.holds(expression(condition), row) == Some(false)
    }

    /// Whether the condition holds, or `None` if that is unknown.
    fn holds(self, condition: &str, row: &Row) -> Option<bool> {
        let condition = condition.trim();
        for (operator, decides) in [("||", true), ("&&", false)] {
            let parts = split(condition, operator);
            if parts.len() > 1 {
                let known: Vec<Option<bool>> =
                    parts.iter().map(|part| self.holds(part, row)).collect();
                return match known.contains(&Some(decides)) {
                    true => Some(decides),
                    false if known.contains(&None) => None,
                    false => Some(!decides),
                };
            }
        }
        let in_brackets = condition
            .strip_prefix('(')
            .and_then(|it| it.strip_suffix(')'));
        if let Some(inner) = in_brackets {
            return self.holds(inner, row);
        }
        match condition.strip_prefix('!') {
            Some(rest) => self.holds(rest, row).map(|holds| !holds),
            None => self.fact(condition).or_else(|| row.holds(condition)),
        }
    }

    /// Whether one comparison holds.
    fn fact(self, condition: &str) -> Option<bool> {
        if matches!(condition, "true" | "false") {
            return Some(condition == "true");
        }
        for (operator, wanted) in [("==", true), ("!=", false)] {
            if let Some((left, right)) = condition.split_once(operator) {
                let right = quoted(right.trim())?;
                return Some(self.equals(left.trim(), right)? == wanted);
            }
        }
        let (function, arguments) = condition.strip_suffix(')')?.split_once('(')?;
        let (left, right) = arguments.split_once(',')?;
        let (name, text) = (left.trim(), quoted(right.trim())?);
        match (function.trim(), name) {
            ("startsWith" | "contains", "github.ref") if text.starts_with("refs/tags") => {
                Some(false)
            }
            ("startsWith", "github.ref") if text.starts_with("refs/heads") => {
                (self == Self::Pull).then_some(false)
            }
            _ => None,
        }
    }

    fn equals(self, name: &str, value: &str) -> Option<bool> {
        let is_merged = |branch: &str| MERGED_INTO.contains(&branch);
        match (name, self) {
            ("github.event_name", Self::Pull) => {
                Some(matches!(value, "pull_request" | "pull_request_target"))
            }
            ("github.event_name", Self::Push) => Some(value == "push"),
            ("github.event_name", Self::Caller) => {
                matches!(value, "schedule" | "release" | "workflow_dispatch").then_some(false)
            }
            ("github.ref_type", _) => Some(value == "branch"),
            ("github.ref" | "github.ref_name", Self::Pull) => Some(false),
            ("github.ref", _) => {
                let branch = value.strip_prefix("refs/heads/");
                branch.is_none_or(is_merged).then_some(false)
            }
            ("github.ref_name", _) => is_merged(value).then_some(false),
            _ => None,
        }
    }
}

/// The parts of an expression between the operators that stand in no brackets and no quotes.
fn split<'a>(text: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut depth, mut is_quoted, mut from) = (0_i32, false, 0);
    let mut parts = Vec::new();
    for (at, c) in text.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ if !is_quoted && depth == 0 && at >= from && text[at..].starts_with(operator) => {
                parts.push(&text[from..at]);
                from = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}
