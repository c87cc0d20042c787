//! Reads the shards of a plan. They are untrusted, because their jobs ran foreign code. A shard is a run
//! directory with its commits in a bundle, or a branch.

use crate::commit_policy::{LineLookup, Messages, Policy, violations};
use crate::context::Context;
use crate::domain::commit_message::{reviewed, task_value};
use crate::domain::outcome::{Reason, TaskEnd, short};
use crate::domain::snapshot::RevId;
use crate::domain::spend::believed;
use crate::domain::summary::TaskSummary;
use crate::git::{BranchName, CommitLine, Remote, Repo, display_path};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::lookup;
use crate::plain_file;
use crate::run::begin::beginning::RunPlan;
use crate::run::state::layout::{MANIFEST, SUMMARY};
use crate::run::state::parts::Parts;
use crate::run::state::past_runs;
use crate::run::state::untrusted_run;
use crate::run::steps::identity::identity_of_commits;
use crate::run::steps::plan_name;
use crate::settings::TaskConfig;
use anyhow::{Context as _, anyhow, bail};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The result of one job.
#[derive(Debug, Default)]
pub(super) struct Shard {
    /// The name in messages.
    pub(super) name: String,
    /// Its tasks, in the order of the run.
    pub(super) tasks: Vec<TaskSummary>,
    /// Its commits, oldest first, with cleaned messages.
    pub(super) commits: Vec<Work>,
    /// Why none of it is integrated, one reason per line.
    pub(super) refused: Vec<String>,
}

impl Shard {
    /// Whether it has what a finished task takes: a commit, unless nothing needed doing.
    pub(super) fn has_work_of(&self, task: &TaskSummary) -> bool {
        let mut commits = self.commits.iter();
        task.reason == Some(Reason::AlreadySatisfied) || commits.any(|work| work.task == task.id)
    }
}

/// A commit of a task.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) id: RevId,
    /// The commit as its job made it.
    pub(super) made_as: RevId,
    pub(super) task: String,
    pub(super) subject: String,
    pub(super) files: Vec<String>,
}

/// The location of a shard.
enum ShardLocation {
    Directory(PathBuf),
    Branch(RevId),
}

/// Reads shards.
pub(super) struct ShardReader<'r, 'e> {
    context: &'r Context,
    parts: &'r mut Parts<'e>,
    configs: HashMap<&'r str, (usize, &'r TaskConfig)>,
    /// The remote to fetch branches from, in a job.
    remote: Option<Remote>,
}

impl<'r, 'e> ShardReader<'r, 'e> {
    pub(super) fn new(context: &'r Context, parts: &'r mut Parts<'e>, plan: &'r RunPlan) -> Self {
        let tasks = plan.tasks.iter().enumerate();
        let configs = tasks.map(|(at, (task, start))| (task.id.as_str(), (at, &start.config)));
        let actions = ActionsEnvironment::of(context).filter(|_| context.in_actions());
        Self {
            configs: configs.collect(),
            remote: actions.and_then(|actions| lookup::remote(context, &actions).ok()),
            context,
            parts,
        }
    }

    /// All readable shards, in the order of their first tasks. Unreadable ones cause warnings. A task in
    /// several shards is taken from one in which it is done, else from the first.
    pub(super) fn read(mut self, named: &[String]) -> Vec<Shard> {
        let mut shards = Vec::new();
        for name in named {
            for (name, place) in self.places(name) {
                let read = match place {
                    ShardLocation::Directory(path) => self.of_directory(&name, &path),
                    ShardLocation::Branch(tip) => self.of_branch(&name, &tip),
                };
                match read {
                    Ok(shard) => shards.push(shard),
                    Err(why) => self.parts.warn(format!("shard {name} is missing: {why}")),
                }
            }
        }
        self.each_task_once(&mut shards);
        for shard in shards.iter().filter(|shard| shard.tasks.is_empty()) {
            let why = match shard.refused.as_slice() {
                [] => "it did none of the remaining tasks".to_owned(),
                lines => lines.join("; "),
            };
            let told = format!("nothing is used from shard {}: {why}", shard.name);
            self.parts.warn(told);
        }
        shards.retain(|shard| !shard.tasks.is_empty());
        let place = |task: &TaskSummary| self.place(&task.id);
        shards.sort_by_key(|shard| shard.tasks.iter().filter_map(place).min());
        shards
    }

