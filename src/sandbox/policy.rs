//! The permissions of a child, and the launcher's arguments.

use crate::domain::sandbox::{Level, refused_path};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The level of confinement; never [`Level::Off`].
    pub level: Level,
    /// From [`Level::Files`] on: writable files and directories, including everything below. Missing
    /// ones are left out.
    pub write: Vec<PathBuf>,
    /// Directories of which the child changes copies: what it writes is seen only by children with the same
    /// layers. This list and the following ones need a mount namespace; at [`Level::Files`] a child gets one only
    /// if `overlaid`, `read_only` or `hidden` is not empty.
    pub overlaid: Vec<PathBuf>,
    /// The directories that hold the copies, one for each of `overlaid`.
    pub layers: Vec<PathBuf>,
    /// Read-only paths below writable ones.
    pub read_only: Vec<PathBuf>,
    /// Writable paths below read-only ones.
    pub write_below: Vec<PathBuf>,
    /// Directories that cannot be moved away.
    pub pinned: Vec<PathBuf>,
    /// Sockets that cannot be connected to.
    pub hidden: Vec<PathBuf>,
    /// The network access that the child keeps; `None` if it is unrestricted.
    pub network: Option<Network>,
    /// Whether the launcher kills what the child has left running, before it ends itself. Otherwise it
    /// reports it and waits.
    pub ends_all: bool,
}

/// The network access that a child process keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// The launcher's arguments for the kinds of restricted network.
const OWN_NETWORK: &str = "--own-network";
const ONE_PORT: &str = "--one-port";

/// The launcher's argument for [`Policy::ends_all`].
const ENDS_ALL: &str = "--ends-all";

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

    fn lists(&mut self) -> [(&'static str, &mut Vec<PathBuf>); 7] {
        [
            ("--write", &mut self.write),
            ("--overlaid", &mut self.overlaid),
            ("--layer", &mut self.layers),
            ("--read-only", &mut self.read_only),
            ("--write-below", &mut self.write_below),
            ("--pinned", &mut self.pinned),
            ("--hidden", &mut self.hidden),
        ]
    }
}

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
        let mut arguments: Vec<OsString> = vec![
            self.policy.level.number().to_string().into(),
            self.report.to_string().into(),
            self.cwd.clone().into(),
        ];
        arguments.extend(self.policy.ends_all.then(|| ENDS_ALL.into()));
        match &self.policy.network {
            Some(Network::Own { socket, port }) => {
                arguments.extend([OWN_NETWORK.into(), format!("{port}:{socket}").into()]);
            }
            Some(Network::Port(port)) => {
                arguments.extend([ONE_PORT.into(), port.to_string().into()]);
            }
            None => {}
        }
        for (name, paths) in self.policy.clone().lists() {
            for path in paths {
                arguments.extend([name.into(), path.clone().into()]);
            }
        }
        arguments.extend(["--".into(), self.program.clone().into()]);
        arguments.extend(self.args.iter().cloned());
        arguments
    }

    /// Parses the output of [`Self::arguments`]; `None` for anything else.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let mut number = || -> Option<i32> { arguments.next()?.to_str()?.parse().ok() };
        let level = Level::of_number(u8::try_from(number()?).ok()?)?;
        let report = number()?;
        let cwd = arguments.next()?.into();
        let mut policy = Policy::of(level);
        loop {
            let name = arguments.next()?;
            if name == "--" {
                break;
            }
            if name == ENDS_ALL {
                policy.ends_all = true;
                continue;
            }
            if name == OWN_NETWORK {
                let value = arguments.next()?.into_string().ok()?;
                let (port, socket) = value.split_once(':')?;
                policy.network = Some(Network::Own {
                    socket: socket.to_owned(),
                    port: port.parse().ok()?,
                });
                continue;
            }
            if name == ONE_PORT {
                let port = arguments.next()?.to_str()?.parse().ok()?;
                policy.network = Some(Network::Port(port));
                continue;
            }
            let mut lists = policy.lists().into_iter();
            let (_, list) = lists.find(|(known, _)| name == *known)?;
            list.push(arguments.next()?.into());
        }
        Some(Self {
            policy,
            report,
            cwd,
            program: arguments.next()?.into(),
            args: arguments.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

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
        assert_eq!(Launch::read(launch.arguments()), Some(launch));
    }

    #[test]
    fn anything_else_is_refused() {
        let cases: [&[&str]; 6] = [
            &[],
            &["2"],
            &["9", "3", "/", "--", "/bin/true", "true"],
            &["2", "3", "/", "/bin/true"],
            &["2", "3", "/", "--allow", "/", "--", "/bin/true"],
            &["2", "3", "/", "--"],
        ];
        for case in cases {
            let arguments = case.iter().map(OsString::from);
            assert_eq!(Launch::read(arguments), None, "{case:?}");
        }
    }
}
