//! Small file systems of a test's own, in a mount namespace that ends with the test.

use std::path::Path;
use std::process::Command;

/// Says that a test found nothing to test here. With `SPRAG_CI_STRICT=1` that is a failure.
pub fn skip(test: &str, why: &str) {
    eprintln!("\n!!! NOT DONE: {test}: {why}\n");
    let strict = std::env::var_os("SPRAG_CI_STRICT").is_some_and(|value| value == "1");
    assert!(!strict, "SPRAG_CI_STRICT=1 allows nothing to be left out");
}

/// Whether the caller is inside a mount namespace of its own. Outside of one, the test of this name is
/// run again inside, and the answer is no; where there are none, that is said.
pub fn in_namespace(test: &str) -> bool {
    const INSIDE: &str = "SPRAG_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some_and(|name| name == test) {
        return true;
    }
    let flags = if is_root() { "-m" } else { "-rm" };
    let may = Command::new("unshare")
        .args([flags, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"])
        .output();
    match may {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            skip(test, &format!("no mounts of one's own: {}", why.trim()));
            return false;
        }
        Err(error) => {
            skip(test, &format!("unshare: {error}"));
            return false;
        }
    }
    let output = Command::new("unshare")
        .arg(flags)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(INSIDE, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "inside its namespace:\n{said}\n{errors}"
    );
    assert!(said.contains("1 passed"), "there is no test {test}: {said}");
    false
}

/// Whether the tests run as root.
pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.starts_with(b"0\n")
}

/// Mounts a file system of so many KiB on a directory, with what lies in it.
pub fn mount(at: &Path, kib: u32) {
    let kept = at.with_extension("kept");
    std::fs::rename(at, &kept).unwrap();
    std::fs::create_dir(at).unwrap();
    run(
        "mount",
        &[
            "-t",
            "tmpfs",
            "-o",
            &format!("size={kib}k,mode=700"),
            "tmpfs",
        ],
        at,
    );
    let copied = Command::new("cp")
        .arg("-a")
        .arg(kept.join("."))
        .arg(at)
        .status()
        .unwrap();
    assert!(copied.success());
}

/// Mounts a file on itself, so that nothing can take its place.
pub fn mount_file(at: &Path) {
    run("mount", &["--bind", &at.display().to_string()], at);
}

/// Undoes a mount.
pub fn unmount(at: &Path) {
    run("umount", &[], at);
}

/// Gives such a file system another size.
pub fn resize(at: &Path, kib: u32) {
    run("mount", &["-o", &format!("remount,size={kib}k")], at);
}

/// Makes it one that cannot be written, or one that can.
pub fn read_only(at: &Path, read_only: bool) {
    run(
        "mount",
        &[
            "-o",
            if read_only {
                "remount,ro"
            } else {
                "remount,rw"
            },
        ],
        at,
    );
}

fn run(program: &str, args: &[&str], at: &Path) {
    let output = Command::new(program).args(args).arg(at).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {said}");
}
