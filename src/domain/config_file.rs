//! The configuration file, `.sprag/config.yaml`: the settings for every run in a repository.

use super::mcp::{McpServer, read_servers};
use super::plan::schema::{CONFIG_KEYS, PLAN_KEYS};
use super::plan::text_of;
use super::settings::{self, Settings};
use super::suggest::unknown_key;
use super::text_error::{Fault, Located};
use super::yaml::{self, Value, read};

/// The content of the configuration file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigFile {
    /// The settings that it overrides.
    pub settings: Settings,
    /// Commands that run once before the first turn, before those of the plan.
    pub setup: Vec<String>,
    /// MCP servers for the agents.
    pub mcp: Vec<McpServer>,
    /// Warnings, each with its place.
    pub warnings: Vec<Located>,
}

/// Reads a configuration file. An empty file sets nothing.
///
/// # Errors
/// The first error, with its position: not UTF-8, larger than a plan may be, not YAML, not a mapping, an
/// unknown key, or a value of the wrong type or out of range.
pub fn parse(name: &str, bytes: &[u8]) -> Result<ConfigFile, Located> {
    let text = text_of(name, bytes)?;
    read_config(name, text).map_err(|fault| fault.in_file(name))
}

fn read_config(name: &str, text: &str) -> Result<ConfigFile, Fault> {
    let mut config = ConfigFile::default();
    let Some(root) = yaml::parse(text)?.filter(|root| !root.is_null()) else {
        return Ok(config);
    };
    if !matches!(root.value, Value::Map { .. }) {
        let expected = "a mapping of settings";
        return Err(read::unexpected("a configuration", expected, &root));
    }
    let slips = yaml::slips(text, &root)?.into_iter();
    config.warnings = slips.map(|slip| slip.in_file(name)).collect();
    for entry in root.entries() {
        match entry.key.as_str() {
            "$schema" => {}
            "setup" => config.setup = settings::read_setup(&entry.value)?,
            "mcp" => config.mcp = read_servers(&entry.value)?,
            key => {
                if config.settings.read_entry(entry)?.is_none() {
                    return Err(Fault::new(entry.key_at, unknown(key)));
                }
            }
        }
    }
    Ok(config)
}

fn unknown(key: &str) -> String {
    if PLAN_KEYS.contains(&key) {
        return format!("`{key}` belongs in a plan, not in the configuration");
    }
    let known = settings::names().chain(CONFIG_KEYS.iter().copied());
    unknown_key(key, "the configuration", known, "config")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_setup_are_read() {
        let parsed = parse("c.yaml", b"model: m\nsetup: [npm ci, make]\nverify:\n").expect("valid");
        let expected = ConfigFile {
            settings: Settings {
                model: Some("m".to_owned()),
                ..Settings::default()
            },
            setup: vec!["npm ci".to_owned(), "make".to_owned()],
            mcp: Vec::new(),
            warnings: Vec::new(),
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn a_command_that_yaml_cuts_is_a_warning() {
        for text in [
            "verify:\n  - npm test #fast\n",
            "setup: npm i #4\n",
            "agent_command: foo #bar\n",
        ] {
            let warnings = parse("c.yaml", text.as_bytes()).expect("valid").warnings;
            let [warning] = warnings.as_slice() else {
                panic!("{text}");
            };
            assert!(warning.message.contains("as a comment"), "{warning}");
        }
    }

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "# later\n", "~\n", "\u{feff}"] {
            let parsed = parse("c.yaml", text.as_bytes()).expect("valid");
            assert_eq!(parsed, ConfigFile::default(), "{text:?}");
        }
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        for (text, expected) in [
            (
                "model: m\nverfy: [make]\n",
                "c.yaml:2:1: `verfy` is not a key of the configuration (did you mean `verify`?)",
            ),
            (
                "tasks: []\n",
                "c.yaml:1:1: `tasks` belongs in a plan, not in the configuration",
            ),
            (
                "xyzzy:\n",
                "c.yaml:1:1: `xyzzy` is not a key of the configuration; `sprag schema config` lists them",
            ),
            (
                "progress: { ignored: [a] }\n",
                "c.yaml:1:13: progress has no part `ignored`, only ignore (did you mean `ignore`?)",
            ),
        ] {
            let error = parse("c.yaml", text.as_bytes()).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn mistakes_are_errors_with_places() {
        for (text, expected) in [
            (
                "- a\n",
                "c.yaml:1:1: a configuration must be a mapping of settings, got a list",
            ),
            (
                "model: m\nmax_retries: -1\n",
                "c.yaml:2:14: max_retries must be a whole number from 0 to 10, got -1",
            ),
            (
                "setup: {a: b}\n",
                "c.yaml:1:8: setup must be a list of texts, got a mapping",
            ),
        ] {
            let error = parse("c.yaml", text.as_bytes()).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
    }
}
