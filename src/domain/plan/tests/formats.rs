use super::*;

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
            "p.md:2:17: status.t1 has no part `sttus`, only status, attempts, completed_at",
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

const RMPLAN: &str = "\
goal: Load settings from a file
  so that they can be changed.
details: >
  Long words.
id: 12
priority: urgent
dependencies: [ 3 ]
tasks:
  - title: Schema
    description: Define it.
    files:
      - src/a.ts
    steps:
      - prompt: >
          First.
        done: true
      - prompt: Second.
        done: true
  - title: Loading
    description: Load it.
    steps:
      - prompt: Open.
        done: true
      - prompt: Read.
        done: false
  - title: Docs
    done: true
    steps: []
";

#[test]
fn rmplan_loads() {
    let tasks = vec![
        Task {
            description: "Define it.\n\nFiles:\n- src/a.ts".to_owned(),
            status: TaskStatus::Done,
            ..bare_task("t1", "Schema", 9)
        },
        Task {
            description: "Load it.\n\nRead.".to_owned(),
            ..bare_task("t2", "Loading", 19)
        },
        Task {
            status: TaskStatus::Done,
            ..bare_task("t3", "Docs", 26)
        },
    ];
    let expected = Plan {
        id: Some("12".to_owned()),
        title: "Load settings from a file so that they can be changed.".to_owned(),
        goal: "Load settings from a file so that they can be changed.".to_owned(),
        details: "Long words.".to_owned(),
        priority: Some(Priority::High),
        depends_on: texts(&["3"]),
        tasks,
        ..empty_plan(PlanFormat::Rmplan)
    };
    assert_eq!(plan("12.plan.yml", RMPLAN), expected);
    assert_eq!(warnings("12.plan.yml", RMPLAN), [""; 0]);
    let markdown = format!("---\n{RMPLAN}---\n\n# Research\n");
    assert_eq!(plan("12.plan.md", &markdown).format, PlanFormat::Rmplan);
}

#[test]
fn front_matter_with_text_is_told_from_two_documents_whatever_the_name() {
    let markdown = format!("---\n{RMPLAN}---\n\n# Research: more\n\nWords.\n");
    let plan = plan("12.yml", &markdown);
    assert_eq!((plan.format, plan.tasks.len()), (PlanFormat::Rmplan, 3));
    assert_eq!(
        error("12.yml", "---\ntasks: [{title: x}]\n---\ntitle: y\n"),
        "12.yml:3:1: a second document begins here, but a file holds one (remove the `---` line)"
    );
}

const RAFA: &str = r#"{
  "id": "abc",
  "name": "executor-owned",
  "description": "Own all commits.",
  "sourceFile": "docs/d.md",
  "status": "failed",
  "tasks": [
    {
      "id": "t01",
      "title": "Add it",
      "description": "Use '\u003cmessage\u003e'.",
      "acceptanceCriteria": ["exists", "passes"],
      "status": "completed",
      "attempts": 1
    },
    { "id": "t02", "title": "Then this", "status": "pending", "attempts": 0 }
  ]
}"#;

#[test]
fn rafa_loads() {
    let tasks = vec![
        Task {
            description: "Use '<message>'.".to_owned(),
            acceptance: texts(&["exists", "passes"]),
            status: TaskStatus::Done,
            attempts: Some(1),
            ..bare_task("t01", "Add it", 8)
        },
        Task {
            attempts: Some(0),
            ..bare_task("t02", "Then this", 16)
        },
    ];
    let expected = Plan {
        id: Some("abc".to_owned()),
        title: "executor-owned".to_owned(),
        goal: "Own all commits.".to_owned(),
        tasks,
        ..empty_plan(PlanFormat::Rafa)
    };
    assert_eq!(plan("plan.json", RAFA), expected);
    assert_eq!(
        error("plan.json", &RAFA.replace("\"pending\"", "\"finished\"")),
        "plan.json:16:52: status must be one of pending, in_progress, completed, failed, got \"finished\""
    );
}

const STORY: &str = "\
---
id: S-0057
title: Pre-flight checks
priority: 4
status: in-progress
labels:
  - agent
implementation_complete: false
---
# Pre-flight checks

## Summary

Words.

## Acceptance Criteria

### Detection
- [ ] checks first
- [x] is fast

### History
- [ ] last 3

