//! The objects that Sprag makes: written into a store of its own, and put into the repository's, with
//! their content read once more, only when a branch is moved onto them.
//!
//! An agent can write to the repository's store, and git takes whatever lies under the id of an object
//! for that object. So an object is believed once its content was found to be what its id says.

pub(in crate::git) mod adopt;
pub(in crate::git) mod false_objects;
pub(in crate::git) mod loose;
pub(in crate::git) mod name;
pub(in crate::git) mod new_objects;
pub(in crate::git) mod sound;
