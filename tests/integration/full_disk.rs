//! Disks that are full, limited or read-only: what was there stays whole, the run says what is wrong
//! and where, and goes on from there once there is room.

use crate::support::disk::{in_namespace, mount, mount_file, read_only, resize, unmount};
use crate::support::has;
use crate::support::project::{Project, Run, plan};
use std::fs;
use std::path::PathBuf;

const CHECK: &str = "grep -q fixed a.txt";
const ROOM: &str = "free some space there, then continue with sprag run --resume";

/// A project of two tasks, and the agent that does them after `before`.
fn project(before: &str) -> (Project, String) {
    let text = format!("{}  - id: more\n    title: Write b.txt\n", plan(CHECK));
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &text)]);
    let agent = project.agent(&format!(
        "{before}\ncase $SPRAG_TASK_ID in fix) echo fixed > a.txt ;; *) echo more > b.txt ;; esac; echo Done."
    ));
    (project, agent)
}

/// The work is whole on either side of every commit, as git sees it.
fn assert_whole(project: &Project, shown: &str) {
    assert_eq!(
        project.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]),
        "",
        "{shown}"
    );
    let done = project
        .git(&["show", "HEAD:plan.yaml"])
        .matches("status: done")
        .count();
    assert_eq!(project.commits(), 1 + done, "{shown}");
}

/// The end that a run with room all the way comes to.
fn assert_done(project: &Project, run: Run) {
    let run = run.expect(0);
    let shown = format!("{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed", "{shown}");
    assert_eq!(project.git(&["show", "HEAD:b.txt"]), "more", "{shown}");
    assert_eq!(project.commits(), 3, "{shown}");
    assert_eq!(project.status(), "", "{shown}");
    assert_eq!(
        project
            .git(&["show", "HEAD:plan.yaml"])
            .matches("status: done")
            .count(),
        2,
        "{shown}"
    );
    assert_eq!(run.summary["totals"]["done"], 2, "{shown}");
    assert_eq!(
        run.summary["commits"].as_array().unwrap().len(),
        2,
        "{shown}"
    );
    assert_whole(project, &shown);
}

/// A file that takes what is left of a file system, whatever its size will be.
fn filled(at: &str) -> String {
    format!("test -e {at} || cat /dev/zero > {at} 2> /dev/null || true")
}

fn state(project: &Project) -> PathBuf {
    project.beside("state")
}

#[test]
fn no_room_for_the_run_directory_at_the_start() {
    if !in_namespace("full_disk::no_room_for_the_run_directory_at_the_start") {
        return;
    }
    let (project, agent) = project("");
    let state = state(&project);
    mount(&state, 16);
    let mut refused = 0;
    for kib in (16..200).step_by(12) {
        resize(&state, kib);
        let run = project.run(&agent, &[]);
        let shown = format!("{kib} KiB: {}\n{}\n{}", run.code, run.stdout, run.stderr);
        assert!(!run.stderr.contains("panicked"), "{shown}");
        assert_whole(&project, &shown);
        if run.code == 0 {
            break;
        }
        refused += 1;
        assert_eq!(run.code, 4, "{shown}");
        let why = ["No space left on device", "Out of diskspace"];
        assert!(why.iter().any(|why| run.stderr.contains(why)), "{shown}");
        assert!(run.stderr.contains(&state.display().to_string()), "{shown}");
        if let Some(dir) = project.run_dirs().first() {
            resize(&state, 64 << 10);
            assert!(run.stderr.contains(ROOM), "{shown}");
            let dir = dir.display().to_string();
            assert_done(
                &project,
                project.sprag(&["run", "--resume", "--run-dir", &dir]),
            );
            fs::remove_dir_all(dir).unwrap();
            project.git(&["reset", "--quiet", "--hard", "HEAD~2"]);
        }
    }
    assert!(refused > 3, "{refused}");
}

#[test]
fn the_agent_fills_the_disk_of_the_run_directory() {
    if !in_namespace("full_disk::the_agent_fills_the_disk_of_the_run_directory") {
        return;
    }
    let (project, _) = project("");
    let state = state(&project);
    let filler = state.join("filler");
    let agent = project.agent(&format!(
        "{}\ncase $SPRAG_TASK_ID in fix) echo fixed > a.txt ;; *) echo more > b.txt ;; esac; echo Done.",
        filled(&filler.display().to_string())
    ));
    mount(&state, 2 << 10);
    let run = project.run(&agent, &[]).expect(4);
    let shown = format!("{}\n{}", run.stdout, run.stderr);
    let dir = run.dir.unwrap().display().to_string();
    let told = run.stderr.lines().find(|line| line.starts_with("error: "));
    assert!(told.is_some_and(|line| line.contains(&dir)), "{shown}");
    assert!(run.stderr.contains("No space left on device"), "{shown}");
    assert!(run.stderr.contains(ROOM), "{shown}");
    assert_whole(&project, &shown);
    assert_eq!(project.commits(), 1);
    // As long as it is full, it stays as it is.
    let again = project.sprag(&["run", "--resume"]).expect(4);
    has(&again.stderr, "No space left on device");
    fs::remove_file(&filler).unwrap();
    let right = project.agent("case $SPRAG_TASK_ID in fix) echo fixed > a.txt ;; *) echo more > b.txt ;; esac; echo Done.");
    assert_done(
        &project,
        project.sprag(&["run", "--resume", "--agent-command", &right]),
    );
}

