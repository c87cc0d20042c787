//! The most useful part of a failing output, within a limit in characters.

use super::check::CheckOutcome;
use super::{blocks, fold, reading};
use crate::text::{self, grouped};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The maximum length of a notice about omitted lines, including its newline.
const NOTICE: usize = 48;
/// Below this limit, only the end of the output is shown.
const TINY: usize = 600;
/// The maximum length of a line that is shown in full, in characters.
const MAX_LINE: usize = 600;

/// The beginning of a list of failed tests.
const LIST: &str = "Failing tests (";

/// One failing check, for a prompt or a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailingCheck<'a> {
    /// The check's name.
    pub name: &'a str,
    /// Its outcome.
    pub outcome: &'a CheckOutcome,
    /// What it printed.
    pub output: &'a str,
}

/// At most `budget` characters of `output`: the names of all failed tests (or of their files, if there are
/// too many), the failures themselves, above all the first and the last, and the last lines. Repetitions are
/// folded, and every cut leaves a notice of its size.
pub fn excerpt(output: &str, budget: usize) -> String {
    let plain = text::plain(output);
    let trimmed = plain.trim_end();
    let raw: Vec<&str> = trimmed.lines().map(str::trim_end).collect();
    let lines = fold::fold(&raw, MAX_LINE);
    let size: usize = lines.iter().map(|line| cost(line)).sum();
    if size.saturating_sub(1) <= budget {
        return lines.join("\n");
    }
    if budget < TINY {
        return tail_only(trimmed, budget);
    }
    let (listed, body) = own_list(&raw);
    let lines = fold::fold(body, (budget / 10).min(MAX_LINE));
    let head = names_within(listed, body, budget * 2 / 5);
    let rest = budget - head.chars().count();
    let selection = Selection {
        lines: &lines,
        keep: vec![false; lines.len()],
        left: rest,
    };
    let body = selection.fill(head.is_empty()).render();
    text::cap_chars(&(head + &body), budget).into_owned()
}

/// The excerpts of several failed checks, each under a heading with its name and outcome, together at most
/// `budget` characters. What one check does not need of its share goes to the others.
pub fn excerpts(checks: &[FailingCheck<'_>], budget: usize) -> String {
    let headings = checks.iter();
    let headings = headings.map(|check| format!("### {}: {}\n", check.name, check.outcome));
    let headings: Vec<String> = headings.collect();
    let fixed: usize = headings.iter().map(|it| it.chars().count() + 2).sum();
    let Some(free) = budget.checked_sub(fixed) else {
        return text::cap_chars(&headings.concat(), budget).into_owned();
    };
    let whole = |check: &FailingCheck<'_>| excerpt(check.output, usize::MAX).chars().count();
    let needs: Vec<usize> = checks.iter().map(whole).collect();
    let shares = shared(&needs, free).into_iter();
    let parts = checks.iter().zip(headings).zip(shares);
    let parts = parts.map(|((check, heading), share)| {
        let body = excerpt(check.output, share);
        let is_none = body.is_empty();
        heading
            + if is_none {
                "(no output)"
            } else {
                body.as_str()
            }
    });
    let whole = parts.collect::<Vec<_>>().join("\n\n");
    text::cap_chars(&whole, budget).into_owned()
}

/// Divides `total` among the needs. No share exceeds its need, and what one leaves over goes evenly to the
/// others.
fn shared(needs: &[usize], total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs[*index]);
    let mut shares = vec![0; needs.len()];
    let mut left = total;
    for (done, index) in order.into_iter().enumerate() {
        shares[index] = needs[index].min(left / (needs.len() - done));
        left -= shares[index];
    }
    shares
}

fn cost(line: &str) -> usize {
    line.chars().count() + 1
}

fn tail_only(text: &str, budget: usize) -> String {
    let Some(kept) = budget.checked_sub(1) else {
        return String::new();
    };
    let chars = text.chars().count();
    let tail: String = text.chars().skip(chars.saturating_sub(kept)).collect();
    format!("…{tail}")
}

/// The list of tests at the start of an output that is itself an excerpt, and the lines after it.
fn own_list<'a, 'b>(lines: &'b [&'a str]) -> (&'b [&'a str], &'b [&'a str]) {
    let is_heading = |line: &&str| line.starts_with(LIST) && line.ends_with("):");
    let below = lines.iter().skip(1);
    let names = below.take_while(|line| line.starts_with("- ")).count();
    let heading = lines.first().filter(|line| names > 0 && is_heading(line));
    lines.split_at(heading.map_or(0, |_| names + 1))
}

