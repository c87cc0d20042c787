//! Merges two branches without touching the work tree.

use crate::domain::snapshot::RevId;
use crate::git::command::Call;
use crate::git::commit::rebase::RebaseError;
use crate::git::commit::request::Identity;
use crate::git::objects::new_objects::NewObjects;
use crate::git::remote::names::checked_id;
use crate::git::repo::Repo;

impl Repo {
    /// Creates the commit that merges `theirs` into `ours`. No ref points to it until [`Repo::move_to`].
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
        let theirs = checked_id(theirs)?;
        self.merge_commit(&tree, ours, theirs, message, who, |call| self.signed(call))
    }

    /// Creates a merge commit from a known tree and copies it into the repository. `with` can modify the git
    /// call that creates it.
    pub(super) fn merge_commit<'r>(
        &'r self,
        tree: &str,
        ours: &str,
        theirs: &str,
        message: &str,
        who: &Identity,
        with: impl FnOnce(Call<'r>) -> Call<'r>,
    ) -> Result<RevId, RebaseError> {
        let call = self.making().in_name_of(&who.name, &who.email);
        let call = call.args(["commit-tree", tree, "-p", ours, "-p", theirs, "-F", "-"]);
        let id = with(call).stdin(message.as_bytes().to_vec()).line()?;
        let before = self.raw_commit(ours)?.tree;
        let diffs = self.diff_trees_and_subtrees(&before, tree)?;
        self.adopt(&NewObjects::of_tree(tree, &diffs).and_commit(&id))?;
        Ok(RevId(id))
    }
}
