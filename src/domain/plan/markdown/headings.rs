//! What the words of a heading say about its section.

use crate::text::has_word;

/// Headings whose sections inform about a plan and are not tasks.
const ABOUT: &str = "\
    about|approach|architecture|assumptions|background|completed|constraints|context|current state|\
    dependencies|description|done|execution handoff|file structure|files|global constraints|glossary|goal|\
    goals|introduction|links|motivation|notes|objective|objectives|overview|problem|problem statement|\
    progress|references|requirements|resources|risks|scope|self-review|status|summary|table of contents|\
    tech stack|technical details|timeline";

/// Headings of what a plan leaves for later or for others. Boxes below them are not tasks either.
pub(super) const APART: &str = "\
    deferred|future|future work|non-goals|non goals|open questions|out of scope|prerequisites|questions|\
    rollback|rollback plan";

/// Words that make a heading with a number a task.
const TASK_WORDS: &[&str] = &["task", "step", "story", "todo", "iteration"];

/// First words of a heading that asks for something about criteria.
const WORK_VERBS: &str = "add check confirm create define document ensure fix implement meet test update validate verify write";

/// Whether a heading announces acceptance criteria, and is not itself a task about them.
pub(super) fn is_criteria_heading(text: &str) -> bool {
    const NAMES: [&str; 6] = [
        "acceptance criteria",
        "acceptance check",
        "completion criteria",
        "success criteria",
        "definition of done",
        "exit criteria",
    ];
    let words = text.to_lowercase();
    let first = words.split(' ').next().unwrap_or_default();
    let is_work = label(text).is_some() || has_word(WORK_VERBS, first);
    !is_work && (is_acceptance(text) || NAMES.iter().any(|name| words.contains(name)))
}

/// Whether a line or an item announces acceptance criteria.
pub(super) fn is_acceptance(text: &str) -> bool {
    let words = text.trim().trim_end_matches(':').trim().to_lowercase();
    matches!(
        words.as_str(),
        "acceptance"
            | "acceptance criteria"
            | "acceptance tests"
            | "definition of done"
            | "done when"
            | "exit criteria"
            | "success criteria"
    )
}

/// Whether a heading's section informs about the plan or its result.
pub(super) fn informs(heading: &str) -> bool {
    is_one_of(ABOUT, heading) || is_one_of(APART, heading) || is_criteria_heading(heading)
}

/// Whether a heading has one of these names, which may have a number before it and a remark in brackets behind it.
pub(super) fn is_one_of(names: &str, heading: &str) -> bool {
    let numbered = |c: char| c.is_ascii_digit() || ".) ".contains(c);
    let heading = heading.split(" (").next().unwrap_or_default();
    let words = heading
        .trim_start_matches(numbered)
        .trim_end_matches(':')
        .trim()
        .to_lowercase();
    names.split('|').any(|name| name == words)
}

/// The id and the title of a heading that names a task: `Task 3: Serve it`, `US-001: Serve it`.
pub(super) fn label(heading: &str) -> Option<(String, &str)> {
    let heading = heading.trim_start_matches(['*', '_', ' ']);
    let begins = |word: &&&str| {
        heading
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    let heading = heading
        .get(5..)
        .filter(|_| begins(&&"user "))
        .unwrap_or(heading);
    let of_word = TASK_WORDS.iter().find(begins).and_then(|word| {
        let rest = heading.get(word.len()..)?;
        let number = rest.trim_start_matches([' ', '#', '-']);
        (number.len() < rest.len()).then_some(number)
    });
    let (id, rest) = match of_word {
        Some(number) => {
            let (id, rest) = token(number);
            let is_letter = id.len() == 1
                && id.starts_with(|c: char| c.is_ascii_uppercase())
                && rest.starts_with(':');
            let is_number = id.starts_with(|c: char| c.is_ascii_digit());
            (is_number || is_letter).then(|| (format!("t{id}"), rest))?
        }
        None => {
            let (id, rest) = token(heading);
            let number = ["US", "T"]
                .iter()
                .find_map(|prefix| id.strip_prefix(prefix))?
                .trim_start_matches('-');
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| (id.to_owned(), rest))?
        }
    };
    let title = rest.trim_start_matches([':', '.', ')', '-', '–', '—', '*', ' ', '|']);
    Some((id, title.trim_end_matches(['*', ' '])))
}

/// The letters, digits, dots and hyphens at the beginning, and the rest.
pub(super) fn token(text: &str) -> (&str, &str) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let id = text[..end].trim_end_matches(['.', '-', '_']);
    (id, &text[id.len()..])
}
