//! Since when that which judges the work is of somebody else than the agents of this run.
//!
//! A task whose work passes the original tests is verified, whatever else it has made of them. The work of later tasks is
//! judged by the original tests as well, until a report has said that a task needs others.

use crate::git::TreeId;
use serde::{Deserialize, Serialize};

/// The trees between which only verified tasks of this run have changed what judges the work.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginalTests {
    /// The tree with the original ones.
    since: Option<TreeId>,
    /// The tree that the last task left. If a task starts on another one, somebody else has changed the branch.
    until: Option<TreeId>,
}

impl OriginalTests {
    /// Notes that a task starts on a tree.
    pub fn start_task(&mut self, base: TreeId) {
        if self.since.is_none() || self.until.as_ref() != Some(&base) {
            self.since = Some(base.clone());
        }
        self.until = Some(base);
    }

    /// Notes that a task is done and has left a tree. `is_verified` says whether its work passes the original tests.
    pub fn end_task(&mut self, base: TreeId, is_verified: bool) {
        if !is_verified {
            self.since = Some(base.clone());
        }
        self.until = Some(base);
    }

    /// The tree with the original tests, if it is another one than that on which the task started.
    pub fn before(&self, base: &TreeId) -> Option<&TreeId> {
        self.since.as_ref().filter(|since| *since != base)
    }
}

#[cfg(test)]
mod tests {
    use super::OriginalTests;
    use crate::git::TreeId;

    fn tree(id: &str) -> TreeId {
        serde_json::from_value(id.into()).unwrap()
    }

    #[test]
    fn the_original_tests_are_those_before_the_first_of_the_verified_tasks() {
        let mut since = OriginalTests::default();
        since.start_task(tree("a"));
        assert_eq!(since.before(&tree("a")), None);
        since.end_task(tree("b"), true);
        since.start_task(tree("b"));
        assert_eq!(since.before(&tree("b")), Some(&tree("a")));
        since.end_task(tree("c"), false);
        since.start_task(tree("c"));
        assert_eq!(since.before(&tree("c")), None);
        since.end_task(tree("d"), true);
        // Somebody else has changed the branch.
        since.start_task(tree("x"));
        assert_eq!(since.before(&tree("x")), None);
    }
}
