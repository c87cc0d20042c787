//! What the readers of agents' output have in common.

use super::text;
use super::turn::ExitFacts;
use crate::domain::agent::{AgentEvent, ApiError, ApiErrorClass};
use crate::domain::api_error::classify;

/// Most tool calls that are remembered until their result comes: an agent that never gives the
/// results must not grow the executor.
pub(super) const MAX_OPEN_CALLS: usize = 256;

/// The error of an agent that exited without a word of its protocol: it did not like its
/// arguments, its configuration or its user, and will not like them on the next attempt either.
/// Codes from 126 on are the shell's, and of processes that a signal ended.
pub(super) fn refused_to_start(exit: ExitFacts<'_>) -> Option<ApiError> {
    if !exit.failed_by_itself() || exit.code.is_some_and(|code| code >= 126) {
        return None;
    }
    let message = match last_lines(exit.stderr_tail, 5) {
        lines if lines.is_empty() => "exited at once without saying why".to_owned(),
        lines => lines,
    };
    Some(classify(None, &message).unwrap_or(ApiError {
        status: None,
        message,
        retry_after_ms: None,
        class: ApiErrorClass::Unavailable,
    }))
}

/// The last `count` lines of `text` that are not empty.
fn last_lines(text: &str, count: usize) -> String {
    let mut lines: Vec<&str> = text
        .lines()
        .rev()
        .filter(|line| !line.trim().is_empty())
        .take(count)
        .collect();
    lines.reverse();
    lines.join("\n")
}

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
