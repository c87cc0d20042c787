//! A machine that is set up in another way than usual: signals, permissions and limits of the process.

use crate::support::proc::{end_of, signal, wait_until};
use crate::support::project::{Project, plan};
use crate::support::tasks::{FIX, fixable};
use crate::support::user::User;
use std::process::{Command, Stdio};

/// `sprag run` with this agent, started by an `env` with this option; `None` if `env` has no such option.
fn started_by_env(project: &Project, option: &str, agent: &str) -> Option<Command> {
    let has_option = project.program("env", &[option, "true"]).status();
    if !has_option.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this `env` has no {option}");
        return None;
    }
    let sprag = env!("CARGO_BIN_EXE_sprag");
    let run = ["run", "--plan", "plan.yaml", "--agent-command", agent];
    Some(project.program("env", &[&[option, sprag][..], &run].concat()))
}

#[test]
fn a_parent_that_ignores_the_ends_of_its_children_changes_nothing() {
    let project = fixable();
    // Not every shell can ignore this signal.
    let command = started_by_env(&project, "--ignore-signal=CHLD", &project.agent(FIX));
    let Some(mut command) = command else { return };
    let run = project.finished(&command.output().unwrap());
    assert_eq!(run.expect(0).summary["totals"]["done"], 1);
    assert_eq!(project.checks(), 2);
}

#[test]
fn signals_that_were_blocked_at_the_start_cancel_a_run() {
    let project = fixable();
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let agent = project.agent(&format!("touch \"$OUT/began-{name}\"; sleep 300"));
        let Some(mut command) = started_by_env(&project, "--block-signal", &agent) else {
            return;
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let began = project.outside(&format!("began-{name}"));
        wait_until("the turn begins", || began.exists());
        signal(child.id(), name);
        assert_eq!(end_of(&mut child).code(), Some(code), "{name}");
    }
}

/// A project whose test uses what `lib.sh` loads.
fn with_library() -> Project {
    Project::new(&[
        ("plan.yaml", &plan("sh ./test.sh")),
        ("test.sh", ". ./lib.sh; test \"$(answer)\" = yes\n"),
        ("lib.sh", "answer() { echo no; }\n"),
        ("src/part.sh", "\n"),
    ])
}

/// Runs the work of an agent as somebody whom permissions stop.
fn run_as_ordinary(project: &Project, script: &str) -> Option<crate::support::project::Run> {
    let agent = project.agent(script);
    let user = *User::all().last()?;
    let args = [
        "run",
        "--plan",
        "plan.yaml",
        "--max-retries",
        "0",
        "--test-changes",
        "prove",
        "--agent-command",
        &agent,
    ];
    user.sprag(project, &args)
}

/// The name of a file is enough to use it: whoever made a directory that cannot be listed knows the names.
#[test]
fn work_in_a_directory_that_cannot_be_listed_is_not_verified_without_it() {
    for mode in ["311", "111"] {
        let project = with_library();
        let script = format!(
            "mkdir new; echo 'answer() {{ echo yes; }}' > new/x.sh; chmod {mode} new; echo '. ./new/x.sh' > lib.sh; echo Done."
        );
        let Some(run) = run_as_ordinary(&project, &script) else {
            return;
        };
        assert_eq!(
            run.summary["status"], "unverified",
            "{mode}: {}",
            run.stdout
        );
        let message = run.task(0)["message"].as_str().unwrap_or_default();
        let said = "a fresh checkout does not have what the checks saw (new)";
        assert!(
            format!("{message}{}", run.stdout).contains(said),
            "{mode}: {}",
            run.stdout
        );
    }
}

/// git warns of every file of rules that it cannot read, and of many warnings only the last ones are kept.
#[test]
fn a_directory_that_cannot_be_listed_is_found_whatever_else_git_warns_of() {
    let project = with_library();
    let script = "mkdir new; echo 'answer() { echo yes; }' > new/x.sh; chmod 311 new; echo '. ./new/x.sh' > lib.sh; \
        echo '/zz*/.gitignore' > .gitignore; \
        for n in $(seq 60); do d=$(printf 'zz%0200d' $n); mkdir $d; : > $d/.gitignore; chmod 0 $d/.gitignore; done; \
        echo Done.";
    let Some(run) = run_as_ordinary(&project, script) else {
        return;
    };
    assert_eq!(run.summary["status"], "unverified", "{}", run.stdout);
}

#[test]
fn a_tracked_directory_that_cannot_be_listed_hides_no_work() {
    let project = with_library();
    let script = "echo 'answer() { echo yes; }' > src/x.sh; chmod 311 src; echo '. ./src/x.sh' > lib.sh; echo Done.";
    let Some(run) = run_as_ordinary(&project, script) else {
        return;
    };
    let run = run.expect(1);
    assert_eq!(run.task(0)["reason"], "commit_rejected");
    assert!(run.stdout.contains("cannot list src"), "{}", run.stdout);
}

/// Such as the data of a container, which belongs to another user.
#[test]
fn a_directory_that_could_not_be_listed_before_the_run_is_left_alone() {
    let project = with_library();
    std::fs::create_dir(project.repo().join("data")).unwrap();
    let closed = Command::new("chmod")
        .arg("000")
        .arg(project.repo().join("data"))
        .status();
    assert!(closed.unwrap().success());
    let script = "echo 'answer() { echo yes; }' > lib.sh; echo Done.";
    let Some(run) = run_as_ordinary(&project, script) else {
        return;
    };
    let run = run.expect(0);
    assert_eq!(run.summary["status"], "success", "{}", run.stdout);
    let warning = "\nwarning: could not open directory 'data/'";
    let said = format!("\n{}{}", run.stdout, run.stderr);
    assert!(said.contains(warning), "{said}");
}

