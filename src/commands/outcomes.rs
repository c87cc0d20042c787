//! `sprag outcomes`: what Sprag's work of a period came to.

use crate::cli::OutcomesArgs;
use crate::context::Context;
use crate::error::Result;
use crate::print::print;
use crate::report::outcomes::{markdown, terminal};
use crate::run::outcomes::gather;
use std::io::{Write as _, stderr};

/// Runs the command and says the process's exit code.
///
/// # Errors
/// See [`gather`].
pub fn command(context: &Context, args: &OutcomesArgs) -> Result<u8> {
    let gathered = gather(context, &args.since, args.branch.as_deref())?;
    let (outcomes, missing) = (&gathered.outcomes, &gathered.missing);
    let text = match (args.json, args.markdown) {
        (true, _) => {
            let json = serde_json::to_string_pretty(outcomes).map_err(anyhow::Error::from)?;
            for line in missing {
                // Without a log there is nowhere left to say it.
                let _ = writeln!(stderr(), "note: {line}");
            }
            format!("{json}\n")
        }
        (false, true) => markdown(outcomes, missing),
        (false, false) => terminal(outcomes, missing),
    };
    print(&text)?;
    Ok(0)
}
