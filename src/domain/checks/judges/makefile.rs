//! Reads makefiles and files like them.

use crate::pattern::{Pattern, group};
use regex::Captures;
use std::collections::{BTreeMap, BTreeSet};

/// Scripts and goals that start, serve or publish the work. Others check something.
pub(super) static OTHER_GOALS: Pattern = Pattern::new(
    r"^(?:bench|clean|demo|deploy|dev|dist|docs?|install|publish|release|run|serve|start|watch)\b",
);

/// The commands of a makefile or a similar file, and the files that it would make. Recipes that check nothing count if
/// they are named.
pub(super) fn recipes_of(text: &str, named: &[String]) -> (String, BTreeSet<String>) {
    static ASSIGNMENT: Pattern = Pattern::new(r"^([^:?+= ]+)[:?+ ]*=\s*(.*?)\s*$");
    static RULE: Pattern = Pattern::new(r"^([^#:][^:]*):([^;]*)(?:;(.*))?$");
    static VARIABLE: Pattern = Pattern::new(r"\$[({](\w+)[)}]");
    let text = text.replace("\\\n", " ");
    let (mut values, mut goals, mut recipes) = (BTreeMap::new(), BTreeSet::new(), String::new());
    let mut is_open = false;
    for line in text.lines() {
        if let Some(recipe) = line.strip_prefix(['\t', ' ']) {
            if is_open {
                recipes.push_str(recipe.trim_start().trim_start_matches(['@', '-', '+']));
                recipes.push('\n');
            }
        } else if let Some(found) = ASSIGNMENT.captures(line) {
            values.insert(found[1].to_owned(), found[2].to_owned());
        } else if let Some(found) = RULE.captures(line) {
            let (targets, needs) = (found[1].split_whitespace(), found[2].split_whitespace());
            let checks =
                |it: &str| named.iter().any(|word| word == it) || !OTHER_GOALS.is_match(it);
            is_open = targets.clone().any(checks);
            if found[1].trim() == ".PHONY" {
                let phony: Vec<&str> = needs.collect();
                goals.retain(|goal: &String| !phony.contains(&goal.as_str()));
                continue;
            }
            let plain = targets.filter(|it| !it.contains(['$', '%', '(', '*', '/', '.']));
            goals.extend(plain.map(str::to_owned));
            recipes.push_str(group(&found, 3));
            recipes.push('\n');
        }
    }
    let recipes = recipes
        .replace("$(MAKE)", "make")
        .replace("${MAKE}", "make");
    let recipes = recipes.replace("$$", "$");
    let value = |found: &Captures<'_>| values.get(&found[1]).cloned().unwrap_or_default();
    (VARIABLE.replace_all(&recipes, value).into_owned(), goals)
}
