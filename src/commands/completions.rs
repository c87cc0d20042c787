//! `sprag completions`: prints a shell's completion script.

use crate::cli::Cli;
use crate::error::Result;
use crate::print::print_unmasked;
use clap::CommandFactory as _;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When the script cannot be printed.
pub fn command(shell: clap_complete::Shell) -> Result<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sprag", &mut bytes);
    print_unmasked(&String::from_utf8_lossy(&bytes))?;
    Ok(0)
}
