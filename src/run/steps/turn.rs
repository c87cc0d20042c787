//! One turn of the agent: look, run, look again, assess.

use super::agent_turn::AgentEnd;
use super::{Performer, TaskRun, interruption};
use crate::agents::CliAgent;
use crate::domain::agent::{Usage, UsageBasis};
use crate::domain::assess::{Assessment, AssessmentKind, TurnFacts, assess};
use crate::domain::attempt::{
    Last, Observation, Spend, TestChanges, TurnEnded, TurnKey, TurnPurpose,
};
use crate::domain::checks::tests_changed::is_test;
use crate::domain::duration::millis;
use crate::domain::event::{EventKind, TurnLine};
use crate::domain::settings::{AgentCommits, OnNoChanges};
use crate::domain::snapshot::Snapshot;
use crate::git::{ChangeKind, GitError, RawSnapshot, TurnMark, TurnReport, display_path};
use crate::process::Exit;
use crate::run::layout::RunFile;

impl Performer<'_> {
    pub(super) async fn turn(
        &mut self,
        run: &mut TaskRun<'_>,
        key: TurnKey,
        purpose: &TurnPurpose,
    ) -> anyhow::Result<Observation> {
        let (_, now) = self.last_look();
        run.journal.observe(Observation::TurnStarted {
            before: now.clone(),
        })?;
        // A turn that a crash cut short goes on from where it began, not from where it stopped.
        let before = run.journal.state.turn_start.clone().unwrap_or(now);
        let mark = self.turn_mark(run, key);
        let (number, end, usage) = self.call_agent(run, key, purpose, &before).await?;
        let inspected = self.inspect(mark);
        let (raw, after) = self.look();
        let violations = self.violations(run, inspected, raw.as_deref());
        if let Some(reason) = end.cancelled {
            self.keep_session(run);
            return Ok(Observation::Interrupted {
                by: interruption(reason),
                spend: spend(&usage),
            });
        }
        run.session.clone_from(&end.report.session_id);
        run.final_message.clone_from(&end.report.final_message);
        self.keep_final_message(run, number);
        let assessment = assess(&TurnFacts {
            before: &before,
            after: &after,
            exit: &end.exit,
            report: &end.report,
            agent: run.config.agent.name(),
            violations: &violations,
        });
        let states = (&before, &after);
        self.tell(run, key, purpose, &assessment, states, &end, usage);
        let changes = raw.as_deref().map(changed_paths).unwrap_or_default();
        let tests = raw.as_deref().map(changed_tests).unwrap_or_default();
        Ok(Observation::TurnEnded(Box::new(TurnEnded {
            assessment,
            after,
            changes,
            tests,
            spend: spend(&usage),
            elapsed_ms: self.emit.elapsed_ms(),
        })))
    }

    /// Calls the agent, and once more without its session where it seems to have lost that. Returns
    /// the number under which the call's files are kept and what the turn cost, too.
    async fn call_agent(
        &mut self,
        run: &mut TaskRun<'_>,
        key: TurnKey,
        purpose: &TurnPurpose,
        before: &Snapshot,
    ) -> anyhow::Result<(u32, AgentEnd, Usage)> {
        let prompt = self.write_prompt(run, purpose, run.session.is_some())?;
        let mut number = prompt.number;
        self.emit.emit(EventKind::TurnStarted {
            purpose: purpose.as_str().into(),
            agent: run.config.agent.name().into(),
            prompt: prompt.name.clone(),
        });
        let mut end = self.run_agent(run, key, purpose, prompt).await?;
        if end.may_have_lost_its_session() && self.look().1.same_as(before) == Some(true) {
            run.session = None;
            let prompt = self.write_prompt(run, purpose, false)?;
            number = prompt.number;
            end = self.run_agent(run, key, purpose, prompt).await?;
        }
        let usage = self.turn_usage(&end);
        self.emit.emit(EventKind::TurnEnded {
            exit: end.exit.describe(),
            elapsed_ms: end.elapsed_ms,
            usage: end.cancelled.map(|_| usage),
        });
        Ok((number, end, usage))
    }

    /// What the turn did to the repository itself; without a mark only what was left behind is told.
    fn inspect(&mut self, mark: Result<TurnMark, GitError>) -> Result<TurnReport, GitError> {
        let mark = match mark {
            Ok(mark) => mark,
            Err(error) => {
                self.warn(format!(
                    "the repository's refs could not be read before the turn: {error}"
                ));
                self.repo.mark_turn()?
            }
        };
        self.repo.change().inspect_turn(&mark)
    }

    /// HEAD and refs at the start of the turn. A turn that a crash cut short is judged from where it
    /// began.
    fn turn_mark(&mut self, run: &TaskRun<'_>, key: TurnKey) -> Result<TurnMark, GitError> {
        let of_turn = (run.task.id.to_string(), key.turn);
        if matches!(run.journal.state.last, Last::Resumed(_))
            && let Some((turn, mark)) = self
                .run_dir
                .read_json::<((String, u32), TurnMark)>(RunFile::TurnMark)
            && turn == of_turn
        {
            return Ok(mark);
        }
        let mark = self.repo.mark_turn()?;
        let kept = self
            .run_dir
            .write_json(RunFile::TurnMark, &(of_turn, &mark));
        if let Err(error) = kept {
            self.warn(format!("{error:#}"));
        }
        Ok(mark)
    }

    #[expect(clippy::too_many_arguments, reason = "an event has that many parts")]
    fn tell(
        &mut self,
        run: &mut TaskRun<'_>,
        key: TurnKey,
        purpose: &TurnPurpose,
        assessment: &Assessment,
        (before, after): (&Snapshot, &Snapshot),
        end: &AgentEnd,
        usage: Usage,
    ) {
        if !run.agent_commits.is_empty() {
            self.emit.emit(EventKind::AgentCommits {
                commits: run.agent_commits.clone(),
            });
        }
        self.emit.emit(EventKind::TurnAssessed(Box::new(TurnLine {
            turn: key.turn,
            purpose: purpose.as_str().into(),
            assessment: assessment.kind,
            indicators: assessment.indicators.clone(),
            detail: assessment.detail.clone(),
            before: before.clone(),
            after: after.clone(),
            exit: end.exit.describe(),
            elapsed_ms: end.elapsed_ms,
            usage,
            failed_report: assessment.failed_report.clone(),
            builtin: end.builtin.clone(),
        })));
        if let (TurnPurpose::Nudge { n, .. }, AssessmentKind::Changed) = (purpose, assessment.kind)
        {
            self.emit.emit(EventKind::NudgeResolved {
                k: n + 1,
                of: run.config.nudges + 1,
            });
        }
    }

    /// What the turn did that no task may do. What was undone already is said as a warning.
    fn violations(
        &mut self,
        run: &mut TaskRun<'_>,
        inspected: Result<TurnReport, GitError>,
        raw: Option<&RawSnapshot>,
    ) -> Vec<String> {
        let mut violations = Vec::new();
        match inspected {
            Ok(report) => {
                for warning in &report.warnings {
                    self.warn(warning.clone());
                }
                violations.extend(report.violations.iter().map(ToString::to_string));
                if let Some(operation) = report.operation {
                    violations.push(format!("{operation} was left in progress"));
                }
                let made = report.agent_commits.iter();
                let made: Vec<String> = made
                    .map(|commit| format!("{} {} {}", commit.id, commit.author, commit.subject))
                    .filter(|line| !run.agent_commits.contains(line))
                    .collect();
                if run.config.agent_commits == AgentCommits::Reject && !made.is_empty() {
                    violations.push(format!("the agent made {} commits of its own", made.len()));
                }
                run.agent_commits.extend(made);
            }
            Err(error) => self.warn(format!("the repository could not be inspected: {error}")),
        }
        violations.extend(raw.map(|raw| self.secrets_in(raw, run)).unwrap_or_default());
        let changes = raw.map(|raw| raw.changes.as_slice()).unwrap_or_default();
        let plan = self
            .book
            .file
            .as_ref()
            .and_then(|file| file.in_tree.as_deref());
        let protected: Vec<String> = changes
            .iter()
            .filter(|change| Some(change.path.as_slice()) != plan)
            .map(|change| display_path(&change.path))
            .filter(|path| run.config.protected_paths.is_match(path))
            .collect();
        let weakened: Vec<String> = changes
            .iter()
            .filter(|change| change.kind != ChangeKind::Added)
            .map(|change| display_path(&change.path))
            .filter(|path| is_test(path))
            .collect();
        match run.config.test_changes {
            _ if weakened.is_empty() => {}
            OnNoChanges::Ok => {}
            OnNoChanges::Warn => self.emit.warn_once(&format!(
                "task {} changes tests that were there before: {}",
                run.task.id,
                weakened.join(", ")
            )),
            OnNoChanges::Fail => {
                violations.push(format!("tests were changed: {}", weakened.join(", ")));
            }
        }
        if !protected.is_empty() {
            violations.push(format!(
                "protected paths were changed: {}",
                protected.join(", ")
            ));
        }
        violations
    }

    /// The turn's own usage: some agents report the total of their session.
    fn turn_usage(&mut self, end: &AgentEnd) -> Usage {
        let usage = end.report.usage;
        let Some(session) = &end.report.session_id else {
            return usage;
        };
        if end.report.usage_basis != UsageBasis::Session {
            return usage;
        }
        let before = self
            .session_usage
            .insert(session.clone(), usage)
            .unwrap_or_default();
        let less = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        Usage {
            tokens_in: less(usage.tokens_in, before.tokens_in),
            tokens_cached: less(usage.tokens_cached, before.tokens_cached),
            tokens_out: less(usage.tokens_out, before.tokens_out),
            cost_usd: usage
                .cost_usd
                .map(|now| (now - before.cost_usd.unwrap_or(0.0)).max(0.0)),
        }
    }
}

