//! What words of a command or a path say.

use super::super::table::SHELLS;
use crate::checks::tests_changed::is_test;

/// Words in a script's path that mark it as a check. A script that another script runs may otherwise be the
/// work itself: `test.sh` that runs `slug.sh`.
const WORDS_OF_CHECKS: &[&str] = &[
    "assert",
    "assertions",
    "check",
    "checks",
    "ci",
    "common",
    "e2e",
    "gate",
    "gradlew",
    "hack",
    "harness",
    "helper",
    "helpers",
    "integration",
    "lint",
    "mvnw",
    "script",
    "scripts",
    "spec",
    "specs",
    "suite",
    "test",
    "testing",
    "tests",
    "tools",
    "validate",
    "verify",
];

/// Endings of data.
pub const DATA: &[&str] = &["csv", "ini", "json", "toml", "txt", "yaml", "yml"];

/// Further words in the path of data by which a check judges.
const WORDS_OF_LIMITS: &[&str] = &[
    "allowlist",
    "baseline",
    "budget",
    "budgets",
    "expected",
    "limits",
    "threshold",
    "thresholds",
];

/// Whether a shell's next argument is a command: `-c`.
pub fn is_command_option(word: &str) -> bool {
    let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    short.is_some_and(|letters| letters.ends_with('c'))
}

/// Whether an interpreter only parses a file, which then decides nothing: `sh -n x.sh`.
pub fn only_parses(name: &str, rest: &[String]) -> bool {
    let mut options = rest.iter().take_while(|word| word.starts_with('-'));
    let letter = match name {
        _ if SHELLS.contains(&name) => 'n',
        "perl" | "ruby" => 'c',
        "php" => 'l',
        "node" | "nodejs" => {
            return options.any(|word| word == "--check" || word == "-c");
        }
        _ => return false,
    };
    options.any(|word| !word.starts_with("--") && word.contains(letter))
}

/// Whether the path of data says that a check judges by it.
pub fn says_that_it_limits(path: &str) -> bool {
    has_word(path, WORDS_OF_LIMITS) || says_that_it_checks(path)
}

/// Whether a path says that it is part of a check.
pub fn says_that_it_checks(path: &str) -> bool {
    is_test(path) || has_word(path, WORDS_OF_CHECKS)
}

fn has_word(path: &str, known: &[&str]) -> bool {
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| known.contains(&word.to_ascii_lowercase().as_str()))
}
