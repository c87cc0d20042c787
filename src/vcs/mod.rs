//! Version control: what the working copy looks like, what a turn did to the repository, and the
//! commits that Sprag makes.

pub mod git;
pub mod lock;

/// The repository of a run.
#[derive(Debug)]
pub enum Vcs {
    /// A git repository, worked on through a git directory of our own.
    Git(git::Repo),
}