/// Tests that differ from the task's start.
pub(super) fn changed_tests(raw: &RawSnapshot) -> TestChanges {
    let mut tests = TestChanges::default();
    for change in &raw.changes {
        let path = display_path(&change.path);
        match change.kind {
            _ if !is_test(&path) => {}
            ChangeKind::Added => tests.added.push(path),
            _ => tests.changed.push(path),
        }
    }
    tests
}

pub(super) fn changed_paths(raw: &RawSnapshot) -> Vec<String> {
    raw.changes
        .iter()
        .map(|change| display_path(&change.path))
        .collect()
}

fn spend(usage: &Usage) -> Spend {
    Spend {
        tokens: usage
            .tokens_in
            .unwrap_or(0)
            .saturating_add(usage.tokens_out.unwrap_or(0)),
        cost_usd: usage.cost_usd.unwrap_or(0.0),
    }
}

/// How the process's end reads in the domain. A command runs in a shell, which reports the signal
/// that ended it as 128 and its number.
pub(super) fn turn_exit(exit: &Exit, agent: &CliAgent) -> crate::domain::assess::TurnExit {
    use crate::domain::assess::TurnExit;
    let in_shell = matches!(agent, CliAgent::Command { .. });
    match exit {
        Exit::Code(code @ 129..=143) if in_shell => TurnExit::Signal(code - 128),
        Exit::Code(code) => TurnExit::Code(*code),
        Exit::Signal(signal) => TurnExit::Signal(*signal),
        Exit::TimedOut { after } => TurnExit::TimedOut {
            after_ms: millis(*after),
        },
        Exit::Stalled { after } => TurnExit::Stalled {
            after_ms: millis(*after),
        },
        Exit::Cancelled(_) => TurnExit::Signal(15),
        Exit::NotFound => TurnExit::NotFound,
        Exit::NotExecutable { why } | Exit::SpawnFailed { why } => {
            TurnExit::NotStarted { why: why.clone() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::assess::TurnExit;

    #[test]
    fn a_shell_reports_the_signal_that_ended_its_command() {
        let command = CliAgent::Command {
            command: "agent".into(),
        };
        let ends = |agent: &CliAgent| {
            [0, 1, 126, 127, 128, 130, 137, 143, 144, 255]
                .map(|code| turn_exit(&Exit::Code(code), agent))
        };
        let mut expected = [0, 1, 126, 127, 128, 130, 137, 143, 144, 255].map(TurnExit::Code);
        assert_eq!(ends(&CliAgent::Codex), expected);
        expected[5..8].clone_from_slice(&[2, 9, 15].map(TurnExit::Signal));
        assert_eq!(ends(&command), expected);
    }
}
