//! Black-box tests of the built binary.

fn main() {}
