//! Lets the agent draft a plan: turns whose changes are undone, and one file that Sprag writes.

use crate::domain::agent::TurnName;
use crate::domain::assess::{Assessment, AssessmentKind, TurnFacts, assess};
use crate::domain::commit_message::without_references;
use crate::domain::draft::{Draft, MAX_DRAFTS, Problem, of_message, prompt, stem};
use crate::domain::event::{EventKind, RetryKind, RetryLine};
use crate::domain::outcome::{Outcome, short};
use crate::domain::plan::Task;
use crate::domain::prompt::pictures;
use crate::domain::snapshot::{RevId, Snapshot};
use crate::domain::text::{add_paragraph, one_line};
use crate::git::{PlanContent, RawSnapshot, display_path, display_paths, path_within};
use crate::report::text::block;
use crate::run::begin::work::{DraftRequest, Written};
use crate::run::state::directory::write_atomically;
use crate::run::state::layout::RunFile;
use crate::run::state::parts::{Parts, TaskRun, TaskStart};
use crate::run::state::pictures::names;
use crate::run::state::plan_state::PLAN_LIMIT;
use crate::run::state::setup::interruption;
use crate::run::steps::agent_end::AgentEnd;
use crate::run::steps::agent_turn::run_agent_with_its_files;
use crate::run::steps::finish_task::finish_task;
use crate::run::steps::landing::commit_plan;
use crate::run::steps::prompt::keep_prompt;
use crate::run::steps::start_task::start_task;
use crate::run::steps::turn::{spend, turn_line, turn_usage};
use anyhow::Context as _;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file name of a draft in messages.
const NAME: &str = "plan.yaml";

/// Directories for a plan without a given path: the first that exists, else the first.
const DIRECTORIES: [&str; 2] = [".sprag/plans", "plans"];

/// Lets the agent draft a plan, validates it and writes it.
///
/// # Errors
/// When the run's own state or the plan cannot be written.
pub async fn draft_plan(
    parts: &mut Parts<'_>,
    task: &Task,
    start: &TaskStart,
    wanted: &DraftRequest,
) -> anyhow::Result<Outcome> {
    let mut run = start_task(parts, task, start, false)?;
    let outcome = match drafted(parts, &mut run, wanted).await? {
        Ok(draft) if wanted.only_shown => {
            // Nobody may approve what nobody can see.
            run.final_message = Some(block(&draft.text));
            Outcome::Drafted { commit: None }
        }
        Ok(draft) => Outcome::Drafted {
            commit: keep(parts, &draft, wanted)?,
        },
        Err(outcome) => outcome,
    };
    finish_task(parts, &mut run, &outcome)?;
    Ok(outcome)
}

