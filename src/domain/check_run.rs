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
