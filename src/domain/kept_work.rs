//! The metadata of unfinished work that is kept in a reference of the repository.

use serde::{Deserialize, Serialize};

/// The retention period, in seconds.
const KEPT: i64 = 30 * 24 * 60 * 60;

/// The line of the commit's message with the time at which the work was kept.
const AT: &str = "Sprag-Kept-At: ";

const VERSION: u32 = 1;
const MAX_TITLE: usize = 100;

/// The metadata that is needed to fetch and resume the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptMeta {
    v: u32,
    /// The number of commits from the start of the run to the last verified one.
    pub commits: u32,
    /// The number of the last event of a process that ended normally; 0 for any other process.
    pub ended: u64,
}

impl KeptMeta {
    /// Metadata in the current version.
    pub fn of(commits: u32, ended: u64) -> Self {
        Self {
            v: VERSION,
            commits,
            ended,
        }
    }

    /// Reads the metadata; `None` if it is damaged or has another version.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let meta: Self = serde_json::from_slice(bytes).ok()?;
        (meta.v == VERSION).then_some(meta)
    }
}

/// The last part of the reference's name: readable, and different for different requests.
pub fn key(what: &str, digest: &str) -> String {
    let what: String = what.chars().take(60).collect();
    format!("{what}-{digest}")
}

/// The message of the commit. `at` is in seconds since 1970.
pub fn message(title: &str, at: i64) -> String {
    let title = crate::text::one_line(title, MAX_TITLE);
    format!("Unfinished work: {title}\n\n{AT}{at}\n")
}

/// Whether work kept by a commit with this message has expired.
pub fn is_outdated(message: &str, now: i64) -> bool {
    let line = message.lines().rev().find_map(|line| line.strip_prefix(AT));
    let at: Option<i64> = line.and_then(|at| at.trim().parse().ok());
    at.is_some_and(|at| at.saturating_add(KEPT) < now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_kept_for_thirty_days() {
        let now = 100 * KEPT;
        let at = |seconds| message("A plan\nSprag-Kept-At: 1", seconds);
        assert!(!is_outdated(&at(now - KEPT), now));
        assert!(is_outdated(&at(now - KEPT - 1), now));
        assert!(!is_outdated("somebody else's commit", now));
    }

    #[test]
    fn what_is_told_comes_back_and_another_version_is_not_read() {
        let meta = KeptMeta::of(3, 17);
        let text = serde_json::to_vec(&meta).unwrap();
        assert_eq!(KeptMeta::read(&text), Some(meta));
        assert_eq!(KeptMeta::read(br#"{"v":2,"commits":1,"ended":0}"#), None);
        assert_eq!(KeptMeta::read(b"{"), None);
    }
}
