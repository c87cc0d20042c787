//! The objects that a commit adds to its base.

use crate::git::snapshot::listing::{GITLINK, RawDiff, TREE};

/// Ids of objects, none of which is of use before those that it names are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::git) struct NewObjects {
    blobs: Vec<String>,
    /// Those below before those above.
    trees: Vec<String>,
    commit: Vec<String>,
}

impl NewObjects {
    /// What the tree `root` adds to another one from which it differs so, in files and in the trees below.
    pub(in crate::git) fn of_tree(root: &str, diffs: &[RawDiff]) -> Self {
        if diffs.is_empty() {
            return Self::default();
        }
        let there = diffs
            .iter()
            .filter(|diff| ![0, GITLINK].contains(&diff.after.mode));
        let (mut trees, blobs): (Vec<&RawDiff>, Vec<&RawDiff>) =
            there.partition(|diff| diff.after.mode == TREE);
        let depth = |diff: &RawDiff| diff.path.iter().filter(|byte| **byte == b'/').count();
        trees.sort_by_key(|diff| std::cmp::Reverse(depth(diff)));
        let id = |diff: &RawDiff| diff.after.oid.clone();
        let mut trees: Vec<String> = trees.into_iter().map(id).collect();
        trees.push(root.to_owned());
        Self {
            blobs: blobs.into_iter().map(id).collect(),
            trees,
            commit: Vec::new(),
        }
    }

    /// The same and a commit of them.
    pub(in crate::git) fn and_commit(mut self, id: &str) -> Self {
        self.commit = vec![id.to_owned()];
        self
    }

    /// All ids, those first that others name.
    pub(in crate::git) fn ids(&self) -> impl Iterator<Item = &str> {
        self.stages().into_iter().flatten().map(String::as_str)
    }

    /// The ids in groups, those first that others name.
    pub(in crate::git) fn stages(&self) -> [&[String]; 3] {
        [&self.blobs, &self.trees, &self.commit]
    }
}
