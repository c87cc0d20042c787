//! How sessions of the built-in agent are hurried on and how they end.

use crate::builtin::{
    TWO_ITEMS, broken, calls, finish, played, run, stalled, stalled_project, write_fixed,
};
use crate::support::model_api::{ModelApi, Recorded, Step};
use crate::support::model_wire::{TOKENS_IN, TOKENS_OUT};
use crate::support::project::{Project, Run, plan};
use crate::support::time_limit::under_limit;
use serde_json::{Value, json};
use sprag::domain::output_schema::OutputSchema;

/// The numbers of the first session of a run.
fn first(run: &Run) -> &Value {
    &run.task(0)["turns"][0]["builtin"]
}

fn look(start: usize) -> (&'static str, Value) {
    ("read_file", json!({"path": "src/a.rs", "start": start}))
}

/// The requests, from 1, that mention a text.
fn mentioning(requests: &[Recorded], text: &str) -> Vec<usize> {
    let numbered = requests.iter().zip(1..);
    let newest = |request: &Recorded| {
        let messages = request.body["messages"].as_array().unwrap();
        let own = messages
            .iter()
            .rev()
            .take_while(|it| it["role"] != "assistant");
        let own: Vec<&Value> = own.collect();
        own.iter().any(|it| {
            it["content"]
                .as_str()
                .is_some_and(|said| said.contains(text))
        })
    };
    let wanted = numbered.filter(|(request, _)| newest(request));
    wanted.map(|(_, number)| number).collect()
}

/// Plays a loop to its end and tells the requests of the first warning, the second, and the repair
/// message, which is answered by one more look.
fn loop_of(script: Vec<Step>, seen: &str) -> (Vec<usize>, Vec<usize>, Vec<usize>, Run) {
    let (run, requests) = played(&mut stalled_project(), script);
    let warned = mentioning(&requests, &format!("{seen}. Do something else."));
    let harder = mentioning(&requests, &format!("{seen}. You have been warned of it"));
    let repair = mentioning(&requests, "This is the last message");
    (warned, harder, repair, run)
}

#[test]
fn identical_calls_are_warned_of_twice_and_then_end_the_session() {
    let same = || calls("", vec![look(1), ("list_files", json!({}))]);
    let script: Vec<Step> = (0..6).map(|_| same()).collect();
    let seen = "You have made exactly the same tool calls several times in a row";
    let (warned, harder, repair, run) = loop_of(script, seen);
    assert_eq!(
        (&warned[..1], &harder[..1], &repair[..1]),
        (&[4][..], &[5][..], &[6][..])
    );
    assert_eq!(first(&run)["exit"], "stalled");
    assert_eq!(first(&run)["repair_turns"], 1);
    assert_eq!(
        first(&run)["tool_calls"],
        12,
        "exactly one more response was taken"
    );
}

#[test]
fn exactly_one_response_follows_the_repair_message_and_its_edit_is_kept() {
    let edit = json!({"path": "src/b.rs", "content": "// kept\n"});
    let mut script = stalled(calls("", vec![("write_file", edit), look(3)]));
    let asked = script.len();
    // Were there one more response, it would undo the edit.
    let undo = json!({"path": "src/b.rs", "content": "// undone\n"});
    script.push(calls("", vec![("write_file", undo)]));
    let api = ModelApi::start(script).unwrap();
    let mut project = stalled_project();
    let run = run(&mut project, &api, "openai/m", &["--max-retries", "0"]);
    let requests = api.model_requests();
    assert_eq!(
        mentioning(&requests[..asked], "This is the last message"),
        [asked]
    );
    assert_eq!(first(&run)["exit"], "stalled");
    assert_eq!(first(&run)["plan_finished"], 1);
    assert_eq!(first(&run)["completion_kind"], "partial");
    assert_eq!((requests.len(), api.steps_left()), (asked, 1));
    assert_eq!(project.read("src/b.rs"), "// kept\n");
    assert_eq!(
        (run.code, project.commits()),
        (1, 1),
        "half-work is never committed"
    );
    assert_eq!(run.summary["status"], "failed");
}

/// Runs a script against a limit, with no retry, and returns the run and the number of requests.
fn limited(script: Vec<Step>, args: &[&str]) -> (Project, Run, usize) {
    let api = ModelApi::start(script).unwrap();
    let mut project = broken();
    let all = [args, &["--max-retries", "0"]].concat();
    let run = run(&mut project, &api, "openai/m", &all);
    (project, run, api.model_requests().len())
}

