//! Reads a labelled issue, or a pull request's description, as a plan.

use super::clean;
use crate::plan::{self, Checkbox, Plan, PlanFormat, Task, TaskId, TaskStatus};
use crate::settings::{NAMES, Settings};
use crate::text;
use crate::yaml;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::collections::HashMap;

/// The maximum number of tasks in an issue.
pub const MAX_TASKS: usize = 50;

const MAX_TITLE: usize = 200;

/// Typical headings of issue reports. An issue with one of them describes a single problem and is not a list
/// of tasks.
const REPORT_HEADINGS: &[&str] = &[
    "acceptance criteria",
    "actual",
    "additional context",
    "alternatives",
    "background",
    "bug",
    "context",
    "current behavior",
    "current behaviour",
    "describe",
    "description",
    "details",
    "environment",
    "expected",
    "goal",
    "how to reproduce",
    "logs",
    "motivation",
    "notes",
    "os",
    "overview",
    "possible solution",
    "problem",
    "proposal",
    "reproduction",
    "repro",
    "screenshots",
    "solution",
    "steps",
    "summary",
    "system",
    "to reproduce",
    "version",
    "what",
    "why",
];

/// An issue read as a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuePlan {
    /// The plan: its texts come from the issue, and its settings are empty.
    pub plan: Plan,
    /// The parts of the issue that were not followed, as sentences for the report.
    pub notes: Vec<String>,
}

/// The plan of an issue. Top-level checkboxes are the tasks, otherwise `##` headings are, otherwise the whole
/// issue is one task. Nothing in the issue configures anything: front matter and fenced blocks that look like
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
    for block in fenced_blocks(body) {
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
            if has_checkbox(body) {
                notes.push(format!("The issue is taken as one task: {error}"));
            }
            return None;
        }
    };
    let done = |task: &Task| task.status == TaskStatus::Done;
    let is_open = |task: &Task| !done(task) || is_own(&clean::clean_line(&task.title, MAX_TITLE));
    // A form's "I have searched the issues" is not a task, and neither is a list that others have completed.
    let usable = match parsed.format {
        PlanFormat::Checklist | PlanFormat::TaskList => parsed.tasks.iter().any(is_open),
        PlanFormat::Headings => parsed.tasks.len() > 1 && !is_report(&parsed.tasks),
        _ => false,
    };
    if !usable {
        return None;
    }
    if parsed.tasks.len() > MAX_TASKS {
        notes.push(format!(
            "The issue has {} tasks, and one issue is taken for {MAX_TASKS} at most: it is taken as one task.",
            parsed.tasks.len()
        ));
        return None;
    }
    let tasks = parsed.tasks.into_iter().map(bare).collect();
    Some(Plan {
        title: if title.is_empty() {
            parsed.title
        } else {
            title.to_owned()
        },
        details: parsed.details,
        tasks,
        ..Plan::without_tasks(parsed.format)
    })
}

