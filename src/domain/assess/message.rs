//! Classifies a final message: what the turn would count as if nothing had changed.
//!
//! The repository decides whether anything happened; the message only decides how Sprag replies when nothing
//! did. The message is normalised ([`normalise`]), every sentence is marked with the cues that it contains
//! ([`cues`]), and the class follows from their position: the beginning and above all the end count, the
//! middle hardly does.

mod cues;
mod decide;
mod failed;
mod normalise;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::text::first_line;
use decide::Marked;
use normalise::normalise;

pub use failed::FailedReport;

/// The class of a final message, on the assumption that nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MessageClass {
    /// It reports failure in the form of the protocol: `FAILED: …` as its first line.
    FailedReport,
    /// It asks a question or waits for permission, approval or an answer.
    AwaitingInput,
    /// It says, without the `FAILED:` form, that it cannot continue.
    ReportsBlocked,
    /// It says that nothing needs doing.
    AlreadySatisfied,
    /// It says that it did the work.
    ClaimsDone,
    /// It announces what it will do.
    PlanningOnly,
    /// It is the error text of an API, a tool or an account limit.
    Error,
    /// There is no text.
    Empty,
    /// Anything else: an analysis, an answer, chit-chat.
    Other,
}

/// The result of reading a final message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The message's class.
    pub class: MessageClass,
    /// The sentences that decided the class: at most [`MAX_INDICATORS`], each of at most
    /// [`MAX_INDICATOR_CHARS`] characters.
    pub indicators: Vec<String>,
    /// The report, if the class is [`MessageClass::FailedReport`].
    pub failed: Option<FailedReport>,
    /// The reason after `ALREADY_SATISFIED:`, if one was given.
    pub satisfied_why: Option<String>,
}

/// The maximum number of sentences that a reading quotes.
pub const MAX_INDICATORS: usize = 5;

/// The maximum length of a quoted sentence, in characters.
pub const MAX_INDICATOR_CHARS: usize = 120;

/// Reads the final message of one turn. With `beginning_cut`, only the tail of the message is known, and the
/// forms that must be at its beginning (`FAILED:`, `ALREADY_SATISFIED:`) are not recognised.
pub fn read_message(text: &str, beginning_cut: bool) -> Reading {
    if text.trim().is_empty() {
        return Reading::of(MessageClass::Empty, &[]);
    }
    if !beginning_cut && let Some(reading) = read_forms(text) {
        return reading;
    }
    if let Some(error) = library_error(text) {
        return Reading::of(MessageClass::Error, &[first_line(error)]);
    }
    let marked = Marked::new(normalise(text));
    let (class, deciding) = marked.decide();
    Reading::of(class, &deciding)
}

/// The error of the model's API at the end of a text, as the library litellm words it. Agents that use it
/// print it below whatever they printed before, and end with exit code 0.
pub fn library_error(text: &str) -> Option<&str> {
    const MARK: &str = "litellm.";
    const LAST_LINES: usize = 6;
    let mut starts = text.rmatch_indices(MARK).map(|(at, _)| at);
    let start = starts.find(|at| text[..*at].is_empty() || text[..*at].ends_with('\n'))?;
    let error = text[start..].trim_end();
    (error.lines().count() <= LAST_LINES).then_some(error)
}

/// The error of a model with which a text ends. An agent that was cut off in its work prints it below or behind whatever
/// it printed before. What says what was done, or what the code does, only speaks of an error.
pub fn error_at_end(text: &str) -> Option<&str> {
    static SPEAKS: Pattern = Pattern::new(
        r#"(?i)["`]|\b(?:after|already|answers?|an?|for|gets?|handles?|if|is (?:now|shown)|means|raises?|receives?|returns?|sends?|shows?|throws?|when|with)\b"#,
    );
    if let Some(error) = library_error(text) {
        return Some(error);
    }
    let last = text.trim_end().lines().next_back()?.trim();
    let sentence = last
        .rsplit_once(". ")
        .map_or(last, |(_, sentence)| sentence);
    let behind = (!SPEAKS.is_match(sentence)).then_some(sentence);
    [Some(last), behind].into_iter().flatten().find(|said| {
        let marked = Marked::new(normalise(said));
        marked.is_error() && !marked.says_done()
    })
}

/// The trace of a crash with which a text ends.
pub fn crash_at_end(text: &str) -> Option<&str> {
    static TRACE: Pattern = Pattern::new(
        r"(?xm)^(?:Traceback\ \(most\ recent\ call\ last\):|panic:\ .*|thread\ .*\ panicked\ at\ .*(?:\n.*)?|node:[\w/]+:\d+)$
        (?:\n(?:[\ \t].*|[\w.]*(?:Error|Exception|Interrupt)\b.*|Node\.js\ v\d.*|exit\ status\ \d+|note:\ .*|stack\ backtrace:|goroutine\ \d+\ \[.*|\S*\))?$)*\s*\z",
    );
    text.get(TRACE.find_at(text, 0)?)
}

/// The `FAILED:` report at the beginning of a final message. A message whose beginning was cut has none. The
/// rest of the message is not classified, which makes this cheap.
pub fn failed_report(text: &str, beginning_cut: bool) -> Option<FailedReport> {
    (!beginning_cut).then(|| FailedReport::read(text)).flatten()
}

/// Reads the two forms that the prompt defines. They count whatever text follows them.
fn read_forms(text: &str) -> Option<Reading> {
    let (inside, _) = failed::unfenced(text);
    let line = first_line(inside);
    if let Some(report) = FailedReport::read(text) {
        return Some(Reading {
            failed: Some(report),
            ..Reading::of(MessageClass::FailedReport, &[line])
        });
    }
    let mut why = failed::form(line, "ALREADY_SATISFIED")?;
    if why.is_empty() {
        let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
        lines.by_ref().find(|l| *l == line);
        why = lines.next().unwrap_or_default();
    }
    Some(Reading {
        satisfied_why: (!why.is_empty()).then(|| cut(why, MAX_WHY_CHARS)),
        ..Reading::of(MessageClass::AlreadySatisfied, &[line])
    })
}

/// The maximum length of the reason after `ALREADY_SATISFIED:`, in characters.
const MAX_WHY_CHARS: usize = 2000;

impl Reading {
    fn of(class: MessageClass, deciding: &[&str]) -> Self {
        let mut indicators: Vec<String> = Vec::new();
        for sentence in deciding {
            let shown = cut(sentence.trim(), MAX_INDICATOR_CHARS);
            if !shown.is_empty() && !indicators.contains(&shown) {
                indicators.push(shown);
            }
        }
        indicators.truncate(MAX_INDICATORS);
        Self {
            class,
            indicators,
            failed: None,
            satisfied_why: None,
        }
    }
}

/// `text` without control characters, cut to `limit` characters.
fn cut(text: &str, limit: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(limit).collect::<String>().trim_end().to_owned()
}
