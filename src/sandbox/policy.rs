//! The permissions of a child, and the launcher's arguments.

use crate::domain::sandbox::{Level, refused_path};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// The hidden subcommand of a launcher.
pub const SUBCOMMAND: &str = "__sandbox";

/// The hidden subcommand that ends at once, to try a launcher with.
pub const NOTHING: &str = "__nothing";

/// The name of launchers in lists of processes.
pub const NAME: &str = "sprag-sandbox";

/// This program, even if its file was replaced or removed.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// The permissions of a child. A launcher enforces all of it or starts nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// The level of confinement; never [`Level::Off`].
    pub level: Level,
    /// From [`Level::Files`] on: writable files and directories, including everything below. Missing
    /// ones are left out.
    #[serde(with = "paths")]
    pub write: Vec<PathBuf>,
    /// Directories of which the child changes copies: what it writes is seen only by children with the same
    /// layers. This list and the following ones need a mount namespace; at [`Level::Files`] a child gets one only
    /// if `overlaid`, `read_only` or `hidden` is not empty.
    #[serde(with = "paths")]
    pub overlaid: Vec<PathBuf>,
    /// The directories that hold the copies, one for each of `overlaid`.
    #[serde(with = "paths")]
    pub layers: Vec<PathBuf>,
    /// Read-only paths below writable ones.
    #[serde(with = "paths")]
    pub read_only: Vec<PathBuf>,
    /// Writable paths below read-only ones.
    #[serde(with = "paths")]
    pub write_below: Vec<PathBuf>,
    /// Directories that cannot be moved away.
    #[serde(with = "paths")]
    pub pinned: Vec<PathBuf>,
    /// Sockets that cannot be connected to.
    #[serde(with = "paths")]
    pub hidden: Vec<PathBuf>,
    /// The network access that the child keeps; `None` if it is unrestricted.
    pub network: Option<Network>,
    /// Whether the launcher kills what the child has left running, before it ends itself. Otherwise it
    /// reports it and waits.
    pub ends_all: bool,
}

/// The network access that a child process keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// A network namespace in which the gateway listens on this port of the loopback interface. The
    /// launcher passes the listener to the gateway at the socket with this abstract name.
    Own {
        /// The abstract name of the gateway's socket.
        socket: String,
        /// The port of the loopback interface.
        port: u16,
    },
    /// From [`Level::Files`] on: only TCP connections to this port, at any address, and sockets with a
    /// path.
    Port(u16),
}

/// Paths as JSON, also those that are not UTF-8.
mod paths {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::ffi::OsString;
    use std::path::PathBuf;

    /// A text takes a quarter of the room of the bytes, and the length of an argument is limited.
    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Form {
        Text(String),
        Bytes(OsString),
    }

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| match path.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes(path.into()),
        }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let forms = Vec::<Form>::deserialize(from)?.into_iter();
        let paths = forms.map(|form| match form {
            Form::Text(text) => text.into(),
            Form::Bytes(bytes) => bytes.into(),
        });
        Ok(paths.collect())
    }
}

impl Policy {
    /// A policy of this level that only allows writing to devices.
    pub fn of(level: Level) -> Self {
        Self {
            level,
            ..Self::default()
        }
    }

    /// The same policy with further writable paths, which no earlier child could write.
    #[must_use]
    pub fn and_write(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        for place in places {
            let place = place.canonicalize().unwrap_or(place);
            self.write_below.push(place.clone());
            self.write.push(place);
        }
        self
    }

    /// The path that the child was not allowed to write, if its output says so.
    pub fn refused<'o>(&self, output: &'o str) -> Option<&'o str> {
        let is_meant = |path: &str| {
            let path = Path::new(path);
            let is_in = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
            self.level >= Level::Files && (!is_in(&self.write) || is_in(&self.read_only))
        };
        refused_path(output, is_meant)
    }

    /// The same policy with copies of these directories, kept below `layers`.
    #[must_use]
    pub fn and_overlay(mut self, places: &[PathBuf], layers: &Path) -> Self {
        let layer = |place: &PathBuf| {
            let digest = blake3::hash(place.as_os_str().as_bytes()).to_hex();
            layers.join(&digest[..16])
        };
        self.layers.extend(places.iter().map(layer));
        self.overlaid.extend(places.iter().cloned());
        self
    }

    /// Whether the child needs a mount namespace.
    pub fn has_mounts(&self) -> bool {
        let is_needed = [&self.overlaid, &self.read_only, &self.hidden];
        let is_needed = is_needed.iter().any(|paths| !paths.is_empty());
        self.level >= Level::Namespaces || (self.level >= Level::Files && is_needed)
    }
}

