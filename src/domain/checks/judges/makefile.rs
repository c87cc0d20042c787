//! Reads makefiles and files like them.

use crate::pattern::Pattern;
use std::collections::{BTreeMap, BTreeSet};

/// Scripts and goals that start, serve or publish the work. Others check something.
pub(super) static OTHER_GOALS: Pattern = Pattern::new(
    r"^(?:bench|clean|demo|deploy|dev|dist|docs?|install|publish|release|run|serve|start|watch)\b",
);

/// The commands of a makefile or a similar file, and the files that it would make. Recipes that check nothing count if
/// they are named.
pub(super) fn recipes_of(text: &str, named: &[String]) -> (String, BTreeSet<String>) {
    let text = text.replace("\\\n", " ");
    let (mut values, mut goals, mut recipes) = (BTreeMap::new(), BTreeSet::new(), String::new());
    let mut is_open = false;
    for line in text.lines() {
        if let Some(recipe) = line.strip_prefix(['\t', ' ']) {
            if is_open {
                recipes.push_str(recipe.trim_start().trim_start_matches(['@', '-', '+']));
                recipes.push('\n');
            }
        } else if let Some((name, value)) = line.split_once('=').filter(|(name, _)| {
            !name
                .trim_end_matches([':', '?', '+', ' '])
                .contains([':', ' '])
        }) {
            values.insert(
                name.trim_end_matches([':', '?', '+', ' ']).to_owned(),
                value.trim().to_owned(),
            );
        } else if let Some((targets, needs)) =
            line.split_once(':').filter(|_| !line.starts_with('#'))
        {
            is_open = targets.split_whitespace().any(|target| {
                named.iter().any(|word| word == target) || !OTHER_GOALS.is_match(target)
            });
            if targets.trim() == ".PHONY" {
                let phony: Vec<&str> = needs.split_whitespace().collect();
                goals.retain(|goal: &String| !phony.contains(&goal.as_str()));
                continue;
            }
            let plain = targets
                .split_whitespace()
                .filter(|target| !target.contains(['$', '%', '(', '*', '/', '.']));
            goals.extend(plain.map(str::to_owned));
            if let Some((_, inline)) = needs.split_once(';') {
                recipes.push_str(inline);
                recipes.push('\n');
            }
        }
    }
    let recipes = recipes
        .replace("$(MAKE)", "make")
        .replace("${MAKE}", "make")
        .replace("$$", "$");
    static VARIABLE: Pattern = Pattern::new(r"\$[({](\w+)[)}]");
    let value = |found: &regex::Captures<'_>| values.get(&found[1]).cloned().unwrap_or_default();
    (VARIABLE.replace_all(&recipes, value).into_owned(), goals)
}