## Notes

- [ ] not a criterion
";

#[test]
fn a_story_is_one_task() {
    let task = Task {
        description: "## Summary\n\nWords.\n\n## Notes\n\n- [ ] not a criterion".to_owned(),
        acceptance: texts(&["checks first", "is fast", "last 3"]),
        status: TaskStatus::InProgress,
        ..bare_task("S-0057", "Pre-flight checks", 1)
    };
    let expected = Plan {
        id: Some("S-0057".to_owned()),
        title: "Pre-flight checks".to_owned(),
        tasks: vec![task],
        ..empty_plan(PlanFormat::Story)
    };
    assert_eq!(plan(".ai-sdlc/stories/S-0057/story.md", STORY), expected);
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
        ("p.md", CHECKLIST, "t2", "- [x] Link", "- [x] Link"),
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
        assert_eq!(
            set(name, text, task, done),
            text.replace(old, new),
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
fn steps_of_rmplan_are_done_with_their_task() {
    let text = "tasks:\n  - title: One # first\n    done: false\n    steps:\n      - prompt: >\n          Open.\n        done: false\n      - prompt: Read. # then\n      - { prompt: Write., done: false }\n      - just a text\n  - title: Two\n    steps:\n      - prompt: More.\n        done: false\n";
    let done = set("p.yml", text, "t1", TaskStatus::Done);
    let expected = text
        .replacen("done: false\n    steps", "done: true\n    steps", 1)
        .replacen("        done: false", "        done: true", 1)
        .replace(
            "      - prompt: Read. # then\n",
            "      - prompt: Read. # then\n        done: true\n",
        )
        .replace("Write., done: false", "Write., done: true");
    assert_eq!(done, expected);
    assert_eq!(
        without_owned_keys("p.yml", done.as_bytes()),
        without_owned_keys("p.yml", text.as_bytes())
    );
    assert_ne!(
        without_owned_keys("p.yml", text.replace("More.", "Less.").as_bytes()),
        without_owned_keys("p.yml", text.as_bytes())
    );
    let failed = set("p.yml", &done, "t1", TaskStatus::Failed);
    assert_eq!(
        failed,
        done.replacen("    done: true\n    steps", "    done: false\n    steps", 1)
    );
}

const STORY_WITH_TASKS: &str = "---\r\nid: S-1\r\nstatus: ready\r\n---\r\n# S\r\n\r\n## Acceptance Criteria\r\n- [ ] holds\r\n\r\n## Implementation Plan\r\n### Phase 1: Setup\r\n- [ ] **T1**: one\r\n  - [ ] part of one\r\n  - Acceptance:\r\n    - [ ] holds here\r\n- [x] **T2**: two\r\n```\r\n- [ ] code\r\n```\r\n### Definition of Done\r\n- [ ] all is well\r\n\r\n## Review\r\n- [ ] look at it\r\n";

#[test]
fn the_boxes_under_a_storys_tasks_are_checked_and_no_others() {
    let done = set("story.md", STORY_WITH_TASKS, "S-1", TaskStatus::Done);
    let expected = STORY_WITH_TASKS
        .replace("status: ready", "status: done")
        .replace("- [ ] **T1**", "- [x] **T1**")
        .replace("- [ ] part", "- [x] part");
    assert_eq!(done, expected);
    for status in [TaskStatus::Failed, TaskStatus::InProgress] {
        let open = set("story.md", STORY_WITH_TASKS, "S-1", status);
        assert_eq!(open.matches("[x]").count(), 1);
    }
    let bare = |text: &str| without_owned_keys("story.md", text.as_bytes());
    assert_eq!(bare(&done), bare(STORY_WITH_TASKS));
    let other = STORY_WITH_TASKS.replace("- [ ] look", "- [x] look");
    assert_ne!(bare(&other), bare(STORY_WITH_TASKS));
}

const SPEC_KIT: &str = "\
---

description: \"Task list template\"
author: ada
---

# Tasks: CSV export

**Input**: Design documents

## Phase 1: Setup (Shared Infrastructure)

- [x] T001 Create the project
- [ ] T002 [P] Configure linting in lint.toml

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T003 Write the schema in src/schema.py

## Phase 3: User Story 1 - Export (Priority: P1)

**Goal**: Any report

- [ ] T004 [P] [US1] Contract test in tests/test_csv.py
- [ ] T005 [P] [US1] Model in src/model.py
  - [ ] with a name
  - Acceptance:
    - [ ] it has one
- [ ] T006 [US1] Service in src/service.py (depends on T005)
- [ ] T007 [US1] Endpoint in src/app.py

## Phase 4: User Story 2 - Import

- [ ] T008 [US2] Reader in src/reader.py

## Phase 5: Polish

- [ ] T009 [P] Documentation in docs/
- [ ] T010 Clean up

## Notes

- [P] tasks = different files, no dependencies
";

#[test]
fn a_task_list_of_spec_kit_loads() {
    let plan = plan("specs/001-csv/tasks.md", SPEC_KIT);
    assert_eq!(plan.format, PlanFormat::TaskList);
    assert_eq!(plan.title, "Tasks: CSV export");
    let told: Vec<String> = plan
        .tasks
        .iter()
        .map(|task| {
            let on: Vec<&str> = task.depends_on.iter().map(TaskId::as_str).collect();
            format!(
                "{} {:?} {} <- {}",
                task.id,
                task.status,
                task.title,
                on.join(" ")
            )
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    T001 Done Create the project <- 
    T002 Pending Configure linting in lint.toml <- 
    T003 Pending Write the schema in src/schema.py <- T001 T002
    T004 Pending Contract test in tests/test_csv.py <- T003
    T005 Pending Model in src/model.py <- T003
    T006 Pending Service in src/service.py (depends on T005) <- T005
    T007 Pending Endpoint in src/app.py <- T006
    T008 Pending Reader in src/reader.py <- T003
    T009 Pending Documentation in docs/ <- T004 T007 T008
    T010 Pending Clean up <- T009
    ");
    assert_eq!(
        plan.tasks[4].description,
        "Part of: Phase 3: User Story 1 - Export (Priority: P1)\n\n- [ ] with a name"
    );
    assert_eq!(plan.tasks[4].acceptance, ["it has one"]);
    assert!(
        plan.details.contains("**Goal**: Any report"),
        "{}",
        plan.details
    );
    assert_eq!(
        warnings("tasks.md", SPEC_KIT),
        ["tasks.md:4:1: Sprag does not use these keys and ignores them: `author`"]
    );
    assert_eq!(
        error(
            "tasks.md",
            &SPEC_KIT.replace("depends on T005", "depends on T099")
        ),
        "tasks.md:29:3: depends_on names the task `T099`, which does not exist (did you mean `T009`?)"
    );
}

#[test]
fn a_task_lists_state_is_in_its_boxes() {
    let done = set("tasks.md", SPEC_KIT, "T005", TaskStatus::Done);
    let expected = SPEC_KIT
        .replace("- [ ] T005", "- [x] T005")
        .replace("- [ ] with", "- [x] with");
    assert_eq!(done, expected);
    let again = set("tasks.md", &done, "T005", TaskStatus::Failed);
    assert_eq!(again, SPEC_KIT.replace("- [ ] with", "- [x] with"));
    let bare = |text: &str| without_owned_keys("tasks.md", text.as_bytes());
    assert_eq!(bare(&done), bare(SPEC_KIT));
    assert_ne!(
        bare(&SPEC_KIT.replace("- [ ] it has", "- [x] it has")),
        bare(SPEC_KIT)
    );
}

#[test]
fn numbers_are_ids_in_a_file_named_tasks_md() {
    let text = "# Tasks\n\n## 1. Setup\n- [x] 1.1 Create it\n- [ ] 1.2 Use it\n\n## 2. Rest\n- [ ] 2.1 End\n";
    let of = |name: &str| -> Vec<String> {
        let tasks = plan(name, text).tasks;
        let told = |task: &Task| format!("{} {} {}", task.id, task.title, task.depends_on.len());
        tasks.iter().map(told).collect()
    };
    assert_eq!(
        of("openspec/changes/x/tasks.md"),
        ["1.1 Create it 0", "1.2 Use it 0", "2.1 End 0"]
    );
    assert_eq!(of("plan.md")[0], "t1 1.1 Create it 0");
    let done = set("tasks.md", text, "2.1", TaskStatus::Done);
    assert_eq!(done, text.replace("[ ] 2.1", "[x] 2.1"));
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
            // The states of a checklist are its boxes.
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
