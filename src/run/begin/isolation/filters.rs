//! How filters are confined that git starts.

use super::{Isolation, absolute};
use crate::context::Context;
use crate::domain::sandbox::Level;
use crate::domain::settings::{Sandbox, Settings, variables};
use crate::git::{FilterSandbox, Real};
use crate::run::state::places::resolved;
use crate::sandbox::{self, SandboxPaths, without_namespaces};
use std::ffi::OsString;

/// How filters are confined before it is determined how the run's children are, such as while a branch is
/// checked out: up to level 2, and with no other places than those of `sandbox_write`.
pub fn filters_before_the_run(
    context: &Context,
    real: &Real,
    settings: &Settings,
) -> FilterSandbox {
    let limit = context.var(variables::SANDBOX_LIMIT);
    let limit = limit.and_then(|limit| Level::of_number(limit.parse().ok()?));
    let (highest, _) = without_namespaces();
    let level = limit.map_or(highest, |limit| limit.min(highest));
    if level == Level::Off || settings.sandbox == Some(Sandbox::Off) {
        return FilterSandbox::default();
    }
    let around = SandboxPaths {
        work_tree: resolved(real.work_tree()),
        git_dir: resolved(real.git_dir()),
        common_dir: resolved(real.common_dir()),
        ..SandboxPaths::default()
    };
    let home = context.path_var("HOME").filter(|home| home.is_absolute());
    let named = settings.sandbox_write.iter().flatten();
    let places: Vec<_> = named
        .filter_map(|text| absolute(text, home.as_deref()))
        .map(|path| resolved(&path))
        .collect();
    FilterSandbox {
        policy: Some(sandbox::policy_of_filters(level, &around, &places)),
        variables: Vec::new(),
    }
}

impl Isolation {
    /// How filters are confined, which also get these variables.
    pub fn filters(&self, variables: Vec<(OsString, OsString)>) -> FilterSandbox {
        FilterSandbox {
            policy: self.policies.as_ref().map(|it| it.filter.clone()),
            variables,
        }
    }
}
