//! The texts of the check run: the progress during the run, and the full report at its end.

use super::context::{ReportContext, link};
use super::{
    CHECK_RUN_BYTES, DETAIL_LEVELS, Limits, comment, details, facts, happened_block, mermaid,
    parts, table, title,
};
use crate::domain::check_run::CheckOutput;
use crate::domain::outcome::{Conclusion, Reason};
use crate::domain::summary::RunSummary;
use crate::report::check_annotation::check_annotations;
use crate::report::text as words;

/// Maximum size of a title in bytes.
const TITLE_BYTES: usize = 255;

/// The content of the check run, within GitHub's limits.
pub fn check_run(summary: &RunSummary, around: &ReportContext) -> CheckOutput {
    let notice = comment::notice(around);
    let told = |part: &dyn Fn(&Limits) -> String| {
        super::smallest(&DETAIL_LEVELS, CHECK_RUN_BYTES, &notice, part)
    };
    let rest = without_annotation(summary, around);
    let is_neutral = around.neutral_findings && summary.reason == Some(Reason::ReviewFindings);
    let text = told(&|limits| details::all(summary, limits));
    CheckOutput {
        title: words::head_bytes(&super::upper_first(&title(summary)), TITLE_BYTES).to_owned(),
        summary: match summary.status {
            None => told(&|limits| live(summary, around, limits)),
            Some(_) => told(&|limits| ended(summary, around, &rest, limits)),
        },
        text: text.trim_end().to_owned(),
        conclusion: summary.status.map(|status| match status.conclusion() {
            Conclusion::Success if around.verified_elsewhere => Conclusion::Neutral,
            _ if is_neutral => Conclusion::Neutral,
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

fn ended(summary: &RunSummary, around: &ReportContext, rest: &str, limits: &Limits) -> String {
    let elsewhere = around.superseded_by.as_deref().map(|url| {
        let there = link("the check run of the pushed commit", url);
        format!("The work was pushed, so the report continues at {there}.")
    });
    super::blocks(&[
        happened_block(summary),
        details::answers(summary, limits),
        elsewhere.unwrap_or_default(),
        facts(summary),
        rest.to_owned(),
        table(summary, Some(around), limits),
        mermaid::timeline(summary),
        parts::commits(summary, around, limits),
        parts::next(summary, around),
        parts::notes(summary, around, limits),
        parts::places(summary, around),
    ])
}

/// How many annotations the check run leaves out, and where they are.
fn without_annotation(summary: &RunSummary, around: &ReportContext) -> String {
    let (_, rest) = check_annotations(summary);
    if rest == 0 || summary.status.is_none() {
        return String::new();
    }
    let all = match (&around.artifact_url, around.place.run_url()) {
        (Some(url), _) => link("artifact", url),
        (None, Some(url)) => link("workflow run", &url),
        (None, None) => "run directory".to_owned(),
    };
    let rest = words::count(rest as u64, "annotation");
    format!(
        "{rest} more, for which a check run has no room: the report of the {all} has the whole output of the checks."
    )
}
