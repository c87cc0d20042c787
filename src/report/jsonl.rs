//! Events as JSON, one per line.

use super::Reporter;
use super::actions_log::neutral_json;
use super::wire::WireEvent;
use crate::domain::event::Event;
use crate::domain::summary::RunSummary;
use std::io::{self, Write};

/// Writes each event as one line of JSON and flushes it, so that a reader sees it at once and a killed run
/// leaves complete lines.
pub struct Jsonl {
    out: Box<dyn Write + Send>,
}

impl Jsonl {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out }
    }
}

impl Reporter for Jsonl {
    fn report(&mut self, event: &Event, summary: &RunSummary) -> io::Result<()> {
        let event = WireEvent::new(event, summary);
        let line = neutral_json(serde_json::to_string(&event)?);
        self.out.write_all(format!("{line}\n").as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples::{self, Sink};

    #[test]
    fn every_event_is_one_line() {
        let sink = Sink::default();
        let mut jsonl = Jsonl::new(Box::new(sink.clone()));
        let events = samples::every_event();
        for event in &events {
            jsonl.report(event, &RunSummary::default()).unwrap();
        }
        let text = sink.text();
        let seqs: Vec<u64> = text
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|event| event["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(
            seqs,
            events.iter().map(|event| event.seq).collect::<Vec<_>>()
        );
    }

    #[test]
    fn an_event_holds_no_command_of_the_runner() {
        let sink = Sink::default();
        let mut jsonl = Jsonl::new(Box::new(sink.clone()));
        let message = "##[error]a #\u{ad}#[group]b\n::error::c";
        let event = samples::event(1, samples::warning(message));
        jsonl.report(&event, &RunSummary::default()).unwrap();
        let text = sink.text();
        assert!(!text.contains('#') && text.lines().count() == 1, "{text}");
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(back["message"], message);
    }

    #[test]
    fn a_full_disk_is_named() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::other("no space left"))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut jsonl = Jsonl::new(Box::new(Full));
        let event = samples::event(1, samples::warning("x"));
        let failure = jsonl.report(&event, &RunSummary::default()).unwrap_err();
        assert_eq!(failure.to_string(), "no space left");
    }
}