/// Requests drafts until one is valid.
async fn drafted(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    wanted: &DraftRequest,
) -> anyhow::Result<Result<Draft, Outcome>> {
    let mut problem: Option<Problem> = None;
    let mut last = Outcome::VerificationFailed;
    for number in 1..=MAX_DRAFTS {
        let (task, turn) = (run.task.id.as_str(), run.draft_turns + 1);
        parts.emit.at(Some(task), Some(number), Some(turn));
        if let Some(by) = parts.setup.interruption() {
            return Ok(Err(by.outcome()));
        }
        let (spent, set) = (&parts.accounts.spent, &parts.setup.config.settings);
        if let Some(message) = spent.limit_reached(set.max_tokens, set.max_cost_usd) {
            return Ok(Err(Outcome::Budget { message }));
        }
        if let Some(problem) = &problem {
            let (n, of, why) = (number - 1, MAX_DRAFTS - 1, one_line(&problem.why, 500));
            let line = RetryLine::new(RetryKind::Retry, n, of, why);
            parts.emit.emit(EventKind::RetryScheduled(Box::new(line)));
        }
        let mut text = prompt(&wanted.request, problem.as_ref());
        if let Some(section) = pictures(&names(&parts.setup.run_dir)) {
            add_paragraph(&mut text, &section);
        }
        let (assessment, drafted) = match lasting_turn(parts, run, number, &text).await? {
            Ok(ended) => ended,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let message = assessment.detail;
        let no_draft = |why: &String| Problem {
            draft: String::new(),
            why: why.clone(),
        };
        let (found, outcome) = match assessment.kind {
            AssessmentKind::AgentUnavailable => {
                return Ok(Err(Outcome::AgentUnavailable { message }));
            }
            AssessmentKind::PolicyViolation => {
                return Ok(Err(Outcome::PolicyViolation { what: message }));
            }
            AssessmentKind::FailedReport => {
                let summary = assessment.failed_report.map(|report| report.summary);
                let summary = summary.unwrap_or_default();
                return Ok(Err(Outcome::FailedReport { summary }));
            }
            AssessmentKind::TurnTimeout => (no_draft(&message), Some(Outcome::TurnTimeout)),
            AssessmentKind::AgentCrashed => {
                (no_draft(&message), Some(Outcome::AgentCrashed { message }))
            }
            _ => match drafted {
                Ok(draft) => return Ok(Ok(*draft)),
                Err(problem) => (problem, None),
            },
        };
        let (drafts, why) = (number, one_line(&found.why, 500));
        parts.warn(format!(
            "draft {number} of {MAX_DRAFTS} is not a valid plan: {why}"
        ));
        last = outcome.unwrap_or(Outcome::NoValidDraft { drafts, why });
        problem = Some(found);
    }
    Ok(Err(last))
}

/// A turn and the draft that it gave.
type Drafted = (Assessment, Result<Box<Draft>, Problem>);

/// A turn, repeated after a wait as long as errors are transient, as in every run; or why there is none.
async fn lasting_turn(
    parts: &mut Parts<'_>,
    run: &mut TaskRun<'_>,
    number: u32,
    text: &str,
) -> anyhow::Result<Result<Drafted, Outcome>> {
    let mut waits = 0;
    loop {
        run.drafts = number;
        run.draft_turns += 1;
        let (task, turns) = (run.task.id.as_str(), run.draft_turns);
        parts.emit.at(Some(task), Some(number), Some(turns));
        let ended = turn(parts, run, number, turns, text.to_owned()).await?;
        let transient = match &ended {
            Ok((assessment, _)) if assessment.kind == AssessmentKind::AgentTransient => assessment,
            _ => return Ok(ended),
        };
        let why = transient.detail.clone();
        let ms = match run.policy.wait_ms(waits, transient.retry_after_ms) {
            Ok(ms) => ms,
            Err(waits) => {
                let message = format!("{why} ({waits})");
                return Ok(Err(Outcome::AgentUnavailable { message }));
            }
        };
        waits += 1;
        let line = RetryLine {
            delay_ms: ms,
            ..RetryLine::new(RetryKind::Wait, waits, run.policy.waits, why)
        };
        parts.emit.emit(EventKind::RetryScheduled(Box::new(line)));
        parts.setup.wait(ms).await;
        if let Some(by) = parts.setup.interruption() {
            return Ok(Err(by.outcome()));
        }
    }
}

async fn turn(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    number: u32,
    turn: u32,
    text: String,
) -> anyhow::Result<Result<Drafted, Outcome>> {
    let (_, before) = parts.snapshot();
    let mark = parts.tree.repo.mark_turn()?;
    let prompt = keep_prompt(parts, text)?;
    let turn_number = prompt.number;
    parts.emit.emit(EventKind::TurnStarted {
        purpose: PURPOSE.into(),
        agent: run.config.agent.name().into(),
        prompt: prompt.name.clone(),
    });
    let name = TurnName {
        task: run.task.id.to_string(),
        attempt: number,
        turn,
        purpose: PURPOSE.to_owned(),
    };
    let end = run_agent_with_its_files(parts, run, &name, prompt).await?;
    let inspected = parts.tree.repo.change().inspect_turn(&mark)?;
    let (raw, after) = parts.snapshot();
    let drafts = drafts_of(parts, &end, raw.as_deref());
    undo(parts, run, raw.as_deref(), &before)?;
    let mut violations = parts.setup.violations();
    violations.extend(inspected.violations.iter().map(ToString::to_string));
    for warning in inspected.warnings {
        parts.warn(warning);
    }
    let said = end.report.final_message.as_deref().unwrap_or_default();
    let file = RunFile::TurnMessage(turn_number);
    let kept = parts.setup.run_dir.write(file, said.as_bytes());
    parts.emit.warn_unless_stored(kept.map(drop));
    let assessment = assess(&TurnFacts {
        before: &before,
        after: &after,
        exit: &end.exit,
        report: &end.report,
        agent: run.config.agent.name(),
        violations: &violations,
    });
    let usage = turn_usage(&mut parts.accounts, &end);
    parts.accounts.end_task(spend(&usage));
    let is_told = !assessment.kind.has_answer() && end.cancelled.is_none();
    parts.emit.emit(EventKind::TurnEnded {
        exit: end.exit.describe(),
        elapsed_ms: end.elapsed_ms,
        usage: (!is_told).then_some(usage),
    });
    if let Some(reason) = end.cancelled {
        return Ok(Err(interruption(reason).outcome()));
    }
    if is_told {
        let line = turn_line(PURPOSE, &assessment, &before, &after, &end, usage);
        parts.emit.emit(EventKind::TurnAssessed(Box::new(line)));
    }
    Ok(Ok((assessment, drafts)))
}

/// The purpose of the turns, for the agent and in events.
const PURPOSE: &str = "plan";

/// The draft in the final message, or else in a file that the agent has written.
fn drafts_of(
    parts: &Parts<'_>,
    end: &AgentEnd,
    raw: Option<&RawSnapshot>,
) -> Result<Box<Draft>, Problem> {
    let said = end.report.final_message.as_deref().unwrap_or_default();
    let why = match of_message(NAME, said) {
        Ok(draft) => return Ok(Box::new(draft)),
        Err(why) => why,
    };
    let changes = raw.map(|raw| raw.changes.as_slice()).unwrap_or_default();
    let is_yaml = |path: &&[u8]| path.ends_with(b".yaml") || path.ends_with(b".yml");
    let files = changes.iter().map(|change| change.path.as_slice());
    let in_file = files.filter(is_yaml).find_map(|path| {
        let bytes = parts.tree.repo.work_file(path, PLAN_LIMIT)?;
        of_message(NAME, &String::from_utf8(bytes).ok()?).ok()
    });
    in_file.map(Box::new).ok_or_else(|| Problem {
        draft: said.to_owned(),
        why,
    })
}

/// Undoes the agent's changes to the repository, with a warning.
fn undo(
    parts: &mut Parts<'_>,
    run: &TaskRun<'_>,
    raw: Option<&RawSnapshot>,
    before: &Snapshot,
) -> anyhow::Result<()> {
    let (id, task) = (&parts.setup.run_id, run.task.id.as_str());
    if let Some(kept) = parts.tree.repo.change().set_aside(id, task)? {
        parts.warn(format!(
            "the agent made commits while it drafted the plan; they were removed from the branch and kept under {kept}"
        ));
    }
    let is_clean = raw.is_some_and(|raw| raw.changes.is_empty() && raw.uncounted.is_empty());
    if is_clean && before.tree().is_some() {
        return Ok(());
    }
    let exempt = parts.tree.exempt();
    let restored = parts.tree.repo.change().restore_tree(&exempt)?;
    restored.left.iter().for_each(|left| parts.warn_once(left));
    let mut undone = restored.restored;
    undone.extend(restored.removed);
    undone.sort();
    if !undone.is_empty() {
        let names = display_paths(&undone);
        parts.warn(format!(
            "the agent changed files while it drafted the plan; the changes were undone: {names}"
        ));
    }
    Ok(())
}

/// Writes the plan and commits it if requested.
fn keep(
    parts: &mut Parts<'_>,
    draft: &Draft,
    wanted: &DraftRequest,
) -> anyhow::Result<Option<RevId>> {
    let work_tree = parts.tree.repo.real().work_tree().to_path_buf();
    let new = || new_file(&work_tree, &draft.plan.title);
    let path = wanted.output.clone().unwrap_or_else(new);
    if let Some(parent) = path.parent() {
        let made = fs::create_dir_all(parent);
        made.with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    let commit = if wanted.commits {
        Some(commit(parts, draft, &path)?)
    } else {
        let written = write_atomically(&path, draft.text.as_bytes());
        written.with_context(|| format!("{} cannot be written", path.display()))?;
        None
    };
    let name = path_within(&path, &work_tree);
    if !draft.settings.is_empty() {
        let what = draft.settings.join(" and ");
        parts.warn(format!(
            "the plan contains {what}, which can start programs: read {name} before you run it"
        ));
    }
    parts.accounts.changed_files.insert(name.clone());
    *wanted.written.borrow_mut() = Some(Written {
        path: name.clone(),
        title: draft.plan.title.clone(),
        tasks: draft.plan.tasks.len(),
    });
    Ok(commit)
}

/// The path of a new file, named after the plan.
fn new_file(work_tree: &Path, title: &str) -> PathBuf {
    let mut there = DIRECTORIES.iter().map(|name| work_tree.join(name));
    let there = there.find(|path| path.is_dir());
    let directory = there.unwrap_or_else(|| work_tree.join(DIRECTORIES[0]));
    let stem = stem(title);
    let numbered = (2..).map(|n| format!("{stem}-{n}"));
    let names = std::iter::once(stem.clone()).chain(numbered);
    let mut paths = names.map(|name| directory.join(format!("{name}.yaml")));
    let free = paths.find(|path| path.symlink_metadata().is_err());
    free.unwrap_or(directory)
}

/// Commits only the plan's file. Landing the commit writes the file into the work tree.
fn commit(parts: &mut Parts<'_>, draft: &Draft, path: &Path) -> anyhow::Result<RevId> {
    let in_tree = path
        .strip_prefix(parts.tree.repo.real().work_tree())
        .with_context(|| format!("{} lies outside of the repository", path.display()))?;
    let in_tree = in_tree.as_os_str().as_bytes();
    let (raw, _) = parts.snapshot();
    let raw = raw.context("the state of the work tree is unknown")?;
    let content = PlanContent {
        path: in_tree.to_vec(),
        content: draft.text.clone().into_bytes(),
    };
    let title = without_references(&one_line(&draft.plan.title, 200));
    let run = parts.setup.run_link();
    let message = format!("[sprag] Draft plan: {title}\n\nSprag-Run: {run}\n");
    let intent = commit_plan(parts, &raw, Some(content), &message)?
        .with_context(|| format!("{} is ignored by git", path.display()))?;
    parts.emit.emit(EventKind::CommitCreated {
        commit: intent.commit.0.clone(),
        subject: format!("{} ({})", intent.subject, short(&intent.commit)),
        files: vec![display_path(in_tree)],
    });
    Ok(intent.commit)
}
