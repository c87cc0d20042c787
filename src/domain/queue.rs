//! Selects the plan of a directory on which a scheduled run works next.

use super::plan::Priority;
use super::settings::branch::prefix_of;
use super::text::{file_ending, file_name};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The number of failed runs after which a plan needs a person.
pub const MAX_FAILED_RUNS: u32 = 3;

/// The maximum length of the readable part of a branch name, in bytes.
const MAX_SLUG: usize = 60;

/// A plan of the queue and its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedPlan {
    /// Its file's path, relative to the work tree.
    pub path: String,
    /// The file's name without its extension; unique in the queue.
    pub name: String,
    /// The name of its branch.
    pub branch: String,
    /// The plan's own id, if it has one: `depends_on` accepts it in place of the name.
    pub id: Option<String>,
    /// Its priority; [`Priority::Medium`] if the plan sets none.
    pub priority: Priority,
    /// Names or ids of the plans in the queue that must be done first.
    pub depends_on: Vec<String>,
    /// How far its work has come.
    pub progress: Progress,
    /// The number of consecutive failed runs.
    pub failed_runs: u32,
    /// Whether its pull request is open.
    pub open_pull: bool,
    /// Why the plan cannot be read, if it cannot.
    pub invalid: Option<String>,
}

/// How far the work of a plan has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Some task is not done.
    Open,
    /// Every task is done on the plan's own branch, and the base branch does not have the work yet.
    Done,
    /// As [`Progress::Done`], but no pull request is open and the base branch has another version of the
    /// plan, which nobody works on as long as the plan's own branch exists.
    DoneBeforeEdit,
    /// Every task is done on the base branch.
    Merged,
}

/// What a scheduled run does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Work on a plan.
    Run {
        /// The plan's index in the input.
        index: usize,
        /// Whether an earlier run started it.
        continues: bool,
    },
    /// There is nothing to do, and nothing needs a person's attention.
    Nothing {
        /// The reason: a sentence without a full stop.
        reason: String,
    },
    /// No plan can continue until a person has looked at these.
    NeedsPerson {
        /// The plans' indexes in the input, ascending.
        plans: Vec<usize>,
    },
}

/// The selection, and why the other plans were not selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// What to do next.
    pub next: Next,
    /// Every plan that was not selected, in the order of the queue.
    pub passed_over: Vec<PassedOver>,
}

/// A plan that was not selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// Its index in the input.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// The reason.
    pub why: Why,
}

/// Why a plan was not selected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// All of its tasks are done.
    #[error("done")]
    Done,
    /// It cannot be read, for this reason.
    #[error("invalid: {0}")]
    Invalid(String),
    /// This many consecutive runs failed, which is too many.
    #[error("gave up after {0} failed runs")]
    GaveUp(u32),
    /// It depends on a name that no plan in the queue has.
    #[error("depends on `{0}`, which is not in the queue")]
    UnknownDependency(String),
    /// It depends on a name that several plans have.
    #[error("depends on `{0}`, which names several plans")]
    AmbiguousDependency(String),
    /// It depends on itself through these plans; the first is also the last.
    #[error("depends on itself: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// The branch with this name has finished an earlier version of the plan.
    #[error("edited after {0} had finished it; delete that branch to have the new version done")]
    Edited(String),
    /// The plan with this name is not done yet.
    #[error("waits for {0}")]
    WaitsFor(String),
    /// The base branch does not have the work of the plan with this name yet.
    #[error("waits until the work of {0} is in the base branch")]
    WaitsForMerge(String),
    /// It is ready, but another plan comes first.
    #[error("ready, comes later")]
    ComesLater,
}

impl Why {
    /// Whether the plan stays blocked until a person acts on it.
    pub fn needs_person(&self) -> bool {
        !matches!(
            self,
            Self::Done | Self::WaitsFor(_) | Self::WaitsForMerge(_) | Self::ComesLater
        )
    }
}

/// The plan to work on next: by priority, then started plans before new ones, then by name.
///
/// A plan that was given up or is invalid blocks only the plans that depend on it.
pub fn next(plans: &[QueuedPlan]) -> Choice {
    let names = Names::of(plans);
    let mut order: Vec<(usize, &QueuedPlan)> = plans.iter().enumerate().collect();
    order.sort_by_key(|(_, plan)| rank(plan));
    let mut chosen = None;
    let mut passed_over = Vec::new();
    for (index, plan) in order {
        let why = match obstacle(index, plan, plans, &names) {
            Some(why) => why,
            None if chosen.is_some() => Why::ComesLater,
            None => {
                chosen = Some((index, plan.is_begun()));
                continue;
            }
        };
        passed_over.push(PassedOver {
            index,
            name: plan.name.clone(),
            why,
        });
    }
    let next = match chosen {
        Some((index, continues)) => Next::Run { index, continues },
        None => without_ready(&passed_over),
    };
    Choice { next, passed_over }
}

impl QueuedPlan {
    /// Whether an earlier run worked on it.
    fn is_begun(&self) -> bool {
        self.open_pull || self.failed_runs > 0
    }
}

fn rank(plan: &QueuedPlan) -> (std::cmp::Reverse<Priority>, bool, &str, &str) {
    let new = !plan.is_begun();
    let priority = std::cmp::Reverse(plan.priority);
    (priority, new, &plan.name, &plan.path)
}

fn without_ready(passed_over: &[PassedOver]) -> Next {
    let needy = passed_over.iter().filter(|it| it.why.needs_person());
    let mut plans: Vec<usize> = needy.map(|it| it.index).collect();
    if !plans.is_empty() {
        plans.sort_unstable();
        return Next::NeedsPerson { plans };
    }
    let waits = |it: &PassedOver| matches!(it.why, Why::WaitsForMerge(_));
    let reason = if passed_over.is_empty() {
        "the queue has no plan"
    } else if passed_over.iter().any(waits) {
        "every plan of the queue is done or waits for a pull request to be merged"
    } else {
        "every plan of the queue is done"
    };
    Next::Nothing {
        reason: reason.to_owned(),
    }
}

