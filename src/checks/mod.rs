//! Runs the project's checks on the present tree, and creates the permit to commit it.

mod kept_output;
mod own_home;
mod reports;

use crate::domain::attempt::FailedCheck;
use crate::domain::checks::Matcher;
use crate::domain::checks::verdict::{
    Check, CheckKind, CheckOutcome, CheckResult, Evidence, HISTORY_ERRORS, MAX_EXCERPT, Verdict,
    ordered, verdict,
};
use crate::domain::checks::{FailingCheck, excerpts, hints, unwrapped};
use crate::domain::duration::millis;
use crate::domain::snapshot::Fingerprint;
use crate::permit::Committable;
use crate::plain_file;
use crate::process::{
    Cancel, CappedLog, CleanLines, CommandSpec, Ended, Exit, Input, Limits, StreamKind, run,
    until_one_fails,
};
use crate::sandbox::Policy;
use crate::secrets::redact::Redactor;
use crate::secrets::redact_stream::Redacting;
use kept_output::KeptOutput;
pub use own_home::OwnHome;
use reports::EarlierReports;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of bytes that are read of a script's first line.
const FIRST_LINE: u64 = 256;

/// The environment in which checks run.
#[derive(Debug)]
pub struct CheckContext<'a> {
    /// The work tree.
    pub work_tree: &'a Path,
    /// The complete environment variables.
    pub env: &'a [(OsString, OsString)],
    /// The variable with which git takes the work for committed, by the name of a check that gets it.
    pub as_committed: BTreeMap<String, (OsString, OsString)>,
    /// How the checks are confined.
    pub sandbox: Option<Policy>,
    /// The home of checks that create files at the top of one.
    pub own_home: &'a OwnHome,
    /// Signalled when the run must stop.
    pub cancel: &'a Cancel,
    /// The directory for the logs.
    pub run_dir: &'a Path,
    /// The path of a log in that directory, by the number and the name of the check.
    pub log: fn(u32, &str) -> String,
    /// Redacts the logs.
    pub redactor: &'a Arc<Redactor>,
    /// Problem matchers by the file that a check names.
    pub matchers: &'a BTreeMap<String, Vec<Matcher>>,
    /// The directories to which a check changes, by its name.
    pub directories: &'a BTreeMap<String, Vec<String>>,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// The verdict.
    pub verdict: Verdict,
    /// The results in the order in which the checks ran.
    pub results: Vec<CheckResult>,
    /// Failing output for the next prompt.
    pub failing_output: String,
}

