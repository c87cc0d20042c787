//! The objects that Sprag makes. They are written into a store of its own, and copied into the repository's,
//! with their content read again, only when a branch moves to them.
//!
//! An agent can write to the repository's store, and git accepts whatever is stored under an object's id.
//! Therefore an object is trusted only after its content was found to match its id.

pub(crate) mod adopt;
pub(crate) mod false_objects;
pub(crate) mod loose;
pub(crate) mod new_objects;
pub(crate) mod reader;
