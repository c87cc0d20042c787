//! `sprag matrix`: prints the unfinished tasks of a plan as rows of a job matrix.

use crate::cli::MatrixArgs;
use crate::context::Context;
use crate::domain::plan::matrix;
use crate::error::{Error, Result};
use crate::print::print_unmasked;
use crate::report::actions_log::print_warning;
use crate::report::append::append_only;
use crate::report::buffered_output::Time;
use crate::report::outputs::github_output;
use crate::run::begin::prepare::read_plan;
use std::io::Write as _;

/// Runs the command and returns the process's exit code. In a step of a job it also sets the output
/// `matrix`.
///
/// # Errors
/// When the plan is invalid.
pub fn command(context: &Context, args: &MatrixArgs) -> Result<u8> {
    let path = args.path.as_ref().or(args.plan.as_ref());
    let path =
        path.ok_or_else(|| Error::usage("no plan was given").hint("name one: sprag matrix PLAN"))?;
    let mut warnings = Vec::new();
    let name = path.display().to_string();
    let (plan, _) = read_plan(&context.cwd.join(path), &name, &mut warnings)?;
    for warning in warnings {
        print_warning(&warning, Time::Enough);
    }
    let rows = matrix(&plan, args.shards.map(usize::from));
    let rows = serde_json::to_string(&rows)?;
    print_unmasked(&format!("{rows}\n"))?;
    if let Some(file) = context.path_var("GITHUB_OUTPUT") {
        let delimiter = format!("sprag_{}", uuid::Uuid::new_v4().simple());
        let text = github_output(&[("matrix", rows)], &delimiter);
        let written = append_only(&file).and_then(|mut file| Ok(file.write_all(text.as_bytes())?));
        written.map_err(|error| {
            Error::environment(format!(
                "the output (GITHUB_OUTPUT) cannot be written: {error:#}"
            ))
        })?;
    }
    Ok(0)
}
