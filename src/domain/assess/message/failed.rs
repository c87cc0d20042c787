//! The `FAILED:` protocol: an agent that cannot do a task says so in its first line.

use crate::pattern::Pattern;
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Requirements,
    Problems,
    Solutions,
}

impl FailedReport {
    /// Reads the report if the first non-empty line of `text` begins one, also in bold, as a heading or in a
    /// fence. `FAILED` without the colon, in lower case, or further down does not count.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (text, fence) = unfenced(text);
        let summary = form(first_line(text), "FAILED")?;
        let rest = text.trim_start().lines().skip(1);
        let rest = rest.filter(|line| fence.is_none_or(|fence| line.trim() != fence));
        let mut report = Self {
            summary: summary.to_owned(),
            requirements: None,
            problems: None,
            solutions: None,
        };
        let mut before = String::new();
        let mut section = None;
        for line in rest {
            if let Some((next, text)) = heading(line) {
                section = Some(next);
                report.push(next, text);
            } else if let Some(current) = section {
                report.push(current, line);
            } else {
                before.push_str(line);
                before.push('\n');
            }
        }
        report.tidy(before.trim());
        Some(report)
    }

    fn push(&mut self, section: Section, line: &str) {
        let part = match section {
            Section::Requirements => &mut self.requirements,
            Section::Problems => &mut self.problems,
            Section::Solutions => &mut self.solutions,
        };
        let part = part.get_or_insert_default();
        part.push_str(line);
        part.push('\n');
    }

    /// Trims the sections, drops empty ones, and uses the text outside the sections for a missing summary or
    /// missing problems.
    fn tidy(&mut self, before: &str) {
        for part in [
            &mut self.requirements,
            &mut self.problems,
            &mut self.solutions,
        ] {
            *part = part
                .take()
                .map(|p| p.trim().to_owned())
                .filter(|p| !p.is_empty());
        }
        if self.problems.is_none() && !before.is_empty() {
            self.problems = Some(before.to_owned());
        }
        if self.summary.is_empty() {
            let stand_in = self.problems.as_deref().and_then(|p| p.lines().next());
            self.summary = stand_in.unwrap_or_default().trim().to_owned();
        }
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
    const MARKUP: [char; 6] = ['*', '_', '`', '#', '>', ' '];
    let bare = line.trim_start_matches(MARKUP);
    let markup = &line[..line.len() - bare.len()];
    let text = bare
        .strip_prefix(word)?
        .trim_start_matches(['*', '_', '`'])
        .strip_prefix(':')?;
    let mut text = text.trim();
    for mark in ["**", "__", "*", "_", "`"]
        .iter()
        .filter(|mark| markup.contains(**mark))
    {
        text = text
            .strip_prefix(mark)
            .or_else(|| text.strip_suffix(mark))
            .unwrap_or(text)
            .trim();
    }
    Some(text)
}

/// The section that a heading starts, and the text after its colon.
fn heading(line: &str) -> Option<(Section, &str)> {
    let found = HEADING.captures(line)?;
    let marked = found.get(1).is_some_and(|m| !m.is_empty());
    let colon = found.get(3).is_some_and(|m| m.as_str().contains(':'));
    let text = found.get(4).map_or("", |m| m.as_str()).trim();
    if !colon && (!marked && !line.trim_start().starts_with('*') || !text.is_empty()) {
        return None;
    }
    let name = found.get(2).map(|m| m.as_str().to_lowercase())?;
    let section = if name.contains("solution") {
        Section::Solutions
    } else if name.contains("requirement") {
        Section::Requirements
    } else {
        Section::Problems
    };
    Some((section, text))
}

static HEADING: Pattern = Pattern::new(
    r"(?x) ^ \s* ( \#{0,6} ) \s* (?: \d+ [.)] \s* | [-+] \s+ )? \*{0,2} _{0,2}
        ( (?i: requirements? | problems? (?: \s encountered )? | (?: possible | potential | suggested | proposed )? \s* solutions? ) )
        ( \s* :? \s* \*{0,2} _{0,2} \s* :? ) ( .* ) $",
);
