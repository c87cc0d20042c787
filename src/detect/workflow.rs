//! Reads the project's own CI: the `run:` steps of its workflows, as setup commands and checks.

use super::command::{Purpose, purpose};
use super::{Command, Found, Listing, Toolchain};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::yaml::{self, Node};
use std::collections::BTreeMap;

/// Words in the names of workflows that do not check a change.
const OTHER_BUSINESS: &[&str] = &[
    "bench",
    "codeql",
    "dependabot",
    "deploy",
    "docs",
    "fuzz",
    "label",
    "nightly",
    "pages",
    "publish",
    "release",
    "scorecard",
    "sprag",
    "stale",
];

/// Maximum number of checks of one kind.
const MAX_OF_A_KIND: usize = 3;

/// Words that start a compound command of the shell.
const COMPOUND: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "function", "{", "}", "(",
];

/// Commands that affect the lines after them.
const CARRIES_ON: &[&str] = &["cd", "pushd", "export", "source", ".", "alias"];

/// What was found in the workflows.
#[derive(Debug, Default)]
pub(super) struct Workflows {
    /// Setup commands and checks.
    pub found: Toolchain,
    /// Commands that install something on the machine.
    pub machine: Vec<Found<String>>,
    /// Versions of the languages, by the action that installs them.
    pub versions: BTreeMap<String, String>,
    /// Commands that look like checks but cannot be used, with the reason.
    pub left_out: Vec<Found<String>>,
    /// Workflows that were read.
    pub read: Vec<String>,
}

