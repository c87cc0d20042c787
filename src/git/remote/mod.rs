//! Remotes, commits transferred in files, and moves of HEAD to a branch of a remote.

pub(in crate::git) mod api_changes;
pub(in crate::git) mod bundle;
pub(in crate::git) mod error;
pub(in crate::git) mod exchange;
pub(in crate::git) mod kept_work;
pub(in crate::git) mod names;
pub(in crate::git) mod push;
pub(in crate::git) mod refusal;
pub(in crate::git) mod switch;
