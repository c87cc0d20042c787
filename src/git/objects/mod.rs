//! The objects that Sprag makes. They are written into a store of its own, and copied into the repository's,
//! with their content read again, only when a branch moves to them.
//!
//! An agent can write to the repository's store, and git accepts whatever is stored under an object's id.
//! Therefore an object is trusted only after its content was found to match its id.

pub(in crate::git) mod adopt;
pub(in crate::git) mod allowance;
pub(in crate::git) mod count;
pub(in crate::git) mod false_objects;
pub(in crate::git) mod loose;
pub(in crate::git) mod name;
pub(in crate::git) mod new_objects;
pub(in crate::git) mod packs;
pub(in crate::git) mod reader;
pub(in crate::git) mod sound;
pub(in crate::git) mod tree_writer;