/// Reads the workflows of the project that run for a change.
pub(super) fn workflows(files: &Listing) -> Workflows {
    let mut all = Workflows::default();
    let names = files.workflows();
    let (mut first, rest): (Vec<&str>, Vec<&str>) = names.partition(|path| {
        ["ci", "test", "check", "build", "main"]
            .iter()
            .any(|word| file_name(path).contains(word))
    });
    first.extend(rest);
    for path in first {
        if OTHER_BUSINESS
            .iter()
            .any(|word| file_name(path).contains(word))
        {
            continue;
        }
        let Ok(Some(root)) = yaml::parse(files.read(path)) else {
            continue;
        };
        if !runs_for_a_change(&root) {
            continue;
        }
        all.read.push(path.to_owned());
        for job in root.get("jobs").map(Node::entries).unwrap_or_default() {
            all.job(path, &root, &job.key, &job.value);
        }
    }
    all
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn runs_for_a_change(root: &Node) -> bool {
    let Some(on) = root.get("on") else {
        return false;
    };
    let counts = |event: &str| {
        matches!(
            event,
            "push" | "pull_request" | "merge_group" | "workflow_call"
        )
    };
    let only_tags = |node: &Node| node.get("tags").is_some() && node.get("branches").is_none();
    let in_list = on.items().iter().filter_map(Node::text).any(counts);
    let in_map = on
        .entries()
        .iter()
        .any(|entry| counts(&entry.key) && !only_tags(&entry.value));
    on.text().is_some_and(counts) || in_list || in_map
}

impl Workflows {
    fn job(&mut self, path: &str, root: &Node, name: &str, job: &Node) {
        let runner = job.get("runs-on").and_then(Node::text).unwrap_or("");
        if runner.starts_with("windows") || runner.starts_with("macos") {
            return;
        }
        let services = job.get("services").map(Node::entries).unwrap_or_default();
        if let Some(service) = services.first() {
            let what = format!("job {name}");
            self.leave_out(
                path,
                job,
                &what,
                &format!("it needs the service {}", service.key),
            );
            return;
        }
        let defaults = [Some(root), Some(job)];
        let directory = defaults.iter().flatten().rev().find_map(|node| {
            node.get("defaults")?
                .get("run")?
                .get("working-directory")?
                .text()
        });
        let matrix = job
            .get("strategy")
            .and_then(|strategy| strategy.get("matrix"));
        for step in job.get("steps").map(Node::items).unwrap_or_default() {
            self.version(step, matrix);
            if let Some(script) = step.get("run").and_then(Node::text) {
                let directory = step
                    .get("working-directory")
                    .and_then(Node::text)
                    .or(directory);
                self.step(path, step, script, directory);
            }
        }
    }

    /// Records the version of a language that a step installs: the literal one, or the highest in the job's
    /// matrix.
    fn version(&mut self, step: &Node, matrix: Option<&Node>) {
        let Some(uses) = step.get("uses").and_then(Node::text) else {
            return;
        };
        let action = uses.split('@').next().unwrap_or(uses);
        let Some(language) = action.strip_prefix("actions/setup-") else {
            return;
        };
        let key = format!("{language}-version");
        let Some(version) = step
            .get("with")
            .and_then(|with| with.get(&key))
            .and_then(Node::text)
        else {
            return;
        };
        let version = match version.split_once("matrix.") {
            None => Some(version.to_owned()),
            Some((_, name)) => {
                let name = name.trim_end_matches('}').trim();
                let values = matrix.and_then(|matrix| matrix.get(name)).map(Node::items);
                let values = values.unwrap_or_default().iter().filter_map(Node::text);
                let stable = values.filter(|value| numbers(value).is_some());
                stable.max_by_key(|value| numbers(value)).map(str::to_owned)
            }
        };
        let plain = version.filter(|version| !version.contains("${{") && !version.contains('\n'));
        if let Some(version) = plain {
            let known = self
                .versions
                .entry(language.to_owned())
                .or_insert_with(|| version.clone());
            if numbers(known) < numbers(&version) {
                *known = version;
            }
        }
    }

    fn step(&mut self, path: &str, step: &Node, script: &str, directory: Option<&str>) {
        let shell = step.get("shell").and_then(Node::text).unwrap_or("bash");
        let variables: Vec<(&str, &str)> = step
            .get("env")
            .map(Node::entries)
            .unwrap_or_default()
            .iter()
            .filter_map(|entry| Some((entry.key.as_str(), entry.value.text()?)))
            .collect();
        for command in commands(script) {
            let Some(what) = purpose_of(&command) else {
                continue;
            };
            let because = if step.get("if").is_some() {
                Some("it runs on a condition")
            } else if step.get("continue-on-error").is_some() || command.ends_with("|| true") {
                Some("it may fail")
            } else if !matches!(shell, "bash" | "sh") {
                Some("it is not an sh or bash script")
            } else if [command.as_str(), directory.unwrap_or_default()]
                .iter()
                .any(|text| text.contains("${{"))
                || variables.iter().any(|(_, value)| value.contains("${{"))
            {
                Some("it depends on an expression of the workflow")
            } else if command.contains("GITHUB_") || command.contains("RUNNER_") {
                Some("it speaks to the runner")
            } else if command.contains('\n') {
                Some("it is a script of several lines; put it into a file and name that")
            } else {
                None
            };
            match because {
                Some(because) => self.leave_out(path, step, &command, because),
                None => {
                    let run = from_root(&command, directory, &variables);
                    self.take(path, step, what, &command, run);
                }
            }
        }
    }

    /// Records a command of a step. `run` is the command with its directory and its variables.
    fn take(&mut self, path: &str, step: &Node, what: Purpose, command: &str, run: String) {
        let from = place(path, step);
        let list = match what {
            Purpose::Check(kind) => return self.check(path, step, kind, command, run),
            Purpose::Setup => &mut self.found.setup,
            Purpose::Machine => &mut self.machine,
        };
        if list.iter().all(|known| known.what != run) {
            list.push(Found { what: run, from });
        }
    }

    fn check(&mut self, path: &str, step: &Node, kind: CheckKind, command: &str, run: String) {
        let known = &self.found.commands;
        if known.iter().any(|it| it.run == run) {
            return;
        }
        if known.iter().filter(|it| it.kind == kind).count() >= MAX_OF_A_KIND {
            let because = format!("{MAX_OF_A_KIND} of a kind are enough to begin with");
            self.leave_out(path, step, &run, &because);
            return;
        }
        let of_kind = |it: &&Command| it.kind == kind;
        if let Some(plain) = known
            .iter()
            .filter(of_kind)
            .find(|it| measures(&run, &it.run))
        {
            let because = format!("it is `{}` with a measure of coverage", plain.run);
            self.leave_out(path, step, &run, &because);
            return;
        }
        let measuring = |it: &Command| it.kind == kind && measures(&it.run, &run);
        if let Some(at) = known.iter().position(measuring) {
            let from = place(path, step);
            let because = format!("it is `{run}` with a measure of coverage");
            let found = &mut self.found.commands[at];
            let with = std::mem::replace(&mut found.run, run);
            let what = format!("{with}: {because}");
            let from = std::mem::replace(&mut found.from, from);
            self.left_out.push(Found { what, from });
            return;
        }
        let last = command.rsplit(" && ").next().unwrap_or(command);
        let tool = last.split_whitespace().find(|word| !word.contains('='));
        let tool = tool.unwrap_or("ci").rsplit('/').next().unwrap_or("ci");
        let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
        self.found.commands.push(Command {
            tool: tool.chars().filter(is_word).collect(),
            kind,
            run,
            from: place(path, step),
        });
    }

    fn leave_out(&mut self, path: &str, at: &Node, command: &str, because: &str) {
        let first = command.lines().next().unwrap_or_default();
        let what = match command.lines().count() {
            0 | 1 => format!("{first}: {because}"),
            _ => format!("{first} …: {because}"),
        };
        let found = Found {
            what,
            from: place(path, at),
        };
        if self.left_out.iter().all(|known| known.what != found.what) {
            self.left_out.push(found);
        }
    }
}

/// Whether a command is another one with options for coverage, which may need more dependencies and do not
/// show whether the work is correct.
fn measures(command: &str, plain: &str) -> bool {
    let more = command.strip_prefix(plain);
    let more = more.and_then(|more| more.strip_prefix(' '));
    more.is_some_and(|more| more.starts_with("--cov") || more.starts_with("-cover"))
}

fn place(path: &str, node: &Node) -> String {
    format!("{path}:{}", node.at.line)
}

fn numbers(version: &str) -> Option<Vec<u32>> {
    let parts = version
        .trim_start_matches('v')
        .trim_end_matches(".x")
        .split('.');
    parts.map(|part| part.parse().ok()).collect()
}

/// The purpose of a command or a script: a check if any of its lines is one, otherwise that of its first
/// known line.
fn purpose_of(command: &str) -> Option<Purpose> {
    let parts = command.split('\n').flat_map(|line| line.split(" && "));
    let found: Vec<Purpose> = parts.filter_map(|part| purpose(part.trim())).collect();
    let check = found.iter().find(|what| matches!(what, Purpose::Check(_)));
    check.or(found.first()).copied()
}

/// The commands of a script, one per line. A script that only works as a whole is one command: if it has `cd`
/// or `export`, its lines are joined, and a compound command is left unchanged.
fn commands(script: &str) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().map(str::trim);
    let lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#') && !line.starts_with("set -"))
        .collect();
    let first = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let is_compound = |line: &&str| {
        COMPOUND.contains(&first(line).trim_end_matches(';'))
            || line.contains("<<")
            || line.contains("() {")
    };
    if lines.iter().any(is_compound) {
        return vec![lines.join("\n")];
    }
    if lines
        .iter()
        .any(|line| CARRIES_ON.contains(&first(line).as_str()))
    {
        return vec![lines.join(" && ")];
    }
    let apart = lines.iter().flat_map(|line| line.split(" && "));
    apart
        .map(|command| command.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect()
}

/// The command in the form in which `sh` runs it in the root of the project.
fn from_root(command: &str, directory: Option<&str>, variables: &[(&str, &str)]) -> String {
    let quoted = |text: &str| shlex::try_quote(text).map_or_else(|_| text.to_owned(), Into::into);
    let needs_bash = ["[[", "<(", "pipefail"]
        .iter()
        .any(|sign| command.contains(sign))
        || command
            .split_whitespace()
            .any(|word| matches!(word, "source" | "pushd"));
    let mut text = match needs_bash {
        true => format!("bash -ec {}", quoted(command)),
        false => command.to_owned(),
    };
    let (export, then) = match command.contains(" && ") && !needs_bash {
        true => ("export ", " &&"),
        false => ("", ""),
    };
    for (name, value) in variables.iter().rev() {
        text = format!("{export}{name}={}{then} {text}", quoted(value));
    }
    match directory.filter(|directory| !matches!(*directory, "." | "./")) {
        Some(directory) => format!("cd {} && {text}", quoted(directory)),
        None => text,
    }
}
