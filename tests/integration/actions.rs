//! A run as a step of GitHub Actions: outputs, log, annotations, step summary, environment.

use crate::generated::outputs::OUTPUTS;
use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{fixable_with, run};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A project in whose environment the runner's variables are set.
pub fn step(check: &str) -> Project {
    let mut project = fixable_with(&[("src/lib.rs", "fn f() {}\n")], check);
    let temp = project.outside("runner-temp");
    fs::create_dir(&temp).unwrap();
    project.env("GITHUB_ACTIONS", "true");
    project.env("GITHUB_OUTPUT", project.outside("output"));
    project.env("GITHUB_STEP_SUMMARY", project.outside("step-summary"));
    project.env("RUNNER_TEMP", temp);
    project
}

/// Outputs as the runner reads them: `NAME<<DELIMITER`, the value's lines, the delimiter.
pub fn outputs(project: &Project) -> BTreeMap<String, String> {
    let text = fs::read_to_string(project.outside("output")).unwrap();
    let mut lines = text.lines();
    let mut outputs = BTreeMap::new();
    while let Some(line) = lines.next() {
        let (name, delimiter) = line.split_once("<<").unwrap();
        let mut value = Vec::new();
        loop {
            match lines.next().unwrap() {
                line if line == delimiter => break,
                line => value.push(line),
            }
        }
        assert!(
            outputs.insert(name.to_owned(), value.join("\n")).is_none(),
            "{name} twice"
        );
    }
    outputs
}

/// The commands that the runner takes out of a log: `::` at a line's beginning and `##[` anywhere,
/// except between `::stop-commands::TOKEN` and `::TOKEN::`.
pub fn commands(log: &str) -> Vec<String> {
    let mut stopped: Option<String> = None;
    let mut commands = Vec::new();
    for line in log.split(['\n', '\r']) {
        let start = line.trim_start();
        if let Some(token) = &stopped {
            if start == format!("::{token}::") {
                stopped = None;
            }
            continue;
        }
        match start.strip_prefix("::stop-commands::") {
            Some(token) => stopped = Some(token.to_owned()),
            None if start.starts_with("::") || line.contains("##[") => {
                commands.push(line.to_owned())
            }
            None => assert_eq!(line, "", "a line outside of the neutral stretches"),
        }
    }
    commands
}

