//! A plan's text, split into its tree and its Markdown body, with its format.

use super::PlanFormat;
use super::foreign::plan_status;
use super::markdown::boxes::{self, Mark};
use super::markdown::outline::{Item, Outline};
use super::task_list::is_task_list;
use crate::text_error::{Fault, Position};
use crate::yaml::{self, Node, Value};

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
        let format = format(name, text, container, root.as_ref(), &outline);
        Ok(Self {
            text,
            container,
            format,
            root,
            front_end,
            body_start,
            outline,
        })
    }

    pub fn body(&self) -> &'a str {
        &self.text[self.body_start..]
    }

    /// The checkboxes of the body that only Sprag sets, in order, each with the index of its task.
    pub fn task_boxes(&self) -> Vec<(usize, Mark)> {
        let items = &self.outline.items;
        let marks = || boxes::marks(self.body(), self.body_start).into_iter();
        let item_of = |mark: &Mark| {
            let begun = items.partition_point(|item| item.span.start <= mark.span.start);
            let place = begun.checked_sub(1)?;
            (mark.span.end <= items[place].span.end).then_some(place)
        };
        match self.format {
            PlanFormat::Story => marks()
                .filter(|mark| mark.is_under_tasks && !mark.is_criterion)
                .map(|mark| (0, mark))
                .collect(),
            PlanFormat::TaskList => marks()
                .filter_map(|mark| Some((item_of(&mark)?, mark)))
                .filter(|(place, mark)| {
                    !mark.is_criterion || items[*place].mark.start == mark.span.start
                })
                .collect(),
            PlanFormat::Checklist => items.iter().map(own_mark).enumerate().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether a box is the task's own, rather than that of one of its parts.
    pub fn is_own_box(&self, place: usize, mark: &Mark) -> bool {
        let own = self.outline.items.get(place);
        self.format != PlanFormat::Story
            && own.is_some_and(|item| item.mark.start == mark.span.start)
    }

    /// The status of the whole plan, in a format that has one.
    pub fn plan_status(&self) -> Option<&str> {
        plan_status(self.format)?;
        self.root.as_ref()?.get("status")?.text()
    }

    /// The list of tasks in the tree.
    pub fn tasks(&self) -> Option<&Node> {
        self.root.as_ref()?.get("tasks")
    }
}

fn own_mark(item: &Item) -> Mark {
    Mark {
        span: item.mark.clone(),
        checked: item.checked,
        is_criterion: false,
        is_under_tasks: false,
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
fn front_matter(text: &str) -> Result<Option<(usize, usize)>, Fault> {
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
    let is_mapping =
        |node: Option<Node>| node.is_some_and(|n| matches!(n.value, Value::Map { .. }));
    !body.trim().is_empty() && !yaml::parse(body).is_ok_and(is_mapping)
}

fn format(
    name: &str,
    text: &str,
    container: Container,
    root: Option<&Node>,
    outline: &Outline,
) -> PlanFormat {
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
        let Some(first) = outline.items.first() else {
            return PlanFormat::Headings;
        };
        let line = text[first.mark.end..].lines().next().unwrap_or_default();
        return if is_task_list(name, line) {
            PlanFormat::TaskList
        } else {
            PlanFormat::Checklist
        };
    }
    if task_has(&["acceptanceCriteria"]) || has("sourceFile") {
        PlanFormat::Rafa
    } else if task_has(&["done", "steps"]) || has("planGeneratedAt") || has("rmfilter") {
        PlanFormat::Rmplan
    } else {
        PlanFormat::Sprag
    }
}
