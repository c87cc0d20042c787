//! The settings that a flag, an action input, a variable, a task, a plan and the configuration
//! file may all carry, under one name.
//!
//! One table lists every key with its kind, scope, default and meaning. The reader, the merge,
//! the JSON Schemas and the suggestions for misspelt keys all follow it.

pub mod check;
pub mod kind;

use super::text_error::Fault;
use super::yaml::{Entry, Node, read};
use check::{CheckSpec, Checks};
use kind::{Choice, Globs, Kind, Money, Roles, Shape, Text, Texts, Time, Truth, Whole};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::time::Duration;

/// The most retries that may be asked for.
pub const MAX_RETRIES: u32 = 10;
/// Retries where none are asked for.
pub const DEFAULT_MAX_RETRIES: u32 = 3;
/// Above this many retries a warning speaks of the cost.
pub const COSTLY_RETRIES: u32 = 5;
/// Limit of one run of a check where none is given.
pub const DEFAULT_VERIFY_TIMEOUT: Duration = Duration::from_secs(600);
/// Limit of one turn of the agent where none is given.
pub const DEFAULT_TURN_TIMEOUT: Duration = Duration::from_secs(1800);
/// Silence of the agent after which it counts as stalled, where nothing else is given.
pub const DEFAULT_STALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Nudges a task where nothing else is given.
pub const DEFAULT_NUDGES: u32 = 3;
/// Identical failures in a row that end a task, where nothing else is given.
pub const DEFAULT_IDENTICAL_FAILURES: u32 = 3;

/// Where a key may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// It concerns the whole run: plan, configuration file, flag, variable.
    Run,
    /// A task may have its own as well.
    Task,
}

/// One key of the table.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name, in snake case.
    pub name: &'static str,
    /// What it means, in one sentence or two.
    pub help: &'static str,
    /// Its default in words.
    pub default: &'static str,
    /// Where it may stand.
    pub scope: Scope,
    /// JSON Schema of its value.
    pub schema: Json,
}