pub fn run_directory(project: &Project) -> PathBuf {
    let parent = project.outside("runner-temp/sprag");
    let mut runs: Vec<_> = fs::read_dir(parent)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

pub fn summary(project: &Project) -> serde_json::Value {
    let text = fs::read(run_directory(project).join("summary.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn every_output_has_its_name_and_value() {
    let mut project = step("grep -qx fixed a.txt");
    project.env("SPRAG_SANDBOX", "off");
    let agent = r#"echo '{"event":"agent.usage","tokens_in":1200,"tokens_out":34,"cost_usd":0.25}'; test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done."#;
    run(&project, agent, &[]).expect(0);
    let dir = run_directory(&project);
    let head = project.head();
    let report = dir.join("report.html").display().to_string();
    let said = fs::read_to_string(dir.join("state/final-message.md")).unwrap();
    assert!(said.contains("Done."), "{said}");
    let expected: BTreeMap<String, String> = [
        ("status", "success"),
        ("reason", "verified"),
        ("tasks-total", "1"),
        ("tasks-done", "1"),
        ("attempts", "2"),
        ("retries", "1"),
        ("nudges", "0"),
        ("commits", head.as_str()),
        ("head-sha", head.as_str()),
        ("branch", "main"),
        ("changed-files", "a.txt"),
        ("known-failures", ""),
        ("pull-request-number", ""),
        ("pull-request-url", ""),
        ("tokens-in", "2400"),
        ("tokens-out", "68"),
        ("cost-usd", "0.5"),
        ("run-dir", dir.to_str().unwrap()),
        ("report-path", report.as_str()),
        ("sandbox-level", "off"),
        ("report-status", "ok"),
        ("summary", "success (verified): 1 of 1 task done"),
        ("session-id", ""),
        ("final-message", said.trim_end()),
        ("structured-output", ""),
        ("matrix", ""),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    assert_eq!(outputs(&project), expected);
    assert!(PathBuf::from(report).is_file());
}

#[test]
fn a_step_has_its_run_in_the_runners_temp_an_author_and_no_zero_for_what_is_unknown() {
    let project = step("test -e a.txt || echo 'src/lib.rs:1:4: error: x'; grep -qx fixed a.txt");
    let run = run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
    let seen = commands(&run.stdout);
    let errors = seen.iter().filter(|line| line.starts_with("::error"));
    assert_eq!(errors.count(), 0, "{seen:?}");
    let outputs = outputs(&project);
    for name in ["tokens-in", "tokens-out", "cost-usd"] {
        assert_eq!(outputs[name], "", "{name}");
    }
    let summary = summary(&project);
    let dir = run_directory(&project);
    assert_eq!(
        dir.file_name().unwrap().to_str(),
        summary["run_id"].as_str()
    );
    assert_eq!(dir.to_str(), summary["run_dir"].as_str());
    assert!(project.run_dirs().is_empty());
    assert_eq!(
        project.git(&["log", "-1", "--format=%an <%ae>"]),
        "github-actions[bot] <41898282+github-actions[bot]@users.noreply.github.com>"
    );
}

#[test]
fn the_step_summary_fits_beside_what_other_programs_of_the_step_wrote() {
    const LIMIT: usize = 1 << 20;
    for before in [LIMIT - 17_000, LIMIT - 100] {
        let project = step("grep -qx fixed a.txt");
        let path = project.outside("step-summary");
        fs::write(&path, "x\n".repeat(before / 2)).unwrap();
        run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.len() <= LIMIT, "{}", text.len());
        assert_eq!(text.contains("Sprag: success"), before < LIMIT - 16_384);
    }
}

#[test]
fn names_of_files_make_no_outputs() {
    let project = step("true");
    let agent = "printf x > \"$(printf 'a\\nstatus<<E\\nhacked\\nE')\"; printf x > '::error::name'; echo Done.";
    let run = run(&project, agent, &[]).expect(0);
    let outputs = outputs(&project);
    assert_eq!(outputs.len(), OUTPUTS.len(), "{outputs:?}");
    assert_eq!(outputs["status"], "success");
    let names = commands(&run.stdout);
    assert!(
        names.iter().all(|command| !command.starts_with("::error")),
        "{names:?}"
    );
}

#[test]
fn nothing_that_others_print_is_a_command() {
    const HOSTILE: &str = r"printf '::error::x\n::set-output name=status::success\n##[error]x\n::add-mask::main\n::stop-commands::t\n::t::\n  ::warning::x\nprogress\r::notice::x\nmid ##[warning]x\n\302\240::debug::x\n\033[0m::error::x\n::group::x\n'";
    for args in [&["-vv"][..], &["-vv", "--events", "-"]] {
        let project = step(&format!("{HOSTILE}; grep -qx fixed a.txt"));
        let text = project
            .read("plan.yaml")
            .replace("Fix a.txt", "'::error::x ##[error]x'");
        project.write("plan.yaml", &text);
        project.commit_all("hostile title");
        let agent = format!(
            "{HOSTILE}; {HOSTILE} >&2; test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: ::error::x'"
        );
        let run = run(&project, &agent, args).expect(0);
        // The runner takes commands out of both streams.
        let log = if args.contains(&"--events") {
            &run.stderr
        } else {
            &run.stdout
        };
        if log == &run.stderr {
            let is_event = |line: &str| line.starts_with('{') && !line.contains("##[");
            assert!(run.stdout.lines().all(is_event), "{}", run.stdout);
        }
        let seen = commands(log);
        let other: Vec<_> = seen
            .iter()
            .filter(|line| !line.starts_with("::group::") && *line != "::endgroup::")
            // Sprag's own annotations, on the plan.
            .filter(|line| !line.starts_with("::notice file=plan.yaml,"))
            .collect();
        assert!(other.is_empty(), "{args:?}: {other:?}");
        assert!(seen.iter().all(|line| !line.contains("##[")), "{seen:?}");
        assert!(args.contains(&"--events") || run.stderr.is_empty());
        has(log, "error::x");
    }
}

#[test]
fn failing_diagnostics_are_annotations() {
    let project = step("printf 'src/lib.rs:1:4: error: no such thing: 100%% wrong\\n'; exit 1");
    let run = run(
        &project,
        "echo apple > a.txt; echo Done.",
        &["--max-retries", "0"],
    )
    .expect(1);
    let seen = commands(&run.stdout);
    let annotations: Vec<_> = seen
        .iter()
        .filter(|line| line.starts_with("::error "))
        .collect();
    assert_eq!(
        annotations,
        [
            "::error file=src/lib.rs,line=1,col=4,title=test failed::no such thing: 100%25 wrong",
            "::error file=plan.yaml,line=5,title=fix failed (verification_failed)::the checks still fail and no retry is left",
            "::error file=plan.yaml,title=Sprag%3A the run's result::failed (verification_failed): 0 of 1 task done",
        ]
    );
}

#[test]
fn the_step_summary_tells_the_run() {
    let project = step("echo 'FAIL greeting: <b>bold</b> @somebody'; exit 1");
    run(
        &project,
        "echo apple > a.txt; echo Done.",
        &["--max-retries", "0"],
    )
    .expect(1);
    let text = fs::read_to_string(project.outside("step-summary")).unwrap();
    for part in [
        "## ❌ Sprag: failed, 0 of 1 task done",
        "`fix`",
        "verification_failed",
        "FAIL greeting",
    ] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let outside_of_fences: String = text.split("```").step_by(2).collect();
    assert!(!outside_of_fences.contains("<b>"), "{text}");
}

#[test]
fn the_agent_and_the_checks_see_nothing_of_the_runner() {
    let mut project = step("true");
    let names = [
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITHUB_SHA",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "RUNNER_OS",
        "RUNNER_TRACKING_ID",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "INPUT_GREETING",
        "INPUT_MAX-NUDGES",
        "INPUT_API-KEY",
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "SSH_AUTH_SOCK",
        "NPM_TOKEN",
        "MY_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "SPRAG_MODEL",
    ];
    for name in names {
        project.env(name, "canary");
    }
    project.env("SPRAG_AGENT_ENV", "GREETING\nGITHUB_REPOSITORY");
    project.env("GREETING", "hello");
    project.env("GITHUB_REPOSITORY", "canary");
    let env = project.outside("check-env");
    let check = format!("env > {}", env.display());
    let hook = project.outside("hook-env");
    project.hook("pre-commit", &format!("env > {}", hook.display()));
    let run = run(
        &project,
        "echo fixed > a.txt; echo Done.",
        &["--verify", &check],
    )
    .expect(0);
    for name in ["env-1", "check-env", "hook-env"] {
        let seen = project.notes(name);
        assert!(
            seen.iter().any(|line| line.starts_with("PATH=")),
            "{seen:?}"
        );
        let foreign: Vec<_> = seen
            .iter()
            .filter(|line| {
                let key = line.split('=').next().unwrap();
                line.contains("canary")
                    || ["GITHUB_", "RUNNER_", "ACTIONS_", "INPUT_"]
                        .iter()
                        .any(|prefix| key.starts_with(prefix))
                    || key.ends_with("_TOKEN")
            })
            .collect();
        assert!(foreign.is_empty(), "{name}: {foreign:?}");
    }
    let greeting = "GREETING=hello".to_owned();
    assert!(project.notes("env-1").contains(&greeting));
    assert!(!project.notes("check-env").contains(&greeting));
    has(&run.stdout, "GITHUB_REPOSITORY belongs to the runner");
}

#[test]
fn a_report_that_cannot_be_written_does_not_change_the_end() {
    let mut project = step("grep -qx fixed a.txt");
    project.env("GITHUB_STEP_SUMMARY", project.outside("no/such/directory"));
    let run = run(&project, "echo fixed > a.txt; echo Done.", &[]).expect(0);
    assert_eq!(outputs(&project)["report-status"], "degraded");
    assert_eq!(outputs(&project)["status"], "success");
    let warnings = summary(&project)["warnings"].to_string();
    has(
        &warnings,
        "the step summary (GITHUB_STEP_SUMMARY) could not be written",
    );
    assert_eq!(run.code, 0);
}

#[test]
fn a_run_that_cannot_begin_is_told_in_outputs_annotation_and_step_summary() {
    let project = step("true");
    project.write(
        "plan.yaml",
        &format!("max_retries: 11\n{}", project.read("plan.yaml")),
    );
    project.commit_all("wrong plan");
    let run = run(&project, "echo never", &[]).expect(2);
    let what = "max_retries must be a whole number from 0 to 10, got 11";
    assert_eq!(run.stderr, format!("error: plan.yaml:1:14: {what}\n"));
    assert_eq!(
        run.stdout,
        format!("::error file=plan.yaml,line=1,title=Sprag cannot begin::{what}\n")
    );
    let outputs = outputs(&project);
    assert_eq!(outputs.len(), OUTPUTS.len());
    let summary = format!("invalid: plan.yaml:1:14: {what}");
    for (name, value) in [
        ("status", "invalid"),
        ("reason", "invalid"),
        ("summary", &summary),
        ("run-dir", ""),
    ] {
        assert_eq!(outputs[name], value, "{name}");
    }
    assert_eq!(
        fs::read_to_string(project.outside("step-summary")).unwrap(),
        format!("## ❌ Sprag cannot begin\n\n```\nplan.yaml:1:14: {what}\n```\n")
    );
}

#[test]
fn a_missing_agent_is_told_in_the_outputs() {
    let project = step("true");
    let run = project.sprag(&["run", "--plan", "plan.yaml"]).expect(4);
    assert_eq!(outputs(&project)["status"], "environment");
    assert_eq!(
        run.stdout,
        format!(
            "::error file=.github,title=Sprag cannot begin::no agent is configured%0Aname one: {}, or --agent-command 'COMMAND'; or set `agent` in .sprag/config.yaml%0Aor use the built-in agent: set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, OPENROUTER_API_KEY, DEEPSEEK_API_KEY, GROQ_API_KEY, MISTRAL_API_KEY, XAI_API_KEY%0Aor name a server that speaks OpenAI's format with SPRAG_BASE_URL\n",
            crate::bad_input::agent_flags()
        )
    );
}

#[test]
fn names_of_files_in_an_error_are_no_commands() {
    let project = step("true");
    for name in ["::add-mask::x", "##[error]x"] {
        project.write(name, "x");
    }
    let run = run(&project, "echo never", &[]).expect(2);
    assert_eq!(commands(&run.stdout).len(), 1, "{}", run.stdout);
    assert!(run.stderr.contains("add-mask"), "{}", run.stderr);
    for line in run.stderr.lines() {
        assert!(
            !line.trim_start().starts_with("::") && !line.contains("##["),
            "{line}"
        );
    }
}

#[test]
fn a_command_line_that_cannot_be_read_is_told_in_the_outputs() {
    let project = step("true");
    let flag = "--no-such-flag=::add-mask::x";
    let run = project
        .sprag(&["run", "--plan", "plan.yaml", flag])
        .expect(2);
    let what = "unexpected argument '--no-such-flag' found";
    assert!(
        run.stderr.starts_with(&format!("error: {what}\n")),
        "{}",
        run.stderr
    );
    assert!(
        run.stdout
            .starts_with("::error file=.github,title=Sprag cannot begin::"),
        "{}",
        run.stdout
    );
    assert_eq!(commands(&run.stdout).len(), 1, "{}", run.stdout);
    let outputs = outputs(&project);
    assert_eq!(
        (outputs["status"].as_str(), outputs["reason"].as_str()),
        ("invalid", "invalid")
    );
    assert_eq!(outputs["summary"].lines().count(), 1);
    assert!(outputs["summary"].contains(what), "{}", outputs["summary"]);

    // What is no run writes no run's outputs, and asking for help is no error.
    fs::write(project.outside("output"), "").unwrap();
    project.sprag(&["check", "--no-such-flag"]).expect(2);
    project.sprag(&["run", "--help"]).expect(0);
    assert_eq!(fs::read_to_string(project.outside("output")).unwrap(), "");
}

#[test]
fn what_a_task_needed_and_how_the_run_ended_are_annotations_and_advice_names_inputs() {
    let told = |script: &str, code: i32| {
        let project = step("grep -q fixed a.txt");
        let run = run(&project, script, &[]).expect(code);
        let commands = commands(&run.stdout);
        let notes = commands.into_iter().filter(|line| line.contains(" file="));
        (notes.collect::<Vec<_>>().join("\n"), run.stdout)
    };
    let (done, _) = told(
        "case $N in 1) echo 'Plan: I will edit a.txt.' ;; 2) echo x > a.txt ;; *) echo fixed > a.txt ;; esac; echo Done.",
        0,
    );
    let needed = "title=fix%3A 1 retry%2C 1 nudge::";
    assert!(
        done.lines()
            .any(|line| line.starts_with("::notice ") && line.contains(needed)),
        "{done}"
    );
    let result = "title=Sprag%3A the run's result::success (verified): 1 of 1 task done";
    assert!(
        done.lines()
            .any(|line| line.starts_with("::notice ") && line.contains(result)),
        "{done}"
    );
    let (failed, log) = told("echo 'Plan: I will edit a.txt.'", 1);
    let needed = "title=fix%3A 3 nudges::";
    assert!(
        failed
            .lines()
            .any(|line| line.starts_with("::warning ") && line.contains(needed)),
        "{failed}"
    );
    let result = "title=Sprag%3A the run's result::failed";
    assert!(
        failed
            .lines()
            .any(|line| line.starts_with("::error ") && line.contains(result)),
        "{failed}"
    );
    assert!(log.contains("use the input if-no-changes ok"), "{log}");
}
