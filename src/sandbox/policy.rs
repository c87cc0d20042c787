//! What a child may do, and how the launcher is told.

use crate::domain::sandbox::Level;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The hidden subcommand of a launcher.
pub const SUBCOMMAND: &str = "__sandbox";

/// This program, also after its file was replaced or removed.
pub const OWN_PROGRAM: &str = "/proc/self/exe";

/// What a child may do. A launcher that is given one keeps all of it or starts nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How far the child is confined; never [`Level::Off`].
    pub level: Level,
    /// From [`Level::Files`] on: files and directories that may be written, with what is below them.
    /// Those that do not exist are left out.
    pub write: Vec<PathBuf>,
    /// From [`Level::Files`] on: whether processes outside may be signalled.
    pub signals: bool,
    /// What cannot be written although it lies below such a directory. This and what follows takes mounts
    /// of the child's own; a child of [`Level::Files`] has them only where one of these lists names anything.
    pub read_only: Vec<PathBuf>,
    /// What may be written although it lies below such a place.
    pub write_below: Vec<PathBuf>,
    /// Directories that cannot be moved away.
    pub pinned: Vec<PathBuf>,
    /// Sockets that cannot be connected to.
    pub hidden: Vec<PathBuf>,
    /// What is left of the network; `None` where it is open.
    pub network: Option<Network>,
}

/// What is left to a child of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// A network of its own, where the gateway answers on this port of the loopback interface. A listener there is
    /// handed in at the socket of this abstract name.
    Own {
        /// The name.
        socket: String,
        /// The port.
        port: u16,
    },
    /// From [`Level::Files`] on: TCP connections to this port alone, at whatever address, and no other way out but
    /// sockets with a path.
    Port(u16),
}

/// The words by which a launcher is told of them.
const OWN_NETWORK: &str = "--own-network";
const ONE_PORT: &str = "--one-port";

/// The word by which a launcher is told that processes outside may be signalled.
const SIGNALS: &str = "--signals";

impl Policy {
    /// A policy of this level that allows no write but to devices.
    pub fn of(level: Level) -> Self {
        Self {
            level,
            write: Vec::new(),
            signals: false,
            read_only: Vec::new(),
            write_below: Vec::new(),
            pinned: Vec::new(),
            hidden: Vec::new(),
            network: None,
        }
    }

    /// The same, and these places may be written besides.
    #[must_use]
    pub fn and_write(mut self, places: impl IntoIterator<Item = PathBuf>) -> Self {
        for place in places {
            self.write_below.push(place.clone());
            self.write.push(place);
        }
        self
    }

    /// Whether the child needs mounts of its own.
    pub fn has_mounts(&self) -> bool {
        let is_needed = !self.read_only.is_empty() || !self.hidden.is_empty();
        self.level >= Level::Namespaces || (self.level >= Level::Files && is_needed)
    }

    fn lists(&self) -> [(&'static str, &Vec<PathBuf>); 5] {
        [
            ("--write", &self.write),
            ("--read-only", &self.read_only),
            ("--write-below", &self.write_below),
            ("--pinned", &self.pinned),
            ("--hidden", &self.hidden),
        ]
    }

    fn list_mut(&mut self, name: &OsStr) -> Option<&mut Vec<PathBuf>> {
        match name.to_str()? {
            "--write" => Some(&mut self.write),
            "--read-only" => Some(&mut self.read_only),
            "--write-below" => Some(&mut self.write_below),
            "--pinned" => Some(&mut self.pinned),
            "--hidden" => Some(&mut self.hidden),
            _ => None,
        }
    }
}

/// One child as the launcher is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// What it may do.
    pub policy: Policy,
    /// The descriptor to which the launcher reports.
    pub report: i32,
    /// Where it works.
    pub cwd: PathBuf,
    /// The file of the program.
    pub program: PathBuf,
    /// The program's arguments, its name first.
    pub args: Vec<OsString>,
}

impl Launch {
    /// The arguments that tell the launcher, without its subcommand.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![
            self.policy.level.number().to_string().into(),
            self.report.to_string().into(),
            self.cwd.clone().into(),
        ];
        arguments.extend(self.policy.signals.then(|| SIGNALS.into()));
        match &self.policy.network {
            Some(Network::Own { socket, port }) => {
                arguments.extend([OWN_NETWORK.into(), format!("{port}:{socket}").into()]);
            }
            Some(Network::Port(port)) => {
                arguments.extend([ONE_PORT.into(), port.to_string().into()]);
            }
            None => {}
        }
        for (name, paths) in self.policy.lists() {
            for path in paths {
                arguments.extend([name.into(), path.clone().into()]);
            }
        }
        arguments.extend(["--".into(), self.program.clone().into()]);
        arguments.extend(self.args.iter().cloned());
        arguments
    }

    /// Reads what [`Self::arguments`] wrote; `None` for anything else.
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
            if name == SIGNALS {
                policy.signals = true;
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
            policy.list_mut(&name)?.push(arguments.next()?.into());
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
                signals: true,
                read_only: vec!["--".into()],
                write_below: vec!["--write".into()],
                pinned: vec!["/a/.git".into()],
                hidden: vec!["/run/docker.sock".into()],
                network: Some(Network::Own {
                    socket: "sprag-1:2".into(),
                    port: 4711,
                }),
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