macro_rules! settings {
    ($($(#[doc = $help:literal])+ $name:ident: $out:ty = $kind:expr, $scope:ident, $default:literal;)*) => {
        /// Overrides, each absent unless it was given.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Settings {
            $($(#[doc = $help])+ pub $name: Option<$out>,)*
        }

        /// Every key in the order of the documentation.
        pub fn keys() -> Vec<Key> {
            vec![$(Key {
                name: stringify!($name),
                help: concat!($($help),+).trim_ascii(),
                default: $default,
                scope: Scope::$scope,
                schema: $kind.schema(),
            },)*]
        }

        /// Every key's name and scope, without building schemas.
        pub const NAMES: &[(&str, Scope)] = &[$((stringify!($name), Scope::$scope),)*];

        impl Settings {
            fn filled_from(self, lower: Self) -> Self {
                Self { $($name: self.$name.or(lower.$name),)* }
            }

            fn set(&mut self, key: &str, node: &Node) -> Result<(), Fault> {
                match key {
                    $(stringify!($name) => {
                        self.$name = (!node.is_null())
                            .then(|| $kind.read(stringify!($name), node))
                            .transpose()?;
                    })*
                    _ => {}
                }
                Ok(())
            }

            fn shape(key: &str) -> Option<Shape> {
                match key {
                    $(stringify!($name) => Some($kind.shape()),)*
                    _ => None,
                }
            }
        }
    };
}

settings! {
    /// The agent that does the work: `codex`, `claude`, `gemini`, `opencode`, `acp`, `command`, `builtin` or `auto`.
    agent: String = Text, Task, "`auto`: what is configured, else built-in";
    /// Command line of the agent, run by `sh -c`; without `agent` it means agent `command`.
    agent_command: String = Text, Task, "none";
    /// Arguments added to the agent's own command line.
    agent_args: Vec<String> = Texts, Task, "none";
    /// The model that the agent is told to use.
    model: String = Text, Task, "the agent's own";
    /// Roles with an agent or a model of their own: `implementer`, `tester`, `reviewer`, `fixer`.
    roles: BTreeMap<String, RoleSettings> = Roles, Task, "none";
    /// Text that is added to every prompt.
    instructions: String = Text, Task, "none";
    /// Checks that decide whether a tree is good: commands, or mappings of `name`, `run`, `kind`, `timeout`, `junit` and `problem_matcher`.
    verify: Vec<CheckSpec> = Checks, Task, "none: tasks end `unverified`";
    /// Limit of one run of a check.
    verify_timeout: Duration = Time, Task, "10m";
    /// Limit of one turn of the agent.
    turn_timeout: Duration = Time, Task, "30m";
    /// Silence of the agent after which it counts as stalled.
    stall_timeout: Duration = Time, Task, "10m";
    /// Limit of the whole run; set it below the job's `timeout-minutes`.
    deadline: Duration = Time, Run, "5h30m in Actions, none elsewhere";
    /// Further attempts after a failed verification.
    max_retries: u32 = Whole::<u32>::new(0, MAX_RETRIES as u64), Task, "3";
    /// Turns that are repeated in one task because nothing was done.
    nudges: u32 = Whole::<u32>::new(0, 10), Task, "3";
    /// Identical failures in a row that end a task early.
    identical_failures: u32 = Whole::<u32>::new(2, 10), Task, "3";
    /// Times that a failed check is repeated before it is believed.
    flaky_reruns: u32 = Whole::<u32>::new(0, 10), Task, "0";
    /// Verify before the first task, and do not blame the agent for what failed there already.
    baseline: bool = Truth, Run, "false";
    /// Tokens that the run may use.
    max_tokens: u64 = Whole::<u64>::new(1, u64::MAX), Run, "none";
    /// US dollars that the run may cost.
    max_cost_usd: f64 = Money, Run, "none";
    /// Start on a tree that is not clean. Then nothing is committed.
    allow_dirty: bool = Truth, Run, "false";
    /// Go on with tasks that do not depend on a failed one.
    keep_going: bool = Truth, Run, "false";
    /// What becomes of commits that the agent makes itself: `accept`, `squash` or `reject`.
    agent_commits: AgentCommits = Choice::<AgentCommits>::kind(), Task, "accept";
    /// What a task that changed nothing is: `fail`, `warn` or `ok`.
    if_no_changes: OnNoChanges = Choice::<OnNoChanges>::kind(), Task, "fail";
    /// What becomes of a task without any check: `accept` commits it as unverified, `fail` does not.
    if_unverified: IfUnverified = Choice::<IfUnverified>::kind(), Task, "accept";
    /// What a change of tests by the agent is: `fail`, `warn` or `ok`.
    test_changes: OnNoChanges = Choice::<OnNoChanges>::kind(), Task, "warn";
    /// Paths that no task may change, as globs.
    protected_paths: Vec<String> = Globs, Task, "`.github/**`, `action.yml`, `.sprag/**`, CODEOWNERS, agent instruction files";
    /// `ignore`: globs of paths whose changes are no progress.
    progress: Progress = kind::ProgressKind, Run, "none";
    /// Names of environment variables that the agent may see.
    agent_env: Vec<String> = kind::Variables, Task, "none";
    /// Names of environment variables that checks and hooks may see.
    verify_env: Vec<String> = kind::Variables, Task, "none";
    /// How agents and checks are confined: `auto` (as far as possible), `required` or `off`.
    sandbox: Sandbox = Choice::<Sandbox>::kind(), Run, "auto";
    /// Write the failing test first, then make it pass, then tidy up.
    tdd: bool = Truth, Task, "false";
    /// Have a reviewer look at each task's changes before it counts as done.
    review: bool = Truth, Task, "false";
    /// Push what was committed.
    push: bool = Truth, Run, "true in Actions when the token can, false elsewhere";
    /// Whether a pull request is opened: `none`, `draft` or `ready`.
    pull_request: PullRequest = Choice::<PullRequest>::kind(), Run, "none on a pull request, draft for issues and queues";
    /// How commits reach the remote: `git` pushes them, `api` makes them there, signed by GitHub.
    commit_via: CommitVia = Choice::<CommitVia>::kind(), Run, "git";
    /// Workflow files that are dispatched on the pushed branch, since a push with the job's token starts none.
    dispatch_workflows: Vec<String> = Texts, Run, "none";
    /// What a comment begins with that asks for a run.
    trigger_phrase: String = Text, Run, "`/sprag`";
    /// The label of an issue or a pull request that asks for a run.
    trigger_label: String = Text, Run, "`sprag`";
    /// Author associations whose comments are looked at; the permission is asked for besides.
    allowed_associations: Vec<String> = Texts, Run, "`OWNER`, `MEMBER`, `COLLABORATOR`";
    /// Logins of people who may ask for a run without the permission to write.
    allowed_users: Vec<String> = Texts, Run, "none";
    /// Logins of bots that may ask for a run.
    allowed_bots: Vec<String> = Texts, Run, "none";
    /// Run on `pull_request_target` too, where secrets are in reach of code from elsewhere.
    allow_pull_request_target: bool = Truth, Run, "false";
    /// Runs that one issue or pull request may have in a day.
    max_runs_per_day: u32 = Whole::<u32>::new(1, 1000), Run, "20";
    /// Runs that may follow from one another without a person.
    max_depth: u32 = Whole::<u32>::new(0, 100), Run, "2";
    /// Keep one comment on the issue or pull request up to date.
    status_comment: bool = Truth, Run, "true";
    /// Where the result is reported: `auto`, `github` or `none`.
    report: Report = Choice::<Report>::kind(), Run, "auto";
    /// File to which events are written as JSON lines, or `-`.
    events: String = Text, Run, "none";
    /// Directory that keeps what the run leaves behind.
    run_dir: String = Text, Run, "`$RUNNER_TEMP/sprag/<run-id>` in Actions, else under `$XDG_STATE_HOME`";
    /// Whether the log is coloured: `auto`, `always` or `never`.
    color: Color = Choice::<Color>::kind(), Run, "auto";
}

/// `progress`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Globs of paths whose changes do not count.
    pub ignore: Vec<String>,
}

/// What one role overrides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleSettings {
    /// As the setting of the same name.
    pub agent: Option<String>,
    /// As the setting of the same name.
    pub agent_command: Option<String>,
    /// As the setting of the same name.
    pub agent_args: Option<Vec<String>>,
    /// As the setting of the same name.
    pub model: Option<String>,
}

macro_rules! choice {
    ($(#[doc = $help:literal])+ $name:ident { $(#[doc = $variant_help:literal] $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $help])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $(#[doc = $variant_help] #[serde(rename = $word)] $variant,)+
        }

        impl kind::Words for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant),)+];
        }
    };
}

