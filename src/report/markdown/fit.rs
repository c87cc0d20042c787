//! Cuts Markdown to a size in bytes so that the rest is valid Markdown.

use crate::report::text;

/// The last line of a text that was cut.
pub(super) const NOTICE: &str =
    "*This report was shortened. The full report is in the run directory (`sprag report`).*";

/// Cuts `markdown` to `budget` bytes: complete lines from the start, then the ends of the fence and the
/// details that are open there, then `notice`. A budget too small for this gives the start of the text, cut
/// at a character boundary.
pub(super) fn fit(markdown: String, budget: usize, notice: &str) -> String {
    if markdown.len() <= budget {
        return markdown;
    }
    let mut open = Open::default();
    let mut used = 0;
    let mut kept = 0;
    let mut closing = String::new();
    for line in markdown.split_inclusive('\n') {
        used += line.len();
        open.take(line);
        let end = open.closing();
        let newline = usize::from(!line.ends_with('\n'));
        // The length of the closing lines and the notice varies from line to line, so a later line may fit
        // although an earlier one did not.
        if used + newline + end.len() + notice.len() < budget {
            (kept, closing) = (used, end);
        }
        if used > budget {
            break;
        }
    }
    match kept {
        0 => first_words(&markdown, budget),
        _ => format!("{}{closing}{notice}\n", text::head_bytes(&markdown, kept)),
    }
}

fn first_words(markdown: &str, budget: usize) -> String {
    let line = markdown.lines().next().unwrap_or("");
    text::head_bytes(line, budget).to_owned()
}

/// The open elements at the end of a line.
#[derive(Default)]
struct Open {
    fence: Option<usize>,
    details: usize,
}

impl Open {
    fn take(&mut self, line: &str) {
        let line = line.trim();
        let ticks = line.chars().take_while(|&c| c == '`').count();
        match self.fence {
            Some(length) if ticks >= length && line.len() == ticks => self.fence = None,
            Some(_) => {}
            None if ticks >= 3 && !line.trim_start_matches('`').contains('`') => {
                self.fence = Some(ticks);
            }
            None => {
                // Outside of a fence, foreign text never starts a line.
                match line {
                    "<details>" => self.details += 1,
                    "</details>" => self.details = self.details.saturating_sub(1),
                    _ => {}
                }
            }
        }
    }

    fn closing(&self) -> String {
        let fence = self
            .fence
            .map_or(String::new(), |ticks| format!("{}\n", "`".repeat(ticks)));
        format!("{fence}\n{}", "</details>\n\n".repeat(self.details))
    }
}

#[cfg(test)]
pub(super) use tests::is_whole;

#[cfg(test)]
mod tests {
    use super::Open;

    /// Whether fences and details are balanced.
    pub(in crate::report::markdown) fn is_whole(markdown: &str) -> bool {
        let mut open = Open::default();
        let lines = markdown.split_inclusive('\n');
        lines.for_each(|line| open.take(line));
        open.fence.is_none() && open.details == 0
    }
}
