//! The facts about the environment in which a run would work.

use crate::agents::{CliSpec, Login};
use crate::domain::sandbox::{GatewayLine, SandboxLine};
use crate::domain::settings::Sandbox;
use crate::domain::settings::variables::Unread;
use crate::domain::snapshot::RevId;
pub use crate::git::{Nested, UncommittedChanges};
pub use crate::github::api::PermissionState;
use crate::run::begin::programs::MissingProgram;

/// All facts.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Whether this is a step of a GitHub Actions job.
    pub in_actions: bool,
    /// The git program, or `None` if there is none.
    pub git: Option<Program>,
    /// The repository, or why it is unusable.
    pub repository: Result<Repository, Problem>,
    /// The configuration, or what is wrong with it.
    pub configuration: Result<Configuration, Problem>,
    /// The agent of a task without its own, or `None` if the configuration does not determine it.
    pub agent: Option<Agent>,
    /// The GitHub Actions job.
    pub actions_job: ActionsJob,
    /// The request of this job's event.
    pub trigger: Trigger,
    /// The connections from this machine.
    pub network: Network,
    /// The machine.
    pub machine: Machine,
}

/// How connections leave this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The servers that a run connects to, with the route to each.
    pub routes: Vec<(String, Result<Route, Problem>)>,
    /// A description of the trusted certificates, or why they cannot be loaded.
    pub certificates: Result<String, Problem>,
}

/// The route to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// No proxy.
    Direct,
    /// Through a proxy.
    Proxy {
        /// Its URL, without user and password.
        proxy: String,
        /// The variable that names it.
        variable: String,
    },
}

/// A problem as a lowercase fragment, and its remedies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// The problem.
    pub message: String,
    /// The remedies, one text each.
    pub hints: Vec<String>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Its path.
    pub path: String,
    /// Its version.
    pub version: String,
}

/// An answer, or why there is none.
pub type Queried<T> = Result<T, String>;

/// A usable repository.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The top of the work tree.
    pub work_tree: String,
    /// A directory of it that this user cannot write to.
    pub closed: Option<String>,
    /// The git lock that blocks commits, if one is held.
    pub lock: Option<String>,
    /// The hooks of a commit that do not run.
    pub idle_hooks: Vec<&'static str>,
    /// The committer in git's configuration, as `Name <mail>`.
    pub identity: Queried<Option<String>>,
    /// The differences from HEAD.
    pub changes: Queried<UncommittedChanges>,
    /// The checked-out commit and branch.
    pub checkout: Queried<Checkout>,
    /// Credentials in git's configuration.
    pub credentials: Queried<Vec<Credential>>,
    /// Submodules, and files of git-lfs.
    pub nested: Queried<Nested>,
    /// jj, if the repository is also one of jj.
    pub jj: Option<Jj>,
}

/// A repository of jj.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jj {
    /// Whether there is no `.git` beside `.jj`.
    pub alone: bool,
    /// Whether the program is on PATH.
    pub installed: bool,
}

/// The checked-out commit and branch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkout {
    /// The branch, or `None` for a detached HEAD.
    pub branch: Option<String>,
    /// The commit, or `None` before the first commit.
    pub commit: Option<RevId>,
    /// The full names of the refs that point to that commit.
    pub refs: Vec<String>,
    /// The number of available commits in a shallow clone, or `None` for a complete one.
    pub depth: Option<u64>,
}

/// The location of a credential in git's configuration, without the credential itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The key, with secret parts removed.
    pub key: String,
    /// The file.
    pub file: String,
    /// Whether the repository's own configuration contains or includes it, and not the user's.
    pub local: bool,
}

/// A valid configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The file, or `None` if there is none.
    pub file: Option<String>,
    /// Names of the checks that every task gets.
    pub checks: Vec<String>,
    /// Missing programs of checks and setup commands.
    pub missing: Vec<MissingProgram>,
    /// Whether setup commands run before the first turn, which may install programs.
    pub has_setup: bool,
    /// Whether a task without a check fails.
    pub unverified_fails: bool,
    /// Whether a run may start on a dirty tree.
    pub allow_dirty: bool,
    /// What the run is configured to do on GitHub.
    pub delivery: Delivery,
    /// Variables that have a name like Sprag's and that nothing reads.
    pub unread: Vec<Unread>,
}

/// What a run is configured to do on GitHub, independent of the environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivery {
    /// `push`, if it is set. Otherwise the work of an event is pushed.
    pub push: Option<bool>,
    /// `pull_request: draft` or `ready`.
    pub pull_request: bool,
    /// `report: github`.
    pub report: bool,
    /// `dispatch_workflows`.
    pub dispatch: bool,
}

/// The agent, and what chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// What names it, or `None` if it was chosen automatically.
    pub named_by: Option<&'static str>,
    /// The kind of agent.
    pub kind: AgentKind,
    /// Whether its key stays with Sprag, if it sends its own requests to a model.
    pub gateway: Option<GatewayLine>,
    /// Whether its key must stay with Sprag.
    pub requires_gateway: bool,
}

/// The kinds of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// There is none.
    None(Problem),
    /// The built-in agent.
    Builtin {
        /// The model.
        model: String,
        /// The provider.
        provider: String,
        /// The base URL of the model's API, without user and password.
        base: String,
        /// The variable with the key, or `None` if no key is used.
        key: Option<String>,
    },
    /// A coding agent that is a separate program.
    Cli(Cli),
    /// A user's command.
    Command {
        /// Its first program, if that can be determined.
        program: Option<String>,
        /// Whether that program exists, or `None` if unknown.
        found: Option<bool>,
    },
}