/// An edit and one call besides, then an end that no limit lets through.
fn work() -> Vec<Step> {
    let write = ("write_file", json!({"path": "a.txt", "content": "half\n"}));
    let look = ("list_files", json!({}));
    vec![calls("", vec![write, look]), write_fixed(), finish()]
}

#[test]
fn limits_end_the_session_after_what_was_answered_is_applied() {
    let once = (TOKENS_IN + TOKENS_OUT).to_string();
    for (exit, args, code) in [
        ("step_limit", &["--agent-arg=--max-steps=1"] as &[&str], 1),
        ("step_limit", &["--agent-arg=--max-tool-calls=2"], 1),
        ("token_limit", &["--max-tokens", &once], 5),
        (
            "cost_limit",
            &["--agent-arg=--price=1000,1000,1000", "--max-cost-usd", "1"],
            5,
        ),
        (
            "cost_limit",
            &["--agent-arg=--price=1,1,1", "--max-cost-usd", "0.001"],
            5,
        ),
    ] {
        let (project, run, requests) = limited(work(), args);
        assert_eq!(first(&run)["exit"], exit, "{args:?}");
        assert_eq!(first(&run)["completion_kind"], "exhausted", "{args:?}");
        assert_eq!(first(&run)["tool_calls"], 2, "{args:?}");
        assert_eq!(requests, 1, "{args:?}");
        assert_eq!(project.read("a.txt"), "half\n", "{args:?}");
        assert_eq!(
            (run.code, project.commits()),
            (code, 1),
            "{args:?} {}",
            run.task(0)
        );
        let told = "the cost limit is reached: $0.0012 of $0.0010";
        let is_below_a_cent = args.contains(&"0.001");
        assert!(!is_below_a_cent || run.task(0)["message"] == told);
    }
}

#[test]
fn the_time_limit_ends_a_request_that_is_not_answered() {
    let (project, run) = under_limit(|limit| {
        let mut script = work();
        script.truncate(1);
        script.push(Step::Silence);
        let (project, run, requests) = limited(script, &["--turn-timeout", &format!("{limit}s")]);
        (requests == 2).then_some((project, run))
    });
    assert_eq!(first(&run)["exit"], "time_limit");
    assert_eq!(first(&run)["completion_kind"], "exhausted");
    assert_eq!(run.code, 1, "{}", run.task(0));
    assert_eq!(project.read("a.txt"), "half\n");
}

#[test]
fn a_failed_verification_makes_no_session_complete() {
    let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan("false"))]);
    let api = ModelApi::start([write_fixed(), finish()]).unwrap();
    let run = run(&mut project, &api, "openai/m", &["--max-retries", "0"]).expect(1);
    assert_eq!(first(&run)["exit"], "submitted");
    assert_eq!(first(&run)["completion_kind"], "partial");
}

#[test]
fn without_a_check_a_finished_session_is_complete_and_unverified() {
    let plan = "title: Example\ntasks:\n  - id: fix\n    title: Fix a.txt\n";
    let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", plan)]);
    let api = ModelApi::start([write_fixed(), finish()]).unwrap();
    let run = run(&mut project, &api, "openai/m", &[]).expect(0);
    assert_eq!(run.summary["status"], "unverified");
    assert_eq!(first(&run)["completion_kind"], "complete_unverified");
}

#[test]
fn the_numbers_of_a_session_are_in_the_schema_and_in_the_documentation() {
    let (run, _) = played(&mut broken(), vec![write_fixed(), finish()]);
    let run = run.expect(0);
    let printed = broken().sprag(&["schema", "summary"]).expect(0).stdout;
    let schema: Value = serde_json::from_str(&printed).unwrap();
    let judged = OutputSchema::parse(&printed)
        .unwrap()
        .judge(run.summary.clone());
    assert!(judged.is_ok(), "{judged:?}");
    let names = |value: &Value| -> Vec<String> {
        let fields = value.as_object().unwrap();
        fields.keys().cloned().collect()
    };
    let known = names(&schema["$defs"]["Telemetry"]["properties"]);
    assert_eq!(names(first(&run)), known);
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/events.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let (_, section) = docs.split_once("`tasks[].turns[].builtin` (").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    for name in known {
        assert!(section.contains(&format!("`{name}`")), "{name}");
    }
    for kind in ["SessionExit", "CompletionKind"] {
        for value in schema["$defs"][kind]["oneOf"].as_array().unwrap() {
            let value = value["const"].as_str().unwrap();
            assert!(section.contains(&format!("`{value}`")), "{value}");
        }
    }
}

