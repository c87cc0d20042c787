//! Reads the project's own CI: the `run:` steps of its workflows, as setup commands and checks.

use super::command::{Purpose, needs_another_toolchain, selects_a_part};
use super::jobs::{has_check, rank, reason_against_job, runs_for_a_change};
use super::machine::{Version, setup_action};
use super::matrix::{Row, is_other_system, numbers};
use super::python::{OUTSIDE, VENV, in_venv, of_one_environment};
use super::script::{
    MAY_FAIL, Piece, from_root, joined, measures, pieces, unknown_variable, uses_variable,
};
use super::{Command, Found, Listing, Toolchain};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::command_line::{CommandLine, Simple};
use crate::domain::text::{file_name, has_word};
use crate::domain::yaml::{self, Node};
use std::collections::BTreeMap;

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
    /// The checks, which become those of [`Workflows::found`].
    checks: Vec<Taken>,
    /// How many checks were taken, also those that a later job has replaced.
    taken: usize,
}

/// A check, and where it was found.
#[derive(Debug)]
struct Taken {
    command: Command,
    directory: String,
    job: String,
}

impl Taken {
    /// Whether another job runs the tests or the build of the same tool in the same directory.
    fn is_of_another_job(&self, other: &Self) -> bool {
        let (own, others) = (&self.command, &other.command);
        own.kind != CheckKind::Lint
            && (&own.tool, own.kind, &self.directory)
                == (&others.tool, others.kind, &other.directory)
            && self.job != other.job
    }

    /// Why a check is not needed beside one that does all of it.
    fn covered_by(&self, other: &Self) -> Option<String> {
        let (own, others) = (&self.command, &other.command);
        if own.kind == others.kind && measures(&own.run, &others.run) {
            return Some(format!("it is `{}` with a measure of coverage", others.run));
        }
        let is_part = selects_a_part(&own.run) && !selects_a_part(&others.run);
        (self.is_of_another_job(other) && is_part)
            .then(|| format!("the job {} runs all of it", other.job))
    }

    fn left_out(self, because: &str) -> Found<String> {
        Found {
            what: format!("{}: {because}", self.command.run),
            from: self.command.from,
        }
    }
}

/// A job, as far as its steps depend on it.
struct Job<'a> {
    files: &'a Listing,
    path: &'a str,
    name: &'a str,
    row: Row,
    /// The variables of the workflow and the job.
    variables: Vec<(String, String)>,
    directory: Option<&'a str>,
    may_fail: bool,
    /// Whether it depends on an unknown condition that its steps run at all.
    on_condition: bool,
}

/// What the steps of a job have done for those after them.
#[derive(Debug, Default)]
struct Progress {
    /// Whether pip has installed something that belongs into an environment of the project.
    has_venv: bool,
    /// The command that started containers.
    containers: Option<String>,
}

