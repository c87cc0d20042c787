//! The changes of the run: the diff of each commit and of unfinished work, folded by file.

use super::{Source, SourceKind};
use crate::domain::patch_lines::{Numbers, numbered};
use crate::report::{sentence, text};
use maud::{Markup, html};

/// All diffs among the sources.
pub fn changes(sources: &[Source]) -> Markup {
    let shown = |kind: SourceKind| {
        let sources = sources.iter();
        sources.filter(move |source| source.kind == kind && !source.text.is_empty())
    };
    let commits: Vec<(&Source, Commit<'_>)> = shown(SourceKind::Commits)
        .flat_map(|source| by_commit(&source.text).map(move |commit| (source, commit)))
        .collect();
    let patches: Vec<&Source> = shown(SourceKind::Diff).collect();
    html! {
        @if !commits.is_empty() || !patches.is_empty() { h2 { "What changed" } }
        @for (_, commit) in &commits {
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
    let mut starts: Vec<usize> = text.match_indices(&marker).map(|(at, _)| at + 1).collect();
    starts.insert(0, 0);
    starts.push(text.len());
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
