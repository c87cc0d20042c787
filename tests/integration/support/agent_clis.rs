//! The real agents, at the versions that `tests/agent-clis` locks.
//!
//! `scripts/test` installs them and names their directory in `SPRAG_TEST_AGENTS`; an empty value
//! says that it could not. Without the variable they are installed here, into the same place.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The directory that holds `codex` and `claude`, for `PATH`.
///
/// `None` when there are none here: the test that asks has then nothing to do, and its reader is
/// told so. With `SPRAG_CI_STRICT=1` that is a failure.
pub fn bin() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let why = match FOUND.get_or_init(find) {
        Ok(bin) => return Some(bin),
        Err(why) => why,
    };
    let strict = env::var_os("SPRAG_CI_STRICT").is_some_and(|strict| strict == "1");
    assert!(!strict, "the real agents cannot be tested: {why}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let told = format!("\n!!! NOT TESTED: {test} NEEDS THE REAL AGENTS: {why}\n");
    // The macros would be captured: nobody reads what a test that passes has printed.
    let _ = std::io::stderr().write_all(told.as_bytes());
    None
}

fn find() -> Result<PathBuf, String> {
    match env::var_os("SPRAG_TEST_AGENTS") {
        Some(bin) if bin.is_empty() => {
            Err("scripts/test could not install them, or was told not to".into())
        }
        Some(bin) => complete(PathBuf::from(bin)),
        None => install(),
    }
}

/// Installs the agents unless they are there, one process at a time.
fn install() -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools/agent-clis");
    let told = |what: &str, error: std::io::Error| format!("{what} {}: {error}", dir.display());
    fs::create_dir_all(&dir).map_err(|error| told("cannot create", error))?;
    let lock = File::create(dir.join("lock")).map_err(|error| told("no lock in", error))?;
    lock.lock().map_err(|error| told("cannot lock", error))?;
    let (installed, bin) = (dir.join("installed"), dir.join("node_modules/.bin"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent-clis");
    let wanted = source.join("package-lock.json");
    let same = || Ok::<_, std::io::Error>(fs::read(&installed)? == fs::read(&wanted)?);
    if same().unwrap_or(false) {
        return complete(bin);
    }
    for name in ["package.json", "package-lock.json"] {
        fs::copy(source.join(name), dir.join(name))
            .map_err(|error| told("cannot write to", error))?;
    }
    npm_ci(&dir)?;
    let bin = complete(bin)?;
    fs::copy(&wanted, &installed).map_err(|error| told("cannot write to", error))?;
    Ok(bin)
}

fn complete(bin: PathBuf) -> Result<PathBuf, String> {
    let missing = ["codex", "claude"]
        .into_iter()
        .find(|program| !bin.join(program).exists());
    match missing {
        Some(program) => Err(format!("there is no {program} in {}", bin.display())),
        None => Ok(bin),
    }
}

fn npm_ci(dir: &Path) -> Result<(), String> {
    let output = Command::new("npm")
        .args(["ci", "--no-audit", "--no-fund", "--no-progress"])
        .args(["--fetch-retries=1", "--fetch-timeout=60000", "--prefix"])
        .arg(dir)
        .env_clear()
        .envs(npm_env())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("npm ci ended with {}:\n{stderr}", output.status))
}

/// What npm needs to reach its registry, and nothing of the job that the tests run in.
fn npm_env() -> impl Iterator<Item = (OsString, OsString)> {
    env::vars_os().filter(|(name, _)| {
        let name = name.to_string_lossy().to_lowercase();
        let plain = [
            "path",
            "home",
            "tmpdir",
            "ssl_cert_file",
            "ssl_cert_dir",
            "no_proxy",
        ];
        plain.contains(&name.as_str())
            || name.ends_with("_proxy")
            || name.starts_with("npm_config_")
            || name == "node_extra_ca_certs"
    })
}
