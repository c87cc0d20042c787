//! Recognizes a key that is set under a name that nothing reads.

use crate::domain::suggest::is_typing_error;
use std::ffi::OsString;

/// Other words that people use for the first word of a key's variable.
const ALIASES: &[(&str, &[&str])] = &[
    ("ANTHROPIC", &["CLAUDE", "CLAUDECODE"]),
    ("OPENAI", &["CODEX", "GPT", "CHATGPT"]),
    (
        "GEMINI",
        &[
            "GOOGLE",
            "GOOGLEAI",
            "GOOGLEGEMINI",
            "GOOGLEGENAI",
            "GEMINIAI",
        ],
    ),
];

/// Words of a variable's name that say that its value is a key.
const KEY_WORDS: [&str; 7] = ["API", "KEY", "APIKEY", "TOKEN", "SECRET", "ACCESS", "AUTH"];

/// The shortest name in which one wrong character counts as a typing error.
const MIN_CHARS: usize = 5;

/// What is wrong with the variables of this environment, none of which is one of the keys in `wanted` with a
/// value: one of these is empty, or another variable has a similar name. Contains no value.
pub fn key_slip(wanted: &[&str], env: &[(OsString, OsString)]) -> Option<String> {
    let mut named = env
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, !value.is_empty())));
    let is_empty = |(name, is_set): &(&str, bool)| !is_set && wanted.contains(name);
    if let Some((name, _)) = named.clone().find(is_empty) {
        return Some(format!(
            "{name} is empty: store a secret of that name, which workflows for pull requests from forks do not get"
        ));
    }
    named.find_map(|(name, is_set)| {
        let maker = maker(name).filter(|_| is_set && !wanted.contains(&name))?;
        let meant = wanted.iter().find(|it| is_same(&maker, it))?;
        Some(format!(
            "{name} is set, which nothing reads: rename it to {meant}"
        ))
    })
}

/// The part of a key's name that says whose key it is, or `None` if the name is not that of a key.
fn maker(name: &str) -> Option<String> {
    let name = name.to_ascii_uppercase();
    let name = name.strip_prefix("INPUT_").unwrap_or(&name);
    let words: Vec<&str> = name.split(['_', '-']).collect();
    let (of_key, rest): (Vec<&str>, Vec<&str>) =
        words.iter().partition(|word| KEY_WORDS.contains(word));
    let rest = rest.concat();
    let glued = ["APIKEY", "KEY"]
        .iter()
        .find_map(|end| rest.strip_suffix(end));
    match (glued, of_key.is_empty()) {
        (Some(glued), _) => Some(glued.to_owned()),
        (None, false) => Some(rest),
        (None, true) => None,
    }
    .filter(|maker| !maker.is_empty())
}

fn is_same(given: &str, wanted: &str) -> bool {
    let Some(wanted) = maker(wanted) else {
        return false;
    };
    let aliases = ALIASES.iter().find(|(name, _)| *name == wanted);
    let aliases = aliases.map_or(&[][..], |(_, aliases)| aliases);
    let mut names = aliases.iter().copied().chain([wanted.as_str()]);
    names.any(|name| {
        let is_long = name.len() >= MIN_CHARS;
        name == given || (is_long && is_typing_error(given, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slip(wanted: &[&str], set: &[(&str, &str)]) -> Option<String> {
        let env: Vec<(OsString, OsString)> = set
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        key_slip(wanted, &env)
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
            let told = slip(&wanted, &[("HOME", "/x"), (given, "canary")]);
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
            assert_eq!(slip(&wanted, &[(given, "x")]), None, "{given}");
        }
        assert_eq!(slip(&wanted, &[("CLAUDE_API_KEY", "")]), None);
    }

    #[test]
    fn an_empty_secret_is_told_before_a_similar_name() {
        let set = [("CLAUDE_API_KEY", "canary"), ("ANTHROPIC_API_KEY", "")];
        let told = slip(&["ANTHROPIC_API_KEY"], &set).unwrap();
        assert!(told.starts_with("ANTHROPIC_API_KEY is empty"), "{told}");
    }
}