    /// The locations that a name refers to: a run directory or id, a directory of run directories, or a
    /// branch.
    fn places(&mut self, name: &str) -> Vec<(String, ShardLocation)> {
        let path = self.context.cwd.join(name);
        if path.is_dir() {
            let named =
                |path: PathBuf| (path.display().to_string(), ShardLocation::Directory(path));
            return directories(&path).into_iter().map(named).collect();
        }
        if let Ok(branch) = BranchName::parse(name)
            && let Some(tip) = self.tip_of(&branch)
        {
            return vec![(name.to_owned(), ShardLocation::Branch(tip))];
        }
        match past_runs::directory(self.context, Path::new(name)) {
            Ok(path) if path.is_dir() => vec![(name.to_owned(), ShardLocation::Directory(path))],
            _ => {
                self.parts.warn(format!(
                    "shard {name} is missing: there is no such directory, branch or run"
                ));
                Vec::new()
            }
        }
    }

    fn tip_of(&self, branch: &BranchName) -> Option<RevId> {
        let repo = &self.parts.tree.repo;
        let Some(remote) = &self.remote else {
            return repo.tip_of(branch).ok().flatten();
        };
        let (start, cancel) = (self.parts.setup.start_commit()?, &self.parts.setup.cancel);
        let fetched = repo.fetch_until_fork(remote, &branch.full(), &start, cancel);
        fetched.ok().map(|(tip, _)| tip)
    }

    fn of_directory(&mut self, name: &str, path: &Path) -> anyhow::Result<Shard> {
        let handed = untrusted_run::read(path, &self.parts.setup.redactor)
            .map_err(|error| anyhow!(error.in_one_line()))?;
        let summary = &handed.summary;
        self.expect_plan(summary.facts.plan.path.as_deref())?;
        let any = self.configs.values().next();
        let limit = any.and_then(|(_, config)| config.settings.max_cost_usd);
        let usd = believed(summary.usage.cost_usd, limit);
        let spent = &mut self.parts.accounts.spent_by_shards;
        spent.push((summary.facts.run_id.clone(), usd));
        let ended = summary.tasks.iter().filter_map(brought);
        let mut shard = Shard {
            name: name.to_owned(),
            tasks: ended
                .filter(|task| self.place(&task.id).is_some())
                .collect(),
            ..Shard::default()
        };
        shard.tasks.sort_by_key(|task| self.place(&task.id));
        if let Some(bundle) = &handed.bundle {
            let start = Repo::bundle_base(bundle)?;
            self.expect_in_history(&start)?;
            let line = self.parts.tree.repo.unbundle(bundle, &start)?;
            let run = self.parts.setup.link_of(&summary.facts.run_id);
            self.take(&mut shard, &start, line, &Messages::OfRun(&run))?;
        }
        Ok(shard)
    }

    /// Reads a branch. It shows only the tasks that have commits.
    fn of_branch(&mut self, name: &str, tip: &RevId) -> anyhow::Result<Shard> {
        let repo = &self.parts.tree.repo;
        let base = repo.base().context("the checkout has no commit")?;
        let start = repo
            .fork_point(&base, tip)?
            .context("its history has nothing in common with the branch here")?;
        let line = repo.commits_since(&start, tip)?;
        let line = line.map_err(|no_line| anyhow!(no_line.to_string()))?;
        let mut shard = Shard {
            name: name.to_owned(),
            ..Shard::default()
        };
        self.take(&mut shard, &start, line, &Messages::OfAnyRun)?;
        let mut ids: Vec<String> = shard.commits.iter().map(|work| work.task.clone()).collect();
        ids.sort_by_key(|id| self.place(id));
        ids.dedup();
        shard.tasks = ids.into_iter().map(done).collect();
        Ok(shard)
    }

