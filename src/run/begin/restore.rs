//! Restores the unfinished work of another machine: its commits, its work tree, and the state of the
//! run.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::kept_work::KeptMeta;
use crate::error::{Error, Result};
use crate::git::{BranchName, KeptWork, KeptWorkRef, Real, Remote, Repo};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup::remote;
use crate::github::request::RunRequest;
use crate::process::Cancel;
use crate::run::begin::source::PreparedSource;
use crate::run::deliver::work_keeper::{KEPT_FILES, META, reference};
use crate::run::state::directory::{Manifest, PlanPath, RunDir};
use crate::run::state::layout::{Folder, RunFile};
use crate::run::state::places::create_run_dir;
use std::path::Path;

/// A file of a run directory and its content, if it was kept.
type KeptFile = (RunFile<'static>, Option<Vec<u8>>);

/// Whether a job only continues unfinished work, because that was asked for, or also does without: on a request to
/// continue or in a rerun. `None` if it does not look for any.
fn must_exist(context: &Context, args: &RunArgs, request: &RunRequest) -> Option<bool> {
    let may_push = request.branch.is_some() && !request.context.report_only;
    let attempt = context.var("GITHUB_RUN_ATTEMPT").unwrap_or("1");
    match (args.from_remote, request.continues || attempt != "1") {
        // A dry run changes nothing, and an integration can read its shards again.
        _ if args.dry_run || !args.shards.is_empty() => None,
        (true, _) => Some(true),
        _ if request.continues && request.state.asked.is_none() => Some(true),
        (false, true) if may_push => Some(false),
        _ => None,
    }
}

/// Restores unfinished work: the branch at its last verified commit, the work tree as it was, and a run
/// directory with the state of the run. `None` if there is none.
///
/// # Errors
/// When it cannot be fetched or does not match this request.
pub(crate) fn restore(
    context: &Context,
    args: &RunArgs,
    asked: &PreparedSource,
) -> Result<Option<RunDir>> {
    let (real, source) = (&asked.real, &asked.source);
    let Some(request) = &asked.request else {
        return Ok(None);
    };
    let Some(must_exist) = must_exist(context, args, request) else {
        return Ok(None);
    };
    let nothing = |why: &str| {
        if must_exist {
            Err(
                Error::config(format!("there is no unfinished work: {why}")).hint(
                    if request.continues {
                        "describe the work to do"
                    } else {
                        "start a new run, without --resume and --from-remote"
                    },
                ),
            )
        } else {
            Ok(None)
        }
    };
    let actions = ActionsEnvironment::of(context);
    let (Some(actions), Some(name)) = (actions, reference(request, source, real.work_tree()))
    else {
        return nothing("the branch or the access to GitHub is unknown");
    };
    let failed = |error: &dyn std::fmt::Display| {
        Error::environment(format!("{} cannot be restored: {error}", name.full()))
            .hint("rerun the job, or make a new request; the kept work stays where it is")
    };
    let remote = remote(context, &actions).map_err(|error| failed(&error))?;
    let place = context.place_for_a_moment("sprag-restore-")?;
    let mut repo = Repo::create(real.clone(), &place.path().join(Folder::Git.name()))
        .map_err(|error| failed(&error))?;
    let work = fetched(&repo, &remote, &name, 0).map_err(|error| failed(&error))?;
    let Some(work) = work else {
        return nothing(&format!("there is no {}", name.full()));
    };
    let (meta, kept) = match files_for(request, &repo, &work) {
        Ok(kept) => kept,
        Err(why) => return nothing(why),
    };
    let branch = request.branch.as_ref().map(|branch| branch.name.as_str());
    let branch = BranchName::parse(branch.unwrap_or_default()).map_err(|error| failed(&error))?;
    repo.switch_to(&remote, &branch, &work.base, &Cancel::new())
        .map_err(|error| failed(&error))?;
    // Switching fetched only the history that it needs. The start commit of the run is needed, too.
    fetched(&repo, &remote, &name, meta.commits).map_err(|error| failed(&error))?;
    drop(repo);
    let root = asked.above.run_dir.as_ref();
    let root = root.map(|dir| context.cwd.join(dir));
    let run_dir = create_run_dir(context, real.work_tree(), root)?;
    let mut own =
        Repo::create(real.clone(), &run_dir.folder(Folder::Git)).map_err(|error| failed(&error))?;
    if let Some(tree) = &work.tree {
        own.check_out_tree(tree).map_err(|error| failed(&error))?;
    }
    written(&run_dir, real, &kept, meta).map_err(|error| failed(&error))?;
    Ok(Some(run_dir))
}

/// The files that are kept with the work of this request, or why they are not used.
fn files_for(
    request: &RunRequest,
    repo: &Repo,
    work: &KeptWork,
) -> std::result::Result<(KeptMeta, Vec<KeptFile>), &'static str> {
    let file = |name: &str| repo.file_of_kept_work(work, name).ok().flatten();
    let meta = file(META)
        .and_then(|bytes| KeptMeta::read(&bytes))
        .ok_or("the kept work is from another version of Sprag")?;
    let kept = KEPT_FILES.map(|it| (it, file(&it.path())));
    let earlier = kept.iter().find_map(|(it, bytes)| {
        let bytes = bytes.as_ref().filter(|_| *it == RunFile::Request)?;
        serde_json::from_slice::<RunRequest>(bytes).ok()
    });
    match earlier.map(|earlier| earlier.state.asked) {
        Some(asked)
            if request.continues && request.state.asked.is_none()
                || asked == request.state.asked =>
        {
            Ok((meta, kept.into()))
        }
        _ => Err("the kept work is for a different request"),
    }
}

fn fetched(
    repo: &Repo,
    remote: &Remote,
    name: &KeptWorkRef,
    commits: u32,
) -> std::result::Result<Option<KeptWork>, crate::git::RemoteError> {
    repo.fetch_kept_work(remote, name, commits, &Cancel::new())
}

/// Writes the saved files, with the paths of this machine. The manifest comes last.
fn written(run_dir: &RunDir, real: &Real, kept: &[KeptFile], meta: KeptMeta) -> anyhow::Result<()> {
    let mut manifest = None;
    for (file, bytes) in kept {
        match (file, bytes) {
            (_, None) => {}
            (RunFile::Manifest, Some(bytes)) => manifest = Some(bytes),
            // This run has a request of its own.
            (RunFile::Request, _) => {}
            (file, Some(bytes)) => drop(run_dir.write(*file, bytes)?),
        }
    }
    run_dir.write(RunFile::Ended, meta.ended.to_string().as_bytes())?;
    let manifest = manifest.ok_or_else(|| anyhow::anyhow!("it has no manifest"))?;
    let mut manifest: Manifest = serde_json::from_slice(manifest)?;
    let moved = |path: &Path| match path.strip_prefix(&manifest.work_tree) {
        Ok(inside) => real.work_tree().join(inside),
        Err(_) => path.to_path_buf(),
    };
    manifest.plan = manifest.plan.as_ref().map(|plan| PlanPath(moved(&plan.0)));
    manifest.config = None;
    manifest.trusted = None;
    // The flags come from this job's command line, never from a reference that other people may write.
    manifest.flags = serde_json::Value::Null;
    manifest.work_tree = real.work_tree().to_path_buf();
    run_dir.write_manifest(&manifest)
}
