//! `sprag doctor`.

pub use crate::doctor::gather::command;
