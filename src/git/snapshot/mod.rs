//! The state of the working copy, determined from content alone.

pub(in crate::git) mod blob_reader;
pub(in crate::git) mod blobs;
pub(in crate::git) mod cache;
pub(in crate::git) mod change;
pub(in crate::git) mod contents;
pub(in crate::git) mod convert;
pub(in crate::git) mod ignore;
pub(in crate::git) mod index_file;
pub(in crate::git) mod index_list;
pub(in crate::git) mod layout;
pub(in crate::git) mod listing;
pub(in crate::git) mod patch;
pub(in crate::git) mod plan_text;
pub(in crate::git) mod staged;
pub(in crate::git) mod status;
pub(in crate::git) mod submodules;
pub(in crate::git) mod take;
pub(in crate::git) mod unreadable;
