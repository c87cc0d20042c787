//! Checks, their results, and the verdict over all results.

mod cannot_start;

pub use super::check::{Check, CheckKind, CheckOutcome};
use super::counts::Counts;
use super::diagnostic::{self, Diagnostic, Reading, WorkTree};
use super::junit::Report;
use super::path;
use super::results::{self, Results, counts, failed_by_run};
use super::unfinished::is_unfinished;
use super::{FailedCheck, FailingTest, Matcher, Said, reading};
use crate::command_line::CommandLine;
use crate::pattern::Pattern;
use crate::text;
use serde::{Deserialize, Serialize};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The evidence that a run of a check leaves besides its exit code.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What it printed.
    pub output: &'a str,
    /// Whether `output` is complete.
    pub is_whole: bool,
    /// The content of its JUnit XML reports, if it declares any and wrote them.
    pub report: Option<&'a Report>,
    /// Whether git took the work for committed.
    pub as_committed: bool,
    /// The problem matchers for its output.
    pub matchers: &'a [Matcher],
    /// The directories, relative to the work tree, to which it changes.
    pub directories: &'a [String],
    /// The work tree: paths below it are made relative.
    pub root: &'a str,
    /// Whether there is a file in the work tree at a path, which is relative to it.
    pub is_file: fn(root: &str, path: &str) -> bool,
    /// The files in the work tree that git does not ignore, relative to it.
    pub files: fn(root: &str) -> Vec<String>,
}

/// One run of one check, with its interpreted output. The output itself is in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check's name.
    pub name: String,
    /// The check's kind.
    pub kind: CheckKind,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: CheckOutcome,
    /// The numbers of passed and failed tests, as far as the output states them.
    pub counts: Counts,
    /// What else it reported about its tests.
    #[serde(default)]
    pub said: Said,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// The path of its log, relative to the run directory.
    pub log: Option<String>,
    /// The code locations that it names. Empty if it passed.
    pub diagnostics: Vec<Diagnostic>,
    /// The failed tests, as far as its reports or output name them, ordered by id.
    pub failing_tests: Vec<FailingTest>,
    /// The results of all tests of every name of which a test failed; empty if not every test is named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub results: BTreeMap<String, Results>,
    /// The number of failed tests of each run of tests, as far as they are known. Empty if it passed or `results`
    /// tells more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_by_run: Vec<Option<u64>>,
    /// The part of the output for a prompt, at most [`MAX_EXCERPT`] characters. Empty if it passed.
    pub excerpt: String,
    /// Its first errors, one line each.
    pub errors: Vec<String>,
    /// The fingerprint of the failure; `None` if there is no failure.
    pub fingerprint: Option<String>,
    /// A path that the sandbox did not let it write, if that explains the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The maximum length of failing output in a prompt, in characters.
pub const MAX_EXCERPT: usize = 8_000;
/// The number of errors that the history of an attempt keeps.
pub const HISTORY_ERRORS: usize = 2;
/// The maximum length of an error in a history, in characters.
pub const MAX_ERROR: usize = 160;

/// A failing test's id with its file and line.
fn place(test: &FailingTest) -> Option<(String, (String, u32))> {
    Some((test.id.clone(), (test.file.clone()?, test.line?)))
}

impl CheckResult {
    /// Interprets a run of `check` that ended with `outcome` and printed `output`. Paths below `root` (the
    /// work tree) are made relative; relative paths stay as they are.
    pub fn read(
        check: &Check,
        outcome: CheckOutcome,
        output: &str,
        elapsed_ms: u64,
        root: &str,
    ) -> Self {
        let evidence = Evidence {
            output,
            is_whole: true,
            report: None,
            as_committed: false,
            matchers: &[],
            directories: &[],
            root,
            is_file: |_, _| false,
            files: |_| Vec::new(),
        };
        Self::of_evidence(check, outcome, &evidence, elapsed_ms)
    }

