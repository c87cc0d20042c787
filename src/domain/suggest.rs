//! "Did you mean …" suggestions for keys, ids and names.

/// The element of `known` that `given` most likely stands for, or `None` if none is similar.
///
/// Differences in case, `-` and `_` are ignored, so `maxRetries` and `max-retries` find `max_retries`. Apart
/// from these, at most a third of the characters may differ (rounded down, at least one and at most four); a transposition
/// counts once. Of equally similar names, the first wins. A whole word of a single name finds that name:
/// `retries` stands for `max_retries`.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(given);
    let known: Vec<&'a str> = known.into_iter().collect();
    let close = known
        .iter()
        .any(|name| strsim::osa_distance(&wanted, &folded(name)) <= 1);
    let mut with_word = known.iter().filter(|name| {
        let mut words = name.split(['-', '_']);
        words.any(|word| folded(word) == wanted)
    });
    if let (false, Some(name), None) = (close, with_word.next(), with_word.next()) {
        return Some(name);
    }
    let allowed = (wanted.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&wanted, &folded(name)), name))
        .filter(|&(distance, name)| distance <= allowed && distance < name.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
}

/// Whether one of two different names is the other one with one typing error.
pub fn is_typing_error(given: &str, known: &str) -> bool {
    strsim::osa_distance(given, known) == 1
}

/// ` (did you mean "x"?)` for the nearest of `known`, or nothing: to append to a message.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// The error about an unknown key of a mapping: `whole` is the mapping, and `schema` the argument of `sprag
/// schema` that lists its keys.
pub fn unknown_key<'a>(
    key: &str,
    whole: &str,
    known: impl IntoIterator<Item = &'a str>,
    schema: &str,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let near = nearest(key, known.iter().copied());
    let hint = match (near, secret_variable(key)) {
        (Some(name), _) => format!(" (did you mean `{name}`?)"),
        (None, Some(variable)) => {
            format!(": a secret does not belong in a file; set the environment variable {variable}")
        }
        (None, None) => format!("; `sprag schema {schema}` lists them"),
    };
    format!("`{key}` is not a key of {whole}{hint}")
}

/// The environment variable for a key that names a secret.
fn secret_variable(key: &str) -> Option<String> {
    let key = key.replace('-', "_").to_ascii_uppercase();
    let is_secret = ["API_KEY", "APIKEY", "TOKEN", "SECRET", "PASSWORD"]
        .iter()
        .any(|end| key.ends_with(end));
    is_secret.then_some(key)
}

fn folded(name: &str) -> String {
    name.chars()
        .filter(|c| !matches!(c, '-' | '_' | ' '))
        .flat_map(char::to_lowercase)
        .take(100)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 4] = ["max_retries", "max_tokens", "model", "verify"];

    #[test]
    fn typing_errors_and_other_spellings_are_found() {
        for (given, expected) in [
            ("max_retrys", Some("max_retries")),
            ("maxRetries", Some("max_retries")),
            ("MAX-TOKENS", Some("max_tokens")),
            ("modle", Some("model")),
            ("verfy", Some("verify")),
            ("retries", Some("max_retries")),
            ("Tokens", Some("max_tokens")),
            ("max", None),
        ] {
            assert_eq!(nearest(given, KEYS), expected, "{given}");
        }
    }

    #[test]
    fn a_secret_is_sent_to_the_environment() {
        assert_eq!(
            unknown_key("openai-api-key", "the configuration", KEYS, "config"),
            "`openai-api-key` is not a key of the configuration: a secret does not belong in a file; set the environment variable OPENAI_API_KEY"
        );
        assert_eq!(
            unknown_key("max_token", "the configuration", KEYS, "config"),
            "`max_token` is not a key of the configuration (did you mean `max_tokens`?)"
        );
    }

    #[test]
    fn what_is_not_near_is_not_suggested() {
        for given in ["", "x", "colour", "retries_of_the_task"] {
            assert_eq!(nearest(given, KEYS), None, "{given}");
        }
        assert_eq!(nearest("b", ["a"]), None);
        assert_eq!(nearest("date", ["base", "name"]), None);
    }

    #[test]
    fn the_first_of_equally_near_names_wins() {
        assert_eq!(nearest("task3", ["task1", "task2"]), Some("task1"));
    }

    #[test]
    fn the_question_can_be_appended() {
        assert_eq!(did_you_mean("modle", KEYS), " (did you mean `model`?)");
        assert_eq!(did_you_mean("zzz", KEYS), "");
    }
}
