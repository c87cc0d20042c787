//! Unfinished work that outlives the machine: before each further task, and at every end that is no
//! success, commits that were not pushed, the state of the work tree and what the run knows are in a
//! reference of the repository that is no branch.

use crate::context::Context;
use crate::domain::kept_work::{KeptMeta, is_outdated, key, message};
use crate::domain::outcome::RunStatus;
use crate::domain::snapshot::RevId;
use crate::git::{Identity, KEPT_WORK_REFS, KeptWorkRef, RawSnapshot, Remote};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::delivery::Delivered;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::process::{Cancel, CancelReason};
use crate::run::emitter::Emitter;
use crate::run::layout::RunFile;
use crate::run::parts::Parts;
use crate::run::prepare::Source;
use crate::run::setup::Setup;
use crate::run::steps::secrets_in;
use crate::run::work_tree::WorkTree;
use std::time::{Duration, Instant};

/// What is kept of the run directory.
pub(crate) const KEPT_FILES: [RunFile<'static>; 7] = [
    RunFile::Manifest,
    RunFile::History,
    RunFile::EventRecord,
    RunFile::Plan,
    RunFile::Request,
    RunFile::StartCommit,
    RunFile::FinalMessage,
];

/// The file that says how to fetch the rest.
pub(crate) const META: &str = "meta.json";

/// How long keeping the work may take when the job is being cancelled.
const PATIENCE_OF_CANCELLED: Duration = Duration::from_secs(3);

/// How long GitHub may take to name what is kept.
const PATIENCE: Duration = Duration::from_secs(20);

/// Outdated references that one run looks at.
const LOOKED_AT: usize = 5;

const IDENTITY: (&str, &str) = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
);

/// Keeps the work of a run that may push.
pub struct WorkKeeper {
    remote: Remote,
    name: KeptWorkRef,
    /// The base that was kept last, or that the remote has.
    known: Option<RevId>,
    /// Whether the reference is known to be there.
    is_there: bool,
}

/// The reference for the work of a request.
pub(crate) fn reference(request: &RunRequest, source: &Source) -> Option<KeptWorkRef> {
    let branch = &request.branch.as_ref()?.name;
    let what = match (&request.queued, request.number, source) {
        (Some(_), ..) => branch.rsplit('/').next().unwrap_or(branch).to_owned(),
        (None, Some(number), _) if request.is_pull => format!("pull-{number}"),
        (None, Some(number), _) => format!("issue-{number}"),
        (None, None, Source::File(path) | Source::Known { path, .. }) => {
            let name = path.file_stem().unwrap_or_default();
            format!("plan-{}", name.to_string_lossy())
        }
        (None, None, Source::Prompt(text) | Source::Text(text)) => {
            format!("task-{}", &blake3::hash(text.as_bytes()).to_hex()[..12])
        }
    };
    let all = format!("{}\0{branch}\0{what}", request.context.place.name.as_str());
    let digest = blake3::hash(all.as_bytes()).to_hex();
    Some(KeptWorkRef::of(&key(&what, &digest[..10])))
}

impl WorkKeeper {
    /// Keeps the work of this run; `None` where nothing may be pushed. `is_there` says that the run was
    /// taken up from the reference.
    pub(crate) fn of(
        context: &Context,
        request: Option<&RunRequest>,
        (source, base): (&Source, Option<RevId>),
        is_there: bool,
    ) -> Option<Self> {
        let request = request.filter(|request| request.delivery.push)?;
        let actions = ActionsEnvironment::of(context)?;
        Some(Self {
            remote: remote(context, &actions).ok()?,
            name: reference(request, source)?,
            known: base,
            is_there,
        })
    }

    /// Keeps commits that were made since the work was kept last. A failure is said and stops nothing.
    pub(crate) fn keep_commits(
        &mut self,
        setup: &Setup,
        tree: &mut WorkTree,
        emit: &mut Emitter<'_>,
    ) {
        if tree.repo.base() == self.known {
            return;
        }
        let cancel = setup.cancel.beyond_deadline();
        match self.keep(setup, tree, None, 0, &cancel) {
            Ok(()) => self.known = tree.repo.base(),
            Err(why) => emit.warn_once(&format!("the commits are in this job alone: {why}")),
        }
    }

