//! `sprag publish`.

pub use crate::publish::command;
