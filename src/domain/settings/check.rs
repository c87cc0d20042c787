//! `verify`: checks as a plan or a configuration file writes them.

use super::kind::{Choice, Form, Kind, Time, listed, literal, text_schema};
use crate::checks::verdict::{Check, CheckKind};
use crate::duration::millis;
use crate::suggest::did_you_mean;
use crate::text::{cap_chars, file_name, first_line, has_word};
use crate::text_error::Fault;
use crate::yaml::{Entry, Node, Value, read};
use serde_json::{Value as Json, json};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A check whose time limit may still come from `verify_timeout`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSpec {
    /// The name for logs and reports.
    pub name: String,
    /// The command, which `sh -e -c` runs in the work tree.
    pub run: String,
    /// The given kind, or the kind that the name and the command suggest.
    pub kind: CheckKind,
    /// The time limit of one run, if the check has its own.
    pub timeout: Option<Duration>,
    /// A glob for the JUnit XML reports that it writes.
    pub junit: Option<String>,
    /// The file of problem matchers for its output.
    pub problem_matcher: Option<String>,
    /// The directory in which it runs, if not that of the task.
    pub directory: Option<String>,
}

const PARTS: [&str; 7] = [
    "name",
    "run",
    "kind",
    "timeout",
    "junit",
    "problem_matcher",
    "directory",
];
const EXPECTED: &str = "a command, or a mapping with `run` and optionally `name`, `kind`, `timeout`, `junit`, `problem_matcher` and `directory`";

impl CheckSpec {
    /// A check with only a command, which determines its name and kind.
    pub fn of_command(command: &str) -> Self {
        let run = command.trim().to_owned();
        Self {
            name: name_of(&run),
            kind: kind_of("", &run),
            run,
            timeout: None,
            junit: None,
            problem_matcher: None,
            directory: None,
        }
    }

    /// The check with its own time limit and directory, or else these.
    pub fn with_defaults(&self, limit: Duration, directory: &str) -> Check {
        let timeout = self.timeout.unwrap_or(limit);
        let directory = self.directory.as_deref().unwrap_or(directory);
        let below = |path: &String| match directory {
            "" => path.clone(),
            _ => format!("{directory}/{path}"),
        };
        Check {
            name: self.name.clone(),
            run: in_directory(&self.run, directory),
            kind: self.kind,
            timeout_ms: millis(timeout),
            junit: self.junit.as_ref().map(below),
            problem_matcher: self.problem_matcher.as_ref().map(below),
        }
    }
}

/// The command in the form in which a shell runs it in the root of the work tree. The shell ends where it cannot
/// enter the directory.
#[must_use]
pub fn in_directory(command: &str, directory: &str) -> String {
    if directory.is_empty() {
        return command.to_owned();
    }
    let quoted = shlex::try_quote(directory).unwrap_or(directory.into());
    let is_list = command.contains(['\n', ';']) || command.contains("||");
    let then = if is_list { "\n" } else { " && " };
    format!("cd {quoted}{then}{command}")
}

/// Reads a directory below the work tree; the root is the empty text.
pub(crate) fn read_directory(part: &str, node: &Node) -> Result<String, Fault> {
    let path = inside(part, node)?;
    let path = path.trim_end_matches('/');
    Ok(if path == "." { "" } else { path }.to_owned())
}

/// Numbers the checks whose name is taken, since results are compared by name: a second `test` becomes `test (2)`.
pub(super) fn distinguish(checks: &mut [Check]) {
    let given: HashSet<String> = checks.iter().map(|check| check.name.clone()).collect();
    let mut uses: HashMap<String, usize> = HashMap::new();
    for check in checks {
        let number = uses.entry(check.name.clone()).or_default();
        *number += 1;
        if *number == 1 {
            continue;
        }
        let numbered = |number: usize| format!("{} ({number})", check.name);
        while given.contains(&numbered(*number)) {
            *number += 1;
        }
        check.name = numbered(*number);
    }
}

/// A list of checks, each a command or a mapping; a single check need not be a list.
pub struct Checks;

