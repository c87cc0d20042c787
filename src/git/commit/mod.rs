//! Stages verified changes, commits them, and restores the work tree.

pub(in crate::git) mod conflict;
pub(in crate::git) mod facts;
pub(in crate::git) mod head_in_checks;
pub(in crate::git) mod hooks;
pub(in crate::git) mod index_edit;
pub(in crate::git) mod land;
pub(in crate::git) mod merge;
mod plain_stage;
pub(in crate::git) mod raw_commit;
pub(in crate::git) mod rebase;
pub(in crate::git) mod replaced_files;
pub(in crate::git) mod request;
pub(in crate::git) mod restore;
pub(in crate::git) mod saved_files;
pub(in crate::git) mod stage;
pub(in crate::git) mod swap;
pub(in crate::git) mod verify;