/// The items of [`TWO_ITEMS`] checked off, and these final words.
fn closed_with(words: &str) -> Step {
    let text = format!(
        "```SPRAG_PLAN_UPDATE\n- [x] src/a.rs: one\n- [=] src/b.rs: two\n```\n```SPRAG_FINAL\n{words}\n```"
    );
    calls(&text, Vec::new())
}

#[test]
fn a_finished_plan_shows_that_nothing_needed_doing() {
    for words in [
        "The audit found no remaining gaps.",
        "ALREADY_SATISFIED: both are there",
    ] {
        let script = vec![calls(TWO_ITEMS, vec![look(1)]), closed_with(words)];
        let mut project = stalled_project();
        let (run, requests) = played(&mut project, script);
        let run = run.expect(0);
        assert_eq!(run.task(0)["reason"], "already_satisfied", "{words}");
        assert_eq!(requests.len(), 2, "{words}");
        let changed = project.git(&["diff", "--name-only", "HEAD~1", "HEAD"]);
        assert_eq!(changed, "plan.yaml", "only the task's status");
        assert_eq!(first(&run)["completion_kind"], "complete_verified");
    }
}

#[test]
fn a_finished_plan_shows_nothing_where_the_checks_fail() {
    let mut project = Project::new(&[
        ("src/a.rs", "// a\n"),
        ("src/b.rs", "// b\n"),
        ("plan.yaml", &plan("false")),
    ]);
    let script = vec![calls(TWO_ITEMS, vec![look(1)]), closed_with("No gaps.")];
    let api = ModelApi::start(script).unwrap();
    let run = run(&mut project, &api, "openai/m", &["--max-retries", "0"]).expect(1);
    assert_ne!(run.task(0)["reason"], "already_satisfied");
    assert_eq!(project.commits(), 1);
}

#[test]
fn the_last_item_without_a_change_is_closed_as_the_hint_says() {
    let one = "```SPRAG_PLAN\n- [ ] src/a.rs: one\n```\n";
    let script = vec![
        calls(one, vec![look(1)]),
        calls("```SPRAG_FINAL\nNo gaps.\n```", Vec::new()),
        calls(
            "```SPRAG_PLAN_UPDATE\n- [x] src/a.rs: one\n```\n```SPRAG_FINAL\nALREADY_SATISFIED: no gaps\n```",
            Vec::new(),
        ),
    ];
    let (run, requests) = played(&mut stalled_project(), script);
    let run = run.expect(0);
    let hint = "```SPRAG_FINAL\nALREADY_SATISFIED: <why nothing needs to be changed>\n```";
    assert_eq!(mentioning(&requests, hint), [3]);
    assert_eq!(run.task(0)["reason"], "already_satisfied");
}

#[test]
fn an_item_that_is_left_or_impossible_is_said_although_checks_pass() {
    for (mark, left) in [("!", "src/b.rs: two (blocked)"), (" ", "src/b.rs: two")] {
        let write = json!({"path": "src/a.rs", "content": "// new\n"});
        let update = format!(
            "```SPRAG_PLAN_UPDATE\n- [{mark}] src/b.rs: two\n```\n```SPRAG_FINAL\nAdd one\n```"
        );
        let script = vec![
            calls(TWO_ITEMS, vec![("write_file", write)]),
            calls(&update, Vec::new()),
            calls(&update, Vec::new()),
        ];
        let mut project = stalled_project();
        let (run, _) = played(&mut project, script);
        let run = run.expect(0);
        assert_eq!(run.task(0)["reason"], "verified");
        let said = format!("1 of 2 items done; left: {left}");
        assert!(run.stdout.contains(&said), "{}", run.stdout);
        let report = std::fs::read_to_string(run.dir.as_ref().unwrap().join("report.md")).unwrap();
        assert!(report.contains(&said), "{report}");
        assert!(run.summary["warnings"].to_string().contains(&said));
    }
}

#[test]
fn a_session_without_progress_says_so() {
    let script = stalled(calls("", vec![look(9)]));
    let mut project = stalled_project();
    let api = ModelApi::start(script).unwrap();
    let run = run(&mut project, &api, "openai/m", &["--max-retries", "0"]).expect(1);
    let said =
        "stopped: no progress in 9 steps, 0 of 2 items done; left: src/a.rs: one, src/b.rs: two";
    assert_eq!(run.task(0)["reason"], "no_progress");
    assert_eq!(run.task(0)["message"], said);
    assert!(
        run.stdout.contains(&format!("turn 1: {said}")),
        "{}",
        run.stdout
    );
    assert!(!run.stdout.contains("crashed"), "{}", run.stdout);
}
