//! The outcomes of Sprag's work in a period, for people.

use super::text;
use crate::domain::outcomes::Outcomes;

/// The outcomes as lines of a terminal.
pub fn terminal(outcomes: &Outcomes, missing: &[String]) -> String {
    let rows = rows(outcomes);
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines = rows
        .iter()
        .map(|(name, value)| format!("{name:<width$}  {value}\n"));
    let notes = missing.iter().map(|line| format!("note: {line}\n"));
    let lines = lines.chain(notes).collect::<String>();
    heading(outcomes) + "\n" + &lines
}

/// The outcomes as Markdown.
pub fn markdown(outcomes: &Outcomes, missing: &[String]) -> String {
    let rows = rows(outcomes);
    let rows = rows
        .iter()
        .map(|(name, value)| format!("| {name} | {value} |\n"));
    let notes = missing
        .iter()
        .map(|line| format!("\n> {}\n", text::line(line)));
    let heading = format!("### {}\n\n| | |\n|---|---|\n", heading(outcomes));
    std::iter::once(heading).chain(rows).chain(notes).collect()
}

fn heading(outcomes: &Outcomes) -> String {
    let since = outcomes.since.get(..10).unwrap_or(&outcomes.since);
    let branch = text::line(&outcomes.branch);
    format!("Sprag since {since}, merged into {branch}")
}

fn rows(outcomes: &Outcomes) -> Vec<(&'static str, String)> {
    let it = outcomes;
    let known = |value: Option<u32>| value.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let dollars = |usd: Option<f64>| usd.map_or_else(|| "unknown".to_owned(), text::dollars);
    let statuses = it.statuses.iter();
    let statuses = statuses.map(|(status, count)| format!("{count} {status}"));
    let statuses = text::joined(", ", statuses);
    let told = match it.runs_known {
        _ if statuses.is_empty() => statuses,
        known => format!(" ({known} of them known: {statuses})"),
    };
    let of = |all, merged, reverted| format!("{all}: {merged} merged, {reverted} reverted");
    let tasks = of(it.tasks_committed, it.tasks_merged, it.tasks_reverted);
    let commits = of(it.commits, it.commits_merged, it.commits_reverted);
    let cost = match u64::from(it.runs_with_cost) {
        0 => dollars(None),
        runs => format!("{} of {}", dollars(it.cost_usd), text::count(runs, "run")),
    };
    vec![
        ("Runs", format!("{}{told}", it.runs)),
        ("Tasks worked on", known(it.tasks)),
        ("Tasks verified", known(it.tasks_verified)),
        ("Tasks committed", tasks),
        ("Commits", commits),
        ("Retries", known(it.retries)),
        ("Nudges", known(it.nudges)),
        ("Cost", cost),
        (
            "Cost of a merged task",
            dollars(it.cost_usd_per_merged_task),
        ),
    ]
}
