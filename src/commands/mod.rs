//! The commands. Each reads its input, calls the module that does the work, and prints the result. None
//! uses another.

pub mod ask;
pub mod assess;
pub mod check;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod init;
pub mod integrate;
pub mod matrix;
pub mod outcomes;
pub mod plan;
pub mod publish;
pub mod report;
pub mod run;
pub mod runs;
pub mod schema;