choice! {
    /// What becomes of commits that the agent makes itself.
    AgentCommits {
        /// They are kept, and the rest is committed on top.
        Accept = "accept",
        /// They become one commit with the rest.
        Squash = "squash",
        /// They are a policy violation.
        Reject = "reject",
    }
}
choice! {
    /// How bad something is.
    OnNoChanges {
        /// The task fails.
        Fail = "fail",
        /// A warning.
        Warn = "warn",
        /// Nothing is said.
        Ok = "ok",
    }
}
choice! {
    /// When the tree on which a task starts is checked.
    Baseline {
        /// When the first verification of the task fails.
        OnFailure = "on-failure",
        /// Before the task's first turn.
        First = "first",
        /// Never.
        Off = "off",
    }
}
choice! {
    /// What becomes of work that fails only what failed before the task.
    KnownFailures {
        /// It fails.
        Fail = "fail",
        /// It is committed, and the tests are named.
        Tolerate = "tolerate",
    }
}
choice! {
    /// What becomes of work that changes tests or check definitions which were there before.
    TestChangePolicy {
        /// It has to pass with the old ones too; else it is committed, but not called verified.
        Prove = "prove",
        /// It has to pass with the old ones too; else it is not committed.
        Fail = "fail",
        /// A warning names them.
        Warn = "warn",
        /// Nothing is said.
        Ok = "ok",
    }
}
choice! {
    /// Whether new tests have to fail without the work.
    ProveNewTests {
        /// It is not asked.
        Off = "off",
        /// A warning names those that do not.
        Warn = "warn",
        /// The task fails where they do not.
        Require = "require",
    }
}
choice! {
    /// What becomes of a task without any check.
    IfUnverified {
        /// It is committed and ends `unverified`.
        Accept = "accept",
        /// It fails.
        Fail = "fail",
    }
}
choice! {
    /// How agents and checks are confined.
    Sandbox {
        /// As far as this machine can.
        Auto = "auto",
        /// The run is refused where it is not possible.
        Required = "required",
        /// Not at all.
        Off = "off",
    }
}
choice! {
    /// Whether a pull request is opened.
    PullRequest {
        /// No.
        None = "none",
        /// As a draft.
        Draft = "draft",
        /// Ready for review.
        Ready = "ready",
    }
}
choice! {
    /// How commits reach the remote.
    CommitVia {
        /// By a push.
        Git = "git",
        /// By GitHub's API, which signs them.
        Api = "api",
    }
}
choice! {
    /// Where the result is reported.
    Report {
        /// To GitHub when the run is there and the token can.
        Auto = "auto",
        /// To GitHub.
        Github = "github",
        /// Nowhere but in the log and the run directory.
        None = "none",
    }
}
choice! {
    /// Whether the log is coloured.
    Color {
        /// Where the log can show it.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

impl TestChangePolicy {
    /// Whether the old tests are run on the work.
    pub fn is_proved(self) -> bool {
        matches!(self, Self::Prove | Self::Fail)
    }
}

impl Settings {
    /// These settings, and where one is absent that of `lower`. Build chains from the strongest
    /// source on: `flags.or(task).or(plan).or(config)`.
    ///
    /// Lists and mappings are taken whole, never joined. `agent_command`, `agent_args`, `model`
    /// and `roles` belong to an agent: where `self` names another agent than `lower`, those of
    /// `lower` are not taken, so that no agent gets the model of another.
    ///
    /// A stronger source with an `agent_command` and no `agent` chooses agent `command` over a
    /// weaker one's agent, except over `acp`, which needs a command itself.
    pub fn or(mut self, lower: Self) -> Self {
        let is_started_by_command = |agent: &String| matches!(agent.as_str(), "acp" | "command");
        if self.agent.is_none()
            && self.agent_command.is_some()
            && lower
                .agent
                .as_ref()
                .is_some_and(|agent| !is_started_by_command(agent))
        {
            self.agent = Some("command".to_owned());
        }
        let lower = match (&self.agent, &lower.agent) {
            (Some(agent), Some(other)) if agent != other => Self {
                agent_command: None,
                agent_args: None,
                model: None,
                roles: None,
                ..lower
            },
            _ => lower,
        };
        self.filled_from(lower)
    }

    /// Sets a key from the text of a flag, an action input or a `SPRAG_*` variable. Lists have
    /// one item a line; `progress` and `roles` are YAML. Blank text changes nothing.
    ///
    /// # Errors
    /// What is wrong, naming the key, as a fragment for a message; also an unknown key.
    pub fn set_from_text(&mut self, key: &str, text: &str) -> Result<(), String> {
        let Some(shape) = Self::shape(key) else {
            let suggestion = super::suggest::did_you_mean(key, NAMES.iter().map(|(name, _)| *name));
            return Err(format!("unknown key `{key}`{suggestion}"));
        };
        if text.trim().is_empty() {
            return Ok(());
        }
        let node = match shape {
            Shape::Word => Node::plain(text.trim()),
            Shape::Text => Node::quoted(text),
            Shape::Lines => Node::list(text.lines().map(str::trim).filter(|line| !line.is_empty())),
            Shape::Tree => match super::yaml::parse(text) {
                Ok(node) => node.unwrap_or_else(|| Node::plain("")),
                Err(fault) => return Err(format!("{key}: {}", fault.message)),
            },
        };
        self.set(key, &node).map_err(|fault| fault.message)
    }

    /// Reads an entry of a mapping if its key is in the table; says whether it was.
    ///
    /// # Errors
    /// A value of the wrong type or out of range.
    pub(crate) fn read_entry(&mut self, entry: &Entry) -> Result<Option<Scope>, Fault> {
        let key = canonical_name(&entry.key);
        let Some((_, scope)) = NAMES.iter().find(|(name, _)| *name == key) else {
            return Ok(None);
        };
        self.set(key, &entry.value)?;
        Ok(Some(*scope))
    }

    /// The checks, each with the limit that holds for it.
    pub fn checks(&self) -> Vec<super::checks::verdict::Check> {
        let limit = self.verify_timeout.unwrap_or(DEFAULT_VERIFY_TIMEOUT);
        let specs = self.verify.iter().flatten();
        specs.map(|spec| spec.with_default_timeout(limit)).collect()
    }
}

/// The key that another spelling stands for: the flag `--agent-arg` is repeated, the key is a
/// list.
pub(crate) fn canonical_name(key: &str) -> &str {
    match key {
        "agent_arg" => "agent_args",
        other => other,
    }
}

/// Reads `setup`: commands that run once before the first turn.
///
/// # Errors
/// Anything but a list of texts or one text.
pub(crate) fn read_setup(node: &Node) -> Result<Vec<String>, Fault> {
    read::texts("setup", node)
}

#[cfg(test)]
mod tests;
