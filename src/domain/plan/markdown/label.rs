//! The labels with which headings and boxes name tasks.

use crate::pattern::Pattern;

/// The id and the title of a heading that names a task: `Task 3: Serve it`, `US-001: Serve it`.
pub(super) fn of_heading(heading: &str) -> Option<(String, &str)> {
    static LABEL: Pattern = Pattern::new(concat!(
        r"^[*_ ]*(?:(?i:user )?(?i:task|step|story|todo|iteration)[ #-]+",
        r"(?:(?<number>[0-9](?:[0-9A-Za-z._-]*[0-9A-Za-z])?)|(?<letter>[A-Z]):)|(?<id>(?:US|T)-*[0-9]+))",
        r"[._-]*(?<rest>(?:[^0-9A-Za-z].*)?)$",
    ));
    let found = LABEL.captures(heading)?;
    let number = found.name("number").or(found.name("letter"));
    let id = match number {
        Some(number) => format!("t{}", number.as_str()),
        None => found.name("id")?.as_str().to_owned(),
    };
    let title = found.name("rest")?.as_str();
    let title = title.trim_start_matches([':', '.', ')', '-', '–', '—', '*', ' ', '|']);
    Some((id, title.trim_end_matches(['*', ' '])))
}

/// The beginning of the line of a box: `T012 [P] [US1] Create the model in src/model.py`, or `1.3 Create it`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) struct Label<'a> {
    pub id: &'a str,
    /// Whether the id is a number such as `2` or `1.3`, and not one of spec-kit, which has at least three digits.
    pub is_number: bool,
    pub is_parallel: bool,
    pub is_of_story: bool,
    pub title: &'a str,
}

/// The label of a line.
pub(in crate::plan) fn label(line: &str) -> Option<Label<'_>> {
    static LABEL: Pattern = Pattern::new(concat!(
        r"^\s*\**(?:(?<id>T[0-9]{3,}[a-z]?)|(?<number>[0-9]+(?:\.[0-9]+)*)\.?)[*:]*\s+",
        r"(?<marks>(?:\[(?:P|US[0-9]+)\]\s*)*)(?<title>\S.*)$",
    ));
    let found = LABEL.captures(line.trim_end())?;
    let id = found.name("id");
    let marks = found.name("marks")?.as_str();
    Some(Label {
        id: id.or(found.name("number"))?.as_str(),
        is_number: id.is_none(),
        is_parallel: marks.contains("[P]"),
        is_of_story: marks.contains("[US"),
        title: found.name("title")?.as_str(),
    })
}

/// The ids after `depends on` in the line of a box.
pub(in crate::plan) fn dependencies(line: &str) -> Vec<String> {
    static DEPENDS: Pattern = Pattern::new(r"(?i:depends on)([^)]*)");
    static ID: Pattern = Pattern::new(r"\bT[0-9]{3,}[a-z]?\b");
    let listed = DEPENDS.captures(line);
    let listed = listed.and_then(|found| found.get(1));
    let ids = ID.captures_iter(listed.map_or("", |listed| listed.as_str()));
    ids.map(|id| id[0].to_owned()).collect()
}

/// Whether a checklist is a task list, judging by the line of its first task. Plain numbers count only in a file
/// named `tasks.md`.
pub(super) fn is_task_list(name: &str, first: &str) -> bool {
    let is_named = name.rsplit(['/', '\\']).next() == Some("tasks.md");
    label(first).is_some_and(|label| is_named || !label.is_number)
}
