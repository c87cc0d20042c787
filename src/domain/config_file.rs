//! The configuration file, `.sprag/config.yaml`: settings that hold for every run in a
//! repository.

use super::plan::text_of;
use super::settings::{self, NAMES, Settings};
use super::suggest::did_you_mean;
use super::text_error::{Fault, Located, Parsed};
use super::yaml::{self, Value, read};

/// What the configuration file says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigFile {
    /// The settings that it overrides.
    pub settings: Settings,
    /// Commands that run once before the first turn, before those of the plan.
    pub setup: Vec<String>,
}

/// Reads a configuration file. An empty one says nothing. Unknown keys are warnings.
///
/// # Errors
/// The first error with its place: no UTF-8, larger than a plan may be, no YAML, no mapping, a
/// value of the wrong type or out of range.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Parsed<ConfigFile>, Located> {
    let text = text_of(name, bytes)?;
    let mut warnings = Vec::new();
    let value = read_config(text, &mut warnings).map_err(|fault| fault.in_file(name))?;
    Ok(Parsed {
        value,
        warnings: warnings
            .into_iter()
            .map(|fault| fault.in_file(name))
            .collect(),
    })
}

fn read_config(text: &str, warnings: &mut Vec<Fault>) -> Result<ConfigFile, Fault> {
    let mut config = ConfigFile::default();
    let Some(root) = yaml::parse(text)?.filter(|root| !root.is_null()) else {
        return Ok(config);
    };
    if !matches!(root.value, Value::Map { .. }) {
        return Err(read::unexpected(
            "a configuration",
            "a mapping of settings",
            &root,
        ));
    }
    for entry in root.entries() {
        match entry.key.as_str() {
            "$schema" => {}
            "setup" => config.setup = settings::read_setup(&entry.value)?,
            key => {
                if config.settings.read_entry(entry)?.is_none() {
                    warnings.push(Fault::new(entry.key_at, unknown(key)));
                }
            }
        }
    }
    Ok(config)
}

fn unknown(key: &str) -> String {
    if matches!(key, "tasks" | "title" | "goal" | "details") {
        return format!("`{key}` belongs in a plan and is ignored in the configuration");
    }
    let known = NAMES.iter().map(|(name, _)| *name).chain(["setup"]);
    let suggestion = did_you_mean(key, known);
    format!("`{key}` is not a key of the configuration and is ignored{suggestion}")
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
        };
        assert_eq!((parsed.value, parsed.warnings), (expected, Vec::new()));
    }

    #[test]
    fn an_empty_file_says_nothing() {
        for text in ["", "# later\n", "~\n", "\u{feff}"] {
            let parsed = parse("c.yaml", text.as_bytes()).expect("valid");
            assert_eq!(parsed.value, ConfigFile::default(), "{text:?}");
        }
    }

    #[test]
    fn unknown_keys_are_warnings() {
        let parsed = parse("c.yaml", b"modle: m\ntasks: []\nxyzzy: 1\n").expect("valid");
        let warnings: Vec<_> = parsed.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            [
                "c.yaml:1:1: `modle` is not a key of the configuration and is ignored (did you mean `model`?)",
                "c.yaml:2:1: `tasks` belongs in a plan and is ignored in the configuration",
                "c.yaml:3:1: `xyzzy` is not a key of the configuration and is ignored",
            ]
        );
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
