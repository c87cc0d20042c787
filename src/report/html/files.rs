//! The files of a run, assigned to their turn or check.

use super::changes::cut;
use super::{SOURCE_BYTES, SOURCES_BYTES, Source, SourceKind, pre};
use crate::domain::summary::{CheckLine, RunSummary, TurnSummary};
use crate::report::text;
use maud::{Markup, html};
use std::collections::BTreeSet;

/// The files that a report shows, in the given order, as many as fit.
pub struct Files<'a> {
    shown: Vec<Shown<'a>>,
    missing: usize,
}

struct Shown<'a> {
    source: &'a Source,
    text: &'a str,
}

impl<'a> Files<'a> {
    /// Selects the sources that fit in [`SOURCES_BYTES`], without diffs.
    pub fn new(sources: &'a [Source]) -> Self {
        let mut left = SOURCES_BYTES;
        let mut files = Self {
            shown: Vec::new(),
            missing: 0,
        };
        let is_diff = |it: &&Source| matches!(it.kind, SourceKind::Commits | SourceKind::Diff);
        for source in sources
            .iter()
            .filter(|source| !is_diff(source) && !source.text.is_empty())
        {
            let text = text::head_bytes(&source.text, SOURCE_BYTES.min(left));
            left -= text.len();
            if text.is_empty() {
                files.missing += 1
            } else {
                files.shown.push(Shown { source, text })
            }
        }
        files
    }

    /// The prompt and the transcript of a turn.
    pub fn of_turn(&self, turn: &TurnSummary) -> Markup {
        html! { @for shown in self.shown.iter().filter(|shown| is_of_turn(shown.source, turn)) { (shown.details()) } }
    }

    /// The output of a check.
    pub fn of_check(&self, check: &CheckLine) -> Markup {
        let is_its = |shown: &&Shown<'_>| check.log.as_ref() == Some(&shown.source.name);
        html! { @if let Some(shown) = self.shown.iter().find(is_its) { (shown.details()) } }
    }

    /// The files that belong to no turn or check in the summary, such as those of proofs.
    pub fn others(&self, summary: &RunSummary) -> Markup {
        let tasks = || summary.tasks.iter();
        let logs: BTreeSet<&String> = tasks()
            .flat_map(|task| &task.checks)
            .filter_map(|check| check.log.as_ref())
            .collect();
        let turns: Vec<&TurnSummary> = tasks().flat_map(|task| &task.turns).collect();
        let is_other = |shown: &&Shown<'_>| {
            let source = shown.source;
            !logs.contains(&source.name) && !turns.iter().any(|turn| is_of_turn(source, turn))
        };
        let others: Vec<&Shown<'_>> = self.shown.iter().filter(is_other).collect();
        html! {
            @if !others.is_empty() {
                h2 { "Further files" }
                @for shown in others { (shown.details()) }
            }
            @if self.missing > 0 { p { (text::count(self.missing as u64, "file")) " more in the run directory." } }
        }
    }
}

/// All files of a turn have its number within the run in their names.
fn is_of_turn(source: &Source, turn: &TurnSummary) -> bool {
    let Some(prompt) = &turn.prompt else {
        return false;
    };
    let number = prompt
        .rsplit('/')
        .next()
        .and_then(|name| name.strip_suffix(".md"));
    match source.kind {
        SourceKind::Prompt => source.name == *prompt,
        SourceKind::Transcript => {
            let name = source.name.rsplit('/').next().unwrap_or_default();
            let rest = number.and_then(|number| name.strip_prefix(number));
            rest.is_some_and(|rest| rest.starts_with('-'))
        }
        SourceKind::Commits | SourceKind::Diff | SourceKind::Log => false,
    }
}

impl Shown<'_> {
    fn details(&self) -> Markup {
        let is_cut = self.source.cut || self.text.len() < self.source.text.len();
        html! {
            details {
                summary { (self.source.kind.what()) " " code { (text::line(&self.source.name)) } (cut(is_cut)) }
                (pre(self.text))
            }
        }
    }
}
