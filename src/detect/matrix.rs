//! The expressions of a workflow, as far as one row of a job's matrix and the literals in them decide.

use crate::domain::yaml::Node;
use std::collections::BTreeMap;

/// The values of one row: of several versions "stable" or the highest, of several systems Ubuntu, otherwise the first.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    /// By the whole name: `matrix.os`, `env.FEATURES`, and the inputs of a composite action.
    values: BTreeMap<String, String>,
    /// The lists of which only one value is taken, and that are neither versions nor systems.
    pub others: Vec<(String, Vec<String>)>,
}

impl Row {
    /// The row of a job.
    pub(super) fn of(job: &Node) -> Self {
        let matrix = job
            .get("strategy")
            .and_then(|strategy| strategy.get("matrix"));
        let mut row = Self::default();
        for entry in matrix.map(Node::entries).unwrap_or_default() {
            let texts: Vec<&str> = entry.value.items().iter().filter_map(Node::text).collect();
            let Some(value) =
                best(&texts).filter(|_| !matches!(entry.key.as_str(), "include" | "exclude"))
            else {
                continue;
            };
            let name = format!("matrix.{}", entry.key);
            let others = texts.iter().filter(|text| **text != value);
            let others: Vec<String> = others.map(|text| (*text).to_owned()).collect();
            if !others.is_empty() && !texts.iter().any(|text| is_version_or_system(text)) {
                row.others.push((name.clone(), others));
            }
            row.values.insert(name, value.to_owned());
        }
        let rows = matrix.and_then(|matrix| matrix.get("include"));
        let rows = rows.map(Node::items).unwrap_or_default();
        if row.values.is_empty() {
            // The rows usually go from the oldest to the newest, and then to other interpreters.
            let on_linux = |row: &&Node| {
                let mut texts = row.entries().iter().filter_map(|entry| entry.value.text());
                !texts.any(|text| is_other_system(text) || text.contains("pypy"))
            };
            let last = rows.iter().rev().find(on_linux).or(rows.last());
            row.values = last.into_iter().flat_map(values_of).collect();
        } else {
            // Each adds its values to the rows that it agrees with.
            let own = row.values.clone();
            for more in rows.iter().map(|more| values_of(more).collect()) {
                let more: BTreeMap<String, String> = more;
                if own
                    .iter()
                    .all(|(name, value)| more.get(name).is_none_or(|it| it == value))
                {
                    row.values.extend(more);
                }
            }
        }
        row.values
            .insert("runner.os".to_owned(), "Linux".to_owned());
        row
    }

    /// Adds the variables of the workflow and of the job.
    pub(super) fn add_variables(&mut self, variables: &[(String, String)]) {
        for (name, value) in variables {
            if let Some(value) = self.fill(value) {
                self.values.insert(format!("env.{name}"), value);
            }
        }
    }

    /// The row for the steps of a composite action that a step of the job uses.
    pub(super) fn of_action(&self, step: &Node, action: &Node) -> Self {
        let mut row = self.clone();
        for input in action.get("inputs").map(Node::entries).unwrap_or_default() {
            let given = step.get("with").and_then(|with| with.get(&input.key));
            let value = given
                .or_else(|| input.value.get("default"))
                .map_or(Some(""), Node::text);
            if let Some(value) = value.and_then(|value| self.fill(value)) {
                row.values.insert(format!("inputs.{}", input.key), value);
            }
        }
        row
    }

    /// The text with the values of its expressions, or `None` if it depends on anything else.
    pub(super) fn fill(&self, text: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${{") {
            let (expression, after) = after.split_once("}}")?;
            filled += before;
            filled += self.first_of(expression)?;
            rest = after;
        }
        Some(filled + rest)
    }

    /// The value of an expression: the first alternative that is known and not empty, or the literal at its end.
    fn first_of<'a>(&'a self, expression: &'a str) -> Option<&'a str> {
        let alternatives: Vec<&str> = expression.split("||").map(str::trim).collect();
        let mut known = alternatives
            .iter()
            .copied()
            .filter_map(|name| self.value(name));
        let last = alternatives
            .last()
            .copied()
            .and_then(|name| self.value(name));
        known.find(|value| !is_false(value)).or(last)
    }

    fn value<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        match name {
            "github.workspace" => Some("$GITHUB_WORKSPACE"),
            _ => literal(name)
                .or_else(|| self.values.get(name).map(String::as_str))
                .or_else(|| self.is_of_other_rows(name).then_some("")),
        }
    }

