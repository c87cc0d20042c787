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
use crate::run::begin::start::runtime;
use crate::run::begin::trial::Trial;
use crate::settings;
use std::time::Duration;

/// Prints what a run would find here and returns the process's exit code: 4 if no run could work.
///
/// # Errors
/// When the findings cannot be printed.
pub fn command(context: &Context, args: &DoctorArgs) -> Result<u8> {
    let runtime = runtime()?;
    let examined = runtime.block_on(examine(context, args));
    runtime.shutdown_timeout(Duration::from_millis(200));
    let findings = match examined? {
        Ok(findings) => findings,
        Err(reason) => return Ok(reason.exit_code()),
    };
    let shown = if args.json {
        json(&findings)
    } else {
        text(&findings, color(context, args))
    };
    print(context, &shown)?;
    let mut code = 0;
    if args.r#try {
        code = try_once(context, args)?;
    }
    Ok(if could_work(&findings) { code } else { 4 })
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
            let told = format!("fix these first: {}\n", failed.join(", "));
            print(context, &told)?;
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
