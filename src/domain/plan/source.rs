//! A plan's text, split into its tree and its Markdown body, with its format.

use super::PlanFormat;
use super::foreign::layout::{Layout, by_priority, holder};
use super::markdown::outline::{Heading, Mark, Outline};
use super::markdown::rule::TextTasks;
use crate::text_error::{Fault, Position};
use crate::yaml::{self, Node, Value};

/// The front matter key that stores the states of heading tasks.
pub(super) const STATUS_KEY: &str = "status";

/// The syntax of the text that contains the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Yaml,
    Json,
    Markdown,
}

/// A text and its tree. Offsets in the tree are offsets in `text`.
pub(super) struct Source<'a> {
    pub text: &'a str,
    pub container: Container,
    pub format: PlanFormat,
    /// The tree of the file or of its front matter.
    pub root: Option<Node>,
    /// The offset of the front matter's closing line, if there is front matter.
    pub front_end: Option<usize>,
    /// The offset of the Markdown body; the end of the text if there is none.
    pub body_start: usize,
    /// The body's structure.
    pub outline: Outline,
    /// The body's tasks; none in a format that has its tasks elsewhere.
    pub listed: TextTasks,
}

impl<'a> Source<'a> {
    pub fn open(name: &str, text: &'a str) -> Result<Self, Fault> {
        let container = match container(name, text) {
            Container::Yaml if is_front_matter_with_text(text) => Container::Markdown,
            container => container,
        };
        let (root, front_end, body_start) = match container {
            Container::Yaml => (yaml::parse(text)?, None, text.len()),
            Container::Json => (yaml::parse_json(text)?, None, text.len()),
            Container::Markdown => match front_matter(text)? {
                Some((end, body)) => (yaml::parse(&text[..end])?, Some(end), body),
                None => (None, None, 0),
            },
        };
        if let Some(root) = &root
            && !root.is_null()
            && !matches!(root.value, Value::Map { .. })
        {
            let expected = "a plan must be a mapping with keys such as `title` and `tasks`";
            let message = format!("{expected}, got {}", root.described());
            return Err(Fault::new(root.at, message));
        }
        let outline = Outline::of(&text[body_start..], body_start);
        let root = root.filter(|root| !root.is_null());
        let listed = match container {
            Container::Markdown => TextTasks::of(name, text, &outline),
            _ => TextTasks::default(),
        };
        let format = format(name, container, root.as_ref(), &listed);
        Ok(Self {
            text,
            container,
            format,
            root,
            front_end,
            body_start,
            outline,
            listed,
        })
    }

    pub fn body(&self) -> &'a str {
        &self.text[self.body_start..]
    }

    /// The checkboxes of the body that only Sprag sets, in order, each with the index of its task.
    pub fn task_boxes(&self) -> Vec<(usize, &Mark)> {
        let is_of_tasks = |heading: &Heading| {
            let words = heading.text.to_lowercase();
            let mut parts = words.split(|c: char| !c.is_alphanumeric());
            let is_named = parts.any(|part| matches!(part, "task" | "tasks"))
                || words.contains("implementation plan");
            is_named && !heading.section.informs()
        };
        match self.format {
            PlanFormat::Story => {
                let items = self.outline.items.iter().filter(|item| {
                    let mut sections = self.outline.sections(item.heading);
                    !item.is_criterion && sections.any(is_of_tasks)
                });
                items.map(|item| (0, &item.mark)).collect()
            }
            PlanFormat::Checklist | PlanFormat::TaskList | PlanFormat::Headings => {
                let tasks = self.listed.tasks.iter().enumerate();
                let boxes = tasks.flat_map(|(place, task)| {
                    let boxes = task.mark.iter().chain(&task.steps);
                    boxes.map(move |mark| (place, mark))
                });
                boxes.collect()
            }
            _ => Vec::new(),
        }
    }

    /// The box of a task, rather than that of one of its parts.
    pub fn own_box(&self, place: usize) -> Option<&Mark> {
        let task = self.listed.tasks.get(place)?;
        task.mark
            .as_ref()
            .filter(|_| self.format != PlanFormat::Story)
    }

    /// Whether the state of a task is in boxes of the text.
    pub fn has_boxes(&self, place: usize, id: &str) -> bool {
        let states = self.root.as_ref().and_then(|root| root.get(STATUS_KEY));
        let is_elsewhere = states.is_some_and(|states| states.get(id).is_some());
        match self.format {
            PlanFormat::Checklist | PlanFormat::TaskList => true,
            PlanFormat::Headings if !is_elsewhere => self
                .listed
                .tasks
                .get(place)
                .is_some_and(|task| task.has_boxes()),
            _ => false,
        }
    }

    /// The status of the whole plan, in a format that has one.
    pub fn plan_status(&self) -> Option<&str> {
        Layout::of(self.format)?.plan_status?;
        self.root.as_ref()?.get("status")?.text()
    }

    /// The mapping that holds the list of tasks.
    pub fn holder(&self) -> Option<&Node> {
        let root = self.root.as_ref()?;
        match self.format {
            PlanFormat::TaskMaster => holder(root),
            _ => Some(root),
        }
    }

    /// The tasks of the tree, in the order of the plan. A file that is one task is its tree.
    pub fn task_nodes(&self) -> Vec<&Node> {
        let list = Layout::of(self.format).map_or("tasks", |layout| layout.list);
        let tasks = self.holder().and_then(|holder| holder.get(list));
        let tasks = tasks.map(Node::items).unwrap_or_default();
        match self.format {
            PlanFormat::Story | PlanFormat::Backlog => self.root.iter().collect(),
            PlanFormat::Ralph => by_priority(tasks),
            _ => tasks.iter().collect(),
        }
    }
}

