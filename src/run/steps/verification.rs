//! One verification: run the checks, or recall what they said of this tree.

use super::turn::changed_tests;
use super::{Performer, TaskRun};
use crate::checks::{Progress, Surroundings, Verification, run_checks};
use crate::domain::attempt::{Interruption, Observation, VerificationEnded, VerifyPurpose};
use crate::domain::checks::verdict::Verdict;
use crate::domain::checks::{Matchers, read_matchers};
use crate::domain::event::EventKind;
use crate::domain::snapshot::{Fingerprint, Snapshot};
use crate::git::{ChangeKind, RawSnapshot, display_path};
use crate::process::RUN_ID;
use crate::process::environment::environment;
use crate::run::layout::RunFile;
use crate::settings::TaskConfig;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::Arc;

impl Performer<'_> {
    pub(super) async fn verification(
        &mut self,
        run: &mut TaskRun<'_>,
        _purpose: VerifyPurpose,
    ) -> anyhow::Result<Observation> {
        let (raw_before, before) = self.last_look();
        let key = before.tree().map(|tree| (tree.clone(), check_set(run)));
        let recalled = key.as_ref().and_then(|key| self.verdicts.get(key)).cloned();
        // What is recalled holds for the very tree that it was looked up by.
        let (verification, raw_after, after) = match recalled {
            Some(verification) => {
                self.emit.emit(EventKind::VerificationSkipped {
                    reason: "the checks have already judged this very tree".into(),
                });
                (verification, raw_before.clone(), before.clone())
            }
            None => {
                let verification = self.run_checks(&run.config, raw_before.as_deref()).await?;
                if verification.verdict == Verdict::Aborted {
                    let by = self.interruption().unwrap_or(Interruption::Deadline);
                    return Ok(Observation::interrupted(by));
                }
                let (raw_after, after) = self.settle(raw_before.as_deref());
                (verification, raw_after, after)
            }
        };
        self.judge(run, (&before, &after), &verification);
        let tests = raw_after.as_deref().map(changed_tests).unwrap_or_default();
        let altered = match (raw_before.as_deref(), raw_after.as_deref()) {
            (Some(before), Some(after)) => altered(before, after),
            _ => Vec::new(),
        };
        Ok(Observation::Verified(Box::new(VerificationEnded {
            failed: verification.failed(),
            tests,
            altered,
            errors: verification.errors(),
            failing_checks: verification.failing_checks(),
            hints: verification.hints(),
            failing_output: verification.failing_output,
            verdict: verification.verdict,
            before,
            after,
            elapsed_ms: self.emit.elapsed_ms(),
        })))
    }

    pub(super) async fn run_checks(
        &mut self,
        config: &TaskConfig,
        before: Option<&RawSnapshot>,
    ) -> anyhow::Result<Verification> {
        self.note_untracked(before)?;
        let env = self.scrubbed(&config.verify_env);
        self.load_matchers(config)?;
        let emit = &mut self.emit;
        let around = Surroundings {
            work_tree: self.repo.real().work_tree(),
            env: &env,
            cancel: &self.cancel,
            run_dir: self.run_dir.root(),
            log: |number, check| RunFile::CheckLog(number, check).path().into_owned(),
            matchers: &self.matchers,
        };
        let mut on_progress = |progress: Progress<'_>| match progress {
            Progress::Started(check) => emit.emit(EventKind::CheckStarted {
                name: check.name.clone(),
                check: check.kind,
            }),
            Progress::Ended(result) => {
                emit.emit(EventKind::CheckEnded(Box::new(result.clone())));
            }
            Progress::Leaked(check, count) => {
                emit.warn(format!(
                    "check {} left {count} processes behind; they were ended",
                    check.name
                ));
            }
            Progress::OddReport(check, what) => {
                emit.warn(format!("check {}: {what}", check.name));
            }
            Progress::LogLost(why) => emit.warn(format!("a check's log is incomplete: {why}")),
        };
        Ok(run_checks(&config.checks, &around, &mut self.checks, &mut on_progress).await)
    }

    /// The problem matchers that the task's checks name, as they stood when the run first looked:
    /// a copy is kept, so that neither the agent's commits nor a resume change them.
    fn load_matchers(&mut self, config: &TaskConfig) -> anyhow::Result<()> {
        let named = config.checks.iter();
        for file in named.filter_map(|check| check.problem_matcher.clone()) {
            if self.matchers.contains_key(&file) {
                continue;
            }
            let digest = blake3::hash(file.as_bytes()).to_hex();
            let copy = RunFile::Matcher(&digest);
            let bytes = match self.run_dir.read(copy) {
                Some(bytes) => Some(bytes),
                None => self.repo.base_file(file.as_bytes())?,
            };
            let read = match &bytes {
                Some(bytes) => {
                    self.run_dir.write(copy, bytes)?;
                    read_matchers(&file, bytes)
                }
                None => Matchers {
                    matchers: Vec::new(),
                    warnings: vec![format!(
                        "{file}: the commit that the run works from has no such file of problem matchers"
                    )],
                },
            };
            for warning in read.warnings {
                self.emit.warn(warning);
            }
            self.matchers.insert(file, read.matchers);
        }
        Ok(())
    }

    /// The allow-listed environment of agents, checks and hooks, and nothing of the runner's.
    pub(super) fn scrubbed(&mut self, extra: &[String]) -> Vec<(OsString, OsString)> {
        let allowed = environment(&self.env, extra);
        for name in &allowed.refused {
            self.emit.warn_once(&format!(
                "{name} is the runner's own and is not passed on; remove it from agent_env or verify_env"
            ));
        }
        let mut env = allowed.variables;
        env.push((RUN_ID.into(), self.run_id.clone().into()));
        env
    }

    /// Files that only the checks created are droppings from now on; what they changed in tracked
    /// files stays.
    pub(super) fn settle(
        &mut self,
        before: Option<&RawSnapshot>,
    ) -> (Option<Arc<RawSnapshot>>, Snapshot) {
        let settled = self.take_droppings(before);
        // Nothing is there to be removed when what ran was no check of ours.
        self.run_dir.remove(RunFile::BeforeChecks);
        settled
    }

    fn take_droppings(
        &mut self,
        before: Option<&RawSnapshot>,
    ) -> (Option<Arc<RawSnapshot>>, Snapshot) {
        let (after, known) = self.look();
        let (Some(before), Some(after)) = (before, after) else {
            return (None, known);
        };
        let there: BTreeSet<&[u8]> = paths(before).collect();
        let new: Vec<Vec<u8>> = after
            .changes
            .iter()
            .filter(|change| change.kind == ChangeKind::Added && change.untracked)
            .map(|change| change.path.clone())
            .filter(|path| !there.contains(path.as_slice()))
            .collect();
        if new.is_empty() {
            return (Some(after), known);
        }
        self.droppings.extend(new);
        self.save_droppings();
        self.look()
    }

    /// What a run of the checks permits and what is remembered of it: both are about one tree, so
    /// there is nothing of either where the checks changed what they judged.
    pub(super) fn judge(
        &mut self,
        run: &mut TaskRun<'_>,
        (before, after): (&Snapshot, &Snapshot),
        verification: &Verification,
    ) {
        let one_tree = before.same_as(after) == Some(true);
        let tree = after.tree().filter(|_| one_tree);
        run.token = tree.and_then(|tree| verification.permit(tree));
        let failed = matches!(verification.verdict, Verdict::Failed { .. });
        run.failed_on = tree.filter(|_| failed).cloned();
        if let Some(tree) = tree.filter(|_| verification.is_lasting()) {
            self.verdicts
                .insert((tree.clone(), check_set(run)), verification.clone());
        }
    }

    /// What was said of trees that the next task cannot come back to is kept no longer, nor what the
    /// sessions of earlier tasks have used.
    pub(super) fn forget_other_trees(&mut self, now: &Snapshot) {
        self.verdicts
            .retain(|(tree, _), _| Some(tree) == now.tree());
        self.session_usage.clear();
    }

    /// A tree of which is known what the checks said under another fingerprint.
    pub(super) fn alias_verdict(
        &mut self,
        run: &TaskRun<'_>,
        judged: Fingerprint,
        now: Fingerprint,
    ) {
        let set = check_set(run);
        if let Some(verification) = self.verdicts.get(&(judged, set.clone())).cloned() {
            self.verdicts.insert((now, set), verification);
        }
    }

    /// What is there before the checks run is on the disk until they are over, so that a run that
    /// dies under them still knows their droppings.
    pub(super) fn note_untracked(&self, before: Option<&RawSnapshot>) -> anyhow::Result<()> {
        let Some(before) = before else { return Ok(()) };
        let there: Vec<&[u8]> = paths(before).collect();
        self.run_dir.write_json(RunFile::BeforeChecks, &there)
    }

    /// Takes up the droppings of an earlier process of this run; those of checks under which it
    /// died included.
    pub(super) fn recall_droppings(&mut self) {
        let read = |file| self.run_dir.read_json::<Vec<Vec<u8>>>(file);
        let known = read(RunFile::CheckArtifacts);
        let known = known.or_else(|| read(RunFile::EarlierCheckArtifacts));
        self.droppings.extend(known.unwrap_or_default());
        let Some(there) = read(RunFile::BeforeChecks) else {
            return;
        };
        let there: BTreeSet<Vec<u8>> = there.into_iter().collect();
        let Ok(now) = self.repo.look(&self.exempt()) else {
            return;
        };
        let new = now.changes.iter().filter(|change| {
            change.kind == ChangeKind::Added && change.untracked && !there.contains(&change.path)
        });
        self.droppings.extend(new.map(|change| change.path.clone()));
        self.save_droppings();
        self.run_dir.remove(RunFile::BeforeChecks);
    }

    fn save_droppings(&mut self) {
        let list: Vec<&Vec<u8>> = self.droppings.iter().collect();
        if let Err(error) = self.run_dir.write_json(RunFile::CheckArtifacts, &list) {
            self.warn(format!("{error:#}"));
        }
    }
}

/// Files that are not as they were.
fn altered(before: &RawSnapshot, after: &RawSnapshot) -> Vec<String> {
    let one_side = |one: &RawSnapshot, other: &RawSnapshot| -> Vec<Vec<u8>> {
        let news = one.changes.iter().filter(|it| !other.changes.contains(it));
        news.map(|change| change.path.clone()).collect()
    };
    let mut all = one_side(after, before);
    all.extend(one_side(before, after));
    all.sort();
    all.dedup();
    all.iter().map(|path| display_path(path)).collect()
}

fn paths(snapshot: &RawSnapshot) -> impl Iterator<Item = &[u8]> {
    let all = snapshot.changes.iter().chain(&snapshot.uncounted);
    all.map(|change| change.path.as_slice())
}

/// Names the set of checks, for the memory of verdicts.
fn check_set(run: &TaskRun<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    for check in &run.config.checks {
        hasher.update(format!("{check:?}\0").as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
