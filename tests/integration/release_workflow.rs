//! What `release.yml` does beside building: its own scripts, run as a runner runs them, with a `gh` that has
//! the release in a directory.

use crate::action_file::{ROOT, yaml};
use crate::support::project::Project;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

const WORKFLOW: &str = ".github/workflows/release.yml";
const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// `download` is all that the release is asked for, and `auth` does nothing.
const GH: &str = r#"#!/bin/sh
case "$1 $2" in
  "release download") [ "$3 $4 $5 $6" = "$GITHUB_REF_NAME --pattern SHA256SUMS --dir" ] && cp "$RELEASE/SHA256SUMS" "$7" ;;
  "auth setup-git") ;;
  *) echo "gh $*" >&2; exit 1 ;;
esac
"#;

/// The script of a step, by its job and its name.
fn script(job: &str, name: &str) -> String {
    let workflow = yaml(WORKFLOW);
    let steps = workflow["jobs"][job]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == name).unwrap();
    step["run"].as_str().unwrap().to_owned()
}

fn tag() -> String {
    format!("v{}", env!("CARGO_PKG_VERSION"))
}

/// A step as a runner starts it.
fn run(script: &str, dir: &Path, tag: &str, env: &[(&str, &str)]) -> Output {
    Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
        .current_dir(dir)
        .env("GITHUB_REF_NAME", tag)
        .env("GITHUB_REPOSITORY", "sprag-ci/sprag")
        .envs(env.iter().copied())
        .output()
        .unwrap()
}

fn expect(output: &Output) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_tag_of_this_version_is_released_and_no_other() {
    let step = script(
        "build",
        "The tag, the package and the container action have one version",
    );
    expect(&run(&step, Path::new(ROOT), &tag(), &[]));
    for other in ["v99.0.0", "v0.1", ""] {
        let refused = run(&step, Path::new(ROOT), other, &[]);
        assert!(!refused.status.success(), "{other}");
    }
}

/// Every job of the release waits for the gate, and the tag that people use moves last.
#[test]
fn nothing_is_released_before_the_gate() {
    let workflow = yaml(WORKFLOW);
    let needs = |job: &str| match &workflow["jobs"][job]["needs"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(all) => all
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect(),
        _ => Vec::new(),
    };
    assert_eq!(needs("image"), ["build", "gate"]);
    assert_eq!(needs("release"), ["build", "gate", "images"]);
    assert_eq!(needs("crates"), ["release"]);
    assert_eq!(needs("images"), ["image"]);
    assert_eq!(needs("major"), ["images", "release"]);
}

#[test]
fn the_tag_of_the_major_version_pins_binaries_and_image() {
    let project = Project::new(&[("action/run.sh", "")]);
    let container = fs::read_to_string(Path::new(ROOT).join("docker/action.yml")).unwrap();
    project.write("docker/action.yml", &container);
    project.commit_all("The commit of the tag");
    let remote = project.outside("remote.git");
    let remote = remote.to_str().unwrap();
    project.git(&["init", "--quiet", "--bare", remote]);
    project.git(&["remote", "add", "origin", remote]);
    project.git(&["tag", &tag()]);

    let release = project.outside("release");
    fs::create_dir(&release).unwrap();
    for machine in ["x86_64", "aarch64"] {
        fs::write(release.join(format!("sprag-{machine}-linux")), machine).unwrap();
    }
    expect(&run(&script("release", "Checksums"), &release, &tag(), &[]));
    let sums = fs::read_to_string(release.join("SHA256SUMS")).unwrap();
    let checked = Command::new("sha256sum")
        .args(["--check", "--strict", "SHA256SUMS"])
        .current_dir(&release)
        .output();
    expect(&checked.unwrap());
    assert_eq!(sums.lines().count(), 2);

    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("gh"), GH).unwrap();
    fs::set_permissions(bin.join("gh"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let env = [
        ("PATH", path.as_str()),
        ("RELEASE", release.to_str().unwrap()),
        ("DIGEST", DIGEST),
    ];
    let step = script("major", "Move it");
    expect(&run(&step, &project.repo(), &tag(), &env));
    let major = format!("v{}", env!("CARGO_PKG_VERSION_MAJOR"));
    let of_remote = |args: &[&str]| project.git(&[&["--git-dir", remote], args].concat());
    let shown = |path: &str| of_remote(&["show", &format!("{major}:{path}")]);
    assert_eq!(shown("action/SHA256SUMS"), sums.trim_end());
    let container: Value = serde_saphyr::from_str(&shown("docker/action.yml")).unwrap();
    let image = format!("docker://ghcr.io/sprag-ci/sprag@{DIGEST}");
    assert_eq!(container["runs"]["image"], image.as_str());
    // The next release moves the tag.
    let first = of_remote(&["rev-parse", &major]);
    project.git(&["reset", "--quiet", "--hard", &tag()]);
    project.write("more", "");
    project.commit_all("More");
    expect(&run(&step, &project.repo(), &tag(), &env));
    assert_ne!(of_remote(&["rev-parse", &major]), first);
}
