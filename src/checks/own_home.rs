//! A home directory for checks that create files at the top of one, where the sandbox lets nothing be written.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const HOME: &str = "HOME";

/// A directory with links to everything in the home directory. It is made for the first check that needs it, and
/// removed with this value.
#[derive(Debug, Default)]
pub struct OwnHome(OnceCell<TempDir>);

impl OwnHome {
    /// The environment of a check, with this home once there is one.
    pub fn environment(&self, env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let mut env = env.to_vec();
        let own = self.0.get();
        for (_, value) in env.iter_mut().filter(|(name, _)| name == HOME) {
            *value = own.map_or_else(|| value.clone(), |own| own.path().into());
        }
        env
    }

    /// Makes this home if the path, which the sandbox did not let a check write, is at the top of the home directory.
    /// Returns whether the check may pass now.
    pub fn is_made_for(&self, refused: &str, env: &[(OsString, OsString)]) -> bool {
        let value = |wanted: &str| -> Option<&OsStr> {
            let found = env.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_os_str())
        };
        let Some(home) = value(HOME).map(Path::new) else {
            return false;
        };
        let is_at_top = Path::new(refused).parent().is_some_and(|parent| {
            parent == home || home.canonicalize().is_ok_and(|home| parent == home)
        });
        let temporary = value("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let make = || made(home, &temporary).ok();
        self.0.get().is_none() && is_at_top && make().is_some_and(|own| self.0.set(own).is_ok())
    }
}

fn made(home: &Path, temporary: &Path) -> io::Result<TempDir> {
    let own = tempfile::Builder::new()
        .prefix("sprag-home-")
        .tempdir_in(temporary)?;
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        symlink(entry.path(), own.path().join(entry.file_name()))?;
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_at_the_top_of_the_home_makes_one_once() {
        let home = TempDir::new().unwrap();
        fs::write(home.path().join(".profile"), "x").unwrap();
        let env = [(HOME.into(), home.path().into())];
        let path = |name: &str| home.path().join(name).display().to_string();
        let own = OwnHome::default();
        assert!(!own.is_made_for(&path(".cache/x"), &env));
        assert_eq!(own.environment(&env), env);
        assert!(own.is_made_for(&path(".wrap-1"), &env));
        assert!(!own.is_made_for(&path(".wrap-2"), &env));
        let made = PathBuf::from(&own.environment(&env)[0].1);
        assert_ne!(made, home.path());
        assert_eq!(fs::read_to_string(made.join(".profile")).unwrap(), "x");
    }
}
