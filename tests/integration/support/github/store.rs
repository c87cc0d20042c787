//! The git side of the repository: the bare repository that is attached, or what the state holds
//! without one.

use super::super::project::NO_MAINTENANCE;
use super::state::{Commit, State};
use git2::build::TreeUpdateBuilder;
use git2::{FileMode, Oid, Repository, Signature};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a commit changes: paths and their new contents, or none for a deletion.
pub type Changes = Vec<(String, Option<Vec<u8>>)>;

impl State {
    /// Every ref and what it points to.
    pub fn all_refs(&self) -> BTreeMap<String, String> {
        let Some(bare) = &self.bare else {
            return self.refs.clone();
        };
        let repository = open(bare);
        let refs = repository.references().unwrap().flatten();
        refs.filter_map(|it| Some((it.name().ok()?.to_owned(), it.target()?.to_string())))
            .collect()
    }

    /// What a ref (`refs/heads/main`) points to.
    pub fn sha_of(&self, name: &str) -> Option<String> {
        self.all_refs().remove(name)
    }

    /// The commit that a SHA, a branch or a tag names.
    pub fn resolved(&self, name: &str) -> Option<String> {
        let refs = self.all_refs();
        let full = ["", "refs/", "refs/heads/", "refs/tags/"].map(|start| format!("{start}{name}"));
        let found = full.iter().find_map(|full| refs.get(full).cloned());
        found.or_else(|| self.commit(name).map(|commit| commit.sha))
    }

    /// A commit by its full SHA.
    pub fn commit(&self, sha: &str) -> Option<Commit> {
        let Some(bare) = &self.bare else {
            let pointed_to = self.refs.values().any(|known| known == sha);
            let bare_sha = pointed_to.then(|| Commit {
                sha: sha.to_owned(),
                date: self.now(),
                ..Commit::default()
            });
            return self.commits.get(sha).cloned().or(bare_sha);
        };
        let repository = open(bare);
        let id = Oid::from_str(sha).ok().filter(|_| sha.len() == 40)?;
        let commit = repository.find_commit(id).ok()?;
        let author = commit.author();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(Commit {
            sha: sha.to_owned(),
            tree: commit.tree_id().to_string(),
            parents: commit.parent_ids().map(|id| id.to_string()).collect(),
            author: text(author.name_bytes()),
            email: text(author.email_bytes()),
            date: date_of(author.when()),
            message: text(commit.message_bytes()).trim_end().to_owned(),
        })
    }

    /// Whether a check run can hang on this commit.
    pub fn knows(&self, sha: &str) -> bool {
        // Without a repository behind it the model takes every SHA for a commit.
        self.bare.is_none() || self.commit(sha).is_some()
    }

    /// Points a ref somewhere.
    pub fn set_ref(&mut self, name: &str, sha: &str) {
        match &self.bare {
            Some(bare) => {
                let id = Oid::from_str(sha).unwrap();
                open(bare).reference(name, id, true, "").unwrap();
            }
            None => drop(self.refs.insert(name.to_owned(), sha.to_owned())),
        }
    }

    /// Removes a ref.
    pub fn remove_ref(&mut self, name: &str) {
        match &self.bare {
            Some(bare) => open(bare)
                .find_reference(name)
                .and_then(|mut it| it.delete())
                .unwrap(),
            None => drop(self.refs.remove(name)),
        }
    }

    /// Whether `descendant` has `ancestor` in its history; true where nothing is known of either.
    pub fn descends(&self, descendant: &str, ancestor: &str) -> bool {
        let Some(bare) = &self.bare else { return true };
        let repository = open(bare);
        let known = |name: &str| repository.revparse_single(name).map(|it| it.id());
        let ids = known(descendant).and_then(|of| Ok((of, known(ancestor)?)));
        ids.is_ok_and(|(of, above)| {
            of == above || repository.graph_descendant_of(of, above).unwrap_or(false)
        })
    }

