//! Objects: their files, their content, and the stores that they are in.

pub(crate) mod loose;
pub(crate) mod reader;
pub(crate) mod stores;
