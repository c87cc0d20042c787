//! The labels of the tasks in a list of spec-kit.

/// The beginning of a task's line: `T012 [P] [US1] Create the model in src/model.py`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) struct Label<'a> {
    pub id: &'a str,
    pub is_parallel: bool,
    pub is_of_story: bool,
    pub title: &'a str,
}

/// The label of a line that starts with a spec-kit id: `T` and at least three digits.
pub(in crate::plan) fn label(line: &str) -> Option<Label<'_>> {
    labelled(line, |id| {
        let number = id.strip_prefix('T')?;
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let suffix = &number[digits..];
        let is_suffix = suffix.len() <= 1 && suffix.bytes().all(|b| b.is_ascii_lowercase());
        (digits >= 3 && is_suffix).then_some(id)
    })
}

/// The label of a line that starts with a number such as `2.` or `1.3`.
pub(in crate::plan) fn numbered(line: &str) -> Option<Label<'_>> {
    labelled(line, |id| {
        let id = id.trim_end_matches('.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        id.split('.').all(is_number).then_some(id)
    })
}

fn labelled<'a>(line: &'a str, id_of: impl Fn(&'a str) -> Option<&'a str>) -> Option<Label<'a>> {
    let (first, rest) = line.trim().split_once(char::is_whitespace)?;
    let id = id_of(first.trim_matches('*').trim_end_matches(':'))?;
    let mut label = Label {
        id,
        is_parallel: false,
        is_of_story: false,
        title: rest.trim(),
    };
    while let Some((marker, title)) = marker(label.title) {
        match marker {
            "P" => label.is_parallel = true,
            story => label.is_of_story |= is_story(story),
        }
        label.title = title;
    }
    (!label.title.is_empty()).then_some(label)
}

/// A `[P]` or `[US1]` at the beginning, and the text after it.
fn marker(text: &str) -> Option<(&str, &str)> {
    let (marker, rest) = text.strip_prefix('[')?.split_once(']')?;
    let is_marker = marker == "P" || is_story(marker);
    is_marker.then_some((marker, rest.trim_start()))
}

fn is_story(marker: &str) -> bool {
    let number = marker.strip_prefix("US").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a checklist is such a task list, judging by the line of its first task. Plain numbers count only
/// in a file named `tasks.md`.
pub(in crate::plan) fn is_task_list(name: &str, first: &str) -> bool {
    let is_named = name.rsplit(['/', '\\']).next() == Some("tasks.md");
    label(first).is_some() || (is_named && numbered(first).is_some())
}
