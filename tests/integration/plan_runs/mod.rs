//! Plans task by task: the executor commits, with the plan's status, or not at all.

mod commits;
mod messages;
mod notes;
mod plans;
mod refusals;
mod resume;
mod signals;
