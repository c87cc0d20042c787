//! F32: workspaces of other users, homes that are missing or closed, directories that cannot be written.

use super::{delta, has, work};
use crate::support::project::Project;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Output;

const NOBODY: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn give_away(dir: &Path, user: u32) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            give_away(&path, user);
        } else {
            std::os::unix::fs::lchown(&path, Some(user), Some(user)).unwrap();
        }
    }
    chown(dir, Some(user), Some(user)).unwrap();
}

/// Runs `sprag` as nobody, with a home and a state directory of nobody's.
fn as_nobody(project: &Project, env: &[(&str, &Path)]) -> Output {
    let agent = project.agent("echo b > a.txt; echo Done.");
    give_away(&project.outside(""), NOBODY);
    let own = project.outside("");
    let root = own.parent().unwrap();
    for dir in ["home", "tmp", "state"] {
        give_away(&root.join(dir), NOBODY);
    }
    let mut args = vec!["--reuid=65534", "--regid=65534", "--clear-groups"];
    args.push(env!("CARGO_BIN_EXE_sprag"));
    args.extend([
        "run",
        "--prompt",
        "x",
        "--verify",
        "true",
        "--agent-command",
        &agent,
    ]);
    let mut command = project.program("setpriv", &args);
    command.envs(env.iter().copied());
    command.output().unwrap()
}

/// Whether nobody may be become, and may then reach the build's own directory.
fn can_be_nobody() -> bool {
    let exe = env!("CARGO_BIN_EXE_sprag");
    is_root()
        && has(
            "SETPRIV AND A BUILD THAT OTHERS MAY READ",
            &[
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                exe,
                "--version",
            ],
        )
}

#[test]
fn root_works_in_a_workspace_of_another_user_and_leaves_it_readable() {
    if !is_root() {
        return;
    }
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    give_away(&project.repo(), NOBODY);
    let run = work(&project, "echo b > a.txt").expect(0);
    project.git(&["config", "--global", "--add", "safe.directory", "*"]);
    assert_eq!(delta(&project, &base), ["M a.txt"], "{}", run.stdout);
}

#[test]
fn root_of_a_container_works_in_a_workspace_of_another_user() {
    if !is_root() {
        return;
    }
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    project.git(&["config", "--global", "--add", "safe.directory", "*"]);
    let agent = project.agent("echo b > a.txt; echo Done.");
    give_away(&project.repo(), NOBODY);
    let run = |sandbox: &str| {
        let exe = env!("CARGO_BIN_EXE_sprag");
        let args = ["--bounding-set", "-sys_admin", exe, "run", "--prompt", "x"];
        let rest = [
            "--verify",
            "true",
            "--sandbox",
            sandbox,
            "--agent-command",
            &agent,
        ];
        let output = project.program("setpriv", &[args, rest].concat()).output();
        project.finished(&output.unwrap())
    };
    run("require").expect(4);
    let run = run("auto").expect(0);
    assert_eq!(delta(&project, &base), ["M a.txt"], "{}", run.stdout);
}

#[test]
fn another_user_is_refused_with_the_remedy_unless_the_directory_is_listed() {
    if !can_be_nobody() {
        return;
    }
    let project = Project::new(&[("a.txt", "a\n")]);
    let output = as_nobody(&project, &[]);
    let repo = project.repo().canonicalize().unwrap();
    let repo = repo.display();
    let said = format!(
        "error: {repo} belongs to user 0, not to user 65534; run as its owner or run `git config --global --add safe.directory {repo}`\n"
    );
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(4), said.as_str()));
    assert_eq!(project.calls(), 0);
}

#[test]
fn a_work_tree_that_cannot_be_written_is_told_before_any_turn() {
    if !can_be_nobody() {
        return;
    }
    for closed in ["repo", "repo/.git"] {
        let project = Project::new(&[("a.txt", "a\n")]);
        give_away(&project.repo(), NOBODY);
        let root = project.outside("").parent().unwrap().to_path_buf();
        let closed = root.join(closed);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
        let output = as_nobody(&project, &[]);
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let shown = closed.canonicalize().unwrap();
        assert_eq!(output.status.code(), Some(4), "{stderr}");
        assert!(
            stderr.contains(&format!("{} cannot be written", shown.display())),
            "{stderr}"
        );
        assert_eq!(project.calls(), 0, "{stderr}");
    }
}

#[test]
fn a_home_that_cannot_be_written_is_told_or_done_without() {
    if !can_be_nobody() {
        return;
    }
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    give_away(&project.repo(), NOBODY);
    let closed = project.repo().parent().unwrap().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).unwrap();
    let output = as_nobody(
        &project,
        &[("HOME", &closed), ("XDG_STATE_HOME", Path::new(""))],
    );
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    project.git(&["config", "--global", "--add", "safe.directory", "*"]);
    match output.status.code() {
        Some(0) => assert_eq!(delta(&project, &base), ["M a.txt"]),
        code => {
            assert_eq!((code, project.calls()), (Some(4), 0), "{stderr}");
            assert!(stderr.contains(closed.to_str().unwrap()), "{stderr}");
        }
    }
}
