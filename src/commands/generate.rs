//! What is generated from the program itself: `sprag schema`, `sprag completions` and `sprag man`.

use crate::cli::{Cli, SchemaArgs, SchemaName, Shell};
use crate::domain::plan::schema;
use crate::error::{Error, Result};
use crate::print::print_unmasked;
use crate::report::wire;
use clap::CommandFactory as _;
use clap_complete::{Generator, Shell as Known};
use clap_complete_nushell::Nushell;
use std::path::Path;

/// Prints the JSON Schema of a public format and returns the process's exit code.
///
/// # Errors
/// When it cannot be printed.
pub fn json_schema(args: &SchemaArgs) -> Result<u8> {
    let schema = match args.what {
        SchemaName::Plan => schema::plan(),
        SchemaName::Config => schema::config(),
        SchemaName::Event => wire::schema(),
        SchemaName::Summary => wire::summary_schema(),
    };
    print_unmasked(&format!("{schema:#}\n"))?;
    Ok(0)
}

/// Prints the completions of a shell and returns the process's exit code.
///
/// # Errors
/// When the script cannot be printed.
pub fn completions(shell: Shell) -> Result<u8> {
    let script = match shell {
        Shell::Bash => script(Known::Bash),
        Shell::Elvish => script(Known::Elvish),
        Shell::Fish => script(Known::Fish),
        Shell::Nushell => script(Nushell),
        Shell::PowerShell => script(Known::PowerShell),
        Shell::Zsh => script(Known::Zsh),
    };
    print_unmasked(&script)?;
    Ok(0)
}

fn script(shell: impl Generator) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "sprag", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Writes a man page for each command and returns the process's exit code.
///
/// # Errors
/// When a page cannot be written.
pub fn man(to: &Path) -> Result<u8> {
    clap_mangen::generate_to(Cli::command(), to)
        .map_err(|error| Error::environment(format!("{}: {error}", to.display())))?;
    Ok(0)
}