    /// Like [`CheckResult::read`], with reports and problem matchers. The exit code decides whether the check
    /// failed; with exit code 0, the tests must also have finished. Numbers and names in a report take
    /// precedence over those in the output.
    pub fn of_evidence(
        check: &Check,
        outcome: CheckOutcome,
        evidence: &Evidence<'_>,
        elapsed_ms: u64,
    ) -> Self {
        let output = evidence.output;
        let outcome = match cannot_start::read(&check.run, outcome, output) {
            CheckOutcome::Passed if evidence.is_unfinished(&check.run) => {
                CheckOutcome::Failed { exit: 0 }
            }
            other => other,
        };
        let failed = outcome.is_failure();
        let mut result = Self {
            name: check.name.clone(),
            kind: check.kind,
            outcome,
            counts: Counts::UNKNOWN,
            said: Said::default(),
            elapsed_ms,
            log: None,
            diagnostics: Vec::new(),
            failing_tests: Vec::new(),
            results: BTreeMap::new(),
            failed_by_run: Vec::new(),
            excerpt: String::new(),
            errors: Vec::new(),
            fingerprint: None,
            refused: None,
        };
        if failed || result.outcome == CheckOutcome::Passed {
            let report = evidence.report.map(Report::counts);
            let known = report.filter(|known| *known != Counts::UNKNOWN);
            result.counts = known.unwrap_or_else(|| counts(output));
            result.said = Said::read(&check.run, output, evidence.is_whole, report);
        }
        if failed {
            (result.diagnostics, result.failing_tests) = evidence.read(&check.run);
            if evidence.report.is_none() {
                result.results = results::by_id(output, result.counts);
            }
            if result.results.is_empty() {
                result.failed_by_run = failed_by_run(output);
            }
            result.excerpt = super::excerpt(output, MAX_EXCERPT);
            result.errors = result.first_errors(check, evidence);
            let fingerprint = super::check_fingerprint(&check.name, &result.outcome, output);
            result.fingerprint = Some(fingerprint);
        }
        result
    }

    /// The first errors, with how the check ended if it ended otherwise than by an exit code, and with what a check that
    /// compares with the last commit does wrong.
    fn first_errors(&self, check: &Check, evidence: &Evidence<'_>) -> Vec<String> {
        let explains_itself = self.failing_tests.is_empty()
            && self.diagnostics.iter().all(|it| it.source == "git diff")
            && compares_with_commit(&check.run);
        let compared = if evidence.as_committed {
            "git saw the work as committed: a check that finds changes then has made them itself, or left files that `.gitignore` does not name"
        } else {
            "it compares with the last commit, in which the work is not yet: use `git diff --exit-code` without a revision, since the work is staged"
        };
        let (output, most) = (evidence.output, HISTORY_ERRORS);
        let first = super::first_errors_of(&self.diagnostics, output, most, MAX_ERROR);
        let is_told = matches!(self.outcome, CheckOutcome::Failed { exit } if exit != 0);
        let end = text::one_line(&self.outcome.to_string(), MAX_ERROR);
        let compared = explains_itself.then(|| compared.to_owned()).into_iter();
        let errors = compared.chain((!is_told || first.is_empty()).then_some(end));
        errors.chain(first).take(HISTORY_ERRORS).collect()
    }

    /// Notes a path that the sandbox did not let the check write, unless its output says that it failed for another
    /// reason.
    pub fn note_refused(&mut self, path: &str) {
        let names_nothing_else = self.failing_tests.is_empty() && self.diagnostics.is_empty();
        let is_named = || self.errors.iter().any(|error| error.contains(path));
        if self.outcome.is_failure() && (names_nothing_else || is_named()) {
            self.refused = Some(path.to_owned());
        }
    }