fn container(name: &str, text: &str) -> Container {
    let ending = name.rsplit('.').next().unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "yaml" | "yml" => return Container::Yaml,
        "md" | "markdown" => return Container::Markdown,
        "json" => return Container::Json,
        _ => {}
    }
    let markdown_line = |line: &str| {
        line.starts_with("## ") || line.starts_with("- [ ]") || line.starts_with("- [x]")
    };
    if text.trim_start().starts_with('{') {
        Container::Json
    } else if text.lines().any(markdown_line) {
        Container::Markdown
    } else {
        Container::Yaml
    }
}

/// The offsets of the front matter's closing line and of the body after it.
pub(crate) fn front_matter(text: &str) -> Result<Option<(usize, usize)>, Fault> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(None);
    };
    let mut start = first.len();
    for line in lines {
        let end = start + line.len();
        if matches!(line.trim_end(), "---" | "...") {
            return Ok(Some((start, end)));
        }
        start = end;
    }
    let message = "the front matter that begins here has no end: add a line `---` after it";
    Err(Fault::new(Position::START, message))
}

/// Whether a `.yml` file is really Markdown with front matter, as some tools name it. The text after the
/// front matter distinguishes it from a second YAML document, which is an error.
fn is_front_matter_with_text(text: &str) -> bool {
    let Ok(Some((_, body))) = front_matter(text) else {
        return false;
    };
    let body = &text[body..];
    // A sentence with a colon is a mapping too, with a key of several words.
    let is_mapping = |node: Option<Node>| {
        let keys = node.iter().flat_map(Node::entries).map(|entry| &entry.key);
        let mut words = keys.map(|key| key.contains(' '));
        words.next() == Some(false)
    };
    !body.trim().is_empty() && !yaml::parse(body).is_ok_and(is_mapping)
}

fn format(name: &str, container: Container, root: Option<&Node>, listed: &TextTasks) -> PlanFormat {
    let has = |key: &str| root.is_some_and(|root| root.entry(key).is_some());
    let tasks = root.and_then(|root| root.get("tasks"));
    let task_has = |keys: &[&str]| {
        let tasks = tasks.map(Node::items).unwrap_or_default();
        let has = |task: &Node| keys.iter().any(|key| task.entry(key).is_some());
        tasks.iter().any(has)
    };
    if container == Container::Markdown
        && !matches!(tasks.map(|t| &t.value), Some(Value::List { .. }))
    {
        let is_story = name.rsplit(['/', '\\']).next() == Some("story.md") && has("id");
        if is_story || has("implementation_complete") || has("research_complete") {
            return PlanFormat::Story;
        }
        let is_backlog = ["assignee", "created_date", "labels", "ordinal"];
        if has("id") && has("status") && has("title") && is_backlog.into_iter().any(has) {
            return PlanFormat::Backlog;
        }
        return listed.format;
    }
    if has("userStories") {
        PlanFormat::Ralph
    } else if root.and_then(holder).is_some() {
        PlanFormat::TaskMaster
    } else if task_has(&["acceptanceCriteria"]) || has("sourceFile") {
        PlanFormat::Rafa
    } else if task_has(&["done", "steps"])
        || has("planGeneratedAt")
        || has("rmfilter")
        || has("uuid")
    {
        PlanFormat::Rmplan
    } else {
        PlanFormat::Sprag
    }
}