    /// Whether only other rows of the matrix have a value of this name, which is empty here then.
    fn is_of_other_rows(&self, name: &str) -> bool {
        let key = name.strip_prefix("matrix.");
        let is_name = |key: &str| {
            key.chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        };
        let mut known = self.values.keys();
        key.is_some_and(is_name) && known.any(|known| known.starts_with("matrix."))
    }

    /// Whether a step with this condition runs on Linux, or `None` if it asks for anything but the system or one value
    /// of the row.
    pub(super) fn holds(&self, condition: &str) -> Option<bool> {
        let condition = bare(condition);
        // Whatever the steps before it did, it runs.
        if matches!(
            condition,
            "always()" | "success()" | "!cancelled()" | "true"
        ) {
            return Some(true);
        }
        let bare = condition.trim_start_matches('!').trim();
        let is_negated = bare != condition || condition.contains("!=");
        if let Some(value) = self.value(bare) {
            return Some(is_false(value) == is_negated);
        }
        let lower = condition.to_ascii_lowercase();
        let names = |words: [&str; 2]| words.iter().any(|word| lower.contains(word));
        let has_more = ["&&", "||"].iter().any(|sign| lower.contains(sign));
        match (names(["linux", "ubuntu"]), names(["windows", "macos"])) {
            (false, true) if !is_negated && !lower.contains("||") => Some(false),
            _ if has_more => None,
            (true, false) => Some(!is_negated),
            (false, true) => Some(is_negated),
            _ => None,
        }
    }
}

/// The values of a row of `include`.
fn values_of(row: &Node) -> impl Iterator<Item = (String, String)> {
    let entries = row.entries().iter();
    entries.filter_map(|entry| {
        Some((
            format!("matrix.{}", entry.key),
            entry.value.text()?.to_owned(),
        ))
    })
}

/// Whether a job with this condition does not run for an ordinary change: each of its alternatives asks for a tag, a
/// branch, a schedule, a release or a start by hand.
pub(super) fn is_for_another_event(condition: &str) -> bool {
    const EVENTS: &[&str] = &[
        "github.ref",
        "github.base_ref",
        "inputs.",
        "release",
        "schedule",
        "workflow_dispatch",
    ];
    let asks = |part: &str| {
        let is_negated = part.contains("!=") || part.trim_start().starts_with('!');
        part.trim() == "false" || (!is_negated && EVENTS.iter().any(|event| part.contains(event)))
    };
    bare(condition).split("||").all(asks)
}

/// A condition without the marks of an expression.
fn bare(condition: &str) -> &str {
    let condition = condition.trim();
    let inner = condition.strip_prefix("${{");
    let inner = inner.and_then(|inner| inner.strip_suffix("}}"));
    inner.unwrap_or(condition).trim()
}

fn literal(text: &str) -> Option<&str> {
    let quoted = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''));
    let is_plain = matches!(text, "true" | "false") || text.parse::<f64>().is_ok();
    quoted.or(is_plain.then_some(text))
}

fn is_false(value: &str) -> bool {
    matches!(value, "" | "false" | "0")
}

/// Whether a value names a system other than Linux.
pub(super) fn is_other_system(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value.starts_with("windows") || value.starts_with("macos")
}

fn is_version_or_system(value: &str) -> bool {
    numbers(value).is_some()
        || is_other_system(value)
        || ["ubuntu", "stable", "beta", "nightly", "latest"]
            .iter()
            .any(|word| value.starts_with(word))
}

fn best<'a>(values: &[&'a str]) -> Option<&'a str> {
    let named = |start: &str| {
        values
            .iter()
            .find(|value| value.starts_with(start))
            .copied()
    };
    let versions = values.iter().filter(|value| numbers(value).is_some());
    let highest = versions.max_by_key(|value| numbers(value)).copied();
    let first = values.iter().find(|value| !is_other_system(value)).copied();
    named("stable")
        .or(highest)
        .or_else(|| named("ubuntu"))
        .or(first)
        .or(values.first().copied())
}

/// The parts of a version, or `None` for a text that is none, such as `3.14t` or `nightly`.
pub(super) fn numbers(version: &str) -> Option<Vec<u32>> {
    let parts = version
        .trim_start_matches('v')
        .trim_end_matches(".x")
        .split('.');
    parts.map(|part| part.parse().ok()).collect()
}
