//! A machine that is set up in another way than usual: signals, permissions and limits of the process.

use crate::support::proc::{end_of, signal, wait_until};
use crate::support::tasks::{FIX, fixable};
use std::process::Stdio;

#[test]
fn a_parent_that_ignores_the_ends_of_its_children_changes_nothing() {
    let project = fixable();
    let agent = project.agent(FIX);
    let script = "trap '' CHLD; exec \"$@\"";
    let sprag = env!("CARGO_BIN_EXE_sprag");
    let run = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let args = [&["-c", script, "sh", sprag][..], &run].concat();
    let run = project.finished(&project.program("sh", &args).output().unwrap());
    assert_eq!(run.expect(0).summary["totals"]["done"], 1);
    assert_eq!(project.checks(), 1);
}

#[test]
fn signals_that_were_blocked_at_the_start_cancel_a_run() {
    let project = fixable();
    let blocks = project.program("env", &["--block-signal", "true"]).status();
    if !blocks.is_ok_and(|status| status.success()) {
        return eprintln!("SKIPPED: this `env` blocks no signals");
    }
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let agent = project.agent(&format!("touch \"$OUT/began-{name}\"; sleep 300"));
        let sprag = env!("CARGO_BIN_EXE_sprag");
        let run = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        let args = [&["--block-signal", sprag][..], &run].concat();
        let mut command = project.program("env", &args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let began = project.outside(&format!("began-{name}"));
        wait_until("the turn begins", || began.exists());
        signal(child.id(), name);
        assert_eq!(end_of(&mut child).code(), Some(code), "{name}");
    }
}
