//! Reads the project's own CI: the `run:` steps of its workflows, as setup commands and checks.

use super::command::{Purpose, plain_test};
use super::condition::Change;
use super::machine::{Version, setup_action};
use super::matrix::{Row, is_other_system, numbers};
use super::script::{commands, from_root, measures, purpose_of, succeeds_anyway};
use super::{Command, Found, Listing, Toolchain};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::yaml::{self, Node};
use std::collections::BTreeMap;

/// Words in the names of workflows and jobs that do not check a change, or check it on a machine of their own.
const OTHER_BUSINESS: &[&str] = &[
    "bench",
    "codeql",
    "dependabot",
    "deploy",
    "docs",
    "fuzz",
    "label",
    "minimal",
    "miri",
    "msrv",
    "nightly",
    "pages",
    "publish",
    "release",
    "sanitiz",
    "scorecard",
    "sprag",
    "stale",
    "valgrind",
];

/// Why a step is not proposed whose failure its job ignores.
pub(super) const MAY_FAIL: &str = "it may fail";

/// Maximum number of checks of one kind.
const MAX_OF_A_KIND: usize = 3;

/// What was found in the workflows.
#[derive(Debug, Default)]
pub(super) struct Workflows {
    /// Setup commands and checks.
    pub found: Toolchain,
    /// Commands that install something on the machine.
    pub machine: Vec<Found<String>>,
    /// Steps that install a language or a tool with an action, as lines of YAML.
    pub actions: Vec<Found<String>>,
    /// Versions of the languages, by the action that installs them.
    pub versions: BTreeMap<String, Version>,
    /// Commands that look like checks but cannot be used, with the reason.
    pub left_out: Vec<Found<String>>,
    /// Workflows that were read.
    pub read: Vec<String>,
    /// The tests and builds that were accepted, to recognise the same ones in another job.
    accepted: Vec<Accepted>,
}

/// The tool of an accepted test or build, and where it was found.
#[derive(Debug)]
struct Accepted {
    tool: String,
    kind: CheckKind,
    directory: String,
    job: String,
}

/// A job, as far as its steps depend on it.
struct Job<'a> {
    path: &'a str,
    name: &'a str,
    row: Row,
    /// The variables of the workflow and the job.
    variables: Vec<(&'a str, &'a str)>,
    directory: Option<&'a str>,
    may_fail: bool,
    /// Whether it depends on an unknown condition that its steps run at all.
    on_condition: bool,
}

impl<'a> Job<'a> {
    fn of((path, root): (&'a str, &'a Node), name: &'a str, node: &'a Node, row: Row) -> Self {
        let levels = [root, node];
        Self {
            path,
            name,
            row,
            variables: levels.iter().flat_map(|node| variables(node)).collect(),
            directory: levels.iter().rev().find_map(|node| {
                let run = node.get("defaults")?.get("run")?;
                run.get("working-directory")?.text()
            }),
            may_fail: is_true(node.get("continue-on-error")),
            on_condition: false,
        }
    }

    /// Whether a step runs, or `None` if that depends on an unknown condition.
    fn runs(&self, step: &Node) -> Option<bool> {
        let condition = step.get("if").and_then(Node::text);
        match condition.map_or(Some(true), |condition| self.row.holds(condition)) {
            Some(true) if self.on_condition => None,
            known => known,
        }
    }
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
            all.job(files, (path, &root), &job.key, &job.value);
        }
    }
    all
}

