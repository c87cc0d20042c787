//! Files that are one task each: the `story.md` of ai-sdlc, and the tasks of Backlog.md.

use super::state::{BACKLOG, STORY, State};
use super::{ignored, optional_text, plan_from, root_of, task_status};
use crate::plan::markdown::outline::split_acceptance;
use crate::plan::native::Draft;
use crate::plan::source::Source;
use crate::plan::{Plan, PlanFormat, TaskStatus};
use crate::text_error::{Fault, Position};
use crate::yaml::read;

const STORY_KEYS: &[&str] = &[
    "id",
    "title",
    "dependencies",
    "status",
    "max_implementation_retries",
];
const BACKLOG_KEYS: &[&str] = &[
    "id",
    "title",
    "dependencies",
    "status",
    "priority",
    "assignee",
    "created_date",
    "updated_date",
    "labels",
    "ordinal",
];

pub(in crate::plan) fn read_story(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    read_file(source, &STORY, STORY_KEYS, warnings)
}

pub(in crate::plan) fn read_backlog(
    source: &Source<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    read_file(source, &BACKLOG, BACKLOG_KEYS, warnings)
}

/// The whole file is one task, with the status of its front matter.
fn read_file(
    source: &Source<'_>,
    state: &State,
    keys: &[&str],
    warnings: &mut Vec<Fault>,
) -> Result<(Plan, Vec<Draft>), Fault> {
    let root = root_of(source)?;
    let mut plan = plan_from(source, root, &["title"], keys)?;
    if let Some(retries) = root.get("max_implementation_retries") {
        let most = read::whole(
            "max_implementation_retries",
            retries,
            0,
            u64::from(u32::MAX),
        )?;
        plan.settings.max_retries = u32::try_from(most.min(10)).ok();
    }
    let headline = source
        .outline
        .headings
        .iter()
        .find(|heading| heading.level == 1);
    let mut body = source.body().to_owned();
    if let Some(headline) = headline {
        if plan.title.is_empty() {
            plan.title.clone_from(&headline.text);
        }
        let start = headline.span.start - source.body_start;
        body.replace_range(start..headline.span.end - source.body_start, "");
    }
    plan.id = optional_text(root, "id")?;
    if let Some(dependencies) = root.get("dependencies") {
        plan.depends_on = read::texts("dependencies", dependencies)?;
    }
    let (description, acceptance) = split_acceptance(&body);
    let mut draft = Draft {
        at: Some(Position::START),
        title: plan.title.clone(),
        description,
        acceptance,
        ..Draft::default()
    };
    if let Some(id) = root.get("id") {
        draft.id = Some((read::text("id", id)?, id.at));
    }
    draft.status = match task_status(state, root) {
        // Each project has its own words there.
        Err(fault) if source.format == PlanFormat::Backlog => {
            let message = format!("counted as not done: {}", fault.message);
            warnings.push(Fault { message, ..fault });
            TaskStatus::Pending
        }
        status => status?.unwrap_or_default(),
    };
    warnings.extend(ignored(root, keys, "", &[]));
    Ok((plan, vec![draft]))
}
