//! `sprag schema`: prints the JSON Schema of a public format.

use crate::cli::{SchemaArgs, SchemaName};
use crate::domain::plan;
use crate::error::Result;
use crate::print::print_unmasked;
use crate::report::wire;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When it cannot be printed.
pub fn command(args: &SchemaArgs) -> Result<u8> {
    let schema = match args.what {
        SchemaName::Plan => plan::schema::plan(),
        SchemaName::Config => plan::schema::config(),
        SchemaName::Event => wire::schema(),
        SchemaName::Summary => wire::summary_schema(),
    };
    print_unmasked(&format!("{schema:#}\n"))?;
    Ok(0)
}
