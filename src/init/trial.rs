//! `sprag init --try`: runs the proposed commands once on the present tree.

use crate::detect::{Found, Proposal};
use crate::domain::checks::verdict::{Check, CheckOutcome, CheckResult, ordered};
use crate::process::environment::environment;
use crate::process::{
    Cancel, CancelReason, CommandSpec, Exit, HeadTail, Input, Limits, clean_text, run,
    until_one_fails,
};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

/// Time limit of a setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Number of bytes that are read from the start and from the end of an output.
const KEPT: usize = 256 << 10;

/// Number of lines that are shown of a failing command's output.
const SHOWN: usize = 5;

/// Runs the setup commands and then each check once, and reports each result at once. Returns those that
/// failed, as they are named for people.
///
/// # Errors
/// When a signal ended the trial.
pub async fn run_once(
    root: &Path,
    variables: &[(OsString, OsString)],
    proposal: &Proposal,
    cancel: &Cancel,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<String>, CancelReason> {
    let trial = Trial {
        root,
        env: environment(variables, &[]).variables,
        cancel,
    };
    let mut failed = Vec::new();
    for Found { what, .. } in &proposal.setup {
        say(&format!("  setup `{what}`: running\n"));
        let (exit, said, took) = trial.run(what, SETUP_TIMEOUT).await?;
        match exit {
            Exit::Code(0) => say(&format!("    done ({took})\n")),
            exit => {
                failed.push(format!("setup `{what}`"));
                say(&format!(
                    "    failed with {exit} ({took})\n{}",
                    errors(&said)
                ));
            }
        }
    }
    let checks: Vec<Check> = proposal.checks.iter().map(|it| it.what.clone()).collect();
    for check in ordered(&checks) {
        say(&format!(
            "  check {} `{}`: running\n",
            check.name, check.run
        ));
        let limit = Duration::from_millis(check.timeout_ms);
        let (exit, said, took) = trial.run(&check.run, limit).await?;
        let result = trial.result(check, &exit, &said);
        if result.outcome != CheckOutcome::Passed {
            failed.push(format!("check {}", check.name));
        }
        say(&result_text(&result, &exit, &said, &took));
    }
    Ok(failed)
}

struct Trial<'a> {
    root: &'a Path,
    env: Vec<(OsString, OsString)>,
    cancel: &'a Cancel,
}

impl Trial<'_> {
    async fn run(
        &self,
        line: &str,
        limit: Duration,
    ) -> Result<(Exit, String, String), CancelReason> {
        let spec = CommandSpec {
            program: "sh".into(),
            args: until_one_fails(line),
            cwd: self.root.to_path_buf(),
            env: self.env.clone(),
            stdin: Input::Null,
            limits: Limits {
                timeout: Some(limit),
                ..Limits::default()
            },
            sandbox: None,
        };
        let mut kept = HeadTail::new(KEPT, KEPT);
        let ended = run(&spec, self.cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
        if let Exit::Cancelled(reason) = ended.exit {
            return Err(reason);
        }
        let (head, tail) = kept.into_parts();
        let said = clean_text(&[head, tail].concat());
        let took = format!("{:.1}s", ended.elapsed.as_secs_f64());
        Ok((ended.exit, said, took))
    }

    fn result(&self, check: &Check, exit: &Exit, said: &str) -> CheckResult {
        let outcome = match exit {
            Exit::Code(0) => CheckOutcome::Passed,
            Exit::Code(exit) => CheckOutcome::Failed { exit: *exit },
            _ => CheckOutcome::Failed { exit: 1 },
        };
        CheckResult::read(check, outcome, said, 0, &self.root.to_string_lossy())
    }
}

fn result_text(result: &CheckResult, exit: &Exit, said: &str, took: &str) -> String {
    let number = |n: Option<u64>, word: &str| n.filter(|&n| n > 0).map(|n| format!("{n} {word}"));
    let counts: Vec<String> = [
        number(result.counts.failed, "failed"),
        number(result.counts.passed, "passed"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let counts = if counts.is_empty() {
        String::new()
    } else {
        format!(": {}", counts.join(", "))
    };
    match &result.outcome {
        CheckOutcome::Passed => format!("    passed{counts} ({took})\n"),
        CheckOutcome::NotStarted { why, .. } => format!("    could not be started: {why}\n"),
        _ => {
            let errors: Vec<String> = result
                .errors
                .iter()
                .take(SHOWN)
                .map(|error| format!("      {error}\n"))
                .collect();
            let shown = if errors.is_empty() {
                tail(said)
            } else {
                errors.concat()
            };
            format!(
                "    failed with {exit}{counts} ({took}): tasks are judged by it, so fix it first or remove it\n{shown}"
            )
        }
    }
}

/// The first lines with an error of a setup command, whose last lines are often advice; without any, the last
/// lines.
fn errors(said: &str) -> String {
    let is_error = |line: &&str| {
        let has = ["error", "Error", "ERROR", "Failed", "failed"]
            .iter()
            .any(|it| line.contains(it));
        has && line.split_whitespace().count() > 3
    };
    let first: Vec<&str> = said.lines().filter(is_error).take(SHOWN).collect();
    if first.is_empty() {
        tail(said)
    } else {
        indented(&first)
    }
}

fn tail(said: &str) -> String {
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    indented(last)
}

fn indented(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("      {line}\n")).collect()
}
