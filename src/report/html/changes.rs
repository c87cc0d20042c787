//! The changes of the run: the diff of each commit and of unfinished work, folded by file.

use super::{SOURCE_BYTES, SOURCES_BYTES, Source, SourceKind, pre};
use crate::domain::patch_lines::{Numbers, numbered};
use crate::domain::summary::{CheckLine, RunSummary, TurnSummary};
use crate::report::{sentence, text};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// All diffs among the sources.
pub fn changes(sources: &[Source]) -> Markup {
    let shown = |kind: SourceKind| {
        let sources = sources.iter();
        sources.filter(move |source| source.kind == kind && !source.text.is_empty())
    };
    let texts = shown(SourceKind::Commits).map(|source| source.text.as_str());
    let commits: Vec<Commit<'_>> = texts.flat_map(by_commit).collect();
    let patches: Vec<&Source> = shown(SourceKind::Diff).collect();
    html! {
        @if !commits.is_empty() || !patches.is_empty() { h2 { "What changed" } }
        @for commit in &commits {
            h3 { "Commit " code { (sentence::short_id(commit.id)) } " " (text::short_line(commit.subject, 200)) }
            (files(commit.diff))
        }
        @if shown(SourceKind::Commits).any(|source| source.cut) { p { "Further changes are not shown; all of them are in the repository." } }
        @for source in patches {
            h3 { "Not committed: " code { (text::line(&source.name)) } (cut(source.cut)) }
            (files(&source.text))
        }
    }
}

/// For a file that was cut, says where the rest is.
pub fn cut(is_cut: bool) -> &'static str {
    if is_cut {
        " (shortened; the full text is in the run directory)"
    } else {
        ""
    }
}

/// A commit in the text format of `git::snapshot::patch`.
struct Commit<'a> {
    id: &'a str,
    subject: &'a str,
    diff: &'a str,
}

/// No line of a diff starts with this word: diff lines start with a sign or are git's own headers.
const COMMIT: &str = "commit ";

fn by_commit(text: &str) -> impl Iterator<Item = Commit<'_>> {
    parts(text, COMMIT).map(|part| {
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        let (about, diff) = match rest.find("\ndiff --git ") {
            Some(at) => rest.split_at(at + 1),
            None => (rest, ""),
        };
        Commit {
            id: first.strip_prefix(COMMIT).unwrap_or(first),
            subject: about.trim(),
            diff,
        }
    })
}

/// Splits a text before each line that starts with `beginning`. Text before the first such line is a part
/// too.
fn parts<'a>(text: &'a str, beginning: &str) -> impl Iterator<Item = &'a str> {
    let marker = format!("\n{beginning}");
    let starts = text.match_indices(&marker).map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0)
        .chain(starts)
        .chain([text.len()])
        .collect();
    let parts: Vec<&str> = starts
        .windows(2)
        .map(|pair| &text[pair[0]..pair[1]])
        .collect();
    parts.into_iter().filter(|part| !part.trim().is_empty())
}

/// Each file of a diff.
fn files(diff: &str) -> Markup {
    html! { @for part in parts(diff, "diff --git ") { (file(part)) } }
}

fn file(part: &str) -> Markup {
    let header = part.lines().next().unwrap_or_default();
    let name = header.rsplit_once(" b/").map_or(header, |(_, name)| name);
    let body: Vec<(Numbers, &str)> = numbered(part.trim_end_matches('\n')).collect();
    let count = |wanted: fn(&Numbers) -> bool| body.iter().filter(|(at, _)| wanted(at)).count();
    html! {
        details {
            summary {
                code { (text::short_line(name, 200)) } " "
                span.add { "+" (count(|at| at.old.is_none() && at.new.is_some())) } " "
                span.del { "−" (count(|at| at.old.is_some() && at.new.is_none())) }
            }
            pre.diff { @for (at, line) in &body { (self::line(at, line)) } }
        }
    }
}

