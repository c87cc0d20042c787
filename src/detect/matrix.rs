//! One row of a job's matrix, and the expressions of a workflow that it decides.

use crate::domain::yaml::Node;
use std::collections::BTreeMap;

/// The values of the row that suits a Linux runner best: of several versions the highest, of several systems
/// Ubuntu, otherwise the first value.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    values: BTreeMap<String, String>,
    /// The inputs of a composite action, if the steps are those of one.
    inputs: BTreeMap<String, String>,
}

impl Row {
    /// The row of a job.
    pub(super) fn of(job: &Node) -> Self {
        let matrix = job
            .get("strategy")
            .and_then(|strategy| strategy.get("matrix"));
        let entries = matrix.map(Node::entries).unwrap_or_default();
        let mut values = BTreeMap::new();
        for entry in entries {
            let texts: Vec<&str> = entry.value.items().iter().filter_map(Node::text).collect();
            if !matches!(entry.key.as_str(), "include" | "exclude")
                && let Some(value) = best(&texts)
            {
                values.insert(entry.key.clone(), value.to_owned());
            }
        }
        if values.is_empty()
            && let Some(rows) = matrix.and_then(|matrix| matrix.get("include"))
        {
            // The rows usually go from the oldest to the newest.
            let rows = rows.items().iter().rev();
            let on_linux = |row: &&Node| {
                let mut texts = row.entries().iter().filter_map(|entry| entry.value.text());
                !texts.any(is_other_system)
            };
            for entry in rows.filter(on_linux).take(1).flat_map(Node::entries) {
                if let Some(value) = entry.value.text() {
                    values.insert(entry.key.clone(), value.to_owned());
                }
            }
        }
        Self {
            values,
            inputs: BTreeMap::new(),
        }
    }

    /// The row for the steps of a composite action that a step of the job uses.
    pub(super) fn of_action(&self, step: &Node, action: &Node) -> Self {
        let mut inputs = BTreeMap::new();
        for input in action.get("inputs").map(Node::entries).unwrap_or_default() {
            let given = step.get("with").and_then(|with| with.get(&input.key));
            let value = given
                .or_else(|| input.value.get("default"))
                .map_or(Some(""), Node::text);
            if let Some(value) = value.and_then(|value| self.fill(value)) {
                inputs.insert(input.key.clone(), value);
            }
        }
        Self {
            values: self.values.clone(),
            inputs,
        }
    }

    /// The text with the values of the row, or `None` if it depends on anything else.
    pub(super) fn fill(&self, text: &str) -> Option<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${{") {
            let (expression, after) = after.split_once("}}")?;
            filled += before;
            filled += self.value(expression.trim())?;
            rest = after;
        }
        Some(filled + rest)
    }

    /// Whether a condition holds in this row on Linux, or `None` if it depends on anything else.
    pub(super) fn holds(&self, condition: &str) -> Option<bool> {
        let condition = expression(condition);
        if condition.contains("&&") || condition.contains("||") {
            return None;
        }
        for (operator, wanted) in [("==", true), ("!=", false)] {
            if let Some((left, right)) = condition.split_once(operator) {
                let right = quoted(right.trim())?;
                return Some((self.value(left.trim())? == right) == wanted);
            }
        }
        if let Some(arguments) = condition.strip_prefix("startsWith(") {
            let (left, right) = arguments.strip_suffix(')')?.split_once(',')?;
            let start = quoted(right.trim())?;
            return Some(self.value(left.trim())?.starts_with(start));
        }
        let (name, wanted) = match condition.strip_prefix('!') {
            Some(name) => (name.trim(), false),
            None => (condition, true),
        };
        let value = match self.value(name) {
            Some(value) => !matches!(value, "" | "false" | "0"),
            // A name that only other rows of the matrix set is empty here.
            None if name.starts_with("matrix.") && !self.values.is_empty() => false,
            None => return None,
        };
        Some(value == wanted)
    }

    fn value(&self, name: &str) -> Option<&str> {
        match name {
            "runner.os" => Some("Linux"),
            _ => {
                let input = name.strip_prefix("inputs.");
                let found = match input {
                    Some(input) => self.inputs.get(input),
                    None => self.values.get(name.strip_prefix("matrix.")?),
                };
                found.map(String::as_str)
            }
        }
    }
}

/// A condition without the marks of an expression.
pub(super) fn expression(condition: &str) -> &str {
    let condition = condition.trim();
    let inner = condition.strip_prefix("${{");
    let inner = inner.and_then(|inner| inner.strip_suffix("}}"));
    inner.unwrap_or(condition).trim()
}

pub(super) fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.strip_suffix('\'')
}

/// Whether a value names a system other than Linux.
pub(super) fn is_other_system(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    value.starts_with("windows") || value.starts_with("macos")
}

fn best<'a>(values: &[&'a str]) -> Option<&'a str> {
    let versions = values.iter().filter(|value| numbers(value).is_some());
    if let Some(highest) = versions.max_by_key(|value| numbers(value)) {
        return Some(highest);
    }
    let ubuntu = values.iter().find(|value| value.starts_with("ubuntu"));
    ubuntu.or(values.first()).copied()
}

/// The parts of a version, or `None` for a text that is none, such as `3.14t` or `nightly`.
pub(super) fn numbers(version: &str) -> Option<Vec<u32>> {
    let parts = version
        .trim_start_matches('v')
        .trim_end_matches(".x")
        .split('.');
    parts.map(|part| part.parse().ok()).collect()
}
