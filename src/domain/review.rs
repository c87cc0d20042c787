//! A reviewer's output: a verdict, and findings on lines of files.

use crate::checks::relative_path;
use crate::pattern::{Pattern, group};
use crate::text::{cap_chars, one_line};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The maximum number of findings read from one review.
pub const MAX_FINDINGS: usize = 100;

/// The maximum lengths of a finding's path and text, in characters.
const MAX_PATH: usize = 500;
const MAX_FINDING: usize = 1_000;

/// The maximum length of a suggested change, in characters.
const MAX_SUGGESTION: usize = 4_000;

/// The maximum length of the review text that is kept for the fixer, in characters.
const MAX_TEXT: usize = 16_000;

/// A reviewer's verdict on the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewVerdict {
    /// The work may be committed unchanged.
    Acceptable,
    /// The work needs fixes first.
    NeedsFixes,
}

impl ReviewVerdict {
    /// The word in the protocol.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acceptable => "ACCEPTABLE",
            Self::NeedsFixes => "NEEDS_FIXES",
        }
    }
}

/// The content of a reviewer's final message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Review {
    /// Whether the work is acceptable.
    pub verdict: ReviewVerdict,
    /// Whether the message has no verdict. It may be incomplete then, so it resolves no review thread.
    pub incomplete: bool,
    /// Its findings, of no round yet.
    pub remarks: Vec<Finding>,
    /// The message, cut to its maximum length.
    pub text: String,
}

impl Review {
    /// Whether it has neither a verdict nor a finding.
    pub fn is_silent(&self) -> bool {
        self.incomplete && self.remarks.is_empty()
    }
}

/// A finding of a review.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The file, relative to the work tree if it lies there.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The last line, if the finding covers several lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_line: Option<u32>,
    /// The problem, in one line.
    pub text: String,
    /// The suggested replacement of these lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The number of the review that found it first, from 1.
    pub round: u32,
    /// Whether a later review did not report it again, or accepted the work.
    pub resolved: bool,
}

impl Finding {
    /// `path:line: text`.
    pub fn says(&self) -> String {
        format!("{}:{}: {}", self.path, self.line, self.text)
    }
}

/// The findings that are not resolved.
pub fn open(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| !finding.resolved)
}

/// All findings, unresolved ones first.
pub fn open_first(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    open(findings).chain(findings.iter().filter(|finding| finding.resolved))
}

static VERDICT: Pattern =
    Pattern::new(r"(?i)^VERDICT\s*[:：]\s*(?:(ACCEPTABLE)|NEEDS[\\_\s-]*FIXES)$");
static REMARK: Pattern = Pattern::new(
    r"^[-*+]\s+(?:\[[ xX]\]\s+)?`?([^\s`][^`]*?)`?:(\d{1,9})(?:-(\d{1,9}))?(?::\d+)?`?:\s+(\S.*)$",
);
static SUGGESTION: Pattern = Pattern::new(r"^(\s*)(`{3,}|~{3,})suggestion\s*$");

/// Reads a reviewer's final message. The verdict is the last line that consists of one; without a verdict,
/// the work needs fixes.
///
/// Paths below `root`, the work tree, are made relative to it.
pub fn read_review(message: &str, root: &str) -> Review {
    let verdict = message.lines().rev().find_map(verdict);
    Review {
        verdict: verdict.unwrap_or(ReviewVerdict::NeedsFixes),
        incomplete: verdict.is_none(),
        remarks: without_doubles(remarks(message, root)),
        text: cap_chars(message.trim(), MAX_TEXT).into_owned(),
    }
}

/// The verdict of a line that contains nothing else, apart from Markdown for bold, code or a heading.
fn verdict(line: &str) -> Option<ReviewVerdict> {
    let plain = line.replace(['*', '`'], "").replace("__", "");
    let plain = plain.trim().trim_start_matches('#').trim_end_matches('.');
    let found = VERDICT.captures(plain.trim())?;
    let acceptable = found.get(1).map(|_| ReviewVerdict::Acceptable);
    Some(acceptable.unwrap_or(ReviewVerdict::NeedsFixes))
}

/// The findings, each with the suggested change that follows it.
fn remarks(message: &str, root: &str) -> Vec<Finding> {
    let mut remarks: Vec<Finding> = Vec::new();
    let mut lines = message.lines();
    let mut follows_a_finding = false;
    while let Some(line) = lines.next() {
        if let Some(remark) = remark(line, root) {
            if remarks.len() == MAX_FINDINGS {
                break;
            }
            remarks.push(remark);
            follows_a_finding = true;
        } else if follows_a_finding && let Some(found) = SUGGESTION.captures(line) {
            let (indent, fence) = (group(&found, 1), group(&found, 2));
            let suggested = suggestion(lines.clone(), indent, fence);
            if let (Some((text, rest)), Some(last)) = (suggested, remarks.last_mut()) {
                lines = rest;
                last.suggestion = Some(text);
            }
            follows_a_finding = false;
        } else {
            follows_a_finding = follows_a_finding && line.trim().is_empty();
        }
    }
    remarks
}

