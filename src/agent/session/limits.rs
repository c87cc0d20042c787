//! The limits of a session, and the numbers by which it is judged.

use serde::Serialize;

/// The limits of a session, and when it gives up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// The maximum number of responses.
    pub steps: u32,
    /// The maximum number of tool calls. The calls of one response are never split, so this can be exceeded.
    pub tool_calls: u32,
    /// The time limit in milliseconds.
    pub time_ms: u64,
    /// The token limit, input and output, as far as the provider reports them.
    pub tokens: Option<u64>,
    /// The cost limit in US dollars, as far as the price is known.
    pub cost_usd: Option<f64>,
    /// The number of responses in a row without a usable action.
    pub format_errors: u32,
    /// The number of API failures in a row after which the session waits and retries.
    pub waits: u32,
    /// The number of times that a request is shortened after the API refused its length.
    pub shrinks: u32,
    /// The number of failed edits of one file in a row that start a session on that file alone.
    pub edit_failures: u32,
    /// The maximum number of such sessions, at most one per file.
    pub fix_slices: u32,
    /// Whether the session is to end with words alone, such as an answer.
    pub words_suffice: bool,
    /// When progress counts as stalled.
    pub thresholds: Thresholds,
}

/// When progress counts as stalled. Each of the first four scores a point.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Thresholds {
    /// Steps without a change.
    pub no_change: u32,
    /// How often the same set of files is read without a change in between.
    pub same_reads: u32,
    /// Steps without a finished item, while items are left.
    pub no_item: u32,
    /// Read-only steps among the last [`RECENT_STEPS`].
    pub read_only: u32,
    /// The score from which the prompts demand an edit.
    pub forced: u32,
    /// The score from which a stalled session gives up.
    pub give_up_score: u32,
    /// The maximum number of items left with which it may give up.
    pub give_up_items: usize,
    /// Steps without a change after which it may give up.
    pub give_up_no_change: u32,
    /// Steps with no item finished after which it may give up.
    pub give_up_no_item: u32,
    /// The number of identical steps in a row that make a loop.
    pub identical: u32,
}

/// The number of recent steps among which the read-only ones are counted.
pub const RECENT_STEPS: usize = 5;

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 60,
            tool_calls: 200,
            time_ms: 30 * 60 * 1_000,
            tokens: None,
            cost_usd: None,
            format_errors: 3,
            waits: 5,
            shrinks: 3,
            edit_failures: 3,
            fix_slices: 3,
            words_suffice: false,
            thresholds: Thresholds::default(),
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            no_change: 5,
            same_reads: 3,
            no_item: 8,
            read_only: 4,
            forced: 2,
            give_up_score: 3,
            give_up_items: 10,
            give_up_no_change: 8,
            give_up_no_item: 10,
            identical: 3,
        }
    }
}
