//! The last update counts: a response that finishes the plan is taken in whole on the very turn on
//! which a limit or a stall would end the session, however it says so.

use crate::builtin::{TWO_ITEMS, calls, played, run, session, stalled, stalled_project};
use crate::support::model_api::{ModelApi, Step};
use crate::support::model_wire::{TOKENS_IN, TOKENS_OUT};
use crate::support::project::{Project, Run};
use serde_json::{Value, json};

/// The response on which the session of [`stalled`] would be given up: after it comes the repair
/// message.
const GIVEN_UP: usize = 8;

const MODELS: [&str; 4] = ["openai/m", "openai-responses/m", "anthropic/m", "gemini/m"];

/// How a last response says that everything is done.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Two blocks of updates, a block of final words and the edit as a call.
    Blocks,
    /// The edit, the update and `finish` as calls of one response, in this order.
    Calls,
    /// The calls in the reverse order: the end before the edit.
    Reversed,
}

const BLOCKS: &str = "```SPRAG_PLAN_UPDATE\n- [x] src/a.rs: one\n```\n```SPRAG_PLAN_UPDATE\n- [x] src/b.rs: two\n```\n\
                      ```SPRAG_FINAL\nAdd two\n```\n";

/// The last response. It edits one file of the two and checks both items off.
fn last(form: Form) -> Step {
    let write = (
        "write_file",
        json!({"path": "src/b.rs", "content": "// new\n"}),
    );
    let item = |text: &str| json!({"text": text, "state": "done"});
    let items = json!({"items": [item("src/a.rs: one"), item("src/b.rs: two")]});
    let update = ("update_plan", items);
    let finish = ("finish", json!({"summary": "Add two"}));
    match form {
        Form::Blocks => calls(BLOCKS, vec![write]),
        Form::Calls => calls("", vec![write, update, finish]),
        Form::Reversed => calls("", vec![finish, update, write]),
    }
}

/// A session in which response number `at`, from 1, is the last: all before it only look.
fn until(at: usize, form: Form) -> Vec<Step> {
    let mut script = stalled(last(form));
    script.truncate(at - 1);
    script.push(last(form));
    script
}

fn play(model: &str, form: Form, at: usize, args: &[&str]) -> (Project, Run, usize, bool) {
    let script = until(at, form);
    let api = ModelApi::start(script).unwrap();
    let mut project = stalled_project();
    let run = run(&mut project, &api, model, args);
    let requests = api.requests();
    let repair = requests
        .iter()
        .any(|it| it.mentions("come to a standstill"));
    (project, run, requests.len(), repair)
}

fn assert_done(what: &str, project: &Project, run: &Run, form: Form) -> Value {
    assert_eq!(run.code, 0, "{what}\n{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.read("src/b.rs"), "// new\n", "{what}");
    assert_eq!(
        (project.commits(), project.status().as_str()),
        (2, ""),
        "{what}"
    );
    let turns = run.task(0)["turns"].as_array().unwrap().len();
    assert_eq!(turns, 1, "{what}");
    let session = session(run).clone();
    let updates = match form {
        Form::Blocks => 2,
        Form::Calls | Form::Reversed => 1,
    };
    let seen = [
        &session["exit"],
        &session["completion_kind"],
        &session["plan_finished"],
        &session["plan_update_count"],
    ];
    let expected = [
        &json!("submitted"),
        &json!("complete_verified"),
        &json!(2),
        &json!(updates),
    ];
    assert_eq!(seen, expected, "{what}");
    session
}

#[test]
fn on_the_turn_on_which_the_session_is_given_up() {
    let forms = [Form::Blocks, Form::Calls, Form::Reversed];
    for (model, form) in MODELS.into_iter().zip(forms.into_iter().cycle()) {
        let what = format!("{model} {form:?}");
        let (project, run, requests, repair) = play(model, form, GIVEN_UP, &[]);
        let session = assert_done(&what, &project, &run, form);
        assert_eq!((requests, repair), (GIVEN_UP, false), "{what}");
        assert_eq!(session["repair_turns"], 0, "{what}");
    }
}

#[test]
fn in_the_one_response_after_the_repair_message() {
    for form in [Form::Blocks, Form::Calls, Form::Reversed] {
        let what = format!("{form:?}");
        let (project, run, requests, repair) = play("openai/m", form, GIVEN_UP + 1, &[]);
        let session = assert_done(&what, &project, &run, form);
        assert_eq!((requests, repair), (GIVEN_UP + 1, true), "{what}");
        assert_eq!(session["repair_turns"], 1, "{what}");
        assert_eq!(session["stagnation_score_max"].as_u64().unwrap().min(3), 3);
    }
}

#[test]
fn on_the_turn_on_which_a_limit_is_reached() {
    let spent = (3 * (TOKENS_IN + TOKENS_OUT)).to_string();
    let price = "--agent-arg=--price=1000,1000,1000";
    for (args, form) in [
        (&["--agent-arg=--max-steps=3"] as &[&str], Form::Blocks),
        (&["--agent-arg=--max-tool-calls=3"], Form::Reversed),
        (&["--max-tokens", &spent], Form::Blocks),
        (&[price, "--max-cost-usd", "3.6"], Form::Reversed),
    ] {
        let what = format!("{args:?} {form:?}");
        let (project, run, requests, _) = play("openai/m", form, 3, args);
        assert_done(&what, &project, &run, form);
        assert_eq!(requests, 3, "{what}");
    }
}

#[test]
fn after_two_responses_of_which_nothing_could_be_carried_out() {
    let nothing = || calls("Hm.", Vec::new());
    let mut script = until(2, Form::Blocks);
    script.insert(1, nothing());
    script.insert(1, nothing());
    let mut project = stalled_project();
    let (run, requests) = played(&mut project, script);
    assert_eq!(requests.len(), 4);
    assert_done("format errors", &project, &run, Form::Blocks);
}

#[test]
fn on_the_turn_on_which_a_loop_would_end_the_session() {
    let same = || calls("", vec![("read_file", json!({"path": "src/a.rs"}))]);
    let mut script = vec![calls(
        TWO_ITEMS,
        vec![("read_file", json!({"path": "src/a.rs"}))],
    )];
    script.extend([same(), same(), same()]);
    let last = last(Form::Blocks);
    script.push(last);
    let mut project = stalled_project();
    let (run, requests) = played(&mut project, script);
    assert_eq!(requests.len(), 5);
    assert!(requests[4].mentions("the next time, the session ends"));
    assert_done("loop", &project, &run, Form::Blocks);
}

#[test]
fn a_plan_that_is_only_checked_off_is_satisfied_by_calls_as_well_as_by_blocks() {
    let item = |text: &str| json!({"text": text, "state": "already_satisfied"});
    let items = json!({"items": [item("src/a.rs: one"), item("src/b.rs: two")]});
    let end = json!({"summary": "ALREADY_SATISFIED: both are there"});
    let mut script = until(GIVEN_UP, Form::Calls);
    script.pop();
    script.push(calls("", vec![("finish", end), ("update_plan", items)]));
    let mut project = stalled_project();
    let (run, requests) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!(requests.len(), GIVEN_UP);
    assert_eq!(run.task(0)["reason"], "already_satisfied");
    assert_eq!(session(&run)["completion_kind"], "complete_verified");
    assert_eq!(session(&run)["plan_finished"], 2);
    assert_eq!(project.read("src/b.rs").lines().count(), 20);
}
