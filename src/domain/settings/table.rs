//! The table of settings: one row declares everything about a setting except its use.
//!
//! A row is `name: type = kind, scope, default`. Its doc comment is its help, in `--help`, in the JSON
//! Schemas, in the action's inputs and in the reference. A default is one of
//!
//! - `is VALUE`: this value;
//! - `in_actions VALUE`: this value in a GitHub Actions job, and none elsewhere;
//! - `unset "words"`: none; the words say what happens then.

use super::agents::{AGENT_FILES, AGENTS};
use super::branch::{self, DEFAULT_BRANCH};
use super::check::{CheckSpec, Checks};
use super::choice::{
    AgentCommits, AgentConfig, Approve, Baseline, Caches, Color, CommitVia, Gateway, IfUnverified,
    KnownFailures, OnFinding, OnProtected, ProveNewTests, PullRequest, Report, ReviewFindings,
    ReviewThreads, Sandbox, SignalPolicy, TestChangePolicy,
};
use super::kind::{
    Choice, GLOBS, Kind, Money, Network, NetworkKind, OneOf, PLACES, Progress, ProgressKind, Text,
    Texts, Time, Truth, VARIABLES, Whole, has_only,
};
use super::roles::{AgentList, OneAgent, RoleAgent, Roles, RolesKind};
use super::{Group, Key, KeyDefault, Scope};
use crate::suggest::did_you_mean;
use crate::text_error::Fault;
use crate::yaml::Node;
use std::time::Duration;

/// The form of commit messages.
const FORM: Text = Text::that("FORM", |form| {
    let meant = did_you_mean(form, ["conventional"]);
    if form != "conventional" && !meant.is_empty() {
        return Err(format!("is not a form: `{form}`{meant}"));
    }
    has_only(form, &["subject", "type", "task", "title", "plan"])
});

/// The title of a pull request.
const TITLE: Text = Text::that("TEMPLATE", |title| has_only(title, &["title"]));

/// The maximum number of retries that may be configured.
pub const MAX_RETRIES: u32 = 10;