    /// Makes a commit that GitHub signs, on top of `parent`, and returns its SHA.
    pub fn make_commit(
        &mut self,
        parent: &str,
        author: &str,
        message: &str,
        changes: &Changes,
    ) -> Result<String, String> {
        let sha = match &self.bare {
            Some(bare) => commit_in(bare, parent, author, message, changes)?,
            None => format!("{:040x}", self.new_id()),
        };
        let commit = Commit {
            sha: sha.clone(),
            parents: vec![parent.to_owned()],
            message: message.to_owned(),
            author: author.to_owned(),
            date: self.now(),
            ..Commit::default()
        };
        self.commits.insert(sha.clone(), commit);
        self.signed.insert(sha.clone());
        Ok(sha)
    }
}

fn commit_in(
    bare: &Path,
    parent: &str,
    author: &str,
    message: &str,
    changes: &Changes,
) -> Result<String, String> {
    let email = format!("{author}@users.noreply.github.invalid");
    let author = Signature::now(author, &email).unwrap();
    let committer = Signature::now("GitHub", "noreply@github.invalid").unwrap();
    let repository = open(bare);
    let sha = commit_on(&repository, parent, [&author, &committer], message, changes)?;
    Ok(sha.to_string())
}

/// Makes a commit on top of the commit that `parent` names, which no ref points to.
pub fn commit_on(
    repository: &Repository,
    parent: &str,
    [author, committer]: [&Signature<'_>; 2],
    message: &str,
    changes: &Changes,
) -> Result<Oid, String> {
    let said = |error: git2::Error| error.message().to_owned();
    let parent = repository
        .revparse_single(parent)
        .and_then(|it| it.peel_to_commit())
        .map_err(said)?;
    let base = parent.tree().map_err(said)?;
    let mut update = TreeUpdateBuilder::new();
    for (path, contents) in changes {
        // The request cannot say a mode, so that of the file stays.
        let old = base.get_path(Path::new(path)).ok();
        let mode = match old.map(|entry| entry.filemode()) {
            None if contents.is_none() => {
                return Err(format!("{path} is to be deleted and does not exist"));
            }
            Some(0o100_755) => FileMode::BlobExecutable,
            Some(0o120_000) => FileMode::Link,
            _ => FileMode::Blob,
        };
        match contents {
            None => update.remove(path),
            Some(contents) => {
                let blob = repository.blob(contents).map_err(said)?;
                update.upsert(path, blob, mode)
            }
        };
    }
    let tree = update.create_updated(repository, &base).map_err(said)?;
    let tree = repository.find_tree(tree).map_err(said)?;
    repository
        .commit(None, author, committer, message, &tree, &[&parent])
        .map_err(said)
}

/// Opens the bare repository within this process, which is much faster than a child for each question.
pub fn open(bare: &Path) -> Repository {
    Repository::open_bare(bare).unwrap()
}

/// As `%aI` of git: `2026-11-21T10:00:00+00:00`.
fn date_of(time: git2::Time) -> String {
    let offset = jiff::tz::Offset::from_seconds(time.offset_minutes() * 60).unwrap();
    let at = jiff::Timestamp::from_second(time.seconds())
        .unwrap()
        .to_zoned(offset.to_time_zone());
    at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// Runs git in a bare repository and returns what it printed.
pub fn git(bare: &Path, args: &[&str]) -> String {
    try_git(bare, args, &[], b"").unwrap_or_else(|error| panic!("git {args:?}: {error}"))
}

/// As [`git`], with more environment and an input; what it says when it fails.
pub fn try_git(
    bare: &Path,
    args: &[&str],
    env: &[(&str, &str)],
    input: &[u8],
) -> Result<String, String> {
    let mut child = scrubbed("git", bare)
        .arg("--git-dir")
        .arg(bare)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // git may have its answer before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A program that sees nothing of this process's environment and no configuration but the
/// repository's own.
pub fn scrubbed(program: &str, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(home)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("LANG", "C.UTF-8")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs(NO_MAINTENANCE);
    command
}
