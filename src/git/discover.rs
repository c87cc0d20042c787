//! Finds the repository, and refuses one that cannot be worked on safely.

use crate::git::bytes::{as_path, nul_ended};
use crate::git::command::{Call, GitProgram};
use crate::git::damage;
use crate::git::error::io_error;
use crate::git::files::is_there;
use crate::git::jj::{self, Workspace};
use crate::git::preflight::{OLDEST_GIT, Operation, PreflightError};
use crate::git::real::{Environment, FilterSandbox, Real, identity};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of a git command before a run, for which a person waits. Each reads only a few small files.
pub(crate) const QUERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Finds the repository that contains `start`.
///
/// # Errors
/// [`PreflightError`] if there is no repository or Sprag cannot work on it.
pub fn discover(start: &Path, environment: &Environment) -> Result<Real, PreflightError> {
    let search_path = environment.get("PATH").unwrap_or_default();
    let alone = jj::root_of(start)
        .map(|root| Workspace::open(root, environment))
        .transpose()?;
    let top = start.ancestors().find(|dir| is_there(&dir.join(".git")));
    let forbidden = alone.as_ref().map(|jj| jj.root.as_path()).or(top);
    let git =
        GitProgram::find("git", search_path, forbidden.unwrap_or(start)).ok_or_else(no_git)?;
    let seen_through = match &alone {
        Some(jj) => Some((jj.git_dir(&git, environment)?, jj.root.clone())),
        None => None,
    };
    let dot_git = match &seen_through {
        Some((git_dir, _)) => Some(git_dir.clone()),
        None => top.map(|top| top.join(".git")),
    };
    if let Some(dot_git) = dot_git {
        damage::refuse_unusable(&dot_git)?;
    }
    let asked = Discovery {
        git: &git,
        start,
        environment,
        seen_through,
    };
    let version = git.call(Path::new("/")).words("--version").line()?;
    if is_older(&version, OLDEST_GIT) {
        let (major, minor) = OLDEST_GIT;
        return Err(PreflightError::Machine(format!(
            "git {version} is too old; install git {major}.{minor} or later"
        )));
    }
    let object_format = asked.object_format()?;
    let work_tree = asked.path("--show-toplevel")?;
    let git_dir = asked.path("--absolute-git-dir")?;
    let common_dir = asked.path("--git-common-dir")?;
    let git = GitProgram::find("git", search_path, &work_tree).ok_or_else(no_git)?;
    refuse_foreign_owner(&[&work_tree, &git_dir], &asked)?;
    if let Some(operation) = Operation::under_way(&git_dir) {
        return Err(PreflightError::Repository(format!(
            "{operation} is in progress; finish it or run `{}`",
            operation.abort
        )));
    }
    let identity = [identity(&git_dir), identity(&work_tree)];
    if identity.contains(&None) {
        return Err(asked.missing());
    }
    let environment = environment.clone();
    Ok(Real {
        work_tree,
        git_dir,
        common_dir,
        object_format,
        git,
        environment,
        identity,
        filters: FilterSandbox::default(),
        is_jj_alone: alone.is_some(),
    })
}

fn no_git() -> PreflightError {
    let (major, minor) = OLDEST_GIT;
    PreflightError::Machine(format!(
        "git was not found on PATH; install git {major}.{minor} or later"
    ))
}

/// Queries git about the directory in which Sprag was started.
struct Discovery<'a> {
    git: &'a GitProgram,
    start: &'a Path,
    environment: &'a Environment,
    /// The git directory and the work tree, if git does not find them by itself.
    seen_through: Option<(PathBuf, PathBuf)>,
}

