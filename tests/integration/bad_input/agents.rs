//! Agents that are missing, have no key, or whose key is refused.

use super::*;
use crate::support::project::Run;
use sprag::agents::CLIS;

/// A directory of programs that stands before all others on PATH, with `git` and `sh` behind it.
fn with_program(project: &mut Project, name: &str, script: &str) {
    let dir = project.outside("bin");
    fs::create_dir(&dir).unwrap();
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let rest = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{rest}", dir.display()));
}

#[test]
fn a_missing_agent_program() {
    for (agent, package) in CLIS.iter().map(|spec| (spec.name, spec.package.npm)) {
        let mut project = project();
        let dir = project.outside("bin");
        fs::create_dir(&dir).unwrap();
        for program in ["git", "sh"] {
            let path = std::env::var("PATH").unwrap();
            let found = std::env::split_paths(&path)
                .map(|dir| dir.join(program))
                .find(|path| path.is_file());
            std::os::unix::fs::symlink(found.unwrap(), dir.join(program)).unwrap();
        }
        project.env("PATH", &dir);
        refused(
            &project,
            &["run", "--plan", "plan.yaml", "--agent", agent],
            4,
            &format!(
                "error: the agent {agent} was not found on PATH\n  install it: npm install --global {package}\n  or use another agent: --agent NAME or --agent-command 'COMMAND'\n"
            ),
        );
    }
}

fn recorded(agent: &str, name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agent-events");
    format!("cat {}; exit 1", fixtures.join(agent).join(name).display())
}

/// Whether a key is accepted can only be tried by starting the agent: nothing but its turn has
/// happened then.
fn refused_login(agent: &str, recording: &str) -> Run {
    let mut project = project();
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        project.env(key, "not-a-key");
    }
    with_program(&mut project, agent, &recorded(agent, recording));
    let head = project.head();
    let run = project
        .sprag(&["run", "--plan", "plan.yaml", "--agent", agent])
        .expect(4);
    assert_eq!(run.summary["status"], "environment");
    assert_eq!(run.summary["totals"]["retries"], 0);
    assert_eq!(run.summary["totals"]["turns"], 1);
    assert_eq!((project.head(), project.status()), (head, String::new()));
    run
}

#[test]
fn an_agent_without_a_key_and_a_login_is_not_started() {
    for (agent, keys, file) in [
        (
            "claude",
            "ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN",
            ".claude/.credentials.json",
        ),
        (
            "codex",
            "CODEX_API_KEY or OPENAI_API_KEY",
            ".codex/auth.json",
        ),
    ] {
        let mut project = project();
        let started = project.outside("started");
        with_program(&mut project, agent, &format!("touch {}", started.display()));
        let home = project.outside("home");
        project.env("HOME", &home);
        let head = project.head();
        let args = ["run", "--plan", "plan.yaml", "--agent", agent];
        let file = home.join(file);
        refused(
            &project,
            &args,
            4,
            &format!(
                "error: the agent {agent} cannot work: {keys} is not set, and it is not logged in ({} is not there)\n  set {keys} from a secret, or log {agent} in\n  or use another agent: --agent NAME or --agent-command 'COMMAND'\n",
                file.display()
            )
            .replace(&project.repo().parent().unwrap().display().to_string(), "$ROOT"),
        );
        assert!(!started.exists());
        assert_eq!((project.head(), project.status()), (head, String::new()));

        // A login is as good as a key; what it is worth only the agent can tell.
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "{}").unwrap();
        project.sprag(&args);
        assert!(started.exists());
    }
}

#[test]
fn a_setup_command_may_log_the_agent_in() {
    let mut project = project();
    with_program(&mut project, "codex", "exit 1");
    let home = project.outside("home");
    project.env("HOME", &home);
    let config = |setup: &str| format!("setup: ['{setup}']\n");
    let path = project.outside("config.yaml");
    let args = ["run", "--plan", "plan.yaml", "--agent", "codex"];
    let args = [&args[..], &["--config", path.to_str().unwrap()]].concat();
    fs::write(project.outside("config.yaml"), config("true")).unwrap();
    let run = project.sprag(&args).expect(4);
    assert!(run.stderr.contains("CODEX_API_KEY"), "{}", run.stderr);
    assert_eq!(run.summary["reason"], "agent_unavailable");
    assert_eq!(run.summary["totals"]["turns"], 0);
    let log_in = "mkdir -p ~/.codex; echo {} > ~/.codex/auth.json";
    fs::write(project.outside("config.yaml"), config(log_in)).unwrap();
    let run = project.sprag(&args);
    assert_eq!(run.summary["totals"]["turns"], 1);
}

#[test]
fn a_key_that_the_agent_does_not_see() {
    let run = refused_login("claude", "no_api_key.jsonl");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("ANTHROPIC_API_KEY"), "{message}");
    assert!(run.stdout.contains("ANTHROPIC_API_KEY"), "{}", run.stdout);
}

#[test]
fn a_refused_key() {
    for (agent, key) in [("claude", "ANTHROPIC_API_KEY"), ("codex", "OPENAI_API_KEY")] {
        let run = refused_login(agent, "api_error_401.jsonl");
        let message = run.task(0)["message"].as_str().unwrap();
        assert!(
            message.contains("401") && message.contains(key),
            "{message}"
        );
    }
}
