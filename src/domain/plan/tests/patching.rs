use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn done() -> StatusUpdate {
    StatusUpdate {
        status: TaskStatus::Done,
        attempts: Some(2),
        completed_at: Some("2026-11-20T10:00:00Z".to_owned()),
    }
}

fn set(text: &str, task: &str) -> String {
    match set_status("p.yaml", text, &id(task), &done()) {
        Ok(text) => text,
        Err(error) => panic!("{error}\n{text}"),
    }
}

#[test]
fn states_are_written_without_touching_anything_else() {
    for (text, expected) in [
        (
            "# top\ntasks:\n  # about a\n  - id: a   # the id\n    title: 'x'  # the title\n    # end of a\n  - title: y\n",
            "# top\ntasks:\n  # about a\n  - id: a   # the id\n    title: 'x'  # the title\n    status: done\n    attempts: 2\n    completed_at: 2026-11-20T10:00:00Z\n    # end of a\n  - title: y\n",
        ),
        (
            "tasks:\n-   id: a\n    status: pending # soon\n    attempts:   1\n    title: x\n",
            "tasks:\n-   id: a\n    status: done # soon\n    attempts:   2\n    completed_at: 2026-11-20T10:00:00Z\n    title: x\n",
        ),
        (
            "tasks:\r\n- title: a\r\n  id: a\r\n",
            "tasks:\r\n- title: a\r\n  status: done\r\n  attempts: 2\r\n  completed_at: 2026-11-20T10:00:00Z\r\n  id: a\r\n",
        ),
        (
            "tasks: [{id: a, title: x}, {id: b, title: y}] # c\n",
            "tasks: [{id: a, title: x, status: done, attempts: 2, completed_at: 2026-11-20T10:00:00Z}, {id: b, title: y}] # c\n",
        ),
        (
            "tasks:\n- {\n    id: a,\n    title: x,\n  }\n",
            "tasks:\n- {\n    id: a,\n    title: x,\n    status: done,\n    attempts: 2,\n    completed_at: 2026-11-20T10:00:00Z,\n  }\n",
        ),
        (
            "tasks:\n- id: a\n  title: x",
            "tasks:\n- id: a\n  title: x\n  status: done\n  attempts: 2\n  completed_at: 2026-11-20T10:00:00Z",
        ),
        (
            "tasks:\n- id: a\n  title: x\n  status: \"pending\"\n  attempts: ~\n...\n",
            "tasks:\n- id: a\n  title: x\n  status: \"done\"\n  attempts: 2\n  completed_at: 2026-11-20T10:00:00Z\n...\n",
        ),
        (
            "tasks:\n- id: a\n  status:   # later\n  title: x\n",
            "tasks:\n- id: a\n  status: done   # later\n  attempts: 2\n  completed_at: 2026-11-20T10:00:00Z\n  title: x\n",
        ),
        (
            "\u{feff}tasks:\n- id: a\n  title: x\n  status: 'failed'\n  attempts: 2\n  completed_at: '2026-11-20T10:00:00Z'\n",
            "\u{feff}tasks:\n- id: a\n  title: x\n  status: 'done'\n  attempts: 2\n  completed_at: '2026-11-20T10:00:00Z'\n",
        ),
    ] {
        assert_eq!(set(text, "a"), expected);
    }
}

#[test]
fn a_task_of_blocks_alone_gets_its_state_before_its_first_key() {
    let text = "tasks:\n  - description: |+\n      a\n\n  - title: y\n";
    assert_eq!(
        set(text, "t1"),
        "tasks:\n  - status: done\n    attempts: 2\n    completed_at: 2026-11-20T10:00:00Z\n    description: |+\n      a\n\n  - title: y\n"
    );
}

#[test]
fn json_stays_json() {
    let text =
        "{\n\t\"tasks\": [\n\t\t{\n\t\t\t\"id\": \"a\",\n\t\t\t\"title\": \"x\"\n\t\t}\n\t]\n}\n";
    let patched = set_status("p.json", text, &id("a"), &done());
    let expected = text.replace(
        "\"title\": \"x\"",
        "\"title\": \"x\",\n\t\t\t\"status\": \"done\",\n\t\t\t\"attempts\": 2,\n\t\t\t\"completed_at\": \"2026-11-20T10:00:00Z\"",
    );
    assert_eq!(patched, Ok(expected));
}

