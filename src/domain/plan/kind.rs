//! Tasks that only check, and steps that only commit, recognised by their words.

use super::TaskKind;
use crate::pattern::Pattern;
use crate::text::has_word;

/// The first words of a check.
const VERBS: &str = "check confirm ensure execute make rerun run validate verify";

/// The objects of a check.
const SUBJECTS: &str = "\
    build builds check checks ci clippy coverage eslint everything gate lint linter linters linting \
    lints pytest regression regressions suite test tests typecheck typechecks validation verification";

/// Words that a check may have besides.
const FILLERS: &str = "\
    a after again all and any are before clean cleanly code compile compiles complete completely \
    continuing correct correctly e2e end entire existing final format formatting full fully green have \
    in integration is it local locally no of on ok once pass passed passes passing project quality re \
    run runs still succeed succeeds successful successfully sure that the they this to type types unit \
    we whole with without work works working errors error failures warnings zero your";

/// Words after `commit` in a step that only commits.
const COMMITTED: &str = "\
    a add all and change changes code everything files git it message progress push results task the \
    these this to with work your";

/// What a task asks for.
pub(super) fn kind_of(title: &str, description: &str) -> TaskKind {
    let says_no_more = description.lines().all(|line| {
        let line = line.trim_start_matches(['-', '*', ' ', '\t']);
        line.is_empty()
            || line.starts_with(['_', '`'])
            || line.starts_with("Part of: ")
            || asks_for_check(line)
            || line.to_lowercase().contains("ask the user")
    });
    if (asks_for_check(title) && says_no_more) || only_commits(title) {
        TaskKind::Check
    } else {
        TaskKind::Work
    }
}

/// The first words of a question. A request such as `Can you fix it?` has none of them.
const QUESTION_WORDS: &str = "\
    are did do does has have how is was were what what's when where which who whose why";

/// Whether a title is a question, which an answer without a change can satisfy.
pub fn is_question(title: &str) -> bool {
    let lower = title.trim().to_lowercase();
    let first = lower.split_whitespace().next().unwrap_or_default();
    lower.ends_with('?') && has_word(QUESTION_WORDS, first)
}

/// Whether a line asks for nothing but a check.
fn asks_for_check(line: &str) -> bool {
    let line = line.trim_matches(['*', '_', ' ', '.', '!', ':']);
    let lower = line.to_lowercase();
    let words: Vec<&str> = words(&lower).collect();
    if let Some(rest) = lower.strip_prefix("checkpoint") {
        let rest = rest.trim_start_matches(|c: char| !c.is_alphabetic());
        return rest.is_empty()
            || asks_for_check(rest)
            || rest.contains("ask the user")
            || only_fillers(&words[1..]);
    }
    static MANUAL: Pattern =
        Pattern::new("^(?:(?:verify|test) manually|manually verify|manual (?:test|verification))");
    if MANUAL.is_match(&lower) {
        return true;
    }
    match words.as_slice() {
        ["final" | "full", rest @ ..] if !rest.is_empty() => {
            only_fillers(rest) && has_subject(rest)
        }
        ["verify" | "verification" | "validation"] => true,
        [verb, ..] if *verb == "run" && is_command(line) => true,
        // `make test` runs a check; "make the tests pass" asks for work.
        ["make", rest @ ..] if rest.first() != Some(&"sure") => {
            !rest.is_empty() && rest.iter().all(|word| has_word(SUBJECTS, word))
        }
        [first, rest @ ..] if has_word(VERBS, first) => only_fillers(rest) && has_subject(rest),
        [..] => {
            lower.starts_with("all ")
                && only_fillers(&words)
                && has_subject(&words)
                && lower.contains("pass")
        }
    }
}

/// Whether a line is `run` and one command between backticks, and nothing else.
fn is_command(line: &str) -> bool {
    let parts: Vec<String> = line.splitn(3, '`').map(str::to_lowercase).collect();
    let [before, command, after] = parts.as_slice() else {
        return false;
    };
    let fills = |text: &str| only_fillers(&words(text).collect::<Vec<_>>());
    words(command).any(|word| has_word(SUBJECTS, word)) && fills(before) && fills(after)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty())
}

fn has_subject(words: &[&str]) -> bool {
    words.iter().any(|word| has_word(SUBJECTS, word))
}

/// A check in or with another subject, such as CI or coverage, is work on that.
fn only_fillers(words: &[&str]) -> bool {
    let plain = words.iter().copied().filter(|word| *word != "the");
    let plain: Vec<&str> = plain.collect();
    let is_within =
        |pair: &[&str]| has_word("after before in on with", pair[0]) && has_word(SUBJECTS, pair[1]);
    let fills =
        |word: &&str| has_word(VERBS, word) || has_word(SUBJECTS, word) || has_word(FILLERS, word);
    words.iter().all(fills) && !plain.windows(2).any(is_within)
}

/// Whether a line asks for nothing but a commit.
pub(super) fn only_commits(line: &str) -> bool {
    let line = line.trim_matches(['*', '_', ' ', '`']);
    let line = match line.split_once([':', '.']) {
        Some((label, rest)) if label.to_lowercase().starts_with("step ") => rest,
        _ => line,
    };
    let lower = line.trim_matches(['*', '_', ' ', '`']).to_lowercase();
    if lower.starts_with("git commit") || lower.starts_with("git add") {
        return true;
    }
    let Some(rest) = lower
        .strip_prefix("commit")
        .map(|rest| rest.strip_prefix("ting").unwrap_or(rest))
    else {
        return false;
    };
    let is_word = rest.is_empty() || !rest.starts_with(char::is_alphanumeric);
    let before_message = rest
        .split([':', '`', '"', '\'', '('])
        .next()
        .unwrap_or_default();
    is_word && words(before_message).all(|word| has_word(COMMITTED, word))
}

#[cfg(test)]
mod tests {
    use super::{is_question, kind_of};
    use crate::plan::TaskKind;

    #[test]
    fn a_question_begins_with_its_word_and_a_request_does_not() {
        for title in [
            "Why does the nightly build fail?",
            "  what's the licence? ",
            "Is `a` used?",
        ] {
            assert!(is_question(title), "{title}");
        }
        for title in [
            "Can you fix it?",
            "Why it fails",
            "Fix what is broken?",
            "?",
            "",
        ] {
            assert!(!is_question(title), "{title}");
        }
    }

    #[test]
    fn a_task_that_only_runs_checks_is_told_from_a_repair() {
        for title in [
            "make test",
            "Make sure all tests pass",
            "Checkpoint - ensure all tests pass",
            "Run the linter",
        ] {
            assert_eq!(kind_of(title, ""), TaskKind::Check, "{title}");
        }
        for title in [
            "Make the tests pass",
            "Make the tests pass again",
            "Make the build work without warnings",
            "Fix the tests",
            "Run linter in CI",
            "Run all tests in CI",
            "Verify all tests pass in the CI",
            "Run tests with coverage",
            "Run the linter before the build",
        ] {
            assert_eq!(kind_of(title, ""), TaskKind::Work, "{title}");
        }
    }
}