fn line(at: &Numbers, line: &str) -> Markup {
    let class = match (at.old, at.new) {
        (None, Some(_)) => "add",
        (Some(_), None) => "del",
        (Some(_), Some(_)) => "",
        (None, None) if line.starts_with("@@") => "hunk",
        (None, None) => "soft",
    };
    let number = at.new.or(at.old).map(|number| number.to_string());
    html! {
        span.number { (number.unwrap_or_default()) } span class=(class) { (text::block(line).trim_end_matches('\n')) } "\n"
    }
}

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
        let is_shown = |it: &&Source| {
            !matches!(it.kind, SourceKind::Commits | SourceKind::Diff) && !it.text.is_empty()
        };
        for source in sources.iter().filter(is_shown) {
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
        let checks = summary.tasks.iter().flat_map(|task| &task.checks);
        let logs: BTreeSet<&String> = checks.filter_map(|check| check.log.as_ref()).collect();
        let turns: Vec<&TurnSummary> = summary.tasks.iter().flat_map(|task| &task.turns).collect();
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
    let number = |path: &str| {
        path.rsplit('/')
            .next()?
            .split(['-', '.'])
            .next()
            .map(str::to_owned)
    };
    let Some(prompt) = &turn.prompt else {
        return false;
    };
    match source.kind {
        SourceKind::Prompt => source.name == *prompt,
        SourceKind::Transcript => number(&source.name) == number(prompt),
        SourceKind::Commits | SourceKind::Diff | SourceKind::Log => false,
    }
}

impl Shown<'_> {
    fn details(&self) -> Markup {
        let is_cut = self.source.cut || self.text.len() < self.source.text.len();
        html! {
            details {
                summary { (<&str>::from(self.source.kind)) " " code { (text::line(&self.source.name)) } (cut(is_cut)) }
                (pre(self.text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "commit aaaa\n\n    Add a\n\ndiff --git a/a.rs b/a.rs\nindex 1..2 100644\n--- a/a.rs\n+++ b/a.rs\n@@ -7,3 +7,3 @@ fn f()\n one\n--- two\n+++ two\n three\n\\ No newline at end of file\ncommit bbbb\n\n    Add b\n\ndiff --git a/b b/b\nnew file mode 100644\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+commit x\n";

    #[test]
    fn each_commit_has_its_subject_and_its_diff() {
        let commits: Vec<_> = by_commit(TWO)
            .map(|commit| (commit.id, commit.subject, commit.diff.len()))
            .collect();
        assert_eq!(commits.len(), 2);
        assert_eq!((commits[0].0, commits[0].1), ("aaaa", "Add a"));
        assert_eq!((commits[1].0, commits[1].1), ("bbbb", "Add b"));
    }

    #[test]
    fn lines_are_numbered_by_what_the_hunk_says_and_never_taken_for_headers() {
        let first = by_commit(TWO).next().unwrap();
        let lines: Vec<_> = numbered(first.diff).skip(5).collect();
        let at = |old, new| Numbers { old, new };
        assert_eq!(
            lines,
            [
                (at(Some(7), Some(7)), " one"),
                (at(Some(8), None), "--- two"),
                (at(None, Some(8)), "+++ two"),
                (at(Some(9), Some(9)), " three"),
                (at(None, None), "\\ No newline at end of file"),
            ]
        );
    }

    #[test]
    fn the_page_says_what_each_file_lost_and_gained() {
        let source = Source {
            kind: SourceKind::Commits,
            name: "commits.patch".into(),
            text: TWO.into(),
            cut: false,
        };
        let page = changes(&[source]).into_string();
        for expected in [
            "<h3>Commit <code>aaaa</code> Add a</h3>",
            "<code>a.rs</code> <span class=\"add\">+1</span> <span class=\"del\">−1</span>",
            "<span class=\"number\">8</span><span class=\"del\">--- two</span>",
            "<span class=\"number\">1</span><span class=\"add\">+commit x</span>",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }
}
