//! The pure core: no I/O, no clock, no process, no environment.
//!
//! Everything here is a value or a total function over values, so the whole of Sprag's judgement
//! can be tested without a repository, an agent or a network.

pub mod agent;
pub mod counts;
pub mod diagnostic;
pub mod failure;
pub mod outcome;
mod pattern;
pub mod prompt;
pub mod snapshot;
pub mod text;
pub mod verdict;
