//! Secrets in what an agent leaves behind.

use super::{Performer, TaskRun};
use crate::git::{RawSnapshot, display_path};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::sync::Arc;

/// Finds secrets in what is read: the name of the variable that holds each, with what stands there.
pub type FindSecrets =
    Arc<dyn Fn(&mut dyn Read) -> io::Result<Vec<(String, String)>> + Send + Sync>;

impl Performer<'_> {
    /// Says where secrets of this process stand in the changes of the tree, and in the agent's own commits.
    /// What the base holds already is no secret.
    pub(super) fn secrets_in(&self, raw: &RawSnapshot, run: &TaskRun<'_>) -> Vec<String> {
        let Some(find) = &self.find_secrets else {
            return Vec::new();
        };
        let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut known: BTreeMap<String, bool> = BTreeMap::new();
        let mut look = |place: String, from: &mut dyn Read| {
            // What cannot be read cannot be committed either.
            for (name, form) in find(from).unwrap_or_default() {
                let held = || self.repo.base_holds(&form).unwrap_or(false);
                if !*known.entry(form.clone()).or_insert_with(held) {
                    places.entry(place.clone()).or_default().insert(name);
                }
            }
        };
        for change in &raw.changes {
            if let Ok(Some(mut content)) = self.repo.new_content(change) {
                look(display_path(&change.path), &mut content);
            }
        }
        if !run.agent_commits.is_empty()
            && let Some(head) = super::commit::head_of(raw)
            && let Ok(added) = self.repo.added_since_base(&head.0)
        {
            look(
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
}
