//! Finds the failures in an output.

use super::tools;
use crate::pattern::Pattern;
use std::ops::Range;

/// The maximum length of one failure, in lines.
const SECTION: usize = 60;
/// The maximum number of lines after a standalone mention of an error.
const MENTION: usize = 8;

/// A line that reports a failure wherever it stands.
static MENTIONED: Pattern = Pattern::new(
    r"(?x)
      \b(?:FAIL|FAILED|FAILURE|FAILURES)\b
    | (?i:\b(?:fatal|error|exception|panic|panicked)\b\s*(?:\[\w+\])?[:\]])
    | ^\s*(?:FATAL|ERROR|CRITICAL|SEVERE)\b
    | \b[A-Z]\w*(?:Error|Exception)\b(?::|$)
    | ^Traceback\ | ^E\s{2,}\S
    | (?i:assertion\ .*failed|segmentation\ fault|core\ dumped|undefined\ reference|command\ not\ found|no\ such\ file|out\ of\ memory|cannot\ find)
    ",
);

static HARMLESS: Pattern = Pattern::new(
    r"(?x)
      \b0\ (?:failed|failures?|errors?)\b.*$ | \.\.\.\ ok$ | ^test\ result:\ ok
    | (?i:\b(?:failures?|errors?)\s*[:=]\s*0\b) | ^\s*(?:✓|✔|√)\ | \bPASS(?:ED)?\b
    | ^test\ .*\ \.\.\.\ FAILED$
    | ^error:\ (?:test\ failed,\ to\ rerun|\d+\ targets?\ failed|could\ not\ compile|aborting\ due|test\ run\ failed)
    | ^=+\ (?:FAILURES|ERRORS|short\ test\ summary\ info)\ =+$
    ",
);

static END: Pattern = Pattern::new(
    r"(?x)^(?:
      failures:$ | test\ result: | running\ \d+\ test | =+\ .*=+$ | ={10,}$ | ===\ (?:RUN|CONT)
    | ok\ |\s*ok\ \d | PASS\b | \s*(?:✓|✔|√)\  | Test\ Suites: | \ Test\ Files\  | \d+\.\.\d+$
    | ⎯{10,} | Ran\ \d+\ tests?\ in | [\#ℹ]\ (?:tests|suites|pass)\ \d
    )",
);

/// The line ranges of the failures, in order and without overlap.
pub(super) fn find<S: AsRef<str>>(lines: &[S]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let line = line.as_ref();
        let reach = if HARMLESS.is_match(line) {
            None
        } else if tools::is_header(line) {
            Some(SECTION)
        } else if MENTIONED.is_match(line) {
            Some(MENTION)
        } else {
            None
        };
        match reach {
            Some(reach) => {
                let end = end_of(lines, at, reach);
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// Whether a line by itself reports a failure.
pub(super) fn is_mention(line: &str) -> bool {
    MENTIONED.is_match(line) && !HARMLESS.is_match(line)
}

fn end_of<S: AsRef<str>>(lines: &[S], start: usize, reach: usize) -> usize {
    let mut blanks = 0;
    let mut end = start + 1;
    for line in lines.iter().skip(start + 1).take(reach) {
        let line = line.as_ref();
        if line.trim().is_empty() {
            blanks += 1;
            // A mention is one paragraph; a section may have several.
            if blanks == 2 || reach == MENTION {
                break;
            }
        } else {
            if tools::is_header(line) || END.is_match(line) {
                break;
            }
            if reach == MENTION && !line.starts_with([' ', '\t']) && !is_mention(line) {
                break;
            }
            blanks = 0;
        }
        end += 1;
    }
    end
}
