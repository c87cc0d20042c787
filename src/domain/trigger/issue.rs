//! Reads a labelled issue, or a pull request's description, as a plan.

use super::clean;
use crate::pattern::Pattern;
use crate::plan::{self, Checkbox, Plan, PlanFormat, Task, TaskId, TaskStatus};
use crate::settings::{self, Settings};
use crate::text::{self, has_word};
use crate::yaml;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::HashMap;

/// The maximum number of tasks in an issue.
pub const MAX_TASKS: usize = 50;

const MAX_TITLE: usize = 200;

/// The maximum number of letters of a text that only introduces a list.
const MAX_INTRODUCTION: usize = 60;

/// Beginnings of headings under which a report or a form lists something else than tasks.
const OTHER_LISTS: &str = "\
    affected|area|before|browser|checklist|code of conduct|component|contribut|device|environment|\
    expected|impact|operating|os|platform|pre-|prerequisite|priority|severity|steps to reproduce|system|\
    terms|type of|version|willing";

/// Beginnings of statements of an author, which are not tasks.
const STATEMENTS: &str = "\
    agree|by submitting|i |i'd|i'm|i've|i’d|i’m|i’ve|my |no,|this issue|this is |this pr |this pull|we |\
    yes";

/// Words of headings that announce a list of work.
const WORK: &[&str] = &["plan", "subtasks", "task", "tasks", "todo", "todos"];

/// An issue read as a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuePlan {
    /// The plan: its texts come from the issue, and its settings are empty.
    pub plan: Plan,
    /// The parts of the issue that were not followed, as sentences for the report.
    pub notes: Vec<String>,
}

/// The plan of an issue. The whole issue is one task, unless it is a list of work: see [`work`], or headings
/// that name tasks. Nothing in the issue configures anything: front matter, keys and fenced blocks that look like
/// settings are plain text, and a note says so. `is_own` recognises titles of tasks that Sprag has done: a
/// list that contains one is a task list even if all of it is checked.
pub fn plan(title: &str, body: &str, is_own: impl Fn(&str) -> bool) -> IssuePlan {
    let title = clean::clean_line(title, MAX_TITLE);
    let cleaned = clean::clean(body);
    let mut notes = Vec::new();
    let (front, body) = split_front_matter(&cleaned);
    if let Some(front) = front {
        notes.push(dropped("front matter", &configuration_keys(front)));
    }
    let configures = |language: &str| has_word("yaml yml json sprag", language);
    let blocks = text::fenced_blocks(body).into_iter();
    for (_, block) in blocks.filter(|(language, _)| configures(language)) {
        let keys = configuration_keys(&block);
        if !keys.is_empty() {
            notes.push(dropped("code block", &keys));
        }
    }
    let plan = listed(&title, body, &is_own, &mut notes).unwrap_or_else(|| single(&title, body));
    notes.dedup();
    IssuePlan { plan, notes }
}

/// The plan from the issue's checkboxes or headings, if it has any that qualify.
fn listed(
    title: &str,
    body: &str,
    is_own: &dyn Fn(&str) -> bool,
    notes: &mut Vec<String>,
) -> Option<Plan> {
    let parsed = match plan::parse("issue.md", body.trim_start().as_bytes()) {
        Ok(parsed) => parsed.value,
        Err(error) => {
            if plan::has_task_headings(body) || !plan::checkboxes(body).is_empty() {
                notes.push(format!("The issue is taken as one task: {error}"));
            }
            return None;
        }
    };
    let mut details = parsed.details;
    let mut tasks = parsed.tasks;
    if parsed.format != PlanFormat::Headings {
        let boxes = plan::checkboxes(body);
        let is_work = work(body, &boxes);
        if boxes.len() != tasks.len() {
            return None;
        }
        for (other, _) in boxes.iter().zip(&is_work).filter(|(_, is_work)| !**is_work) {
            details = format!("{details}\n\n{}", other.text.trim_end());
        }
        let mut is_work = is_work.into_iter();
        tasks.retain(|_| is_work.next() == Some(true));
    } else if !plan::has_task_headings(body) {
        return None;
    }
    let is_open = |task: &Task| {
        task.status != TaskStatus::Done || is_own(&clean::clean_line(&task.title, MAX_TITLE))
    };
    if !tasks.iter().any(is_open) {
        return None;
    }
    let is_set = |task: &Task| task.settings != Settings::default();
    if tasks.iter().any(is_set) {
        notes.push(dropped("text", &[]));
    }
    if tasks.len() > MAX_TASKS {
        notes.push(format!(
            "The issue has {} tasks, and one issue is taken for {MAX_TASKS} at most: it is taken as one task.",
            tasks.len()
        ));
        return None;
    }
    let tasks = tasks.into_iter().map(bare).collect();
    Some(Plan {
        title: if title.is_empty() {
            parsed.title
        } else {
            title.to_owned()
        },
        details: details.trim().to_owned(),
        tasks,
        ..Plan::without_tasks(parsed.format)
    })
}

