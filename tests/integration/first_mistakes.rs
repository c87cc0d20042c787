//! Mistakes of the first hour: what is meant has another name, another place or no quotes.

use crate::support::project::Project;

const RUN: [&str; 4] = ["run", "mend a.txt", "--agent-command", "echo fixed > a.txt"];

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n")])
}

#[test]
fn a_configuration_with_another_name_is_not_passed_over() {
    for name in [".sprag/config.yml", "sprag.yaml"] {
        let project = project();
        project.write(name, "verify: ['false']\n");
        project.commit_all("configuration");
        for args in [&["check"][..], &RUN] {
            assert_eq!(
                project.sprag(args).expect(2).stderr,
                format!(
                    "error: {name} is not read: the configuration is .sprag/config.yaml\n  mkdir -p .sprag && git mv {name} .sprag/config.yaml\n"
                )
            );
        }
        // With a configuration in its place, the other file may be anything.
        project.write(".sprag/config.yaml", "verify: ['true']\n");
        project.commit_all("both");
        project.sprag(&["check"]).expect(0);
    }
    let project = project();
    project.write(
        "sprag.yaml",
        "title: A plan\ntasks:\n  - { id: a, title: A }\n",
    );
    let said = project.sprag(&["check"]).expect(0).stdout;
    assert!(said.contains("there is no .sprag/config.yaml"), "{said}");
}

#[test]
fn a_secret_in_a_file_is_neither_taken_nor_shown() {
    let secret = "sk-proj-abcdefghijklm0123456789";
    for (text, expected) in [
        (
            format!("openai_api_key: {secret}\n"),
            "error: .sprag/config.yaml:1:1: `openai_api_key` is not a key of the configuration: a secret does not belong in a file; set the environment variable OPENAI_API_KEY\n",
        ),
        (
            format!("agent_env: [OPENAI_API_KEY={secret}]\n"),
            "error: .sprag/config.yaml:1:13: agent_env must be a list of names of environment variables, got ***…\n",
        ),
    ] {
        let project = project();
        project.write(".sprag/config.yaml", &text);
        let run = project.sprag(&["check"]).expect(2);
        assert_eq!(run.stderr, expected);
    }
}