    /// The failure, reduced to what is compared with other runs of the check; `None` for a check that did not
    /// fail.
    pub fn failed_check(&self) -> Option<FailedCheck> {
        let named = if self.results.is_empty() {
            u64::try_from(self.failing_tests.len()).ok()
        } else {
            Some(results::number_failed(&self.results))
        };
        self.outcome.is_failure().then(|| FailedCheck {
            check: self.name.clone(),
            end: self.outcome.to_string(),
            fingerprint: if self.excerpt.trim().is_empty() {
                // A check that prints nothing may fail for another reason each time.
                String::new()
            } else {
                self.fingerprint.clone().unwrap_or_default()
            },
            tests: self.failing_tests.iter().map(|it| it.id.clone()).collect(),
            all_named: named.is_some() && named == self.counts.failed,
            hides_some: named < self.counts.failed,
            passed: self.counts.passed,
            results: self.results.clone(),
            failed_by_run: self.failed_by_run.clone(),
            refused: self.refused.clone(),
            places: self.failing_tests.iter().filter_map(place).collect(),
        })
    }

    /// The check and the missing program, if the check could not start.
    fn cannot_start(&self) -> Option<(String, String)> {
        match &self.outcome {
            CheckOutcome::NotStarted { program, .. } => Some((self.name.clone(), program.clone())),
            _ => None,
        }
    }

    /// A check that was not run.
    pub fn skipped(check: &Check, because: &str) -> Self {
        Self::read(
            check,
            CheckOutcome::Skipped {
                because: because.to_owned(),
            },
            "",
            0,
            "",
        )
    }
}

impl Evidence<'_> {
    /// The diagnostics of the output, followed by those of the report whose location the output does not
    /// name; and the failed tests of the report if it has any, otherwise those of the output.
    fn read(&self, run: &str) -> (Vec<Diagnostic>, Vec<FailingTest>) {
        let only_directory = CommandLine::read(run).only_directory();
        let plain = text::plain(self.output);
        let files: OnceCell<Vec<String>> = OnceCell::new();
        let files = || files.get_or_init(|| (self.files)(self.root)).as_slice();
        let known: RefCell<BTreeMap<String, Option<String>>> = RefCell::default();
        let meant = |path: &str| {
            let mut known = known.borrow_mut();
            let find = || path::at_the_end_of(path, files());
            known.entry(path.to_owned()).or_insert_with(find).clone()
        };
        let twin = |path: &str| {
            let twin = format!("{}/{path}", only_directory.as_ref()?);
            (self.is_file)(self.root, &twin).then_some(twin)
        };
        let tree = WorkTree {
            root: self.root,
            meant: &meant,
            twin: &twin,
        };
        let mut output = reading::read(&plain, self.matchers, &tree);
        let mut report = self.report.map_or_else(Reading::default, |it| Reading {
            diagnostics: it.diagnostics.clone(),
            failing_tests: it.failing_tests.clone(),
        });
        self.find_files(&mut output, &files);
        self.find_files(&mut report, &files);
        let place = |it: &Diagnostic| Some((it.path.clone()?, it.line));
        let known: BTreeSet<_> = output.diagnostics.iter().filter_map(place).collect();
        let is_new = |it: &Diagnostic| place(it).is_none_or(|it| !known.contains(&it));
        let new = report.diagnostics.into_iter().filter(is_new);
        let mut all = output.diagnostics;
        all.extend(new);
        all.sort_by_key(|it| it.severity);
        all.truncate(diagnostic::MAX_DIAGNOSTICS);
        let failing = match self.report {
            Some(known) if known.failed > 0 => report.failing_tests,
            _ => output.failing_tests,
        };
        (all, failing)
    }

    /// Names the files from the root that are named from another directory: from one to which the check changed,
    /// or from one of which the output does not tell.
    fn find_files<'f>(&self, reading: &mut Reading, files: &dyn Fn() -> &'f [String]) {
        let is_file = |path: &str| (self.is_file)(self.root, path);
        let find = |path: &str| {
            let inside = || path::only_in(self.directories, path, is_file);
            let found = || inside().or_else(|| path::ending_with(path, files()));
            (!is_file(path)).then(found).flatten()
        };
        let mut known: BTreeMap<String, Option<String>> = BTreeMap::new();
        let paths = reading.diagnostics.iter_mut().map(|it| &mut it.path);
        let tests = reading.failing_tests.iter_mut().map(|it| &mut it.file);
        for path in paths.chain(tests).flatten() {
            let found = known.entry(path.clone()).or_insert_with(|| find(path));
            if let Some(found) = found {
                path.clone_from(found);
            }
        }
    }

    fn is_unfinished(&self, run: &str) -> bool {
        self.is_whole && self.report.is_none() && is_unfinished(run, self.output)
    }
}

