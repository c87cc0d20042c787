//! Summarises a failure in a line or two.

use super::diagnostic::{Diagnostic, Severity};
use super::{blocks, reading};
use crate::pattern::Pattern;
use crate::text;

/// The first `n` errors of `output`, each on one line of at most `max_chars` characters: its diagnostics,
/// otherwise the names of failed tests, otherwise lines that report a failure, otherwise the last line.
pub fn first_errors(output: &str, n: usize, max_chars: usize) -> Vec<String> {
    first_errors_of(&reading::parse(output), output, n, max_chars)
}

/// Like [`first_errors`], with diagnostics that were already read from `output`.
pub fn first_errors_of(
    diagnostics: &[Diagnostic],
    output: &str,
    n: usize,
    max_chars: usize,
) -> Vec<String> {
    let plain = text::plain(output);
    let mut lines: Vec<&str> = plain.lines().collect();
    let tells_more = |line: &&str| !line.trim().is_empty() && !is_wrapper(line);
    if lines.iter().any(tells_more) {
        lines.retain(|line| !is_wrapper(line));
    }
    let errors = diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .map(summary);
    let mut found: Vec<String> = Vec::new();
    collect(&mut found, errors, n, max_chars);
    if found.is_empty() {
        collect(
            &mut found,
            reading::names_in(&lines).into_iter(),
            n,
            max_chars,
        );
    }
    if found.is_empty() {
        let mentions = lines
            .iter()
            .filter(|line| blocks::is_mention(line) && !is_heading(line));
        collect(
            &mut found,
            mentions.map(|line| (*line).to_owned()),
            n,
            max_chars,
        );
    }
    if found.is_empty() {
        let reasons = lines
            .iter()
            .filter(|line| says_why(line))
            .map(|line| (*line).to_owned())
            .take(1);
        collect(&mut found, reasons, n, max_chars);
    }
    if found.is_empty() {
        let last = lines.iter().rev().filter(|line| !line.trim().is_empty());
        collect(
            &mut found,
            last.map(|line| (*line).to_owned()).take(1),
            n,
            max_chars,
        );
    }
    found
}

fn collect(
    found: &mut Vec<String>,
    errors: impl Iterator<Item = String>,
    n: usize,
    max_chars: usize,
) {
    for error in errors {
        if found.len() >= n {
            return;
        }
        let line = text::one_line(&error, max_chars);
        if !line.is_empty() && !found.contains(&line) {
            found.push(line);
        }
    }
}

fn summary(diagnostic: &Diagnostic) -> String {
    let mut text = String::new();
    if let Some(path) = &diagnostic.path {
        text.push_str(path);
        if let Some(line) = diagnostic.line {
            text.push_str(&format!(":{line}"));
        }
        text.push_str(": ");
    }
    if let Some(code) = &diagnostic.code {
        text.push_str(&format!("{code}: "));
    }
    text + &diagnostic.message
}

/// Whether npm, Ruby or uv says in this line why it failed. The lines that follow say where, or give advice.
fn says_why(line: &str) -> bool {
    static WHY: Pattern = Pattern::new(
        r"^npm (?:error|ERR!) (?:npx |[B-Z`\x22])|^\S+:\d+:in [`'].+': .+ \([A-Z][\w:]*\)$|^\s*× \S",
    );
    WHY.is_match(line)
}

/// Whether a program says in this line only that a command which it has started failed. The cause is above.
fn is_wrapper(line: &str) -> bool {
    static WRAPPER: Pattern = Pattern::new(
        r#"(?x)^(?:
            \s*(?:[@\w./-]+\ [\w:.-]+:\ )?\[?ELIFECYCLE\]?\s
          | [@\w./-]+\ [\w:.-]+:\ Failed$
          | \s*(?:\[?ERR_PNPM_RECURSIVE_\w+|Error:\ ERR_PNPM_RECURSIVE_)
          | \s*×\ "pnpm\ .*"\ failed\ in\ 
          | npm\ (?:error|ERR!)\ (?:Lifecycle\ script\ |code\ \d+$|path\ |command\ |workspace\ |location\ )
          | error\ Command\ failed\ with\ exit\ code\ | error:\ script\ "
          | make(?:\[\d+\])?:\ \*\*\*\ \[ | error:\ [Rr]ecipe\ .*\ failed\ 
        )"#,
    );
    WRAPPER.is_match(line)
}

fn is_heading(line: &str) -> bool {
    static HEADING: Pattern =
        Pattern::new(r"^\s*(?:[=_-]{3,} .* [=_-]{3,}|FAILED|FAIL|failures:)\s*$");
    HEADING.is_match(line)
}
