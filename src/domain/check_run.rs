//! What a check run on GitHub says, as plain data that whoever speaks to its API maps.

use super::outcome::Conclusion;

/// The texts of a check run, each within its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutput {
    /// Plain text, at most 255 bytes.
    pub title: String,
    /// Markdown, at most 65,535 bytes.
    pub summary: String,
    /// Markdown, at most 65,535 bytes; empty when there is nothing to tell.
    pub text: String,
    /// The conclusion; `None` while the run is going on.
    pub conclusion: Option<Conclusion>,
}

/// How loud an annotation of a check run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "GitHub's own words")]
pub enum CheckLevel {
    Failure,
    Warning,
    Notice,
}

/// A note on lines of a file, within GitHub's limits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CheckAnnotation {
    /// How loud.
    pub level: CheckLevel,
    /// The file, relative to the repository, without `..`; `.github` where no file is meant.
    pub path: String,
    /// First line, from 1.
    pub start_line: u32,
    /// Last line, not before the first.
    pub end_line: u32,
    /// First column, from 1; only ever there when first and last line are the same.
    pub start_column: Option<u32>,
    /// Last column, as above.
    pub end_column: Option<u32>,
    /// At most 255 bytes.
    pub title: String,
    /// At most 64 KiB.
    pub message: String,
    /// More of it, at most 64 KiB.
    pub raw_details: Option<String>,
}
