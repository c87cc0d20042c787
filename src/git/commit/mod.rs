//! Stages verified changes, commits them, and restores the work tree.

pub(crate) mod conflict;
pub(crate) mod facts;
pub(crate) mod head_in_checks;
pub(crate) mod hooks;
pub(crate) mod land;
pub(crate) mod rebase;
pub(crate) mod request;
pub(crate) mod restore;
pub(crate) mod saved_files;
pub(crate) mod stage;
pub(crate) mod swap;
pub(crate) mod verify;
