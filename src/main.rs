//! The command line: parse, run, exit.

fn main() {}
