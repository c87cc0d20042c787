//! The environment variables that git inherits from Sprag.

use crate::git::command::Call;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// The variables that git reads from the environment in which Sprag was started.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Selects the variables that git needs (`PATH`, `HOME`, `XDG_CONFIG_HOME`, `GIT_CONFIG*`, `GNUPGHOME`,
    /// `SSH_AUTH_SOCK`, `SUDO_UID`, `JJ_CONFIG`, `TZ`) from all `variables`.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let wanted = |name: &OsStr| {
            let name = name.as_bytes();
            let exact: [&[u8]; 8] = [
                b"PATH",
                b"HOME",
                b"XDG_CONFIG_HOME",
                b"GNUPGHOME",
                b"SSH_AUTH_SOCK",
                b"SUDO_UID",
                b"JJ_CONFIG",
                b"TZ",
            ];
            exact.contains(&name) || (name.starts_with(b"GIT_CONFIG") && name != b"GIT_CONFIG")
        };
        Self {
            variables: variables
                .into_iter()
                .filter(|(name, _)| wanted(name))
                .collect(),
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// Lets a command read the configuration of the system and of the user, as git does by itself.
    pub(crate) fn with_user<'a>(&self, mut call: Call<'a>) -> Call<'a> {
        for name in "GIT_CONFIG_NOSYSTEM GIT_CONFIG_SYSTEM GIT_CONFIG_GLOBAL".split(' ') {
            call = call.without_env(name);
        }
        for (name, value) in &self.variables {
            let is_setting = name.as_bytes().starts_with(b"GIT_CONFIG");
            if is_setting || name == "HOME" || name == "XDG_CONFIG_HOME" {
                call = call.env(name, value);
            }
        }
        call
    }

    pub(crate) fn signing(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        let names = ["HOME", "GNUPGHOME", "SSH_AUTH_SOCK"];
        self.variables
            .iter()
            .filter(move |(name, _)| names.iter().any(|wanted| *name == *wanted))
    }
}
