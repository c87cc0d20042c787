//! Every input that is kept for a parser of foreign input, fed to it: what a fuzzer has found once stays found.
//! `scripts/fuzz` looks for more.

#[path = "../fuzz/targets/mod.rs"]
#[expect(
    clippy::expect_used,
    reason = "a target gives up where a promise is broken"
)]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use targets::{TARGETS, Target};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn seeds() -> PathBuf {
    Path::new(ROOT).join("tests/fuzz/seeds")
}

/// The files that a target is fed with.
fn inputs(target: &Target) -> Vec<PathBuf> {
    let samples = target.samples.iter().map(|it| Path::new(ROOT).join(it));
    let own = seeds().join(target.name);
    let mut files = Vec::new();
    for place in samples.chain([own]) {
        match fs::read_dir(&place) {
            Ok(entries) => files.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) if place.is_file() => files.push(place),
            Err(_) => assert!(place.starts_with(seeds()), "{} is missing", place.display()),
        }
    }
    files.retain(|file| file.is_file());
    files
}

#[test]
fn every_parser_withstands_the_inputs_that_are_kept_for_it() {
    let mut failed = Vec::new();
    for target in TARGETS {
        let inputs = inputs(target);
        assert!(!inputs.is_empty(), "{} has no input", target.name);
        for file in inputs {
            let bytes = fs::read(&file).unwrap();
            let shown = file.strip_prefix(ROOT).unwrap().display();
            // Inputs that break off are as likely as whole ones.
            for end in [bytes.len(), bytes.len() / 2, bytes.len() / 3] {
                let (run, input) = (target.run, bytes[..end].to_vec());
                if thread::spawn(move || run(&input)).join().is_err() {
                    failed.push(format!("{} on {end} bytes of {shown}", target.name));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn inputs_are_kept_for_targets_that_there_are() {
    for entry in fs::read_dir(seeds()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_target = TARGETS.iter().any(|target| target.name == name);
        assert!(is_target, "there is no target {name}");
    }
}