/// The longest part of a policy in bytes: Linux takes no argument of more than 128 KiB.
const LONGEST_ARGUMENT: usize = 96 << 10;

/// One child, as described by the launcher's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// The permissions of the child.
    pub policy: Policy,
    /// The descriptor to which the launcher reports.
    pub report: i32,
    /// The working directory.
    pub cwd: PathBuf,
    /// The path of the program.
    pub program: PathBuf,
    /// The program's arguments, starting with its name.
    pub args: Vec<OsString>,
}

impl Launch {
    /// The launcher's arguments, without the subcommand.
    pub fn arguments(&self) -> Vec<OsString> {
        // Without a policy that can be read, a launcher starts nothing.
        let policy = serde_json::to_vec(&self.policy).unwrap_or_default();
        let parts = policy.chunks(LONGEST_ARGUMENT);
        let (count, report) = (parts.len().to_string(), self.report.to_string());
        let (cwd, program) = (self.cwd.clone(), self.program.clone());
        let first: [OsString; 4] = [report.into(), cwd.into(), program.into(), count.into()];
        let parts = parts.map(|part| OsString::from_vec(part.to_vec()));
        let args = self.args.iter().cloned();
        first.into_iter().chain(parts).chain(args).collect()
    }

    /// Parses the output of [`Self::arguments`]; `None` for anything else.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let report = arguments.next()?.to_str()?.parse().ok()?;
        let (cwd, program) = (arguments.next()?.into(), arguments.next()?.into());
        let parts = arguments.next()?.to_str()?.parse().ok()?;
        let policy = arguments.by_ref().take(parts);
        let policy: Vec<u8> = policy.flat_map(OsString::into_vec).collect();
        Some(Self {
            policy: serde_json::from_slice(&policy).ok()?,
            report,
            cwd,
            program,
            args: arguments.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_reads_what_it_is_told() {
        let odd = || OsString::from_vec(b"/o\xffdd\n--".to_vec());
        let launch = Launch {
            policy: Policy {
                level: Level::Namespaces,
                write: vec!["/a".into(), odd().into()],
                overlaid: vec!["/c".into()],
                layers: vec!["/layers/1".into()],
                read_only: vec!["--".into()],
                write_below: vec!["--write".into()],
                pinned: vec!["/a/.git".into()],
                hidden: vec!["/run/docker.sock".into()],
                network: Some(Network::Own {
                    socket: "sprag-1:2".into(),
                    port: 4711,
                }),
                ends_all: true,
            },
            report: 7,
            cwd: odd().into(),
            program: "/bin/sh".into(),
            args: vec!["sh".into(), "--".into(), odd(), "".into()],
        };
        assert_eq!(Launch::read(launch.arguments()), Some(launch.clone()));
        let long = Launch {
            policy: Policy {
                read_only: vec!["/w/tree/of/a/submodule/.git".into(); 20_000],
                ..launch.policy
            },
            ..launch
        };
        let arguments = long.arguments();
        assert!(arguments.iter().all(|argument| argument.len() < 128 << 10));
        assert_eq!(Launch::read(arguments), Some(long));
    }

    #[test]
    fn anything_else_is_refused() {
        let cases: [&[&str]; 6] = [
            &[],
            &["3"],
            &["{}", "/", "/bin/true", "1", "{}", "true"],
            &["3", "/", "/bin/true", "1", r#"{"level":9}"#, "true"],
            &["3", "/", "/bin/true", "{}", "true"],
            &["3", "/", "/bin/true", "1"],
        ];
        for case in cases {
            let arguments = case.iter().map(OsString::from);
            assert_eq!(Launch::read(arguments), None, "{case:?}");
        }
    }
}