#[test]
fn a_prompt_that_names_a_missing_file_or_lacks_quotes_starts_nothing() {
    let project = project();
    let run = project.sprag(&["run", "plans/a.yaml", "--agent-command", "true"]);
    assert_eq!(
        run.expect(2).stderr,
        "error: the prompt `plans/a.yaml` looks like the name of a file, and there is no such file\n  check the path, and run a plan with --plan plans/a.yaml\n"
    );
    let run = project.sprag(&["run", "fix", "the", "test"]).expect(2);
    assert!(
        run.stderr
            .ends_with("\n  tip: put the prompt in quotes: sprag run 'fix the flaky test'\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_check_that_cannot_start_is_told_before_the_first_turn() {
    let project = project();
    project.write(".sprag/config.yaml", "verify: [no-such-program --all]\n");
    project.commit_all("configuration");
    let run = project.sprag(&RUN).expect(4);
    let warning = "warning: check no-such-program --all needs no-such-program, which is not installed here; `sprag doctor` looks for all of them";
    assert!(run.stdout.contains(warning), "{}", run.stdout);
    assert!(!run.stdout.contains("turn 1"), "{}", run.stdout);
}

#[test]
fn a_key_under_another_name_is_named_and_not_shown() {
    let mut project = project();
    project.env("CLAUDE_API_KEY", "canary-0123456789");
    let slip = "CLAUDE_API_KEY is set, which nothing reads: rename it to ANTHROPIC_API_KEY";
    for agent in ["auto", "builtin"] {
        let run = project
            .sprag(&["run", "mend a.txt", "--agent", agent])
            .expect(4);
        let first = run.stderr.lines().nth(1);
        assert_eq!(first, Some(&*format!("  {slip}")), "{}", run.stderr);
        assert!(!run.stderr.contains("canary"), "{}", run.stderr);
    }
    project.env("ANTHROPIC_API_KEY", "");
    let run = project
        .sprag(&["run", "mend a.txt", "--agent", "builtin"])
        .expect(4);
    assert!(
        run.stderr
            .contains("\n  ANTHROPIC_API_KEY is empty: give it a value\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_secret_in_a_command_is_masked_wherever_the_command_is_shown() {
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
    let mut project = project();
    project.env("DEPLOY_TOKEN", "canary-0123456789");
    let check = format!("curl -H 'Authorization: Bearer {secret}' canary-0123456789");
    project.write(".sprag/config.yaml", &format!("verify: [\"{check}\"]\n"));
    let plan = "title: Mend\ntasks: [{ id: a, title: A }]\n";
    project.write("plan.yaml", plan);
    project.commit_all("plan");
    for args in [
        &["check"][..],
        &["check", "plan.yaml"],
        &["check", "plan.yaml", "--json"],
        &["doctor"],
        &["run", "mend", "--agent-command", "true", "--dry-run"],
    ] {
        let run = project.sprag(args);
        let told = format!("{}{}", run.stdout, run.stderr);
        assert!(
            !told.contains(secret) && !told.contains("canary"),
            "{args:?}: {told}"
        );
    }
    project.env("APP_PASSWORD", "frontend");
    let plan = "title: Mend\ntasks:\n  - { id: frontend, title: frontend }\n  - { id: b, title: B, depends_on: [frontend] }\n";
    project.write("ids.yaml", plan);
    let rows = project.sprag(&["matrix", "ids.yaml"]).expect(0).stdout;
    assert!(rows.contains(r#""tasks":"frontend b""#), "{rows}");
    let shown = project.sprag(&["check", "ids.yaml", "--json"]).expect(0);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let tasks = &shown["tasks"];
    assert_eq!(tasks[0]["id"], "frontend");
    assert_eq!(tasks[1]["depends_on"][0], "frontend");
    assert_ne!(tasks[0]["title"], "frontend");
    project.write("Makefile", &format!("test:\n\t{check}\n"));
    let workflow = format!(
        "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{{ run: \"TOKEN={secret} make test\" }}]\n"
    );
    project.write(".github/workflows/ci.yml", &workflow);
    let run = project.sprag(&["init"]).expect(0);
    assert!(!run.stdout.contains(secret), "{}", run.stdout);
}

#[test]
fn each_task_is_shown_with_its_own_settings() {
    let project = project();
    let retries = [1, 2, 2, 1, 1];
    let tasks = retries.iter().enumerate().map(|(id, retries)| {
        format!(
            "  - {{ id: t{id}, title: A, max_retries: {retries}, verify: [check {retries}] }}\n"
        )
    });
    let tasks: String = tasks.collect();
    for agent in ["", "agent_command: work\n"] {
        let plan = format!("title: Mend\n{agent}tasks:\n{tasks}");
        project.write("plan.yaml", &plan);
        let shown = project.sprag(&["check", "plan.yaml", "--json"]).expect(0);
        let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
        let tasks = shown["tasks"].as_array().unwrap().iter();
        let told: Vec<String> = tasks
            .map(|task| format!("{} {}", task["max_retries"], task["checks"][0]["run"]))
            .collect();
        let expected = retries.map(|retries| format!("{retries} \"check {retries}\""));
        assert_eq!(told, expected, "{agent}");
    }
}

#[test]
fn common_settings_are_shown_once_and_a_contradiction_is_named() {
    let project = project();
    project.write("sub/plan.yaml", "tasks: [{title: A}, {title: B}]\n");
    let mut command = project.command(&["check", "../sub/plan.yaml"]);
    let output = command.current_dir(project.repo().join("sub")).output();
    let shown = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(shown.starts_with("sub/plan.yaml is valid"), "{shown}");
    assert_eq!(
        shown.matches("name one: --agent codex").count(),
        1,
        "{shown}"
    );

    let both = ["--agent", "codex", "--agent-command", "true"];
    let refused = project.sprag(&[&["run", "Mend it"][..], &both].concat());
    let told = "the agent codex is named beside an `agent_command`";
    assert!(refused.expect(2).stderr.contains(told));
    project.write(".sprag/config.yaml", "agent_command: 'true'\n");
    let named = project.sprag(&["check", "sub/plan.yaml", "--json"]);
    assert!(named.stdout.contains("\"command\""), "{}", named.stdout);
}

#[test]
fn the_model_gateway_is_told_of_where_a_key_or_a_limit_depends_on_it() {
    for (args, is_told) in [
        (&[][..], false),
        (&["--max-tokens", "1000"], true),
        (&["--agent-env", "OPENROUTER_API_KEY"], true),
    ] {
        let project = project();
        let run = project.sprag(&[&RUN[..], args].concat());
        assert_eq!(
            run.stdout.contains("model gateway"),
            is_told,
            "{}",
            run.stdout
        );
    }
}

/// A named one may be a pipe of a shell, `--config <(…)`.
#[test]
fn a_configuration_that_is_a_pipe_holds_nothing_up() {
    let project = project();
    std::fs::create_dir(project.repo().join(".sprag")).unwrap();
    let made = project.program("mkfifo", &[".sprag/config.yaml"]).status();
    assert!(made.unwrap().success());
    let run = project.sprag(&RUN).expect(2);
    let said = ".sprag/config.yaml is not a file\n  move it away\n";
    assert!(run.stderr.ends_with(said), "{}", run.stderr);
}
