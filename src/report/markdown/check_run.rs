//! The texts of the check run: the progress during the run, and the full report at its end.

use super::context::{ReportContext, link};
use super::{
    CHECK_RUN_BYTES, DETAIL_LEVELS, Limits, comment, details, facts, happened_block, mermaid,
    parts, table, title,
};
use crate::domain::check_run::CheckOutput;
use crate::domain::outcome::{Conclusion, Reason};
use crate::domain::summary::RunSummary;
use crate::report::text as words;

/// Maximum size of a title in bytes.
const TITLE_BYTES: usize = 255;

/// The content of the check run, within GitHub's limits.
pub fn check_run(summary: &RunSummary, around: &ReportContext) -> CheckOutput {
    let notice = comment::notice(around);
    let told = |part: fn(&RunSummary, &ReportContext, &Limits) -> String| {
        super::smallest(&DETAIL_LEVELS, CHECK_RUN_BYTES, &notice, |limits| {
            part(summary, around, limits)
        })
    };
    CheckOutput {
        title: words::head_bytes(&super::upper_first(&title(summary)), TITLE_BYTES).to_owned(),
        summary: told(if summary.status.is_none() {
            live
        } else {
            ended
        }),
        text: told(|summary, _, limits| details::all(summary, limits))
            .trim_end()
            .to_owned(),
        conclusion: summary.status.map(|status| match status.conclusion() {
            Conclusion::Success if around.verified_elsewhere => Conclusion::Neutral,
            _ if around.neutral_findings && summary.reason == Some(Reason::ReviewFindings) => {
                Conclusion::Neutral
            }
            conclusion => conclusion,
        }),
    }
}

fn live(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    super::blocks(&[
        comment::progress(summary),
        facts(summary),
        parts::checklist(summary, around, limits),
        parts::notes(summary, around, limits),
        parts::places(summary, around),
    ])
}

fn ended(summary: &RunSummary, around: &ReportContext, limits: &Limits) -> String {
    let elsewhere = around
        .superseded_by
        .as_deref()
        .map_or(String::new(), |url| {
            let there = link("the check run of the pushed commit", url);
            format!("The work was pushed, so the report continues at {there}.")
        });
    super::blocks(&[
        happened_block(summary),
        elsewhere,
        facts(summary),
        table(summary, limits),
        mermaid::timeline(summary),
        parts::commits(summary, around, limits),
        parts::next(summary, around),
        parts::notes(summary, around, limits),
        parts::places(summary, around),
    ])
}
