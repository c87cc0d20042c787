//! The part of a failing output that is worth an agent's time, within a budget of characters.

use super::verdict::CheckOutcome;
use super::{blocks, failing_test, fold};
use crate::text::{self, grouped};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a notice of a cut costs at most, its newline included.
const NOTICE: usize = 48;
/// Below this nothing but the end of the output is worth showing.
const TINY: usize = 600;
/// Longest line that is shown whole, in characters.
const MAX_LINE: usize = 600;

/// How a list of failing tests begins.
const LIST: &str = "Failing tests (";

/// One failing check, for a prompt or a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailingCheck<'a> {
    /// The check's name.
    pub name: &'a str,
    /// How it ended.
    pub outcome: &'a CheckOutcome,
    /// What it printed.
    pub output: &'a str,
}

/// At most `budget` characters of `output`: the names of all failing tests (or, where they are too
/// many, of their files), the failures themselves, above all the first and the last, and the last
/// lines. Repetitions are folded, and every cut leaves a notice of its size.
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

/// The excerpts of several failing checks, each under a heading that tells its name and how it
/// ended, together at most `budget` characters. A check that needs less than its share leaves the
/// rest to the others.
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

/// `total` divided so that no need is overfilled and what one leaves goes to the others evenly.
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

/// The list at the head of an output that is itself an excerpt, and what follows it.
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

/// A list that was made before is kept as it is where it fits: the output below it has already
/// lost what it was made from.
fn names_within(listed: &[&str], body: &[&str], budget: usize) -> String {
    let before: usize = listed.iter().map(|line| cost(line)).sum();
    if !listed.is_empty() && before < budget {
        return listed.join("\n") + "\n\n";
    }
    let mut failing = failing_test::names_in(body);
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

/// The failing tests one by one, else counted by file, else as many as fit.
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

/// The file, module or suite that a test's name begins with.
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

/// Lines of an output that are to be shown, chosen until the budget is spent.
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

    /// The order is that of importance; what is kept is shown in the order of the output.
    fn fill(mut self, name_failures: bool) -> Self {
        let budget = self.left;
        let count = self.lines.len();
        let blocks = blocks::find(self.lines);
        self.take_last(count, budget / 3);
        // The last failure is often above a long summary that the lines so far are made of.
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

    /// Keeps lines of `range` from its start while they cost at most `limit`, and tells the cost.
    fn take_first(&mut self, range: Range<usize>, limit: usize) -> usize {
        self.take(range, limit)
    }

    /// Keeps the lines before `end` from the last one upwards.
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
            // Each run of kept lines may need a notice on either side of it.
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
