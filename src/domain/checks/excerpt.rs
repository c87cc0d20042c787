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
    let body = Selection::new(&lines, rest).fill(head.is_empty()).render();
    text::cap_chars(&(head + &body), budget).into_owned()
}

/// The excerpts of several failed checks, each under a heading with its name and outcome, together at most
/// `budget` characters. What one check does not need of its share goes to the others.
pub fn excerpts(checks: &[FailingCheck<'_>], budget: usize) -> String {
    let headings: Vec<String> = checks
        .iter()
        .map(|check| format!("### {}: {}\n", check.name, check.outcome))
        .collect();
    let fixed: usize = headings
        .iter()
        .map(|heading| heading.chars().count() + 2)
        .sum();
    let Some(free) = budget.checked_sub(fixed) else {
        return text::cap_chars(&headings.concat(), budget).into_owned();
    };
    let needs: Vec<usize> = checks
        .iter()
        .map(|check| excerpt(check.output, usize::MAX).chars().count())
        .collect();
    let shares = shared(&needs, free);
    let parts = checks
        .iter()
        .zip(&headings)
        .zip(shares)
        .map(|((check, heading), share)| {
            let body = excerpt(check.output, share);
            if body.is_empty() {
                format!("{heading}(no output)")
            } else {
                format!("{heading}{body}")
            }
        });
    let whole = parts.collect::<Vec<_>>().join("\n\n");
    text::cap_chars(&whole, budget).into_owned()
}

/// Divides `total` among the needs. No share exceeds its need, and what one leaves over goes evenly to the
/// others.
fn shared(needs: &[usize], total: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs.get(*index).copied());
    let mut shares = vec![0; needs.len()];
    let mut left = total;
    for (done, index) in order.iter().enumerate() {
        let even = left / (needs.len() - done);
        let share = needs.get(*index).copied().unwrap_or_default().min(even);
        if let Some(slot) = shares.get_mut(*index) {
            *slot = share;
        }
        left -= share;
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
    let begins = lines
        .first()
        .is_some_and(|it| it.starts_with(LIST) && it.ends_with("):"));
    let names = lines
        .iter()
        .skip(1)
        .take_while(|line| line.starts_with("- "))
        .count();
    if begins && names > 0 {
        lines.split_at(names + 1)
    } else {
        (&[], lines)
    }
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
    failing.extend(
        singly
            .filter_map(|line| line.strip_prefix("- "))
            .map(str::to_owned),
    );
    name_list(&failing, budget)
}

/// The failed tests one by one, or counted by file, or as many as fit.
fn name_list(failing: &BTreeSet<String>, budget: usize) -> String {
    if failing.is_empty() {
        return String::new();
    }
    let heading = format!("{LIST}{}):\n", grouped(failing.len()));
    let each: Vec<String> = failing.iter().map(|name| format!("- {name}\n")).collect();
    let Some(room) = budget.checked_sub(heading.chars().count() + 1) else {
        return String::new();
    };
    let total: usize = each.iter().map(|line| line.chars().count()).sum();
    if total <= room {
        return heading + &each.concat() + "\n";
    }
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for name in failing {
        *groups.entry(group_of(name)).or_default() += 1;
    }
    let counted: Vec<String> = groups
        .iter()
        .map(|(group, n)| format!("- {group} ({n} failing)\n"))
        .collect();
    let mut list = heading;
    let mut left = room.saturating_sub(NOTICE);
    for (done, line) in counted.iter().enumerate() {
        let Some(rest) = left.checked_sub(line.chars().count()) else {
            list.push_str(&format!("- … and {} more\n", counted.len() - done));
            break;
        };
        left = rest;
        list.push_str(line);
    }
    list + "\n"
}

/// The file, module or suite at the start of a test's name.
fn group_of(name: &str) -> &str {
    let cut = [" › ", " > "]
        .iter()
        .find_map(|by| name.split_once(by).map(|it| it.0));
    let module = || {
        if name.contains(".py::") {
            name.split_once("::")
        } else {
            name.rsplit_once("::")
        }
        .map(|it| it.0)
    };
    cut.or_else(module)
        .or_else(|| name.split_once('/').map(|it| it.0))
        .unwrap_or(name)
}

/// The output lines selected for the excerpt, chosen until the budget is spent.
struct Selection<'a> {
    lines: &'a [Cow<'a, str>],
    keep: Vec<bool>,
    left: usize,
}

impl<'a> Selection<'a> {
    fn new(lines: &'a [Cow<'a, str>], budget: usize) -> Self {
        Self {
            lines,
            keep: vec![false; lines.len()],
            left: budget,
        }
    }

    /// Lines are chosen in order of importance and shown in the order of the output.
    fn fill(mut self, name_failures: bool) -> Self {
        let budget = self.left;
        let count = self.lines.len();
        let blocks = blocks::find(self.lines);
        self.take_last(count, budget / 3);
        // The last failure is often above a long summary, which fills the lines chosen so far.
        let hidden = blocks.iter().rev().find(|block| !self.shows(block));
        if let Some(last) = hidden {
            self.take_first(last.clone(), budget / 4);
        }
        if let Some(first) = blocks.first() {
            self.take_first(first.clone(), budget / 5);
        }
        if name_failures {
            let mut room = budget / 5;
            for block in &blocks {
                room = room.saturating_sub(self.take_first(block.start..block.start + 1, room));
            }
        }
        for (done, block) in blocks.iter().enumerate() {
            let even = self.left / (blocks.len() - done);
            self.take_first(block.clone(), even.max(300));
        }
        self.take_last(count, self.left);
        self.take_first(0..count, self.left);
        self
    }

    fn shows(&self, range: &Range<usize>) -> bool {
        self.keep
            .get(range.clone())
            .is_some_and(|lines| lines.iter().all(|kept| *kept))
    }

    /// Keeps lines from the start of `range` while they cost at most `limit`, and returns the cost.
    fn take_first(&mut self, range: Range<usize>, limit: usize) -> usize {
        self.take(range, limit)
    }

    /// Keeps lines before `end`, from the last one upwards.
    fn take_last(&mut self, end: usize, limit: usize) -> usize {
        self.take((0..end).rev(), limit)
    }

    fn take(&mut self, range: impl Iterator<Item = usize>, limit: usize) -> usize {
        let limit = limit.min(self.left);
        let mut spent = 0;
        let mut opened = false;
        for index in range {
            let (Some(line), Some(kept)) = (self.lines.get(index), self.keep.get(index)) else {
                break;
            };
            if *kept {
                continue;
            }
            // Each run of kept lines may need a notice on both sides.
            let price = cost(line) + if opened { 0 } else { 2 * NOTICE };
            if spent + price > limit {
                break;
            }
            opened = true;
            spent += price;
            if let Some(kept) = self.keep.get_mut(index) {
                *kept = true;
            }
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
