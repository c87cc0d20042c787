//! The private git directory: its content, and its protection from everybody else.

pub(in crate::git) mod adopted;
pub(in crate::git) mod calls;
pub(in crate::git) mod config;
pub(in crate::git) mod credentials;
pub(in crate::git) mod directory;
pub(in crate::git) mod extent;
pub(in crate::git) mod guard;
pub(in crate::git) mod head;
pub(in crate::git) mod ignore_rules;
pub(in crate::git) mod links;
pub(in crate::git) mod plain_refs;
pub(in crate::git) mod programs;
mod recorded;
pub(in crate::git) mod refs;
pub(in crate::git) mod required_files;
pub(in crate::git) mod seal;
pub(in crate::git) mod start_index;
mod taken_over;