/// The composite action of the repository that a step uses, with the path of its file.
fn local_action(files: &Listing, step: &Node) -> Option<(String, Node)> {
    let uses = step.get("uses").and_then(Node::text)?;
    let directory = uses.strip_prefix("./")?.trim_end_matches('/');
    ["action.yml", "action.yaml"].into_iter().find_map(|name| {
        let path = format!("{directory}/{name}");
        let action = yaml::parse(files.read(&path)).ok().flatten()?;
        Some((path, action))
    })
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
    /// Reads a job. What it installs counts only if one of its checks does.
    fn job(&mut self, files: &Listing, (path, root): (&str, &Node), name: &str, node: &Node) {
        let lower = name.to_ascii_lowercase();
        if OTHER_BUSINESS.iter().any(|word| lower.contains(*word)) {
            return;
        }
        let row = Row::of(node);
        let runs_on = node.get("runs-on");
        let runner = runs_on.and_then(Node::text).unwrap_or("");
        let runner = row.fill(runner).unwrap_or_default();
        if is_other_system(&runner) {
            return;
        }
        let condition = node.get("if").and_then(Node::text);
        let change = root.get("on").map(Change::of);
        let is_for_change = !condition
            .zip(change)
            .is_some_and(|(condition, change)| change.is_excluded(condition, &row));
        if !is_for_change && !has_check(node) {
            return;
        }
        let because = special_machine(node, &runner)
            .or((!is_for_change)
                .then(|| "it does not run for a change before its merge".to_owned()));
        if let Some(because) = because {
            return self.leave_out(path, node, &format!("job {name}"), &because);
        }
        let job = Job::of((path, root), name, node, row);
        let before = self.found.commands.len();
        let (setup, machine) = (self.found.setup.len(), self.machine.len());
        let actions = self.actions.len();
        let versions = self.versions.clone();
        for step in node.get("steps").map(Node::items).unwrap_or_default() {
            match local_action(files, step) {
                Some((path, action)) => self.composite(&job, step, (&path, &action)),
                None => self.any_step(&job, step),
            }
        }
        if self.found.commands.len() == before {
            self.versions = versions;
            self.found.setup.truncate(setup);
            self.machine.truncate(machine);
            self.actions.truncate(actions);
        }
    }

    /// Reads the steps of a composite action of the repository. They have the variables of the job, but not
    /// its directory.
    fn composite(&mut self, job: &Job<'_>, step: &Node, (path, action): (&str, &Node)) {
        let runs = job.runs(step);
        if runs == Some(false) {
            return;
        }
        let inner = Job {
            path,
            name: job.name,
            row: job.row.of_action(step, action),
            variables: job.variables.clone(),
            directory: None,
            may_fail: job.may_fail || is_true(step.get("continue-on-error")),
            on_condition: runs.is_none(),
        };
        let steps = action.get("runs").and_then(|runs| runs.get("steps"));
        for step in steps.map(Node::items).unwrap_or_default() {
            self.any_step(&inner, step);
        }
    }

    fn any_step(&mut self, job: &Job<'_>, step: &Node) {
        self.action(job, step);
        if let Some(script) = step.get("run").and_then(Node::text) {
            self.step(job, step, script);
        }
    }

    /// Records what a step installs with an action: the version of a language, the literal one or the highest
    /// in the job's matrix, or the whole step if the action is a known one.
    fn action(&mut self, job: &Job<'_>, step: &Node) {
        let Some(uses) = step.get("uses").and_then(Node::text) else {
            return;
        };
        let inputs = step.get("with").map(Node::entries).unwrap_or_default();
        let inputs: Vec<(&str, Option<String>)> = inputs
            .iter()
            .filter_map(|entry| Some((entry.key.as_str(), job.row.fill(entry.value.text()?))))
            .collect();
        if let Some(what) = setup_action(uses, &inputs) {
            let known = self.actions.iter().any(|known| known.what == what);
            if !known {
                let from = place(job.path, step);
                self.actions.push(Found { what, from });
            }
            return;
        }
        let action = uses.split('@').next().unwrap_or(uses);
        let Some(language) = action.strip_prefix("actions/setup-") else {
            return;
        };
        let input = |name: &str| {
            let name = format!("{language}-{name}");
            let given = inputs.iter().find(|(input, _)| *input == name);
            let value = given.and_then(|(_, value)| value.clone());
            value.filter(|value| !value.is_empty() && !value.contains('\n'))
        };
        let known = self.versions.entry(language.to_owned()).or_default();
        known.file = known.file.take().or_else(|| input("version-file"));
        let number = input("version");
        let of = |number: &Option<String>| number.as_deref().and_then(numbers);
        if known.number.is_none() || of(&known.number) < of(&number) {
            known.number = number;
        }
    }

    fn step(&mut self, job: &Job<'_>, step: &Node, script: &str) {
        let shell = step.get("shell").and_then(Node::text).unwrap_or("bash");
        let directory = step.get("working-directory").and_then(Node::text);
        let directory = directory.or(job.directory);
        let may_fail = job.may_fail || is_true(step.get("continue-on-error"));
        let runs = job.runs(step);
        if runs == Some(false) {
            return;
        }
        for command in commands(script) {
            let Some(what) = purpose_of(&command) else {
                continue;
            };
            let own = variables(step);
            let inherited = job.variables.iter().copied().filter(|(name, _)| {
                let used = [format!("${name}"), format!("${{{name}}}")];
                used.iter().any(|used| command.contains(used.as_str()))
                    && own.iter().all(|(other, _)| other != name)
            });
            // A workflow for pull requests of forks works without secrets.
            let given = own
                .iter()
                .copied()
                .filter(|(_, value)| !value.contains("secrets."));
            let variables: Option<Vec<(&str, String)>> = inherited
                .chain(given)
                .map(|(name, value)| Some((name, job.row.fill(value)?)))
                .collect();
            let filled = job.row.fill(&command);
            let directory = directory.map(|directory| job.row.fill(directory));
            let because = if runs.is_none() {
                "it runs on a condition"
            } else if may_fail || succeeds_anyway(&command) {
                MAY_FAIL
            } else if !matches!(shell, "bash" | "sh") {
                "it is not an sh or bash script"
            } else if command.contains("GITHUB_") || command.contains("RUNNER_") {
                "it speaks to the runner"
            } else if command.contains('\n') {
                "it is a script of several lines; put it into a file and name that"
            } else if let (Some(command), Some(variables), false) =
                (filled, variables, directory == Some(None))
            {
                self.take(job, step, what, &command, directory.flatten(), &variables);
                continue;
            } else {
                "it depends on an expression of the workflow"
            };
            self.leave_out(job.path, step, &command, because);
        }
    }

    /// Records a command of a step, to run with its directory and its variables.
    fn take(
        &mut self,
        job: &Job<'_>,
        step: &Node,
        what: Purpose,
        command: &str,
        directory: Option<String>,
        variables: &[(&str, String)],
    ) {
        let from = place(job.path, step);
        let directory = directory.unwrap_or_default();
        let list = match what {
            Purpose::Check(kind) => {
                let plain = plain_test(command).filter(|_| kind == CheckKind::Test);
                let command = plain.unwrap_or_else(|| command.to_owned());
                let run = from_root(&command, &directory, variables);
                return self.add_check(job, step, kind, &command, run, directory);
            }
            Purpose::Setup => &mut self.found.setup,
            Purpose::Machine => &mut self.machine,
        };
        let what = from_root(command, &directory, variables);
        if list.iter().all(|known| known.what != what) {
            list.push(Found { what, from });
        }
    }

    fn add_check(
        &mut self,
        job: &Job<'_>,
        step: &Node,
        kind: CheckKind,
        command: &str,
        run: String,
        directory: String,
    ) {
        if self.found.commands.iter().any(|it| it.run == run) {
            return;
        }
        let tool = tool_of(command);
        let check = Accepted {
            tool: tool.clone(),
            kind,
            directory,
            job: job.name.to_owned(),
        };
        if let Some(because) = self.reason_against(&check, &run) {
            return self.leave_out(job.path, step, &run, &because);
        }
        let from = place(job.path, step);
        let measuring = |it: &Command| it.kind == kind && measures(&it.run, &run);
        if let Some(at) = self.found.commands.iter().position(measuring) {
            let because = format!("it is `{run}` with a measure of coverage");
            let found = &mut self.found.commands[at];
            let with = std::mem::replace(&mut found.run, run);
            let what = format!("{with}: {because}");
            let from = std::mem::replace(&mut found.from, from);
            self.left_out.push(Found { what, from });
            return;
        }
        if matches!(kind, CheckKind::Build | CheckKind::Test) {
            self.accepted.push(check);
        }
        self.found.commands.push(Command {
            tool,
            kind,
            run,
            from,
        });
    }

    /// Why a check is not proposed beside the accepted ones.
    fn reason_against(&self, check: &Accepted, run: &str) -> Option<String> {
        let Accepted { tool, kind, .. } = check;
        let elsewhere = self.accepted.iter().find(|it| {
            (&it.tool, &it.kind, &it.directory) == (tool, kind, &check.directory)
                && it.job != check.job
        });
        if let Some(other) = elsewhere {
            let kind = kind.as_str();
            return Some(format!("the job {} has a {kind} with {tool}", other.job));
        }
        let mut known = self.found.commands.iter().filter(|it| it.kind == *kind);
        if known.clone().count() >= MAX_OF_A_KIND {
            return Some(format!(
                "{MAX_OF_A_KIND} of a kind are enough to begin with"
            ));
        }
        let plain = known.find(|it| measures(run, &it.run))?;
        Some(format!("it is `{}` with a measure of coverage", plain.run))
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

/// The program of a command, without its directory.
fn tool_of(command: &str) -> String {
    let last = command.rsplit(" && ").next().unwrap_or(command);
    let tool = last
        .split_whitespace()
        .find(|word| !word.contains('='))
        .unwrap_or("ci")
        .rsplit('/')
        .next()
        .unwrap_or("ci");
    let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    tool.chars().filter(is_word).collect()
}

fn place(path: &str, node: &Node) -> String {
    format!("{path}:{}", node.at.line)
}

/// Why no ordinary runner can do the job, if that is so: it needs a service, a container or its own runner.
fn special_machine(job: &Node, runner: &str) -> Option<String> {
    let mut labels = job
        .get("runs-on")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .filter_map(Node::text);
    let own_runner = runner == "self-hosted" || labels.any(|label| label == "self-hosted");
    let container = job.get("container").map(|container| {
        let image = container.get("image").unwrap_or(container);
        format!("it runs in the container {}", image.text().unwrap_or(""))
    });
    let services = job.get("services").map(Node::entries).unwrap_or_default();
    let service = services.first();
    service
        .map(|service| format!("it needs the service {}", service.key))
        .or(container)
        .or(own_runner.then(|| "it needs the project's own runner".to_owned()))
}

/// The variables that a workflow, a job or a step sets.
fn variables(node: &Node) -> Vec<(&str, &str)> {
    let entries = node.get("env").map(Node::entries).unwrap_or_default();
    let named = entries
        .iter()
        .filter_map(|entry| Some((entry.key.as_str(), entry.value.text()?)));
    named.collect()
}

fn is_true(node: Option<&Node>) -> bool {
    // An expression there usually spares the experimental rows of a matrix.
    node.and_then(Node::text) == Some("true")
}

/// Whether a step of the job is a check.
fn has_check(job: &Node) -> bool {
    let steps = job.get("steps").map(Node::items).unwrap_or_default();
    let scripts = steps.iter().filter_map(|step| step.get("run")?.text());
    let mut commands = scripts.flat_map(commands);
    commands.any(|command| matches!(purpose_of(&command), Some(Purpose::Check(_))))
}
