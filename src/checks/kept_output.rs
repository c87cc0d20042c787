//! Keeps a check's output in bounded memory: its start, its end, and of the middle the lines at which runs of tests
//! begin or end.

use crate::domain::checks::is_around_tests;
use crate::process::{HeadTail, clean_text};

/// Number of bytes that are kept of the start and of the end of an output. The log keeps more.
const HEAD: usize = 512 << 10;
const TAIL: usize = 2 << 20;

/// The longest line of the middle that is examined, in bytes.
const MAX_LINE: usize = 4 << 10;

/// The most bytes of lines that are kept of the middle.
const MAX_MIDDLE: usize = 256 << 10;

/// The output of a check, as far as it is kept.
pub(super) struct KeptOutput {
    ends: HeadTail,
    middle: Middle,
}

/// The lines between the start and the end.
#[derive(Default)]
struct Middle {
    /// The rest of the line at which the start of the output ends, once its end is known.
    first: Option<Vec<u8>>,
    /// The beginning of the line that has no end yet.
    line: Vec<u8>,
    /// The lines that are kept.
    found: String,
}

impl KeptOutput {
    pub(super) fn new() -> Self {
        Self::of_size(HEAD, TAIL)
    }

    fn of_size(head: usize, tail: usize) -> Self {
        Self {
            ends: HeadTail::new(head, tail),
            middle: Middle::default(),
        }
    }

    /// Adds more of the output.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let middle = &mut self.middle;
        self.ends.push_and_take(bytes, |gone| middle.push(gone));
    }

    /// Whether nothing is missing.
    pub(super) fn is_whole(&self) -> bool {
        self.ends.omitted() == 0
    }

    /// The text, without escape sequences.
    pub(super) fn into_text(self) -> String {
        let omitted = self.ends.omitted();
        let (head, tail) = self.ends.into_parts();
        if omitted == 0 {
            return clean_text(&[head, tail].concat());
        }
        let Middle { first, line, found } = self.middle;
        // A line that is cut is left out, or kept as a whole if it is one of those lines.
        let (head_lines, of_head) = at_last_line(&head);
        let (of_tail, tail_lines) = match &first {
            Some(_) if line.is_empty() => (&[][..], &tail[..]),
            _ => after_first_line(&tail),
        };
        let cut = match first {
            Some(first) => [[of_head, &first].concat(), [&line, of_tail].concat()],
            None => [[of_head, &line, of_tail].concat(), Vec::new()],
        };
        let [before, after] = cut.map(|line| around_tests(&line));
        let (start, end) = if head_lines.is_empty() && tail_lines.is_empty() {
            (&head[..], &tail[..])
        } else {
            (head_lines, tail_lines)
        };
        format!(
            "{}\n[… {omitted} bytes cut …]\n{before}{found}{after}{}",
            clean_text(start),
            clean_text(end)
        )
    }
}

impl Middle {
    fn push(&mut self, bytes: &[u8]) {
        let (lines, line) = at_last_line(bytes);
        if lines.is_empty() {
            return self.begin_line(line);
        }
        let (end, lines) = after_first_line(lines);
        self.begin_line(end);
        let whole = std::mem::take(&mut self.line);
        match self.first {
            Some(_) => self.keep(&whole),
            None => self.first = Some(whole),
        }
        self.keep(lines);
        self.begin_line(line);
    }

    fn begin_line(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.line.len());
        let bytes = bytes.get(..room).unwrap_or(bytes);
        self.line.extend_from_slice(bytes);
    }

    fn keep(&mut self, lines: &[u8]) {
        if self.found.len() < MAX_MIDDLE {
            self.found.push_str(&around_tests(lines));
        }
    }
}

/// Those of these lines at which runs of tests begin or end.
fn around_tests(lines: &[u8]) -> String {
    let text = clean_text(lines);
    let lines = text
        .lines()
        .filter(|line| line.len() < MAX_LINE)
        .filter(|line| is_around_tests(line));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What precedes the last line, which may have no end, and that line.
fn at_last_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    bytes.split_at(end.map_or(0, |end| end + 1))
}

/// The first line, with its end, and what follows it.
fn after_first_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    bytes.split_at(end.map_or(bytes.len(), |end| end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MARKS: [&str; 3] = ["running 1 test", "test result: ok. 1 passed", "1..4"];

    fn kept(text: &str, (head, tail): (usize, usize), chunk: usize) -> (bool, String) {
        let mut kept = KeptOutput::of_size(head, tail);
        for chunk in text.as_bytes().chunks(chunk.max(1)) {
            kept.push(chunk);
        }
        (kept.is_whole(), kept.into_text())
    }

    proptest! {
        #[test]
        fn no_line_around_tests_is_lost_or_told_twice(
            lines in prop::collection::vec(0_usize..6, 0..40),
            sizes in (0_usize..90, 30_usize..90),
            chunk in 1_usize..200,
        ) {
            let line = |kind: &usize| MARKS.get(*kind).copied().unwrap_or("something else");
            let text: String = lines.iter().map(|kind| format!("{}\n", line(kind))).collect();
            let (is_whole, kept) = kept(&text, sizes, chunk);
            let marks = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| MARKS.contains(line));
                lines.map(str::to_owned).collect()
            };
            prop_assert_eq!(marks(&kept), marks(&text), "{}", kept);
            prop_assert_eq!(is_whole, text.len() <= sizes.0 + sizes.1);
            prop_assert_eq!(is_whole, kept == text);
        }
    }

    #[test]
    fn a_long_middle_takes_bounded_memory() {
        let lines = "running 1 test\n".repeat(100_000);
        let endless = "x".repeat(1 << 20);
        let (_, kept) = kept(&format!("{lines}{endless}\n{endless}"), (8, 8), 8_000);
        assert!(kept.len() < MAX_MIDDLE + 20_000, "{}", kept.len());
    }
}
