//! Judges the facts: facts in, findings with their remedies out.

mod actions_job;
mod agent;
mod machine;
mod network;
mod repository;
mod trigger;

pub use trigger::read;

use super::facts::Facts;
use super::finding::Finding;

/// Judges all facts, in the order in which a run needs them.
pub fn examine(facts: &Facts) -> Vec<Finding> {
    let mut findings = vec![repository::program(facts)];
    findings.extend(repository::findings(facts));
    findings.extend(agent::configuration(facts));
    findings.extend(agent::findings(facts.agent.as_ref()));
    findings.extend(actions_job::findings(facts));
    findings.extend(trigger::finding(&facts.trigger));
    findings.extend(network::findings(&facts.network));
    findings.extend(machine::findings(facts));
    findings
}
