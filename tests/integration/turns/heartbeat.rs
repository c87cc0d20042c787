//! A long turn says how far it has come.

use crate::support::tasks::fixable;

#[test]
fn a_long_turn_tells_its_last_tool_call_and_the_files_it_changed() {
    let mut project = fixable();
    project.env("SPRAG_HEARTBEAT", "100ms");
    // The agent goes on once its turn was told of, by the last tool call, which comes last.
    let agent = project.agent(
        r#"echo '{"event":"agent.file_change","path":"a.txt","kind":"update"}'
        echo '{"event":"agent.usage","tokens_in":1200,"tokens_out":30}'
        echo '{"event":"agent.tool_call","name":"shell","summary":"cargo test"}'
        events=$(dirname "$SPRAG_PROMPT_FILE")/../events.jsonl
        until grep '"turn.progress"' "$events" | grep -q 'cargo test'; do sleep 0.05; done
        echo fixed > a.txt; echo Done."#,
    );
    let run = project.run(&agent, &[]).expect(0);
    let line = run
        .stdout
        .lines()
        .find(|line| line.contains("cargo test"))
        .unwrap_or_else(|| panic!("{}", run.stdout));
    for part in [
        "last: shell cargo test",
        "1 file changed",
        "1.2k in / 30 out tokens",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let told = run
        .events
        .iter()
        .find(|event| event["event"] == "turn.progress" && event["last_tool"].is_string())
        .unwrap();
    assert_eq!(told["last_tool"], "shell cargo test");
    assert_eq!(told["changed_files"], 1);
    assert_eq!(told["usage"]["tokens_in"], 1200);
    assert_eq!((&told["turn"], &told["task"]), (&1.into(), &"fix".into()));
}
