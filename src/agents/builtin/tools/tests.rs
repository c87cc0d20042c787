//! Commands, and the changes that are reported.

use super::*;
use std::fs;

fn request(name: &str, arguments: serde_json::Value) -> ToolRequest {
    let tagged = serde_json::json!({"tool": name, "arguments": arguments});
    serde_json::from_value(tagged).unwrap()
}

async fn call(directory: &Path, cancel: &Cancel, request: &ToolRequest) -> ToolResult {
    let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let mut tools = Toolbox::new(directory, env, None, cancel);
    tools.call(request, Duration::from_secs(60)).await
}

fn command(text: &str) -> ToolRequest {
    request(
        "run_command",
        serde_json::json!({"command": text, "timeout_seconds": 30}),
    )
}

#[tokio::test(flavor = "current_thread")]
async fn a_commands_output_keeps_its_beginning_and_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let flood = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last >&2; exit 3";
    let result = call(directory.path(), &Cancel::new(), &command(flood)).await;
    assert!(!result.ok);
    assert!(result.output.starts_with("first\nxxx"));
    assert!(result.output.ends_with("last\n(code 3)"));
    assert!(result.output.contains("bytes left out here]"));
    assert!(result.output.len() < OUTPUT_HEAD + OUTPUT_TAIL + 200);
    assert_eq!(result.changed, [""; 0]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_change_belongs_to_a_command_if_no_tool_left_the_file_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    let mut tools = Toolbox::new(directory.path(), env, None, &Cancel::new());
    let write = |path: &str| {
        request(
            "write_file",
            serde_json::json!({"path": path, "content": "a"}),
        )
    };
    let delete = request("delete_file", serde_json::json!({"path": "gone"}));
    for request in [
        &write("a"),
        &write("b"),
        &write("gone"),
        &delete,
        &command("echo more >> b; echo new > c"),
    ] {
        assert!(tools.call(request, Duration::from_secs(60)).await.ok);
    }
    let all = || ["a", "b", "c", "gone"].map(str::to_owned).to_vec();
    assert_eq!(tools.changed_by_commands(all()), ["b", "c"]);
    // What was left there before the last inspection is of no account for the next.
    assert_eq!(tools.changed_by_commands(all()), all());
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_has_the_environment_that_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let result = call(
        directory.path(),
        &Cancel::new(),
        &command("echo $PATH:$HOME; pwd"),
    )
    .await;
    let here = fs::canonicalize(directory.path()).unwrap();
    assert_eq!(
        result.output,
        format!("/usr/bin:/bin:\n{}\n(code 0)", here.display())
    );
}

#[tokio::test(flavor = "current_thread")]
async fn a_cancel_ends_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    cancel.trigger(crate::process::CancelReason::Terminate);
    let result = call(directory.path(), &cancel, &command("echo > ran")).await;
    assert!(!result.ok && !directory.path().join("ran").exists());
}

#[tokio::test(flavor = "current_thread")]
async fn only_files_that_are_not_what_they_were_count_as_changed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |content: &str| {
        request(
            "write_file",
            serde_json::json!({"path": "./a//b.txt", "content": content}),
        )
    };
    let cancel = Cancel::new();
    let changed = async |request: &ToolRequest| {
        let result = call(directory.path(), &cancel, request).await;
        (result.ok, result.changed)
    };
    let path = || "a/b.txt".to_owned();
    assert_eq!(changed(&write("x")).await, (true, vec![path()]));
    assert_eq!(changed(&write("x")).await, (true, Vec::new()));
    let moved = request(
        "move_file",
        serde_json::json!({"from": "a/b.txt", "to": "c.txt"}),
    );
    assert_eq!(
        changed(&moved).await,
        (true, vec![path(), "c.txt".to_owned()])
    );
    let gone = request("delete_file", serde_json::json!({"path": "c.txt"}));
    assert_eq!(changed(&gone).await, (true, vec!["c.txt".to_owned()]));
    assert_eq!(changed(&gone).await, (false, Vec::new()));
}

#[tokio::test(flavor = "current_thread")]
async fn a_time_limit_of_nothing_is_none_that_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = serde_json::json!({"command": "sleep 0.2; echo ran", "timeout_seconds": 0});
    let command = request("run_command", arguments);
    let result = call(directory.path(), &Cancel::new(), &command).await;
    assert_eq!((result.ok, result.output.as_str()), (true, "ran\n(code 0)"));
}
