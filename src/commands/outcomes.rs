//! `sprag outcomes`: the results of Sprag's work in a period.

use crate::cli::OutcomesArgs;
use crate::context::Context;
use crate::error::Result;
use crate::print::{print, print_document};
use crate::report::Format;
use crate::report::buffered_output::{Time, print_to_stderr};
use crate::report::outcomes::{markdown, terminal};
use crate::run::deliver::outcomes::gather;

/// Runs the command and returns the process's exit code.
///
/// # Errors
/// As [`gather`].
pub fn command(context: &Context, args: &OutcomesArgs) -> Result<u8> {
    let gathered = gather(context, &args.since, args.branch.as_deref())?;
    let (outcomes, missing) = (&gathered.outcomes, &gathered.missing);
    match (args.json, args.markdown) {
        (true, _) => {
            let json = serde_json::to_string_pretty(outcomes)?;
            for line in missing {
                print_to_stderr(&format!("note: {line}\n"), Time::Enough);
            }
            print_document(context, &format!("{json}\n"), Format::Json)?;
        }
        (false, true) => print_document(context, &markdown(outcomes, missing), Format::Md)?,
        (false, false) => print(context, &terminal(outcomes, missing))?,
    }
    Ok(0)
}
