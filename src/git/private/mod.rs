//! The private git directory: its content, and its protection from everybody else.

pub(crate) mod adopted;
pub(crate) mod calls;
pub(crate) mod config;
pub(crate) mod credentials;
pub(crate) mod directory;
pub(crate) mod guard;
mod moved_refs;
pub(crate) mod places;
pub(crate) mod refs;
pub(crate) mod required_files;
pub(crate) mod seal;
mod taken_over;
