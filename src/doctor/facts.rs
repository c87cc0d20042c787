//! What was found out about the place that a run would work in.

use crate::agents::{CliSpec, Login};
use crate::domain::sandbox::{GatewayLine, SandboxLine};
use crate::domain::settings::Sandbox;
use crate::domain::snapshot::RevId;
pub use crate::git::{Dirt, Nested};
pub use crate::github::api::Standing;

/// Everything that was looked at.
#[derive(Debug, Clone)]
pub struct Facts {
    /// Whether this is a step of a GitHub Actions job.
    pub in_actions: bool,
    /// The git program; `None` without one.
    pub git: Option<Program>,
    /// The repository, or why there is none to work in.
    pub repository: Result<Repository, Trouble>,
    /// The configuration, or what is wrong with it.
    pub configuration: Result<Configuration, Trouble>,
    /// The agent that a task without an agent of its own gets; `None` where the configuration does
    /// not tell.
    pub agent: Option<Agent>,
    /// GitHub.
    pub actions_job: ActionsJob,
    /// What the event of this job asks for.
    pub trigger: Trigger,
    /// The way out of this machine.
    pub network: Network,
    /// The machine.
    pub machine: Machine,
}

/// How connections leave this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The servers that a run connects to, and how each is reached.
    pub routes: Vec<(String, Result<Route, Trouble>)>,
    /// What is trusted, in words, or why that cannot be told.
    pub certificates: Result<String, Trouble>,
}

/// The way to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// No proxy is used.
    Direct,
    /// Through a proxy.
    Proxy {
        /// Its address, without user and password.
        proxy: String,
        /// The variable that names it.
        variable: String,
    },
}

/// Something that does not work, in a lowercase fragment, and what to do about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trouble {
    /// What is wrong.
    pub message: String,
    /// What to do, one text each.
    pub hints: Vec<String>,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Where it is.
    pub path: String,
    /// The version that it names.
    pub version: String,
}

/// An answer, or why there is none.
pub type Asked<T> = Result<T, String>;

/// A repository that can be worked in.
#[derive(Debug, Clone)]
pub struct Repository {
    /// The top of the work tree.
    pub work_tree: String,
    /// A directory of it that this user cannot write.
    pub closed: Option<String>,
    /// A lock of git's without which nothing is committed, where somebody holds it.
    pub lock: Option<String>,
    /// Who git's configuration says commits, as `Name <mail>`.
    pub identity: Asked<Option<String>>,
    /// What differs from HEAD.
    pub dirt: Asked<Dirt>,
    /// What is checked out.
    pub checkout: Asked<Checkout>,
    /// Credentials in git's configuration.
    pub credentials: Asked<Vec<Credential>>,
    /// What is not in the repository itself.
    pub nested: Asked<Nested>,
    /// jj, where the repository is one of its, too.
    pub jj: Option<Jj>,
}

/// A repository of jj's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jj {
    /// Whether no `.git` is beside `.jj`.
    pub alone: bool,
    /// Whether the program is on PATH.
    pub installed: bool,
}

/// What is checked out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkout {
    /// The branch; `None` for a detached HEAD.
    pub branch: Option<String>,
    /// The commit; `None` before the first one.
    pub commit: Option<RevId>,
    /// The refs that name that commit, in full.
    pub refs: Vec<String>,
    /// How many commits are there, where the history is cut off.
    pub depth: Option<u64>,
}

/// A credential in git's configuration: where, never what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The key, without what may be secret in it.
    pub key: String,
    /// The file.
    pub file: String,
    /// Whether the repository's own configuration has or includes it, and not the user's.
    pub local: bool,
}

/// A configuration that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The file; `None` where there is none.
    pub file: Option<String>,
    /// Names of the checks that every task gets.
    pub checks: Vec<String>,
    /// Programs of checks and setup commands that are not there.
    pub missing: Vec<MissingProgram>,
    /// Whether setup commands run before the first turn, which may install programs.
    pub has_setup: bool,
    /// Whether a task without a check fails.
    pub unverified_fails: bool,
    /// Whether a run may start on a dirty tree.
    pub allow_dirty: bool,
    /// What the run is told to do on GitHub.
    pub delivery: Delivery,
}

/// A program that a command needs and that was not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingProgram {
    /// Which command, as a person knows it.
    pub of: String,
    /// Whether it is a setup command.
    pub in_setup: bool,
    /// The program as the command names it.
    pub program: String,
}

/// What a run is told to do on GitHub, whatever the surroundings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivery {
    /// `push`, where it is set; otherwise what an event asks for is pushed.
    pub push: Option<bool>,
    /// `pull_request: draft` or `ready`.
    pub pull_request: bool,
    /// `report: github`.
    pub report: bool,
    /// `dispatch_workflows`.
    pub dispatch: bool,
}

/// The agent, and whether it was chosen by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Whether nobody named it.
    pub auto: bool,
    /// Which one.
    pub kind: AgentKind,
    /// Whether its key stays with Sprag, where it asks a model itself.
    pub gateway: Option<GatewayLine>,
    /// Whether its key has to stay there.
    pub requires_gateway: bool,
}

/// Agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// There is none.
    None(Trouble),
    /// The built-in one.
    Builtin {
        /// The model.
        model: String,
        /// The provider.
        provider: String,
        /// Where it is asked, without user and password.
        base: String,
        /// The variable with the key; `None` where no key is used.
        key: Option<String>,
    },
    /// The built-in one with a recording in the model's place, and what is in that.
    Recording(String),
    /// A coding agent that is a program.
    Cli(Cli),
    /// A command of the user's.
    Command {
        /// The program that it begins with, as far as that can be told.
        program: Option<String>,
        /// Whether that program is there; `None` where it cannot be told.
        found: Option<bool>,
    },
}

/// A coding agent that is a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cli {
    /// Which one.
    pub spec: &'static CliSpec,
    /// Where it is, if it is there.
    pub path: Option<String>,
    /// What it says of its version, or why it says nothing.
    pub version: Asked<String>,
    /// How it is logged in.
    pub login: Login,
}

/// Whether this is a step of a job of GitHub Actions, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionsJob {
    /// This is no step of a job.
    Outside,
    /// This is one.
    Inside(JobFacts),
}

/// GitHub, seen from a step of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// `owner/name`, where it is told.
    pub repository: Option<String>,
    /// The address of the API.
    pub api: String,
    /// The token's kind; `None` without a token.
    pub token: Option<TokenKind>,
    /// What GitHub said; `None` where it was not asked.
    pub answer: Option<Result<Answer, Refused>>,
}

/// What GitHub said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// `owner/name` as GitHub spells it.
    pub repository: String,
    /// Whether only some can see it.
    pub private: bool,
    /// Whether nothing can be written to it any more.
    pub archived: bool,
    /// Whose token it is, where GitHub says.
    pub login: Option<String>,
    /// Requests that are left, and how many there are in an hour.
    pub rate: Option<(u64, u64)>,
    /// What the token may do.
    pub rights: Vec<Right>,
    /// Why not all was found out.
    pub broke_off: Option<String>,
}

/// What a token may do in one area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// As a workflow's `permissions` name it.
    pub area: Area,
    /// Read.
    pub read: Standing,
    /// Write.
    pub write: Standing,
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

/// Why GitHub said nothing of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What kind of reason.
    pub kind: RefusedKind,
    /// The reason.
    pub message: String,
}

/// Kinds of reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusedKind {
    /// The token is not accepted.
    Token,
    /// The repository is not there for this token.
    Repository,
    /// GitHub cannot be reached, or has no more requests for this token.
    Away,
    /// Nothing was sent, because of a setting.
    Setting,
}

/// Kinds of tokens, by how they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// `ghs_`: the job's own, or an app's.
    Installation,
    /// `ghp_`: a classic personal one.
    Classic,
    /// `github_pat_`: a fine-grained personal one.
    FineGrained,
    /// `gho_`, `ghu_`: of a person who let an app act.
    OnBehalf,
    /// None of these.
    Other,
}

impl TokenKind {
    /// Tells the kind by the beginning.
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

    /// Whether it acts as a person, who cannot write check runs.
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
        /// Why.
        reason: String,
    },
    /// What it asks for is refused.
    Refused {
        /// Its name.
        event: String,
        /// Why.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// It asks for something.
    Asks {
        /// Its name.
        event: String,
        /// Who asks.
        who: Option<String>,
        /// For what.
        what: String,
        /// Whether GitHub must be asked before it is begun.
        needs_hub: bool,
        /// Whether it is of a fork's pull request, whose token only reads.
        of_fork: bool,
    },
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Whether Sprag runs as root.
    pub is_root: bool,
    /// Whether a program can be given a user namespace of its own.
    pub user_namespaces: Option<bool>,
    /// Whether the kernel has Landlock.
    pub landlock: Option<bool>,
    /// How far a run's children would be confined; `None` where that could not be tried.
    pub confinement: Option<Confinement>,
    /// Whether orphans of an agent come to Sprag.
    pub subreaper: bool,
    /// Where a run would keep what it leaves behind.
    pub run_directory: Place,
    /// Where locks are.
    pub state_directory: Place,
    /// The home of agents; `None` where `HOME` is not set.
    pub home: Option<Place>,
    /// Where temporary files go.
    pub temporary: Place,
}

/// How far the children of a run would be confined here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// The setting `sandbox`.
    pub setting: Sandbox,
    /// What a run gets.
    pub line: SandboxLine,
    /// The highest level that can be had, and why it is not the third.
    pub highest: SandboxLine,
    /// What keeps programs from namespaces of their own, as far as the system tells.
    pub obstacle: Obstacle,
}

/// What keeps programs from namespaces of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// AppArmor forbids them to ordinary users, as in Ubuntu from 23.10 on.
    AppArmor,
    /// The kernel's limit of user namespaces is 0, or it forbids them to ordinary users.
    Limit,
    /// This is a container.
    Container,
    /// Nothing that the system tells of.
    Unknown,
}

/// A directory, which need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its path.
    pub path: String,
    /// Whether it, or what it would be made in, can be written.
    pub writable: bool,
    /// Bytes that are free there.
    pub free: Option<u64>,
}
