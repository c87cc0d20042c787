//! The step of the action that installs an agent: what it takes, what it refuses, what it runs.

use crate::action_file::{ROOT, started, write_program, yaml};
use crate::actions::step;
use crate::support::project::Project;
use std::fs;
use std::path::Path;

/// A project whose `npm` notes what it was run with and ends with this exit code.
fn with_npm(code: u8) -> Project {
    let mut project = step("true");
    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    let asked = project.outside("asked");
    let npm = format!(
        "#!/bin/sh\n(pwd; printf '%s\\n' \"$@\") >> '{}'\nexit {code}\n",
        asked.display()
    );
    write_program(&bin.join("npm"), &npm);
    let path = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{path}", bin.display()));
    project
}

fn install(project: &Project, wanted: &str) -> (Option<i32>, String) {
    let inputs = [("install-agent", wanted)];
    let mut command = started(project, Path::new(ROOT), "install", &inputs);
    let output = command.output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

fn told(project: &Project) -> String {
    fs::read_to_string(project.outside("output")).unwrap()
}

#[test]
fn it_runs_only_where_an_agent_is_named() {
    let action = yaml("action.yml");
    let install = &action["runs"]["steps"][0];
    assert_eq!(install["id"], "install");
    assert_eq!(install["if"], "inputs.install-agent != ''");
}

#[test]
fn a_known_agent_is_installed_at_its_version() {
    for (wanted, package) in [
        ("codex@0.169.0", "@openai/codex@0.169.0"),
        ("claude-code@2.1.197", "@anthropic-ai/claude-code@2.1.197"),
        ("gemini-cli@0.61.0", "@google/gemini-cli@0.61.0"),
        ("opencode@1.18.33", "opencode-ai@1.18.33"),
        ("qwen-code@0.15.10", "@qwen-code/qwen-code@0.15.10"),
        ("codex@0.170.0-alpha.1", "@openai/codex@0.170.0-alpha.1"),
    ] {
        let project = with_npm(0);
        let (code, log) = install(&project, wanted);
        assert_eq!((code, &*log), (Some(0), ""), "{wanted}");
        // Away from the repository, whose .npmrc could name another registry.
        let asked = [
            "/",
            "install",
            "--global",
            "--ignore-scripts=false",
            "--no-audit",
            "--no-fund",
            "--",
            package,
        ];
        assert_eq!(project.notes("asked"), asked);
    }
}

#[test]
fn anything_else_is_refused_and_runs_nothing() {
    for wanted in [
        "codex",
        "codex@",
        "codex@latest",
        "codex@1",
        "codex@1.2",
        "codex@^1.2.3",
        "codex@1.2.3 || 2.0.0",
        "codex@1.2.3+build",
        "codex@1.2.3\n",
        "codex@1.2.3\n--registry=http://127.0.0.1",
        "codex@1.2.3 --registry=http://127.0.0.1",
        "codex@1.2.3;touch bad",
        "codex@1.2.3@2.0.0",
        "codex @1.2.3",
        "1.2.3",
        "@openai/codex@1.2.3",
        "left-pad@1.2.3",
        "-g@1.2.3",
        "$(touch bad)@1.2.3",
        "`touch bad`@1.2.3",
    ] {
        let project = with_npm(0);
        let (code, log) = install(&project, wanted);
        assert_eq!(code, Some(4), "{wanted}: {log}");
        let one_line = wanted.replace('\n', " ");
        let what = format!("the input `install-agent` is {one_line}, ");
        assert!(
            log.starts_with(&format!("::error title=Sprag cannot begin::{what}")),
            "{wanted}: {log}"
        );
        assert_eq!(log.lines().count(), 1, "{wanted}: {log}");
        let begins = format!("status=environment\nreason=environment\nsummary=environment: {what}");
        assert!(told(&project).starts_with(&begins), "{wanted}");
        assert!(!project.outside("asked").exists(), "{wanted}");
        assert_eq!(project.status(), "", "{wanted}");
    }
}

#[test]
fn what_npm_cannot_do_is_told() {
    let project = with_npm(1);
    let (code, log) = install(&project, "codex@0.169.0");
    assert_eq!(code, Some(4), "{log}");
    let what = "npm could not install @openai/codex@0.169.0; what it says is in the log above";
    assert_eq!(log, format!("::error title=Sprag cannot begin::{what}\n"));
    let summary = format!("summary=environment: {what}\n");
    assert!(told(&project).ends_with(&summary), "{}", told(&project));
}

#[test]
fn a_machine_without_npm_is_told() {
    let mut project = step("true");
    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["bash", "dirname"] {
        let path = std::env::var("PATH").unwrap();
        let mut found = path.split(':').map(|dir| Path::new(dir).join(program));
        let found = found.find(|file| file.is_file()).unwrap();
        std::os::unix::fs::symlink(found, bin.join(program)).unwrap();
    }
    project.env("PATH", bin);
    let (code, log) = install(&project, "codex@0.169.0");
    assert_eq!(code, Some(4), "{log}");
    let what =
        "there is no npm to install codex@0.169.0 with; run actions/setup-node before this action";
    assert_eq!(log, format!("::error title=Sprag cannot begin::{what}\n"));
}