    fn place(&self, task: &str) -> Option<usize> {
        Some(self.configs.get(task)?.0)
    }

    /// A task of another plan may have the same id.
    fn expect_plan(&self, path: Option<&str>) -> anyhow::Result<()> {
        let file = self.parts.tree.plan.file.as_ref();
        let Some(own) = file.filter(|file| file.in_tree.is_some()) else {
            return Ok(());
        };
        let path = path.context("it is of a run without a plan file")?;
        if path != own.name {
            let path = crate::report::text::short_line(path, 200);
            bail!("it is of the plan {path}, and this one is {}", own.name);
        }
        Ok(())
    }

    /// Requires the branch to continue this commit. In a shallow checkout, a branch that has moved since the shard
    /// began does not show it: the history between them is fetched.
    fn expect_in_history(&self, start: &RevId) -> anyhow::Result<()> {
        let (repo, setup) = (&self.parts.tree.repo, &self.parts.setup);
        let base = repo.base().context("the checkout has no commit")?;
        if base == *start || repo.contains_commit(&base, start) {
            return Ok(());
        }
        if let (Some(remote), Some(tip)) = (&self.remote, setup.start_commit())
            && let Ok((_, fork)) = repo.fetch_until_fork(remote, &start.0, &tip, &setup.cancel)
            && fork.as_ref() == Some(start)
        {
            return Ok(());
        }
        let (start, base) = (short(start), short(&base));
        bail!("its work continues {start}, which is not in the history of {base}");
    }

    /// Adds commits to a shard after the policy has been applied to them.
    fn take(
        &self,
        shard: &mut Shard,
        start: &RevId,
        line: CommitLine,
        messages: &Messages<'_>,
    ) -> anyhow::Result<()> {
        let repo = &self.parts.tree.repo;
        let file = self.parts.tree.plan.file.as_ref();
        let plan = file.and_then(|file| file.in_tree.as_deref());
        let name = plan_name(&self.parts.tree.plan);
        let mut clean = Vec::new();
        let mut works = Vec::new();
        for commit in &line.commits {
            let text = String::from_utf8_lossy(&commit.message);
            let (text, tasks) = match reviewed(&text) {
                Some(read) => (read.text, read.tasks),
                None => (text.into_owned(), Vec::new()),
            };
            let changes = commit
                .changed
                .iter()
                .filter(|it| Some(it.path.as_slice()) != plan);
            let files: Vec<String> = changes.map(|it| display_path(&it.path)).collect();
            let subject = text.lines().next().unwrap_or_default().to_owned();
            clean.push((commit.id.clone(), text.into_bytes()));
            let mut known = tasks.into_iter();
            let is_of_plan = |plan: &str, id: &str| task_value(plan, id) == task_value(&name, id);
            let known = known.find(|(plan, id)| is_of_plan(plan, id) && self.place(id).is_some());
            match known {
                Some((_, task)) => works.push(Work {
                    id: commit.id.clone(),
                    made_as: commit.id.clone(),
                    task,
                    subject,
                    files,
                }),
                // A commit that only changes the plan's status is skipped, because this run writes the
                // status itself.
                None if files.is_empty() => {}
                None => shard.refused.push(format!(
                    "commit {} names none of the remaining tasks of the plan",
                    short(&commit.id)
                )),
            }
        }
        let violations = self.violations(&line, &works, plan, messages);
        shard.refused.extend(violations);
        // Refused commits are not used, so they need no new messages.
        if shard.refused.is_empty() {
            let made = repo.reword(start, &clean)?.commits;
            for work in &mut works {
                let made = made.iter().find(|it| it.old == work.made_as);
                if let Some(new) = made.and_then(|it| it.new.clone()) {
                    work.id = new;
                }
            }
        }
        shard.commits = works;
        Ok(())
    }

