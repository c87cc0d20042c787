//! Interprets the output of a check: the code locations and tests that it names, its numbers, whether it is
//! the same failure as before, and the part that is most useful to an agent.

mod blocks;
pub mod check;
pub mod counts;
pub mod diagnostic;
mod errors;
mod excerpt;
mod failed_check;
mod failing_test;
mod fingerprint;
mod fold;
mod hints;
pub mod judges;
pub mod junit;
mod matcher;
mod normalise;
mod path;
pub mod reading;
mod reported;
mod results;
mod said;
pub mod signals;
#[cfg(test)]
mod tests;
pub mod tests_changed;
mod tools;
pub mod uncommitted;
mod unfinished;
pub mod verdict;
mod wrapped;

pub use errors::{first_errors, first_errors_of};
pub use excerpt::{FailingCheck, excerpt, excerpts};
pub use failed_check::FailedCheck;
pub use failing_test::{FailingTest, MAX_FAILING_TESTS};
pub use fingerprint::{check_fingerprint, combined};
pub use hints::hints;
pub use matcher::{MAX_MATCHER_BYTES, Matcher, Matchers, read_matchers};
pub use path::relative as relative_path;
pub use reported::Reported;
pub use results::{Results, counts};
pub use said::Said;
pub use unfinished::is_around_tests;
pub use wrapped::unwrapped;
