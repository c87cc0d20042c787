//! Agents that speak the Agent Client Protocol: a scripted one in a shell, over real pipes.

use crate::support::proc::{end_of, signal, wait_until};
use crate::support::project::{Project, Run};
use crate::support::tasks::{FIXED, assessments, end, events, fixable, fixable_by, kept};
use serde_json::{Value, json};
use std::fs;

/// An agent that answers `initialize` and `session/new`, takes the prompt and does what `script` says with these functions; then it waits
/// for the end of its input. `$N` counts its starts; what it hears is kept in `$OUT/heard-N`.
fn agent(project: &Project, script: &str) -> String {
    let path = project.outside("acp.sh");
    let out = path.parent().unwrap().display().to_string();
    let text = r#"OUT=@OUT@
N=$(( $(cat "$OUT/calls" 2>/dev/null || echo 0) + 1 )); echo $N > "$OUT/calls"
hear() { IFS= read -r LINE || exit 0; printf '%s\n' "$LINE" >> "$OUT/heard-$N"; }
update() { printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":%s}}\n' "$1"; }
cost() { update '{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":'"$1"',"currency":"USD"}}'; }
text() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
ask() { printf '{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c","kind":"%s"},"options":[{"optionId":"always","name":"a","kind":"allow_always"},{"optionId":"once","name":"o","kind":"allow_once"},{"optionId":"no","name":"n","kind":"reject_once"}]}}\n' "$1"; hear; }
ends() { printf '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"%s"}}\n' "${1:-end_turn}"; }
hear; printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":%s}}}\n' "${LOADS:-false}"
hear; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s1"}}'
hear
@SCRIPT@
hear
"#.replace("@OUT@", &out).replace("@SCRIPT@", script);
    fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

fn args<'a>(command: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--plan", "plan.yaml", "--agent", "acp"];
    args.extend(["--agent-command", command]);
    args.extend(more);
    args
}

fn run(project: &Project, command: &str, more: &[&str]) -> Run {
    project.sprag(&args(command, more))
}

/// The nth message that the agent heard in its `call`th turn, both from 1.
fn heard(project: &Project, call: u32, n: usize) -> Value {
    let lines = project.notes(&format!("heard-{call}"));
    serde_json::from_str(&lines[n - 1]).unwrap()
}

fn prompt(project: &Project, call: u32) -> String {
    let heard = heard(project, call, 3);
    assert_eq!(heard["method"], "session/prompt");
    heard["params"]["prompt"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

const PLANS_THEN_WORKS: &str = r#"case $N in
1) update '{"sessionUpdate":"plan","entries":[{"content":"Edit a.txt","priority":"high","status":"pending"}]}'
   echo 'Loaded credentials.'; echo '{"jsonrpc":'
   text 'Plan: I will '; text 'edit a.txt.'; cost 0.25; ends ;;
*) update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit a.txt","kind":"edit","status":"in_progress"}'
   echo fixed > a.txt
   update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","content":[{"type":"diff","path":"a.txt","oldText":"broken","newText":"fixed"}]}'
   text 'Done.'; cost 0.5; ends ;;
esac"#;

#[test]
fn a_plan_alone_is_nudged_and_the_work_is_committed() {
    let project = fixable();
    let command = agent(&project, PLANS_THEN_WORKS);
    let run = run(&project, &command, &[]).expect(0);
    assert_eq!(project.calls(), 2);
    assert_eq!(assessments(run.task(0)), ["planning_only", "changed"]);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!((project.commits(), project.status()), (3, String::new()));
    let session = heard(&project, 1, 2);
    assert_eq!(session["method"], "session/new");
    let cwd = session["params"]["cwd"].as_str().unwrap();
    assert_eq!(
        fs::canonicalize(cwd).unwrap(),
        fs::canonicalize(project.repo()).unwrap()
    );
    // Its session cannot be loaded, so that it is told everything once more.
    assert!(prompt(&project, 1).contains("## Rules"));
    assert!(prompt(&project, 2).contains("## Rules"));
    let nudge = "Please implement the changes now, not just plan them.";
    assert!(prompt(&project, 2).contains(nudge));
    let told = |name| -> Vec<Value> {
        let all = events(&run, name).into_iter();
        all.map(|event| {
            let fields = ["text", "items", "kind", "ok", "line"];
            let told = fields.iter().find_map(|field| event.get(field));
            told.cloned().unwrap_or(Value::Null)
        })
        .collect()
    };
    assert_eq!(told("agent.message"), ["Plan: I will edit a.txt.", "Done."]);
    let items = json!([{ "text": "Edit a.txt", "status": "pending" }]);
    assert_eq!(told("agent.todo"), [items]);
    assert_eq!(told("agent.file_change"), ["update"]);
    assert_eq!(told("agent.raw"), ["Loaded credentials.", "{\"jsonrpc\":"]);
    let usage = json!({ "tokens_in": null, "tokens_out": null, "cost_usd": 0.75 });
    assert_eq!(run.summary["usage"], usage);
    assert!(kept(&run, "turns/01-acp.jsonl").contains("session/update"));
}

#[test]
fn a_session_goes_on_where_the_agent_can_load_it() {
    let project = fixable();
    let command = format!("LOADS=true {}", agent(&project, PLANS_THEN_WORKS));
    run(&project, &command, &[]).expect(0);
    let session = heard(&project, 2, 2);
    assert_eq!(
        (&session["method"], &session["params"]["sessionId"]),
        (&json!("session/load"), &json!("s1"))
    );
    assert!(!prompt(&project, 2).contains("## Rules"));
}

#[test]
fn permission_is_given_once_to_who_works_and_refused_to_who_reviews() {
    let project = fixable_by("! grep -q broken a.txt");
    let script = r#"ask edit
case $LINE in *'"optionId":"once"'*) echo fixed > a.txt ;; esac
text 'VERDICT: ACCEPTABLE'; ends"#;
    let command = agent(&project, script);
    let run = run(&project, &command, &["--review"]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    let outcomes = [1, 2].map(|call| heard(&project, call, 4)["result"]["outcome"].clone());
    let selected = |option: &str| json!({ "outcome": "selected", "optionId": option });
    assert_eq!(outcomes, [selected("once"), selected("no")]);
}

#[test]
fn a_stop_is_told_to_the_agent_before_it_is_ended() {
    let project = fixable();
    let script = "echo half > a.txt; touch \"$OUT/began\"; hear; ends cancelled";
    let command = agent(&project, script);
    let mut sprag = project.start(&args(&command, &[]));
    wait_until("the agent works", || project.outside("began").exists());
    signal(sprag.id(), "INT");
    assert_eq!(end_of(&mut sprag).code(), Some(130));
    let run = project.finished(&sprag.wait_with_output().unwrap());
    assert_eq!(run.task(0)["reason"], "cancelled");
    assert_eq!(project.status(), " M a.txt");
    let cancel = heard(&project, 1, 4);
    assert_eq!(
        (&cancel["method"], &cancel["params"]["sessionId"]),
        (&json!("session/cancel"), &json!("s1"))
    );
}

#[test]
fn an_agent_that_dies_costs_an_attempt_and_one_that_stays_nothing() {
    let project = fixable();
    let script = "case $N in
1) text 'I begin.'; exit 7 ;;
*) echo fixed > a.txt; text 'Done.'; ends; exec sleep 1000 ;;
esac";
    let command = agent(&project, script);
    let run = run(&project, &command, &[]).expect(0);
    let task = run.task(0);
    assert_eq!(end(task), ("done", "verified"));
    assert_eq!(assessments(task), ["agent_crashed", "changed"]);
    assert_eq!(project.calls(), 2);
}

#[test]
fn an_agent_that_works_for_too_long_is_ended_by_the_same_limit_as_any() {
    let project = fixable();
    let command = agent(&project, "sleep 1000");
    let limit = ["--turn-timeout", "2s", "--max-retries", "0"];
    let run = run(&project, &command, &limit).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "turn_timeout"));
}

#[test]
fn a_refused_login_says_how_a_key_is_passed_on() {
    let project = fixable_by(FIXED);
    let path = project.outside("acp.sh");
    let script = r#"read -r a; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r b; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Authentication required"}}'
read -r c
"#;
    fs::write(&path, script).unwrap();
    let command = format!("sh {}", path.display());
    let run = run(&project, &command, &[]).expect(4);
    assert_eq!(end(run.task(0)), ("failed", "agent_unavailable"));
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("`agent_env`"), "{message}");
}

#[test]
fn a_protocol_without_a_command_is_refused() {
    let project = fixable();
    let run = project.sprag(&["run", "--plan", "plan.yaml", "--agent", "acp"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    let told = "error: agent `acp` needs a command\n  give one with --agent-command,";
    assert!(run.stderr.starts_with(told), "{}", run.stderr);
}