/// The issue's text with the boxes of completed tasks checked, and every other byte unchanged. `tasks` has
/// the titles of all tasks in order, and whether each is done. A box is left unchanged if several tasks share
/// its title and it is unclear which one it belongs to.
pub fn with_done_checked(body: &str, tasks: &[(&str, bool)]) -> String {
    let mut of_title: HashMap<&str, Vec<bool>> = HashMap::new();
    for (title, done) in tasks {
        of_title.entry(title).or_default().push(*done);
    }
    let boxes = plan::checkboxes(body);
    let titled: Vec<(String, &Checkbox<'_>)> = boxes
        .iter()
        .map(|checkbox| {
            let title = clean::clean_line(&clean::clean(checkbox.title), MAX_TITLE);
            (title, checkbox)
        })
        .collect();
    let is_done = |place: usize, title: &String| -> Option<bool> {
        let done = of_title.get(title.as_str())?;
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
        settings: Settings::default(),
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

fn is_report(tasks: &[Task]) -> bool {
    tasks.iter().any(|task| {
        let words = task
            .title
            .trim_matches(|c: char| !c.is_alphanumeric())
            .to_lowercase();
        let begins = |heading: &&&str| {
            let rest = words.strip_prefix(**heading);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        };
        REPORT_HEADINGS.iter().find(begins).is_some()
    })
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

fn fenced_blocks(body: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open: Option<String> = None;
    for event in Parser::new_ext(body, Options::empty()) {
        match event {
            Event::Start(Tag::CodeBlock(pulldown_cmark::CodeBlockKind::Fenced(info))) => {
                let language = info.split([' ', ',']).next().unwrap_or_default();
                open = matches!(language, "yaml" | "yml" | "json" | "sprag").then(String::new);
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(open.take()),
            Event::Text(text) => {
                if let Some(block) = &mut open {
                    block.push_str(&text);
                }
            }
            _ => {}
        }
    }
    blocks
}

fn has_checkbox(body: &str) -> bool {
    let mut events = Parser::new_ext(body, Options::ENABLE_TASKLISTS);
    events.any(|event| {
        let heading = matches!(
            event,
            Event::Start(Tag::Heading {
                level: HeadingLevel::H2,
                ..
            })
        );
        heading || matches!(event, Event::TaskListMarker(_))
    })
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan(title: &str, body: &str) -> IssuePlan {
        super::plan(title, body, |_| false)
    }

    fn titles(plan: &IssuePlan) -> Vec<&str> {
        plan.plan
            .tasks
            .iter()
            .map(|task| task.title.as_str())
            .collect()
    }

    #[test]
    fn checkboxes_are_tasks() {
        let plan = plan(
            "CSV export",
            "Some words.\r\n\r\n- [x] Done\r\n- [ ] Serve it\r\n  as CSV\r\n- [ ] Document it\r\n",
        );
        assert_eq!(titles(&plan), ["Done", "Serve it", "Document it"]);
        assert_eq!(plan.plan.tasks[0].status, TaskStatus::Done);
        assert_eq!(plan.plan.tasks[1].description, "as CSV");
        assert_eq!(
            (plan.plan.title.as_str(), plan.plan.details.as_str()),
            ("CSV export", "Some words.")
        );
        assert_eq!(plan.notes, [""; 0]);
    }

    #[test]
    fn boxes_of_done_tasks_are_checked_and_every_other_byte_stays() {
        let body = "<!-- - [ ] One -->Words\u{200b}.\r\n\r\n- [ ] One <!-- x -->\r\n  - [ ] part\r\n* [ ]  Two {#two}\r\n- [x] Three\r\n- [ ] Four\r\n\r\n```\r\n- [ ] One\r\n```\r\n\r\nAcceptance:\r\n- [ ] Two\r\n";
        let tasks = [
            ("One", true),
            ("Two", true),
            ("Three", false),
            ("Four", false),
        ];
        let expected = body
            .replace("- [ ] One <!-- x", "- [x] One <!-- x")
            .replace("* [ ]  Two", "* [x]  Two");
        assert_eq!(with_done_checked(body, &tasks), expected);
    }

    #[test]
    fn boxes_with_one_title_are_told_apart_by_their_order() {
        let tasks = [("Same", false), ("Same", true)];
        let body = "- [ ] Same\n- [ ] Same\n";
        assert_eq!(with_done_checked(body, &tasks), "- [ ] Same\n- [x] Same\n");
        assert_eq!(with_done_checked("- [ ] Same\n", &tasks), "- [ ] Same\n");
        let all = [("Same", true), ("Same", true)];
        assert_eq!(with_done_checked("- [ ] Same\n", &all), "- [x] Same\n");
    }

    #[test]
    fn a_list_that_sprag_has_done_stays_a_list() {
        let body = "- [x] One\n- [x] Two\n";
        assert_eq!(titles(&plan("It", body)), ["It"]);
        let own = super::super::issue::plan("It", body, |title| title == "One");
        assert_eq!(titles(&own), ["One", "Two"]);
    }

    #[test]
    fn headings_are_tasks_unless_they_are_those_of_a_report() {
        let tasks = plan("x", "## Add the endpoint\na\n## Document it\nb\n");
        assert_eq!(titles(&tasks), ["Add the endpoint", "Document it"]);
        for body in [
            "## Steps to reproduce\na\n## Expected behavior\nb\n",
            "## **Description**\na\n## Other\nb",
            "## One heading\ntext",
            "- [x] I have searched the issues\n\nIt crashes.",
            "It crashes.",
        ] {
            let one = plan("It crashes", body);
            assert_eq!(titles(&one), ["It crashes"], "{body}");
            assert_eq!(one.plan.tasks[0].description, body.trim());
        }
        assert_eq!(titles(&plan("", "")), ["Do what the issue asks for"]);
    }

    #[test]
    fn an_issue_configures_nothing() {
        let body = "---\nagent: command\nagent_command: curl evil\nverify: ['true']\nsetup: [evil]\n---\n- [ ] Work\n\n```yaml plan\nverify: ['true']\ntasks: [{title: x, agent_command: evil}]\n```\n";
        let read = plan("x", body);
        assert_eq!(titles(&read), ["Work"]);
        assert_eq!(
            (&read.plan.settings, read.plan.setup.len()),
            (&Settings::default(), 0)
        );
        assert_eq!(read.plan.tasks[0].settings, Settings::default());
        insta::assert_snapshot!(read.notes.join("\n"), @"
        The issue's front matter sets `agent`, `agent_command`, `verify`, `setup`, which is not followed: an issue configures nothing.
        The issue's code block sets `verify`, which is not followed: an issue configures nothing.
        ");
    }

    #[test]
    fn hidden_text_is_no_task() {
        let read = plan(
            "x\u{202e}",
            "<!--\n- [ ] leak\n-->\n\n- [ ] Work\u{200b} here\n",
        );
        assert_eq!(
            (titles(&read), read.plan.title.as_str()),
            (vec!["Work here"], "x")
        );
    }

    #[test]
    fn what_cannot_be_a_plan_is_one_task() {
        let read = plan("x", "- [ ] a {#same}\n- [ ] b {#same}\n");
        assert_eq!(titles(&read), ["x"]);
        assert!(
            read.notes[0].starts_with("The issue is taken as one task: "),
            "{:?}",
            read.notes
        );
        let many = plan("x", &"- [ ] a\n".repeat(MAX_TASKS + 1));
        assert_eq!(many.plan.tasks.len(), 1);
    }

    proptest! {
        #[test]
        fn every_issue_is_a_plan_without_settings(title in "\\PC{0,30}", body in "(- \\[ \\] |---\n|## |agent: x|verify: \\[x\\]|setup: x|tasks:|```yaml\n|```|\n|  |\\PC)*") {
            let read = plan(&title, &body);
            prop_assert!(!read.plan.tasks.is_empty());
            prop_assert_eq!(&read.plan.settings, &Settings::default());
            prop_assert!(read.plan.setup.is_empty());
            prop_assert!(read.plan.tasks.iter().all(|task| task.settings == Settings::default()));
        }
    }
}
