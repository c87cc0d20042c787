//! The commands: each reads what it needs, does its work and says what it came to.

pub mod demo;
pub mod doctor;
pub mod publish;
pub mod replay;
pub mod run;
pub mod small;
