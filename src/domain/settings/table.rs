//! The table of settings: one row declares everything about a setting except its use.
//!
//! A row is `name: type = kind, scope, default`. Its doc comment is its help, in `--help`, in the JSON
//! Schemas, in the action's inputs and in the reference. A default is one of
//!
//! - `is VALUE`: this value;
//! - `in_actions VALUE`: this value in a GitHub Actions job, and none elsewhere;
//! - `unset "words"`: none; the words say what happens then.

use super::agents::{AGENT_FILES, AGENTS};
use super::check::{CheckSpec, Checks};
use super::choice::{
    AgentCommits, AgentConfig, Baseline, Color, CommitVia, Gateway, IfUnverified, KnownFailures,
    OnFinding, OnProtected, ProveNewTests, PullRequest, Report, ReviewFindings, ReviewThreads,
    Sandbox, TestChangePolicy,
};
use super::kind::{
    Choice, Globs, Kind, Money, Network, NetworkKind, OneOf, Progress, ProgressKind, Text, Texts,
    Time, Truth, Variables, Whole,
};
use super::roles::{AgentList, OneAgent, RoleAgent, Roles, RolesKind};
use super::{Group, Key, KeyDefault, Scope};
use crate::text_error::Fault;
use crate::yaml::Node;
use std::time::Duration;

/// The maximum number of retries that may be configured.
pub const MAX_RETRIES: u32 = 10;

/// The default paths that no task may change, in addition to the files that configure agents.
const PROTECTED_PATHS: &[&str] = &[
    ".github/**",
    "action.yml",
    "action.yaml",
    ".sprag/**",
    "**/CODEOWNERS",
];

