//! The objects that a commit adds to its base.

use crate::git::snapshot::listing::{GITLINK, RawDiff, TREE};

/// Object ids, ordered so that every object comes after those that it refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NewObjects {
    blobs: Vec<String>,
    /// Subtrees come before their parents.
    trees: Vec<String>,
    commit: Vec<String>,
}

impl NewObjects {
    /// The objects that the tree `root` adds to another tree, given the differences in files and subtrees.
    pub(crate) fn of_tree(root: &str, diffs: &[RawDiff]) -> Self {
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

    /// Adds the commit to the objects.
    pub(crate) fn and_commit(mut self, id: &str) -> Self {
        self.commit = vec![id.to_owned()];
        self
    }

    /// All ids, referenced objects first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.stages().into_iter().flatten().map(String::as_str)
    }

    /// The ids in groups, referenced objects first.
    pub(crate) fn stages(&self) -> [&[String]; 3] {
        [&self.blobs, &self.trees, &self.commit]
    }
}
