use super::*;
use std::collections::HashSet;

pub(super) const RMPLAN: &str = "\
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
            description:
                "Define it.\n\nFiles:\n- src/a.ts\n\nSteps:\n\n- [x] First.\n- [x] Second."
                    .to_owned(),
            status: TaskStatus::Done,
            ..bare_task("t1", "Schema", 9)
        },
        Task {
            description: "Load it.\n\nSteps:\n\n- [x] Open.\n- [ ] Read.".to_owned(),
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
        ..Plan::without_tasks(PlanFormat::Rmplan)
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
    let sentence = format!("---\n{RMPLAN}---\nThis is part of a plan (parent: 100) of many.\n");
    assert_eq!(self::plan("12.yml", &sentence).tasks.len(), 3);
    assert_eq!(
        error("12.yml", "---\ntasks: [{title: x}]\n---\ntitle: y\n"),
        "12.yml:3:1: a second document begins here, but a file holds one (remove the `---` line)"
    );
}

pub(super) const RAFA: &str = r#"{
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
        ..Plan::without_tasks(PlanFormat::Rafa)
    };
    assert_eq!(plan("plan.json", RAFA), expected);
    assert_eq!(
        error("plan.json", &RAFA.replace("\"pending\"", "\"finished\"")),
        "plan.json:16:52: status must be one of pending, in_progress, completed, failed, got \"finished\""
    );
}

pub(super) const STORY: &str = "\
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
        ..Plan::without_tasks(PlanFormat::Story)
    };
    assert_eq!(plan(".ai-sdlc/stories/S-0057/story.md", STORY), expected);
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

#[test]
fn a_task_of_rmplan_keeps_the_title_that_its_first_step_gave_it() {
    let text = "tasks:\n  - steps:\n      - { prompt: Open., done: false }\n      - { prompt: Read., done: false }\n";
    let title = |text: &str| plan("p.yml", text).tasks[0].title.clone();
    let partly = text.replacen("false", "true", 1);
    let done = set("p.yml", text, "t1", TaskStatus::Done);
    for state in [text, &partly, &done] {
        assert_eq!(title(state), "Open.", "{state}");
    }
}

#[test]
fn a_criterion_without_text_is_none() {
    let text = "# S\n\n## One\nWords.\n\nAcceptance:\n- [x]\n- holds\n-\n";
    let read = plan("plan.md", text);
    assert_eq!(read.tasks[0].acceptance, ["holds"]);
    plan("plan.json", &read.texts());
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
        ["tasks.md:4:1: Sprag ignores these keys: `author`"]
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
fn phases_have_the_level_of_their_headings_and_stories_all_of_their_tasks() {
    let text = "# Tasks\n## List\n### Phase 1: Setup\n- [ ] T001 A\n### Phase 2: Base\n- [ ] T002 B\n\
        ### Phase 3: US1\n- [ ] T003 [P] [US1] C\n#### Models\n- [ ] T004 [P] [US1] D\n\
        ### Phase 4: Polish\n- [ ] T005 [US1] E\n- [ ] T006 F\n";
    let on = plan("tasks.md", text).tasks.into_iter();
    let on: Vec<Vec<TaskId>> = on.map(|task| task.depends_on).collect();
    let expected: [&[TaskId]; 6] = [
        &[],
        &[id("T001")],
        &[id("T002")],
        &[id("T002")],
        &[id("T003"), id("T004")],
        &[id("T005")],
    ];
    assert_eq!(on, expected);
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
fn the_status_of_a_whole_plan_says_when_all_of_its_tasks_are_done() {
    let done = StatusUpdate {
        status: TaskStatus::Done,
        attempts: None,
        completed_at: None,
    };
    let steps = "tasks:\n  - title: a\n    done: true\n  - title: b\n    done: false\n";
    let steps_done = steps.replace("false", "true");
    let tasks = "\"tasks\": [{\"id\": \"t1\", \"title\": \"a\", \"acceptanceCriteria\": [], \"status\": \"completed\"}, \
                 {\"id\": \"t2\", \"title\": \"b\", \"acceptanceCriteria\": [], \"status\": \"failed\"}]}";
    let tasks_done = tasks.replace("failed", "completed");
    for (name, text, expected) in [
        (
            "p.plan.yml",
            format!("id: 3 # its number\nstatus: 'in_progress' # now\n{steps}"),
            format!("id: 3 # its number\nstatus: 'done' # now\n{steps_done}"),
        ),
        (
            "p.plan.md",
            format!("---\ntitle: T\ngoal: G\n{steps}---\n\n# More\n"),
            format!("---\ntitle: T\nstatus: done\ngoal: G\n{steps_done}---\n\n# More\n"),
        ),
        (
            "plan.json",
            format!("{{\"name\": \"N\", \"status\": \"not_started\",\n {tasks}\n"),
            format!("{{\"name\": \"N\", \"status\": \"completed\",\n {tasks_done}\n"),
        ),
        // Something else under the key is not touched.
        (
            "p.yml",
            format!("status: {{ of: this }}\n{steps}"),
            format!("status: {{ of: this }}\n{steps_done}"),
        ),
    ] {
        assert_eq!(
            set_status(name, &text, &id("t2"), &done),
            Ok(expected.clone())
        );
        // A task that is open again leaves the status: only the end of the plan is known.
        let pending = StatusUpdate {
            status: TaskStatus::Pending,
            ..done.clone()
        };
        let again = set_status(name, &expected, &id("t2"), &pending).expect(name);
        assert!(
            again.contains("status: 'done' # now") || name != "p.plan.yml",
            "{again}"
        );
        // It is Sprag's own, so what an agent writes there is no change of the plan and is put right.
        let owned = |text: &str| without_owned_keys(name, text.as_bytes());
        assert_eq!(owned(&text), owned(&expected));
    }
}

#[test]
fn what_an_agent_says_of_a_whole_plan_is_put_right() {
    let steps = "tasks:\n  - title: a\n    done: true\n  - title: b\n    done: false\n";
    for (before, now, expected) in [
        (
            "status: in_progress\n",
            "status: done\n",
            "status: in_progress\n",
        ),
        ("", "status: done\n", "status: pending\n"),
        ("status: deferred\n", "", "status: deferred\n"),
    ] {
        let [before, now, expected] =
            [before, now, expected].map(|it| format!("title: T\n{it}{steps}"));
        let put_right = marked_as("p.plan.yml", &now, &before, &HashSet::new());
        assert_eq!(put_right, expected);
    }
}
