//! Secrets: their sources, their redaction in texts, and their detection in content that is about to be
//! committed.

pub mod detect;
pub mod redact;
pub mod redact_stream;
pub mod sources;
mod unescape;
mod views;