#[test]
fn what_the_file_says_already_is_not_written_again() {
    let text = "tasks:\n- id: a\n  title: x\n";
    let pending = StatusUpdate {
        status: TaskStatus::Pending,
        attempts: None,
        completed_at: None,
    };
    assert_eq!(
        set_status("p.yaml", text, &id("a"), &pending),
        Ok(text.to_owned())
    );
}

#[test]
fn a_task_that_others_are_made_of_keeps_its_state_to_itself() {
    let text = "tasks:\n- &a\n  id: a\n  title: x\n- <<: *a\n  id: b\n";
    let patched = set(text, "a");
    let states: Vec<_> = plan("p.yaml", &patched)
        .tasks
        .iter()
        .map(|t| t.status)
        .collect();
    assert_eq!(states, [TaskStatus::Done, TaskStatus::Pending]);
    let both = set(&patched, "b");
    assert!(both.ends_with("- <<: *a\n  id: b\n  status: done\n  attempts: 2\n  completed_at: 2026-11-20T10:00:00Z\n"), "{both}");
}

#[test]
fn what_cannot_be_written_is_an_error_and_no_text() {
    for (text, task, expected) in [
        (
            "tasks: [{title: x}]\n",
            "t2",
            "p.yaml:1:1: the plan has no task `t2` (did you mean `t1`?)",
        ),
        (
            "tasks: [{title: x}\n",
            "t1",
            "p.yaml:1:8: not valid YAML: unclosed bracket '['",
        ),
    ] {
        let error = set_status("p.yaml", text, &id(task), &done()).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
    let blank_time = StatusUpdate {
        completed_at: Some("  ".to_owned()),
        ..done()
    };
    let error = set_status("p.yaml", "tasks:\n- title: x\n", &id("t1"), &blank_time);
    assert_eq!(
        error.map_err(|e| e.to_string()),
        Err("p.yaml:2:1: the state of the task `t1` cannot be written here without touching other parts: write the task with one key a line".to_owned())
    );
}

#[test]
fn texts_that_differ_in_states_alone_are_the_same() {
    let text = "title: T # c\ntasks:\n- id: a\n  title: x\n- {id: b, title: y}\n";
    let same = |other: &str| {
        let ours = without_owned_keys("p.yaml", text.as_bytes());
        assert!(ours.is_some());
        ours == without_owned_keys("p.yaml", other.as_bytes())
    };
    assert!(same(&set(text, "a")));
    assert!(same(&set(&set(text, "a"), "b")));
    assert!(same(
        &text
            .replace("  title: x", "  status: blocked\n  title: 'x'")
            .replace("'x'", "x")
    ));
    assert!(same(&text.replace(" # c", "")));
    for (old, new) in [
        ("title: x", "title: z"),
        ("title: T", "goal: T"),
        ("id: b, ", ""),
        ("{id: b, title: y}", "{title: y, id: b}"),
        ("title: T # c", "title: T\nstatus: done"),
        ("title: x", "title: x\n  model: m"),
        ("title: x", "title: '3'"),
    ] {
        assert!(!same(&text.replace(old, new)), "{new}");
    }
    assert!(!same(&text.replace("title: x", "status: finished")));
    assert_eq!(
        without_owned_keys("p.yaml", b"tasks: [{title: x, status: nope}]"),
        None
    );
    assert_eq!(without_owned_keys("p.yaml", b"\xff"), None);
}

#[test]
fn boxes_of_tasks_and_of_their_steps_are_states_and_other_boxes_are_not() {
    let text = "- [ ] one\n  - [ ] inner\n- [x] two\n\n## Out of scope\n- [ ] other\n";
    let rendered = |text: &str| without_owned_keys("p.md", text.as_bytes()).expect("valid");
    assert_eq!(
        rendered(text),
        rendered(&text.replace("[x] two", "[ ] two"))
    );
    assert_eq!(
        rendered(text),
        rendered(&text.replace("[ ] one", "[X] one"))
    );
    assert_eq!(
        rendered(text),
        rendered(&text.replace("[ ] inner", "[x] inner"))
    );
    for (old, new) in [("[ ] other", "[x] other"), ("two", "2")] {
        assert_ne!(rendered(text), rendered(&text.replace(old, new)));
    }
    let done = set_status("p.md", text, &id("t1"), &done()).expect("patched");
    assert_eq!(
        done,
        text.replace("[ ] one", "[x] one")
            .replace("[ ] inner", "[x] inner")
    );
}

#[test]
fn an_uncertain_edit_is_refused_rather_than_tried() {
    for text in [
        "tasks:\n- ? title\n  : x\n",
        "tasks:\n- &key title: x\n",
        "tasks: [title: x]\n",
        "tasks:\n- {title: x, status}\n",
    ] {
        assert_eq!(plan("p.yaml", text).tasks[0].title, "x");
        let error = set_status("p.yaml", text, &id("t1"), &done()).expect_err(text);
        assert!(
            error
                .message
                .starts_with("the state of the task `t1` cannot be written here"),
            "{error}"
        );
    }
}

/// A task's keys in one of the styles that people use.
fn task_text(style: usize, indent: usize, keys: &[String], comment: &str, nl: &str) -> String {
    let pad = " ".repeat(indent);
    match style {
        0 => {
            let body = keys.join(&format!(" {comment}{nl}{pad}    "));
            format!("{pad}-   {body}{nl}")
        }
        1 => format!("{pad}- {{ {} }} {comment}{nl}", keys.join(", ")),
        2 => {
            let body = keys.join(&format!(",{nl}{pad}    "));
            format!("{pad}- {{{nl}{pad}    {body}{nl}{pad}  }}{nl}")
        }
        _ => {
            let body = keys.join(&format!("{nl}{pad}  {comment}{nl}{pad}  "));
            format!("{pad}-{nl}{pad}  {body}{nl}")
        }
    }
}

fn a_task(number: usize) -> impl Strategy<Value = (usize, Vec<String>)> {
    let scalar = prop_oneof!["[a-z]{1,8}", "\"[a-z #:]{1,8}\"", "'[a-z ,]{1,8}'"]
        .prop_filter("not blank", |text| {
            text.contains(|c: char| c.is_ascii_lowercase()) && text != "null"
        });
    let status = proptest::option::of(prop_oneof!["pending", "\"done\"", "'failed'", "blocked"]);
    let attempts = proptest::option::of(0_u32..9);
    (
        0_usize..4,
        scalar.clone(),
        proptest::option::of(scalar),
        status,
        attempts,
        0_usize..24,
    )
        .prop_map(
            move |(style, title, description, status, attempts, rotation)| {
                let mut keys = vec![format!("id: n{number}"), format!("title: {title}")];
                keys.extend(description.map(|text| format!("description: {text}")));
                keys.extend(status.map(|status| format!("status: {status}")));
                keys.extend(attempts.map(|attempts| format!("attempts: {attempts}")));
                let rotation = rotation % keys.len();
                keys.rotate_left(rotation);
                (style, keys)
            },
        )
}

fn a_plan() -> impl Strategy<Value = String> {
    let tasks = (a_task(0), a_task(1), a_task(2));
    let layout = (
        0_usize..4,
        prop_oneof!["", "# note: [x]"],
        prop_oneof!["\n", "\r\n"],
        any::<bool>(),
    );
    (tasks, layout).prop_map(|((a, b, c), (indent, comment, nl, ends))| {
        let mut text = format!("# head{nl}title: T{nl}tasks:{nl}");
        for (style, keys) in [a, b, c] {
            text.push_str(&task_text(style, indent, &keys, &comment, &nl));
        }
        if !ends {
            text.truncate(text.trim_end().len());
        }
        text
    })
}

proptest! {
    #[test]
    fn a_patch_sets_the_state_and_keeps_every_other_line(text in a_plan(), task in 0_usize..3, status in 0_usize..5, attempts in proptest::option::of(0_u32..9)) {
        let before = plan("p.yaml", &text);
        let update = StatusUpdate {
            status: TaskStatus::ALL[status],
            attempts,
            completed_at: attempts.map(|_| "2026-11-20".to_owned()),
        };
        let task_id = before.tasks[task].id.clone();
        let patched = set_status("p.yaml", &text, &task_id, &update).expect("patched");
        let after = plan("p.yaml", &patched);
        let mut expected = before.tasks[task].clone();
        expected.status = update.status;
        expected.attempts = update.attempts.or(expected.attempts);
        expected.completed_at = update.completed_at.clone();
        expected.line = after.tasks[task].line;
        prop_assert_eq!(&after.tasks[task], &expected);

        // Lines are kept, except those of the task's own keys and, in flow style, lines that join them.
        let mut rest = patched.split('\n').map(|line| line.trim_end_matches(','));
        for line in text.split('\n') {
            let is_touched = line.contains("status:") || line.contains("attempts:") || line.contains(&format!("id: {task_id}"));
            let wanted = line.trim_end_matches(',');
            let found = is_touched || rest.any(|other| other.trim_end_matches('\r').trim_end_matches(',') == wanted.trim_end_matches('\r').trim_end_matches(','));
            prop_assert!(found, "lost {:?} in\n{}\nwhich was\n{}", line, patched, text);
        }
        prop_assert_eq!(set_status("p.yaml", &patched, &task_id, &update), Ok(patched.clone()));
        prop_assert_eq!(patched.contains("\r\n"), text.contains("\r\n"));
        prop_assert_eq!(without_owned_keys("p.yaml", patched.as_bytes()), without_owned_keys("p.yaml", text.as_bytes()));
    }
}

#[test]
fn a_text_without_marks_to_reset_is_left_as_it_is() {
    for text in [
        "tasks:\n- title: a\n",
        "status: pending\ntasks:\n- title: a\n  done: false\n  steps:\n  - prompt: x\n    done: true\n",
    ] {
        let opened = open("p.yaml", text.as_bytes()).unwrap().value;
        assert_eq!(opened.with_marks_of(text, &HashSet::new()), None, "{text}");
    }
}

#[test]
fn parts_are_marked_as_before_by_their_words() {
    let before = "tasks:\n- title: a\n  done: false\n  steps:\n  - prompt: x\n    done: true\n  - prompt: y\n- title: b\n  steps:\n  - prompt: x\n    done: false\n";
    let now = "tasks:\n- title: a\n  done: false\n  steps:\n  - prompt: y\n    done: true\n  - prompt: x\n    done: false # why\n  - prompt: new\n    done: true\n- title: b\n  steps:\n  - prompt: x\n    done: true\n";
    let (task, of) = (id("t2"), |except: &[&TaskId]| {
        let except = except.iter().copied().collect();
        marked_as("p.plan.yml", now, before, &except)
    });
    let all = "tasks:\n- title: a\n  done: false\n  steps:\n  - prompt: y\n    done: false\n  - prompt: x\n    done: true # why\n  - prompt: new\n    done: false\n- title: b\n  steps:\n  - prompt: x\n    done: false\n";
    assert_eq!(of(&[]), all);
    let last = "- title: b\n  steps:\n  - prompt: x\n    done: ";
    let but_one = all.replace(&format!("{last}false"), &format!("{last}true"));
    assert_eq!(of(&[&task]), but_one);
    for (name, text) in [("p.yaml", "no plan"), ("tasks.md", "# Tasks: T\n")] {
        assert_eq!(marked_as(name, text, before, &HashSet::new()), text);
    }
}

#[test]
fn a_plan_of_rmplan_keeps_its_time_and_changed_files_current() {
    let files = ["a.rs", "b c.rs"].map(str::to_owned).into();
    let time = "2026-11-28T10:00:00Z";
    let with = |text: &str| with_facts("plan.yml", text, &files, time);
    let tasks = "goal: g\ntasks:\n  - title: t\n    done: false\n    steps:\n      - prompt: p\n        done: false\n";
    for (facts, expected) in [
        (
            "updatedAt: 2024-01-01T00:00:00.000Z\nchangedFiles: []\n",
            "updatedAt: 2026-11-28T10:00:00Z\nchangedFiles: [\"a.rs\", \"b c.rs\"]\n",
        ),
        (
            "updatedAt: \"2024-01-01T00:00:00.000Z\"\nchangedFiles:\n  - a.rs\n  - z.rs\n",
            "updatedAt: \"2026-11-28T10:00:00Z\"\nchangedFiles:\n  - a.rs\n  - z.rs\n  - \"b c.rs\"\n",
        ),
        (
            "changedFiles: [z.rs]\n",
            "changedFiles: [z.rs, \"a.rs\", \"b c.rs\"]\n",
        ),
        (
            "changedFiles:\n- z.rs\n",
            "changedFiles:\n- z.rs\n- \"a.rs\"\n- \"b c.rs\"\n",
        ),
        ("", ""),
    ] {
        let text = format!("{facts}{tasks}");
        let edited = with(&text).unwrap();
        assert_eq!(edited, format!("{expected}{tasks}"));
        let words = |text: &str| without_owned_keys("plan.yml", text.as_bytes());
        assert_eq!(words(&edited), words(&text));
    }
    let own = "title: x\nupdatedAt: 1\ntasks:\n  - title: t\n";
    assert_eq!(with(own), None);
}
