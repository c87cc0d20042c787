//! The task of an agent that resolves merge conflicts.

use std::fmt::Write as _;

/// A merge with conflicts, as the agent's task describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeText<'a> {
    /// The current branch and its commit.
    pub ours: (&'a str, &'a str),
    /// The branch that is merged into it, and its commit.
    pub theirs: (&'a str, &'a str),
    /// The commit from which both branches diverged.
    pub fork: &'a str,
    /// The files with conflicts, each with the changes of both sides.
    pub files: &'a [(String, String)],
}

impl MergeText<'_> {
    /// The description of the task.
    pub fn description(&self) -> String {
        let ((ours, our), (theirs, their)) = (self.ours, self.theirs);
        let mut text = format!(
            "`{theirs}` is being merged into `{ours}`, and the two conflict. The work tree holds the merge, with conflict markers in these files:\n\n"
        );
        for (path, what) in self.files {
            let _ = writeln!(text, "- `{path}`: {what}");
        }
        let _ = write!(
            text,
            "
Between `<<<<<<<` and `|||||||` stands what `{ours}` has, from there to `=======` what both had when they parted, and from there to `>>>>>>>` what `{theirs}` has. Where a side deleted the file, its part is empty.

Resolve every conflict so that what each side wanted still holds, and remove every conflict marker. Where a side deleted the file, decide whether it is still needed: delete it, or keep its content without the markers.

Change nothing that the conflicts do not call for. A file that neither side changed has to stay as it is. Do not commit and do not start a merge: the merge commit is made once the checks pass.

The whole files of each side: `git show COMMIT:PATH`, where COMMIT is {our} for `{ours}`, {their} for `{theirs}`, and {fork} for where they parted.",
            fork = self.fork,
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_named_with_what_became_of_it() {
        let files = [("a b.txt".to_owned(), "both sides changed it".to_owned())];
        let text = MergeText {
            ours: ("feature", "1a"),
            theirs: ("main", "2b"),
            fork: "3c",
            files: &files,
        };
        let text = text.description();
        assert!(text.contains("- `a b.txt`: both sides changed it\n"));
        assert!(text.contains("`main` is being merged into `feature`"));
        assert!(text.contains("1a for `feature`, 2b for `main`, and 3c"));
    }
}