/// Whether a command asks git how the work tree differs from the last commit.
fn compares_with_commit(run: &str) -> bool {
    static COMPARES: Pattern =
        Pattern::new(r"\bgit\s(?:[^;&|\n]*\s)?(?:status\b|diff-index\b|diff\b[^;&|\n]*\sHEAD\b)");
    COMPARES.is_match(run)
}

/// The verdict over the results of all checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// Every check passed.
    Passed,
    /// At least one check failed.
    Failed {
        /// Equal for equal failures.
        fingerprint: String,
        /// Whether a check of kind build is among them.
        build: bool,
        /// Whether all of them are of kind lint.
        #[serde(default)]
        lint: bool,
        /// The failed tests, as far as they are known.
        tests: BTreeSet<String>,
    },
    /// A check could not start, which says nothing about the tree.
    CannotStart {
        /// The check.
        check: String,
        /// The program that is missing or cannot be run.
        program: String,
    },
    /// No check failed and at least one ran out of time.
    TimedOut {
        /// The checks that ran out of time.
        checks: Vec<String>,
    },
    /// Not all checks ran to their end, so nothing is known.
    Aborted,
    /// No check is configured.
    NotRun,
}

/// The verdict over all results, in order of precedence: aborted, cannot start, failed, timed out, passed. A
/// check that was skipped without a failure that explains it leaves the tree unverified, which is never a
/// pass.
pub fn verdict(results: &[CheckResult]) -> Verdict {
    let any = |is: fn(&CheckOutcome) -> bool| results.iter().any(|result| is(&result.outcome));
    let failed: Vec<&CheckResult> = results
        .iter()
        .filter(|it| it.outcome.is_failure() && !it.outcome.is_timeout())
        .collect();
    if results.is_empty() {
        Verdict::NotRun
    } else if any(|it| *it == CheckOutcome::Aborted) {
        Verdict::Aborted
    } else if let Some((check, program)) = results.iter().find_map(CheckResult::cannot_start) {
        Verdict::CannotStart { check, program }
    } else if !failed.is_empty() {
        let each = failed
            .iter()
            .map(|it| it.fingerprint.as_deref().unwrap_or(&it.name));
        Verdict::Failed {
            fingerprint: super::combined(each),
            build: failed.iter().any(|it| it.kind == CheckKind::Build),
            lint: failed.iter().all(|it| it.kind == CheckKind::Lint),
            tests: failed
                .iter()
                .flat_map(|it| it.failing_tests.iter().map(|test| test.name.clone()))
                .collect(),
        }
    } else if any(CheckOutcome::is_timeout) {
        let timed_out = results.iter().filter(|it| it.outcome.is_timeout());
        Verdict::TimedOut {
            checks: timed_out.map(|it| it.name.clone()).collect(),
        }
    } else if any(|it| matches!(it, CheckOutcome::Skipped { .. })) {
        Verdict::Aborted
    } else {
        Verdict::Passed
    }
}

/// `checks` in the order in which they run: builds first, otherwise as listed.
pub fn ordered(checks: &[Check]) -> Vec<&Check> {
    let (mut first, rest): (Vec<_>, Vec<_>) = checks
        .iter()
        .partition(|check| check.kind == CheckKind::Build);
    first.extend(rest);
    first
}

#[cfg(test)]
mod tests;