/// Which of the boxes of an issue are work: those under a heading such as "Tasks", "To do" or "Plan", otherwise all of
/// them if they are most of the text. Statements of the author and the boxes of forms are not.
fn work(body: &str, boxes: &[Checkbox<'_>]) -> Vec<bool> {
    let is_other = |checkbox: &Checkbox<'_>| {
        let title = checkbox.title.to_lowercase();
        let nearest = checkbox
            .headings
            .first()
            .map_or_else(String::new, |name| plain(name));
        let begins = |text: &str, list: &str| list.split('|').any(|begin| text.starts_with(begin));
        nearest.ends_with('?') || begins(&title, STATEMENTS) || begins(&nearest, OTHER_LISTS)
    };
    let is_work = |heading: &String| {
        let heading = plain(heading);
        let mut words = heading.split(|c: char| !c.is_alphanumeric());
        let mut names = ["to do", "to-do", "action items"].iter();
        names.any(|name| heading.contains(name)) || words.any(|word| WORK.contains(&word))
    };
    let fits: Vec<bool> = boxes.iter().map(|checkbox| !is_other(checkbox)).collect();
    let of_work = |checkbox: &Checkbox<'_>| checkbox.headings.iter().any(is_work);
    let under = boxes
        .iter()
        .zip(&fits)
        .map(|(checkbox, fits)| *fits && of_work(checkbox));
    let under: Vec<bool> = under.collect();
    if under.contains(&true) {
        return under;
    }
    let of_boxes = |wanted: bool| -> usize {
        let boxes = boxes.iter().zip(&fits).filter(|(_, fits)| **fits == wanted);
        boxes.map(|(checkbox, _)| letters(checkbox.text)).sum()
    };
    let listed = of_boxes(true);
    let prose = letters(body).saturating_sub(listed + of_boxes(false));
    // A sentence above several boxes introduces them.
    let introduces = prose <= MAX_INTRODUCTION && fits.iter().filter(|fits| **fits).count() > 1;
    if (listed >= prose || introduces) && !is_form(body) {
        fits
    } else {
        vec![false; boxes.len()]
    }
}

/// The number of letters and digits of a text outside of code blocks, headings and HTML.
fn letters(text: &str) -> usize {
    let mut number = 0;
    let mut is_apart = false;
    for event in Parser::new_ext(text, Options::ENABLE_TASKLISTS) {
        match event {
            Event::Start(Tag::CodeBlock(_) | Tag::Heading { .. }) => is_apart = true,
            Event::End(TagEnd::CodeBlock | TagEnd::Heading(_)) => is_apart = false,
            Event::Text(text) | Event::Code(text) if !is_apart => {
                number += text.chars().filter(|c| c.is_alphanumeric()).count();
            }
            _ => {}
        }
    }
    number
}

/// A heading in lower case, without signs at its beginning.
fn plain(heading: &str) -> String {
    heading
        .trim_start_matches(|c: char| !c.is_alphanumeric())
        .trim()
        .to_lowercase()
}

/// Whether a text is that of an issue form: GitHub writes each field under a heading of the third level.
fn is_form(body: &str) -> bool {
    let body = clean::clean(body);
    let mut lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let begins = lines.next().is_some_and(|line| line.starts_with("### "));
    let is_prose = |line: &str| !line.starts_with(['#', '-', '*', '+', '<']);
    begins && (body.contains("_No response_") || lines.any(is_prose)) && !body.contains("\n## ")
}

/// An issue to which a task refers instead of saying what to do: `#12`, `owner/name#12` or its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The repository, if it is named.
    pub repository: Option<String>,
    /// The number of the issue.
    pub number: u64,
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let repository = self.repository.as_deref().unwrap_or_default();
        write!(f, "{repository}#{}", self.number)
    }
}

/// The issue to which a title refers, if it says nothing else.
pub fn reference(title: &str) -> Option<Reference> {
    static REFERENCE: Pattern = Pattern::new(concat!(
        r"^(?:[a-z]+://[^/]+/(?<of_url>[A-Za-z0-9._-]+/[A-Za-z0-9._-]+)/issues/(?<last>[0-9]+)(?:[/?#].*)?",
        r"|(?<named>[A-Za-z0-9._-]+/[A-Za-z0-9._-]+)?#(?<number>[0-9]+))$",
    ));
    let found = REFERENCE.captures(title.trim().trim_end_matches(['.', ':']))?;
    let repository = found.name("of_url").or(found.name("named"));
    let number = found.name("last").or(found.name("number"))?;
    Some(Reference {
        repository: repository.map(|name| name.as_str().to_owned()),
        number: number.as_str().parse().ok()?,
    })
}

