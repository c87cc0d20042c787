//! Reads a labelled issue, or a pull request's description, as a plan.

use super::clean;
use crate::plan::{self, Checkbox, Plan, PlanFormat, Task, TaskId, TaskKind, TaskStatus};
use crate::settings::{NAMES, Settings};
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
        let mut is_work = work(body, &boxes).into_iter();
        if boxes.len() != tasks.len() {
            return None;
        }
        for (checkbox, _) in boxes
            .iter()
            .zip(is_work.clone())
            .filter(|(_, is_work)| !is_work)
        {
            details = format!("{details}\n\n{}", checkbox.text.trim_end());
        }
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
    if tasks
        .iter()
        .any(|task| task.settings != Settings::default())
    {
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
            .map(|heading| plain(heading))
            .unwrap_or_default();
        STATEMENTS.split('|').any(|begin| title.starts_with(begin))
            || nearest.ends_with('?')
            || OTHER_LISTS
                .split('|')
                .any(|begin| nearest.starts_with(begin))
    };
    let is_work = |heading: &String| {
        let heading = plain(heading);
        let mut words = heading.split(|c: char| !c.is_alphanumeric());
        let is_named = heading.contains("to do")
            || heading.contains("to-do")
            || heading.contains("action items");
        is_named || words.any(|word| WORK.contains(&word))
    };
    let fits: Vec<bool> = boxes.iter().map(|checkbox| !is_other(checkbox)).collect();
    let under: Vec<bool> = boxes
        .iter()
        .zip(&fits)
        .map(|(checkbox, fits)| *fits && checkbox.headings.iter().any(is_work))
        .collect();
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
        write!(
            f,
            "{}#{}",
            self.repository.as_deref().unwrap_or_default(),
            self.number
        )
    }
}

/// The issue to which a title refers, if it says nothing else.
pub fn reference(title: &str) -> Option<Reference> {
    let title = title.trim().trim_end_matches(['.', ':']);
    let (repository, number) = match title.split_once("://") {
        Some((_, url)) => {
            let mut parts = url.split('/').skip(1);
            let repository = format!("{}/{}", parts.next()?, parts.next()?);
            let is_issue = parts.next() == Some("issues");
            let number = parts.next()?.split(['?', '#']).next()?;
            (Some(repository).filter(|_| is_issue)?, number)
        }
        None => {
            let (repository, number) = title.split_once('#')?;
            (repository.to_owned(), number)
        }
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_repository = repository.split_once('/').is_some_and(|(owner, name)| {
        let parts = [owner, name];
        parts
            .iter()
            .all(|part| !part.is_empty() && part.chars().all(is_name))
    });
    (repository.is_empty() || is_repository).then_some(Reference {
        number: number.parse().ok()?,
        repository: Some(repository).filter(|name| !name.is_empty()),
    })
}

/// Gives a task the title and the text of the issue to which it refers.
pub fn resolve(task: &mut Task, reference: &Reference, title: &str, body: &str) {
    let title = clean::clean_line(title, MAX_TITLE);
    task.title = format!("{reference}: {title}");
    let parts = [clean::clean(body), std::mem::take(&mut task.description)];
    let parts: Vec<&str> = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
        .collect();
    task.description = parts.join("\n\n");
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
    let title = match title {
        "" => text::one_line(text::first_line(body), MAX_TITLE),
        title => title.to_owned(),
    };
    let title = if title.is_empty() {
        "Do what the issue asks for".to_owned()
    } else {
        title
    };
    let tasks = TaskId::new("t1").map(|id| Task {
        id,
        title: title.clone(),
        description: body.trim().to_owned(),
        acceptance: Vec::new(),
        depends_on: Vec::new(),
        directory: None,
        settings: Settings::default(),
        kind: TaskKind::Work,
        status: TaskStatus::Pending,
        attempts: None,
        completed_at: None,
        line: 1,
    });
    Plan {
        title,
        tasks: tasks.into_iter().collect(),
        ..Plan::without_tasks(PlanFormat::Headings)
    }
}

/// The text between `---` lines at the beginning, and the text after it. Without a closing line there is no
/// front matter.
fn split_front_matter(body: &str) -> (Option<&str>, &str) {
    let trimmed = body.trim_start();
    let Some(rest) = trimmed.strip_prefix("---\n") else {
        return (None, body);
    };
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            let after = rest.get(at + line.len()..).unwrap_or_default();
            return (rest.get(..at), after);
        }
        at += line.len();
    }
    (None, body)
}

/// The keys of a YAML mapping that configure a run.
fn configuration_keys(text: &str) -> Vec<String> {
    let Ok(Some(root)) = yaml::parse(text) else {
        return Vec::new();
    };
    let is_key = |key: &str| NAMES.iter().any(|(name, _)| *name == key) || key == "setup";
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
