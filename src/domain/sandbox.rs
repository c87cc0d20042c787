//! How far the child processes of a run are confined, according to the settings and in reports.

use crate::text::some_of;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far child processes are confined. Each level includes the levels below it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "LevelForm", into = "LevelForm")]
#[schemars(with = "LevelForm")]
pub enum Level {
    /// Not at all.
    #[default]
    Off,
    /// No new privileges, no inherited descriptors, no core dumps.
    Privileges,
    /// Writes only in named places; outside processes cannot be traced or signalled.
    Files,
    /// Separate namespaces for processes, mounts and System V IPC.
    Namespaces,
}

impl Level {
    /// The number of the level, 0 for none.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The level with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        let all = [Self::Off, Self::Privileges, Self::Files, Self::Namespaces];
        all.get(usize::from(number)).copied()
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            0 => f.write_str("off"),
            number => number.fmt(f),
        }
    }
}

/// A level as JSON has it: its number, or `"off"`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum LevelForm {
    Number(u8),
    Word(String),
}

impl From<Level> for LevelForm {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Word(level.to_string()),
            level => Self::Number(level.number()),
        }
    }
}

impl TryFrom<LevelForm> for Level {
    type Error = String;

    fn try_from(form: LevelForm) -> Result<Self, String> {
        let level = match &form {
            LevelForm::Number(number) => Self::of_number(*number),
            LevelForm::Word(word) => (word == "off").then_some(Self::Off),
        };
        level.ok_or_else(|| "a sandbox level is a number from 1 to 3, or `off`".to_owned())
    }
}

/// How far the child processes of a run were confined, and why no further.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLine {
    /// The level: a number, or `off`.
    pub level: Level,
    /// What the next level needs; `null` at the highest level, and if the sandbox is off.
    pub missing: Option<String>,
    /// What the machine leaves within an agent's reach although the settings ask for less, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<String>,
    /// The network access of child processes; absent if the network is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkLine>,
}

/// The network access of a run's child processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NetworkLine {
    /// The allowed hosts.
    pub allow: Vec<String>,
    /// How the limit is enforced.
    pub enforced: Enforcement,
    /// The hosts that were requested but are not allowed; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedHost>,
}

/// A host that was requested but is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeniedHost {
    /// Its name or address, as requested.
    pub host: String,
    /// The number of requests.
    pub times: u64,
}

/// The maximum number of hosts that a run records.
const MAX_DENIED: usize = 100;

/// The maximum number of hosts in one line.
const DENIED_IN_A_LINE: usize = 20;

/// The requested hosts that are not allowed, in one line.
pub fn denied_words(denied: &[DeniedHost]) -> String {
    let host = |one: &DeniedHost| match one.times {
        1 => one.host.clone(),
        times => format!("{} ({times} times)", one.host),
    };
    let hosts: Vec<String> = denied.iter().map(host).collect();
    let hosts = some_of(&hosts, DENIED_IN_A_LINE);
    format!("`network` does not allow these requested hosts: {hosts}")
}

/// What prevents child processes from reaching hosts that are not allowed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The child process has its own network, in which it reaches only the proxy.
    Namespace,
    /// Landlock and seccomp allow only TCP connections to the proxy's port, at any address.
    TcpPort,
    /// Nothing: programs may ignore the proxy.
    Nothing,
}

impl NetworkLine {
    /// Adds refused hosts.
    pub fn note_denied(&mut self, hosts: &[DeniedHost]) {
        for new in hosts {
            let has_room = self.denied.len() < MAX_DENIED;
            match self.denied.iter_mut().find(|known| known.host == new.host) {
                Some(known) => known.times = known.times.saturating_add(new.times),
                None if has_room => self.denied.push(new.clone()),
                None => {}
            }
        }
    }

    /// A short description. It never claims more than the sandbox enforces.
    pub fn words(&self) -> String {
        let hosts = match self.allow.as_slice() {
            [] => "no host".to_owned(),
            [one] => one.clone(),
            several => format!("{} hosts", several.len()),
        };
        let how = match self.enforced {
            Enforcement::Namespace => "enforced by a separate network namespace",
            Enforcement::TcpPort => {
                "enforced except for one port: TCP to the proxy's port is open on any host"
            }
            Enforcement::Nothing => "NOT enforced here: programs can ignore the proxy",
        };
        format!("network: {hosts} allowed, {how}")
    }
}

impl SandboxLine {
    /// The weaker of two confinements of one run, with the hosts that either of them refused.
    pub fn lesser(self, other: &Self) -> Self {
        let (mut less, more) = if other.level < self.level {
            (other.clone(), self)
        } else {
            (self, other.clone())
        };
        let mut further = more.open;
        further.retain(|row| !less.open.contains(row));
        less.open.extend(further);
        less.network = match (less.network, more.network) {
            (Some(one), Some(two)) => {
                let (mut less, more) = if two.enforced > one.enforced {
                    (two, one)
                } else {
                    (one, two)
                };
                less.note_denied(&more.denied);
                Some(less)
            }
            // The network is open if it was open in either part of the run.
            _ => None,
        };
        less
    }

    /// A short description.
    pub fn words(&self) -> String {
        let mut words = vec![match self.level {
            Level::Off => "sandbox: off".to_owned(),
            level => format!("sandbox: level {level} of 3"),
        }];
        words.extend(self.network.as_ref().map(NetworkLine::words));
        words.extend(self.open.iter().map(|row| format!("OPEN: {row}")));
        words.join("; ")
    }
}

