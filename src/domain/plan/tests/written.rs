//! Plan files as people and tools write them: `written.txt` has each with its format and its tasks. `x` after an id
//! is a task that is done, and `?` one that only checks.

use super::*;

const FILES: &str = include_str!("written.txt");

/// Each file with its name and what is expected of it.
fn files() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    FILES.split("==== ").skip(1).map(|file| {
        let (head, text) = file.split_once('\n').expect("a head");
        let (name, expected) = head.split_once(" | ").expect("a name");
        (name, expected, text)
    })
}

fn told(plan: &Plan) -> String {
    let format = serde_json::to_value(plan.format).expect("a format");
    let tasks = plan.tasks.iter().map(|task| {
        let done = if task.status == TaskStatus::Done {
            "x"
        } else {
            ""
        };
        let check = if task.kind == TaskKind::Check {
            "?"
        } else {
            ""
        };
        format!("{}{done}{check}", task.id)
    });
    let tasks: Vec<String> = tasks.collect();
    format!(
        "{} | {}",
        format.as_str().unwrap_or_default(),
        tasks.join(" ")
    )
}

#[test]
fn files_are_read_as_their_authors_meant_them() {
    let wrong: Vec<String> = files()
        .filter_map(|(name, expected, text)| {
            let read = match parse(name, text.as_bytes()) {
                Ok(parsed) => told(&parsed.value),
                Err(error) => format!("refused: {}", error.message),
            };
            let is_right = read == expected
                || (expected.starts_with("refused: ") && read.starts_with(expected));
            (!is_right).then(|| format!("{name}: {expected}, read as {read}"))
        })
        .collect();
    assert_eq!(wrong, [""; 0]);
    assert!(files().count() >= 60);
}

#[test]
fn each_open_task_of_a_file_can_be_set_done_and_nothing_else() {
    for (name, expected, text) in
        files().filter(|(_, expected, _)| !expected.starts_with("refused"))
    {
        let before = plan(name, text);
        let open = before
            .tasks
            .iter()
            .filter(|task| task.status != TaskStatus::Done);
        for task in open {
            let patched = set_status(
                name,
                text,
                &task.id,
                &StatusUpdate {
                    status: TaskStatus::Done,
                    attempts: None,
                    completed_at: None,
                },
            );
            let patched = patched.expect(name);
            let is_changed = |task: &Task| (task.id.clone(), task.status);
            let after = plan(name, &patched);
            let changed = after
                .tasks
                .iter()
                .map(is_changed)
                .filter(|state| !before.tasks.iter().map(is_changed).any(|old| old == *state));
            assert_eq!(
                changed.collect::<Vec<_>>(),
                [(task.id.clone(), TaskStatus::Done)],
                "{name} {expected}"
            );
            assert_eq!(
                without_owned_keys(name, patched.as_bytes()),
                without_owned_keys(name, text.as_bytes()),
                "{name}"
            );
        }
    }
}

fn named(name: &str) -> Plan {
    let (_, _, text) = files().find(|(known, _, _)| *known == name).expect(name);
    plan(name, text)
}