/// Such as a job that sets HOME to its workspace.
#[test]
fn state_inside_of_the_work_tree_is_refused_before_anything_is_written() {
    let mut project = fixable();
    let agent = project.agent(FIX);
    let home = project.repo();
    project.env("HOME", &home).env("XDG_STATE_HOME", "");
    let run = project.run(&agent, &[]).expect(2);
    let remedy = "set XDG_STATE_HOME to an absolute path outside";
    assert!(run.stderr.contains(remedy), "{}", run.stderr);
    assert_eq!((project.status(), project.calls()), (String::new(), 0));
    let state = project.beside("state");
    project.env("XDG_STATE_HOME", &state);
    project.run(&agent, &[]).expect(0);
}

#[test]
fn a_place_for_runs_that_cannot_be_used_names_the_variable_that_chose_it() {
    let mut project = fixable();
    let agent = project.agent(FIX);
    project.env("GITHUB_ACTIONS", "true");
    let inside = project.repo().join("temp");
    let cases = [
        (
            inside.to_str().unwrap(),
            2,
            "set RUNNER_TEMP to a directory",
        ),
        ("temp", 2, "set RUNNER_TEMP to a directory"),
        ("/proc/nowhere", 4, "with --run-dir or in RUNNER_TEMP"),
    ];
    for (temp, code, remedy) in cases {
        project.env("RUNNER_TEMP", temp);
        let run = project.run(&agent, &["--no-push"]).expect(code);
        assert!(run.stderr.contains(remedy), "{temp}: {}", run.stderr);
        assert_eq!((project.status(), project.calls()), (String::new(), 0));
    }
}

/// `-C` changes what paths of the command line mean, and not what the runner has set.
#[test]
fn a_file_of_the_runner_with_a_relative_path_is_put_back_too() {
    let mut project = fixable();
    let agent = project.agent(&format!("echo B=2 >> \"$OUT/env\"; {FIX}"));
    project.env("GITHUB_ENV", "env");
    std::fs::write(project.outside("env"), "A=1\n").unwrap();
    let repo = project.repo();
    let repo = ["run", "-C", repo.to_str().unwrap(), "--plan", "plan.yaml"];
    let mut command = project.command(&[&repo[..], &["--agent-command", &agent]].concat());
    let output = command.current_dir(project.outside("")).output().unwrap();
    project.finished(&output).expect(3);
    let left = std::fs::read_to_string(project.outside("env")).unwrap();
    assert_eq!(left, "A=1\n");
}

#[test]
fn a_git_that_cannot_start_is_a_fault_of_the_machine() {
    let mut project = fixable();
    let agent = project.agent(FIX);
    let programs = project.outside("bin");
    std::fs::create_dir(&programs).unwrap();
    let git = programs.join("git");
    for body in ["#!/no/interpreter\n", "#!/bin/sh\nexit 1\n"] {
        std::fs::write(&git, body).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&git, mode).unwrap();
        project.env("PATH", &programs);
        let run = project.run(&agent, &[]).expect(4);
        assert!(run.stderr.contains("able to run git"), "{}", run.stderr);
    }
}

#[test]
fn a_configuration_that_git_refuses_is_not_taken_for_a_full_disk() {
    let project = fixable();
    let agent = project.agent(FIX);
    std::fs::write(project.beside("home/.gitconfig"), "[core\n").unwrap();
    let run = project.run(&agent, &[]).expect(4);
    assert!(run.stderr.contains("bad config line 1"), "{}", run.stderr);
    assert!(
        run.stderr.contains("`git status` must work"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_lock_of_the_branch_is_named_before_any_turn() {
    let project = fixable();
    let lock = project.repo().join(".git/refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    let run = project.by(FIX, &[]).expect(1);
    let warning = run.summary["warnings"][0].as_str().unwrap();
    assert!(warning.contains(&lock.display().to_string()), "{warning}");
    assert!(lock.exists());
    std::fs::remove_file(&lock).unwrap();
    project.sprag(&["run", "--resume"]).expect(0);
}

/// With so few that not even signals can be handled, a crate panics.
#[test]
fn a_panic_before_a_run_is_an_internal_error() {
    let project = fixable();
    let sprag = env!("CARGO_BIN_EXE_sprag");
    let script = "ulimit -n 6; exec \"$@\"";
    let args = [
        "-c",
        script,
        "sh",
        sprag,
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        "true",
    ];
    let output = project.program("sh", &args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(4 | 70)), "{said}");
    assert!(said.contains("\nerror: "), "{said}");
}

#[test]
fn too_few_open_files_are_a_fault_of_the_machine() {
    let sprag = env!("CARGO_BIN_EXE_sprag");
    let mut stopped = 0;
    for limit in (8..64).step_by(4) {
        let project = fixable();
        let agent = project.agent(FIX);
        let script = format!("ulimit -n {limit}; exec \"$@\"");
        let run = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        let args = [&["-c", &script, "sh", sprag][..], &run].concat();
        let run = project.finished(&project.program("sh", &args).output().unwrap());
        let shown = format!("{limit}: {}\n{}\n{}", run.code, run.stdout, run.stderr);
        assert!(!run.stderr.contains("panicked"), "{shown}");
        assert!(!shown.contains("not by Sprag"), "{shown}");
        if run.code == 0 {
            assert_eq!(run.summary["totals"]["done"], 1, "{shown}");
            break;
        }
        stopped += 1;
        assert_eq!((run.code, project.commits()), (4, 2), "{shown}");
        if run.dir.is_some() {
            project.sprag(&["run", "--resume"]).expect(0);
        }
    }
    assert!(stopped > 3, "{stopped}");
}