/// The objects of the repository: full at the start, after the turn, or with room for some objects.
#[test]
fn no_room_for_objects() {
    if !in_namespace("full_disk::no_room_for_objects") {
        return;
    }
    let mut stopped = 0;
    for left in [0, 4, 8, 12, 16, 20, 28, 40] {
        let (project, _) = project("");
        let objects = project.repo().join(".git/objects");
        mount(&objects, 1 << 10);
        let filler = objects.join("filler");
        let agent = project.agent(&format!(
            "cat /dev/zero > {0} 2> /dev/null; truncate -s -{left}K {0}; echo fixed > a.txt; echo more > b.txt; echo Done.",
            filler.display(),
        ));
        let run = project.run(&agent, &["--task", "fix"]);
        let shown = format!(
            "{left} KiB left: {}\n{}\n{}",
            run.code, run.stdout, run.stderr
        );
        assert_whole(&project, &shown);
        fs::remove_file(&filler).unwrap();
        if run.code == 0 {
            continue;
        }
        stopped += 1;
        assert_eq!(run.code, 4, "{shown}");
        assert!(run.stderr.contains("No space left on device"), "{shown}");
        assert!(run.stderr.contains(ROOM), "{shown}");
        assert_eq!(project.commits(), 1, "{shown}");
        let resumed = project.sprag(&["run", "--resume"]).expect(0);
        assert_eq!(
            (project.calls(), project.commits()),
            (1, 2),
            "{}",
            resumed.stdout
        );
        assert_eq!(project.status(), "");
        assert_whole(&project, &resumed.stdout);
    }
    assert!(stopped > 2, "{stopped}");
}

/// The repository and its work tree on one disk, which the agent fills: with nothing left, and with
/// room for part of what follows.
#[test]
fn no_room_in_the_work_tree() {
    if !in_namespace("full_disk::no_room_in_the_work_tree") {
        return;
    }
    let mut stopped = 0;
    for left in [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 48, 56, 64] {
        let (project, _) = project("");
        mount(&project.repo(), 2 << 10);
        let filler = project.repo().join(".git/logs/filler");
        let agent = project.agent(&format!(
            "echo fixed > a.txt; echo more > b.txt; cat /dev/zero > {0} 2> /dev/null; truncate -s -{left}K {0}; echo Done.",
            filler.display(),
        ));
        let run = project.run(&agent, &["--task", "fix"]);
        let shown = format!(
            "{left} KiB left: {}\n{}\n{}",
            run.code, run.stdout, run.stderr
        );
        assert!(!run.stderr.contains("panicked"), "{shown}");
        assert_eq!(
            project.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]),
            "",
            "{shown}"
        );
        fs::remove_file(&filler).unwrap();
        if run.code == 0 {
            continue;
        }
        stopped += 1;
        assert_eq!(run.code, 4, "{shown}");
        assert!(
            run.stderr
                .contains(", then continue with sprag run --resume"),
            "{shown}"
        );
        let resumed = project.sprag(&["run", "--resume"]);
        let shown = format!("{shown}\n{}\n{}", resumed.stdout, resumed.stderr);
        assert_eq!(resumed.code, 0, "{shown}");
        assert_eq!((project.calls(), project.commits()), (1, 2), "{shown}");
        assert_eq!(project.status(), "", "{shown}");
        assert_whole(&project, &shown);
    }
    assert!(stopped > 3, "{stopped}");
}

#[test]
fn no_room_for_temporary_files_is_nothing_to_sprag() {
    if !in_namespace("full_disk::no_room_for_temporary_files_is_nothing_to_sprag") {
        return;
    }
    let (project, agent) = project("cat /dev/zero > \"$TMPDIR/filler\" 2> /dev/null || true");
    let tmp = project.beside("tmp");
    mount(&tmp, 64);
    assert_done(&project, project.run(&agent, &[]));
    assert!(tmp.join("filler").exists());
}

