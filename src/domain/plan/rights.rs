//! Whether a change to a plan affects what runs.

use crate::plan::{Plan, parse};
use crate::settings::Settings;
use std::collections::BTreeMap;

/// Whether a plan keeps its commands, agents, checks and limits, for the whole plan and for every task. A new
/// task must not set any. A text that is not a plan runs nothing.
pub fn keeps_settings(name: &str, before: &str, after: &[u8]) -> bool {
    let (Ok(before), Ok(after)) = (parse(name, before.as_bytes()), parse(name, after)) else {
        return true;
    };
    let (before, after) = (before.value, after.value);
    let of_task = settings_of_tasks(&before);
    let none = Settings::default();
    before.settings == after.settings
        && before.setup == after.setup
        && settings_of_tasks(&after)
            .into_iter()
            .all(|(id, settings)| *of_task.get(id).unwrap_or(&&none) == settings)
}

fn settings_of_tasks(plan: &Plan) -> BTreeMap<&str, &Settings> {
    let tasks = plan.tasks.iter();
    tasks
        .map(|task| (task.id.as_str(), &task.settings))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "verify: [make]\ntasks:\n  - { id: a, title: A }\n  - { id: b, title: B, max_retries: 1 }\n";

    fn keeps(after: &str) -> bool {
        keeps_settings("plan.yaml", PLAN, after.as_bytes())
    }

    #[test]
    fn words_may_change_and_what_is_run_may_not() {
        for after in [
            PLAN.to_owned(),
            PLAN.replace("title: A", "title: Other, status: done"),
            format!("{PLAN}  - {{ id: c, title: C }}\n"),
            format!("goal: More\n{PLAN}"),
            "no plan".to_owned(),
        ] {
            assert!(keeps(&after), "{after}");
        }
        for after in [
            PLAN.replace("[make]", "['true']"),
            PLAN.replace("verify: [make]\n", ""),
            format!("setup: [x]\n{PLAN}"),
            format!("agent_command: x\n{PLAN}"),
            PLAN.replace("title: A", "title: A, agent_command: x"),
            PLAN.replace("max_retries: 1", "max_retries: 2"),
            format!("{PLAN}  - {{ id: c, title: C, verify: ['true'] }}\n"),
        ] {
            assert!(!keeps(&after), "{after}");
        }
    }
}
