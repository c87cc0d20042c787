//! The Test Anything Protocol: `prove`, tap for Node.js, and `node --test` in that format.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, sum};
use crate::checks::diagnostic::{Location, Output, Sink, below};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "TAP",
    kind: ToolKind::Tests,
    signs: &[
        r"^TAP version \d+$",
        r"^1\.\.\d+",
        r"^(?: {4})*not ok \d+",
        r"^#   Failed test ",
    ],
    read,
    counts,
    result,
    headers: &[r"\s*not\ ok\ ", r"\#\ \ \ Failed\ test\ "],
    around: Some((r"^TAP version [0-9]+$", r"^1\.\.[0-9]+")),
    ..Tool::NOTHING
};

/// The location of a failed test, as bats prints it.
pub(super) const BATS_PLACES: &str =
    r"^(?:# +| +)\(?(?:from function .+ )?in (?:test )?file (?<path>.+?), line (?<line>\d+)[,)]";
pub(super) static BATS_PLACE: Pattern = Pattern::new(BATS_PLACES);

/// The location of a failed test, as Perl's modules print it.
static PERL_PLACE: Pattern =
    Pattern::new(r"^\s*#\s+(?:Failed test '.*' )?at (\S.*?) line (\d+)\.$");
static PERL_FAILED: Pattern = Pattern::new(r"^\s*#   Failed test '(.*)'$");
/// The location of a failed test, or of its start, in the block below a Node test.
static LOCATION: Pattern =
    Pattern::new(r"^\s+(?:location: |at .*\()'?(?:file://)?([^'()]+?):(\d+):(\d+)'?\)?$");

/// Lines of the block below a Node test that say nothing about its failure.
static HEADING: Pattern = Pattern::new(
    r"^(?:---|\.\.\.|duration_ms: .*|location: .*|failureType: .*|error: \|-|code: .*|name: .*|operator: .*|Subtest: .*)$",
);

/// The mark of a test whose result does not count.
static DIRECTIVE: Pattern = Pattern::new(r"(?i)(?:^|\s)#\s*(?:skip|todo)\b");

const REACH: usize = 40;

/// Lines on standard output report failed tests. The messages of Perl's modules about them are on standard
/// error: they may appear anywhere, and without those lines when `prove` hides them.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = PERL_FAILED.captures(line) {
            let below = lines.get(at + 1).and_then(|line| PERL_PLACE.captures(line));
            let place = below.map(|found| Location::new(group(&found, 1), group(&found, 2)));
            let said = lines.iter().skip(at + 2).take(REACH);
            let said: Vec<&str> = said
                .take_while(|line| line.starts_with("#  ") && !PERL_FAILED.is_match(line))
                .map(|line| line.trim_start_matches('#').trim())
                .collect();
            sink.failing(
                at,
                place.unwrap_or_default(),
                group(&found, 1),
                &said.join("\n"),
            )
            .lines(at..at + 2 + said.len());
        } else if let Some((name, true)) = result(line) {
            point(lines, at, name, sink);
        }
    }
}

fn result(line: &str) -> Option<(&str, bool)> {
    static POINT: Pattern = Pattern::new(
        r"^(?: {4})*(not )?ok \d+(?: -)? (\S.*?)(?:\s+# (?:time=.*|[\d.]+ ?m?s)| in \d+(?:ms|sec))?\s*$",
    );
    let found = POINT.captures(line)?;
    let name = group(&found, 2);
    (!DIRECTIVE.is_match(name)).then(|| (name, !group(&found, 1).is_empty()))
}

/// Reads a failed test with the comments and the block below it.
fn point(lines: &[&str], at: usize, name: &str, sink: &mut Sink<'_>) {
    let below = below(lines, at, REACH, |line| {
        let text = line.trim_start();
        line.starts_with(['#', ' ']) && !text.starts_with("ok ") && !text.starts_with("not ok ")
    });
    let places = [&BATS_PLACE, &LOCATION].into_iter().flat_map(|pattern| {
        below
            .iter()
            .filter_map(|line| pattern.captures(line))
            .map(|found| Location::of(&found))
    });
    let place = places.into_iter().find(|place| sink.is_own(place.path));
    sink.test(name);
    if let Some(place) = place {
        let said: Vec<&str> = below
            .iter()
            .filter(|line| !BATS_PLACE.is_match(line))
            .map(|line| line.trim_start_matches(['#', ' ']).trim())
            .take_while(|line| !line.starts_with("stack: "))
            .filter(|line| !line.is_empty() && !HEADING.is_match(line))
            .map(quoted_error)
            .take(12)
            .collect();
        sink.failure(at, place, name, &said.join("\n"))
            .lines(at..at + 1 + below.len());
    }
}

/// The message of an error that Node prints in quotes, on one line.
fn quoted_error(line: &str) -> &str {
    let text = line.strip_prefix("error: '");
    text.and_then(|text| text.strip_suffix('\''))
        .unwrap_or(line)
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static VERSION: Pattern = Pattern::new(r"^TAP version \d+$");
    static PLAN: Pattern = Pattern::new(r"^1\.\.(\d+)(?:\s+#.*)?$");
    static POINT: Pattern = Pattern::new(r"^(not )?ok\b(?: \d+)?(.*)$");
    let mut version = false;
    let (mut passed, mut failed, mut points) = (0u64, 0u64, 0u64);
    let mut planned = Some(0u64);
    let mut plans = 0u32;
    for line in lines {
        version |= VERSION.is_match(line);
        if let Some(found) = PLAN.captures(line) {
            planned = sum(&[planned, group(&found, 1).parse().ok()]);
            plans += 1;
        } else if let Some(found) = POINT.captures(line) {
            points += 1;
            if !DIRECTIVE.is_match(group(&found, 2)) {
                let is_failed = !group(&found, 1).is_empty();
                failed += u64::from(is_failed);
                passed += u64::from(!is_failed);
            }
        }
    }
    // Node's runner counts its nested tests in a summary of its own.
    let summarised = lines.iter().any(|line| line.starts_with("# pass "));
    if summarised || (plans == 0 && !(version && points > 0)) {
        return None;
    }
    let complete = plans > 0 && planned == Some(points);
    Some(if complete {
        Counts::of(passed, failed)
    } else {
        Counts::UNKNOWN
    })
}
