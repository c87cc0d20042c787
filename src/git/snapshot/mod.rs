//! The state of the working copy, determined from content alone.

pub(crate) mod blobs;
pub(crate) mod change;
pub(crate) mod contents;
pub(crate) mod index_list;
pub(crate) mod layout;
pub(crate) mod listing;
pub(crate) mod status;
pub(crate) mod take;
