//! One commit: the verified tree and the plan's status, made by Sprag.

use super::turn::changed_paths;
use super::{HOOK_TIMEOUT, Performer, TaskRun};
use crate::checks::permit_unchecked;
use crate::domain::attempt::{Grounds, Observation};
use crate::domain::commit_message::{compose, suggested_commit_message};
use crate::domain::event::EventKind;
use crate::domain::outcome::short;
use crate::domain::plan::{StatusUpdate, TaskStatus};
use crate::domain::settings::AgentCommits;
use crate::domain::snapshot::{Head, RevId, Snapshot};
use crate::error::machine_fault;
use crate::git::{
    CommitError, CommitRequest, Hook, Identity, LandingIntent, PlanContent, RawSnapshot, Stage,
    Staged, display_path, display_paths,
};
use crate::permit::Committable;
use crate::process::{CommandSpec, Exit, HeadTail, Input, Limits, clean_text, run};
use crate::run::layout::RunFile;
use anyhow::anyhow;

/// The identity of GitHub's own bot, as its documentation gives it.
const BOT: (&str, &str) = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
);

const UNREAD: &str = "the state of the repository could not be read";

/// How much of a hook's words is kept.
const HOOK_OUTPUT: usize = 16 << 10;

/// What a hook made of a commit.
enum Hooked {
    Agreed(String),
    Ended(Observation),
}