/// The text up to the end of its fence, without the fence's indentation, and the lines after it. `None` if
/// the fence has no end or the text is too long.
fn suggestion<'a>(
    mut lines: std::str::Lines<'a>,
    indent: &str,
    fence: &str,
) -> Option<(String, std::str::Lines<'a>)> {
    let mut text = Vec::new();
    let mut line = lines.next()?;
    while line.trim() != fence {
        let inside = line.strip_prefix(indent);
        text.push(inside.unwrap_or_else(|| line.trim_start()));
        line = lines.next()?;
    }
    let text = text.join("\n");
    (text.chars().count() <= MAX_SUGGESTION).then_some((text, lines))
}

/// A reviewer may list its findings again at the end.
fn without_doubles(remarks: Vec<Finding>) -> Vec<Finding> {
    let mut single: Vec<Finding> = Vec::new();
    for remark in remarks {
        let is_same = |it: &&mut Finding| {
            (&it.path, it.line, it.end_line, &it.text)
                == (&remark.path, remark.line, remark.end_line, &remark.text)
        };
        match single.iter_mut().find(is_same) {
            Some(known) => known.suggestion = known.suggestion.take().or(remark.suggestion),
            None => single.push(remark),
        }
    }
    single
}

fn remark(line: &str, root: &str) -> Option<Finding> {
    let plain = line.replace("**", "");
    let found = REMARK.captures(plain.trim())?;
    let path = group(&found, 1).trim();
    let relative = relative_path(path, root);
    let path = relative.as_deref().unwrap_or(path);
    let line = group(&found, 2).parse().ok().filter(|line| *line > 0)?;
    let last = group(&found, 3).parse().ok();
    let is_address = path.contains("://") || path.ends_with("//");
    (!is_address).then(|| Finding {
        path: one_line(path, MAX_PATH),
        line,
        end_line: last.filter(|last| *last > line),
        text: one_line(group(&found, 4), MAX_FINDING),
        suggestion: None,
        round: 0,
        resolved: false,
    })
}

/// Merges the review of a round into the earlier findings: a finding that is not found again is resolved, and
/// all findings are resolved if the work is accepted.
pub fn take_review(findings: &mut Vec<Finding>, round: u32, review: &Review) {
    let accepted = review.verdict == ReviewVerdict::Acceptable;
    let mut new: Vec<&Finding> = review.remarks.iter().collect();
    for finding in findings.iter_mut().filter(|finding| !finding.resolved) {
        let again = |remark: &&Finding| remark.path == finding.path && remark.text == finding.text;
        match new.iter().position(again) {
            Some(at) if !accepted => {
                let again = new.remove(at);
                (finding.line, finding.end_line) = (again.line, again.end_line);
                finding.suggestion.clone_from(&again.suggestion);
            }
            _ => finding.resolved = true,
        }
    }
    findings.extend(new.into_iter().map(|remark| Finding {
        round,
        resolved: accepted,
        ..remark.clone()
    }));
}

#[cfg(test)]
mod tests {
    use super::ReviewVerdict::{Acceptable, NeedsFixes};
    use super::*;

    #[test]
    fn the_last_line_that_is_only_a_verdict_counts() {
        for (message, expected) in [
            ("VERDICT: ACCEPTABLE", Acceptable),
            ("fine\n\n**VERDICT: ACCEPTABLE**\n", Acceptable),
            ("**VERDICT:** ACCEPTABLE", Acceptable),
            ("**VERDICT**: ACCEPTABLE", Acceptable),
            ("VERDICT: **ACCEPTABLE**", Acceptable),
            ("  VERDICT:ACCEPTABLE  ", Acceptable),
            ("## VERDICT: ACCEPTABLE", Acceptable),
            ("`VERDICT: ACCEPTABLE`", Acceptable),
            ("VERDICT: ACCEPTABLE.", Acceptable),
            ("*Verdict:* acceptable", Acceptable),
            ("***VERDICT: ACCEPTABLE***", Acceptable),
            ("VERDICT：ACCEPTABLE", Acceptable),
            ("```\nVERDICT: ACCEPTABLE\n```", Acceptable),
            ("VERDICT: ACCEPTABLE\nVerdict: Needs fixes", NeedsFixes),
            ("VERDICT: ACCEPTABLE\nVERDICT: NEEDS\\_FIXES", NeedsFixes),
            ("> VERDICT: ACCEPTABLE", NeedsFixes),
            ("- VERDICT: ACCEPTABLE", NeedsFixes),
            ("VERDICT: UNACCEPTABLE", NeedsFixes),
            ("VERDICT: NEEDS_FIXES", NeedsFixes),
            ("VERDICT: NEEDS_FIXES\nVERDICT: ACCEPTABLE", Acceptable),
            ("VERDICT: ACCEPTABLE\nVERDICT: NEEDS_FIXES", NeedsFixes),
            ("VERDICT: ACCEPTABLE\nand that is all", Acceptable),
            ("VERDICT: ACCEPTABLE or VERDICT: NEEDS_FIXES", NeedsFixes),
            (
                "VERDICT: ACCEPTABLE\nVERDICT: ACCEPTABLE NEEDS_FIXES",
                Acceptable,
            ),
            ("My VERDICT: ACCEPTABLE", NeedsFixes),
            ("VERDICT: ACCEPTABLE, I think", NeedsFixes),
            ("VERDICT:", NeedsFixes),
            ("looks good", NeedsFixes),
            ("", NeedsFixes),
        ] {
            assert_eq!(read_review(message, "/w").verdict, expected, "{message:?}");
        }
    }