/// The plans that each name in a `depends_on` stands for.
struct Names<'a>(BTreeMap<&'a str, BTreeSet<usize>>);

impl<'a> Names<'a> {
    fn of(plans: &'a [QueuedPlan]) -> Self {
        let mut names: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for (index, plan) in plans.iter().enumerate() {
            for name in std::iter::once(&plan.name).chain(&plan.id) {
                names.entry(name).or_default().insert(index);
            }
        }
        Self(names)
    }

    fn find(&self, name: &str) -> Result<usize, Why> {
        let found = self.0.get(name);
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(index), None) => Ok(*index),
            (None, _) => Err(Why::UnknownDependency(name.to_owned())),
            (Some(_), Some(_)) => Err(Why::AmbiguousDependency(name.to_owned())),
        }
    }
}

/// What keeps a plan from being selected; its own problems come before those of its dependencies.
fn obstacle(
    index: usize,
    plan: &QueuedPlan,
    plans: &[QueuedPlan],
    names: &Names<'_>,
) -> Option<Why> {
    if let Some(why) = &plan.invalid {
        return Some(Why::Invalid(why.clone()));
    }
    match plan.progress {
        Progress::Done | Progress::Merged => return Some(Why::Done),
        Progress::DoneBeforeEdit => return Some(Why::Edited(plan.branch.clone())),
        Progress::Open => {}
    }
    let mut waits = None;
    for name in &plan.depends_on {
        match names.find(name) {
            Ok(on) => {
                waits = waits.or_else(|| plans.get(on).and_then(QueuedPlan::delays));
            }
            Err(why) => return Some(why),
        }
    }
    if let Some(cycle) = cycle_through(index, plans, names) {
        return Some(Why::Cycle(cycle));
    }
    if plan.failed_runs >= MAX_FAILED_RUNS {
        return Some(Why::GaveUp(plan.failed_runs));
    }
    waits
}

impl QueuedPlan {
    fn is_done(&self) -> bool {
        self.progress != Progress::Open && self.invalid.is_none()
    }

    /// What keeps a plan waiting that depends on this one: it begins on the base branch and needs this work
    /// there.
    fn delays(&self) -> Option<Why> {
        match self.progress {
            _ if !self.is_done() => Some(Why::WaitsFor(self.name.clone())),
            Progress::Merged => None,
            _ => Some(Why::WaitsForMerge(self.name.clone())),
        }
    }
}

/// The shortest dependency cycle through a plan, among the plans that are not done.
fn cycle_through(start: usize, plans: &[QueuedPlan], names: &Names<'_>) -> Option<Vec<String>> {
    let mut seen = BTreeSet::new();
    let mut paths = VecDeque::from([vec![start]]);
    while let Some(path) = paths.pop_front() {
        let last = path.last().map(|last| &plans[*last]);
        let depends_on = last.filter(|plan| !plan.is_done()).into_iter();
        let depends_on = depends_on.flat_map(|plan| &plan.depends_on);
        for on in depends_on.filter_map(|name| names.find(name).ok()) {
            let longer: Vec<usize> = path.iter().copied().chain([on]).collect();
            if on == start {
                return Some(longer.iter().map(|at| plans[*at].name.clone()).collect());
            }
            if seen.insert(on) {
                paths.push_back(longer);
            }
        }
    }
    None
}

/// The branch of the plan with this name: the template with the name, if git and every forge accept it unchanged;
/// otherwise a readable part of the name plus a digest. Different names have different branches, even on
/// case-insensitive file systems.
pub fn branch_of(template: &str, name: &str) -> String {
    let prefix = prefix_of(template);
    let mut slug = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        let c = if is_plain(c) { c } else { '-' };
        let doubled = matches!(c, '-' | '.') && slug.ends_with(['-', '.']);
        if !doubled && slug.len() < MAX_SLUG {
            slug.push(c);
        }
    }
    let slug = slug.trim_matches(['-', '.', '_']);
    let slug = slug.strip_suffix(".lock").unwrap_or(slug);
    if slug == name && !slug.is_empty() && !has_digest(name) {
        return format!("{prefix}{name}");
    }
    let slug = if slug.is_empty() { "plan" } else { slug };
    format!("{prefix}{slug}-{}", digest(name))
}

/// The branch of the plan at this path if other plans have the same name: its readable part and a digest of
/// the path.
pub fn branch_of_path(template: &str, path: &str) -> String {
    // A name with a digest gets another one, so that this is no other plan's branch.
    format!("{}-{}", branch_of(template, name_of(path)), digest(path))
}

fn digest(text: &str) -> String {
    let mut digest = blake3::hash(text.as_bytes()).to_hex().to_string();
    digest.truncate(DIGEST);
    digest
}

/// The name of the plan at this path, which its branch has.
pub fn name_of(path: &str) -> &str {
    let file = file_name(path);
    match file.rsplit_once('.') {
        Some((name, _)) if !name.is_empty() => name,
        _ => file,
    }
}

/// Whether a file at this path can be a plan.
pub fn can_be_plan(path: &str) -> bool {
    ["yaml", "yml", "md", "json"].contains(&file_ending(path))
}

const DIGEST: usize = 12;

fn is_plain(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.' | '_')
}

/// Whether a name ends like one with a digest and could collide with another plan's branch.
fn has_digest(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, last)| {
        last.len() == DIGEST && last.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests;
