//! Node.js: its own test runner in the format `spec`, and missing modules.

use super::javascript;
use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};
use std::collections::BTreeSet;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "node --test",
    kind: ToolKind::Tests,
    signs: &[r"^\s*[✖✔] .+ \([\d.]+m?s\)$", r"^[#ℹ] (?:pass|fail) \d+$"],
    read,
    counts,
    headers: &[r"\s*(?:✖|✗|✘|×)\ "],
    hint,
    ..Tool::NOTHING
};

static TEST: Pattern = Pattern::new(r"^\s*✖ (.+?) \([\d.]+m?s\)$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for (at, line) in output.lines.iter().enumerate() {
        if let Some(found) = TEST.captures(line) {
            let name = group(&found, 1).trim();
            sink.test(name);
            javascript::failure(output.lines, at, name, "", sink);
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static COUNT: Pattern = Pattern::new(r"^[#ℹ] (pass|fail|cancelled)\s+(\d+)$");
    let mut tally = Tally::default();
    let mut kinds = (false, false);
    for (_, found) in COUNT.in_lines(lines) {
        let number = group(&found, 2).parse().ok();
        if group(&found, 1) == "pass" {
            kinds.0 = true;
            tally.add(number, Some(0));
        } else {
            kinds.1 |= group(&found, 1) == "fail";
            tally.add(Some(0), number);
        }
    }
    tally.finish().filter(|_| kinds.0).map(|said| Counts {
        failed: said.failed.filter(|_| kinds.1),
        ..said
    })
}

/// The number of results that stand for a file in which no test ran: they have the path of the file as their
/// name. A file with tests is reported under the names of its tests.
pub(in crate::checks) fn hollow_results(lines: &[&str]) -> u64 {
    static FILE: Pattern = Pattern::new(
        r"^(?:(?:not )?ok \d+ - ((?:/|[A-Za-z]:\\)\S.*\.[cm]?[jt]sx?)|[✔✖] (\S.*\.[cm]?[jt]sx?) \([\d.]+m?s\))$",
    );
    let files = lines.iter().filter_map(|line| {
        let found = FILE.captures(line)?;
        let name = found.get(1).or_else(|| found.get(2))?;
        Some(name.as_str().to_owned())
    });
    // Failures are repeated at the end.
    let files: BTreeSet<String> = files.collect();
    u64::try_from(files.len()).unwrap_or(u64::MAX)
}

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(
        r#"(?:Cannot find (?:module|package)|Module not found: (?:Error: )?Can't resolve|Failed to resolve import|Could not resolve) ['"]([^'"\s]+)['"]"#,
    );
    let found = MISSING.captures(line)?;
    let module = group(&found, 1);
    let is_file = module.starts_with(['.', '/', '~', '#'])
        || module.starts_with("@/")
        || module.contains(":\\");
    if is_file {
        return Some(format!(
            "The module `{module}` is a file of the project that does not exist. Create it or correct the import."
        ));
    }
    if module.starts_with("node:") {
        return None;
    }
    let depth = if module.starts_with('@') { 2 } else { 1 };
    let package = module.split('/').take(depth).collect::<Vec<_>>().join("/");
    Some(format!(
        "The package `{package}` is missing. Run `npm install {package}` (or the project's own package manager) so that package.json names it, or do without it."
    ))
}
