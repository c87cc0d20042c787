//! Remotes, commits transferred in files, and moves of HEAD to a branch of a remote.

pub(crate) mod api_changes;
pub(crate) mod bundle;
pub(crate) mod exchange;
pub(crate) mod kept_work;
pub(crate) mod names;
pub(crate) mod push;
pub(crate) mod refusal;
pub(crate) mod switch;
