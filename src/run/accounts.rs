//! What a run keeps count of: spend, turns, checks and what the checks said.

use crate::checks::Verification;
use crate::domain::agent::Usage;
use crate::domain::attempt::{Role, Spend};
use crate::domain::checks::Matcher;
use crate::domain::snapshot::{Fingerprint, Snapshot};
use crate::run::directory::RunDir;
use crate::run::layout::Folder;
use crate::settings::{RunConfig, TaskConfig};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a run keeps count of.
#[derive(Debug, Default)]
pub struct Accounts {
    /// Turns begun in the run, for the names of files.
    pub turns: u32,
    /// Spend of the tasks before this one.
    pub spent: Spend,
    /// What the agent's sessions have reported so far, where they report totals.
    pub session_usage: HashMap<String, Usage>,
    /// What other jobs have spent whose work is brought together, by the ids of their runs, in US dollars.
    pub spent_by_shards: Vec<(String, f64)>,
    /// Files that the run's commits changed.
    pub changed_files: BTreeSet<String>,
    /// The roles whose agents were unavailable, so that another one works for the rest of the run.
    pub unavailable: Vec<Role>,
    /// What is known of the checks.
    pub checks: CheckMemory,
}

/// What is known of the checks.
#[derive(Debug, Default)]
pub struct CheckMemory {
    /// Checks begun in the run, for the names of files.
    pub begun: u32,
    /// Problem matchers by the file that a check names, as far as checks have run.
    pub matchers: BTreeMap<String, Vec<Matcher>>,
    verdicts: HashMap<(Fingerprint, CheckSet), Verification>,
}

/// Names a set of checks with everything that is configured for them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CheckSet(String);

impl Accounts {
    /// Counts that go on where the files of the run directory end.
    pub fn of(run_dir: &RunDir) -> Self {
        Self {
            turns: run_dir.highest_number(Folder::Prompts),
            checks: CheckMemory {
                begun: run_dir.highest_number(Folder::Checks),
                ..CheckMemory::default()
            },
            ..Self::default()
        }
    }

    /// What a task that has spent this much may still cost, in dollars.
    pub fn dollars_left(&self, config: &RunConfig, task: Spend) -> Option<f64> {
        let spent = self.spent.cost_usd + task.cost_usd;
        let limit = config.settings.max_cost_usd;
        limit.map(|limit| (limit - spent).max(0.0))
    }

    /// The same for agents. It is never nothing: they take that for no limit.
    pub fn cost_left(&self, config: &RunConfig, task: Spend) -> Option<f64> {
        let left = self.dollars_left(config, task);
        left.map(|left| left.max(0.01))
    }

    /// Tokens that a task that has spent this much may still use; at least one.
    pub fn tokens_left(&self, config: &RunConfig, task: Spend) -> Option<u64> {
        let spent = self.spent.tokens.saturating_add(task.tokens);
        let limit = config.settings.max_tokens?;
        Some(limit.saturating_sub(spent).max(1))
    }

    /// Counts what a task has spent that is over.
    pub fn end_task(&mut self, task: Spend) {
        self.spent.tokens = self.spent.tokens.saturating_add(task.tokens);
        self.spent.cost_usd += task.cost_usd;
    }

    /// Forgets what the next task cannot need: what was said of other trees than this one, which it
    /// cannot come back to, and what the sessions of earlier tasks have used.
    pub fn begin_task(&mut self, now: &Snapshot) {
        self.checks
            .verdicts
            .retain(|(tree, _), _| Some(tree) == now.tree());
        self.session_usage.clear();
    }
}

impl CheckMemory {
    /// What the checks of these settings said of a tree.
    pub fn recall(&self, tree: &Fingerprint, config: &TaskConfig) -> Option<&Verification> {
        self.verdicts.get(&(tree.clone(), CheckSet::of(config)))
    }

    /// Keeps what the checks said of a tree, if they would say it again.
    pub fn remember(
        &mut self,
        config: &TaskConfig,
        tree: &Fingerprint,
        verification: &Verification,
    ) {
        if verification.is_lasting() {
            self.verdicts
                .insert((tree.clone(), CheckSet::of(config)), verification.clone());
        }
    }

    /// Keeps what the checks said of one tree for the same tree under another fingerprint.
    pub fn alias(&mut self, config: &TaskConfig, judged: &Fingerprint, now: Fingerprint) {
        if let Some(verification) = self.recall(judged, config).cloned() {
            self.verdicts
                .insert((now, CheckSet::of(config)), verification);
        }
    }
}

impl CheckSet {
    fn of(config: &TaskConfig) -> Self {
        let mut hasher = blake3::Hasher::new();
        for check in &config.checks {
            hasher.update(format!("{check:?}\0").as_bytes());
        }
        Self(hasher.finalize().to_hex().to_string())
    }
}
