//! "Did you mean …" suggestions for keys, ids and names.

/// The element of `known` that `given` most likely stands for, or `None` if none is similar.
///
/// Differences in case, `-` and `_` are ignored, so `maxRetries` and `max-retries` find `max_retries`. Apart
/// from these, at most a third of the characters may differ (rounded up, and at most four); a transposition
/// counts once. Of equally similar names, the first wins.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = folded(given);
    let allowed = wanted.chars().count().div_ceil(3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&wanted, &folded(name)), name))
        .filter(|&(distance, name)| distance <= allowed && distance < name.chars().count())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name)
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
    match nearest(key, known) {
        Some(name) => format!("`{key}` is not a key of {whole} (did you mean `{name}`?)"),
        None => format!("`{key}` is not a key of {whole}; `sprag schema {schema}` lists them"),
    }
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
        ] {
            assert_eq!(nearest(given, KEYS), expected, "{given}");
        }
    }

    #[test]
    fn what_is_not_near_is_not_suggested() {
        for given in ["", "x", "colour", "retries_of_the_task"] {
            assert_eq!(nearest(given, KEYS), None, "{given}");
        }
        assert_eq!(nearest("b", ["a"]), None);
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
