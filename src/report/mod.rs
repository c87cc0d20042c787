//! Renders a run: its events individually, or their fold.
//!
//! A renderer of events is a [`Reporter`]; a renderer of the fold is a pure function of [`RunSummary`]. No
//! failure here fails a run.

pub mod actions_log;
pub mod annotation;
pub mod append;
pub mod buffered_output;
pub mod check_annotation;
pub mod console;
pub mod doctor;
pub mod failure;
pub mod html;
pub mod jsonl;
pub mod markdown;
pub mod next_steps;
pub mod otlp;
pub mod outcomes;
pub mod outputs;
pub mod section;
pub mod sentence;
pub mod text;
pub mod wire;
pub mod workflow_command;

#[cfg(test)]
pub(crate) mod samples;

use crate::domain::event::Event;
use crate::domain::summary::RunSummary;
use clap::ValueEnum;
use html::Sources;
use std::io;

/// Receives every event of a run as it happens.
pub trait Reporter {
    /// Processes one event. `summary` is the fold of all events up to and including this one.
    ///
    /// # Errors
    /// What keeps this reporter from working. It is not called again.
    fn report(&mut self, event: &Event, summary: &RunSummary) -> io::Result<()>;
}

/// Several reporters as one. A failed one is left out from then on.
#[derive(Default)]
pub struct Reporters {
    members: Vec<(&'static str, Box<dyn Reporter>)>,
    warnings: Vec<String>,
}

impl Reporters {
    /// Adds a reporter. The warning about its failure calls it `name`.
    pub fn add(&mut self, name: &'static str, reporter: Box<dyn Reporter>) {
        self.members.push((name, reporter));
    }

    /// Replaces the reporter of that name, if there is one.
    pub fn replace(&mut self, name: &str, reporter: Box<dyn Reporter>) {
        if let Some((_, member)) = self.members.iter_mut().find(|(known, _)| *known == name) {
            *member = reporter;
        }
    }

    /// Passes the event to every reporter in the order in which they were added. Returns a warning for each
    /// that failed on this event, to be emitted as a warning of the run. There is never more than one warning
    /// per reporter.
    #[must_use = "each is a warning that a person should read"]
    pub fn report(&mut self, event: &Event, summary: &RunSummary) -> Vec<String> {
        let known = self.warnings.len();
        self.members.retain_mut(|(name, reporter)| {
            let failure = reporter.report(event, summary).err();
            let warning = failure.as_ref().map(|why| {
                let why = text::line(&why.to_string());
                format!("the {name} report stopped: {why}")
            });
            self.warnings.extend(warning);
            failure.is_none()
        });
        self.warnings[known..].to_vec()
    }

    /// The warnings so far. A report that stopped does not show its own.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(String::as_str)
    }
}

/// What `sprag report` writes. Each is a file of the run directory too, written when the run ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Markdown.
    #[default]
    Md,
    /// One page for a browser, with prompts, diffs and logs.
    Html,
    /// The summary as JSON.
    Json,
}

impl Format {
    /// Its file in the run directory.
    pub const fn file(self) -> &'static str {
        match self {
            Self::Md => "report.md",
            Self::Html => "report.html",
            Self::Json => "summary.json",
        }
    }

    /// Its name in a warning.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Md => "report",
            Self::Html => "HTML report",
            Self::Json => "summary",
        }
    }

    /// Whether it shows files of the run besides the summary.
    pub const fn shows_sources(self) -> bool {
        matches!(self, Self::Html)
    }
}

/// Renders a finished run, ending with a line end. `sources` may be empty if the format shows none.
pub fn render(summary: &RunSummary, sources: &Sources, format: Format) -> String {
    match format {
        Format::Md => markdown::step_summary(summary, markdown::STEP_SUMMARY_BYTES),
        Format::Html => html::report(summary, sources),
        Format::Json => {
            let json = serde_json::to_string_pretty(summary).unwrap_or_else(|error| {
                serde_json::json!({ "error": error.to_string() }).to_string()
            });
            actions_log::neutral_json(json) + "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn every_event_is_read_back_as_it_was_kept() {
        let events = samples::every_event();
        let kept: Vec<String> = events
            .iter()
            .map(|event| serde_json::to_string(event).unwrap())
            .collect();
        let read: Vec<Event> = kept
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(read, events);
    }

    struct Fails {
        after: usize,
        told: Rc<RefCell<Vec<u64>>>,
    }

    impl Reporter for Fails {
        fn report(&mut self, event: &Event, _: &RunSummary) -> io::Result<()> {
            let mut told = self.told.borrow_mut();
            told.push(event.seq);
            if told.len() > self.after {
                return Err(io::Error::other("disk\nfull"));
            }
            Ok(())
        }
    }

    #[test]
    fn a_failing_reporter_is_one_warning_and_the_others_go_on() {
        let (bad, good) = (Rc::default(), Rc::default());
        let mut reporters = Reporters::default();
        reporters.add(
            "JSONL",
            Box::new(Fails {
                after: 1,
                told: Rc::clone(&bad),
            }),
        );
        reporters.add(
            "console",
            Box::new(Fails {
                after: 99,
                told: Rc::clone(&good),
            }),
        );
        let mut warnings = Vec::new();
        for seq in 1..=4 {
            let event = samples::event(seq, samples::warning("x"));
            warnings.extend(reporters.report(&event, &RunSummary::default()));
        }
        assert_eq!(warnings, ["the JSONL report stopped: disk full"]);
        assert_eq!(
            (bad.borrow().clone(), good.borrow().clone()),
            (vec![1, 2], vec![1, 2, 3, 4])
        );
    }

    #[test]
    fn every_event_is_read_back_as_it_was_written() {
        let recorders = [
            samples::partial_recorder(),
            samples::planning_recorder(),
            samples::no_progress_recorder(),
            samples::cancelled_recorder(),
        ];
        for event in recorders.iter().flat_map(|recorder| &recorder.events) {
            let text = serde_json::to_string(event).unwrap();
            let back: Event = serde_json::from_str(&text).unwrap();
            assert_eq!(&back, event);
        }
    }

    #[test]
    fn the_json_rendering_is_summary_json() {
        let summary = samples::partial();
        let back: RunSummary =
            serde_json::from_str(&render(&summary, &Sources::new(), Format::Json)).unwrap();
        assert_eq!(back, summary);
        assert!(render(&summary, &Sources::new(), Format::Md).starts_with("## "));
    }
}
