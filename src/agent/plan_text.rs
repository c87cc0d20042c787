//! Plans as a model writes them: one line per item, with a box.

use super::fence::{Block, BlockKind};
use serde::{Deserialize, Serialize};
use sprag_domain::text::one_line;

/// The maximum length of an item, in characters.
const ITEM_CHARS: usize = 300;

/// The maximum number of lines read from one block.
pub const BLOCK_LINES: usize = 400;

/// The state of an item. A call may name it in the words of other agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemState {
    /// `[ ]`: not started.
    #[default]
    #[serde(alias = "todo", alias = "not_started", alias = "open")]
    Pending,
    /// `[>]`: being worked on.
    #[serde(alias = "in-progress", alias = "active")]
    InProgress,
    /// `[x]`: done.
    #[serde(alias = "completed", alias = "complete", alias = "finished")]
    Done,
    /// `[!]`: cannot be done.
    #[serde(alias = "failed")]
    Blocked,
    /// `[~]`: replaced by another item.
    #[serde(alias = "cancelled", alias = "canceled", alias = "skipped")]
    Superseded,
    /// `[=]`: there was nothing to do.
    #[serde(alias = "already-satisfied")]
    AlreadySatisfied,
}

impl ItemState {
    /// Whether the item still needs work.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }

    /// Whether the item ended successfully.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::AlreadySatisfied)
    }
}

/// One line of a plan or of an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanLine {
    /// The item's number, if the line states it.
    pub id: Option<u32>,
    /// The state in its box. `done` is the model's claim: the ledger decides.
    pub state: ItemState,
    /// The text after the box, on one line.
    pub text: String,
}

/// The content of a plan block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanBlock {
    /// A complete plan, which registers the plan or replaces it.
    Plan {
        /// Its items.
        lines: Vec<PlanLine>,
    },
    /// A change of the plan.
    Update {
        /// Its items.
        lines: Vec<PlanLine>,
    },
    /// The model declares that it has finished.
    Final {
        /// Its summary.
        text: String,
    },
}

impl PlanBlock {
    /// The plan block that a fenced block contains.
    pub fn of(block: &Block) -> Self {
        match block.kind {
            BlockKind::Plan => Self::Plan {
                lines: read_lines(&block.body, true),
            },
            BlockKind::Update => Self::Update {
                lines: read_lines(&block.body, false),
            },
            BlockKind::Final => {
                let text = block.body.trim();
                let text = if block.closed {
                    text
                } else {
                    text.trim_end_matches('`').trim_end()
                };
                let text = text.to_owned();
                Self::Final { text }
            }
        }
    }
}

/// The lines with a box. In a plan without any box, every bullet is a pending item.
pub fn read_lines(body: &str, is_plan: bool) -> Vec<PlanLine> {
    let boxed: Vec<PlanLine> = body.lines().filter_map(boxed).take(BLOCK_LINES).collect();
    if !boxed.is_empty() || !is_plan {
        return boxed;
    }
    let bullets = body.lines().filter_map(without_bullet);
    bullets
        .filter_map(|text| line(ItemState::Pending, text))
        .take(BLOCK_LINES)
        .collect()
}

/// A line built from the parts of a structured call.
pub fn line(state: ItemState, text: &str) -> Option<PlanLine> {
    let text = text.trim().trim_end_matches("```");
    let (id, text) = numbered(text).map_or((None, text), |(id, rest)| (Some(id), rest));
    let text = one_line(text, ITEM_CHARS);
    (id.is_some() || !text.is_empty()).then_some(PlanLine { id, state, text })
}

fn boxed(raw: &str) -> Option<PlanLine> {
    let text = without_bullet(raw).unwrap_or_else(|| raw.trim());
    let inside = text.strip_prefix('[')?;
    let (mark, rest) = inside.split_once(']')?;
    if !(rest.is_empty() || rest.starts_with(char::is_whitespace)) {
        return None;
    }
    let state = match mark.trim() {
        "" => ItemState::Pending,
        ">" | "-" => ItemState::InProgress,
        "x" | "X" | "✓" | "✔" => ItemState::Done,
        "!" => ItemState::Blocked,
        "~" => ItemState::Superseded,
        "=" => ItemState::AlreadySatisfied,
        _ => return None,
    };
    line(state, rest)
}

/// The text after `-`, `*`, `+`, `1.` or `1)`.
fn without_bullet(raw: &str) -> Option<&str> {
    let text = raw.trim();
    let rest = match text.strip_prefix(['-', '*', '+']) {
        Some(rest) => rest,
        None => {
            let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
            let rest = Some(rest).filter(|rest| rest.len() < text.len());
            rest?.strip_prefix(['.', ')'])?
        }
    };
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

/// `#3` or `#3: text`: the item's number.
fn numbered(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix('#')?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let id = rest[..end].parse().ok()?;
    let rest = rest[end..].trim_start_matches([':', '.']);
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| (id, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::scan;
    use proptest::prelude::*;

    fn read(text: &str) -> Vec<PlanBlock> {
        let blocks = scan(text).blocks;
        blocks.iter().map(PlanBlock::of).collect()
    }

    fn of(state: ItemState, text: &str) -> PlanLine {
        PlanLine {
            id: None,
            state,
            text: text.into(),
        }
    }

    #[test]
    fn every_box_has_its_state() {
        use ItemState::*;
        let body = "- [ ] a\n* [>] b\n+ [x] c\n1. [X] d\n2) [!] e\n  - [~] f\n[=] g\n- [] h\nnote\n\
                    - [x](link)\n- plain\n- [?] odd\n- [x]\n";
        assert_eq!(
            read_lines(body, true),
            [
                of(Pending, "a"),
                of(InProgress, "b"),
                of(Done, "c"),
                of(Done, "d"),
                of(Blocked, "e"),
                of(Superseded, "f"),
                of(AlreadySatisfied, "g"),
                of(Pending, "h"),
            ]
        );
    }

    #[test]
    fn bullets_make_a_plan_but_no_update() {
        let body = "The plan:\n1. one\n2. two\n";
        let pending = |text| of(ItemState::Pending, text);
        assert_eq!(read_lines(body, true), [pending("one"), pending("two")]);
        assert_eq!(read_lines(body, false), []);
    }

    #[test]
    fn a_number_names_an_item() {
        let with = |id, text: &str| PlanLine {
            id: Some(id),
            ..of(ItemState::Done, text)
        };
        assert_eq!(
            read_lines(
                "- [x] #3\n- [x] #4: done\n- [x] #5x\n- [x] #99999999999\n",
                false
            ),
            [
                with(3, ""),
                with(4, "done"),
                of(ItemState::Done, "#5x"),
                of(ItemState::Done, "#99999999999"),
            ]
        );
    }

    #[test]
    fn final_words_are_kept_whole() {
        assert_eq!(
            read("```SPRAG_FINAL\nAdded:\n```rust\nx\n```\n\n```\n"),
            [PlanBlock::Final {
                text: "Added:\n```rust\nx\n```".into()
            }]
        );
        assert_eq!(
            read("```SPRAG_FINAL\ndone```"),
            [PlanBlock::Final {
                text: "done".into()
            }]
        );
    }

    proptest! {
        #[test]
        fn any_line_is_read_within_its_bound(body in "(- \\[[ x>=~!?]\\] )?.{0,400}") {
            for line in read_lines(&body, true) {
                prop_assert!(line.text.chars().count() <= ITEM_CHARS);
                prop_assert!(!line.text.contains('\n'));
            }
        }
    }
}
