use super::*;
use crate::settings::check::CheckSpec;
use std::time::Duration;

const FULL: &str = "\
# yaml-language-server: $schema=plan.schema.json
title: CSV export
goal: Any report can be downloaded as CSV
details: |
  First.

  Second.
agent: codex
verify:
  - { name: build, run: cargo build --locked, kind: build, timeout: 10m }
  - cargo test
max_retries: 3
priority: high
id: csv
depends_on: [ reports ]
setup: [ npm ci ]
tasks:
  - id: endpoint
    title: Serve /report.csv
    description: |
      Do it.
    acceptance: [ \"GET /report.csv answers text/csv\" ]
    max_retries: 5
    status: done
    attempts: 2
    completed_at: 2026-11-20T10:00:00Z
  - title: >-
      Link
      it
    depends_on: [ endpoint ]
";

#[test]
fn every_key_of_a_plan_is_read() {
    let build = CheckSpec {
        name: "build".to_owned(),
        run: "cargo build --locked".to_owned(),
        kind: crate::checks::verdict::CheckKind::Build,
        timeout: Some(Duration::from_secs(600)),
        junit: None,
        problem_matcher: None,
        directory: None,
    };
    let first = Task {
        description: "Do it.".to_owned(),
        acceptance: texts(&["GET /report.csv answers text/csv"]),
        settings: Settings {
            max_retries: Some(5),
            ..Settings::default()
        },
        status: TaskStatus::Done,
        attempts: Some(2),
        completed_at: Some("2026-11-20T10:00:00Z".to_owned()),
        ..bare_task("endpoint", "Serve /report.csv", 18)
    };
    let second = Task {
        depends_on: vec![id("endpoint")],
        ..bare_task("t2", "Link it", 27)
    };
    let expected = Plan {
        id: Some("csv".to_owned()),
        title: "CSV export".to_owned(),
        goal: "Any report can be downloaded as CSV".to_owned(),
        details: "First.\n\nSecond.".to_owned(),
        settings: Settings {
            agent: Some("codex".to_owned()),
            verify: Some(vec![build, CheckSpec::of_command("cargo test")]),
            max_retries: Some(3),
            ..Settings::default()
        },
        setup: texts(&["npm ci"]),
        priority: Some(Priority::High),
        depends_on: texts(&["reports"]),
        tasks: vec![first, second],
        format: PlanFormat::Sprag,
        notes: Vec::new(),
    };
    assert_eq!(plan("plan.yaml", FULL), expected);
    assert!(warnings("plan.yaml", FULL).is_empty());
}

#[test]
fn a_plan_needs_no_more_than_one_task() {
    let expected = Plan {
        title: "export".to_owned(),
        tasks: vec![bare_task("t1", "x", 2)],
        ..Plan::without_tasks(PlanFormat::Sprag)
    };
    assert_eq!(
        plan("plans/export.plan.yaml", "tasks:\n- title: x\n"),
        expected
    );
}

#[test]
fn a_description_alone_gives_the_title() {
    let long = "word ".repeat(30);
    let plan = plan(
        "p.yaml",
        &format!("tasks:\n- description: |\n    First line\n    second\n- description: {long}"),
    );
    assert_eq!(plan.tasks[0].title, "First line");
    assert_eq!(plan.tasks[1].title.chars().count(), 72);
    assert!(plan.tasks[1].title.ends_with('…'));
}

#[test]
fn missing_ids_are_numbered_by_position_around_given_ones() {
    let plan = plan(
        "p.yaml",
        "tasks:\n- title: a\n- {id: t3, title: b}\n- title: c\n- {id: 7, title: d}\n- title: e\n",
    );
    let ids: Vec<_> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["t1", "t3", "t4", "7", "t5"]);
}

