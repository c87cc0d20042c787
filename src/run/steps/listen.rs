//! Processes an agent's output during its turn: all of it goes to the transcript and the reader, a
//! bounded part becomes events.

use crate::agents::TurnReader;
use crate::domain::agent::AgentEvent;
use crate::domain::event::EventKind;
use crate::process::{CappedLog, Line, LineSplitter, StreamKind, Tail, clean_text};
use crate::run::state::directory::Log;
use crate::run::state::emitter::Emitter;
use crate::run::steps::heartbeat::Heartbeat;
use memchr::{memchr, memchr_iter, memrchr};
use std::io::Write as _;

/// The longest line, in bytes, of an agent's protocol that is read whole.
const MAX_LINE_BYTES: usize = 16 << 20;
/// How many bytes at the end of stderr are kept for an agent's error.
const STDERR_TAIL: usize = 16 << 10;
/// The limits on events of a turn: for the agent's protocol, and for other lines.
const PROTOCOL: Allowance = Allowance {
    events: 50_000,
    bytes: 32 << 20,
};
const RAW: Allowance = Allowance {
    events: 10_000,
    bytes: 4 << 20,
};

/// Processes the output of one turn.
pub(super) struct Listener<'l, 'e> {
    log: Log,
    lines: LineSplitter,
    stderr: Tail,
    limiter: EventLimiter<'l, 'e>,
}

/// The results once the turn is over.
pub(super) struct TurnOutput {
    pub(super) reader: Box<dyn TurnReader>,
    /// The end of its stderr, as plain text.
    pub(super) stderr: String,
    /// Why the transcript is incomplete.
    pub(super) lost: Option<String>,
}

impl<'l, 'e> Listener<'l, 'e> {
    pub(super) fn new(reader: Box<dyn TurnReader>, log: Log, emit: &'l mut Emitter<'e>) -> Self {
        Self {
            log,
            lines: LineSplitter::new(MAX_LINE_BYTES),
            stderr: Tail::new(STDERR_TAIL),
            limiter: EventLimiter {
                reader,
                heartbeat: Heartbeat::new(),
                emit,
                protocol: PROTOCOL,
                raw: RAW,
                dropped: 0,
            },
        }
    }

    /// Processes a chunk of output.
    pub(super) fn receive(&mut self, stream: StreamKind, chunk: &[u8]) {
        let _ = self.log.write_all(chunk);
        match stream {
            StreamKind::Stderr => self.stderr.push(chunk),
            StreamKind::Stdout => self.stdout(chunk),
        }
    }

    fn stdout(&mut self, mut chunk: &[u8]) {
        let limiter = &mut self.limiter;
        while !chunk.is_empty() {
            // Once no more raw lines become events, they need not be split one by one: a flood has millions of them.
            if limiter.raw.is_used_up() && self.lines.is_at_line_start() {
                let (plain, rest) = chunk.split_at(plain_lines(chunk));
                limiter.dropped += memchr_iter(b'\n', plain).count() as u64;
                limiter.reader.plain_lines(plain);
                chunk = rest;
            }
            let line = memchr(b'\n', chunk).map_or(chunk.len(), |end| end + 1);
            let several = if limiter.raw.is_used_up() {
                line
            } else {
                chunk.len()
            };
            let (now, later) = chunk.split_at(several);
            self.lines.push(now, |line| limiter.line(&line));
            chunk = later;
        }
    }

    /// Emits the progress of the turn.
    pub(super) fn beat(&mut self) {
        let beat = self.limiter.heartbeat.beat();
        self.limiter.emit.emit(beat);
    }

    /// Processes the end of the output.
    pub(super) fn finish(self) -> TurnOutput {
        let mut limiter = self.limiter;
        self.lines.finish(|line| limiter.line(&line));
        if limiter.dropped > 0 {
            let line = format!(
                "[sprag: {} more lines or events of this turn are in its transcript only]",
                limiter.dropped
            );
            limiter
                .emit
                .emit(EventKind::Agent(AgentEvent::Raw { line }));
        }
        let closed = self.log.finish().and_then(CappedLog::close);
        TurnOutput {
            reader: limiter.reader,
            stderr: clean_text(&self.stderr.into_bytes()),
            lost: closed.err().map(|error| error.to_string()),
        }
    }
}

/// The length of the complete lines at the start of `chunk` that contain no `{`. None of them belongs to
/// an agent's protocol.
fn plain_lines(chunk: &[u8]) -> usize {
    let plain = memchr(b'{', chunk).map_or(chunk, |at| &chunk[..at]);
    memrchr(b'\n', plain).map_or(0, |end| end + 1)
}

/// Makes events of lines up to the limits.
struct EventLimiter<'l, 'e> {
    reader: Box<dyn TurnReader>,
    heartbeat: Heartbeat,
    emit: &'l mut Emitter<'e>,
    protocol: Allowance,
    raw: Allowance,
    /// The number of events that were dropped, or of lines that would have become events.
    dropped: u64,
}

impl EventLimiter<'_, '_> {
    fn line(&mut self, line: &Line<'_>) {
        let events = match line {
            Line::Whole(bytes) => self.reader.line(bytes),
            Line::Cut { head, end, .. } => self.reader.cut_line(head, end),
        };
        for event in events {
            self.heartbeat.note(&event);
            let allowance = match event {
                AgentEvent::Raw { .. } => &mut self.raw,
                _ => &mut self.protocol,
            };
            if allowance.take(size(&event)) {
                self.emit.emit(EventKind::Agent(event));
            } else {
                self.dropped += 1;
            }
        }
    }
}

/// How many more events of a kind a turn may have, and their total size.
#[derive(Debug, Clone, Copy)]
struct Allowance {
    events: u32,
    bytes: usize,
}

impl Allowance {
    /// Whether an event of this size is allowed. After the first refusal, no event is.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.events.checked_sub(1);
        let left = left.zip(self.bytes.checked_sub(bytes));
        let (events, bytes) = left.unwrap_or_default();
        *self = Self { events, bytes };
        left.is_some()
    }

    fn is_used_up(self) -> bool {
        self.events == 0
    }
}

/// The approximate size of an event's text, in bytes.
fn size(event: &AgentEvent) -> usize {
    match event {
        AgentEvent::SessionStarted { session_id } => session_id.len(),
        AgentEvent::Message { text } | AgentEvent::Reasoning { text } => text.len(),
        AgentEvent::ToolCall { name, summary, .. } => name.len() + summary.len(),
        AgentEvent::ToolResult { summary, .. } => summary.len(),
        AgentEvent::FileChange { path, kind } => path.len() + kind.len(),
        AgentEvent::Todo { items } => items.iter().map(|item| 16 + item.text.len()).sum(),
        AgentEvent::Usage(_) => 0,
        AgentEvent::Error { message, .. } => message.len(),
        AgentEvent::Raw { line } => line.len(),
    }
}

#[cfg(test)]
mod tests;
