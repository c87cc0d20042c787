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

/// Words in the names of files with instructions for agents, besides those of the known ones.
const INSTRUCTIONS: [&str; 6] = [
    "agent",
    "instruction",
    "rules",
    "conventions",
    "copilot",
    "prompt",
];

/// Files that configure programs before they read anything else, without a hidden name.
const LOADED: &[&str] = &["bunfig.toml"];

/// Hidden files that only git reads.
const OF_GIT: &[&str] = &[
    ".gitattributes",
    ".gitignore",
    ".gitkeep",
    ".gitmodules",
    ".mailmap",
];

/// Whether a path may configure an agent or what it starts: a hidden file or directory, or a document with a name like
/// those of instructions, at any depth.
fn configures(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let mut parts = path.split('/');
    let is_hidden = parts.any(|part| part.starts_with('.') && !OF_GIT.contains(&part));
    let is_document = name.ends_with(".md") || name.ends_with(".mdc");
    let is_instruction = is_document && INSTRUCTIONS.iter().any(|word| name.contains(word));
    is_hidden || is_instruction || LOADED.contains(&name.as_str())
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
        let commit = branch.as_ref().map(|name| tip(context, repo, name));
        Ok(Self::From {
            commit: commit.transpose()?,
            branch,
            which: agent_file_set(agents::configuration())?,
        })
    }

    /// The branch whose version of a file the agent sees instead of the present one. The outer `None` means
    /// that it sees the present one, the inner one that it sees no such file.
    pub fn instead_of(&self, path: &[u8]) -> Option<Option<&str>> {
        match self {
            Self::From { branch, .. } if self.cover(path, "") => Some(branch.as_deref()),
            _ => None,
        }
    }

    /// Whether a path is one of these files, for a task with this text: what the text names is the task's.
    pub fn cover(&self, path: &[u8], task: &str) -> bool {
        let path = display_path(path);
        let name = path.rsplit('/').next().unwrap_or(&path);
        let Self::From { which, .. } = self else {
            return false;
        };
        which.is_match(&path) || (configures(&path) && !task.contains(name))
    }

    /// What the prompt tells the agent about these files.
    pub fn prompt_files(&self) -> RepositoryFiles {
        match self {
            Self::Present => RepositoryFiles::AsTheyAre,
            Self::From { commit, .. } if commit.is_some() => RepositoryFiles::OfTheBase,
            Self::From { .. } => RepositoryFiles::Absent,
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
    let tip = repo.ls_remote(&remote, &name.full(), &cancel);
    let tip = tip.map_err(|error| failed(&error))?.ok_or_else(|| {
        Error::environment(format!(
            "the agent's configuration cannot be read: the base branch {branch} is gone"
        ))
        .hint("choose another base for the pull request, or set `agent_config: none`")
    })?;
    let fetched = repo.fetch_for(&remote, &tip, &cancel);
    fetched.map(|_| tip).map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_configure_an_agent_is_told_by_its_kind() {
        for path in [
            "AGENTS.override.md",
            "a/b/.claude/settings.json",
            ".agents/skills/x/SKILL.md",
            ".codex/config.toml",
            ".env",
            "web/bunfig.toml",
            "docs/copilot-instructions.md",
            ".vscode/tasks.json",
            "Conventions.md",
        ] {
            assert!(configures(path), "{path}");
        }
        for path in [
            "README.md",
            "src/agent.rs",
            "docs/guide.md",
            "package.json",
            "agents.txt",
        ] {
            assert!(!configures(path), "{path}");
        }
        let base = AgentFiles::From {
            commit: None,
            branch: None,
            which: GlobSet::empty(),
        };
        assert!(base.cover(b".envrc", "fix it"));
        assert!(!base.cover(b".envrc", "set X in .envrc"));
        assert!(!AgentFiles::Present.cover(b".envrc", "fix it"));
    }
}