impl Discovery<'_> {
    fn call(&self) -> Call<'_> {
        let call = self.git.call(self.start).timeout(QUERY_TIMEOUT);
        match &self.seen_through {
            Some((git_dir, work_tree)) => {
                call.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", work_tree)
            }
            None => call,
        }
    }

    /// The object format, if there is a repository with a work tree.
    fn object_format(&self) -> Result<String, PreflightError> {
        if !self.start.is_dir() {
            return Err(self.missing());
        }
        let questions = [
            "--is-bare-repository",
            "--is-inside-git-dir",
            "--show-object-format",
        ];
        let answers = self.answer(&questions)?;
        let answers = String::from_utf8_lossy(&answers);
        let mut answers = answers.lines();
        if answers.next() == Some("true") {
            return Err(self.refused("is a bare repository; run in a checkout with a work tree"));
        }
        if answers.next() == Some("true") {
            return Err(self.refused("is inside a git directory; run in the work tree"));
        }
        Ok(answers.next().unwrap_or_default().to_owned())
    }

    fn path(&self, question: &str) -> Result<PathBuf, PreflightError> {
        let answer = self.answer(&[question])?;
        let path = self.start.join(as_path(&answer));
        Ok(fs::canonicalize(&path).map_err(io_error("resolve", &path))?)
    }

    /// [`refuse_foreign_owner`] checks the ownership instead, with its own message.
    fn answer(&self, questions: &[&str]) -> Result<Vec<u8>, PreflightError> {
        let call = self
            .call()
            .words("-c safe.directory=* rev-parse")
            .args(questions);
        let output = call.status()?;
        if output.is_success() {
            let answer = output.stdout.strip_suffix(b"\n");
            return Ok(answer.unwrap_or(&output.stdout).to_vec());
        }
        if output.stderr.contains("not a git repository") {
            return Err(self.missing());
        }
        Err(PreflightError::Repository(format!(
            "git cannot open the repository {}: {}",
            self.start.display(),
            output.stderr
        )))
    }

    fn missing(&self) -> PreflightError {
        let why =
            "is not inside a git repository; check one out (actions/checkout) or run git init";
        self.refused(why)
    }

    fn refused(&self, why: &str) -> PreflightError {
        PreflightError::Repository(format!("{} {why}", self.start.display()))
    }

    /// The values of `safe.directory` from the places where git accepts them: outside of the repository.
    fn safe_directories(&self) -> Result<Vec<Vec<u8>>, PreflightError> {
        let call = self.environment.with_user(self.git.call(Path::new("/")));
        let call = call.env("GIT_DIR", "/dev/null");
        let listed = call
            .words("config -z --type=path --get-all safe.directory")
            .status()?;
        Ok(nul_ended(&listed.stdout)
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect())
    }
}

/// Whether a version of git is older than another one.
pub(crate) fn is_older(version: &str, than: (u32, u32)) -> bool {
    let numbers = version.trim_start_matches("git version ").split('.');
    let mut numbers = numbers.map_while(|part| part.parse::<u32>().ok());
    let found = numbers.next().zip(numbers.next());
    found.is_some_and(|found| found < than)
}

/// Root may work in anybody's checkout, as is usual in a container job. Other users may work only in their
/// own checkout or in one that `safe.directory` lists.
fn refuse_foreign_owner(dirs: &[&PathBuf], asked: &Discovery<'_>) -> Result<(), PreflightError> {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return Ok(());
    }
    let user = user.as_raw();
    for dir in dirs {
        let owner = fs::symlink_metadata(dir).map_or(user, |meta| meta.uid());
        if owner == user || is_listed(&asked.safe_directories()?, dirs) {
            continue;
        }
        let dir = dir.display();
        return Err(PreflightError::Machine(format!(
            "{dir} belongs to user {owner}, not to user {user}; run as its owner or run `git config --global --add safe.directory {dir}`"
        )));
    }
    Ok(())
}

/// An empty value clears the entries before it. A trailing `/*` matches everything below.
fn is_listed(values: &[Vec<u8>], dirs: &[&PathBuf]) -> bool {
    let mut listed = false;
    for value in values {
        let is_one = |dir: &&PathBuf| match value.strip_suffix(b"/*") {
            Some(parent) => dir.starts_with(as_path(parent)),
            None => fs::canonicalize(as_path(value)).is_ok_and(|path| path == **dir),
        };
        listed = match value.as_slice() {
            b"" => false,
            b"*" => true,
            _ => listed || dirs.iter().any(is_one),
        };
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(values: &[&str]) -> bool {
        let values: Vec<Vec<u8>> = values
            .iter()
            .map(|value| value.as_bytes().to_vec())
            .collect();
        is_listed(&values, &[&PathBuf::from("/srv/repo")])
    }

    #[test]
    fn a_directory_is_safe_as_git_reads_the_list() {
        assert!(listed(&["*"]));
        assert!(listed(&["/srv/*"]));
        assert!(listed(&["/other", "", "/srv/*"]));
        assert!(!listed(&["*", "", "/other"]));
        assert!(!listed(&[]));
        assert!(!listed(&["/sr/*"]));
    }
}