#[test]
fn a_run_directory_that_is_read_only_keeps_the_run_for_later() {
    if !in_namespace("full_disk::a_run_directory_that_is_read_only_keeps_the_run_for_later") {
        return;
    }
    let (project, agent) = project("[ $N = 1 ] && { kill_sprag; sleep 60; }");
    let state = state(&project);
    mount(&state, 8 << 10);
    project.run(&agent, &[]).expect(-9);
    read_only(&state, true);
    let refused = project.sprag(&["run", "--resume"]).expect(4);
    let said = format!("{}", state.display());
    assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    has(&refused.stderr, "Read-only file system");
    assert_whole(&project, &refused.stderr);
    read_only(&state, false);
    assert_done(&project, project.sprag(&["run", "--resume"]));
}

#[test]
fn a_read_only_work_tree_is_refused_before_any_turn() {
    if !in_namespace("full_disk::a_read_only_work_tree_is_refused_before_any_turn") {
        return;
    }
    let (project, agent) = project("");
    mount(&project.repo(), 4 << 10);
    read_only(&project.repo(), true);
    let run = project.run(&agent, &[]).expect(4);
    let said = format!(
        "{} cannot be written: Read-only file system",
        project.repo().display()
    );
    assert!(run.stderr.contains(&said), "{}", run.stderr);
    assert_eq!(project.calls(), 0);
    assert_eq!(project.run_dirs().len(), 0);
}

/// `/dev/full` takes nothing: what a person would have read is lost, and the work is not.
#[test]
fn reports_that_cannot_be_written_do_not_fail_the_run() {
    let (mut project, agent) = project("");
    project.env("GITHUB_OUTPUT", "/dev/full");
    project.env("GITHUB_STEP_SUMMARY", "/dev/full");
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let output = project
        .command(&[
            "run",
            "--plan",
            "plan.yaml",
            "--agent-command",
            &agent,
            "--events",
            "/dev/full",
        ])
        .stdout(full())
        .output()
        .unwrap();
    let run = project.finished(&output);
    for what in [
        "step summary (GITHUB_STEP_SUMMARY)",
        "outputs (GITHUB_OUTPUT)",
    ] {
        let said =
            format!("warning: the {what} could not be written: /dev/full: No space left on device");
        assert!(run.stderr.contains(&said), "{}", run.stderr);
    }
    let warnings = run.summary["warnings"].to_string();
    for what in ["the JSONL report stopped", "the log report stopped"] {
        assert!(warnings.contains(what), "{warnings}");
    }
    assert_done(&project, run);
}

/// Whatever the size that no file may exceed, status and commit belong together, Sprag itself is not
/// ended by SIGXFSZ, and the run is taken up without the limit.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_no_death() {
    let mut stopped = 0;
    for blocks in [0, 1, 2, 3, 4, 6, 8, 10, 14] {
        let (project, agent) = project("");
        let script = format!(
            "ulimit -f {blocks}; exec {} run --plan plan.yaml --agent-command '{agent}'",
            env!("CARGO_BIN_EXE_sprag")
        );
        let output = project.program("sh", &["-c", &script]).output().unwrap();
        let run = project.finished(&output);
        let shown = format!(
            "{blocks} blocks: {}\n{}\n{}",
            run.code, run.stdout, run.stderr
        );
        assert!(!run.stderr.contains("panicked"), "{shown}");
        assert_whole(&project, &shown);
        if run.code == 0 {
            continue;
        }
        stopped += 1;
        assert!([1, 4].contains(&run.code), "{shown}");
        if run.dir.is_some() {
            assert_done(&project, project.sprag(&["run", "--resume"]));
        }
    }
    assert!(stopped > 3, "only {stopped} limits were hit");
}

/// Such as a plan that `docker run --volume` puts into a checkout.
#[test]
fn a_file_that_is_a_mount_keeps_the_run_for_later() {
    if !in_namespace("full_disk::a_file_that_is_a_mount_keeps_the_run_for_later") {
        return;
    }
    for name in ["plan.yaml", ".git/index"] {
        let (project, agent) = project("");
        let file = project.repo().join(name);
        mount_file(&file);
        let run = project.run(&agent, &[]).expect(4);
        let said = format!("cannot write {}: ", file.display());
        assert!(run.stderr.contains(&said), "{}", run.stderr);
        // In the words of the C library.
        assert!(
            run.stderr.to_lowercase().contains("resource busy"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("if it is a mount"), "{}", run.stderr);
        assert_eq!(project.calls(), 1);
        unmount(&file);
        assert_done(&project, project.sprag(&["run", "--resume"]));
        assert_eq!(project.calls(), 2);
    }
}
