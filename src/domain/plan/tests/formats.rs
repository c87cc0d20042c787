mod foreign;

use super::*;
use foreign::{RAFA, RMPLAN, STORY};

const CHECKLIST: &str = "\
---
goal: Ship it
max_retries: 2
---
# Export

Some words.

```md
- [ ] not a task
```

- [ ] Serve the `report` {#endpoint}
  In CSV.

  Acceptance:
  - answers text/csv
  - [ ] has a header

  Afterwards.
- [x] Link it
  - a nested bullet
  - [ ] a nested box
* plain bullet

> - [ ] quoted

## Acceptance criteria

- [ ] not a task either

1. [ ] Last
";

#[test]
fn a_checklist_has_a_task_a_box() {
    let tasks = vec![
        Task {
            description: "In CSV.\n\nAfterwards.".to_owned(),
            acceptance: texts(&["answers text/csv", "has a header"]),
            ..bare_task("endpoint", "Serve the `report`", 13)
        },
        Task {
            description: "- a nested bullet\n- [ ] a nested box".to_owned(),
            status: TaskStatus::Done,
            ..bare_task("t2", "Link it", 21)
        },
    ];
    let plan = plan("p.md", CHECKLIST);
    assert_eq!(plan.tasks, tasks);
    assert_eq!(
        (
            plan.title.as_str(),
            plan.goal.as_str(),
            plan.settings.max_retries,
            plan.format
        ),
        ("Export", "Ship it", Some(2), PlanFormat::Checklist)
    );
    assert!(
        plan.details
            .starts_with("Some words.\n\n```md\n- [ ] not a task\n```"),
        "{}",
        plan.details
    );
}

const HEADINGS: &str = "\
---
title: Export
status:
  t1: done
  link: { status: failed, attempts: 2 }
  gone: done
---
Why we do it.

## Serve it

In CSV.

### Acceptance

- answers text/csv
- [ ] has a header

### Notes

```
## not a task
```

## Link it {#link}

**Acceptance criteria:**

1. there is a link
   on every page

More.
";

#[test]
fn without_boxes_each_second_level_heading_is_a_task() {
    let tasks = vec![
        Task {
            description: "In CSV.\n\n### Notes\n\n```\n## not a task\n```".to_owned(),
            acceptance: texts(&["answers text/csv", "has a header"]),
            status: TaskStatus::Done,
            ..bare_task("t1", "Serve it", 10)
        },
        Task {
            description: "More.".to_owned(),
            acceptance: texts(&["there is a link\non every page"]),
            status: TaskStatus::Failed,
            attempts: Some(2),
            ..bare_task("link", "Link it", 25)
        },
    ];
    let plan = plan("p.md", HEADINGS);
    assert_eq!(plan.tasks, tasks);
    assert_eq!(
        (plan.details.as_str(), plan.format),
        ("Why we do it.", PlanFormat::Headings)
    );
    assert_eq!(
        warnings("p.md", HEADINGS),
        ["p.md:6:3: `status` names the task `gone`, which does not exist"]
    );
}

#[test]
fn front_matter_may_hold_the_whole_plan() {
    let plan = plan(
        "p.md",
        "---\ntasks:\n  - title: x\n    status: done\n---\n# Words\n\n- [ ] only words\n",
    );
    let task = Task {
        status: TaskStatus::Done,
        ..bare_task("t1", "x", 3)
    };
    assert_eq!(plan.tasks, [task]);
    assert_eq!(
        (plan.details.as_str(), plan.format),
        ("# Words\n\n- [ ] only words", PlanFormat::Sprag)
    );
}

#[test]
fn mistakes_in_markdown_have_places_too() {
    for (text, expected) in [
        (
            "",
            "p.md:1:1: the plan has no tasks: write each as a list item `- [ ] …` or under a heading `## …`",
        ),
        (
            "# Only a title\n\n```\n## x\n```\n",
            "p.md:1:1: the plan has no tasks: write each as a list item `- [ ] …` or under a heading `## …`",
        ),
        (
            "---\ntitle: x\n\n## One\n",
            "p.md:1:1: the front matter that begins here has no end: add a line `---` after it",
        ),
        (
            "---\ntitle: x\nmax_retries: -1\n---\n## One\n",
            "p.md:3:14: max_retries must be a whole number from 0 to 10, got -1",
        ),
        (
            "---\nstatus: { t1: don }\n---\n## One\n",
            "p.md:2:15: status.t1 must be one of pending, in_progress, done, failed, blocked, got don (did you mean `done`?)",
        ),
        (
            "---\nstatus: { t1: { sttus: done } }\n---\n## One\n",
            "p.md:2:17: status.t1 has no part `sttus`, only status, attempts, completed_at (did you mean `status`?)",
        ),
        (
            "---\nstatus: done\n---\n## One\n",
            "p.md:2:9: status must be a mapping from task ids to states, such as { t1: done }, got done",
        ),
        (
            "## One {#a}\n\n## Two {#a}\n",
            "p.md:3:1: the task id `a` is given twice, first on line 1; give one of them another id",
        ),
    ] {
        assert_eq!(error("p.md", text), expected, "{text:?}");
    }
}

#[test]
fn windows_line_ends_are_no_matter_in_markdown() {
    for text in [CHECKLIST, HEADINGS] {
        assert_eq!(
            plan("p.md", &text.replace('\n', "\r\n")),
            plan("p.md", text)
        );
    }
}

fn set(name: &str, text: &str, task: &str, status: TaskStatus) -> String {
    let update = StatusUpdate {
        status,
        attempts: Some(3),
        completed_at: Some("2026-11-20T10:00:00Z".to_owned()),
    };
    match set_status(name, text, &id(task), &update) {
        Ok(text) => text,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_format_has_its_own_state_written() {
    let done = TaskStatus::Done;
    for (name, text, task, old, new) in [
        ("p.md", CHECKLIST, "endpoint", "- [ ] Serve", "- [x] Serve"),
        ("p.md", CHECKLIST, "t2", "[ ] a nested", "[x] a nested"),
        (
            "p.md",
            HEADINGS,
            "link",
            "{ status: failed, attempts: 2 }",
            "{ status: done, attempts: 3, completed_at: 2026-11-20T10:00:00Z }",
        ),
        (
            "p.md",
            HEADINGS,
            "t1",
            "t1: done",
            "t1: { status: done, attempts: 3, completed_at: 2026-11-20T10:00:00Z }",
        ),
        (
            "p.yml",
            RMPLAN,
            "t2",
            "  - title: Loading\n    description: Load it.\n    steps:\n      - prompt: Open.\n        done: true\n      - prompt: Read.\n        done: false\n",
            "  - title: Loading\n    done: true\n    description: Load it.\n    steps:\n      - prompt: Open.\n        done: true\n      - prompt: Read.\n        done: true\n",
        ),
        (
            "plan.json",
            RAFA,
            "t01",
            "\"attempts\": 1",
            "\"attempts\": 3",
        ),
        (
            "plan.json",
            RAFA,
            "t02",
            "\"status\": \"pending\", \"attempts\": 0",
            "\"status\": \"completed\", \"attempts\": 3",
        ),
        (
            "story.md",
            STORY,
            "S-0057",
            "status: in-progress",
            "status: done",
        ),
    ] {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        // The last task completes the whole plan.
        let (open, complete) = match (name, task) {
            ("p.yml", "t2") => ("id: 12\n", "id: 12\nstatus: done\n"),
            ("plan.json", "t02") => ("\"status\": \"failed\"", "\"status\": \"completed\""),
            _ => ("", ""),
        };
        assert_eq!(
            set(name, text, task, done),
            text.replace(old, new).replace(open, complete),
            "{name} {task}"
        );
    }
    assert_eq!(
        set("plan.json", RAFA, "t01", TaskStatus::Blocked),
        RAFA.replace("completed", "failed")
            .replace("\"attempts\": 1", "\"attempts\": 3")
    );
    assert_eq!(
        set("p.yml", RMPLAN, "t3", TaskStatus::Failed),
        RMPLAN.replace(
            "    done: true\n    steps: []",
            "    done: false\n    steps: []"
        )
    );
}

#[test]
fn headings_get_front_matter_where_there_is_none() {
    let state = "{ status: done, attempts: 3, completed_at: 2026-11-20T10:00:00Z }";
    for (text, expected) in [
        (
            "## One\n",
            format!("---\nstatus:\n  t1: {state}\n---\n## One\n"),
        ),
        (
            "---\n---\n## One\n",
            format!("---\nstatus:\n  t1: {state}\n---\n## One\n"),
        ),
        (
            "---\ntitle: x # c\n---\n## One\n",
            format!("---\ntitle: x # c\nstatus:\n  t1: {state}\n---\n## One\n"),
        ),
        (
            "---\n{ title: x }\n---\n## One\n",
            format!("---\n{{ title: x, status: {{ t1: {state} }} }}\n---\n## One\n"),
        ),
        (
            "---\nstatus:\n---\n## One\n",
            format!("---\nstatus: {{ t1: {state} }}\n---\n## One\n"),
        ),
        (
            "---\nstatus:\n  t2: done\n---\n## One\n\n## Two\n",
            format!("---\nstatus:\n  t2: done\n  t1: {state}\n---\n## One\n\n## Two\n"),
        ),
        (
            "## One\r\n",
            format!("---\r\nstatus:\r\n  t1: {state}\r\n---\r\n## One\r\n"),
        ),
    ] {
        let patched = set("p.md", text, "t1", TaskStatus::Done);
        assert_eq!(patched, expected);
        assert_eq!(
            without_owned_keys("p.md", patched.as_bytes()),
            without_owned_keys("p.md", text.as_bytes()),
            "{text}"
        );
    }
}

#[test]
fn the_examples_of_the_documentation_are_plans() {
    let documentation = include_str!("../../../../docs/plans.md");
    let examples = |language: &str| -> Vec<String> {
        let opening = format!("```{language}\n");
        let fences = documentation.split(&opening).skip(1);
        fences
            .filter_map(|rest| rest.split("```").next())
            .map(str::to_owned)
            .collect()
    };
    let ids = |plan: &Plan| -> Vec<String> {
        plan.tasks.iter().map(|task| task.id.to_string()).collect()
    };
    let yaml = &examples("yaml")[0];
    assert_eq!(ids(&plan("plan.yaml", yaml)), ["endpoint", "t2"]);
    assert_eq!(warnings("plan.yaml", yaml), [""; 0]);
    let markdown = examples("markdown");
    let formats = [PlanFormat::Checklist, PlanFormat::Headings];
    assert_eq!(markdown.len(), formats.len());
    for (text, format) in markdown.iter().zip(formats) {
        let plan = plan("plan.md", text);
        assert_eq!(
            (ids(&plan), plan.format),
            (texts(&["endpoint", "t2"]), format)
        );
        assert_eq!(
            plan.tasks[0].acceptance,
            ["GET /report.csv answers text/csv"]
        );
        assert_eq!(plan.tasks[0].description, "Stream the rows.");
        assert_eq!(warnings("plan.md", text), [""; 0]);
    }
}

fn a_markdown_task() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let line = prop_oneof![
        Just("text"),
        Just(""),
        Just("- bullet"),
        Just("- [ ] box"),
        Just("> - [ ] quoted"),
        Just("Acceptance:"),
        Just("```"),
        Just("    code"),
        Just("### Acceptance"),
        Just("1. one"),
        Just("<!-- c -->"),
    ];
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

proptest::proptest! {
    #[test]
    fn a_markdown_patch_changes_the_state_and_nothing_else(
        bodies in proptest::collection::vec(a_markdown_task(), 1..4),
        boxes in proptest::bool::ANY, front in 0_usize..4, windows in proptest::bool::ANY, status in 0_usize..5,
    ) {
        let front = ["", "---\ntitle: T # c\n---\n", "---\nstatus: {}\n---\n", "---\n# c\n---\n"][front];
        let mut text = front.to_owned();
        for (number, body) in bodies.iter().enumerate() {
            if boxes {
                text.push_str(&format!("- [ ] n{number}\n  {}\n", body.replace('\n', "\n  ")));
            } else {
                text.push_str(&format!("## n{number}\n{body}\n"));
            }
        }
        let is_checklist = plan("p.md", &text[front.len()..]).format == PlanFormat::Checklist;
        if windows {
            text = text.replace('\n', "\r\n");
        }
        if front.contains("status") && is_checklist {
            // A checklist stores its states in its boxes.
            proptest::prop_assert!(parse("p.md", text.as_bytes()).is_err());
            return Ok(());
        }
        let before = plan("p.md", &text);
        let last = before.tasks.len() - 1;
        let update = StatusUpdate { status: TaskStatus::ALL[status], attempts: Some(1), completed_at: None };
        let task = before.tasks[last].id.clone();
        let patched = set_status("p.md", &text, &task, &update).expect("patched");
        let after = plan("p.md", &patched);
        let written = match (before.format, update.status) {
            (PlanFormat::Checklist, TaskStatus::Done) => TaskStatus::Done,
            (PlanFormat::Checklist, _) => TaskStatus::Pending,
            (_, status) => status,
        };
        proptest::prop_assert_eq!(after.tasks[last].status, written);
        let body = |text: &str| text.rsplit_once("---").map_or(text, |(_, body)| body).trim().replace("[x]", "[ ]");
        proptest::prop_assert_eq!(body(&patched), body(&text));
        proptest::prop_assert_eq!(set_status("p.md", &patched, &task, &update), Ok(patched.clone()));
        proptest::prop_assert_eq!(without_owned_keys("p.md", patched.as_bytes()), without_owned_keys("p.md", text.as_bytes()));
    }
}
