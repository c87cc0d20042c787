//! Whether the rules of GitHub let a run push its work, asked before anything is paid for.

use crate::context::Context;
use crate::domain::branch_rules::{PlannedPush, Refusal, doubt, form_of_messages, refusal};
use crate::error::{Error, Result};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api;
use crate::github::request::WorkBranch;
use crate::run::begin::prepare::Prepared;
use crate::run::state::parts::Parts;
use crate::run::steps::identity::identity_of_commits;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Duration;

/// Time limit for reading the rules.
const RULES_TIMEOUT: Duration = Duration::from_secs(15);

/// The objections of rulesets to the push of a run.
#[derive(Default)]
struct Objections {
    /// By rulesets that the token cannot bypass, with their names.
    certain: Vec<(String, Refusal)>,
    /// Further ones, as sentences.
    possible: Vec<String>,
}

/// Refuses to start a new run whose push a ruleset would certainly refuse. A resumed run has work already, which is
/// kept on a rescue branch.
///
/// # Errors
/// When the push would be refused. If GitHub does not tell its rules, nothing is refused.
pub(crate) async fn require_pushable(
    context: &Context,
    parts: &mut Parts<'_>,
    prepared: &Prepared,
) -> Result<()> {
    let asked = &prepared.asked;
    let works = asked.work.has_agent() && asked.earlier.is_none() && !prepared.tasks.is_empty();
    let request = prepared.request().filter(|it| works && it.delivery.push);
    let branch = request.and_then(|it| it.branch.as_ref());
    let (Some(request), Some(branch), Some(actions)) =
        (request, branch, ActionsEnvironment::of(context))
    else {
        return Ok(());
    };
    let repo = &parts.tree.repo;
    let via_api = request.delivery.via_api;
    let identity = identity_of_commits(parts.setup.in_actions, repo);
    let push = PlannedPush {
        branch: &branch.name,
        is_new: branch.at.is_none(),
        is_base: !request.is_pull && request.base_ref.as_ref() == Some(&branch.name),
        is_signed: via_api || repo.signs_commits(),
        email: Some(&*identity.email).filter(|_| !via_api),
    };
    let form_is_set = prepared
        .configs()
        .all(|config| config.settings.commit_message.is_some());
    let Ok(objections) = objections(&actions, branch, &push, form_is_set).await else {
        return Ok(());
    };
    for why in objections.possible {
        parts.warn(why);
    }
    let certain = objections.certain;
    if certain.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = certain
        .iter()
        .map(|(ruleset, refusal)| format!("{} (ruleset `{ruleset}`)", refusal.why))
        .collect();
    let error = Error::environment(format!(
        "GitHub would refuse the push to {}: {}",
        branch.name,
        names.join("; ")
    ));
    let mut remedies: Vec<&str> = certain.iter().map(|(_, refusal)| refusal.remedy).collect();
    remedies.dedup();
    let error = remedies.into_iter().fold(error, Error::hint);
    Err(error.hint("or add the app of the token to the bypass list of the ruleset"))
}

/// Reads the rules of the branch, and for those that object whether the token bypasses them.
async fn objections(
    actions: &ActionsEnvironment,
    branch: &WorkBranch,
    push: &PlannedPush<'_>,
    form_is_set: bool,
) -> Result<Objections, api::Error> {
    let repo = actions.repo()?.within(RULES_TIMEOUT);
    let mut objections = Objections::default();
    let mut rulesets = BTreeMap::new();
    for rule in repo.rules_of_branch(&branch.name).await? {
        let refusal = refusal(&rule, push);
        let form = form_of_messages(&rule).filter(|_| !form_is_set);
        if refusal.is_none() && form.is_none() {
            continue;
        }
        if let Entry::Vacant(entry) = rulesets.entry(rule.ruleset_id) {
            entry.insert(repo.ruleset(rule.ruleset_id).await?);
        }
        let Some(ruleset) = rulesets.get(&rule.ruleset_id) else {
            continue;
        };
        let is_bound = match ruleset.current_user_can_bypass.as_deref() {
            Some("always" | "exempt") => continue,
            Some("never" | "pull_requests_only") => true,
            _ => false,
        };
        match (refusal, form) {
            (Some(refusal), _) if is_bound => {
                objections.certain.push((ruleset.name.clone(), refusal))
            }
            (Some(refusal), _) => objections.possible.push(format!(
                "GitHub may refuse the push to {}: {} (ruleset `{}`); {}",
                branch.name, refusal.why, ruleset.name, refusal.remedy
            )),
            (None, Some(form)) => objections.possible.push(format!(
                "{form} on {} (ruleset `{}`); `commit-message` sets their form",
                branch.name, ruleset.name
            )),
            (None, None) => {}
        }
    }
    if !push.is_new && objections.certain.is_empty() && objections.possible.is_empty() {
        let protection = repo.protection(&branch.name).await?;
        objections.possible.extend(doubt(&protection, push));
    }
    Ok(objections)
}
