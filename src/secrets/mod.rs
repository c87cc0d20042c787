//! Secrets: where they come from, how they are taken out of texts, and how they are found in what is
//! to be committed.

pub mod detect;
pub mod redact;
pub mod redact_stream;
pub mod sources;
mod unescape;