    /// Violations in the commits, each according to the settings of its task.
    fn violations(
        &self,
        line: &CommitLine,
        works: &[Work],
        plan: Option<&[u8]>,
        messages: &Messages<'_>,
    ) -> Vec<String> {
        let repo = &self.parts.tree.repo;
        let identities = [identity_of_commits(self.parts.setup.in_actions, repo)];
        let read = |commit: &RevId, path: &[u8]| repo.file_of(commit, path).ok().flatten();
        let detector = self.parts.setup.detector.as_ref();
        let held: LineLookup<'_> = &|commit, text| repo.holds(commit, text).unwrap_or(false);
        let Some((_, any)) = self.configs.values().min_by_key(|(at, _)| *at) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for commit in &line.commits {
            let work = works.iter().find(|it| it.made_as == commit.id);
            let config = work.and_then(|it| Some(self.configs.get(it.task.as_str())?.1));
            let policy = Policy {
                protected: &config.unwrap_or(any).protected_paths,
                plan: plan.and_then(|path| std::str::from_utf8(path).ok()),
                identities: &identities,
                messages: *messages,
                secrets: detector.map(|detector| (detector, held)),
            };
            let one = CommitLine {
                head: commit.id.clone(),
                commits: vec![commit.clone()],
                sizes: line.sizes.clone(),
            };
            found.extend(violations(&one, &policy, &read));
        }
        found
    }

    fn each_task_once(&mut self, shards: &mut [Shard]) {
        let mut owners: BTreeMap<String, (bool, usize)> = BTreeMap::new();
        for (at, shard) in shards.iter().enumerate() {
            for task in &shard.tasks {
                let is_done = task.status == TaskEnd::Done
                    && shard.refused.is_empty()
                    && shard.has_work_of(task);
                let owner = owners.entry(task.id.clone()).or_insert((is_done, at));
                if is_done && !owner.0 {
                    *owner = (true, at);
                }
            }
        }
        for (at, shard) in shards.iter_mut().enumerate() {
            let is_own = |id: &String| owners.get(id).is_none_or(|owner| owner.1 == at);
            let others = shard.tasks.iter().filter(|task| !is_own(&task.id));
            let others: Vec<&str> = others.map(|task| task.id.as_str()).collect();
            if !others.is_empty() {
                self.parts.warn(format!(
                    "shard {}: {} is used from another shard",
                    shard.name,
                    others.join(", ")
                ));
            }
            shard.tasks.retain(|task| is_own(&task.id));
            shard.commits.retain(|work| is_own(&work.task));
        }
    }
}

/// The run directory, or else the subdirectories, because artifacts of several jobs lie side by side.
fn directories(path: &Path) -> Vec<PathBuf> {
    // A run that was killed has no summary.
    let mut marks = [SUMMARY, MANIFEST].iter();
    let is_run = marks.any(|name| path.join(name).symlink_metadata().is_ok());
    let mut below = plain_file::entries(path);
    below.retain(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir()));
    if is_run || below.is_empty() {
        vec![path.to_owned()]
    } else {
        below
    }
}

/// A finished task as its job left it; `None` for one that was not reached.
fn brought(task: &TaskSummary) -> Option<TaskSummary> {
    task.reason?;
    let mut task = task.clone();
    let cost = &mut task.usage.cost_usd;
    *cost = cost.filter(|usd| usd.is_finite() && *usd >= 0.0);
    Some(task)
}

/// A task of which only the commits are known.
fn done(id: String) -> TaskSummary {
    TaskSummary {
        id,
        status: TaskEnd::Done,
        reason: Some(Reason::Verified),
        ..TaskSummary::default()
    }
}
