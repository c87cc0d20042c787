//! The variables of Sprag's own besides those of the settings, and the warning for a variable that nothing reads.

use super::{canonical_name, names, variable_name};
use crate::suggest::nearest;

/// The start of the name of every variable of Sprag's.
pub(super) const PREFIX: &str = "SPRAG_";

/// The start of the names that only Sprag's own tests read.
const OF_TESTS: &str = "SPRAG_TEST_";

macro_rules! variables {
    ($($(#[doc = $help:literal])+ $name:ident = $text:literal;)*) => {
        $($(#[doc = $help])+ pub const $name: &str = $text;)*

        /// All of them.
        const OWN: &[&str] = &[$($name),*];
    };
}

variables! {
    /// The URL of a server that replaces the model provider's own.
    BASE_URL = "SPRAG_BASE_URL";
    /// The interval between progress reports of a turn, as a duration.
    HEARTBEAT = "SPRAG_HEARTBEAT";

    /// For an agent that is a command: the file with the prompt.
    PROMPT_FILE = "SPRAG_PROMPT_FILE";
    /// For an agent that is a command: the file for its final message.
    FINAL_FILE = "SPRAG_FINAL_FILE";
    /// For an agent that is a command: the id of the task.
    TASK_ID = "SPRAG_TASK_ID";
    /// For an agent that is a command: the attempt, from 1.
    ATTEMPT = "SPRAG_ATTEMPT";
    /// For an agent that is a command: the turn, from 1.
    TURN = "SPRAG_TURN";
    /// For an agent that is a command: the purpose of the turn.
    PURPOSE = "SPRAG_PURPOSE";
    /// For an agent that is a command: its role.
    ROLE = "SPRAG_ROLE";

    /// The run's id, in every process that the run starts.
    RUN_ID = "SPRAG_RUN_ID";
    /// Identifies the descendants of one child.
    PROCESS_ID = "SPRAG_PROCESS_ID";

    /// The pause between two requests to GitHub, in milliseconds. Tests shorten it.
    GITHUB_SPACING = "SPRAG_GITHUB_SPACING_MS";
    /// The first wait before a request to GitHub is repeated, in milliseconds. Tests shorten it.
    GITHUB_RETRY = "SPRAG_GITHUB_RETRY_MS";
    /// The timeout of a request to GitHub, in milliseconds. Tests shorten it.
    GITHUB_REQUEST = "SPRAG_GITHUB_REQUEST_MS";
    /// The longest wait for a model, in milliseconds. Tests shorten it.
    MODEL_WAIT = "SPRAG_MODEL_WAIT_MS";
    /// Multiplies what a run may take to end after a signal. Tests set it, as they also run on slow machines.
    AFTER_SIGNAL_TIMES = "SPRAG_AFTER_SIGNAL_TIMES";
    /// Limits the sandbox level. Tests set it to see every level on one machine.
    SANDBOX_LIMIT = "SPRAG_SANDBOX_LIMIT";
    /// Limits the network to its weaker enforcement, for the same reason.
    NETWORK_LIMIT = "SPRAG_NETWORK_LIMIT";

    /// For building Sprag: the commit that `sprag --version` names.
    COMMIT = "SPRAG_COMMIT";
    /// For building Sprag: the date of that commit.
    COMMIT_DATE = "SPRAG_COMMIT_DATE";
    /// For building Sprag: the profile.
    BUILD_PROFILE = "SPRAG_BUILD_PROFILE";
    /// For building Sprag: the C library.
    BUILD_LIBC = "SPRAG_BUILD_LIBC";
    /// For testing Sprag: no test may be left out.
    CI_STRICT = "SPRAG_CI_STRICT";
    /// For testing Sprag: the file that lists what was left out.
    CI_SKIPPED = "SPRAG_CI_SKIPPED";
    /// For testing Sprag: rewrites the generated documents.
    REGENERATE = "SPRAG_REGENERATE";
    /// For testing Sprag: rewrites the samples of the output of tools.
    WRITE_SAMPLES = "SPRAG_WRITE_SAMPLES";
    /// For testing Sprag: the directory for rendered reports.
    SAMPLES = "SPRAG_SAMPLES";
    /// For testing Sprag: the target to be fuzzed.
    FUZZ_TARGET = "SPRAG_FUZZ_TARGET";
}

/// Whether something reads or sets a variable of this name.
pub fn is_known(name: &str) -> bool {
    name.starts_with(OF_TESTS)
        || OWN.contains(&name)
        || names().any(|key| variable_name(key) == name)
}

/// A variable that is named like Sprag's own but that nothing reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// What was found, as a fragment for a message.
    pub found: String,
    /// What to do about it.
    pub remedy: String,
}

/// Those of these variables that are named like Sprag's own but that nothing reads.
pub fn unread<'a>(set: impl IntoIterator<Item = &'a str>) -> Vec<Unread> {
    let unread = set
        .into_iter()
        .filter(|name| name.starts_with(PREFIX) && !is_known(name));
    unread.map(unread_variable).collect()
}

fn unread_variable(name: &str) -> Unread {
    let known = names()
        .map(variable_name)
        .chain(OWN.iter().map(|&own| own.to_owned()));
    let known: Vec<String> = known.map(|known| own_part(&known).to_owned()).collect();
    // Flags for one item of a list have names of their own.
    let key = own_part(name).to_ascii_lowercase();
    let meant = canonical_name(&key);
    let meant = (meant != key).then(|| meant.to_ascii_uppercase());
    let similar = || nearest(own_part(name), known.iter().map(String::as_str)).map(str::to_owned);
    Unread {
        found: format!("the variable {name} is set, and nothing reads it"),
        remedy: match meant.or_else(similar) {
            Some(near) => format!("did you mean {PREFIX}{near}?"),
            None => format!(
                "rename it, or name the setting that is meant: `sprag run --help` lists them, and --max-retries is {}",
                variable_name("max_retries")
            ),
        },
    }
}

/// A name without the common start, which would make all names similar.
fn own_part(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_nothing_reads_is_told_with_the_nearest_that_is_read() {
        for (name, expected) in [
            ("SPRAG_MAX_RETRYS", Some("did you mean SPRAG_MAX_RETRIES?")),
            ("SPRAG_MODLE", Some("did you mean SPRAG_MODEL?")),
            ("SPRAG_BASEURL", Some("did you mean SPRAG_BASE_URL?")),
            ("SPRAG_NETWORK_ALLOW", Some("did you mean SPRAG_NETWORK?")),
            ("SPRAG_AGENT_ARG", Some("did you mean SPRAG_AGENT_ARGS?")),
            ("SPRAG_ZZ", Some("--max-retries is SPRAG_MAX_RETRIES")),
            ("SPRAG_MAX_RETRIES", None),
            ("SPRAG_TASK_ID", None),
            ("SPRAG_TEST_FULL", None),
            ("SPRAGUE", None),
            ("MODLE", None),
        ] {
            let told = unread([name]);
            assert_eq!(told.len(), usize::from(expected.is_some()), "{told:?}");
            for (told, expected) in told.iter().zip(expected) {
                assert!(told.found.contains(name), "{told:?}");
                assert!(told.remedy.ends_with(expected), "{told:?}");
            }
        }
    }
}
