//! Running totals of a run: spend, turns, checks and the results of the checks.

use crate::checks::{OwnHome, Verification};
use crate::domain::agent::Usage;
use crate::domain::attempt::{Role, Spend};
use crate::domain::checks::Matcher;
use crate::domain::snapshot::{Fingerprint, Snapshot};
use crate::gateway::SpendLimits;
use crate::run::state::directory::RunDir;
use crate::run::state::layout::Folder;
use crate::settings::{RunConfig, TaskConfig};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What an agent may cost if nothing is left: the smallest sum that a command line shows as more than zero.
const LEAST_DOLLARS: f64 = 0.0001;

/// The running totals of a run.
#[derive(Debug, Default)]
pub struct Accounts {
    /// Turns started in this run. The number is part of file names.
    pub turns: u32,
    /// Spend of the tasks before the current one.
    pub spent: Spend,
    /// Usage that each agent session has reported so far, for agents that report totals per session.
    pub session_usage: HashMap<String, Usage>,
    /// Spend of other jobs whose work this run integrates: run id and US dollars.
    pub spent_by_shards: Vec<(String, f64)>,
    /// Files that the run's commits changed.
    pub changed_files: BTreeSet<String>,
    /// Roles whose agent was unavailable: the fallback agent works for the rest of the run.
    pub unavailable: Vec<Role>,
    /// Results of checks that already ran.
    pub checks: CheckMemory,
}

/// Results of checks that already ran.
#[derive(Debug, Default)]
pub struct CheckMemory {
    /// Checks started in this run. The number is part of file names.
    pub begun: u32,
    /// Problem matchers by the file that a check names, for checks that have run.
    pub matchers: BTreeMap<String, Vec<Matcher>>,
    /// Whether the checks build everything again: what builds have made is of other files than those in place.
    pub rebuilds: bool,
    /// The home of checks that create files at the top of one.
    pub own_home: OwnHome,
    /// The results by tree and by the checks with all of their configuration.
    verdicts: HashMap<(Fingerprint, String), Verification>,
}

impl Accounts {
    /// Counters that continue after the highest file numbers in the run directory.
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

    /// How much a task that has spent `task` may still cost, in US dollars. `None`: there is no limit.
    fn dollars_left(&self, config: &RunConfig, task: Spend) -> Option<f64> {
        let spent = self.spent.cost_usd + task.cost_usd;
        Some((config.settings.max_cost_usd? - spent).max(0.0))
    }

    /// Same as [`Self::dollars_left`], for agents. Never zero, because agents treat zero as no limit.
    pub fn cost_left(&self, config: &RunConfig, task: Spend) -> Option<f64> {
        let left = self.dollars_left(config, task);
        left.map(|left| left.max(LEAST_DOLLARS))
    }

    /// What a task that has spent `task` may still use, for the gateway.
    pub fn spend_limits(&self, config: &RunConfig, task: Spend) -> SpendLimits {
        SpendLimits {
            tokens: self.tokens_left(config, task),
            cost_usd: self.dollars_left(config, task),
        }
    }

    /// Tokens that a task that has spent `task` may still use: at least one. `None`: there is no limit.
    pub fn tokens_left(&self, config: &RunConfig, task: Spend) -> Option<u64> {
        let spent = self.spent.tokens.saturating_add(task.tokens);
        let limit = config.settings.max_tokens?;
        Some(limit.saturating_sub(spent).max(1))
    }

    /// Adds the spend of a finished task.
    pub fn end_task(&mut self, task: Spend) {
        self.spent.add(&task);
    }

    /// Discards what the next task cannot use: results for any tree other than the current one, which it
    /// cannot return to, and the session usage of earlier tasks.
    pub fn begin_task(&mut self, now: &Snapshot) {
        let verdicts = &mut self.checks.verdicts;
        verdicts.retain(|(tree, _), _| Some(tree) == now.tree());
        self.session_usage.clear();
    }
}

impl CheckMemory {
    /// The result of these checks for a tree, if they already ran on it.
    pub fn recall(&self, tree: &Fingerprint, config: &TaskConfig) -> Option<&Verification> {
        self.verdicts.get(&key(tree, config))
    }

    /// Remembers the result of the checks for a tree, unless a repetition could give another result.
    pub fn remember(
        &mut self,
        config: &TaskConfig,
        tree: &Fingerprint,
        verification: &Verification,
    ) {
        if verification.is_lasting() {
            self.verdicts
                .insert(key(tree, config), verification.clone());
        }
    }

    /// Remembers the result for a tree under another fingerprint of the same tree, too.
    pub fn alias(&mut self, config: &TaskConfig, judged: &Fingerprint, now: &Fingerprint) {
        if let Some(verification) = self.recall(judged, config).cloned() {
            self.verdicts.insert(key(now, config), verification);
        }
    }
}

fn key(tree: &Fingerprint, config: &TaskConfig) -> (Fingerprint, String) {
    (tree.clone(), format!("{:?}", config.checks))
}