#[test]
fn each_mistake_is_one_error_at_its_place() {
    for (text, expected) in [
        ("", "p.yaml:1:1: the plan is empty: it needs `tasks`"),
        (
            "# nothing\n",
            "p.yaml:1:1: the plan is empty: it needs `tasks`",
        ),
        (
            "title: x\n",
            "p.yaml:1:1: the plan has no `tasks`: add a list of at least one task",
        ),
        (
            "title: a\ntasks:\n",
            "p.yaml:2:1: `tasks` is empty: a plan needs at least one task",
        ),
        (
            "tasks: []\n",
            "p.yaml:1:1: `tasks` is empty: a plan needs at least one task",
        ),
        (
            "tasks: {a: b}\n",
            "p.yaml:1:8: tasks must be a list of tasks, got a mapping",
        ),
        (
            "- a\n",
            "p.yaml:1:1: a plan must be a mapping with keys such as `title` and `tasks`, got a list",
        ),
        (
            "hello\n",
            "p.yaml:1:1: a plan must be a mapping with keys such as `title` and `tasks`, got hello",
        ),
        (
            "tasks:\n- x\n",
            "p.yaml:2:3: a task must be a mapping with a `title` or a `description`, got x",
        ),
        (
            "tasks:\n- id: a\n",
            "p.yaml:2:3: the task `a` has neither a `title` nor a `description`",
        ),
        (
            "tasks:\n- {id: a, title: x}\n- {id: a, title: y}\n",
            "p.yaml:3:8: the task id `a` is given twice, first on line 2; give one of them another id",
        ),
        (
            "tasks:\n- {id: -a, title: x}\n",
            "p.yaml:2:8: id must be 1 to 64 of the characters A-Z a-z 0-9 . _ -, the first a letter or digit, got `-a`",
        ),
        (
            "tasks:\n- {id: [a], title: x}\n",
            "p.yaml:2:8: id must be text, got a list",
        ),
        (
            "tasks:\n- {id: end, title: x, depends_on: [ene]}\n",
            "p.yaml:2:36: depends_on names the task `ene`, which does not exist (did you mean `end`?)",
        ),
        (
            "tasks:\n- {id: a, title: x, depends_on: a}\n",
            "p.yaml:2:33: depends_on has a cycle: a -> a; remove one of these dependencies",
        ),
        (
            "tasks:\n- {id: z, title: x}\n- {id: a, title: x, depends_on: [z, b]}\n- {id: b, title: x, depends_on: [c]}\n- {id: c, title: x, depends_on: [a]}\n",
            "p.yaml:3:37: depends_on has a cycle: a -> b -> c -> a; remove one of these dependencies",
        ),
        (
            "tasks:\n- title: x\n  max_retries: 11\n",
            "p.yaml:3:16: max_retries must be a whole number from 0 to 10, got 11",
        ),
        (
            "tasks:\n- title: x\n  max_retries: 50\n",
            "p.yaml:3:16: max_retries must be a whole number from 0 to 10, got 50",
        ),
        (
            "tasks:\n- title: x\n  status: finished\n",
            "p.yaml:3:11: status must be one of pending, in_progress, done, failed, blocked, got finished",
        ),
        (
            "tasks:\n- title: x\n  status: |\n    done\n",
            "p.yaml:4:5: status must be written out on its own line, because Sprag keeps it up to date",
        ),
        (
            "tasks:\n- title: x\n  attempts: -1\n",
            "p.yaml:3:13: attempts must be a whole number from 0 to 4294967295, got -1",
        ),
        (
            "tasks:\n- &b {title: x}\n- *b\n",
            "p.yaml:3:3: a task must be written out with a key of its own, not only as an alias",
        ),
        (
            "tasks:\n- &b {title: x}\n- <<: *b\n",
            "p.yaml:3:3: a task must be written out with a key of its own, not only as an alias",
        ),
        (
            "priority: hihg\ntasks: [{title: x}]\n",
            "p.yaml:1:11: priority must be one of low, medium, high, got hihg (did you mean `high`?)",
        ),
        (
            "tasks:\n- title: x\n\tid: y\n",
            "p.yaml:3:1: a tab cannot indent YAML: use spaces",
        ),
    ] {
        assert_eq!(error("p.yaml", text), expected, "{text:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_refused_at_their_place() {
    for (bytes, expected) in [
        (
            b"a: 1\nb: \xff\n".as_slice(),
            "p.yaml:2:4: not UTF-8: save the file as UTF-8 text",
        ),
        (
            b"\x7fELF\0\0",
            "p.yaml:1:5: a zero byte: this is not a text file; save it as UTF-8 text",
        ),
    ] {
        let error = parse("p.yaml", bytes).expect_err("no text");
        assert_eq!(error.to_string(), expected);
    }
    let large = vec![b'#'; MAX_FILE_BYTES + 1];
    let error = parse("p.yaml", &large).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "p.yaml:1:1: the file has 1048577 bytes, but at most 1048576 are read: split it"
    );
}

#[test]
fn an_unknown_key_is_an_error_with_the_nearest_known_one() {
    for (text, expected) in [
        (
            "titel: x\ntasks: [{title: x}]",
            "p.yaml:1:1: `titel` is not a key of a plan (did you mean `title`?)",
        ),
        (
            "verfy: [make]\ntasks: [{title: x}]",
            "p.yaml:1:1: `verfy` is not a key of a plan (did you mean `verify`?)",
        ),
        (
            "tasks:\n- title: x\n  verfy: [make]\n",
            "p.yaml:3:3: `verfy` is not a key of a task (did you mean `verify`?)",
        ),
        (
            "tasks:\n- title: x\n  zzz:\n",
            "p.yaml:3:3: `zzz` is not a key of a task; `sprag schema plan` lists them",
        ),
        (
            "tasks:\n- title: x\n  deadline: 1h\n",
            "p.yaml:3:3: `deadline` concerns the whole run, not one task: move it to the top of the plan",
        ),
        (
            "tasks:\n- title: x\n  deadline:\n",
            "p.yaml:3:3: `deadline` concerns the whole run, not one task: move it to the top of the plan",
        ),
        (
            "turbo: auto\ntasks: [{title: x}]",
            "p.yaml:1:1: `turbo` is not a key of a plan; `sprag schema plan` lists them",
        ),
        (
            "verify: [{run: x, knd: test}]\ntasks: [{title: x}]",
            "p.yaml:1:19: a check has no part `knd`, only name, run, kind, timeout, junit, problem_matcher, directory (did you mean `kind`?)",
        ),
        (
            "progress: {ignored: [x]}\ntasks: [{title: x}]",
            "p.yaml:1:12: progress has no part `ignored`, only ignore (did you mean `ignore`?)",
        ),
    ] {
        let error = parse("p.yaml", text.as_bytes()).expect_err(text);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn front_matter_with_an_unknown_key_is_refused() {
    for body in ["- [ ] x\n", "## x\n"] {
        let text = format!("---\nverfy: [make]\n---\n{body}");
        let error = parse("p.md", text.as_bytes()).expect_err(&text);
        assert_eq!(
            error.to_string(),
            "p.md:2:1: `verfy` is not a key of a plan (did you mean `verify`?)"
        );
    }
}

#[test]
fn anchors_and_merges_work_and_do_not_carry_states() {
    let text = "tasks:\n- &first\n  id: a\n  title: x\n  model: m\n  status: done\n- <<: *first\n  id: b\n";
    let plan = plan("p.yaml", text);
    let seen: Vec<_> = plan
        .tasks
        .iter()
        .map(|t| {
            (
                t.id.as_str(),
                t.title.as_str(),
                t.settings.model.as_deref(),
                t.status,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("a", "x", Some("m"), TaskStatus::Done),
            ("b", "x", Some("m"), TaskStatus::Pending)
        ]
    );
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_no_matter() {
    let unix = plan(
        "p.yaml",
        "title: T\ntasks:\n- title: x\n  description: |\n    a\n    b\n",
    );
    let windows = plan(
        "p.yaml",
        "\u{feff}title: T\r\ntasks:\r\n- title: x\r\n  description: |\r\n    a\r\n    b\r\n",
    );
    assert_eq!(windows, unix);
}

#[test]
fn the_text_tells_the_format_where_the_name_does_not() {
    for (text, format) in [
        ("{\"tasks\": [{\"title\": \"x\"}]}", PlanFormat::Sprag),
        ("tasks: [{title: x}]", PlanFormat::Sprag),
        ("# T\n\n## One\n", PlanFormat::Headings),
        ("- [ ] one\n", PlanFormat::Checklist),
    ] {
        assert_eq!(plan("plan", text).format, format, "{text}");
    }
}

#[test]
fn the_texts_of_a_plan_are_a_plan_whatever_characters_they_have() {
    let text = "# A\u{7f}b\n\n- [ ] One \u{9f}\u{feff}two \u{ffff}\n";
    let read = plan("p.md", text);
    let again = plan("plan.json", &read.texts());
    assert_eq!(
        (&again.title, &again.tasks[0].title),
        (&read.title, &read.tasks[0].title)
    );
    assert!(read.title.contains('\u{7f}'));
}

#[test]
fn an_id_survives_serialisation_and_bad_ones_do_not() {
    assert_eq!(
        serde_json::to_string(&id("a.b-1")).ok().as_deref(),
        Some("\"a.b-1\"")
    );
    assert_eq!(
        serde_json::from_str::<TaskId>("\"a.b-1\"").ok(),
        Some(id("a.b-1"))
    );
    let long = "a".repeat(65);
    for bad in ["", ".a", "a b", "é", long.as_str()] {
        assert!(
            serde_json::from_value::<TaskId>(bad.into()).is_err(),
            "{bad}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), ending in "(yaml|md|json|txt)") {
        let _ = parse(&format!("p.{ending}"), &bytes);
    }

    #[test]
    fn no_likely_text_panics(text in "(tasks:|- |title: x|\\[ \\] |## |---|\n|  |\\{|\\}|status: |done|\"|acceptance|&a |\\*a|<<: |[a-z0-9:,#]){0,30}", ending in "(yaml|md|json)") {
        let name = format!("p.{ending}");
        if let Ok(parsed) = parse(&name, text.as_bytes()) {
            proptest::prop_assert!(!parsed.value.tasks.is_empty());
            for task in &parsed.value.tasks {
                let update = StatusUpdate { status: TaskStatus::Done, attempts: Some(1), completed_at: None };
                let _ = set_status(&name, &text, &task.id, &update);
            }
        }
    }
}
