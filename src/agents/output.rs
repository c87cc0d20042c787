//! What the readers of agents' output have in common.

use super::text;
use crate::domain::agent::AgentEvent;

/// Most tool calls that are remembered until their result comes: an agent that never gives the
/// results must not grow the executor.
pub(super) const MAX_OPEN_CALLS: usize = 256;

/// Whether an agent's session id may be given back to it on its command line.
pub(super) fn is_session_id(id: &str) -> bool {
    !id.is_empty()
        && id.len() <= 128
        && !id.starts_with('-')
        && id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))
}

/// The event for a line that is not of the agent's protocol; none for an empty one.
pub(super) fn raw(line: &[u8]) -> Vec<AgentEvent> {
    // A character takes at most four bytes, so that this is more than an excerpt shows.
    let shown = line.len().min(4 * (text::EXCERPT_CHARS + 1));
    let text = String::from_utf8_lossy(&line[..shown]);
    let text = text.trim_end();
    if text.is_empty() {
        Vec::new()
    } else {
        vec![AgentEvent::Raw {
            line: text::excerpt(text),
        }]
    }
}