/// An existing list is kept if it fits, because the output below it no longer contains all the failures that
/// it was made from.
fn names_within(listed: &[&str], body: &[&str], budget: usize) -> String {
    let before: usize = listed.iter().map(|line| cost(line)).sum();
    if !listed.is_empty() && before < budget {
        return listed.join("\n") + "\n\n";
    }
    let mut failing = reading::names_in(body);
    let singly = listed
        .iter()
        .skip(1)
        .filter(|line| !line.ends_with(" failing)"));
    let names = singly.filter_map(|line| line.strip_prefix("- "));
    failing.extend(names.map(str::to_owned));
    name_list(&failing, budget)
}

/// The failed tests one by one, or counted by file, or as many as fit.
fn name_list(failing: &BTreeSet<String>, budget: usize) -> String {
    let heading = format!("{LIST}{}):\n", grouped(failing.len()));
    let room = budget.checked_sub(heading.chars().count() + 1);
    let Some(room) = room.filter(|_| !failing.is_empty()) else {
        return String::new();
    };
    let each: String = failing.iter().map(|name| format!("- {name}\n")).collect();
    if each.chars().count() <= room {
        return heading + &each + "\n";
    }
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for name in failing {
        *groups.entry(group_of(name)).or_default() += 1;
    }
    let mut list = heading;
    let mut left = room.saturating_sub(NOTICE);
    for (done, (group, n)) in groups.iter().enumerate() {
        let line = format!("- {group} ({n} failing)\n");
        let Some(rest) = left.checked_sub(line.chars().count()) else {
            list.push_str(&format!("- … and {} more\n", groups.len() - done));
            break;
        };
        left = rest;
        list.push_str(&line);
    }
    list + "\n"
}

/// The file, module or suite at the start of a test's name.
fn group_of(name: &str) -> &str {
    let suite = [" › ", " > "].iter().find_map(|by| name.split_once(by));
    let is_python = name.contains(".py::");
    let module = || {
        name.split_once("::")
            .filter(|_| is_python)
            .or(name.rsplit_once("::"))
    };
    let group = suite.or_else(module).or_else(|| name.split_once('/'));
    group.map_or(name, |(group, _)| group)
}

/// The output lines selected for the excerpt, chosen until the budget is spent.
struct Selection<'a> {
    lines: &'a [Cow<'a, str>],
    keep: Vec<bool>,
    left: usize,
}

impl Selection<'_> {
    /// Lines are chosen in order of importance and shown in the order of the output.
    fn fill(mut self, name_failures: bool) -> Self {
        let budget = self.left;
        let count = self.lines.len();
        let blocks = blocks::find(self.lines);
        self.take((0..count).rev(), budget / 3);
        // The last failure is often above a long summary, which fills the lines chosen so far.
        let hidden = blocks.iter().rev().find(|block| !self.shows(block));
        if let Some(last) = hidden {
            self.take(last.clone(), budget / 4);
        }
        if let Some(first) = blocks.first() {
            self.take(first.clone(), budget / 5);
        }
        if name_failures {
            let mut room = budget / 5;
            for block in &blocks {
                room = room.saturating_sub(self.take(block.start..block.start + 1, room));
            }
        }
        for (done, block) in blocks.iter().enumerate() {
            let even = self.left / (blocks.len() - done);
            self.take(block.clone(), even.max(300));
        }
        self.take((0..count).rev(), self.left);
        self.take(0..count, self.left);
        self
    }

    fn shows(&self, range: &Range<usize>) -> bool {
        let lines = self.keep.get(range.clone()).unwrap_or_default();
        lines.iter().all(|kept| *kept)
    }

    /// Keeps lines while they cost at most `limit`, and returns the cost.
    fn take(&mut self, range: impl Iterator<Item = usize>, limit: usize) -> usize {
        let limit = limit.min(self.left);
        let mut spent = 0;
        for index in range {
            if self.keep[index] {
                continue;
            }
            // Each run of kept lines may need a notice on both sides.
            let notices = if spent == 0 { 2 * NOTICE } else { 0 };
            let price = cost(&self.lines[index]) + notices;
            if spent + price > limit {
                break;
            }
            spent += price;
            self.keep[index] = true;
        }
        self.left -= spent;
        spent
    }

    fn render(self) -> String {
        let mut text = String::new();
        let mut cut = 0;
        for (line, kept) in self.lines.iter().zip(&self.keep) {
            if *kept {
                flush(&mut text, &mut cut);
                text.push_str(line);
                text.push('\n');
            } else {
                cut += cost(line);
            }
        }
        flush(&mut text, &mut cut);
        text.truncate(text.trim_end().len());
        text
    }
}

fn flush(text: &mut String, cut: &mut usize) {
    if *cut > 0 {
        text.push_str(&format!("[… {} characters cut …]\n", grouped(*cut)));
        *cut = 0;
    }
}
