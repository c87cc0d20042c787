//! Saves the work of a run in a reference of the repository that is not a branch: unpushed commits, the
//! work tree, and the state of the run.

use crate::context::Context;
use crate::domain::kept_work::{KeptMeta, key, message};
use crate::domain::queue::name_of;
use crate::domain::snapshot::RevId;
use crate::git::{KeptWorkRef, RawSnapshot, Remote, path_in_tree};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::process::Cancel;
use crate::run::begin::work::Source;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::setup::Setup;
use crate::run::state::work_tree::WorkTree;
use crate::run::steps::identity::identity_of_commits;
use std::path::Path;

/// The files of the run directory that are saved.
pub(crate) const KEPT_FILES: [RunFile<'static>; 10] = [
    RunFile::Manifest,
    RunFile::History,
    RunFile::EventRecord,
    RunFile::Plan,
    RunFile::Request,
    RunFile::StartCommit,
    RunFile::OriginalTests,
    RunFile::FinalMessage,
    RunFile::Answer,
    RunFile::Notes,
];

/// Where `sprag init` and `sprag plan` write plans.
const USUAL_PLANS: &str = ".sprag/plans/";

/// The file that says how to fetch the rest.
pub(crate) const META: &str = "meta.json";

/// Saves the work of a run that may push.
pub struct WorkKeeper {
    remote: Remote,
    pub(crate) name: KeptWorkRef,
    /// The base commit that was saved last, or that the remote has.
    known: Option<RevId>,
    /// Whether the reference is known to exist.
    pub(crate) is_there: bool,
}

/// The reference for the work of a request.
pub(crate) fn reference(
    request: &RunRequest,
    source: &Source,
    work_tree: &Path,
) -> Option<KeptWorkRef> {
    let branch = &request.branch.as_ref()?.name;
    let place = request.context.place.name.as_str();
    let mut path_apart = String::new();
    let what = match (&request.queued, request.number, source) {
        (Some(_), ..) => branch.rsplit('/').next().unwrap_or(branch).to_owned(),
        (None, Some(number), _) if request.is_pull => format!("pull-{number}"),
        (None, Some(number), _) => format!("issue-{number}"),
        (None, None, Source::File(path) | Source::Known { path, .. }) => {
            // Plans in other directories can have the same name.
            let inside = path_in_tree(path, work_tree);
            if inside != format!("{USUAL_PLANS}{}.yaml", name_of(&inside)) {
                path_apart = format!("\0{inside}");
            }
            let name = path.file_stem().unwrap_or_default();
            format!("plan-{}", name.to_string_lossy())
        }
        (None, None, Source::Prompt(text) | Source::Text(text)) => {
            format!("task-{}", &blake3::hash(text.as_bytes()).to_hex()[..12])
        }
    };
    let all = format!("{place}\0{branch}\0{what}{path_apart}");
    let digest = blake3::hash(all.as_bytes()).to_hex();
    Some(KeptWorkRef::of(&key(&what, &digest[..10])))
}

impl WorkKeeper {
    /// The keeper for a run; `None` if it may not push. `is_there` means that the run was restored from
    /// the reference.
    pub(crate) fn of(
        context: &Context,
        request: &RunRequest,
        name: KeptWorkRef,
        base: Option<RevId>,
        is_there: bool,
    ) -> Option<Self> {
        let actions = ActionsEnvironment::of(context).filter(|_| request.delivery.push)?;
        Some(Self {
            remote: remote(context, &actions).ok()?,
            name,
            known: base,
            is_there,
        })
    }

    /// Saves the commits made since the last time. A failure is only a warning.
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
            Err(why) => emit.warn_once(&format!("the commits are only in this job: {why}")),
        }
    }

    /// Saves all work, or only the commits without a snapshot. `ended` is the number of the last event
    /// of a process that ends in order, else 0.
    pub(crate) fn keep(
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
        let meta = serde_json::to_vec(&meta).map_err(|error| error.to_string())?;
        let mut files = vec![(META.to_owned(), meta)];
        for file in KEPT_FILES {
            if let Some(bytes) = setup.run_dir.read(file) {
                // The reference is as public as the repository.
                let bytes = setup.redactor.redact_bytes(&bytes).into_owned();
                files.push((file.path().into_owned(), bytes));
            }
        }
        let identity = identity_of_commits(true, &tree.repo);
        let message = message(&tree.plan.plan.title, jiff::Timestamp::now().as_second());
        let message = setup.redactor.redact(&message);
        let commit = tree.repo.keep_work(snapshot, &files, &identity, &message);
        let commit = commit.map_err(|error| error.to_string())?;
        self.push(tree, Some(&commit), cancel)
    }

    /// The notes of an earlier run of the same request. `None` if they cannot be fetched.
    pub(crate) fn notes(&mut self, tree: &WorkTree) -> Option<Vec<u8>> {
        let cancel = Cancel::new();
        let fetched = tree
            .repo
            .fetch_kept_work(&self.remote, &self.name, 0, &cancel);
        let work = fetched.ok().flatten()?;
        self.is_there = true;
        let name = RunFile::Notes.path();
        tree.repo.file_of_kept_work(&work, &name).ok().flatten()
    }

    /// Removes the saved work.
    pub(crate) fn remove(&mut self, tree: &WorkTree, cancel: &Cancel) -> Result<(), String> {
        self.push(tree, None, cancel)
    }

    fn push(
        &mut self,
        tree: &WorkTree,
        commit: Option<&RevId>,
        cancel: &Cancel,
    ) -> Result<(), String> {
        let pushed = (tree.repo).push_kept_work(&self.remote, &self.name, commit, cancel);
        pushed.map_err(|error| error.to_string())?;
        self.is_there = commit.is_some();
        Ok(())
    }
}
