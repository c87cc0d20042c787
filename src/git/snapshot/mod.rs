//! The state of the working copy, determined from content alone.

pub(crate) mod blobs;
pub(crate) mod cache;
pub(crate) mod change;
pub(crate) mod contents;
pub(crate) mod ignore;
pub(crate) mod index_list;
pub(crate) mod layout;
pub(crate) mod listing;
pub(crate) mod patch;
pub(crate) mod staged;
pub(crate) mod status;
pub(crate) mod submodules;
pub(crate) mod take;
pub(crate) mod unreadable;