/// A coding agent that is a separate program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cli {
    /// Its description.
    pub spec: &'static CliSpec,
    /// Its path, if it is installed.
    pub path: Option<String>,
    /// Its version, or why it is unknown.
    pub version: Queried<String>,
    /// Its login.
    pub login: Login,
    /// What is wrong with the variables that may hold its key, if it has no login.
    pub key_mistake: Option<String>,
}

/// Whether this is a step of a GitHub Actions job, and the facts about the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionsJob {
    /// Not a step of a job.
    Outside,
    /// A step of a job.
    Inside(JobFacts),
}

/// GitHub from the view of a step of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// `owner/name`, if known.
    pub repository: Option<String>,
    /// The URL of the API.
    pub api: String,
    /// The token's kind, or `None` without a token.
    pub token: Option<TokenKind>,
    /// GitHub's answer, or `None` if it was not asked.
    pub answer: Option<Result<Answer, Refused>>,
}

/// GitHub's answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// `owner/name` as GitHub spells it.
    pub repository: String,
    /// Whether it is private.
    pub private: bool,
    /// Whether it is archived, which makes it read-only.
    pub archived: bool,
    /// The login of the token's account, if GitHub reports it.
    pub login: Option<String>,
    /// The remaining requests, and the hourly limit.
    pub rate: Option<(u64, u64)>,
    /// The permissions of the token.
    pub rights: Vec<Right>,
    /// Why some facts are missing.
    pub broke_off: Option<String>,
}

/// A token's permissions in one area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// The area, as a workflow's `permissions` name it.
    pub area: Area,
    /// Permission to read.
    pub read: PermissionState,
    /// Permission to write.
    pub write: PermissionState,
}

/// An area of `permissions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// `contents`
    Contents,
    /// `issues`
    Issues,
    /// `pull-requests`
    PullRequests,
    /// `checks`
    Checks,
    /// `actions`
    Actions,
}

/// Why GitHub gave no useful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The kind of reason.
    pub kind: RefusedKind,
    /// The reason.
    pub message: String,
}

/// The kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedKind {
    /// The token is not accepted.
    Token,
    /// The repository does not exist for this token.
    Repository,
    /// GitHub cannot be reached, or the token's rate limit is exceeded.
    Away,
    /// Nothing was sent because of a setting.
    Setting,
}

/// The kinds of tokens, by prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `ghs_`: the job's own, or an app's.
    Installation,
    /// `ghp_`: a classic personal one.
    Classic,
    /// `github_pat_`: a fine-grained personal one.
    FineGrained,
    /// `gho_`, `ghu_`: an app acting on behalf of a person.
    OnBehalf,
    /// Any other prefix.
    Other,
}

impl TokenKind {
    /// Determines the kind from the prefix.
    pub fn of(token: &str) -> Self {
        let kinds = [
            ("ghs_", Self::Installation),
            ("ghp_", Self::Classic),
            ("github_pat_", Self::FineGrained),
            ("gho_", Self::OnBehalf),
            ("ghu_", Self::OnBehalf),
        ];
        let found = kinds.iter().find(|(start, _)| token.starts_with(start));
        found.map_or(Self::Other, |(_, kind)| *kind)
    }

    /// Whether it acts as a person, who cannot create check runs.
    pub fn is_personal(self) -> bool {
        matches!(self, Self::Classic | Self::FineGrained | Self::OnBehalf)
    }
}

/// The event of this job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// There is none.
    None,
    /// It cannot be read.
    Unreadable(String),
    /// It starts nothing.
    Nothing {
        /// Its name.
        event: String,
        /// The reason.
        reason: String,
    },
    /// The request is refused.
    Refused {
        /// Its name.
        event: String,
        /// The reason.
        reason: String,
        /// The remedy.
        remedy: String,
    },
    /// It requests work.
    Asks {
        /// Its name.
        event: String,
        /// The person who asks.
        who: Option<String>,
        /// The requested work.
        what: String,
        /// Whether GitHub must be asked before the work starts.
        needs_hub: bool,
        /// Whether it is of a fork's pull request, whose token is read-only.
        of_fork: bool,
    },
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Whether Sprag runs as root.
    pub is_root: bool,
    /// Whether a program can run in its own user namespace.
    pub user_namespaces: Option<bool>,
    /// Whether the kernel has the Landlock that Sprag's sandbox needs.
    pub landlock: bool,
    /// How a run's children would be confined, or `None` if that could not be tested.
    pub confinement: Option<Confinement>,
    /// Whether orphaned processes of an agent become Sprag's children.
    pub subreaper: bool,
    /// Whether the system lists its processes. Without a list, Sprag does not find those that an agent leaves behind.
    pub lists_processes: bool,
    /// The directory for the files of a run.
    pub run_directory: Place,
    /// The directory for locks.
    pub state_directory: Place,
    /// The home directory of agents, or `None` if `HOME` is not set.
    pub home: Option<Place>,
    /// The directory for temporary files.
    pub temporary: Place,
}

/// How the children of a run would be confined here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// The setting `sandbox`.
    pub setting: Sandbox,
    /// The level that a run gets.
    pub line: SandboxLine,
    /// The highest available level, and why it is not the third.
    pub highest: SandboxLine,
    /// What prevents programs from creating namespaces, as far as the system shows.
    pub obstacle: Obstacle,
}

/// What prevents programs from creating namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// AppArmor denies them to ordinary users, as in Ubuntu from 23.10 on.
    AppArmor,
    /// The kernel's limit of user namespaces is 0, or it denies them to ordinary users.
    Limit,
    /// This is a container.
    Container,
    /// No known obstacle.
    Unknown,
}

/// A directory that may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: String,
    /// Whether it exists, or need not exist yet.
    pub exists: bool,
    /// Whether it, or its nearest existing parent, is writable.
    pub writable: bool,
    /// Free space in bytes.
    pub free: Option<u64>,
}
