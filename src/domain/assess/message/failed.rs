//! The `FAILED:` protocol: an agent that cannot do a task says so in its first line.

use crate::pattern::{Pattern, group};
use crate::text::first_line;
use serde::{Deserialize, Serialize};

/// An agent's `FAILED: …` report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailedReport {
    /// The text of the `FAILED:` line, or the first line after it if that text is empty.
    pub summary: String,
    /// The section "Requirements".
    pub requirements: Option<String>,
    /// The section "Problems", or the rest of the text if it has no sections.
    pub problems: Option<String>,
    /// The section "Possible solutions".
    pub solutions: Option<String>,
}

impl FailedReport {
    /// Reads the report if the first non-empty line of `text` begins one, also in bold, as a heading or in a
    /// fence. `FAILED` without the colon, in lower case, or further down does not count.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (text, fence) = unfenced(text);
        let summary = form(first_line(text), "FAILED")?;
        let rest = text.trim_start().lines().skip(1);
        // What is before the first section, and the sections "requirement", "problem" and "solution".
        let mut parts = [const { String::new() }; 4];
        let mut current = 0;
        for line in rest.filter(|line| fence.is_none_or(|fence| line.trim() != fence)) {
            let text = match heading(line) {
                Some((section, text)) => {
                    current = section;
                    text
                }
                None => line,
            };
            parts[current].push_str(text);
            parts[current].push('\n');
        }
        let [before, requirements, problems, solutions] = parts.map(|part| {
            let part = part.trim().to_owned();
            (!part.is_empty()).then_some(part)
        });
        let problems = problems.or(before);
        let stand_in = problems.as_deref().unwrap_or_default().lines().next();
        let summary = match summary {
            "" => stand_in.unwrap_or_default().trim(),
            summary => summary,
        };
        Some(Self {
            summary: summary.to_owned(),
            requirements,
            problems,
            solutions,
        })
    }
}

/// The text after the code fence at its beginning, and the fence.
pub(super) fn unfenced(text: &str) -> (&str, Option<&'static str>) {
    let trimmed = text.trim_start();
    let fence = ["```", "~~~"]
        .into_iter()
        .find(|fence| trimmed.starts_with(fence));
    let inside = fence.and_then(|_| trimmed.split_once('\n'));
    inside.map_or((text, None), |(_, inside)| (inside, fence))
}

/// The text after `word:` at the beginning of a line, without the markup around both.
pub(super) fn form<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let bare = line.trim_start_matches(['*', '_', '`', '#', '>', ' ']);
    let markup = &line[..line.len() - bare.len()];
    let text = bare.strip_prefix(word)?.trim_start_matches(['*', '_', '`']);
    let mut text = text.strip_prefix(':')?.trim();
    let marks = ["**", "__", "*", "_", "`"].into_iter();
    for mark in marks.filter(|mark| markup.contains(mark)) {
        let inner = text.strip_prefix(mark).or_else(|| text.strip_suffix(mark));
        text = inner.unwrap_or(text).trim();
    }
    Some(text)
}

/// The section that a heading starts, from 1, and the text after its colon.
fn heading(line: &str) -> Option<(usize, &str)> {
    let found = HEADING.captures(line)?;
    let text = group(&found, 4).trim();
    let is_marked = !group(&found, 1).is_empty() || line.trim_start().starts_with('*');
    if !group(&found, 3).contains(':') && (!is_marked || !text.is_empty()) {
        return None;
    }
    let name = group(&found, 2).to_lowercase();
    let section = match name {
        _ if name.contains("solution") => 3,
        _ if name.contains("requirement") => 1,
        _ => 2,
    };
    Some((section, text))
}

static HEADING: Pattern = Pattern::new(
    r"(?x) ^ \s* ( \#{0,6} ) \s* (?: \d+ [.)] \s* | [-+] \s+ )? \*{0,2} _{0,2}
        ( (?i: requirements? | problems? (?: \s encountered )? | (?: possible | potential | suggested | proposed )? \s* solutions? ) )
        ( \s* :? \s* \*{0,2} _{0,2} \s* :? ) ( .* ) $",
);
