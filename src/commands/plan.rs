//! `sprag plan`: the agent drafts a plan, which is validated and written to a file.

use crate::cli::PlanArgs;
use crate::context::Context;
use crate::error::Result;
use crate::print::print;
use crate::report::text;
use crate::run::begin::start::draft;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// When the run cannot start, or Sprag itself fails.
pub fn command(context: &Context, args: &PlanArgs) -> Result<u8> {
    let drafted = draft(context, args)?;
    if let Some(written) = drafted.written.filter(|_| drafted.code == 0) {
        let tasks = text::count(written.tasks as u64, "task");
        print(
            context,
            &format!(
                "\n{} is written: {} ({tasks})\n  read it, then: sprag run --plan {}\n",
                written.path,
                text::line(&written.title),
                written.path
            ),
        )?;
    }
    Ok(drafted.code)
}
