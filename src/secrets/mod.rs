//! Secrets: where they come from, how they are taken out of texts, and how they are found in what is
//! to be committed.

use std::io::{self, Read};
use std::sync::Arc;

pub mod detect;
pub mod redact;
pub mod redact_stream;
pub mod sources;

/// Takes secrets out of a text.
pub type Redact = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// Finds secrets in what is read: the name of the variable that holds each, with what stands there.
pub type FindSecrets =
    Arc<dyn Fn(&mut dyn Read) -> io::Result<Vec<(String, String)>> + Send + Sync>;
