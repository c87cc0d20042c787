//! `sprag doctor`: the conditions for a run here. [`gather`] collects the facts, and [`examine`] judges them.

mod examine;
mod facts;
mod finding;
pub mod gather;

pub use examine::{examine, read};
pub use facts::*;
pub use finding::{Finding, State, could_work};

#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