    fn keep(
        &mut self,
        setup: &Setup,
        tree: &mut WorkTree,
        snapshot: Option<&RawSnapshot>,
        ended: u64,
        cancel: &Cancel,
    ) -> Result<(), String> {
        let start = setup.start_commit().ok_or("there is no commit")?;
        let base = tree.repo.base().ok_or("there is no commit")?;
        let between = tree.repo.commits_between(&start, &base);
        let commits = between.map_err(|error| error.to_string())?.len();
        let meta = KeptMeta::of(u32::try_from(commits).unwrap_or(u32::MAX), ended);
        let mut files = vec![(
            META.to_owned(),
            serde_json::to_vec(&meta).map_err(|error| error.to_string())?,
        )];
        for file in KEPT_FILES {
            if let Some(bytes) = setup.run_dir.read(file) {
                // The reference is as public as the repository.
                let bytes = setup.redactor.redact_bytes(&bytes).into_owned();
                files.push((file.path().into_owned(), bytes));
            }
        }
        let identity = Identity {
            name: IDENTITY.0.to_owned(),
            email: IDENTITY.1.to_owned(),
        };
        let message = message(&tree.plan.plan.title, jiff::Timestamp::now().as_second());
        let message = setup.redactor.redact(&message);
        let commit = tree.repo.keep_work(snapshot, &files, (&identity, &message));
        let commit = commit.map_err(|error| error.to_string())?;
        let pushed = tree
            .repo
            .push_kept_work(&self.remote, &self.name, Some(&commit), cancel);
        pushed.map_err(|error| error.to_string())?;
        self.is_there = true;
        Ok(())
    }

    fn remove(&mut self, tree: &WorkTree, cancel: &Cancel) -> Result<(), String> {
        let removed = tree
            .repo
            .push_kept_work(&self.remote, &self.name, None, cancel);
        removed.map_err(|error| error.to_string())?;
        self.is_there = false;
        Ok(())
    }
}

/// At the end of a run: keeps what did not land, or removes what was kept of work that did.
pub(crate) async fn settle(
    context: &Context,
    parts: &mut Parts<'_>,
    (status, delivered): (RunStatus, Delivered),
    trigger: Option<&str>,
) {
    let Some(mut keeper) = parts.keeper.take() else {
        return;
    };
    let is_success = matches!(
        status,
        RunStatus::Success | RunStatus::Unverified | RunStatus::NoWork
    );
    let has_landed = is_success && delivered != Delivered::Failed;
    let (raw, _) = parts.tree.snapshot(&mut parts.emit);
    let dirty = raw.filter(|raw| !raw.changes.is_empty());
    let base = parts.tree.repo.base();
    let has_commits = base != parts.setup.start_commit() && delivered != Delivered::Done;
    let stopped = parts.setup.cancel.beyond_deadline();
    let cancel = match stopped.reason() {
        Some(_) => ends_after(PATIENCE_OF_CANCELLED),
        None => stopped.clone(),
    };
    if has_landed || (dirty.is_none() && !has_commits) {
        if stopped.reason().is_none() {
            tidy(context, &mut keeper, parts, &cancel).await;
        }
        return;
    }
    let clean = dirty.filter(|raw| {
        let secrets = secrets_in(&parts.setup, &parts.tree, raw, true);
        if !secrets.is_empty() {
            let why = format!(
                "the work tree is not kept on GitHub: {}",
                secrets.join("; ")
            );
            parts.emit.warn(why);
        }
        secrets.is_empty()
    });
    if clean.is_none() && !has_commits {
        return;
    }
    let ended = parts.emit.last();
    let kept = keeper.keep(
        &parts.setup,
        &mut parts.tree,
        clean.as_deref(),
        ended,
        &cancel,
    );
    let go_on = match trigger {
        Some(phrase) => format!("`{phrase} continue`, or the job run again,"),
        None => "the job run again, or `sprag run --resume --from-remote`,".to_owned(),
    };
    parts.emit.warn(match kept {
        Ok(()) => format!(
            "the unfinished work is kept for 30 days as {}: {go_on} goes on with it",
            keeper.name.full()
        ),
        Err(why) => format!("the unfinished work is in this job alone: {why}"),
    });
}

/// Removes what was kept of work that has landed, and what is too old to be of use.
async fn tidy(context: &Context, keeper: &mut WorkKeeper, parts: &mut Parts<'_>, cancel: &Cancel) {
    let Some(actions) = ActionsEnvironment::of(context) else {
        return;
    };
    let client = actions
        .client()
        .map(|it| it.until(Instant::now() + PATIENCE));
    let Ok(repo) = client.and_then(|client| client.repo(&actions.place.repository)) else {
        return;
    };
    let there = repo.refs_below(KEPT_WORK_REFS).await;
    // A reference that nobody saw is looked for by the next run.
    let there = there.unwrap_or_default();
    keeper.is_there |= there.iter().any(|(name, _)| name == keeper.name.full());
    if keeper.is_there
        && let Err(why) = keeper.remove(&parts.tree, cancel)
    {
        let name = keeper.name.full();
        parts
            .emit
            .warn(format!("{name} could not be removed: {why}"));
    }
    let now = jiff::Timestamp::now().as_second();
    let others = there.iter().filter(|(name, _)| name != keeper.name.full());
    for (name, commit) in others.take(LOOKED_AT) {
        let facts = repo.git_commit(commit).await;
        if facts.is_ok_and(|facts| is_outdated(&facts.message, now)) {
            // What cannot be removed now is found once more.
            let _ = repo.delete_ref(name).await;
        }
    }
}

/// A flag that rises by itself.
fn ends_after(patience: Duration) -> Cancel {
    let cancel = Cancel::new();
    let raised = cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(patience);
        raised.trigger(CancelReason::Terminate);
    });
    cancel
}
