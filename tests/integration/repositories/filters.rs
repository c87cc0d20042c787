//! F27: filters that were configured before the run do their work, wherever they were configured.

use super::{assert_exact, delta, has, warnings, work};
use crate::support::project::Project;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A stand-in for git-lfs: content is kept by its digest elsewhere, a pointer to it is committed.
const CLEAN: &str = "t=$(mktemp); cat > \"$t\"; h=$(sha256sum < \"$t\" | cut -c1-64)\n\
    mkdir -p STORE; cp \"$t\" STORE/$h; rm -f \"$t\"; echo pointer $h";
const SMUDGE: &str = "read -r word h; cat STORE/$h";

/// The long-running protocol of gitattributes(5), which shouts what is cleaned.
const PROCESS: &str = r#"LC_ALL=C
packet() {
  n=$(dd bs=1 count=4 2>/dev/null)
  [ -n "$n" ] || exit 0
  [ "$n" != 0000 ] || return 1
  dd bs=1 count=$((0x$n - 4)) > "$T/packet" 2>/dev/null
}
put() { printf '%04x%s\n' $((${#1} + 5)) "$1"; }
flush() { printf 0000; }
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
while packet; do :; done
put git-filter-server; put version=2; flush
while packet; do :; done
put capability=clean; put capability=smudge; flush
while :; do
  command=
  while packet; do
    case $(cat "$T/packet") in command=*) command=$(sed s/command=// "$T/packet");; esac
  done
  : > "$T/content"
  while packet; do cat "$T/packet" >> "$T/content"; done
  echo "$command" >> "$LOG"
  case $command in
    clean) tr a-z A-Z < "$T/content" > "$T/out";;
    *) tr A-Z a-z < "$T/content" > "$T/out";;
  esac
  put status=success; flush
  printf '%04x' $(($(wc -c < "$T/out") + 4)); cat "$T/out"; flush
  flush
done"#;

fn program(project: &Project, name: &str, body: &str) -> String {
    let path = project.outside(name);
    let store = project.outside("store");
    let body = body.replace("STORE", store.to_str().unwrap());
    let log = project.outside("filtered");
    let text = format!("#!/bin/sh\nLOG={}\n{body}\n", log.display());
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// The lines of a configuration with the stand-in for git-lfs.
fn pointers(project: &Project) -> String {
    let clean = program(project, "clean", CLEAN);
    let smudge = program(project, "smudge", SMUDGE);
    format!("[filter \"lfs\"]\n\tclean = {clean}\n\tsmudge = {smudge}\n\trequired = true\n")
}

#[derive(Debug, Clone, Copy)]
enum Scope {
    Local,
    Global,
    System,
}

/// A project with one filtered file, whose filter is configured at `scope`.
fn filtered(scope: Scope) -> Project {
    let mut project = Project::new(&[("a.txt", "a\n")]);
    let text = pointers(&project);
    let file = project.outside("gitconfig");
    match scope {
        Scope::Local => append(&project.repo().join(".git/config"), &text),
        Scope::Global => {
            append(&file, &text);
            project.env("GIT_CONFIG_GLOBAL", &file);
        }
        Scope::System => {
            append(&file, &text);
            project.env("GIT_CONFIG_NOSYSTEM", "0");
            project.env("GIT_CONFIG_SYSTEM", &file);
        }
    }
    project.write(".gitattributes", "*.bin filter=lfs -text\n");
    project.write("big.bin", "content\n");
    // The fixture's own git knows only the repository's configuration.
    let with = file.to_str().unwrap();
    if matches!(scope, Scope::Local) {
        project.commit_all("filtered");
    } else {
        let include = format!("include.path={with}");
        project.git(&["-c", &include, "add", "--all"]);
        project.git(&["-c", &include, "commit", "--quiet", "--message", "filtered"]);
    }
    assert!(
        project
            .git(&["show", "HEAD:big.bin"])
            .starts_with("pointer ")
    );
    project
}

fn append(path: &Path, text: &str) {
    let old = fs::read_to_string(path).unwrap_or_default();
    fs::write(path, old + text).unwrap();
}

#[test]
fn a_filtered_file_that_is_only_touched_is_no_change() {
    let project = filtered(Scope::Global);
    let base = project.head();
    let run = work(
        &project,
        "touch -d '2001-01-01' big.bin; cp big.bin x; mv x big.bin; echo b > a.txt",
    )
    .expect(0);
    assert_eq!(delta(&project, &base), ["M a.txt"]);
    assert_eq!(warnings(&run), Vec::<&str>::new());
}

#[test]
fn an_edited_filtered_file_is_committed_as_its_pointer() {
    for scope in [Scope::Local, Scope::Global, Scope::System] {
        let project = filtered(scope);
        let base = project.head();
        let run = work(&project, "echo edited > big.bin; echo new > new.bin").expect(0);
        let expected = ["A new.bin", "M big.bin"];
        assert_eq!(delta(&project, &base), expected, "{scope:?} {}", run.stdout);
        for name in ["big.bin", "new.bin"] {
            let blob = project.git(&["show", &format!("HEAD:{name}")]);
            assert!(blob.starts_with("pointer "), "{scope:?}: {blob}");
        }
        assert_eq!(project.read("big.bin"), "edited\n");
        let include = format!("include.path={}", project.outside("gitconfig").display());
        let status = project.git(&["-c", &include, "status", "--porcelain"]);
        assert_eq!(status, "", "{scope:?}");
    }
}

#[test]
fn the_long_running_protocol_is_spoken() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let process = program(&project, "process", PROCESS);
    project.git(&["config", "filter.loud.process", &process]);
    project.git(&["config", "filter.loud.required", "true"]);
    project.write(".gitattributes", "*.loud filter=loud\n");
    project.write("x.loud", "one\n");
    project.commit_all("filtered");
    assert_eq!(project.git(&["show", "HEAD:x.loud"]), "ONE");
    let base = project.head();
    let run = work(&project, "touch x.loud; echo two > y.loud");
    assert_exact(&project, run, &base, &["A y.loud"]);
    assert_eq!(project.git(&["show", "HEAD:y.loud"]), "TWO");
    assert!(project.notes("filtered").iter().any(|line| line == "clean"));
}

#[test]
fn a_required_filter_that_is_gone_at_the_commit_commits_nothing_raw() {
    let project = filtered(Scope::Local);
    let base = project.head();
    let run = work(&project, "rm \"$OUT/clean\"; echo raw > big.bin").expect(1);
    assert_eq!(run.task(0)["reason"], "commit_rejected", "{}", run.stdout);
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("filter 'lfs' failed"), "{message}");
    assert_eq!(project.head(), base);
    assert_eq!(project.read("big.bin"), "raw\n");
    assert!(run.dir.unwrap().join("patches").is_dir());
}

#[test]
fn a_failed_task_with_filtered_files_leaves_a_patch_that_applies() {
    let project = filtered(Scope::Local);
    let agent = project.agent("echo edited > big.bin; echo Done.");
    let args = [
        "run",
        "--prompt",
        "x",
        "--verify",
        "false",
        "--max-retries",
        "0",
    ];
    let run = project
        .sprag(&[&args[..], &["--agent-command", &agent]].concat())
        .expect(1);
    let patch = run.dir.unwrap().join("patches/t1.patch");
    let text = fs::read_to_string(&patch).unwrap();
    assert!(text.contains("+pointer "), "{text}");
}

#[test]
fn an_attribute_of_the_agents_own_uses_a_filter_of_the_start_and_no_other() {
    let project = filtered(Scope::Local);
    let base = project.head();
    let script = "git config filter.evil.clean 'echo evil'
        printf '*.txt filter=lfs\\n*.evil filter=evil\\n' >> .gitattributes
        echo b > a.txt; echo plain > x.evil";
    let run = work(&project, script).expect(0);
    let expected = ["A x.evil", "M .gitattributes", "M a.txt"];
    assert_eq!(delta(&project, &base), expected, "{}", run.stdout);
    assert!(project.git(&["show", "HEAD:a.txt"]).starts_with("pointer "));
    assert_eq!(project.git(&["show", "HEAD:x.evil"]), "plain");
}

#[test]
fn the_real_git_lfs_keeps_its_pointers() {
    if !has("GIT-LFS", &["git-lfs", "version"]) {
        return;
    }
    let project = Project::new(&[("a.txt", "a\n")]);
    project.git(&["lfs", "install", "--local", "--skip-repo"]);
    project.git(&["lfs", "track", "*.bin"]);
    project.write("big.bin", "content\n");
    project.commit_all("tracked");
    let pointer = "version https://git-lfs.github.com/spec/v1";
    assert!(project.git(&["show", "HEAD:big.bin"]).starts_with(pointer));
    let base = project.head();
    let run = work(&project, "touch big.bin; echo b > a.txt");
    assert_exact(&project, run, &base, &["M a.txt"]);
    let base = project.head();
    let run = work(&project, "echo edited > big.bin; echo new > new.bin");
    let run = assert_exact(&project, run, &base, &["A new.bin", "M big.bin"]);
    assert!(project.git(&["show", "HEAD:new.bin"]).starts_with(pointer));
    assert_eq!(warnings(&run), Vec::<&str>::new());
    assert_eq!(project.read("big.bin"), "edited\n");
    let listed = project.git(&["lfs", "ls-files", "--name-only"]);
    assert_eq!(listed, "big.bin\nnew.bin");
    let fsck = project.git(&["lfs", "fsck"]);
    assert!(
        fsck.contains("OK"),
        "the content is in the repository's store: {fsck}"
    );
}
