//! The git side of the repository: the bare repository that is attached, or what the state holds
//! without one.

use super::state::{Commit, State};
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
        let listed = git(bare, &["for-each-ref", "--format=%(refname) %(objectname)"]);
        let lines = listed.lines().filter_map(|line| line.split_once(' '));
        lines
            .map(|(name, sha)| (name.to_owned(), sha.to_owned()))
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
        let whole = sha.len() == 40 && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
        let format = "--format=%T%n%P%n%an%n%ae%n%aI%n%B";
        let shown = whole.then(|| {
            try_git(
                bare,
                &["show", "--no-patch", format, &format!("{sha}^{{commit}}")],
                &[],
                b"",
            )
        })?;
        let shown = shown.ok()?;
        let mut lines = shown.splitn(6, '\n').map(str::to_owned);
        let mut line = || lines.next().unwrap_or_default();
        Some(Commit {
            sha: sha.to_owned(),
            tree: line(),
            parents: line().split_whitespace().map(str::to_owned).collect(),
            author: line(),
            email: line(),
            date: line(),
            message: line().trim_end().to_owned(),
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
            Some(bare) => drop(git(bare, &["update-ref", name, sha])),
            None => drop(self.refs.insert(name.to_owned(), sha.to_owned())),
        }
    }

    /// Removes a ref.
    pub fn remove_ref(&mut self, name: &str) {
        match &self.bare {
            Some(bare) => drop(git(bare, &["update-ref", "-d", name])),
            None => drop(self.refs.remove(name)),
        }
    }

    /// Whether `descendant` has `ancestor` in its history; true where nothing is known of either.
    pub fn descends(&self, descendant: &str, ancestor: &str) -> bool {
        let Some(bare) = &self.bare else { return true };
        let asked = ["merge-base", "--is-ancestor", ancestor, descendant];
        try_git(bare, &asked, &[], b"").is_ok()
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
    let scratch = tempfile::tempdir().unwrap();
    let index = scratch.path().join("index");
    let email = format!("{author}@users.noreply.github.invalid");
    let env = [
        ("GIT_INDEX_FILE", index.to_str().unwrap()),
        ("GIT_AUTHOR_NAME", author),
        ("GIT_AUTHOR_EMAIL", &email),
        ("GIT_COMMITTER_NAME", "GitHub"),
        ("GIT_COMMITTER_EMAIL", "noreply@github.invalid"),
    ];
    let run = |args: &[&str], input: &[u8]| {
        try_git(bare, args, &env, input).map(|text| text.trim_end().to_owned())
    };
    run(&["read-tree", parent], b"")?;
    let mut entries = String::new();
    for (path, contents) in changes {
        let listed = run(&["ls-tree", parent, "--", path], b"")?;
        if let Some(contents) = contents {
            // The request cannot say a mode, so that of the file stays.
            let mode = listed.split(' ').next().filter(|mode| !mode.is_empty());
            let blob = run(&["hash-object", "-w", "--stdin"], contents)?;
            entries += &format!("{} {blob}\t{path}\n", mode.unwrap_or("100644"));
        } else if listed.is_empty() {
            return Err(format!("{path} is to be deleted and does not exist"));
        } else {
            entries += &format!("0 {}\t{path}\n", "0".repeat(40));
        }
    }
    run(
        &["update-index", "--add", "--index-info"],
        entries.as_bytes(),
    )?;
    let tree = run(&["write-tree"], b"")?;
    run(&["commit-tree", &tree, "-p", parent], message.as_bytes())
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
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}