/// Gives a task the title and the text of the issue to which it refers.
pub fn resolve(task: &mut Task, reference: &Reference, title: &str, body: &str) {
    let title = clean::clean_line(title, MAX_TITLE);
    task.title = format!("{reference}: {title}");
    let parts = [clean::clean(body), std::mem::take(&mut task.description)];
    let parts = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty());
    task.description = parts.collect::<Vec<_>>().join("\n\n");
}

/// The issue's text with the boxes of completed tasks checked, and every other byte unchanged. `tasks` has
/// the titles of all tasks in order, and whether each is done. A box is left unchanged if several tasks share
/// its title and it is unclear which one it belongs to, or if it is not a task.
pub fn with_done_checked(body: &str, tasks: &[(&str, bool)]) -> String {
    let mut of_title: HashMap<String, Vec<bool>> = HashMap::new();
    for (title, done) in tasks {
        let referred = title
            .split_once(": ")
            .and_then(|(named, _)| reference(named));
        let title = referred.map_or_else(|| (*title).to_owned(), |referred| referred.to_string());
        of_title.entry(title).or_default().push(*done);
    }
    let boxes = plan::checkboxes(body);
    let is_work = work(body, &boxes);
    let titled: Vec<(String, &Checkbox<'_>)> = boxes
        .iter()
        .zip(is_work)
        .filter(|(_, is_work)| *is_work)
        .map(|(checkbox, _)| {
            let title = clean::clean_line(&clean::clean(checkbox.title), MAX_TITLE);
            let title = reference(&title).map_or(title, |referred| referred.to_string());
            (title, checkbox)
        })
        .collect();
    let is_done = |place: usize, title: &String| -> Option<bool> {
        let done = of_title.get(title)?;
        let same = |known: &&(String, _)| known.0 == *title;
        if titled.iter().filter(same).count() == done.len() {
            done.get(titled[..place].iter().filter(same).count())
                .copied()
        } else {
            Some(done.iter().all(|done| *done))
        }
    };
    let all = titled.iter().enumerate();
    let done = all.filter(|(place, (title, _))| is_done(*place, title) == Some(true));
    plan::with_checked(body, done.map(|(_, (_, checkbox))| *checkbox))
}

/// A task with only its texts, its position and whether it is done.
fn bare(task: Task) -> Task {
    Task {
        title: clean::clean_line(&task.title, MAX_TITLE),
        settings: Settings::default(),
        attempts: None,
        completed_at: None,
        ..task
    }
}

fn single(title: &str, body: &str) -> Plan {
    let first = text::one_line(text::first_line(body), MAX_TITLE);
    let titles = [title, &first, "Do what the issue asks for"];
    let title = titles.into_iter().find(|title| !title.is_empty());
    let title = title.unwrap_or_default();
    let task = TaskId::new("t1").map(|id| Task {
        description: body.trim().to_owned(),
        line: 1,
        ..Task::new(id, title)
    });
    Plan {
        title: title.to_owned(),
        tasks: Vec::from_iter(task),
        ..Plan::without_tasks(PlanFormat::Headings)
    }
}

/// The text between `---` lines at the beginning, and the text after it. Without a closing line there is no
/// front matter.
fn split_front_matter(body: &str) -> (Option<&str>, &str) {
    let text = body.trim_start();
    match plan::front_matter(text) {
        Ok(Some((end, after))) => (Some(&text[..end]), &text[after..]),
        _ => (None, body),
    }
}

/// The keys of a YAML mapping that configure a run.
fn configuration_keys(text: &str) -> Vec<String> {
    let Ok(Some(root)) = yaml::parse(text) else {
        return Vec::new();
    };
    let is_key = |key: &str| settings::is_name(key) || key == "setup";
    let keys = root.entries().iter().map(|entry| entry.key.clone());
    keys.filter(|key| is_key(key)).collect()
}

fn dropped(what: &str, keys: &[String]) -> String {
    if keys.is_empty() {
        return format!("The issue's {what} is not read: an issue configures nothing.");
    }
    let keys: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    format!(
        "The issue's {what} sets {}, which is not followed: an issue configures nothing.",
        keys.join(", ")
    )
}

#[cfg(test)]
mod tests;
