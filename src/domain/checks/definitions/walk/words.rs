//! What words of a command or a path say.

use super::super::base;
use super::super::table::{
    BEFORE_A_COMMAND, COMPILERS, INSTALLERS, LINTERS, SAYING, SHELLS, TEXT_TOOLS,
};
use super::is_assignment;
use crate::checks::tests_changed::is_test;

/// Words in a script's path that mark it as a check. A script that another script runs may otherwise be the
/// work itself: `test.sh` that runs `slug.sh`.
const WORDS_OF_CHECKS: &[&str] = &[
    "acceptance",
    "assert",
    "assertions",
    "check",
    "checks",
    "ci",
    "common",
    "conformance",
    "e2e",
    "gate",
    "gradlew",
    "hack",
    "harness",
    "helper",
    "helpers",
    "integration",
    "judge",
    "lint",
    "mvnw",
    "qa",
    "regression",
    "script",
    "scripts",
    "smoke",
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
const DATA: &[&str] = &["csv", "ini", "json", "out", "toml", "txt", "yaml", "yml"];

/// Further words in the path of data by which a check judges.
const WORDS_OF_LIMITS: &[&str] = &[
    "allowlist",
    "baseline",
    "budget",
    "budgets",
    "cases",
    "expected",
    "golden",
    "limits",
    "suite",
    "suites",
    "threshold",
    "thresholds",
    "want",
];

/// Stems of files that start the work itself.
const ENTRY_POINTS: &[&str] = &["__main__", "cli", "index", "main", "server"];

/// Ends of options of compilers and linters that name a file by which they work, and not a file to work on.
const CONFIGURING: &[&str] = &[
    "addon",
    "autoload-file",
    "baseline",
    "bootstrap",
    "config",
    "config-file",
    "custom-syntax",
    "exec",
    "formatter",
    "ignore-file",
    "ignore-path",
    "imacros",
    "include",
    "library",
    "modfile",
    "overlay",
    "parser",
    "patch",
    "plugin",
    "policy",
    "preset",
    "project",
    "rcfile",
    "require",
    "rules",
    "rulesdir",
    "ruleset",
    "schema",
    "schemafile",
    "settings",
    "settings-file",
    "sp",
    "specs",
    "standard",
    "suppressions",
    "suppressions-list",
    "suppressions-location",
    "vettool",
];

/// Whether a file that follows this option of a program as a word of its own configures it. What follows an option
/// of a compiler or a linter is mostly the work itself: `cc -Wall a.c`, `mypy --strict a.py`.
pub fn option_configures(program: &str, option: &str, is_unknown: bool) -> bool {
    let name = option.trim_start_matches('-');
    let is_of_linter = || ["c", "f", "p"].contains(&name) || name.starts_with("config");
    let is_named = || {
        let ends = CONFIGURING.iter().any(|end| name.ends_with(end));
        ends && !name.starts_with("no-")
    };
    match program {
        _ if TEXT_TOOLS.contains(&program) => {
            let is_short = option.starts_with('-') && !option.starts_with("--");
            let letters = is_short && name.chars().all(|c| c.is_ascii_alphabetic());
            let (letter, long) = if program.ends_with("sum") {
                ('c', "check")
            } else {
                ('f', "file")
            };
            (letters && name.ends_with(letter)) || name == long || name == "from-file"
        }
        "tsc" => ["b", "build", "p"].contains(&name) || is_named(),
        "phpstan" if name == "a" => true,
        "rubocop" if name == "r" => true,
        _ if COMPILERS.contains(&program) => is_named(),
        _ if is_unknown => name == "c" || is_named(),
        _ if LINTERS.contains(&program) => is_of_linter() || is_named(),
        _ => true,
    }
}

/// Whether a command runs none of the programs that its arguments name, since it installs, finds or names them,
/// or judges the work by itself.
pub fn installs(words: &[String]) -> bool {
    let is_prefix =
        |word: &&String| BEFORE_A_COMMAND.contains(&word.as_str()) || is_assignment(word);
    let program = words
        .iter()
        .find(|word| !is_prefix(word))
        .map_or("", |word| base(word));
    let is_pair = |pair: &[String]| match pair {
        [one, other] => {
            let verbs = ["add", "i", "install", "require", "sync"];
            let installs = INSTALLERS.contains(&base(one)) && verbs.contains(&other.as_str());
            // Others run a script of this name.
            let is_clean_install = ["bun", "npm"].contains(&base(one)) && other == "ci";
            let finds = one == "command" && ["-v", "-V"].contains(&other.as_str());
            installs || is_clean_install || finds
        }
        _ => false,
    };
    let is_alone = [SAYING, LINTERS, COMPILERS]
        .iter()
        .any(|names| names.contains(&program));
    // `go test` and `go run` run what they compile.
    (is_alone && program != "go") || words.windows(2).any(is_pair)
}

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

/// Programs that read the data by which a check judges.
pub const READERS: &[&str] = &["cat", "cmp", "comm", "diff", "done", "jq", "xargs"];

/// Whether a path is that of data and says that a check judges by it, wherever it is named.
pub fn is_limit(path: &str) -> bool {
    is_expectation(path) || (is_data(path) && has_word(path, WORDS_OF_CHECKS))
}

/// Whether a path is that of data and says that results are compared with it.
pub fn is_expectation(path: &str) -> bool {
    let says_it = || has_word(path, WORDS_OF_LIMITS) || is_test(path);
    base(path).starts_with(".env") || (is_data(path) && says_it())
}

/// Whether a path is that of a directory with which results are compared: `diff -r expected out`.
pub fn has_expectations(path: &str) -> bool {
    let others = ["cases", "suite", "suites"];
    let words = WORDS_OF_LIMITS.iter().filter(|word| !others.contains(word));
    has_word(base(path), &words.copied().collect::<Vec<_>>())
}

/// Lists of dependencies say what to install, and not what to expect.
fn is_data(path: &str) -> bool {
    let lists = ["constraints", "package", "requirements"];
    DATA.contains(&extension(path)) && !has_word(path, &lists)
}

/// Whether a path is that of a file which starts the work itself: `main.py`, `index.js`.
pub fn is_entry_point(path: &str) -> bool {
    let stem = base(path).split('.').next().unwrap_or_default();
    ENTRY_POINTS.contains(&stem)
}

/// The ending of a file name, without the dot.
pub fn extension(path: &str) -> &str {
    base(path).rsplit_once('.').map_or("", |(_, ending)| ending)
}

/// Whether a path says that it is part of a check.
pub fn says_that_it_checks(path: &str) -> bool {
    is_test(path) || has_word(path, WORDS_OF_CHECKS)
}

/// Whether a path says that it checks, and not only that it is a tool or a script of some kind.
pub fn says_that_it_tests(path: &str) -> bool {
    let of_any_kind = |word: &&str| {
        let words = [
            "common", "hack", "helper", "helpers", "script", "scripts", "tools",
        ];
        words.contains(word)
    };
    let words = WORDS_OF_CHECKS.iter().filter(|word| !of_any_kind(word));
    is_test(path) || has_word(path, &words.copied().collect::<Vec<_>>())
}

/// Whether a file that the configuration of a test runner loads says that it is there for the tests, also in a directory
/// of the work: `src/setupTests.ts`.
pub fn prepares_tests(path: &str) -> bool {
    let name = base(path).to_ascii_lowercase();
    let parts = ["jest", "mocha", "setup", "spec", "test"];
    parts.iter().any(|part| name.contains(part)) || says_that_it_tests(path)
}

fn has_word(path: &str, known: &[&str]) -> bool {
    let mut words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| known.contains(&word.to_ascii_lowercase().as_str()))
}
