//! A crate of somebody else's, with a fault put into it: what an agent is for.
//!
//! Cargo fetches it when the test runs; no copy of it is kept in the project.

use super::project::Project;
use serde_json::Value;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `strsim`: MIT, no dependencies, and its tests take a second.
const MANIFEST: &str = "\
[package]
name = \"fetched\"
version = \"0.0.0\"
edition = \"2021\"

[lib]
path = \"lib.rs\"

[dependencies]
strsim = \"=0.11.1\"

[workspace]
";

/// The very bytes are pinned.
const LOCK: &str = "\
version = 4

[[package]]
name = \"fetched\"
version = \"0.0.0\"
dependencies = [
 \"strsim\",
]

[[package]]
name = \"strsim\"
version = \"0.11.1\"
source = \"registry+https://github.com/rust-lang/crates.io-index\"
checksum = \"7da8b5736845d9f2fcb837ea5d9e2628564b3b043a70948a3f0b778838c5fb4f\"
";

/// The file that the fault is in.
pub const FILE: &str = "src/lib.rs";
/// What stands there in the good crate …
pub const GOOD: &str = "result = min(result + 1, min(distance_a, distance_b + 1));";
/// … in the broken one …
pub const BROKEN: &str = "result = min(result + 2, min(distance_a, distance_b + 1));";
/// … and after a repair that does not help.
pub const WORSE: &str = "result = min(result + 1, min(distance_a, distance_b + 2));";
/// Its check: without the examples in its documentation, each of which is a program to be linked.
pub const CHECK: &str = "cargo test --offline --tests";
/// How many tests this runs: the unit tests and those of `tests/`.
pub const TESTS: u32 = 88 + 8;

/// A repository of the broken crate and of these files, with a toolchain in its environment.
pub fn broken_crate(files: &[(&str, &str)]) -> Project {
    let mut project = Project::new(&[]);
    copy(&fetched(), &project.repo());
    let good = project.read(FILE);
    assert_eq!(good.matches(GOOD).count(), 1, "the fault has one place");
    project.write(FILE, &good.replace(GOOD, BROKEN));
    for (path, text) in files {
        project.write(path, text);
    }
    project.commit_all("A crate with a fault");
    for (name, value) in toolchain() {
        project.env(name, value);
    }
    let target = project.outside("target");
    project.env("CARGO_TARGET_DIR", target);
    fails(&project);
    project
}

/// The crate's own tests see the fault.
fn fails(project: &Project) {
    let words: Vec<&str> = CHECK.split(' ').skip(1).collect();
    let mut cargo = project.program("cargo", &words);
    let output = cargo.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("85 passed; 3 failed"), "{stdout}");
}

/// Where Cargo keeps the crate's source.
fn fetched() -> PathBuf {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for (name, text) in [
        ("Cargo.toml", MANIFEST),
        ("Cargo.lock", LOCK),
        ("lib.rs", ""),
    ] {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let metadata = metadata(dir.path(), &["--locked", "--offline"])
        .or_else(|_| metadata(dir.path(), &["--locked"]))
        .unwrap_or_else(|why| panic!("the crate cannot be fetched: {why}"));
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "strsim");
    let manifest = package.unwrap()["manifest_path"].as_str().unwrap();
    Path::new(manifest).parent().unwrap().to_path_buf()
}

fn metadata(dir: &Path, network: &[&str]) -> Result<Value, String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version=1"])
        .args(network)
        .current_dir(dir)
        .output()
        .map_err(|error| format!("cargo cannot be started: {error}"))?;
    if output.status.success() {
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// What `cargo` needs where `HOME` is another: the places that it has of its own accord.
fn toolchain() -> Vec<(&'static str, OsString)> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let place = |name, default: &str| {
        let set = env::var_os(name).unwrap_or_else(|| home.join(default).into());
        (name, set)
    };
    let named = env::var_os("RUSTUP_TOOLCHAIN").map(|name| ("RUSTUP_TOOLCHAIN", name));
    [
        place("CARGO_HOME", ".cargo"),
        place("RUSTUP_HOME", ".rustup"),
    ]
    .into_iter()
    .chain(named)
    .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target)
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap()
        }
    }
}
