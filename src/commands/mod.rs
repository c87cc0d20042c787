//! The commands. Each reads its input, calls the module that does the work, and prints the result. None
//! uses another.

pub mod assess;
pub mod check;
pub mod demo;
pub mod generate;
pub mod init;
pub mod run;
pub mod runs;
