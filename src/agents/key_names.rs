//! Recognizes a key that is set under a name that nothing reads.

use super::{CLIS, gateway};
use crate::domain::suggest::is_typing_error;
use sprag_agent::access;
use std::ffi::OsString;

/// Other words that people use for the first word of a key's variable.
const ALIASES: &[(&str, &str)] = &[
    ("ANTHROPIC", "CLAUDE CLAUDECODE"),
    ("OPENAI", "CODEX GPT CHATGPT"),
    (
        "GEMINI",
        "GOOGLE GOOGLEAI GOOGLEGEMINI GOOGLEGENAI GEMINIAI",
    ),
];

/// Words of a variable's name that say that its value is a key.
const KEY_WORDS: [&str; 7] = ["API", "KEY", "APIKEY", "TOKEN", "SECRET", "ACCESS", "AUTH"];

/// The shortest name in which one wrong character counts as a typing error.
const MIN_CHARS: usize = 5;

/// What is wrong with the variables of this environment, none of which is one of the keys in `wanted` with a
/// value: one of these is empty, or another variable that nothing reads has a similar name. Contains no value.
pub fn key_mistake(wanted: &[&str], env: &[(OsString, OsString)], in_job: bool) -> Option<String> {
    let mut named = env
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, !value.is_empty())));
    let is_empty = |(name, is_set): &(&str, bool)| !is_set && wanted.contains(name);
    if let Some((name, _)) = named.clone().find(is_empty) {
        let remedy = if in_job {
            "store a secret of that name, which workflows for pull requests from forks do not get"
        } else {
            "give it a value"
        };
        return Some(format!("{name} is empty: {remedy}"));
    }
    named.find_map(|(name, is_set)| {
        let maker = maker(name).filter(|_| is_set && !is_read(name))?;
        let meant = wanted.iter().find(|it| is_same(&maker, it))?;
        Some(format!(
            "{name} is set, which nothing reads: rename it to {meant}"
        ))
    })
}

/// Whether Sprag or an agent reads the variable.
fn is_read(name: &str) -> bool {
    let of_clis = CLIS.iter().flat_map(|spec| spec.variables());
    let of_gateway = gateway::PROVIDERS.iter().flat_map(|it| it.keys);
    let mut read = access::variables()
        .chain(of_clis.map(|variable| variable.name))
        .chain(of_gateway.map(|(key, _)| *key));
    read.any(|known| known == name)
}

/// The part of a key's name that says whose key it is, or `None` if the name is not that of a key.
fn maker(name: &str) -> Option<String> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("INPUT_").unwrap_or(&name);
    let words: Vec<&str> = name.split(['_', '-']).collect();
    let (of_key, rest): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| KEY_WORDS.contains(word));
    let rest = rest.concat();
    let mut ends = ["APIKEY", "KEY"].iter();
    let glued = ends.find_map(|end| rest.strip_suffix(end));
    let maker = glued.or_else(|| Some(&*rest).filter(|_| !of_key.is_empty()));
    maker.filter(|maker| !maker.is_empty()).map(str::to_owned)
}

fn is_same(given: &str, wanted: &str) -> bool {
    let Some(wanted) = maker(wanted) else {
        return false;
    };
    let aliases = ALIASES.iter().find(|(name, _)| *name == wanted);
    let aliases = aliases.map_or("", |(_, aliases)| aliases);
    let mut names = aliases.split(' ').chain([wanted.as_str()]);
    names.any(|name| {
        let is_long = name.len() >= MIN_CHARS;
        name == given || (is_long && is_typing_error(given, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(wanted: &[&str], set: &[(&str, &str)]) -> Option<String> {
        let env: Vec<(OsString, OsString)> = set
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        key_mistake(wanted, &env, true)
    }

    #[test]
    fn a_name_that_is_read_is_no_mistake() {
        let wanted: Vec<&str> = access::suggested_keys().collect();
        for given in [
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_FOUNDRY_API_KEY",
            "CODEX_API_KEY",
            "GOOGLE_API_KEY",
            "INPUT_GITHUB-TOKEN",
            "INPUT_GITHUB_TOKEN",
            "GH_TOKEN",
        ] {
            let others: Vec<&str> = wanted.iter().copied().filter(|it| *it != given).collect();
            assert_eq!(mistake(&others, &[(given, "x")]), None, "{given}");
        }
    }

    #[test]
    fn an_empty_key_is_a_secret_only_in_a_job() {
        let env = [("OPENAI_API_KEY".into(), "".into())];
        let told = |in_job| key_mistake(&["OPENAI_API_KEY"], &env, in_job).unwrap();
        assert!(told(true).starts_with("OPENAI_API_KEY is empty: store a secret"));
        assert_eq!(told(false), "OPENAI_API_KEY is empty: give it a value");
    }

    #[test]
    fn a_key_under_a_similar_name_is_found_and_its_value_is_not_told() {
        for (given, meant) in [
            ("OPENAI_KEY", "OPENAI_API_KEY"),
            ("OPENAI_APIKEY", "OPENAI_API_KEY"),
            ("OPENAIKEY", "OPENAI_API_KEY"),
            ("openai_api_key", "OPENAI_API_KEY"),
            ("OPEN_AI_API_KEY", "OPENAI_API_KEY"),
            ("OPENAPI_KEY", "OPENAI_API_KEY"),
            ("OPENAI_TOKEN", "OPENAI_API_KEY"),
            ("INPUT_OPENAI-API-KEY", "OPENAI_API_KEY"),
            ("CODEX_KEY", "OPENAI_API_KEY"),
            ("CLAUDE_API_KEY", "ANTHROPIC_API_KEY"),
            ("ANTHROPIC_KEY", "ANTHROPIC_API_KEY"),
            ("ANTROPIC_API_KEY", "ANTHROPIC_API_KEY"),
            ("GOOGLE_KEY", "GEMINI_API_KEY"),
            ("GROQ_KEY", "GROQ_API_KEY"),
        ] {
            let wanted = [
                "OPENAI_API_KEY",
                "ANTHROPIC_API_KEY",
                "GEMINI_API_KEY",
                "GROQ_API_KEY",
            ];
            let told = mistake(&wanted, &[("HOME", "/x"), (given, "canary")]);
            let expected = format!("{given} is set, which nothing reads: rename it to {meant}");
            assert_eq!(told, Some(expected), "{given}");
        }
    }

    #[test]
    fn other_variables_are_not_taken_for_keys() {
        let wanted = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "XAI_API_KEY"];
        for given in [
            "GITHUB_TOKEN",
            "NPM_TOKEN",
            "CODECOV_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_BASE_URL",
            "OPENAI_MODEL",
            "API_KEY",
            "KEYBOARD",
            "SSH_AUTH_SOCK",
        ] {
            assert_eq!(mistake(&wanted, &[(given, "x")]), None, "{given}");
        }
        assert_eq!(mistake(&wanted, &[("CLAUDE_API_KEY", "")]), None);
    }

    #[test]
    fn an_empty_secret_is_told_before_a_similar_name() {
        let set = [("CLAUDE_API_KEY", "canary"), ("ANTHROPIC_API_KEY", "")];
        let told = mistake(&["ANTHROPIC_API_KEY"], &set).unwrap();
        assert!(told.starts_with("ANTHROPIC_API_KEY is empty"), "{told}");
    }
}
