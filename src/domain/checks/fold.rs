//! Folds repetitions and shortens long lines, so that the character limit is spent on differences.

use crate::pattern::Pattern;
use crate::text::grouped;
use std::borrow::Cow;
use std::ops::Range;

/// The maximum length of a repeated block that is detected, in lines.
const MAX_PERIOD: usize = 12;
/// `lines`, with repeated lines and blocks, runtime frames and the middles of very long lines replaced by
/// notices. A line is very long if it exceeds `longest` characters.
pub(super) fn fold<'a>(lines: &[&'a str], longest: usize) -> Vec<Cow<'a, str>> {
    let mut folded: Vec<Cow<'a, str>> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (shown, notice, end) = frames(lines, at)
            .or_else(|| repetition(lines, at))
            .unwrap_or((at..at + 1, None, at + 1));
        let shown = lines.get(shown).unwrap_or_default();
        folded.extend(shown.iter().map(|line| shorten(line, longest)));
        folded.extend(notice.map(Cow::Owned));
        at = end;
    }
    folded
}

/// The lines to show, the notice about the others, and the end of the folded part.
type Folded = (Range<usize>, Option<String>, usize);

/// Folds frames of a runtime, if there is more than one.
fn frames(lines: &[&str], at: usize) -> Option<Folded> {
    let rest = lines.get(at..)?;
    let count = rest
        .iter()
        .take_while(|line| is_runtime_frame(line))
        .count();
    let notice = format!("      … {count} lines of runtime frames");
    let pays = count > 1 && cost(rest.get(..count)?) > cost(&[&notice]);
    pays.then_some((at..at, Some(notice), at + count))
}

/// The shortest block at `at` whose repetition is longer than a notice about it.
fn repetition(lines: &[&str], at: usize) -> Option<Folded> {
    (1..=MAX_PERIOD).find_map(|period| {
        let block = lines.get(at..at + period)?;
        let rest = lines.get(at..)?;
        let times = rest
            .chunks_exact(period)
            .take_while(|chunk| *chunk == block)
            .count();
        let end = at + period * times;
        if block.iter().all(|line| line.trim().is_empty()) {
            return (times > 1).then_some((at..at + 1, None, end));
        }
        let notice = notice(period, times);
        let pays = times > 1 && cost(block).saturating_mul(times - 1) > cost(&[&notice]);
        pays.then_some((at..at + period, Some(notice), end))
    })
}

fn cost(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.chars().count() + 1).sum()
}

fn notice(period: usize, times: usize) -> String {
    let times = grouped(times);
    if period == 1 {
        format!("… repeated {times} times")
    } else {
        format!("… the {period} lines above repeated {times} times")
    }
}

fn is_runtime_frame(line: &str) -> bool {
    static FRAME: Pattern = Pattern::new(
        r"(?x)^\s+(?:
          at\ /rustc/ | at\ .*(?:node:internal|node:async_hooks|/node_modules/)
        | \d+:\s+(?:__rustc|core::|std::|alloc::|test::|<.*\bcore::ops)
        | \S*\s?\(?node:(?:internal|async_hooks)
        | \S+\ \(node:(?:internal|async_hooks)
        )",
    );
    FRAME.is_match(line)
}

fn shorten(line: &str, longest: usize) -> Cow<'_, str> {
    let chars = if line.len() <= longest {
        line.len()
    } else {
        line.chars().count()
    };
    if chars <= longest {
        return Cow::Borrowed(line);
    }
    let (head, tail) = (longest / 2, longest / 5);
    let cut = grouped(chars - head - tail);
    let head: String = line.chars().take(head).collect();
    let tail: String = line.chars().skip(chars - tail).collect();
    Cow::Owned(format!("{head}[… {cut} characters cut …]{tail}"))
}
