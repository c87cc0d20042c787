//! Summarises a failure in a line or two.

use super::diagnostic::{Diagnostic, Severity};
use super::{blocks, reading};
use crate::pattern::Pattern;
use crate::text;
use std::collections::BTreeSet;

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
    let mut lines: Vec<&str> = plain
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if !lines.iter().all(|line| WRAPPER.is_match(line)) {
        lines.retain(|line| !WRAPPER.is_match(line));
    }
    let those = |is: &dyn Fn(&str) -> bool, most: usize| -> Vec<String> {
        let found = lines.iter().filter(|line| is(line)).take(most);
        found.map(|line| (*line).to_owned()).collect()
    };
    let errors = diagnostics
        .iter()
        .filter(|it| it.severity == Severity::Error);
    let mut found: Vec<String> = errors.map(summary).collect();
    if found.is_empty() {
        found.extend(reading::names_in(&lines));
    }
    if found.is_empty() {
        let is_error = |line: &str| blocks::is_mention(line) && !HEADING.is_match(line);
        found = those(&is_error, usize::MAX);
    }
    if found.is_empty() {
        found = those(&|line| WHY.is_match(line), 1);
    }
    if found.is_empty() {
        found.extend(lines.last().map(|line| (*line).to_owned()));
    }
    let mut seen = BTreeSet::new();
    let shown = found.iter().map(|error| text::one_line(error, max_chars));
    let shown = shown.filter(|line| !line.is_empty() && seen.insert(line.clone()));
    shown.take(n).collect()
}

fn summary(diagnostic: &Diagnostic) -> String {
    let Diagnostic {
        path, line, code, ..
    } = diagnostic;
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    let place = path.as_ref().map(|path| format!("{path}{line}: "));
    let code = code.as_ref().map(|code| format!("{code}: "));
    [place, code].into_iter().flatten().collect::<String>() + &diagnostic.message
}

/// A line in which npm, Ruby or uv says why it failed. The lines that follow say where, or give advice.
static WHY: Pattern = Pattern::new(
    r"^npm (?:error|ERR!) (?:npx |[B-Z`\x22])|^\S+:\d+:in [`'].+': .+ \([A-Z][\w:]*\)$|^\s*× \S",
);

/// A line in which a program says only that a command which it has started failed. The cause is above.
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

static HEADING: Pattern = Pattern::new(r"^\s*(?:[=_-]{3,} .* [=_-]{3,}|FAILED|FAIL|failures:)\s*$");
