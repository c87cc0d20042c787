//! Secrets in what an agent leaves behind.

use crate::git::{PlanContent, RawSnapshot, display_path};
use crate::run::setup::Setup;
use crate::run::work_tree::{WorkTree, head_of};
use crate::secrets::detect::Seen;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// Says where secrets of this process stand in the changes of the tree, and in the agent's own commits.
/// What the base holds already is no secret. `has_commits` says whether the agent may have made such.
pub(crate) fn secrets_in(
    setup: &Setup,
    tree: &WorkTree,
    raw: &RawSnapshot,
    has_commits: bool,
) -> Vec<String> {
    let Some(detector) = &setup.detector else {
        return Vec::new();
    };
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut search = |place: String, from: &mut dyn Read| {
        // What cannot be read cannot be committed either.
        for Seen { name, form } in detector.find(from).unwrap_or_default() {
            let held = || tree.repo.base_holds(&form).unwrap_or(false);
            if !*known.entry(form.clone()).or_insert_with(held) {
                places.entry(place.clone()).or_default().insert(name);
            }
        }
    };
    for change in raw.changes.iter().chain(&raw.uncounted) {
        search("the name of a file".to_owned(), &mut change.path.as_slice());
        if let Ok(Some(mut content)) = tree.repo.new_content(change) {
            search(display_path(&change.path), &mut content);
        }
    }
    if has_commits
        && let Some(head) = head_of(raw)
        && let Ok(added) = tree.repo.added_since_base(&head.0)
    {
        search(
            "a commit of the agent's own".to_owned(),
            &mut added.as_slice(),
        );
    }
    let told = places.into_iter().map(|(place, names)| {
        let names: Vec<String> = names.into_iter().collect();
        format!("the value of {} is in {place}", names.join(" and of "))
    });
    told.collect()
}

/// Says that the plan, as it will be committed, holds a secret that its base does not.
pub(crate) fn secrets_in_plan(
    setup: &Setup,
    tree: &WorkTree,
    plan: &PlanContent,
) -> Option<String> {
    let found = setup.detector.as_ref()?.find(&mut plan.content.as_slice());
    let is_new = |seen: &Seen| !tree.repo.base_holds(&seen.form).unwrap_or(false);
    let seen = found.unwrap_or_default().into_iter().find(is_new)?;
    let place = display_path(&plan.path);
    Some(format!("the value of {} is in {place}", seen.name))
}
