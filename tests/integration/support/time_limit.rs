//! Limits of time that something hangs into.

use super::project::Run;

/// Limits in seconds. What hangs reaches the first one soon; what ends by itself reaches the last one on no machine.
const LIMITS: [u32; 3] = [2, 10, 59];

/// Calls `attempt` with a limit of time in seconds. It returns `None` if something that ends by itself has reached the
/// limit, which a slow machine can cause; then it is called again with a longer one.
pub fn under_limit<T>(attempt: impl FnMut(u32) -> Option<T>) -> T {
    let found = LIMITS.into_iter().find_map(attempt);
    found.unwrap_or_else(|| panic!("what should end by itself takes longer than a minute"))
}

/// The same for the turns of the first task: the run whose turns have these assessments, except for an unexpected one
/// that does not come from a limit.
pub fn turns_under_limit<P>(
    expected: &[&str],
    mut attempt: impl FnMut(u32) -> (P, Run),
) -> (P, Run) {
    let (project, run) = under_limit(|limit| {
        let (project, run) = attempt(limit);
        let found = assessments(&run);
        let mut pairs = found.iter().zip(expected);
        let unexpected = pairs.find(|(found, expected)| found != expected);
        let is_slow = unexpected.is_some_and(|(found, _)| is_limit(found));
        eprintln!("{limit} s: {found:?}");
        (!is_slow).then_some((project, run))
    });
    assert_eq!(assessments(&run), expected, "{}", run.stdout);
    (project, run)
}

fn assessments(run: &Run) -> Vec<&str> {
    let turns = run.task(0)["turns"].as_array().into_iter().flatten();
    turns
        .filter_map(|turn| turn["assessment"].as_str())
        .collect()
}

/// Whether a turn ends like this at `--turn-timeout` or `--stall-timeout`.
fn is_limit(assessment: &str) -> bool {
    ["turn_timeout", "agent_transient"].contains(&assessment)
}
