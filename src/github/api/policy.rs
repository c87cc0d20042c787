//! The retry policy: what follows from a failed request, which is a retry, a check first, or giving up.
//!
//! The rules are GitHub's own advice for clients: obey `retry-after`, otherwise wait for `x-ratelimit-reset`
//! if nothing remains, otherwise wait a minute; never repeat a refused request. A request that may have
//! created something is repeated only after a check.

use super::settings::Limits;
use crate::domain::duration::millis;
use crate::domain::wait::{WaitPolicy, jittered_ms};
use jiff::Timestamp;
use std::time::Duration;

/// The effect of a request, which decides whether it may be sent twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Changes nothing.
    Read,
    /// Idempotent: leads to the same state however often it arrives.
    Change,
    /// Creates something new each time it arrives.
    Create,
}

/// The properties of a response that decide about a retry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The header `retry-after`, in seconds.
    pub retry_after: Option<u64>,
    /// The header `x-ratelimit-remaining`.
    pub remaining: Option<u64>,
    /// The header `x-ratelimit-reset`, in seconds since 1970 by GitHub's clock.
    pub reset: Option<i64>,
    /// The header `date`, in seconds since 1970: GitHub's clock, which `reset` refers to.
    pub date: Option<i64>,
    /// Whether the text mentions a rate limit.
    pub says_limit: bool,
}

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// No connection was made, so nothing was sent.
    Unsent,
    /// The request may have arrived, but the response did not, or not completely.
    Lost,
    /// The response was not a success.
    Answered(Refusal),
}

/// The situation at the time of the fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Now {
    /// The number of times the request was sent, from 1.
    pub sent: u32,
    /// The time until the overall deadline, or `None` without one.
    pub left: Option<Duration>,
    /// This machine's clock, used only if the response has no date.
    pub clock: Timestamp,
    /// A random number from 0 to 1, which spreads the waits of several clients.
    pub jitter: f64,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Send the same request again after a wait.
    Again(Duration),
    /// Wait, then check whether the request has succeeded after all; repeat it only if not.
    Look(Duration),
    /// A limit until this time (by GitHub's clock), which is too late to wait for.
    Limited(Timestamp),
    /// A retry does not help or is not allowed.
    GiveUp,
}

/// The wait for a limit that comes without a time.
const UNTOLD_WAIT: Duration = Duration::from_secs(60);

/// Decides what follows from `fault`.
pub fn next(limits: &Limits, kind: Kind, fault: &Fault, now: &Now) -> Next {
    match fault {
        Fault::Answered(refusal) if refusal.is_limit() => limited(limits, refusal, now),
        Fault::Answered(refusal) if refusal.status < 500 => Next::GiveUp,
        Fault::Unsent => backed_off(limits, now, None).map_or(Next::GiveUp, Next::Again),
        Fault::Lost => unclear(limits, kind, now, None),
        Fault::Answered(refusal) => unclear(limits, kind, now, refusal.retry_after),
    }
}

impl Refusal {
    /// Whether the number of requests was the problem: 429, or 403 with a time to retry, nothing remaining,
    /// or a text about a limit.
    pub fn is_limit(&self) -> bool {
        let told = self.retry_after.is_some() || self.remaining == Some(0) || self.says_limit;
        self.status == 429 || (matches!(self.status, 200 | 403) && told)
    }

    /// The wait that the response asks for.
    fn wait(&self, now: &Now) -> Duration {
        let until_reset = || {
            let reset = self.reset.filter(|_| self.remaining == Some(0))?;
            let clock = self.date.unwrap_or_else(|| now.clock.as_second());
            // One second more, because both times are truncated to seconds.
            let seconds = reset.saturating_sub(clock).saturating_add(1);
            Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
        };
        let told = self.retry_after.map(Duration::from_secs);
        told.or_else(until_reset).unwrap_or(UNTOLD_WAIT)
    }
}

/// A limit refuses a request before it has any effect, so every kind may be sent again.
fn limited(limits: &Limits, refusal: &Refusal, now: &Now) -> Next {
    // A time in the past or the present would cause a burst of requests.
    let wait = refusal.wait(now).max(limits.first_wait);
    let fits = wait <= limits.longest_wait && now.left.is_none_or(|left| wait < left);
    if fits && now.sent < limits.attempts {
        return Next::Again(wait);
    }
    let clock = refusal
        .date
        .and_then(|date| Timestamp::from_second(date).ok());
    let until = clock.unwrap_or(now.clock).checked_add(wait);
    Next::Limited(until.unwrap_or(Timestamp::MAX))
}

fn unclear(limits: &Limits, kind: Kind, now: &Now, told: Option<u64>) -> Next {
    match (kind, backed_off(limits, now, told)) {
        (Kind::Read | Kind::Change, Some(wait)) => Next::Again(wait),
        (Kind::Read | Kind::Change, None) => Next::GiveUp,
        (Kind::Create, Some(wait)) => Next::Look(wait),
        // The check is worthwhile even if there is no time to repeat the request.
        (Kind::Create, None) => Next::Look(Duration::ZERO),
    }
}

/// The wait before a retry, or `None` if there is no retry: by the common policy with jitter, or the
/// requested time, which is never shortened.
fn backed_off(limits: &Limits, now: &Now, told: Option<u64>) -> Option<Duration> {
    if now.sent >= limits.attempts {
        return None;
    }
    let told = told.map(Duration::from_secs);
    if told.is_some_and(|told| told > limits.longest_wait) {
        return None;
    }
    let policy = WaitPolicy {
        first_ms: millis(limits.first_wait),
        factor: 2,
        longest_ms: millis(limits.longest_wait),
    };
    let wait = policy.wait_ms(now.sent, told.map(millis));
    let wait = Duration::from_millis(jittered_ms(wait, now.jitter, policy.longest_ms));
    now.left.is_none_or(|left| wait < left).then_some(wait)
}

#[cfg(test)]
mod tests;