    #[test]
    fn a_finding_is_a_line_with_path_and_line() {
        let message = "\
- src/a.rs:3: off by one
* `src/b c.rs:10:4`: **wrong** name
  - `c.rs`:7: late
- [ ] d.rs:8: open
+ e.rs:9: more
- src/a.rs: no line
- see http://localhost:80: no file
src/a.rs:3: no item
- d.rs:0: no such line";
        let found = read_review(message, "/w").remarks;
        let found: Vec<(&str, u32, &str)> = found
            .iter()
            .map(|it| (it.path.as_str(), it.line, it.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("src/a.rs", 3, "off by one"),
                ("src/b c.rs", 10, "wrong name"),
                ("c.rs", 7, "late"),
                ("d.rs", 8, "open"),
                ("e.rs", 9, "more"),
            ]
        );
    }

    #[test]
    fn a_finding_is_counted_once_and_its_path_is_that_of_the_repository() {
        let message = "\
- /w/src/a.rs:3: off by one
- ./src/a.rs:3: off by one
```suggestion
1
```
- src/a.rs:3: late
- /elsewhere/a.rs:3: late
- ../a.rs:3: late

In short:
- src/a.rs:3: off by one
VERDICT: NEEDS_FIXES";
        let found = read_review(message, "/w").remarks;
        let paths: Vec<&str> = found.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            paths,
            ["src/a.rs", "src/a.rs", "/elsewhere/a.rs", "../a.rs"]
        );
        let suggested: Vec<Option<&str>> =
            found.iter().map(|it| it.suggestion.as_deref()).collect();
        assert_eq!(suggested, [Some("1"), None, None, None]);
    }

    #[test]
    fn a_finding_may_be_on_several_lines_and_suggest_other_ones() {
        let message = "\
- a.rs:3-5: too long
  ```suggestion
  let a = 1;
    let b = 2;
  ```
- b.rs:7-2: one line

````suggestion
```
````
- c.rs:1: no suggestion of its own
said of it
```suggestion
lost
```
- d.rs:2: nothing is left of it
```suggestion
```
- e.rs:9: without an end
```suggestion
- f.rs:1: still found
";
        let review = read_review(message, "/w");
        let found: Vec<(&str, Option<u32>, Option<&str>)> = review
            .remarks
            .iter()
            .map(|it| (it.path.as_str(), it.end_line, it.suggestion.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                ("a.rs", Some(5), Some("let a = 1;\n  let b = 2;")),
                ("b.rs", None, Some("```")),
                ("c.rs", None, None),
                ("d.rs", None, Some("")),
                ("e.rs", None, None),
                ("f.rs", None, None),
            ]
        );
    }

    #[test]
    fn what_is_not_found_again_is_resolved() {
        let mut findings = Vec::new();
        let first = read_review("- a:1: x\n- b:2: y\nVERDICT: NEEDS_FIXES", "/w");
        take_review(&mut findings, 1, &first);
        let second = read_review("- b:5: y\n- c:1: z", "/w");
        take_review(&mut findings, 2, &second);
        let told: Vec<(String, u32, bool)> = findings
            .iter()
            .map(|it| (it.says(), it.round, it.resolved))
            .collect();
        assert_eq!(
            told,
            [
                ("a:1: x".to_owned(), 1, true),
                ("b:5: y".to_owned(), 1, false),
                ("c:1: z".to_owned(), 2, false),
            ]
        );
        take_review(&mut findings, 3, &read_review("VERDICT: ACCEPTABLE", "/w"));
        assert!(findings.iter().all(|it| it.resolved));
    }
}
