//! `sprag init`: files to begin with.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::print::print;
use crate::run::repository::repository;

/// Runs the command and says the process's exit code.
///
/// # Errors
/// When a file cannot be written.
pub fn command(context: &Context) -> Result<u8> {
    let real = repository(context)?;
    let written = crate::init::write_new(real.work_tree())
        .map_err(|error| Error::environment(format!("{error:#}")))?;
    let mut text = String::new();
    for path in &written.created {
        text += &format!("wrote {}\n", path.display());
    }
    for path in &written.kept {
        text += &format!("left alone {}: it is there already\n", path.display());
    }
    text += &format!(
        "next: name an agent and read the checks in {config}, commit these files, then\n  \
         sprag check {plan}\n  sprag run --plan {plan}\n",
        config = crate::init::CONFIG,
        plan = crate::init::EXAMPLE_PLAN,
    );
    print(&text)?;
    Ok(0)
}