impl Kind for Checks {
    type Out = Vec<CheckSpec>;
    const FORM: Form = Form::Lines;
    const NAME: &'static str = "COMMAND";
    fn schema(&self) -> Json {
        let check = json!({"anyOf": [text_schema(), {
            "type": "object",
            "properties": {
                "name": text_schema(),
                "run": text_schema(),
                "kind": Choice::<CheckKind>::kind().schema(),
                "timeout": Time.schema(),
                "junit": text_schema(),
                "problem_matcher": text_schema(),
                "directory": text_schema(),
            },
            "required": ["run"],
            "additionalProperties": false,
        }]});
        json!({"anyOf": [check.clone(), {"type": "array", "items": check}]})
    }
    fn words(&self, value: &Vec<CheckSpec>) -> String {
        listed(value.iter().map(|check| literal(&check.run)))
    }
    fn read(&self, key: &str, node: &Node) -> Result<Vec<CheckSpec>, Fault> {
        if matches!(node.value, Value::Map { .. }) {
            return Ok(vec![read_check(key, node)?]);
        }
        let items = read::items(key, "a list of checks", node)?.into_iter();
        items.map(|item| read_check(key, item)).collect()
    }
}

/// What is probably meant by an unknown part of a check. `test: make test` has its name as the key.
fn instead_of(node: &Node, part: &str, value: Option<&str>) -> String {
    let nearest = match part {
        "command" | "cmd" | "script" => " (did you mean `run`?)".to_owned(),
        _ => did_you_mean(part, PARTS),
    };
    let has_known = |entry: &Entry| PARTS.contains(&entry.key.as_str());
    let is_plain =
        |text: &&str| !text.contains([',', ':', '#', '"', '\'', '\n', '[', ']', '{', '}']);
    match value.filter(is_plain) {
        Some(command) if nearest.is_empty() && !node.entries().iter().any(has_known) => {
            format!("; write `{{ name: {part}, run: {command} }}`")
        }
        _ => nearest,
    }
}

fn read_check(key: &str, node: &Node) -> Result<CheckSpec, Fault> {
    if let Some(text) = node.text().filter(|text| !text.trim().is_empty()) {
        let item = format!("each item of {key}");
        return Ok(CheckSpec::of_command(command(&item, node, text)?));
    }
    let entries = match &node.value {
        Value::Map { entries, .. } => entries.iter().filter(|entry| !entry.value.is_null()),
        _ => {
            return Err(read::unexpected(
                &format!("each item of {key}"),
                EXPECTED,
                node,
            ));
        }
    };
    let mut check = CheckSpec::of_command("");
    let (mut name, mut kind) = (None, None);
    for entry in entries {
        let (part, value) = (format!("{key}.{}", entry.key), &entry.value);
        match entry.key.as_str() {
            "name" => name = Some(read::words(&part, value)?),
            "run" => check.run = command(&part, value, &read::words(&part, value)?)?.to_owned(),
            "kind" => kind = Some(Choice::<CheckKind>::kind().read(&part, value)?),
            "timeout" => check.timeout = Some(Time.read(&part, value)?),
            "junit" => check.junit = Some(inside(&part, value)?),
            "problem_matcher" => check.problem_matcher = Some(inside(&part, value)?),
            "directory" => check.directory = Some(read_directory(&part, value)?),
            other => {
                let suggestion = instead_of(node, other, value.text());
                let known = PARTS.join(", ");
                let message = format!("a check has no part `{other}`, only {known}{suggestion}");
                return Err(Fault::new(entry.key_at, message));
            }
        }
    }
    if check.run.is_empty() {
        let message = "the check has no `run`: give the command that decides";
        return Err(Fault::new(node.at, message));
    }
    check.name = name.unwrap_or_else(|| name_of(&check.run));
    check.kind = kind.unwrap_or_else(|| kind_of(&check.name, &check.run));
    Ok(check)
}

/// The text of a command, which is more than a comment: a shell has run a comment whatever the work is.
fn command<'t>(part: &str, node: &Node, text: &'t str) -> Result<&'t str, Fault> {
    let is_command = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    if text.lines().any(is_command) {
        return Ok(text);
    }
    let expected = "a command and not only a comment";
    Err(read::unexpected(part, expected, node))
}

/// A path or glob of files inside the work tree.
fn inside(part: &str, node: &Node) -> Result<String, Fault> {
    let path = read::words(part, node)?;
    let leaves = path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
    if leaves || path.contains('\\') {
        let message =
            format!("{part} must be a path below the work tree, with `/` between its parts");
        return Err(Fault::new(node.at, message));
    }
    if let Err(error) = globset::Glob::new(&path) {
        let message = format!("{part} must be a path or a glob, but {}", error.kind());
        return Err(Fault::new(node.at, message));
    }
    Ok(path.strip_prefix("./").unwrap_or(&path).to_owned())
}

