//! The commands of the built-in agent.

use super::*;
use std::fs;

async fn command(directory: &Path, cancel: &Cancel, text: &str) -> Outcome {
    let shell = Shell {
        work_tree: directory,
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        sandbox: None,
        servers: &Servers::default(),
        cancel,
        longest_wait: Duration::ZERO,
    };
    shell.command(text, Duration::from_secs(30)).await
}

#[tokio::test(flavor = "current_thread")]
async fn a_commands_output_keeps_its_beginning_and_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let flood = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last >&2; exit 3";
    let result = command(directory.path(), &Cancel::new(), flood).await;
    let output = result.unwrap_err();
    assert!(output.starts_with("first\nxxx"));
    assert!(output.ends_with("last\n(code 3)"));
    assert!(output.contains("bytes left out here]"));
    assert!(output.len() < OUTPUT_HEAD + OUTPUT_TAIL + 200);
}

#[tokio::test(flavor = "current_thread")]
async fn a_command_has_the_environment_that_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let result = command(directory.path(), &Cancel::new(), "echo $PATH:$HOME; pwd").await;
    let here = fs::canonicalize(directory.path()).unwrap();
    let expected = format!("/usr/bin:/bin:\n{}\n(code 0)", here.display());
    assert_eq!(result, Ok(expected));
}

#[tokio::test(flavor = "current_thread")]
async fn a_cancel_ends_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let cancel = Cancel::new();
    cancel.trigger(crate::process::CancelReason::Terminate);
    let result = command(directory.path(), &cancel, "echo > ran").await;
    assert!(result.is_err() && !directory.path().join("ran").exists());
}