#[test]
fn steps_stay_in_their_task_and_commits_are_left_out() {
    let greeting = named("ralphex/greeting.md");
    assert_eq!(
        greeting.tasks[0].description,
        "- [ ] Write the failing test\n- [ ] Run it and see it fail\n- [ ] Write the code"
    );
    assert_eq!(greeting.tasks[0].title, "Greet by name");
    insta::assert_snapshot!(greeting.understood().join("\n"), @r"
    4 boxes under `### Task 1: Greet by name` are its steps
    1 box under `### Task 2: Say goodbye` is its step
    left out, because Sprag makes the commits: 1 step
    ");
    let long = named("superpowers/long.md");
    for task in &long.tasks {
        assert!(!task.description.contains("ommit"), "{}", task.description);
    }
    assert!(long.tasks[0].description.contains("fn ticks() {}"));
    assert!(long.details.contains("Rust only") && !long.details.contains("Tick"));
}

#[test]
fn what_is_not_a_task_is_said() {
    let notes = |name: &str| named(name).understood().join("\n");
    insta::assert_snapshot!(notes("superpowers/loader.md"), @"2 boxes under `Success Criteria` are acceptance criteria");
    insta::assert_snapshot!(notes("kiro/tasks.md"), @"`- [-]` (1 time) is not done: counted as pending");
    insta::assert_snapshot!(notes("kiro/optional/tasks.md"), @"1 box outside of the tasks is optional, so not run");
    insta::assert_snapshot!(notes("list/nested.md"), @"2 boxes under `- [ ] Serve it` are its steps");
    insta::assert_snapshot!(notes("headings/plain.md"), @"information: `## Overview`, `## Notes`");
    insta::assert_snapshot!(notes("taskmaster/tasks.json"), @"cancelled or deferred, so not run: 1 task");
    insta::assert_snapshot!(notes("taskmaster/given-up.json"), @r"
    cancelled or deferred, so not run: 1 task
    waiting for what is cancelled or deferred, so not run: 1 task
    ");
    insta::assert_snapshot!(notes("headings/apart.md"), @"information: `## Overview`, `## Future work`, `## Rollback`, `## Technical Details`, `## Context (from discovery)`");
    insta::assert_snapshot!(notes("headings/decorated.md"), @"done or dropped by its words, so not run: 2 tasks");
    insta::assert_snapshot!(notes("list/struck.md"), @"done or dropped by its words, so not run: 1 task");
    insta::assert_snapshot!(notes("list/apart.md"), @"1 box under `Out of scope (for now)` is text");
    insta::assert_snapshot!(plan("p.md", "## Task 1: A\n## 7. G\n## Rollout\n").understood().join("\n"), @"text that names no task: `## 7. G`, `## Rollout`");
    insta::assert_snapshot!(plan("p.md", "- [x] A\n  - [ ] b\n").understood().join("\n"), @r"
    1 box under `- [x] A` is its step
    done by its box, though a step is open: 1 task
    ");
    let unread =
        "- [ ] A\n-[ ] B\n\n- ( ) C\n- [1] D\n\n+[x] E\n\n`-[ ]`\n\n## References\n- [2] F\n";
    insta::assert_snapshot!(warnings("p.md", unread).join("\n"), @r"
    p.md:2:1: `-[ ] B` is read as text: a box is written `- [ ] …`
    p.md:4:1: `- ( ) C` is read as text: a box is written `- [ ] …`
    p.md:5:1: `- [1] D` is read as text: a box is written `- [ ] …`
    p.md:7:1: `+[x] E` is read as text: a box is written `- [ ] …`
    ");
    let keys = "## A\n- verify: make\n**Depends on:** b\nVerify: it shows\n**Files:** x\n";
    insta::assert_snapshot!(warnings("p.md", keys).join("\n"), @r"
    p.md:2:1: this line is read as text: as a key it is `verify: make`
    p.md:3:1: this line is read as text: as a key it is `depends_on: b`
    p.md:4:1: this line is read as text: as a key it is `verify: it shows`
    ");
    let loader = named("superpowers/loader.md");
    assert!(
        loader.details.contains("The plugin loads"),
        "{}",
        loader.details
    );
}

#[test]
fn a_closing_list_is_acceptance_under_each_of_its_names() {
    for name in [
        "Success Criteria",
        "Acceptance checklist",
        "Completion criteria",
        "Definition of Done",
        "Exit criteria",
    ] {
        let text = format!(
            "# L\n## Task 1: Read it\nBy line.\n## {name}\n- [ ] All works\n- [ ] It loads\n"
        );
        let read = plan("loader.md", &text);
        assert_eq!(read.tasks.len(), 1, "{name}");
        let said = format!("2 boxes under `{name}` are acceptance criteria");
        assert_eq!(read.understood(), [said]);
    }
}

#[test]
fn keys_below_a_heading_are_the_tasks() {
    let read = named("headings/keys.md");
    assert_eq!(read.tasks[0].settings.max_retries, Some(1));
    assert_eq!(
        read.tasks[0].settings.verify.as_ref().map(Vec::len),
        Some(1)
    );
    assert_eq!(read.tasks[0].description, "Words.");
    assert_eq!(read.tasks[1].depends_on, [id("t1")]);
    assert_eq!(named("headings/depends.md").tasks[1].depends_on, [id("t1")]);
    assert_eq!(named("list/keys.md").tasks[1].depends_on, [id("t1")]);
    let with_steps = named("headings/keys-and-steps.md");
    assert_eq!(with_steps.tasks[0].description, "- [ ] step");
    assert_eq!(with_steps.tasks[1].depends_on, [id("t1")]);
    let text = "## Serve\nreviw: true\nWords.\n";
    assert_eq!(
        warnings("p.md", text),
        [
            "p.md:2:1: `reviw` is not a key of a task here: the line is read as text (did you mean `review`?)"
        ]
    );
    assert_eq!(
        plan("p.md", text).tasks[0].description,
        "reviw: true\nWords."
    );
    assert_eq!(
        error("p.md", "## Serve\n\nmax_retries: many\n"),
        "p.md:3:14: max_retries must be a whole number from 0 to 10, got many"
    );
}

#[test]
fn yaml_that_loses_words_is_told() {
    let text = "tasks:\n  - title: Fix issue #12\n  - title: Show it  # as agreed\n    verify: [ make test ]\n";
    assert_eq!(
        warnings("p.yaml", text),
        [
            "p.yaml:2:12: YAML reads `#12` as a comment, so title ends before it: put the text in quotes to keep it, or two blanks before the comment"
        ]
    );
    assert_eq!(named("ai-sdlc/story.md").settings.max_retries, Some(10));
}
