//! Repository files that configure an agent: `CLAUDE.md`, `.claude/` and similar. On a pull request the
//! agent sees the base branch's version of them, because the hooks and servers that they name start
//! before any model has read a word.

use crate::agents;
use crate::agents::RepositoryFiles;
use crate::context::Context;
use crate::domain::settings::AgentConfig;
use crate::domain::snapshot::RevId;
use crate::error::{Error, Result};
use crate::git::{BranchName, Repo, display_path};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::process::Cancel;
use crate::settings::agent_file_set;
use globset::GlobSet;

/// Where the agent's configuration files come from in every turn.
#[derive(Debug, Clone, Default)]
pub enum AgentFiles {
    /// From the work tree.
    #[default]
    Present,
    /// The files matched by `which` are replaced with their version in `commit`, or removed if there is
    /// none.
    From {
        /// The commit that provides the files.
        commit: Option<RevId>,
        /// The branch whose tip `commit` is, for messages.
        branch: Option<String>,
        /// Patterns of the configuration files.
        which: GlobSet,
    },
}

impl AgentFiles {
    /// Resolves the setting for a run. Without a setting, a pull request uses the base branch, whose tip
    /// is fetched.
    ///
    /// # Errors
    /// When no base branch is known, or its tip cannot be fetched. There is no fallback.
    pub(crate) fn resolve(
        context: &Context,
        repo: &Repo,
        set: Option<AgentConfig>,
        request: Option<&RunRequest>,
    ) -> Result<Self> {
        let is_pull = request.is_some_and(|request| request.is_pull);
        let branch = match set {
            Some(AgentConfig::Head) => return Ok(Self::Present),
            None if !is_pull => return Ok(Self::Present),
            Some(AgentConfig::None) => None,
            Some(AgentConfig::Base) | None => Some(base_branch(request)?),
        };
        let commit = match &branch {
            None => None,
            Some(name) => Some(tip(context, repo, name)?),
        };
        let which = agent_file_set(agents::configuration())?;
        Ok(Self::From {
            commit,
            branch,
            which,
        })
    }

    /// The branch whose version of a file the agent sees instead of the present one. The outer `None` means
    /// that it sees the present one, the inner one that it sees no such file.
    pub fn instead_of(&self, path: &[u8]) -> Option<Option<&str>> {
        match self {
            Self::From { branch, which, .. } if which.is_match(display_path(path)) => {
                Some(branch.as_deref())
            }
            _ => None,
        }
    }

    /// What the prompt tells the agent about these files.
    pub fn prompt_files(&self) -> RepositoryFiles {
        match self {
            Self::Present => RepositoryFiles::AsTheyAre,
            Self::From {
                commit: Some(_), ..
            } => RepositoryFiles::OfTheBase,
            Self::From { commit: None, .. } => RepositoryFiles::Absent,
        }
    }
}

fn base_branch(request: Option<&RunRequest>) -> Result<String> {
    let branch = request.and_then(|request| request.base_ref.clone());
    branch.ok_or_else(|| {
        Error::config("agent_config is base, but the base branch is unknown")
            .hint("base needs an event that names one, such as a pull request; otherwise use head or none")
    })
}

fn tip(context: &Context, repo: &Repo, branch: &str) -> Result<RevId> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::environment(format!(
            "the agent's configuration cannot be read from {branch}: {error}"
        ))
        .hint("give the job's token `contents: read`; `agent_config: none` works without any configuration of the repository")
    };
    let name = BranchName::parse(branch).map_err(|error| failed(&error))?;
    let actions =
        ActionsEnvironment::of(context).ok_or_else(|| failed(&"there is no access to GitHub"))?;
    let remote = remote(context, &actions).map_err(|error| failed(&error))?;
    let cancel = Cancel::new();
    let tip = repo
        .ls_remote(&remote, &name.full(), &cancel)
        .map_err(|error| failed(&error))?
        .ok_or_else(|| {
            Error::environment(format!(
                "the agent's configuration cannot be read: the base branch {branch} is gone"
            ))
            .hint("choose another base for the pull request, or set `agent_config: none`")
        })?;
    repo.fetch_for(&remote, &tip, &cancel)
        .map_err(|error| failed(&error))?;
    Ok(tip)
}
