//! Sprag runs a coding agent task by task on a checked-out branch, decides from the repository
//! whether anything happened, verifies with the project's own checks, and makes every commit.

pub mod domain;