/// The default paths that no task may change, in addition to the files that configure agents: what services and editors
/// execute before a person has looked at it, as their documentation names it.
const PROTECTED_PATHS: &[&str] = &[
    ".github/**",
    "action.yml",
    "action.yaml",
    "**/.sprag/**",
    "**/CODEOWNERS",
    "**/.gitlab-ci.yml",
    "**/.gitlab/**",
    "**/.gitea/**",
    "**/.forgejo/**",
    "**/.circleci/**",
    "**/.travis.yml",
    "**/.cirrus.*",
    "**/.drone.*",
    "**/.woodpecker.y*ml",
    "**/.woodpecker/**",
    "**/.buildkite/**",
    "**/.semaphore/**",
    "**/.teamcity/**",
    "**/.tekton/**",
    "**/.builds/**",
    "**/.build.yml",
    "**/.appveyor.yml",
    "**/appveyor.yml",
    "**/azure-pipelines*.y*ml",
    "**/.azure-pipelines/**",
    "**/bitbucket-pipelines.yml",
    "**/buildspec.y*ml",
    "**/cloudbuild.*",
    "**/Jenkinsfile",
    "**/codemagic.yaml",
    "**/.readthedocs.y*ml",
    "**/.devcontainer/**",
    "**/.devcontainer.json",
    "**/.zuul.y*ml",
    "**/.zuul.d/**",
    "**/.packit.y*ml",
    "**/netlify.toml",
    "**/vercel.json",
    "**/.vscode/tasks.json",
    "**/.idea/runConfigurations/**",
    "**/.envrc",
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
        /// The agent that does the work. `acp` is an `agent_command` that speaks the Agent Client Protocol. `auto` is `command` if there is an `agent_command`, otherwise `builtin` if its model can be reached.
        agent: String = OneOf(AGENTS), Task, is "auto".to_owned();
        /// Command line of the agent, run by `sh -c`. If `agent` is not set, it selects the agent `command`.
        agent_command: String = Text::named("COMMAND"), Task, unset "none";
        /// Arguments to add to the agent's command line.
        agent_args: Vec<String> = Texts::arguments("ARG"), Task, is Vec::new();
        /// The model for the agent to use.
        model: String = Text::named("MODEL"), Task, unset "the agent's default";
        /// Agents for the attempts after a failed verification, in order; the last one is used for all further attempts. Each has `agent`, `agent_command`, `agent_args` and `model`; missing keys are inherited from the task.
        escalate: Vec<RoleAgent> = AgentList, Task, is Vec::new();
        /// The agent to use if the task's agent is unavailable, with the same keys as in `escalate`.
        fallback: RoleAgent = OneAgent, Task, unset "none";
        /// Text to add to every prompt.
        instructions: String = Text::named("TEXT"), Task, unset "none";
        /// The source of the repository's files that configure an agent (`CLAUDE.md`, `AGENTS.md`, `.claude/`, `.codex/`, `.mcp.json` and similar) during its turns: the tip of the `base` branch, the `head` of the work, or `none`.
        agent_config: AgentConfig = Choice::<AgentConfig>::kind(), Run, unset "base on a pull request, head elsewhere";
        /// Names of environment variables to pass to the agent; never those of the runner.
        agent_env: Vec<String> = VARIABLES, Task, is Vec::new();
    }
    Checks {
        /// The checks that verify the work. Without any, tasks end `unverified`.
        verify: Vec<CheckSpec> = Checks, Task, is Vec::new();
        /// Time limit for one run of a check.
        verify_timeout: Duration = Time, Task, is Duration::from_mins(10);
        /// Names of environment variables to pass to checks and hooks; never those of the runner.
        verify_env: Vec<String> = VARIABLES, Task, is Vec::new();
        /// How to treat a task without any check: `accept` commits it as unverified, `fail` does not commit it.
        if_unverified: IfUnverified = Choice::<IfUnverified>::kind(), Task, is IfUnverified::Accept;
        /// When to run the checks on the tree on which a task starts: before its `first` turn, or only `on-failure`. They show which failures existed before, and whether the checks can tell that the task is done.
        baseline: Baseline = Choice::<Baseline>::kind(), Task, is Baseline::First;
        /// Time limit for one check of that run. If a check takes longer, its result before the task is unknown.
        baseline_limit: Duration = Time, Task, is Duration::from_mins(10);
        /// How many times to repeat the checks on a failed tree before the task is given up, if a failing test passed before the work.
        flaky_reruns: u32 = Whole::<u32>::new(0, 10), Task, is 1;
        /// How to treat work whose only failures existed before: `tolerate` commits it as unverified.
        known_failures: KnownFailures = Choice::<KnownFailures>::kind(), Task, is KnownFailures::Fail;
        /// How to treat changes of what judges the work. `prove` runs the checks on the work with the old files and, if they fail, does not call it verified; `fail` does not commit it then; `warn` only names the changes.
        test_changes: TestChangePolicy = Choice::<TestChangePolicy>::kind(), Task, is TestChangePolicy::Prove;
        /// Globs of files that judge the work though they look like the work: they are put back for a proof.
        judges: Vec<String> = GLOBS, Task, is Vec::new();
        /// Globs of files that are the work though they look like something that judges it.
        product: Vec<String> = GLOBS, Task, is Vec::new();
        /// Whether new tests must fail without the work.
        prove_new_tests: ProveNewTests = Choice::<ProveNewTests>::kind(), Task, is ProveNewTests::Off;
        /// What to do about lines of the work that are worth a look, such as suppressions, stubs, dropped errors and skipped tests: `report` names them, `fail` does not commit work that has some, `off` looks for none.
        signals: SignalPolicy = Choice::<SignalPolicy>::kind(), Task, is SignalPolicy::Report;
    }
    Phases {
        /// Review work before it is committed. Findings are fixed and reviewed again, in at most 5 rounds. Work that the reviewer does not accept is not committed.
        review: bool = Truth, Task, is false;
        /// Agents for the roles `tester`, `reviewer` and `fixer`, each with `agent`, `agent_command`, `agent_args` and `model`; missing keys are inherited from the task. With `review`, a `tester` adds tests before the checks run.
        roles: Roles = RolesKind, Task, is Roles::default();
        /// Write tests first: failing tests, then the work that makes them pass, then one turn to improve it.
        tdd: bool = Truth, Task, is false;
        /// Only review the pull request of the event, or otherwise the checked-out branch. Nothing is committed or pushed.
        review_only: bool = Truth, Run, is false;
        /// The branch that a new pull request is for; with `review_only`, the branch or commit to compare with.
        base: String = Text::named("REF"), Run, unset "the base branch of the pull request or of the run, otherwise the default branch";
        /// The conclusion of the check run of `review_only` if there are findings to fix. The exit code is 1 either way.
        review_findings: ReviewFindings = Choice::<ReviewFindings>::kind(), Run, is ReviewFindings::Neutral;
        /// Post the findings of `review_only` as one review on the pull request, with comments on lines and suggested changes. Findings are not posted twice.
        review_comments: bool = Truth, Run, is false;
    }
    Limits {
        /// Maximum number of attempts after the first, each after a failed verification.
        max_retries: u32 = Whole::<u32>::new(0, MAX_RETRIES as u64), Task, is 3;
        /// Maximum number of turns to repeat in one task because nothing was done.
        nudges: u32 = Whole::<u32>::new(0, 10), Task, is 3;
        /// Number of identical failures in a row that end a task early.
        identical_failures: u32 = Whole::<u32>::new(2, 10), Task, is 3;
        /// Time limit for one turn of the agent.
        turn_timeout: Duration = Time, Task, is Duration::from_mins(30);
        /// How long the agent may be silent before it counts as stalled.
        stall_timeout: Duration = Time, Task, is Duration::from_mins(10);
        /// Time limit for the whole run; set it below the job's `timeout-minutes`.
        deadline: Duration = Time, Run, in_actions Duration::from_mins(5 * 60 + 30);
        /// Maximum number of tokens for the run.
        max_tokens: u64 = Whole::<u64>::new(1, u64::MAX), Run, unset "none";
        /// Maximum cost of the run in US dollars, if the agent reports its cost.
        max_cost_usd: f64 = Money, Run, in_actions 10.0;
        /// Maximum cost in US dollars of all runs of the repository in 24 hours, including this one.
        max_cost_usd_per_day: f64 = Money, Run, in_actions 50.0;
    }
    Isolation {
        /// How to confine agents, checks, hooks and setup commands. `auto` protects the files that a run and its machine rely on, as far as the machine can. `require` (or `require:N` for a level from 1 to 3) lets them write only to named places, and starts nothing without that level. `off` confines nothing.
        sandbox: Sandbox = Choice::<Sandbox>::kind(), Run, is Sandbox::Auto;
        /// Absolute paths, or paths below `~`, that may be written with everything below them. The work tree and the caches of common tools need no entry. With `sandbox: auto`, directories for temporary files need none either.
        sandbox_write: Vec<String> = PLACES, Run, is Vec::new();
        /// Commands that start processes for the whole run, such as a database, after the setup commands. Each ends when its service is ready. All other processes that setup commands leave are ended before the first turn.
        services: Vec<String> = Texts::arguments("COMMAND"), Run, is Vec::new();
        /// Whose caches agents write, such as those of compilers and package managers. `private` gives the agents of a run copies, so that checks and later programs execute nothing that an agent has put there; both build the work themselves. `shared` gives agents the user's.
        caches: Caches = Choice::<Caches>::kind(), Run, is Caches::Private;
        /// Whether Sprag keeps the keys of model providers, so that agents use its gateway on the loopback interface. `auto` does so if the gateway can replace the key, `on` starts nothing if it cannot, `off` gives agents their keys.
        gateway: Gateway = Choice::<Gateway>::kind(), Run, is Gateway::Auto;
        /// The hosts that agents, checks and hooks may reach, through Sprag's proxy: names, `*.` before a name, or addresses, without a port; `deny` for none. The log says how far the machine can enforce this.
        network: Network = NetworkKind, Run, unset "any host";
    }
    Commits {
        /// Start on a tree that is not clean, and commit nothing.
        allow_dirty: bool = Truth, Run, is false;
        /// Continue with tasks that do not depend on a failed one.
        keep_going: bool = Truth, Run, is false;
        /// How to treat commits by the agent.
        agent_commits: AgentCommits = Choice::<AgentCommits>::kind(), Task, is AgentCommits::Squash;
        /// The effect of a task that changed nothing: `fail` fails the run; `warn` and `ok` continue, also with tasks that depend on this one.
        if_no_changes: OnFinding = Choice::<OnFinding>::kind(), Run, is OnFinding::Fail;
        /// The form of commit messages: `conventional` for `type(scope): subject`, whose type follows from the changed files if the agent suggests none, or a text with `{subject}`, `{type}`, `{task}`, `{title}` and `{plan}`.
        commit_message: String = FORM, Task, unset "the agent's suggestion, otherwise `[sprag] Complete task ID: TITLE`";
        /// Add `Signed-off-by` with the author of the commits.
        signoff: bool = Truth, Run, is false;
        /// Paths that no task may change, as globs.
        protected_paths: Vec<String> = GLOBS, Task, is PROTECTED_PATHS.iter().chain(AGENT_FILES).map(|&glob| glob.to_owned()).collect::<Vec<_>>();
        /// How to treat a task that changes protected paths: `hold` removes these changes, keeps them as a patch and continues with the rest; `block` ends the task.
        on_protected: OnProtected = Choice::<OnProtected>::kind(), Task, is OnProtected::Hold;
        /// `ignore`: globs of paths whose changes do not count as progress.
        progress: Progress = ProgressKind, Run, is Progress::default();
    }
    Delivery {
        /// Push the commits.
        push: bool = Truth, Run, unset "true in Actions if there is a branch and a token that can push, false elsewhere";
        /// The name of the branch for work that is not on an existing one. `{slug}`, at the end, names the work, such as `issue-12`. A review of a pull request from such a branch starts a run only if the branch begins with `sprag/` or the pull request has the label.
        branch: String = branch::TEMPLATE, Run, is DEFAULT_BRANCH.to_owned();
        /// Whether to open a pull request for the pushed work.
        pull_request: PullRequest = Choice::<PullRequest>::kind(), Run, unset "none on a pull request, draft for issues and queues";
        /// Whether the pull request is a draft.
        draft: bool = Truth, Run, unset "as `pull_request` says";
        /// The title of the pull request; `{title}` is that of the plan.
        pull_request_title: String = TITLE, Run, unset "the title of the plan";
        /// Labels for a new pull request.
        labels: Vec<String> = Texts::named("NAME"), Run, is Vec::new();
        /// Logins of people, and `ORG/TEAM` for teams, to ask for a review of a new pull request.
        reviewers: Vec<String> = Texts::named("LOGIN"), Run, is Vec::new();
        /// Logins of people to assign to a new pull request.
        assignees: Vec<String> = Texts::named("LOGIN"), Run, is Vec::new();
        /// How commits reach the remote: `git` pushes them, `api` creates them through GitHub's API, signed by GitHub.
        commit_via: CommitVia = Choice::<CommitVia>::kind(), Run, is CommitVia::Git;
        /// Workflow files to start on the pushed work, since a push with the job's token starts none.
        dispatch_workflows: Vec<String> = Texts::named("FILE"), Run, is Vec::new();
    }
    Reports {
        /// A JSON Schema, or the path of one, for the JSON value that the last task returns in its final message; the value is the output `structured-output`. On a pull request the file is read from the base branch.
        output_schema: String = Text::named("FILE|JSON"), Run, unset "none";
        /// Where to report the result: `auto` is `github` in a job whose token permits it, `none` is only the log, the step summary and the run directory.
        report: Report = Choice::<Report>::kind(), Run, is Report::Auto;
        /// The name of the run in reports: its check run and its comment are `Sprag / NAME`, and those of other names are left alone.
        name: String = Text::named("NAME"), Run, unset "the workflow and the job, `WORKFLOW / JOB`, in Actions";
        /// Keep one comment on the issue or pull request up to date.
        status_comment: bool = Truth, Run, is true;
        /// File for the events as JSON lines, or `-` for standard output.
        events: String = Text::named("FILE|-"), Process, unset "none";
        /// Whether to colour the log.
        color: Color = Choice::<Color>::kind(), Process, is Color::Auto;
        /// The run directory: reports, transcripts, logs and patches.
        run_dir: String = Text::named("DIR"), Run, unset "`$RUNNER_TEMP/sprag/<run-id>` in Actions, otherwise under `$XDG_STATE_HOME`";
    }
    Triggers {
        /// The beginning of a comment line that asks for a run.
        trigger_phrase: String = Text::named("TEXT"), Run, is "/sprag".to_owned();
        /// The label of an issue or a pull request that asks for a run.
        trigger_label: String = Text::named("NAME"), Run, is "sprag".to_owned();
        /// Whether a person must approve a plan before a labelled issue or a schedule is worked on: `required` drafts one and shows it in the comment. A schedule drafts one from its prompt, and shows it in an issue of its own.
        approve: Approve = Choice::<Approve>::kind(), Run, is Approve::Off;
        /// How to split a review into tasks: one for `each` thread, one for the threads of each `file`, or one for `all`.
        review_threads: ReviewThreads = Choice::<ReviewThreads>::kind(), Run, is ReviewThreads::Each;
        /// Author associations of people who may ask for a run; they also need write access.
        allowed_associations: Vec<String> = Texts::named("WORD"), Trigger, is ["OWNER", "MEMBER", "COLLABORATOR"].map(str::to_owned).to_vec();
        /// Logins of people who may ask for a run without write access.
        allowed_users: Vec<String> = Texts::named("LOGIN"), Trigger, is Vec::new();
        /// Logins of bots that may ask for a run; no other bot may.
        allowed_bots: Vec<String> = Texts::named("LOGIN"), Trigger, is Vec::new();
        /// Also run on `pull_request_target`, where foreign code can reach secrets.
        allow_pull_request_target: bool = Truth, Trigger, is false;
        /// Maximum number of runs per day on one issue or pull request.
        max_runs_per_day: u32 = Whole::<u32>::new(1, 1000), Trigger, is 20;
        /// Maximum number of runs in a row that no person started.
        max_depth: u32 = Whole::<u32>::new(0, 100), Trigger, is 2;
    }
}