impl<'a> Job<'a> {
    fn of(
        files: &'a Listing,
        path: &'a str,
        root: &'a Node,
        name: &'a str,
        node: &'a Node,
    ) -> Self {
        let levels = [root, node];
        let variables: Vec<(String, String)> =
            levels.iter().flat_map(|node| variables(node)).collect();
        let mut row = Row::of(node);
        row.add_variables(&variables);
        Self {
            files,
            path,
            name,
            row,
            variables,
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

/// Reads the workflows of the project that run for a change, whatever their files are called.
pub(super) fn workflows(files: &Listing) -> Workflows {
    let mut all = Workflows::default();
    let mut paths: Vec<&str> = files.workflows().collect();
    paths.sort_by_key(|path| rank(file_name(path)));
    for path in paths {
        let Ok(Some(root)) = yaml::parse(files.read(path)) else {
            continue;
        };
        if !runs_for_a_change(&root) {
            continue;
        }
        all.read.push(path.to_owned());
        for job in root.get("jobs").map(Node::entries).unwrap_or_default() {
            all.job(files, path, &root, &job.key, &job.value);
        }
    }
    let checks = std::mem::take(&mut all.checks).into_iter();
    all.found.commands = checks.map(|check| check.command).collect();
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

impl Workflows {
    /// Reads a job. What it installs counts only if one of its checks does.
    fn job(&mut self, files: &Listing, path: &str, root: &Node, name: &str, node: &Node) {
        let job = Job::of(files, path, root, name, node);
        let runs_on = node.get("runs-on").and_then(Node::text);
        let runner = runs_on
            .and_then(|runner| job.row.fill(runner))
            .unwrap_or_default();
        if is_other_system(&runner) {
            return;
        }
        if let Some(because) = reason_against_job(name, node, &runner) {
            if has_check(node) {
                self.leave_out(path, node, &format!("job {name}"), &because);
            }
            return;
        }
        let before = self.taken;
        let (setup, machine) = (self.found.setup.len(), self.machine.len());
        let actions = self.actions.len();
        let versions = self.versions.clone();
        let mut progress = Progress::default();
        for step in node.get("steps").map(Node::items).unwrap_or_default() {
            match local_action(files, step) {
                Some((path, action)) => self.composite(&job, step, &path, &action, &mut progress),
                None => self.any_step(&job, step, &mut progress),
            }
        }
        if self.taken == before {
            self.versions = versions;
            self.found.setup.truncate(setup);
            self.machine.truncate(machine);
            self.actions.truncate(actions);
        } else {
            self.name_other_rows(&job, node, files.read(path));
        }
    }

    /// Names the rows of the matrix that the proposed checks leave out, such as other packages.
    fn name_other_rows(&mut self, job: &Job<'_>, node: &Node, text: &str) {
        let used = job
            .row
            .others
            .iter()
            .filter(|(name, _)| text.contains(name.as_str()));
        for (name, others) in used {
            let last = self.checks.last();
            let run = last.map_or_else(String::new, |check| check.command.run.clone());
            let because = format!("only one row of {name} is taken");
            self.leave_out(
                job.path,
                node,
                &format!("`{run}` with {}", others.join(", ")),
                &because,
            );
        }
    }

    /// Reads the steps of a composite action of the repository. They have the variables of the job, but not
    /// its directory.
    fn composite(
        &mut self,
        job: &Job<'_>,
        step: &Node,
        path: &str,
        action: &Node,
        progress: &mut Progress,
    ) {
        let runs = job.runs(step);
        if runs == Some(false) {
            return;
        }
        let inner = Job {
            files: job.files,
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
            self.any_step(&inner, step, progress);
        }
    }

    fn any_step(&mut self, job: &Job<'_>, step: &Node, progress: &mut Progress) {
        self.action(job, step);
        if let Some(script) = step.get("run").and_then(Node::text)
            && job.runs(step) != Some(false)
        {
            self.step(job, step, script, progress);
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

    fn step(&mut self, job: &Job<'_>, step: &Node, script: &str, progress: &mut Progress) {
        let directory = step
            .get("working-directory")
            .and_then(Node::text)
            .or(job.directory);
        let directory = job.row.fill(directory.unwrap_or_default());
        let script = job.row.fill(script).unwrap_or_else(|| script.to_owned());
        for piece in pieces(&script) {
            let directory = directory
                .as_deref()
                .and_then(|step| joined(step, &piece.directory));
            let because = match (
                reason_against_piece(job, step, &piece, progress),
                &directory,
            ) {
                (None, None) => Some("the directory in which it runs is not known".to_owned()),
                (None, Some(directory)) if !self.has_directory(job.files, directory) => {
                    Some(format!("the repository has no directory {directory}"))
                }
                (because, _) => because,
            };
            if piece.purpose == Purpose::Containers {
                progress.containers.get_or_insert(piece.text.clone());
            }
            if let Some(because) = because {
                self.leave_out(job.path, step, &piece.text, &because);
                continue;
            }
            let mut variables = self.variables_of(job, step, &piece);
            variables.extend(piece.variables.iter().cloned());
            variables.retain(|(name, _)| !has_word(OUTSIDE, name));
            let is_run = matches!(piece.purpose, Purpose::Setup | Purpose::Check(_));
            if let Some(name) = unknown_variable(&piece.text, &variables).filter(|_| is_run) {
                let because = format!("it needs the variable {name}, which is not known here");
                self.leave_out(job.path, step, &piece.text, &because);
                continue;
            }
            self.take(
                job,
                step,
                &piece,
                &directory.unwrap_or_default(),
                &variables,
                progress,
            );
        }
    }

    /// Whether a directory is in the repository, or a command that is proposed names it.
    fn has_directory(&self, files: &Listing, directory: &str) -> bool {
        let first = directory.split('/').next().unwrap_or_default();
        let names = |command: &str| command.split([' ', '=', '/']).any(|word| word == first);
        first.is_empty()
            || files.has(first)
            || files.below(&format!("{first}/")).next().is_some()
            || self.checks.iter().any(|known| names(&known.command.run))
            || self.found.setup.iter().any(|known| names(&known.what))
    }

    /// The variables of the workflow, the job and the step. Those whose value is not known are named as left out.
    fn variables_of(&mut self, job: &Job<'_>, step: &Node, piece: &Piece) -> Vec<(String, String)> {
        let own = variables(step);
        let inherited = job
            .variables
            .iter()
            .filter(|(name, _)| own.iter().all(|(other, _)| other != name));
        let all: Vec<(String, String)> = inherited.chain(&own).cloned().collect();
        let mut known = Vec::new();
        for (name, value) in all {
            // Colours and traces change no result, and a workflow for pull requests of forks works without secrets.
            let is_shown = name.contains("COLOR") || name.contains("BACKTRACE");
            let is_secret = value.contains("secrets.") || value.contains("github.token");
            let is_needed = matches!(piece.purpose, Purpose::Setup | Purpose::Check(_));
            if is_secret || (!uses_variable(&piece.text, &name) && (is_shown || !is_needed)) {
                continue;
            }
            match job
                .row
                .fill(&value)
                .filter(|value| !value.contains("GITHUB_"))
            {
                // An expression without a value sets nothing that a program may mistake for a choice.
                Some(empty) if empty.is_empty() && !value.is_empty() => {}
                Some(value) => known.push((name, value)),
                None => self.leave_out(job.path, step, &format!("the variable {name}"), EXPRESSION),
            }
        }
        known
    }

    /// Records a command of a step, to run with its directory and its variables.
    fn take(
        &mut self,
        job: &Job<'_>,
        step: &Node,
        piece: &Piece,
        directory: &str,
        variables: &[(String, String)],
        progress: &mut Progress,
    ) {
        let from = place(job.path, step);
        let root = if directory.is_empty() {
            "$PWD"
        } else {
            "$OLDPWD"
        };
        let text = piece
            .text
            .replace("${GITHUB_WORKSPACE}", root)
            .replace("$GITHUB_WORKSPACE", root);
        let text = of_one_environment(&text);
        // An environment of its own is there already.
        let has_other =
            piece.sourced.iter().any(|line| line.contains("activate")) || text.contains("/pip ");
        let is_pip = piece.purpose == Purpose::Setup && text.contains("pip install");
        if is_pip && !has_other && !progress.has_venv {
            progress.has_venv = true;
            self.add_setup(VENV.to_owned(), from.clone());
        }
        let complete = |command: &str| {
            let run = from_root(command, directory, variables);
            let run = if progress.has_venv && !has_other {
                in_venv(
                    &run.replace(" --system", "")
                        .replace("UV_SYSTEM_PYTHON=1 ", ""),
                )
            } else {
                run
            };
            let sourced = piece.sourced.iter().rev();
            sourced.fold(run, |run, line| format!("{line} && {run}"))
        };
        match piece.purpose {
            Purpose::Check(kind) => {
                let command = Command {
                    tool: tool_of(&text),
                    kind,
                    run: complete(&text),
                    from,
                };
                self.add_check(Taken {
                    command,
                    directory: directory.to_owned(),
                    job: job.name.to_owned(),
                });
            }
            Purpose::Setup => self.add_setup(complete(&text), from),
            Purpose::Machine if self.machine.iter().any(|known| known.what == text) => {}
            Purpose::Machine => {
                let what = from_root(&text, directory, variables);
                self.machine.push(Found { what, from });
            }
            Purpose::Containers => {}
        }
    }

    fn add_setup(&mut self, what: String, from: String) {
        if self.found.setup.iter().all(|known| known.what != what) {
            self.found.setup.push(Found { what, from });
        }
    }

    /// Takes a check, unless another one covers it. One job is enough for the tests and for the builds of one tool in
    /// one directory.
    fn add_check(&mut self, new: Taken) {
        let run = &new.command.run;
        if self.checks.iter().any(|known| known.command.run == *run) {
            return;
        }
        for known in std::mem::take(&mut self.checks) {
            match known.covered_by(&new) {
                Some(because) => self.left_out.push(known.left_out(&because)),
                None => self.checks.push(known),
            }
        }
        let kind = new.command.kind;
        let of_kind = self
            .checks
            .iter()
            .filter(|known| known.command.kind == kind);
        let is_enough = of_kind.count() >= MAX_OF_A_KIND;
        let covered = self.checks.iter().find_map(|known| {
            let (tool, kind) = (&new.command.tool, kind.as_str());
            let other = || format!("the job {} has a {kind} with {tool}", known.job);
            new.covered_by(known)
                .or_else(|| new.is_of_another_job(known).then(other))
        });
        let because = covered.or_else(|| {
            is_enough.then(|| format!("{MAX_OF_A_KIND} of a kind are enough to begin with"))
        });
        match because {
            Some(because) => self.left_out.push(new.left_out(&because)),
            None => {
                self.taken += 1;
                self.checks.push(new);
            }
        }
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
    let line = CommandLine::read(command);
    let last = line.commands().last().and_then(Simple::started);
    let tool = last.map_or("ci", |program| {
        program.word.rsplit('/').next().unwrap_or("ci")
    });
    let is_word = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    tool.chars().filter(is_word).collect()
}

fn place(path: &str, node: &Node) -> String {
    format!("{path}:{}", node.at.line)
}

const EXPRESSION: &str = "it depends on an expression of the workflow";

/// Why a command of a step is not proposed, if that is so.
fn reason_against_piece(
    job: &Job<'_>,
    step: &Node,
    piece: &Piece,
    progress: &Progress,
) -> Option<String> {
    let shell = step.get("shell").and_then(Node::text).unwrap_or("bash");
    let may_fail = job.may_fail || is_true(step.get("continue-on-error"));
    let without_root = piece
        .text
        .replace("$GITHUB_WORKSPACE", "")
        .replace("${GITHUB_WORKSPACE}", "");
    let is_check = matches!(piece.purpose, Purpose::Check(_));
    let because = if job.runs(step).is_none() {
        "it runs on a condition"
    } else if may_fail {
        MAY_FAIL
    } else if !(shell.starts_with("bash") || shell == "sh") {
        "it is not an sh or bash script"
    } else if without_root.contains("GITHUB_") || without_root.contains("RUNNER_") {
        "it speaks to the runner"
    } else if piece.purpose == Purpose::Containers {
        "it needs containers, which the checks of a run cannot start"
    } else if let Some(because) = &piece.because {
        because
    } else if piece.text.contains("${{")
        || piece
            .variables
            .iter()
            .any(|(_, value)| value.contains("${{"))
    {
        EXPRESSION
    } else if is_check && needs_another_toolchain(&piece.text) {
        "it needs another target or a nightly toolchain"
    } else if let Some(containers) = progress.containers.as_ref().filter(|_| is_check) {
        return Some(format!("it may need the containers of `{containers}`"));
    } else {
        return None;
    };
    Some(because.to_owned())
}

/// The variables that a workflow, a job or a step sets.
fn variables(node: &Node) -> Vec<(String, String)> {
    let entries = node.get("env").map(Node::entries).unwrap_or_default();
    let empty = |node: &Node| node.is_null().then(String::new);
    let value = |node: &Node| node.text().map(str::to_owned).or_else(|| empty(node));
    let named = entries
        .iter()
        .filter_map(|entry| Some((entry.key.clone(), value(&entry.value)?)));
    named.collect()
}

fn is_true(node: Option<&Node>) -> bool {
    // An expression there usually spares the experimental rows of a matrix.
    node.and_then(Node::text) == Some("true")
}