/// An event while checks run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A check starts.
    Started(&'a Check),
    /// A check ended, or was skipped.
    Ended(&'a CheckResult),
    /// A check left processes behind, which were killed.
    Leaked(&'a Check, usize),
    /// A warning about a check's reports or its home.
    Odd(&'a Check, String),
    /// A log is incomplete.
    LogLost(String),
}

/// Runs the checks: first the builds, then the others, each kind in the given order. After a failing build,
/// the rest is skipped. `number` names the logs and is incremented.
pub async fn run_checks(
    checks: &[Check],
    context: &CheckContext<'_>,
    number: &mut u32,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> Verification {
    let mut results: Vec<CheckResult> = Vec::new();
    let mut outputs = Vec::new();
    for check in ordered(checks) {
        let result = match skip_reason(&results) {
            Some(because) => CheckResult::skipped(check, because),
            None => {
                *number += 1;
                on_progress(Progress::Started(check));
                let (result, output) = run_check(check, context, *number, on_progress).await;
                outputs.push(output);
                result
            }
        };
        on_progress(Progress::Ended(&result));
        results.push(result);
    }
    let failing_output = failing_output(&results, &outputs);
    Verification {
        verdict: verdict(&results),
        results,
        failing_output,
    }
}

impl Verification {
    /// The permit to commit `tree`, if it was verified and passed.
    pub fn permit(&self, tree: &Fingerprint) -> Option<Committable> {
        (self.verdict == Verdict::Passed).then(|| Committable::verified(tree.clone()))
    }

    /// The result for a tree that fails before the project's checks run. `name` stands for Sprag's own
    /// requirement, and `why` says what is wrong.
    pub fn failed_before(name: &str, why: &str) -> Self {
        let check = Check {
            name: name.to_owned(),
            run: String::new(),
            kind: CheckKind::Build,
            timeout_ms: 0,
            junit: None,
            problem_matcher: None,
        };
        let outcome = CheckOutcome::Failed { exit: 1 };
        let results = vec![CheckResult::read(&check, outcome, why, 0, "")];
        Self {
            verdict: verdict(&results),
            failing_output: failing_output(&results, &[why.to_owned()]),
            results,
        }
    }

    /// The failed checks in the form in which they are compared with other runs.
    pub fn failed(&self) -> Vec<FailedCheck> {
        let failed = self.results.iter();
        failed.filter_map(CheckResult::failed_check).collect()
    }

    /// One line for each of the first errors. The first error of each failing check precedes the second of
    /// any.
    pub fn errors(&self) -> Vec<String> {
        let of_rank = |rank| {
            let results = self.results.iter();
            results.filter_map(move |result| result.errors.get(rank))
        };
        let ranked = (0..HISTORY_ERRORS).flat_map(of_rank);
        ranked.take(HISTORY_ERRORS).cloned().collect()
    }

    /// Names of the failed checks.
    pub fn failing_checks(&self) -> Vec<String> {
        let failing = self.results.iter().filter(|it| it.outcome.is_failure());
        failing.map(|result| result.name.clone()).collect()
    }

    /// Hints about the failures.
    pub fn hints(&self) -> Vec<String> {
        hints(&self.failing_output)
    }

    /// Whether the verdict may be reused. A timed-out or interrupted one may not.
    pub fn is_lasting(&self) -> bool {
        matches!(self.verdict, Verdict::Passed | Verdict::Failed { .. })
    }
}

/// The permit to commit a tree when no check is configured.
pub fn permit_unchecked(checks: &[Check], tree: &Fingerprint) -> Option<Committable> {
    let is_unchecked = checks.is_empty();
    is_unchecked.then(|| Committable::no_checks(tree.clone()))
}

fn skip_reason(results: &[CheckResult]) -> Option<&'static str> {
    let is_aborted = |result: &CheckResult| result.outcome == CheckOutcome::Aborted;
    let is_broken =
        |result: &CheckResult| result.kind == CheckKind::Build && result.outcome.is_failure();
    if results.iter().any(is_aborted) {
        Some("the run was stopped")
    } else {
        let is_broken = results.iter().any(is_broken);
        is_broken.then_some("the build failed")
    }
}

async fn run_check(
    check: &Check,
    context: &CheckContext<'_>,
    number: u32,
    on_progress: &mut dyn FnMut(Progress<'_>),
) -> (CheckResult, String) {
    let name = (context.log)(number, &file_name(&check.name));
    let before = check.junit.as_deref();
    let before = before.and_then(|glob| EarlierReports::record(context.work_tree, glob));
    let mut logged = run_logged(check, context, &name).await;
    let refused = logged.refused.as_deref();
    let refused = refused.filter(|_| logged.ended.exit != Exit::Code(0));
    if refused.is_some_and(|path| context.own_home.is_made_for(path, context.env)) {
        let what = "it creates files at the top of the home directory, so it runs with a home of its own that links to everything in yours";
        on_progress(Progress::Odd(check, what.to_owned()));
        // A log is only written where none is.
        let _ = fs::remove_file(context.run_dir.join(&name));
        logged = run_logged(check, context, &name).await;
    }
    if let Some(why) = logged.lost {
        on_progress(Progress::LogLost(why));
    }
    let ended = logged.ended;
    if !ended.leaked.is_empty() {
        on_progress(Progress::Leaked(check, ended.leaked.len()));
    }
    let outcome = outcome(&ended.exit);
    let before = before.filter(|_| outcome != CheckOutcome::Aborted);
    let mut tell = |what| on_progress(Progress::Odd(check, what));
    let report = before.and_then(|before| before.written(context.work_tree, &mut tell));
    let matchers = check.problem_matcher.as_deref();
    let matchers = matchers.and_then(|file| context.matchers.get(file));
    let directories = context.directories.get(&check.name);
    let evidence = Evidence {
        output: &logged.output,
        is_whole: logged.is_whole,
        report: report.as_ref(),
        as_committed: context.as_committed.contains_key(&check.name),
        matchers: matchers.map_or(&[], Vec::as_slice),
        directories: directories.map_or(&[], Vec::as_slice),
        root: &context.work_tree.display().to_string(),
        is_file: |root, path| Path::new(root).join(path).is_file(),
        files: reports::files,
    };
    let mut result = CheckResult::of_evidence(check, outcome, &evidence, millis(ended.elapsed));
    explain_line_endings(&mut result.outcome, context.work_tree);
    result.log = Some(name);
    if let Some(path) = &logged.refused {
        result.note_refused(path);
    }
    (result, logged.output)
}

/// A command of a check that has ended.
struct Logged {
    ended: Ended,
    output: String,
    /// Whether `output` is complete.
    is_whole: bool,
    /// A path that the sandbox did not let it write, if its output says so.
    refused: Option<String>,
    /// Why the log is incomplete, if it is.
    lost: Option<String>,
}

/// Runs the command of a check and writes its output to a log.
async fn run_logged(check: &Check, context: &CheckContext<'_>, name: &str) -> Logged {
    let mut log = CappedLog::create(&context.run_dir.join(name))
        .map(|log| CleanLines::new(Redacting::new(log, Arc::clone(context.redactor))));
    let mut kept = KeptOutput::new();
    let mut env = context.own_home.environment(context.env);
    env.extend(context.as_committed.get(&check.name).cloned());
    let spec = CommandSpec {
        program: "sh".into(),
        args: until_one_fails(&check.run),
        cwd: context.work_tree.to_path_buf(),
        env,
        stdin: Input::Null,
        limits: Limits::within(Duration::from_millis(check.timeout_ms)),
        sandbox: context.sandbox.clone(),
    };
    let ended = run(&spec, context.cancel, &mut |_: StreamKind, chunk: &[u8]| {
        kept.push(chunk);
        let _ = log.as_mut().map(|log| log.write_all(chunk));
    })
    .await;
    let closed = log
        .and_then(CleanLines::finish)
        .and_then(Redacting::finish)
        .and_then(CappedLog::close);
    let is_whole = kept.is_whole();
    let output = unwrapped(&kept.into_text()).into_owned();
    let policy = context.sandbox.as_ref();
    let refused = policy.and_then(|policy| policy.refused(&output));
    Logged {
        ended,
        refused: refused.map(str::to_owned),
        output,
        is_whole,
        lost: closed.err().map(|error| format!("{name}: {error}")),
    }
}

fn outcome(exit: &Exit) -> CheckOutcome {
    let not_started = |why: &str| CheckOutcome::NotStarted {
        program: "sh".into(),
        why: why.to_owned(),
    };
    match exit {
        Exit::Code(0) => CheckOutcome::Passed,
        Exit::Code(exit) => CheckOutcome::Failed { exit: *exit },
        Exit::Signal(signal) => CheckOutcome::Signalled { signal: *signal },
        Exit::TimedOut { after } | Exit::Stalled { after } => CheckOutcome::TimedOut {
            after_ms: millis(*after),
        },
        Exit::Dismissed | Exit::Cancelled(_) => CheckOutcome::Aborted,
        Exit::NotFound => not_started("there is no sh"),
        Exit::NotExecutable { why } | Exit::SpawnFailed { why } => not_started(why),
    }
}

/// Names the interpreter of a script that cannot start because of its line endings.
fn explain_line_endings(outcome: &mut CheckOutcome, work_tree: &Path) {
    if let CheckOutcome::NotStarted { program, why } = outcome
        && has_windows_line_endings(&work_tree.join(&*program))
    {
        *program = format!(
            "the interpreter of {program} (its first line ends in a carriage return, as on Windows)"
        );
        *why = format!("{program} was not found");
    }
}

/// Whether a script's first line ends with a carriage return, which the system treats as part of the
/// interpreter's name.
fn has_windows_line_endings(script: &Path) -> bool {
    let mut start = Vec::new();
    let read = plain_file::open(script).map(|file| file.take(FIRST_LINE).read_to_end(&mut start));
    let first = start.split(|byte| *byte == b'\n').next();
    read.is_ok() && start.starts_with(b"#!") && first.is_some_and(|line| line.ends_with(b"\r"))
}

fn failing_output(results: &[CheckResult], outputs: &[String]) -> String {
    let failing = results.iter().zip(outputs);
    let failing = failing.filter(|(result, _)| result.outcome.is_failure());
    let failing = failing.map(|(result, output)| FailingCheck {
        name: &result.name,
        output,
        outcome: &result.outcome,
    });
    excerpts(&failing.collect::<Vec<_>>(), MAX_EXCERPT)
}

/// A check's name in a form for file names.
fn file_name(name: &str) -> String {
    let is_unsafe = |c: char| !(c.is_ascii_alphanumeric() || c == '-');
    let name: String = name.chars().take(40).collect();
    let name = name.replace(is_unsafe, "-").to_ascii_lowercase();
    match name.trim_matches('-') {
        "" => "check".into(),
        name => name.into(),
    }
}

#[cfg(test)]
mod tests;
