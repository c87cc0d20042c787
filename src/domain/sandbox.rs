//! How far a child of a run is confined, as settings ask for it and reports tell it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far children are confined. Each level has what the ones below it have.
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
    /// Writes only in named places; nothing outside can be traced or signalled.
    Files,
    /// Namespaces of its own for processes, mounts and System V IPC.
    Namespaces,
}

impl Level {
    /// The number of the level, 0 for none.
    pub fn number(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Privileges => 1,
            Self::Files => 2,
            Self::Namespaces => 3,
        }
    }

    /// The level with this number.
    pub fn of_number(number: u8) -> Option<Self> {
        let all = [Self::Off, Self::Privileges, Self::Files, Self::Namespaces];
        all.into_iter().find(|level| level.number() == number)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            level => write!(f, "{}", level.number()),
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

/// How far the children of a run were confined, and why no further.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxLine {
    /// The level that was reached: a number, or `off`.
    pub level: Level,
    /// What is missing for the next level; `null` at the highest, and where it was switched off.
    pub missing: Option<String>,
}

impl SandboxLine {
    /// In a few words.
    pub fn words(&self) -> String {
        match self.level {
            Level::Off => "sandbox off".into(),
            level => format!("sandbox level {level}"),
        }
    }
}

/// The absolute path whose change was refused, as the output of a program tells it; the first one for
/// which `is_meant` holds.
pub fn refused_path(output: &str, is_meant: impl Fn(&str) -> bool) -> Option<&str> {
    const REFUSALS: [&str; 2] = ["permission denied", "read-only file system"];
    const AROUND: &[char] = &['\'', '"', '`', ',', ':', ';', '(', ')', '‘', '’'];
    let lines = output.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        REFUSALS.iter().any(|refusal| line.contains(refusal))
    });
    let words = lines.flat_map(str::split_whitespace);
    let mut paths = words.map(|word| word.trim_matches(AROUND));
    paths.find(|path| path.starts_with('/') && path.len() > 1 && is_meant(path))
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
            ("cat: /work/x: Permission denied", None),
            ("git@host: Permission denied (publickey).", None),
            ("/home/a/x: No such file or directory", None),
            ("ok\ncp: '/b/c': Permission denied\n", Some("/b/c")),
        ];
        for (output, path) in cases {
            let found = refused_path(output, |path| !path.starts_with("/work/"));
            assert_eq!(found, path, "{output}");
        }
    }

    #[test]
    fn a_higher_level_is_more() {
        assert!(Level::Off < Level::Privileges && Level::Files < Level::Namespaces);
    }
}
