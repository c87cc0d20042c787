//! The cost of a repository's runs in the last day. Each run with a cost is a reference of the repository
//! whose name contains the time, the run and the amount. Runs on different machines are thus added up without
//! a shared file.

use std::collections::BTreeSet;

/// The prefix of the names of these references.
pub const SPEND_REFS: &str = "refs/sprag/spend/";

/// How long a run counts, in seconds.
pub const DAY: u64 = 24 * 60 * 60;

/// The number of units per dollar in which amounts are recorded.
const PARTS: f64 = 10_000.0;

/// Dollars with cents, or with four decimal places below one cent.
pub fn dollars(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 {
        format!("${usd:.4}")
    } else {
        format!("${usd:.2}")
    }
}

/// The cost of a run as another job reports it, which ran untrusted code: at most what one run may cost.
pub fn believed(reported: Option<f64>, limit: Option<f64>) -> f64 {
    let usd = reported.filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.map_or(0.0, |usd| usd.min(limit.unwrap_or(usd)))
}

/// The reference that records the cost of a run. `at` is in seconds since 1970.
pub fn entry(at: u64, run_id: &str, usd: f64) -> String {
    // A run's cost is far below the conversion's limit.
    let parts = (usd.max(0.0) * PARTS).ceil() as u64;
    format!("{SPEND_REFS}{at}/{run_id}-{parts}")
}

/// The sum of the references' costs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DaySpend {
    /// The cost of the last day in US dollars.
    pub usd: f64,
    /// References that are no longer needed.
    pub outdated: Vec<String>,
}

/// Adds up the references of the last day. The cost in `own` is excluded, because the run will record it
/// again.
pub fn day_spend<'a>(
    names: impl Iterator<Item = &'a str>,
    now: u64,
    own: Option<&str>,
) -> DaySpend {
    let mut spend = DaySpend::default();
    let mut seen = BTreeSet::new();
    for name in names {
        let Some((at, run, usd)) = parse(name) else {
            continue;
        };
        if at.saturating_add(DAY) < now || Some(run) == own {
            spend.outdated.push(name.to_owned());
        } else if seen.insert(name) {
            spend.usd += usd;
        }
    }
    spend
}

/// Whether no reference records a run's cost. An id that no run can have is never counted: it comes from a
/// job that ran untrusted code, and becomes part of a reference's name.
pub fn is_uncounted<'a>(mut names: impl Iterator<Item = &'a str>, run_id: &str) -> bool {
    let is_of_id = |c: char| c.is_ascii_hexdigit() || c == '-';
    let is_id = (1..=36).contains(&run_id.len()) && run_id.chars().all(is_of_id);
    is_id && !names.any(|name| parse(name).is_some_and(|(_, run, _)| run == run_id))
}

fn parse(name: &str) -> Option<(u64, &str, f64)> {
    let (at, rest) = name.strip_prefix(SPEND_REFS)?.split_once('/')?;
    let (run, parts) = rest.rsplit_once('-')?;
    let parts: u64 = parts.parse().ok()?;
    Some((at.parse().ok()?, run, parts as f64 / PARTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_job_is_believed_up_to_what_a_run_may_cost() {
        for (reported, limit, counted) in [
            (Some(3.0), Some(10.0), 3.0),
            (Some(1e9), Some(10.0), 10.0),
            (Some(f64::INFINITY), Some(10.0), 0.0),
            (Some(f64::NAN), None, 0.0),
            (Some(-5.0), Some(10.0), 0.0),
            (Some(70.0), None, 70.0),
            (None, Some(10.0), 0.0),
        ] {
            let known = believed(reported, limit);
            assert!(
                (known - counted).abs() < f64::EPSILON,
                "{reported:?}, {limit:?}: {known}"
            );
        }
    }

    #[test]
    fn a_run_is_counted_once_and_only_under_an_id_that_runs_have() {
        let there = [entry(5, "0192-a", 1.0)];
        let names = || there.iter().map(String::as_str);
        assert!(!is_uncounted(names(), "0192-a"));
        assert!(is_uncounted(names(), "0192-b"));
        for forged in ["", "../heads/main", "0192 b", "0192.lock"] {
            assert!(!is_uncounted(names(), forged), "{forged}");
        }
    }

    #[test]
    fn the_last_day_is_added_up_and_what_is_older_is_let_go() {
        let now = 10 * DAY;
        let names = [
            entry(now - 60, "0192-a", 1.25),
            entry(now - DAY, "0192-b", 0.5),
            entry(now - DAY - 1, "0192-c", 40.0),
            entry(now + 5, "0192-d", 0.00001),
            format!("{SPEND_REFS}nonsense"),
            "refs/heads/main".to_owned(),
        ];
        let day = day_spend(names.iter().map(String::as_str), now, None);
        assert!((day.usd - 1.7501).abs() < 1e-9, "{day:?}");
        assert_eq!(day.outdated, [names[2].clone()]);
        let own = day_spend(names.iter().map(String::as_str), now, Some("0192-a"));
        assert!((own.usd - 0.5001).abs() < 1e-9, "{own:?}");
        assert_eq!(own.outdated, [names[0].clone(), names[2].clone()]);
    }
}
