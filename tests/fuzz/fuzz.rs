//! One program for every target: SPRAG_FUZZ_TARGET names the row, and without it the rows are listed.
//! `scripts/fuzz` builds and runs it.

#![no_main]

mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use targets::TARGETS;

/// The row that is fed.
static RUN: LazyLock<Option<fn(&[u8])>> = LazyLock::new(|| {
    let wanted = std::env::var("SPRAG_FUZZ_TARGET").ok()?;
    let found = TARGETS.iter().find(|target| target.name == wanted);
    Some(
        found
            .unwrap_or_else(|| panic!("there is no target `{wanted}`"))
            .run,
    )
});

/// One line for each target: its name, and where further inputs are.
fn list() -> ! {
    for target in TARGETS {
        println!("{} {}", target.name, target.samples.join(" "));
    }
    std::process::exit(0)
}

fuzz_target!(
    init: if RUN.is_none() { list() },
    |data: &[u8]| {
        if let Some(run) = *RUN {
            run(data);
        }
    }
);
