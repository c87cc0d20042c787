//! A merge of two branches, made without touching the work tree.

use crate::domain::snapshot::RevId;
use crate::git::commit::rebase::RebaseError;
use crate::git::commit::request::Identity;
use crate::git::objects::new_objects::NewObjects;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;

impl Repo {
    /// Makes the commit that merges `theirs` into `ours`. Nothing points to it yet: see [`Repo::move_to`].
    ///
    /// # Errors
    /// [`RebaseError`]; a conflict names the files that both sides changed.
    pub fn merge(
        &self,
        ours: &RevId,
        theirs: &RevId,
        message: &str,
        who: &Identity,
    ) -> Result<RevId, RebaseError> {
        let _open = self.unseal()?;
        self.refresh_shallow()?;
        let ours = checked_id(ours)?;
        let tree = self.merged_tree(None, ours, theirs, None)?;
        let mut call = self.making();
        for role in ["AUTHOR", "COMMITTER"] {
            call = call.env(format!("GIT_{role}_NAME"), &who.name);
            call = call.env(format!("GIT_{role}_EMAIL"), &who.email);
        }
        let parents = ["-p", ours, "-p", checked_id(theirs)?];
        call = call
            .args(["commit-tree", &tree])
            .args(parents)
            .args(["-F", "-"]);
        let id = self
            .signed(call)
            .stdin(message.as_bytes().to_vec())
            .line()?;
        let before = self.raw_commit(ours)?.tree;
        let diffs = self.diff_trees_and_subtrees(&before, &tree)?;
        self.adopt(&NewObjects::of_tree(&tree, &diffs).and_commit(&id))?;
        Ok(RevId(id))
    }
}
