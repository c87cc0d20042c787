//! The files through which a job communicates with its runner. Only Sprag writes to them, and only at
//! the end.

use crate::context::{Context, RUNNER_FILES};
use crate::plain_file;
use crate::report::append::{no_follow, no_wait};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The largest file, in bytes, that is kept in memory. GitHub accepts 1 MiB.
const LIMIT: u64 = 16 << 20;

/// The runner's files as they were at the start of the run.
#[derive(Debug, Default)]
pub struct RunnerFiles {
    files: Vec<RunnerFile>,
}

#[derive(Debug)]
struct RunnerFile {
    variable: &'static str,
    path: PathBuf,
    /// The original content; `None` if the file did not exist.
    content: Option<Vec<u8>>,
    mode: u32,
}

impl RunnerFiles {
    /// Reads the files. Skips a path that is not a regular file or is too large.
    pub fn record(context: &Context) -> Self {
        let named = RUNNER_FILES.iter().filter_map(|variable| {
            let path = context.path_var(variable)?;
            RunnerFile::record(variable, path.is_absolute().then_some(path)?)
        });
        Self {
            files: named.collect(),
        }
    }

    /// Restores every file that differs and returns one message for each. Call this after all children
    /// have ended.
    pub fn repair(&self) -> Vec<String> {
        self.files.iter().filter_map(RunnerFile::repair).collect()
    }
}

impl RunnerFile {
    fn record(variable: &'static str, path: PathBuf) -> Option<Self> {
        let mode = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() && metadata.len() <= LIMIT => metadata.mode(),
            Ok(_) => return None,
            Err(_) => 0o600,
        };
        Some(Self {
            variable,
            content: plain_file::read(&path, LIMIT).ok(),
            path,
            mode: mode & 0o7777,
        })
    }

    /// Restores the file and describes the change, if there is one.
    fn repair(&self) -> Option<String> {
        let now = self.path.symlink_metadata().ok();
        let is_file = now.as_ref().is_some_and(|it| it.is_file());
        let is_small = |it: &fs::Metadata| it.nlink() == 1 && it.len() <= LIMIT;
        let is_own = is_file && now.as_ref().is_some_and(is_small);
        let content = plain_file::read(&self.path, LIMIT).ok().filter(|_| is_own);
        let what = match (&now, &self.content) {
            (None, None) => return None,
            (None, Some(_)) => "was removed",
            (Some(_), Some(_)) if content.is_some() && content == self.content => return None,
            (Some(_), _) if !is_file => "was replaced by something that is not a file",
            (Some(_), None) => "was created",
            (Some(_), Some(_)) => "was written to",
        };
        let done = match self.restore(now.is_some(), is_own) {
            Ok(()) => "this was undone",
            Err(_) => "this could not be undone",
        };
        let (path, variable) = (self.path.display(), self.variable);
        Some(format!(
            "{path}, a file of the runner ({variable}), {what}; {done}"
        ))
    }

    fn restore(&self, exists: bool, in_place: bool) -> anyhow::Result<()> {
        let Some(content) = &self.content else {
            return remove(&self.path);
        };
        if exists && !in_place {
            remove(&self.path)?;
        }
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(self.mode);
        let mut file = options
            .custom_flags(no_follow() | no_wait())
            .open(&self.path)?;
        file.write_all(content)?;
        file.set_permissions(fs::Permissions::from_mode(self.mode))?;
        Ok(())
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    let is_dir = path.symlink_metadata()?.is_dir();
    Ok(if is_dir {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn of(path: &Path) -> RunnerFiles {
        let file = RunnerFile::record("GITHUB_ENV", path.to_path_buf());
        RunnerFiles {
            files: file.into_iter().collect(),
        }
    }

    #[test]
    fn whatever_takes_the_place_of_a_file_is_named_and_the_file_is_there_again() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("env"), dir.path().join("other"));
        type Attack<'a> = (&'a str, &'a dyn Fn());
        let attacks: [Attack<'_>; 6] = [
            ("was written to", &|| {
                fs::write(&path, "A=1\nEVIL=1\n").unwrap()
            }),
            ("was removed", &|| fs::remove_file(&path).unwrap()),
            ("not a file", &|| {
                fs::remove_file(&path).unwrap();
                symlink(&other, &path).unwrap();
            }),
            ("not a file", &|| {
                fs::remove_file(&path).unwrap();
                rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
            }),
            ("not a file", &|| {
                fs::remove_file(&path).unwrap();
                fs::create_dir_all(path.join("deep")).unwrap();
            }),
            ("was written to", &|| {
                fs::hard_link(&path, dir.path().join("link")).unwrap()
            }),
        ];
        for (word, attack) in attacks {
            fs::write(&path, "A=1\n").unwrap();
            fs::write(&other, "theirs").unwrap();
            let files = of(&path);
            assert_eq!(files.repair(), Vec::<String>::new());
            attack();
            let told = files.repair().concat();
            assert!(told.contains(word) && told.contains("GITHUB_ENV"), "{told}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "A=1\n");
            assert_eq!(fs::read_to_string(&other).unwrap(), "theirs");
            assert_eq!(files.repair(), Vec::<String>::new());
        }
    }

    #[test]
    fn a_file_that_was_not_there_is_gone_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("env");
        let files = of(&path);
        fs::write(&path, "EVIL=1\n").unwrap();
        assert!(files.repair().concat().contains("was created"));
        assert!(!path.exists());
    }
}
