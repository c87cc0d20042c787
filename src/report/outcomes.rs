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
    format!(
        "{}\n{}{}",
        heading(outcomes),
        lines.collect::<String>(),
        notes.collect::<String>()
    )
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
    format!(
        "### {}\n\n| | |\n|---|---|\n{}{}",
        heading(outcomes),
        rows.collect::<String>(),
        notes.collect::<String>()
    )
}

fn heading(outcomes: &Outcomes) -> String {
    let since = outcomes.since.get(..10).unwrap_or(&outcomes.since);
    format!(
        "Sprag since {since}, merged into {}",
        text::line(&outcomes.branch)
    )
}

fn rows(outcomes: &Outcomes) -> Vec<(&'static str, String)> {
    let known = |value: Option<u32>| value.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    let dollars = |usd: Option<f64>| usd.map_or_else(|| "unknown".to_owned(), text::dollars);
    let statuses: Vec<String> = outcomes
        .statuses
        .iter()
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    let told = match (outcomes.runs_known, statuses.is_empty()) {
        (0, _) | (_, true) => String::new(),
        (known, false) => format!(" ({known} of them known: {})", statuses.join(", ")),
    };
    let of_commits = |merged, reverted| format!("{merged} merged, {reverted} reverted");
    vec![
        ("Runs", format!("{}{told}", outcomes.runs)),
        ("Tasks worked on", known(outcomes.tasks)),
        ("Tasks verified", known(outcomes.tasks_verified)),
        (
            "Tasks committed",
            format!(
                "{}: {}",
                outcomes.tasks_committed,
                of_commits(outcomes.tasks_merged, outcomes.tasks_reverted)
            ),
        ),
        (
            "Commits",
            format!(
                "{}: {}",
                outcomes.commits,
                of_commits(outcomes.commits_merged, outcomes.commits_reverted)
            ),
        ),
        ("Retries", known(outcomes.retries)),
        ("Nudges", known(outcomes.nudges)),
        (
            "Cost",
            match outcomes.runs_with_cost {
                0 => dollars(None),
                runs => format!(
                    "{} of {}",
                    dollars(outcomes.cost_usd),
                    text::count(u64::from(runs), "run")
                ),
            },
        ),
        (
            "Cost of a merged task",
            dollars(outcomes.cost_usd_per_merged_task),
        ),
    ]
}
