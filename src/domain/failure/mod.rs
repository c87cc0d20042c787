//! What a failing check says: which tests failed, whether it is the same failure as before, and
//! the part of its output that is worth an agent's time.

mod blocks;
mod errors;
mod excerpt;
mod fingerprint;
mod fold;
mod hints;
mod names;
mod normalise;
#[cfg(test)]
mod tests;

pub use errors::{first_errors, first_errors_of};
pub use excerpt::{FailingCheck, excerpt, excerpts};
pub use fingerprint::{check_fingerprint, combined, fingerprint};
pub use hints::hints;
pub use names::failing_tests;
