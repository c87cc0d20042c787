//! `branch`: the template of the names of new branches.

use super::kind::Text;
use crate::trigger::refname::check_branch;

/// The placeholder in a [`TEMPLATE`].
pub const SLUG: &str = "{slug}";

/// The template of branches that nobody names otherwise.
pub const DEFAULT_BRANCH: &str = "sprag/{slug}";

/// The template of a branch name: a text that ends with `{slug}`.
pub const TEMPLATE: Text = Text::that("TEMPLATE", |given| {
    let is_fixed = |prefix: &&str| !prefix.is_empty() && !prefix.contains(['{', '}']);
    let Some(prefix) = given.strip_suffix(SLUG).filter(is_fixed) else {
        return Err(format!(
            "must be a text that ends with `{{slug}}` and begins with something else, such as `feature/{{slug}}`, got {given}"
        ));
    };
    check_branch(&format!("{prefix}x"))
        .map_err(|why| format!("is not the name of a branch: `{given}` {why}"))
});

/// The beginning of the names that a template makes.
pub fn prefix_of(template: &str) -> &str {
    template.strip_suffix(SLUG).unwrap_or(template)
}
