//! MCP servers that a pull request declares.

use super::with_pull;
use crate::support::runner::{Runner, Step};
use std::os::unix::fs::PermissionsExt;

const CLAUDE: &str = "#!/bin/sh
cat > /dev/null
for arg; do
  echo \"$arg\" >> NOTES
  case \"$arg\" in --mcp-config=*) cat \"${arg#*=}\" >> NOTES;; esac
done
echo fixed > a.txt
echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"done\",\"session_id\":\"s\"}'
";

fn server(name: &str) -> String {
    format!("  {name}: {{ command: {name}-server, env: [{name}_KEY] }}\n")
}

/// The label on the pull request, whose head is checked out. Returns what a stand-in for claude was given.
fn labelled(runner: &mut Runner) -> (Step, String) {
    let bin = runner.project.outside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let notes = runner.project.outside("notes");
    let script = CLAUDE.replace("NOTES", &notes.display().to_string());
    std::fs::write(bin.join("claude"), script).unwrap();
    std::fs::set_permissions(bin.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", bin.display());
    runner.project.env("PATH", path);
    runner.project.env("ANTHROPIC_API_KEY", "not-a-key");
    runner.checkout("feature");
    runner.labelled(1, "grace");
    let step = runner.step(&["--agent", "claude", "--verify", "grep -q fixed a.txt"]);
    let notes = std::fs::read_to_string(notes).unwrap_or_default();
    (step.expect(0), notes)
}

#[test]
fn a_server_that_only_the_head_declares_is_ignored_and_the_run_says_so() {
    let mut runner = with_pull();
    let config = format!("mcp:\n{}", server("evil"));
    runner.push("feature", ".sprag/config.yaml", &config);
    let (step, given) = labelled(&mut runner);
    assert!(
        given.contains("stream-json") && !given.contains("evil"),
        "{given}"
    );
    let told = "the MCP servers of the pull request's head are ignored, since its base main does not declare them so: evil";
    assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
    assert!(runner.comment(1).unwrap().contains("evil"));
}

#[test]
fn a_server_of_the_base_is_given_as_the_base_declares_it() {
    let mut runner = with_pull();
    let base = format!("mcp:\n{}", server("docs"));
    runner.push("main", ".sprag/config.yaml", &base);
    let changed = base.replace("docs-server", "evil-server") + &server("more");
    runner.push("feature", ".sprag/config.yaml", &changed);
    let (step, given) = labelled(&mut runner);
    assert!(given.contains(r#""command":"docs-server""#), "{given}");
    assert!(given.contains(r#""docs_KEY":"${docs_KEY}""#), "{given}");
    assert!(
        !given.contains("evil") && !given.contains("more"),
        "{given}"
    );
    assert!(step.run.stdout.contains("ignored"), "{}", step.run.stdout);
}
