//! Changes that are reported, and the time limits of commands.

use super::*;
use std::cell::Cell;
use std::path::PathBuf;
use std::process::Command;

/// Runs the commands of a test in a directory, and is never cancelled.
pub(crate) struct Shell {
    pub(crate) directory: PathBuf,
    /// The time limit of the last command.
    limit: Cell<Option<Duration>>,
}

impl Shell {
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            limit: Cell::new(None),
        }
    }
}

impl Host for Shell {
    async fn command(&self, command: &str, timeout: Duration) -> Outcome {
        self.limit.set(Some(timeout));
        #[expect(clippy::disallowed_methods, reason = "a child of the test")]
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(&self.directory);
        let ended = shell.output().unwrap();
        let output = String::from_utf8(ended.stdout).unwrap();
        if ended.status.success() {
            Ok(output)
        } else {
            Err(output)
        }
    }

    async fn served(&self, tool: &str, arguments: &str, _: Duration) -> Outcome {
        Ok(format!("{tool} {arguments}"))
    }

    async fn cancelled(&self) {
        std::future::pending().await
    }

    fn is_cancelled(&self) -> bool {
        false
    }

    async fn pause(&self, _: u64) {}
}

fn request(name: &str, arguments: serde_json::Value) -> ToolRequest {
    let tagged = serde_json::json!({"tool": name, "arguments": arguments});
    serde_json::from_value(tagged).unwrap()
}

async fn call(shell: &Shell, request: &ToolRequest) -> ToolResult {
    let mut tools = Toolbox::new(&shell.directory, shell);
    tools.call(request, Duration::from_secs(600)).await
}

fn command(text: &str) -> ToolRequest {
    request(
        "run_command",
        serde_json::json!({"command": text, "timeout_seconds": 30}),
    )
}

#[tokio::test(flavor = "current_thread")]
async fn a_change_belongs_to_a_command_if_no_tool_left_the_file_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let shell = Shell::new(directory.path());
    let mut tools = Toolbox::new(directory.path(), &shell);
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
async fn only_files_that_are_not_what_they_were_count_as_changed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |content: &str| {
        request(
            "write_file",
            serde_json::json!({"path": "./a//b.txt", "content": content}),
        )
    };
    let shell = Shell::new(directory.path());
    let changed = async |request: &ToolRequest| {
        let result = call(&shell, request).await;
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
    let shell = Shell::new(directory.path());
    let result = call(&shell, &command).await;
    assert_eq!((result.ok, result.output.as_str()), (true, "ran\n"));
    assert_eq!(shell.limit.get(), Some(COMMAND_TIMEOUT));
}
