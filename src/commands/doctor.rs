//! `sprag doctor`.

use crate::cli::DoctorArgs;
use crate::context::Context;
use crate::doctor::{could_work, examine};
use crate::domain::settings::Color;
use crate::error::Result;
use crate::init::installs_for_the_machine;
use crate::print::print;
use crate::report::console::is_colored;
use crate::report::doctor::{json, text};
use crate::run::begin::repository::repository;
use crate::run::begin::trial::Trial;
use crate::settings;
use std::time::Duration;

/// Prints what a run would find here and returns the process's exit code: 4 if no run could work.
///
/// # Errors
/// When the findings cannot be printed.
pub fn command(context: &Context, args: &DoctorArgs) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    let examined = runtime.block_on(examine(context, args));
    runtime.shutdown_timeout(Duration::from_millis(200));
    let findings = match examined? {
        Ok(findings) => findings,
        Err(reason) => return Ok(reason.exit_code()),
    };
    print(
        context,
        &if args.json {
            json(&findings)
        } else {
            text(&findings, color(context, args))
        },
    )?;
    let tried = if args.r#try {
        try_once(context, args)?
    } else {
        0
    };
    Ok(if could_work(&findings) { tried } else { 4 })
}

/// Runs the setup commands and the checks once. Returns 1 if one of them fails.
fn try_once(context: &Context, args: &DoctorArgs) -> Result<u8> {
    let real = repository(context)?;
    let trial = Trial {
        context,
        real: &real,
        common: &args.common,
        flags: &args.settings,
        installs: installs_for_the_machine,
    };
    Ok(match trial.run()? {
        Ok(failed) if failed.is_empty() => 0,
        Ok(failed) => {
            print(
                context,
                &format!("fix these first: {}\n", failed.join(", ")),
            )?;
            1
        }
        Err(reason) => reason.exit_code(),
    })
}

fn color(context: &Context, args: &DoctorArgs) -> bool {
    // Unreadable settings are reported as a finding, so the default applies here.
    let given = settings::above(context, &args.settings).unwrap_or_default();
    is_colored(
        given.color.unwrap_or(Color::Auto),
        context.stdout_is_terminal && context.var("TERM") != Some("dumb"),
        context.wants_color(),
    )
}
