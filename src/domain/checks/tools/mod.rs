//! What each tool prints, one file a tool.

pub(super) mod eslint;
pub(super) mod gcc;
pub(super) mod go;
pub(super) mod javascript;
pub(super) mod panic;
pub(super) mod plain;
pub(super) mod python;
pub(super) mod rustc;
pub(super) mod tsc;
