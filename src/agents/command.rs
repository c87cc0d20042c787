//! Any command as an agent: its stdout is the transcript, and it may also print Sprag's own events.

use super::output::{is_session_id, raw};
use super::turn::{ExitFacts, Invocation, TurnReader, TurnRequest};
use super::{json, text};
use crate::domain::agent::{AgentEvent, AgentReport, TurnName};
use crate::domain::api_error::classify_final;
use crate::domain::commit_message::SEARCHED_LINES;
use crate::domain::settings::variables;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Number of bytes from the end of stdout that are kept for the final message.
pub const FINAL_MESSAGE_BYTES: usize = 64 * 1024;

/// Number of bytes that are kept of a line before those.
const LINE_BYTES: usize = 1024;

/// The command line of a turn. The user's extra arguments are the script's positional ones (`"$@"`). The
/// caller adds [`turn_env`].
pub(super) fn invocation(command: &str, request: &TurnRequest<'_>) -> Invocation {
    let mut args: Vec<OsString> = vec!["-c".into(), command.into()];
    if !request.extra_args.is_empty() {
        args.push("agent".into());
        args.extend(request.extra_args.iter().map(OsString::from));
    }
    Invocation {
        final_message_file: Some(request.scratch.join("final-message.md")),
        ..Invocation::of("sh", args)
    }
}

/// The variables that describe a turn to its command, with the file of its prompt and the one for its final message.
pub fn turn_env(
    turn: &TurnName,
    role: &str,
    prompt_file: &Path,
    final_file: &Path,
) -> [(OsString, OsString); 7] {
    let numbers = (turn.attempt.to_string(), turn.turn.to_string());
    let pairs: [(&str, &OsStr); 7] = [
        (variables::PROMPT_FILE, prompt_file.as_os_str()),
        (variables::FINAL_FILE, final_file.as_os_str()),
        (variables::TASK_ID, turn.task.as_ref()),
        (variables::ATTEMPT, numbers.0.as_ref()),
        (variables::TURN, numbers.1.as_ref()),
        (variables::PURPOSE, turn.purpose.as_ref()),
        (variables::ROLE, role.as_ref()),
    ];
    pairs.map(|(name, value)| (name.into(), value.into()))
}

/// Reads the stdout of one turn.
#[derive(Debug, Default)]
pub struct Reader {
    report: AgentReport,
    last_message: Option<String>,
    transcript: Vec<u8>,
    transcript_cut: bool,
}

impl TurnReader for Reader {
    fn line(&mut self, line: &[u8]) -> Vec<AgentEvent> {
        match json::object(line).and_then(event) {
            Some(event) => {
                self.take_over(&event);
                vec![event]
            }
            None => {
                self.keep(line);
                self.keep(b"\n");
                raw(line)
            }
        }
    }

    fn cut_line(&mut self, head: &[u8], end: &[u8]) -> Vec<AgentEvent> {
        self.transcript_cut = true;
        self.keep(head);
        self.keep(end);
        self.keep(b"\n");
        raw(head)
    }

    fn plain_lines(&mut self, lines: &[u8]) {
        self.keep(lines);
    }

    fn finish(mut self: Box<Self>, exit: ExitFacts<'_>) -> AgentReport {
        if let Some(message) = exit.final_message() {
            self.report.final_message = Some(message);
            self.report.final_message_cut = exit.final_file_cut;
        } else if let Some(message) = self.last_message.take() {
            self.report.final_message = Some(message);
        } else {
            self.cut_transcript();
            let message = plain_text(&self.transcript);
            self.report.final_message_cut = self.transcript_cut && !message.is_empty();
            self.report.final_message = Some(message).filter(|message| !message.is_empty());
        }
        self.report
    }
}

impl Reader {
    fn take_over(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Message { text } => self.last_message = Some(text.clone()),
            AgentEvent::ToolCall { .. } => {
                self.report.tool_calls = self.report.tool_calls.saturating_add(1);
            }
            AgentEvent::Todo { items } => self.report.todo.clone_from(items),
            AgentEvent::Usage(usage) => self.report.usage = *usage,
            AgentEvent::Error { message, is_final } if *is_final => {
                self.report.api_error = Some(classify_final(None, message));
            }
            _ => {}
        }
    }

    /// Keeps the end, and periodically drops the start of the transcript.
    fn keep(&mut self, bytes: &[u8]) {
        self.transcript.extend_from_slice(bytes);
        if self.transcript.len() > 4 * FINAL_MESSAGE_BYTES {
            self.cut_transcript();
        }
    }

    /// Keeps the end, and the beginnings of the lines before it, as far as they are searched for a commit message.
    fn cut_transcript(&mut self) {
        let start = self.transcript.len().saturating_sub(FINAL_MESSAGE_BYTES);
        if start == 0 {
            return;
        }
        self.transcript_cut = true;
        let end = self.transcript.split_off(start);
        let is_newline = |byte: &u8| *byte == b'\n';
        let lines = end.iter().copied().filter(|byte| is_newline(byte)).count();
        let dropped = self.transcript.strip_suffix(b"\n");
        let mut kept: Vec<&[u8]> = dropped
            .unwrap_or(&self.transcript)
            .rsplit(is_newline)
            .take(SEARCHED_LINES.saturating_sub(lines))
            .map(|line| &line[..line.len().min(LINE_BYTES)])
            .collect();
        kept.reverse();
        kept.push(&end);
        self.transcript = kept.join(&b'\n');
    }
}

/// The text without colours and surrounding white space. Its first line keeps its indentation.
fn plain_text(bytes: &[u8]) -> String {
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    let start = bytes.iter().take_while(is_continuation).count();
    let text = String::from_utf8_lossy(&bytes[start..]);
    let text = anstream::adapter::strip_str(&text)
        .to_string()
        .replace("\r\n", "\n");
    let text = text.trim_end();
    let blank = text.len() - text.trim_start().len();
    let first_line = text[..blank].rfind('\n').map_or(0, |newline| newline + 1);
    text[first_line..].to_owned()
}

/// The event in a line that follows the event schema's `agent.*` kinds.
fn event(mut line: Value) -> Option<AgentEvent> {
    let fields = line.as_object_mut()?;
    fields.entry("kind").or_insert_with(|| "update".into());
    let is_message = fields.get("event")? == "agent.message";
    if is_message && fields.get("reasoning") == Some(&Value::Bool(true)) {
        fields.insert("event".to_owned(), "agent.reasoning".into());
    }
    let items = fields.get_mut("items").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        let status = item.as_object_mut()?.entry("status");
        status.or_insert_with(|| "pending".into());
    }
    let mut event: AgentEvent = serde_json::from_value(line).ok()?;
    match &mut event {
        AgentEvent::SessionStarted { session_id } if !is_session_id(session_id) => return None,
        AgentEvent::ToolCall { summary, .. } => *summary = text::one_line(&text::excerpt(summary)),
        AgentEvent::ToolResult { summary, .. } => *summary = text::excerpt(summary),
        AgentEvent::Error { message, .. } => *message = text::cut(message, text::ERROR_CHARS),
        AgentEvent::Raw { line } => *line = text::excerpt(line),
        _ => {}
    }
    Some(event)
}

#[cfg(test)]
mod tests;
