//! Reports the progress of a long turn at intervals, so that it does not seem to hang.

use crate::domain::agent::{AgentEvent, Usage};
use crate::domain::duration::millis;
use crate::domain::event::{EventKind, TurnProgress};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

/// The progress of a turn according to its events.
#[derive(Debug)]
pub(super) struct Heartbeat {
    began: Instant,
    last_tool: Option<String>,
    changed: BTreeSet<String>,
    usage: Usage,
}

impl Heartbeat {
    /// The progress of a turn that starts now.
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            last_tool: None,
            changed: BTreeSet::new(),
            usage: Usage::default(),
        }
    }

    /// Updates the progress with an event.
    pub(super) fn note(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolCall { name, summary, .. } => {
                self.last_tool = Some(format!("{name} {summary}").trim_end().to_owned());
            }
            AgentEvent::FileChange { path, .. } => {
                self.changed.insert(path.clone());
            }
            AgentEvent::Usage(usage) => self.usage = *usage,
            _ => {}
        }
    }

    /// The progress as an event.
    pub(super) fn beat(&self) -> EventKind {
        let changed = u32::try_from(self.changed.len()).unwrap_or(u32::MAX);
        EventKind::TurnProgress(Box::new(TurnProgress {
            elapsed_ms: millis(self.began.elapsed()),
            last_tool: self.last_tool.clone(),
            changed_files: (changed > 0).then_some(changed),
            usage: self.usage,
        }))
    }
}

/// Waits for `work` and meanwhile calls `beat` at every interval of `every`.
pub(super) async fn beating<T>(
    work: impl Future<Output = T>,
    every: Duration,
    mut beat: impl FnMut(),
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(every) => beat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_tells_the_last_tool_the_files_and_the_tokens() {
        let mut heartbeat = Heartbeat::new();
        let call = |name: &str, summary: &str| AgentEvent::ToolCall {
            id: None,
            name: name.into(),
            summary: summary.into(),
        };
        let change = |path: &str| AgentEvent::FileChange {
            path: path.into(),
            kind: "update".into(),
        };
        let usage = Usage {
            tokens_in: Some(7),
            ..Usage::default()
        };
        let told = |heartbeat: &Heartbeat| match heartbeat.beat() {
            EventKind::TurnProgress(progress) => (
                progress.last_tool,
                progress.changed_files,
                progress.usage.tokens_in,
            ),
            other => panic!("{other:?}"),
        };
        assert_eq!(told(&heartbeat), (None, None, None));
        for event in [
            call("read", "a.txt"),
            change("a.txt"),
            change("b.txt"),
            change("a.txt"),
            call("shell", ""),
            AgentEvent::Usage(usage),
        ] {
            heartbeat.note(&event);
        }
        assert_eq!(told(&heartbeat), (Some("shell".into()), Some(2), Some(7)));
    }
}
