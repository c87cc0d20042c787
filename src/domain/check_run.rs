//! The content of a check run on GitHub, as plain data that the API client maps.

use super::outcome::Conclusion;

/// The texts of a check run, each within GitHub's limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutput {
    /// Plain text, at most 255 bytes.
    pub title: String,
    /// Markdown, at most 65,535 bytes.
    pub summary: String,
    /// Markdown, at most 65,535 bytes; empty if there is nothing to report.
    pub text: String,
    /// The conclusion; `None` while the run is in progress.
    pub conclusion: Option<Conclusion>,
}
