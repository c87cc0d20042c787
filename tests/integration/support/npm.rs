//! Packages of npm that tests need, at the versions that a lock file under `tests/` names.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Says to whoever reads the log that a test had nothing to do, since `what` is not here. With
/// `SPRAG_CI_STRICT=1` that is a failure.
pub fn not_tested(what: &str, why: &str) {
    let strict = env::var_os("SPRAG_CI_STRICT").is_some_and(|strict| strict == "1");
    assert!(!strict, "{what} cannot be tested: {why}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let told = format!(
        "\n!!! NOT TESTED: {test} NEEDS {}: {why}\n",
        what.to_uppercase()
    );
    // The macros would be captured: nobody reads what a test that passes has printed.
    let _ = std::io::stderr().write_all(told.as_bytes());
}

/// The `node_modules` with what `tests/<name>/package-lock.json` locks. It is installed unless it is
/// there, by one process at a time.
pub fn installed(name: &str) -> Result<PathBuf, String> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("tools")
        .join(name);
    let told = |what: &str, error: std::io::Error| format!("{what} {}: {error}", dir.display());
    fs::create_dir_all(&dir).map_err(|error| told("cannot create", error))?;
    let lock = File::create(dir.join("lock")).map_err(|error| told("no lock in", error))?;
    lock.lock().map_err(|error| told("cannot lock", error))?;
    let (installed, modules) = (dir.join("installed"), dir.join("node_modules"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name);
    let wanted = source.join("package-lock.json");
    let same = || Ok::<_, std::io::Error>(fs::read(&installed)? == fs::read(&wanted)?);
    if same().unwrap_or(false) {
        return Ok(modules);
    }
    for name in ["package.json", "package-lock.json"] {
        fs::copy(source.join(name), dir.join(name))
            .map_err(|error| told("cannot write to", error))?;
    }
    npm_install(&dir)?;
    fs::copy(&wanted, &installed).map_err(|error| told("cannot write to", error))?;
    Ok(modules)
}

fn npm_install(dir: &Path) -> Result<(), String> {
    let output = Command::new("npm")
        .args(["install", "--no-save", "--no-audit", "--no-fund"])
        .arg("--no-progress")
        .args(["--fetch-retries=1", "--fetch-timeout=60000", "--prefix"])
        .arg(dir)
        .env_clear()
        .envs(registry_env())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "npm install ended with {}:\n{stderr}",
        output.status
    ))
}

/// What npm and pip need to reach their registries, and nothing of the job that the tests run in.
pub fn registry_env() -> impl Iterator<Item = (OsString, OsString)> {
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
            || name.starts_with("pip_")
            || name == "node_extra_ca_certs"
    })
}