/// Whether the key of an agent's model stays with Sprag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayLine {
    /// The agent's name.
    pub agent: String,
    /// Whether it reaches its model through the gateway.
    pub behind: bool,
    /// The reason if it does not; `null` if it does.
    pub why: Option<String>,
}

/// Which agents use the gateway and which do not, in one line; `None` if there is no agent.
pub fn gateway_words(lines: &[GatewayLine]) -> Option<String> {
    let words = lines.iter().map(|line| match &line.why {
        None => format!("used by {}", line.agent),
        Some(why) => format!("not used by {} ({why})", line.agent),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("model gateway: {}", words.join(", ")))
}

/// The absolute path whose change was refused, according to a program's output; the first one for which
/// `is_meant` returns true. In a line it is the last one before the refusal, since the name of the program comes
/// before it, or the first one after it.
pub fn refused_path(output: &str, is_meant: impl Fn(&str) -> bool) -> Option<&str> {
    const REFUSALS: [&str; 2] = ["permission denied", "read-only file system"];
    const AROUND: &[char] = &['\'', '"', '`', ',', ':', ';', '(', ')', '‘', '’'];
    let is_one = |path: &&str| path.starts_with('/') && path.len() > 1 && is_meant(path);
    let words = |text| str::split_whitespace(text).map(|word: &str| word.trim_matches(AROUND));
    output.lines().find_map(|line| {
        let lower = line.to_ascii_lowercase();
        let at = REFUSALS
            .iter()
            .filter_map(|refusal| lower.find(refusal))
            .min()?;
        let (before, after) = line.split_at_checked(at)?;
        let mut before: Vec<&str> = words(before).collect();
        // A shell names its script and the number of the line first.
        let is_place = |word: &str| word == "line" || word.parse::<u32>().is_ok();
        if before.get(1).is_some_and(|word| is_place(word)) {
            before.remove(0);
        }
        let last = before.into_iter().rfind(is_one);
        last.or_else(|| words(after).find(is_one))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_number_in_json_and_none_is_a_word() {
        let forms = [
            (Level::Off, "\"off\""),
            (Level::Privileges, "1"),
            (Level::Files, "2"),
            (Level::Namespaces, "3"),
        ];
        for (level, json) in forms {
            assert_eq!(serde_json::to_string(&level).unwrap(), json);
            assert_eq!(serde_json::from_str::<Level>(json).unwrap(), level);
        }
        for json in ["4", "\"on\"", "\"1\"", "null"] {
            assert!(serde_json::from_str::<Level>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn the_path_that_was_refused_is_found_in_what_programs_say() {
        let cases = [
            (
                "touch: cannot touch '/home/a/x': Permission denied",
                Some("/home/a/x"),
            ),
            (
                "sh: 3: cannot create /tmp/a//b: Permission denied",
                Some("/tmp/a//b"),
            ),
            (
                "Error: EACCES: permission denied, mkdir '/home/a/.x'",
                Some("/home/a/.x"),
            ),
            (
                "OSError: [Errno 30] Read-only file system: '/x/y'",
                Some("/x/y"),
            ),
            (
                "/opt/run.sh: 3: cannot create /home/a/x: Permission denied",
                Some("/home/a/x"),
            ),
            (
                "/opt/run.sh: 3: cannot create ../x: Permission denied",
                None,
            ),
            (
                "/opt/run.sh: line 3: /home/a/x: Permission denied",
                Some("/home/a/x"),
            ),
            ("/opt/run.sh: Permission denied", Some("/opt/run.sh")),
            ("cat: /work/x: Permission denied", None),
            ("git@host: Permission denied (publickey).", None),
            ("/home/a/x: No such file or directory", None),
            ("ok\ncp: '/b/c': Permission denied\n", Some("/b/c")),
            (
                "/opt/x.sh: 3: cannot create /home/a/x: Read-only file system",
                Some("/home/a/x"),
            ),
        ];
        for (output, path) in cases {
            let found = refused_path(output, |path| !path.starts_with("/work/"));
            assert_eq!(found, path, "{output}");
        }
    }

    #[test]
    fn hosts_that_were_refused_are_counted_and_told_in_one_line() {
        let host = |name: String, times| DeniedHost { host: name, times };
        let mut line = NetworkLine {
            allow: Vec::new(),
            enforced: Enforcement::Namespace,
            denied: Vec::new(),
        };
        line.note_denied(&[host("a.example".into(), 1)]);
        line.note_denied(&[host("a.example".into(), 2), host("b.example".into(), 1)]);
        assert!(denied_words(&line.denied).ends_with("a.example (3 times), b.example"));
        let many: Vec<_> = (0..500).map(|n| host(format!("{n}.example"), 1)).collect();
        line.note_denied(&many);
        assert_eq!(line.denied.len(), MAX_DENIED);
        assert!(denied_words(&line.denied).ends_with("17.example and 80 more"));
    }

    #[test]
    fn who_is_behind_the_gateway_is_told_with_the_reason() {
        let line = |agent: &str, why: Option<&str>| GatewayLine {
            agent: agent.into(),
            behind: why.is_none(),
            why: why.map(str::to_owned),
        };
        assert_eq!(gateway_words(&[]), None);
        let lines = [line("codex", None), line("opencode", Some("no key"))];
        assert_eq!(
            gateway_words(&lines).as_deref(),
            Some("model gateway: used by codex, not used by opencode (no key)")
        );
    }

    #[test]
    fn a_higher_level_is_more() {
        assert!(Level::Off < Level::Privileges && Level::Files < Level::Namespaces);
    }
}
