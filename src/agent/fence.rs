//! Fenced blocks in a model's text: plans, updates and final messages.
//!
//! A block starts with a fence of three or more backticks or tildes and one of the known names, at any
//! indentation or at the end of a line of prose, and ends with a fence of at least the same length. Cases
//! that Markdown leaves open are defined as follows:
//!
//! - A block without a closing fence extends to the next known block, or to the end.
//! - A fence with a name inside a block opens a nested block, whose end does not end the outer one.
//! - Anything in an ordinary code fence, or after `>`, is quoted and does not count.

use std::ops::RangeInclusive;

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// `SPRAG_PLAN`.
    Plan,
    /// `SPRAG_PLAN_UPDATE`.
    Update,
    /// `SPRAG_FINAL`.
    Final,
}

/// A block with a known name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its kind.
    pub kind: BlockKind,
    /// Its lines, without the fences.
    pub body: String,
    /// Whether it has a closing fence.
    pub closed: bool,
}

/// A text split into its blocks and prose.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// The known blocks, in order.
    pub blocks: Vec<Block>,
    /// The text outside every fence, known or not.
    pub prose: String,
}

/// Splits a text into its blocks and prose.
pub fn scan(text: &str) -> Scan {
    let lines: Vec<&str> = text.lines().collect();
    let mut scan = Scan::default();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some(opened) = opening(line) else {
            push_line(&mut scan.prose, line);
            at += 1;
            continue;
        };
        match kind_of(opened.info) {
            Some(kind) => {
                push_prefix(&mut scan.prose, line);
                let (block, next) = read_block(&lines, at + 1, &opened, kind);
                scan.blocks.push(block);
                at = next;
            }
            None => at = after_quoted(&lines, at + 1, &opened),
        }
    }
    scan
}

/// The fence that a line opens, and the text after it.
struct Fence<'a> {
    mark: char,
    len: usize,
    info: &'a str,
}

/// The fence that this line opens: at its beginning, or after prose if the fence has a known name and nothing
/// follows the name.
fn opening(line: &str) -> Option<Fence<'_>> {
    if let Some(opened) = fence_at(line.trim_start()) {
        return Some(opened);
    }
    let marks = ["```SPRAG_", "~~~SPRAG_"].iter();
    let at = marks.filter_map(|mark| line.rfind(mark)).max()?;
    let before = &line[..at];
    let mark = line[at..].chars().next()?;
    let start = before.trim_end_matches(mark).len();
    let quoted = before.trim_start().starts_with('>')
        || before[..start].matches('`').count() % 2 == 1
        || before[..start].trim().is_empty();
    fence_at(&line[start..]).filter(|opened| !quoted && kind_of(opened.info).is_some())
}

fn fence_at(text: &str) -> Option<Fence<'_>> {
    let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = text.trim_start_matches(mark);
    let len = text.len() - info.len();
    let info = info.trim();
    let inline = mark == '`' && info.contains('`');
    (len >= 3 && !inline).then_some(Fence { mark, len, info })
}

fn kind_of(info: &str) -> Option<BlockKind> {
    let name = info.split_whitespace().next()?;
    match name.to_ascii_uppercase().as_str() {
        "SPRAG_PLAN" => Some(BlockKind::Plan),
        "SPRAG_PLAN_UPDATE" => Some(BlockKind::Update),
        "SPRAG_FINAL" => Some(BlockKind::Final),
        _ => None,
    }
}

fn closes(line: &str, fence: &Fence<'_>) -> bool {
    let line = line.trim();
    line.len() >= fence.len && line.chars().all(|c| c == fence.mark)
}

/// The index of the line after an ordinary code block.
fn after_quoted(lines: &[&str], from: usize, fence: &Fence<'_>) -> usize {
    let mut rest = (from..lines.len()).filter(|at| closes(lines[*at], fence));
    rest.next().map_or(lines.len(), |end| end + 1)
}

fn read_block(lines: &[&str], from: usize, fence: &Fence<'_>, kind: BlockKind) -> (Block, usize) {
    let (end, closed, nested) = end_of(lines, from, fence);
    let keep_nested = kind == BlockKind::Final;
    let mut body = String::new();
    for (at, line) in lines.iter().enumerate().take(end).skip(from) {
        if keep_nested || !nested.iter().any(|lines| lines.contains(&at)) {
            push_line(&mut body, line);
        }
    }
    (Block { kind, body, closed }, end + usize::from(closed))
}