/// The first line of the command, cut if it is long.
fn name_of(run: &str) -> String {
    match first_line(run) {
        "" => "check".to_owned(),
        line => cap_chars(line, 40).into_owned(),
    }
}

const TEST_WORDS: &str = "test tests pytest unittest nextest jest vitest mocha rspec ctest tox nox phpunit spec e2e integration";
const LINT_WORDS: &str = "lint linter clippy fmt format eslint prettier ruff black flake8 pylint mypy pyright rubocop vet golangci
    shellcheck stylelint biome gofmt rustfmt typos";
const BUILD_WORDS: &str = "build compile tsc assemble make cmake ninja javac gcc webpack";

/// The kind that the name and the command suggest. The name takes precedence over the command; tests take
/// precedence over linters, and linters over builds, because a command that does several things must not skip
/// the other checks.
fn kind_of(name: &str, run: &str) -> CheckKind {
    let command = command_words(run);
    let named = split_words(name).collect::<Vec<_>>();
    for words in [&named, &command] {
        for (kind, known) in [
            (CheckKind::Test, TEST_WORDS),
            (CheckKind::Lint, LINT_WORDS),
            (CheckKind::Build, BUILD_WORDS),
        ] {
            if words.iter().any(|word| has_word(known, word)) {
                return kind;
            }
        }
    }
    let mut pairs = command.windows(2);
    if pairs.any(|pair| pair == ["cargo", "check"]) {
        return CheckKind::Build;
    }
    CheckKind::Other
}

/// The words of a command that show what it does: without options, and with only the last part of paths.
fn command_words(run: &str) -> Vec<String> {
    let words = run.split_whitespace().filter(|word| !word.starts_with('-'));
    words.map(file_name).flat_map(split_words).collect()
}

fn split_words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        for (given, expected) in [("a b", "a|b"), ("a a b a", "a|a (2)|b|a (3)")] {
            assert_eq!(names(given.split(' ')), expected);
        }
        let given = ["a", "a", "a (2)", "a (2)", "a"];
        let expected = "a|a (3)|a (2)|a (2) (2)|a (4)";
        assert_eq!(names(given.into_iter()), expected);
    }

    fn names<'n>(given: impl Iterator<Item = &'n str>) -> String {
        let spec = |name| CheckSpec {
            name: String::from(name),
            ..CheckSpec::of_command("true")
        };
        let limit = Duration::from_secs(1);
        let mut checks: Vec<Check> = given
            .map(|entry| spec(entry).with_defaults(limit, ""))
            .collect();
        distinguish(&mut checks);
        let names: Vec<String> = checks.into_iter().map(|check| check.name).collect();
        names.join("|")
    }

    #[test]
    fn the_kind_follows_name_and_command() {
        use CheckKind::{Build, Lint, Other, Test};
        for (name, run, kind) in [
            ("", "cargo build --locked", Build),
            ("", "cargo check", Build),
            ("", "cargo build --tests", Build),
            ("", "make", Build),
            ("", "make test", Test),
            ("", "npm run build && npm test", Test),
            ("", "cargo fmt --check", Lint),
            ("", "go vet ./...", Lint),
            ("", "node_modules/.bin/jest", Test),
            ("", "./scripts/run-tests.sh", Test),
            ("", "true", Other),
            ("build", "./do-it", Build),
            ("unit tests", "./do-it", Test),
            ("smoke", "curl localhost", Other),
        ] {
            assert_eq!(kind_of(name, run), kind, "{name:?} {run:?}");
        }
    }

    #[test]
    fn a_long_command_is_cut_in_the_name_only() {
        let command = format!("echo {}", "x".repeat(80));
        let spec = CheckSpec::of_command(&command);
        assert_eq!(spec.name, format!("echo {}…", "x".repeat(34)));
        assert_eq!(spec.run, command);
    }

    #[test]
    fn a_check_without_a_limit_takes_the_one_that_holds() {
        let spec = CheckSpec::of_command("true");
        let check = Check {
            name: "true".to_owned(),
            run: "true".to_owned(),
            kind: CheckKind::Other,
            timeout_ms: 90_000,
            junit: None,
            problem_matcher: None,
        };
        assert_eq!(spec.with_defaults(Duration::from_secs(90), ""), check);
    }
}
