//! `branch`: the template of the names of new branches.

use super::kind::{Form, Kind, literal, text_schema};
use crate::text_error::Fault;
use crate::trigger::refname::check_branch;
use crate::yaml::{Node, read};
use serde_json::Value as Json;

/// The placeholder in a [`BranchTemplate`].
pub const SLUG: &str = "{slug}";

/// The template of branches that nobody names otherwise.
pub const DEFAULT_BRANCH: &str = "sprag/{slug}";

/// The template of a branch name: a text that ends with `{slug}`.
pub struct BranchTemplate;

impl Kind for BranchTemplate {
    type Out = String;
    fn form(&self) -> Form {
        Form::Text
    }
    fn schema(&self) -> Json {
        text_schema()
    }
    fn value_name(&self) -> &'static str {
        "TEMPLATE"
    }
    fn words(&self, value: &String) -> String {
        literal(value)
    }
    fn read(&self, key: &str, node: &Node) -> Result<String, Fault> {
        let given = read::words(key, node)?;
        let prefix = given.strip_suffix(SLUG);
        let is_fixed = |prefix: &&str| !prefix.is_empty() && !prefix.contains(['{', '}']);
        let Some(prefix) = prefix.filter(is_fixed) else {
            let expected = "a text that ends with `{slug}` and begins with something else, such as `feature/{slug}`";
            return Err(read::unexpected(key, expected, node));
        };
        match check_branch(&format!("{prefix}x")) {
            Ok(()) => Ok(given),
            Err(why) => {
                let message = format!("{key} is not the name of a branch: `{given}` {why}");
                Err(Fault::new(node.at, message))
            }
        }
    }
}

/// The beginning of the names that a template makes.
pub fn prefix_of(template: &str) -> &str {
    template.strip_suffix(SLUG).unwrap_or(template)
}
