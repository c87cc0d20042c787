//! Which workflows and which of their jobs check a change on an ordinary runner.

use super::command::{Purpose, STATIC, purpose};
use super::matrix::is_for_another_event;
use crate::domain::yaml::Node;

/// Words in the names of jobs that do not check a change, or check it on a machine of their own.
const OTHER_BUSINESS: &str = "bench codeql dependabot deploy docs fuzz label minimal miri msrv nightly pages publish release sanitiz
    scorecard sprag stale valgrind";

/// Workflows with the usual names are read first, and those for linters last, because their tests are seldom all.
pub(super) fn rank(file: &str) -> (bool, bool) {
    let has = |words: &str| words.split_whitespace().any(|word| file.contains(word));
    let is_usual = has("ci test check build main") && !has(OTHER_BUSINESS);
    (has(STATIC), !is_usual)
}

/// Whether a workflow runs for a push or a pull request.
pub(super) fn runs_for_a_change(root: &Node) -> bool {
    let Some(on) = root.get("on") else {
        return false;
    };
    let counts = |event: &str| {
        matches!(
            event,
            "push" | "pull_request" | "merge_group" | "workflow_call"
        )
    };
    let only_tags = |node: &Node| node.get("tags").is_some() && node.get("branches").is_none();
    let in_list = on.items().iter().filter_map(Node::text).any(counts);
    let in_map = on
        .entries()
        .iter()
        .any(|entry| counts(&entry.key) && !only_tags(&entry.value));
    on.text().is_some_and(counts) || in_list || in_map
}

/// Why nothing of a job is proposed, if that is so.
pub(super) fn reason_against_job(name: &str, node: &Node, runner: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let business = OTHER_BUSINESS
        .split_whitespace()
        .find(|word| lower.contains(word));
    let condition = node.get("if").and_then(Node::text);
    let is_for_another = condition.is_some_and(is_for_another_event);
    let called = node
        .get("uses")
        .and_then(Node::text)
        .filter(|uses| !uses.starts_with("./"));
    let steps = node.get("steps").map(Node::items).unwrap_or_default();
    let mut actions = steps.iter().filter_map(|step| step.get("uses")?.text());
    let is_analysis = actions.any(|uses| uses.starts_with("github/codeql-action"));
    called
        .map(|uses| format!("it is the workflow {uses} of another repository"))
        .or(is_analysis.then(|| "it builds for CodeQL".to_owned()))
        .or(business.map(|word| format!("by its name it is about {word}")))
        .or_else(|| special_machine(node, runner))
        .or(is_for_another.then(|| "it does not run for a change before its merge".to_owned()))
}

/// Why no ordinary runner can do the job, if that is so: it needs a service, a container or its own runner.
fn special_machine(job: &Node, runner: &str) -> Option<String> {
    let mut labels = job
        .get("runs-on")
        .map(Node::items)
        .unwrap_or_default()
        .iter()
        .filter_map(Node::text);
    let own_runner = runner == "self-hosted" || labels.any(|label| label == "self-hosted");
    let container = job.get("container").map(|container| {
        let image = container.get("image").unwrap_or(container);
        format!("it runs in the container {}", image.text().unwrap_or(""))
    });
    let services = job.get("services").map(Node::entries).unwrap_or_default();
    let service = services.first();
    service
        .map(|service| format!("it needs the service {}", service.key))
        .or(container)
        .or(own_runner.then(|| "it needs the project's own runner".to_owned()))
}

/// Whether a step of the job is a check.
pub(super) fn has_check(job: &Node) -> bool {
    let steps = job.get("steps").map(Node::items).unwrap_or_default();
    let mut scripts = steps.iter().filter_map(|step| step.get("run")?.text());
    let is_check = |purpose: Purpose| matches!(purpose, Purpose::Check(_) | Purpose::Containers);
    job.get("uses").is_some() || scripts.any(|script| purpose(script).is_some_and(is_check))
}