impl Performer<'_> {
    pub(super) async fn commit(
        &mut self,
        run: &mut TaskRun<'_>,
        grounds: Grounds,
    ) -> anyhow::Result<Observation> {
        let observation = match self.try_commit(run, grounds).await {
            Ok(observation) => observation,
            // Nothing that an agent could do about it, and the work is good: the run stops here and
            // goes on here, on whichever side of the commit point it stopped.
            Err(error) if machine_fault(&error).is_some() => return Err(error),
            Err(error) => Observation::CommitFailed {
                message: format!("nothing was committed: {error:#}"),
            },
        };
        if let Observation::CommitFailed { message } | Observation::HookRejected { message } =
            &observation
        {
            self.emit.emit(EventKind::CommitRejected {
                reason: message.clone(),
            });
        }
        Ok(observation)
    }

    async fn try_commit(
        &mut self,
        run: &mut TaskRun<'_>,
        grounds: Grounds,
    ) -> anyhow::Result<Observation> {
        // What was verified may have changed since, by somebody whom Sprag has not started.
        let (raw, state) = self.look();
        let raw = raw.ok_or_else(|| match state {
            // As a cause of its own, so that a full disk is known for one.
            Snapshot::Unknown { why } => anyhow!(why).context(UNREAD),
            Snapshot::Known(_) => anyhow!(UNREAD),
        })?;
        // Checks may change files that are committed, too.
        if let Some(what) = self.secrets_in(&raw, run).first() {
            return Err(anyhow!("{what}"));
        }
        let token = match grounds {
            Grounds::Unchecked => permit_unchecked(&run.config.checks, raw.fingerprint()),
            Grounds::Passed => run.token.take(),
            Grounds::KnownFailures => run.failed_on.take().map(Committable::known_failures),
        };
        let token = token.ok_or_else(|| anyhow!("no verification permits it"))?;
        let parent = match run.config.agent_commits {
            AgentCommits::Squash => self.repo.base(),
            AgentCommits::Accept | AgentCommits::Reject => head_of(&raw),
        };
        let done = self.done_status(run);
        let plan = self.book.content(Some((&run.task.id, &done)))?;
        let Some(staged) = self.stage(token, &raw, plan, parent)? else {
            return self.nothing_to_commit(run, &raw);
        };
        let message = self.message(run);
        let message = match self.hooks(run, &staged, &raw, message).await? {
            Hooked::Agreed(message) => message,
            Hooked::Ended(observation) => return Ok(observation),
        };
        let identity = self.identity();
        let intent = self.repo.commit_tree(staged, &message, &identity)?;
        self.run_dir.write_json(RunFile::Landing, &intent)?;
        run.journal.observe(Observation::CommitPrepared {
            commit: intent.commit.clone(),
        })?;
        if let Some(by) = self.interruption() {
            return Ok(Observation::interrupted(by));
        }
        self.land(&intent)?;
        self.mark_done(run)?;
        self.landed(run, &intent, changed_paths(&raw));
        Ok(Observation::Committed {
            commit: Some(intent.commit),
        })
    }

    fn stage(
        &mut self,
        token: Committable,
        raw: &RawSnapshot,
        plan: Option<PlanContent>,
        parent: Option<RevId>,
    ) -> Result<Option<Staged>, CommitError> {
        match self.repo.change().stage(
            token,
            &CommitRequest {
                snapshot: raw,
                plan,
                parent,
            },
        )? {
            Stage::Ready(staged) => Ok(Some(staged)),
            Stage::Nothing => Ok(None),
        }
    }

    /// The agent's own commits hold everything already, or the plan is elsewhere and nothing is
    /// left: the task is done without a commit of Sprag's.
    fn nothing_to_commit(
        &mut self,
        run: &TaskRun<'_>,
        raw: &RawSnapshot,
    ) -> anyhow::Result<Observation> {
        if let Some(head) = head_of(raw).filter(|head| Some(head) != self.repo.base().as_ref()) {
            self.repo.change().advance_base(&head)?;
            self.changed_files.extend(changed_paths(raw));
        }
        self.mark_done(run)?;
        Ok(Observation::Committed { commit: None })
    }

    fn land(&mut self, intent: &LandingIntent) -> Result<(), CommitError> {
        let warnings = self.repo.change().land(intent)?;
        for warning in warnings {
            self.warn(warning);
        }
        Ok(())
    }

    /// The bookkeeping after the commit point.
    fn landed(&mut self, run: &TaskRun<'_>, intent: &LandingIntent, files: Vec<String>) {
        self.book.saved();
        self.carry_verdict(run);
        self.changed_files.extend(files.iter().cloned());
        // What is said of the commit is what can be read back of it. Its parent may be a commit of
        // the agent's, so that is not all that the task changed.
        let files = self
            .repo
            .read_back(&intent.commit)
            .map_or(files, |seen| seen.files);
        self.emit.emit(EventKind::CommitCreated {
            commit: intent.commit.0.clone(),
            subject: intent.subject.clone(),
            files,
        });
        self.name_leftovers();
    }

    fn mark_done(&mut self, run: &TaskRun<'_>) -> anyhow::Result<()> {
        let status = self.done_status(run);
        self.book.set(&run.task.id, status);
        self.book.save_outside()
    }

    /// What the checks said of the tree holds for the commit of it too.
    fn carry_verdict(&mut self, run: &TaskRun<'_>) {
        let judged = run
            .journal
            .state
            .current
            .as_ref()
            .and_then(|current| current.tree())
            .cloned();
        let Ok(now) = self.repo.look(&self.exempt()) else {
            return;
        };
        let Some(judged) = judged else { return };
        self.alias_verdict(run, judged, now.fingerprint().clone());
    }

    /// Changes that no commit of this repository can hold.
    pub(super) fn name_submodules(&mut self) {
        let dirty = self.repo.dirty_submodules();
        if !dirty.is_empty() {
            let names = display_paths(&dirty);
            self.emit.warn_once(&format!(
                "files changed inside submodules were not committed: {names}; only a submodule's own commits are"
            ));
        }
    }

    /// Afterwards the tree is clean, but for what is named here.
    fn name_leftovers(&mut self) {
        self.name_submodules();
        let (Some(raw), _) = self.last_look() else {
            return;
        };
        let dirty: Vec<String> = raw
            .dirty_paths()
            .iter()
            .map(|path| display_path(path))
            .collect();
        if !dirty.is_empty() {
            self.warn(format!(
                "the tree is not clean after the commit: {}",
                dirty.join(", ")
            ));
        }
        if !raw.droppings.is_empty() {
            let names = display_paths(&raw.droppings);
            self.emit.warn_once(&format!(
                "files that only the checks created were not committed: {names}; add them to .gitignore"
            ));
        }
        if !raw.nested.is_empty() {
            let names = display_paths(&raw.nested);
            self.emit
                .warn_once(&format!("nested repositories were not committed: {names}"));
        }
    }

    fn done_status(&self, run: &TaskRun<'_>) -> StatusUpdate {
        StatusUpdate {
            status: TaskStatus::Done,
            attempts: Some(run.journal.state.attempt()),
            completed_at: Some(completed_at()),
        }
    }

    fn message(&self, run: &TaskRun<'_>) -> String {
        let suggested = run
            .final_message
            .as_deref()
            .and_then(suggested_commit_message);
        let trailers = [
            (
                "Sprag-Task".to_owned(),
                format!("{}/{}", self.plan_name(), run.task.id),
            ),
            ("Sprag-Run".to_owned(), self.run_link()),
        ];
        let message = compose(
            suggested.as_ref(),
            run.task.id.as_str(),
            &run.task.title,
            &trailers,
        );
        (self.redact)(&message)
    }

    /// The plan's short name: its id, or its file's name without the ending.
    fn plan_name(&self) -> String {
        let file = self
            .book
            .file
            .as_ref()
            .and_then(|file| file.path.file_stem());
        let stem = file.map(|stem| stem.to_string_lossy().into_owned());
        let name = self
            .book
            .plan
            .id
            .clone()
            .or(stem)
            .unwrap_or_else(|| "prompt".into());
        name.chars()
            .map(|c| if c.is_control() || c == '/' { '-' } else { c })
            .collect()
    }

    /// The run's page in Actions, its id elsewhere.
    fn run_link(&self) -> String {
        let get = |name: &str| {
            let value = self
                .env
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value);
            value
                .and_then(|value| value.to_str())
                .filter(|value| !value.is_empty())
        };
        let page = self.in_actions.then(|| {
            let server = get("GITHUB_SERVER_URL").unwrap_or("https://github.com");
            Some(format!(
                "{server}/{}/actions/runs/{}",
                get("GITHUB_REPOSITORY")?,
                get("GITHUB_RUN_ID")?
            ))
        });
        page.flatten().unwrap_or_else(|| self.run_id.clone())
    }

    fn identity(&mut self) -> Identity {
        let of = |(name, email): (&str, &str)| Identity {
            name: name.into(),
            email: email.into(),
        };
        if self.in_actions {
            return of(BOT);
        }
        if let Some(identity) = self.repo.configured_identity() {
            return identity;
        }
        self.emit.warn_once(
            "git knows no user.name and user.email; commits are made as sprag <sprag@localhost>",
        );
        of(("sprag", "sprag@localhost"))
    }

    /// pre-commit and commit-msg, as they stood when the run began.
    async fn hooks(
        &mut self,
        run: &TaskRun<'_>,
        staged: &Staged,
        raw: &RawSnapshot,
        message: String,
    ) -> anyhow::Result<Hooked> {
        let first = self
            .hook(run, staged, raw, Hook::PreCommit, &message)
            .await?;
        let Hooked::Agreed(_) = first else {
            return Ok(first);
        };
        self.hook(
            run,
            staged,
            raw,
            Hook::CommitMsg { message: &message },
            &message,
        )
        .await
    }

    async fn hook(
        &mut self,
        task: &TaskRun<'_>,
        staged: &Staged,
        raw: &RawSnapshot,
        hook: Hook<'_>,
        message: &str,
    ) -> anyhow::Result<Hooked> {
        let Some(prepared) = self.repo.prepare_hook(&hook, staged)? else {
            return Ok(Hooked::Agreed(message.to_owned()));
        };
        self.note_untracked(Some(raw))?;
        let mut env = self.scrubbed(&task.config.verify_env);
        env.extend(prepared.env.iter().cloned());
        let spec = CommandSpec {
            program: prepared.program.clone().into(),
            args: prepared.args.clone(),
            cwd: prepared.cwd.clone(),
            env,
            stdin: Input::Null,
            limits: Limits {
                timeout: Some(HOOK_TIMEOUT),
                ..Limits::default()
            },
        };
        let mut kept = HeadTail::new(HOOK_OUTPUT, HOOK_OUTPUT);
        let ended = run(&spec, &self.cancel, &mut |_, chunk: &[u8]| kept.push(chunk)).await;
        if let Exit::Cancelled(reason) = ended.exit {
            let by = super::interruption(reason);
            return Ok(Hooked::Ended(Observation::interrupted(by)));
        }
        let (_, after) = self.settle(Some(raw));
        let changed = after.tree().is_some_and(|tree| tree != raw.fingerprint());
        let may_change = !task.journal.state.hook_changed;
        if changed && (may_change || ended.exit.is_success()) {
            return Ok(Hooked::Ended(Observation::HookChangedTree { after }));
        }
        if !ended.exit.is_success() {
            let (head, tail) = kept.into_parts();
            let words = clean_text(&[head, tail].concat());
            let name = match hook {
                Hook::PreCommit => "pre-commit",
                Hook::CommitMsg { .. } => "commit-msg",
            };
            let message = format!(
                "the {name} hook refused the commit ({}):\n{}",
                ended.exit,
                words.trim()
            );
            return Ok(Hooked::Ended(Observation::HookRejected { message }));
        }
        let message = match hook {
            Hook::PreCommit => message.to_owned(),
            Hook::CommitMsg { .. } => prepared.message()?,
        };
        Ok(Hooked::Agreed(message))
    }

    /// Finds out, after a crash, whether the commit that was about to land did; if so the task is
    /// done.
    ///
    /// # Errors
    /// When the run's own state cannot be read or written.
    pub fn recover_commit(&mut self, run: &mut TaskRun<'_>) -> anyhow::Result<()> {
        let Some(commit) = run.journal.state.prepared.clone() else {
            return Ok(());
        };
        let Some(bytes) = self.run_dir.read(RunFile::Landing) else {
            return Ok(());
        };
        let intent: LandingIntent = serde_json::from_slice(&bytes)?;
        if intent.commit != commit || self.repo.base() != Some(commit.clone()) {
            return Ok(());
        }
        let files = run.journal.state.changes.clone();
        // The plan that was committed says so, and when it was done.
        if !self.book.is_done(&run.task.id) {
            self.mark_done(run)?;
        }
        self.landed(run, &intent, files);
        run.journal.observe(Observation::Committed {
            commit: Some(commit),
        })
    }

    /// The commit that records what no task's commit has: at most one, at the end of the plan.
    ///
    /// # Errors
    /// When it cannot be made; the plan's file is then as it was.
    pub fn plan_end(&mut self) -> anyhow::Result<()> {
        self.book.save_outside()?;
        if !self.book.is_unsaved() || self.config.allow_dirty {
            return Ok(());
        }
        let (Some(raw), _) = self.look() else {
            return Ok(());
        };
        if !raw.dirty_paths().is_empty() {
            self.warn("the plan's status could not be saved: the tree is dirty");
            return Ok(());
        }
        let plan = self.book.content(None)?;
        let Some(staged) = self.stage(Committable::plan_only(), &raw, plan, head_of(&raw))? else {
            self.book.saved();
            return Ok(());
        };
        let message = format!(
            "[sprag] Record the status of {}\n\nSprag-Run: {}\n",
            self.plan_name(),
            self.run_link()
        );
        let identity = self.identity();
        let intent = self.repo.commit_tree(staged, &message, &identity)?;
        self.run_dir.write_json(RunFile::Landing, &intent)?;
        self.land(&intent)?;
        self.book.saved();
        let files = self
            .book
            .file
            .iter()
            .filter_map(|file| file.in_tree.as_deref());
        let files = files.map(display_path).collect();
        self.emit.emit(EventKind::CommitCreated {
            commit: intent.commit.0.clone(),
            subject: format!("{} ({})", intent.subject, short(&intent.commit)),
            files,
        });
        Ok(())
    }
}

pub(super) fn head_of(raw: &RawSnapshot) -> Option<RevId> {
    match &raw.known.head {
        Head::Unborn => None,
        Head::At(id) => Some(id.clone()),
    }
}

/// Now, to the second, in UTC.
fn completed_at() -> String {
    let now = jiff::Timestamp::now();
    let rounded = now.round(jiff::Unit::Second).unwrap_or(now);
    rounded.to_string()
}