/// The end of a block, whether it has a closing fence, and the lines of the blocks nested in it.
fn end_of(
    lines: &[&str],
    from: usize,
    fence: &Fence<'_>,
) -> (usize, bool, Vec<RangeInclusive<usize>>) {
    let mut nested = Vec::new();
    let mut inner: Option<(usize, Fence<'_>)> = None;
    for (at, line) in lines.iter().enumerate().skip(from) {
        let closes_outer = closes(line, fence);
        if let Some((start, open)) = &inner {
            let stronger = open.mark != fence.mark || fence.len > open.len;
            if !(closes_outer && stronger) {
                if closes(line, open) {
                    nested.push(*start..=at);
                    inner = None;
                }
                continue;
            }
        }
        if closes_outer {
            nested.extend(inner.map(|(start, _)| start..=at));
            return (at, true, nested);
        }
        if let Some(opened) = opening(line) {
            if kind_of(opened.info).is_some() {
                return (at, false, nested);
            }
            inner = Some((at, opened));
        }
    }
    nested.extend(inner.map(|(start, _)| start..=lines.len()));
    (lines.len(), false, nested)
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Adds the prose before a fence at the end of its line.
fn push_prefix(text: &mut String, line: &str) {
    let at = line.find("```").or_else(|| line.find("~~~")).unwrap_or(0);
    let before = line[..at].trim_end();
    if !before.is_empty() {
        push_line(text, before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blocks(text: &str) -> Vec<(BlockKind, String, bool)> {
        let blocks = scan(text).blocks.into_iter();
        blocks
            .map(|block| (block.kind, block.body, block.closed))
            .collect()
    }

    fn plan(body: &str) -> (BlockKind, String, bool) {
        (BlockKind::Plan, body.to_owned(), true)
    }

    #[test]
    fn all_blocks_of_a_text_are_read_in_order() {
        let text = "I begin.\n```SPRAG_PLAN\n- [ ] a\n```\nthen\n```SPRAG_PLAN_UPDATE\n- [x] a\n```\n\
                    ```SPRAG_PLAN_UPDATE\n- [x] b\n```\n~~~SPRAG_FINAL\ndone\n~~~\n";
        assert_eq!(
            blocks(text),
            [
                plan("- [ ] a\n"),
                (BlockKind::Update, "- [x] a\n".into(), true),
                (BlockKind::Update, "- [x] b\n".into(), true),
                (BlockKind::Final, "done\n".into(), true),
            ]
        );
        assert_eq!(scan(text).prose, "I begin.\nthen\n");
    }

    #[test]
    fn fences_of_any_length_indentation_and_line_ending_are_read() {
        for text in [
            "`````SPRAG_PLAN\r\n- [ ] a\r\n`````\r\n",
            "   ```SPRAG_PLAN\n- [ ] a\n      ```",
            "~~~~ sprag_plan\n- [ ] a\n~~~~~",
            "Here it is: ```SPRAG_PLAN\n- [ ] a\n```",
            "- ~~~SPRAG_PLAN\n- [ ] a\n~~~",
        ] {
            assert_eq!(blocks(text), [plan("- [ ] a\n")], "{text}");
        }
    }

    #[test]
    fn an_unclosed_block_runs_to_the_next_one_or_the_end() {
        let text = "```SPRAG_PLAN\n- [ ] a\n\n```SPRAG_FINAL\ndone";
        assert_eq!(
            blocks(text),
            [
                (BlockKind::Plan, "- [ ] a\n\n".into(), false),
                (BlockKind::Final, "done\n".into(), false),
            ]
        );
    }

    #[test]
    fn a_nested_fence_does_not_end_its_block() {
        let body = "before\n```rust\nfn a() {}\n```\nafter\n";
        for (open, close) in [("```", "```"), ("````", "````"), ("~~~", "~~~")] {
            let text = format!("{open}SPRAG_FINAL\n{body}{close}\nprose\n");
            assert_eq!(blocks(&text), [(BlockKind::Final, body.into(), true)]);
            assert_eq!(scan(&text).prose, "prose\n");
        }
        let text = "```SPRAG_PLAN\n- [ ] a\n```md\n- [ ] quoted\n```\n- [ ] b\n```";
        assert_eq!(blocks(text), [plan("- [ ] a\n- [ ] b\n")]);
        let text = "````SPRAG_FINAL\n```\nodd\n````\n";
        assert_eq!(
            blocks(text),
            [(BlockKind::Final, "```\nodd\n".into(), true)]
        );
    }

    #[test]
    fn quoted_blocks_do_not_count() {
        for text in [
            "````markdown\n```SPRAG_PLAN\n- [ ] a\n```\n````\n",
            "~~~\n```SPRAG_FINAL\ndone\n```\n~~~\n",
            "> ```SPRAG_FINAL\n> done\n> ```\n",
            "I then send a `` ```SPRAG_FINAL `` block.\n",
            "Use `~~~SPRAG_FINAL\nfor that",
            "```rust\nnever closed\n```SPRAG_FINAL\ndone\n",
            "```SPRAG_PLANS\n- [ ] a\n```\n",
        ] {
            assert_eq!(blocks(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart_without_loss_of_prose(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "```", "~~~", "````", "```rust", "```SPRAG_PLAN", "~~~SPRAG_FINAL", "- [ ] a",
                    "x ```SPRAG_PLAN", "é", "",
                ]),
                0..30,
            ),
        ) {
            let text = parts.join("\n");
            let scan = scan(&text);
            let opened = parts.iter().filter(|part| part.contains("SPRAG_")).count();
            prop_assert!(scan.blocks.len() <= opened);
            if opened == 0 {
                prop_assert_eq!(scan.blocks, vec![]);
            }
        }

        #[test]
        fn a_plain_block_comes_out_as_it_went_in(
            before in "[a-z .\n]{0,20}",
            lines in prop::collection::vec("[ a-z\\[\\]#é-]{0,12}", 0..6),
            len in 3usize..7,
        ) {
            let fence = "`".repeat(len);
            let body: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let text = format!("{before}\n{fence}SPRAG_PLAN\n{body}{fence}\nafter");
            prop_assert_eq!(blocks(&text), vec![(BlockKind::Plan, body, true)]);
        }
    }
}