macro_rules! settings {
    ($($group:ident {$(
        $(#[doc = $help:literal])+
        $name:ident: $out:ty = $kind:expr, $scope:ident, $mode:ident $default:expr;
    )*})*) => {
        /// The settings of one source: a setting that the source does not contain is `None`.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Settings {
            $($($(#[doc = $help])+ pub $name: Option<$out>,)*)*
        }

        /// The effective settings: every setting with its default applied.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Resolved {
            $($($(#[doc = $help])+ pub $name: held!($mode $out),)*)*
        }

        /// Every row, in the order of the documentation.
        pub fn keys() -> Vec<Key> {
            vec![$($(Key {
                name: stringify!($name),
                help: concat!($($help),+).trim_ascii(),
                default: words!($mode $kind, $default),
                scope: Scope::$scope,
                group: Group::$group,
                form: $kind.form(),
                value_name: $kind.value_name(),
                choices: $kind.choices(),
                range: $kind.range(),
                schema: || $kind.schema(),
            },)*)*]
        }

        /// Every row's name and scope.
        pub const NAMES: &[(&str, Scope)] = &[$($((stringify!($name), Scope::$scope),)*)*];

        impl Settings {
            pub(super) fn filled_from(self, lower: Self) -> Self {
                Self { $($($name: self.$name.or(lower.$name),)*)* }
            }

            /// These settings without those of a scope.
            #[must_use]
            pub fn without(self, scope: Scope) -> Self {
                Self { $($($name: self.$name.filter(|_| scope != Scope::$scope),)*)* }
            }

            /// These settings, completed with the defaults.
            pub fn resolve(self, in_actions: bool) -> Resolved {
                Resolved { $($($name: holds!($mode self.$name, $default, in_actions),)*)* }
            }

            /// Reads the value of a key; null means that the key is absent.
            pub(super) fn set(&mut self, key: &str, node: &Node) -> Result<(), Fault> {
                match key {
                    $($(stringify!($name) => {
                        self.$name = (!node.is_null())
                            .then(|| $kind.read(stringify!($name), node))
                            .transpose()?;
                    })*)*
                    _ => {}
                }
                Ok(())
            }

            pub(super) fn form(key: &str) -> Option<super::Form> {
                match key {
                    $($(stringify!($name) => Some($kind.form()),)*)*
                    _ => None,
                }
            }
        }

        impl Default for Resolved {
            /// The defaults outside of GitHub Actions.
            fn default() -> Self {
                Settings::default().resolve(false)
            }
        }
    };
}

macro_rules! held {
    (is $out:ty) => { $out };
    ($mode:ident $out:ty) => { Option<$out> };
}

macro_rules! holds {
    (is $given:expr, $default:expr, $in_actions:ident) => {
        $given.unwrap_or_else(|| $default)
    };
    (in_actions $given:expr, $default:expr, $in_actions:ident) => {
        $given.or_else(|| $in_actions.then(|| $default))
    };
    (unset $given:expr, $default:expr, $in_actions:ident) => {
        $given
    };
}

macro_rules! words {
    (is $kind:expr, $default:expr) => {
        KeyDefault::Value($kind.words(&$default))
    };
    (in_actions $kind:expr, $default:expr) => {
        KeyDefault::Words(format!(
            "{} in Actions, none elsewhere",
            $kind.words(&$default)
        ))
    };
    (unset $kind:expr, $default:expr) => {
        KeyDefault::Words($default.to_owned())
    };
}

settings! {
    Agent {
        /// The agent that does the work. `acp` is an `agent_command` that speaks the Agent Client Protocol. `auto` takes `command` where there is an `agent_command`, else `builtin` where its model can be reached.
        agent: String = OneOf(AGENTS), Task, is "auto".to_owned();
        /// Command line of the agent, run by `sh -c`. Without `agent` it means agent `command`.
        agent_command: String = Text("COMMAND"), Task, unset "none";
        /// Arguments added to the agent's own command line.
        agent_args: Vec<String> = Texts::arguments("ARG"), Task, is Vec::new();
        /// The model that the agent is told to use.
        model: String = Text("MODEL"), Task, unset "the agent's own";
        /// Agents for the attempts after a failed verification, the first for the first of them and so on; the last one stays. Each has `agent`, `agent_command`, `agent_args` and `model`; what it does not set is as for the task.
        escalate: Vec<RoleAgent> = AgentList, Task, is Vec::new();
        /// The agent that takes over where the task's own is unavailable, with the keys of `escalate`.
        fallback: RoleAgent = OneAgent, Task, unset "none";
        /// Text that is added to every prompt.
        instructions: String = Text("TEXT"), Task, unset "none";
        /// Where the files of the repository that configure an agent come from while it works (`CLAUDE.md`, `AGENTS.md`, `.claude/`, `.codex/`, `.mcp.json` and the like): the tip of the `base` branch, the `head` that is worked on, or `none`.
        agent_config: AgentConfig = Choice::<AgentConfig>::kind(), Run, unset "base on a pull request, head elsewhere";
        /// Names of environment variables that the agent may see; never one of the runner.
        agent_env: Vec<String> = Variables, Task, is Vec::new();
    }
    Checks {
        /// Checks that decide whether a tree is good. Without any, tasks end `unverified`.
        verify: Vec<CheckSpec> = Checks, Task, is Vec::new();
        /// Limit of one run of a check.
        verify_timeout: Duration = Time, Task, is Duration::from_mins(10);
        /// Names of environment variables that checks and hooks may see; never one of the runner.
        verify_env: Vec<String> = Variables, Task, is Vec::new();
        /// What becomes of a task without any check: `accept` commits it as unverified, `fail` does not.
        if_unverified: IfUnverified = Choice::<IfUnverified>::kind(), Task, is IfUnverified::Accept;
        /// When the tree on which a task starts is checked, to tell what failed before.
        baseline: Baseline = Choice::<Baseline>::kind(), Task, is Baseline::OnFailure;
        /// How often the checks are run once more on a tree that has failed, before its task is given up.
        flaky_reruns: u32 = Whole::<u32>::new(0, 10), Task, is 1;
        /// What becomes of work that fails only what failed before: `tolerate` commits it as unverified.
        known_failures: KnownFailures = Choice::<KnownFailures>::kind(), Task, is KnownFailures::Fail;
        /// What becomes of changed tests and check definitions: `prove` runs the checks with the old ones on the work and does not call it verified where that fails, `fail` does not commit it then, `warn` only names them.
        test_changes: TestChangePolicy = Choice::<TestChangePolicy>::kind(), Task, is TestChangePolicy::Prove;
        /// Whether new tests have to fail without the work.
        prove_new_tests: ProveNewTests = Choice::<ProveNewTests>::kind(), Task, is ProveNewTests::Off;
    }
    Phases {
        /// Have work reviewed before it is committed, and what the review finds fixed and reviewed again, in at most 5 rounds. What a reviewer does not accept is not committed.
        review: bool = Truth, Task, is false;
        /// Agents of the roles: `tester`, `reviewer` and `fixer`, each with `agent`, `agent_command`, `agent_args` and `model`; what a role does not set is as for the task. With `review`, a `tester` adds tests before the checks run.
        roles: Roles = RolesKind, Task, is Roles::default();
        /// Have the tests written first: tests that fail, then the work that makes them pass, then one turn to improve it.
        tdd: bool = Truth, Task, is false;
        /// Only review: a run of the reviewer alone, on the pull request of the event, or else on the branch that is checked out. Nothing is committed or pushed.
        review_only: bool = Truth, Run, is false;
        /// The branch or commit that `review_only` compares with: what the branch has that this has not is reviewed.
        base: String = Text("REF"), Run, unset "the base branch of the pull request, else the default branch";
        /// What the check run of `review_only` concludes where something has to be fixed. The exit code is 1 either way.
        review_findings: ReviewFindings = Choice::<ReviewFindings>::kind(), Run, is ReviewFindings::Neutral;
        /// Post what `review_only` finds as one review on the pull request, with comments on the lines and suggested changes. What was posted before is not posted again.
        review_comments: bool = Truth, Run, is false;
    }
    Limits {
        /// Attempts after the first, each after a failed verification.
        max_retries: u32 = Whole::<u32>::new(0, MAX_RETRIES as u64), Task, is 3;
        /// Turns that are repeated in one task because nothing was done.
        nudges: u32 = Whole::<u32>::new(0, 10), Task, is 3;
        /// Identical failures in a row that end a task early.
        identical_failures: u32 = Whole::<u32>::new(2, 10), Task, is 3;
        /// Limit of one turn of the agent.
        turn_timeout: Duration = Time, Task, is Duration::from_mins(30);
        /// Silence of the agent after which it counts as stalled.
        stall_timeout: Duration = Time, Task, is Duration::from_mins(10);
        /// Limit of the whole run; set it below the job's `timeout-minutes`.
        deadline: Duration = Time, Run, in_actions Duration::from_mins(5 * 60 + 30);
        /// Tokens that the run may use.
        max_tokens: u64 = Whole::<u64>::new(1, u64::MAX), Run, unset "none";
        /// US dollars that the run may cost, where the agent tells its cost.
        max_cost_usd: f64 = Money, Run, in_actions 10.0;
        /// US dollars that all runs of the repository may cost in 24 hours, this one included.
        max_cost_usd_per_day: f64 = Money, Run, in_actions 50.0;
    }
    Isolation {
        /// How far agents, checks, hooks and setup commands are confined: `auto` keeps them from what a run and its machine rely on, as far as the machine can; `require` (or `require:N` for a level from 1 to 3) confines them to named places and starts nothing without that level; `off` confines nothing.
        sandbox: Sandbox = Choice::<Sandbox>::kind(), Run, is Sandbox::Auto;
        /// Absolute paths, or paths below `~`, that may be written with what is below them, besides the work tree, the caches of common tools and, with `sandbox: auto`, directories for temporary files and the one in which the work tree lies.
        sandbox_write: Vec<String> = Texts::named("PATH"), Run, is Vec::new();
        /// Whether the keys of model providers stay with Sprag, and agents ask its gateway on the loopback interface instead: `auto` where the gateway can stand in for the key, `on` starts nothing where it cannot, `off` gives agents their keys.
        gateway: Gateway = Choice::<Gateway>::kind(), Run, is Gateway::Auto;
        /// The hosts that agents, checks and hooks may reach, by a proxy of Sprag's: names, `*.` in front of a name, or addresses, without a port; `deny` for none. How far that is enforced depends on the machine and is told.
        network: Network = NetworkKind, Run, unset "any host";
    }
    Commits {
        /// Start on a tree that is not clean. Then nothing is committed.
        allow_dirty: bool = Truth, Run, is false;
        /// Go on with tasks that do not depend on a failed one.
        keep_going: bool = Truth, Run, is false;
        /// What becomes of commits that the agent makes itself.
        agent_commits: AgentCommits = Choice::<AgentCommits>::kind(), Task, is AgentCommits::Squash;
        /// What a task that changed nothing is.
        if_no_changes: OnFinding = Choice::<OnFinding>::kind(), Run, is OnFinding::Fail;
        /// Paths that no task may change, as globs.
        protected_paths: Vec<String> = Globs, Task, is PROTECTED_PATHS.iter().chain(AGENT_FILES).map(|&glob| glob.to_owned()).collect::<Vec<_>>();
        /// What becomes of a task that changes protected paths: `hold` takes these changes out, keeps them as a patch and goes on with the rest, `block` ends the task.
        on_protected: OnProtected = Choice::<OnProtected>::kind(), Task, is OnProtected::Hold;
        /// `ignore`: globs of paths whose changes are no progress.
        progress: Progress = ProgressKind, Run, is Progress::default();
    }
    Delivery {
        /// Push what was committed.
        push: bool = Truth, Run, unset "true in Actions when there is a branch and a token that can, false elsewhere";
        /// Whether a pull request is opened for what was pushed.
        pull_request: PullRequest = Choice::<PullRequest>::kind(), Run, unset "none on a pull request, draft for issues and queues";
        /// How commits reach the remote: `git` pushes them, `api` makes them there, signed by GitHub.
        commit_via: CommitVia = Choice::<CommitVia>::kind(), Run, is CommitVia::Git;
        /// Workflow files that are started on what was pushed, since a push with the job's token starts none.
        dispatch_workflows: Vec<String> = Texts::named("FILE"), Run, is Vec::new();
    }
    Reports {
        /// A JSON Schema, or the path of one, that the JSON value fits which the last task gives in its final message; the value is the output `structured-output`. On a pull request a path is read from the base branch.
        output_schema: String = Text("FILE|JSON"), Run, unset "none";
        /// Where the result is reported: `auto` is `github` in a job whose token can, `none` leaves the log, the step summary and the run directory.
        report: Report = Choice::<Report>::kind(), Run, is Report::Auto;
        /// The name under which the run is told of: its check run and its comment are `Sprag / NAME`, and those of other names are left alone.
        name: String = Text("NAME"), Run, unset "the workflow and the job, `WORKFLOW / JOB`, in Actions";
        /// Keep one comment on the issue or pull request up to date.
        status_comment: bool = Truth, Run, is true;
        /// File to which events are written as JSON lines, or `-` for standard output.
        events: String = Text("FILE|-"), Process, unset "none";
        /// Whether the log is coloured.
        color: Color = Choice::<Color>::kind(), Process, is Color::Auto;
        /// Directory that keeps what the run leaves behind.
        run_dir: String = Text("DIR"), Run, unset "`$RUNNER_TEMP/sprag/<run-id>` in Actions, else under `$XDG_STATE_HOME`";
    }
    Triggers {
        /// What a line of a comment begins with that asks for a run.
        trigger_phrase: String = Text("TEXT"), Run, is "/sprag".to_owned();
        /// The label of an issue or a pull request that asks for a run.
        trigger_label: String = Text("NAME"), Run, is "sprag".to_owned();
        /// How a review becomes tasks: one for `each` thread, one for the threads of each `file`, or one for `all`.
        review_threads: ReviewThreads = Choice::<ReviewThreads>::kind(), Run, is ReviewThreads::Each;
        /// Author associations of people who may ask; write access is needed besides.
        allowed_associations: Vec<String> = Texts::named("WORD"), Trigger, is ["OWNER", "MEMBER", "COLLABORATOR"].map(str::to_owned).to_vec();
        /// Logins of people who may ask for a run without write access.
        allowed_users: Vec<String> = Texts::named("LOGIN"), Trigger, is Vec::new();
        /// Logins of bots that may ask for a run; no other bot may.
        allowed_bots: Vec<String> = Texts::named("LOGIN"), Trigger, is Vec::new();
        /// Run on `pull_request_target` too, where secrets are in reach of code from elsewhere.
        allow_pull_request_target: bool = Truth, Trigger, is false;
        /// Runs that one issue or pull request may have in a day.
        max_runs_per_day: u32 = Whole::<u32>::new(1, 1000), Trigger, is 20;
        /// Runs that may follow from one another without a person.
        max_depth: u32 = Whole::<u32>::new(0, 100), Trigger, is 2;
    }
}
