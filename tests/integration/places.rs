//! Whose the repository is, where a run may keep its state, and who may work there at the same time.

use crate::support::disk::{is_root, skip};
use crate::support::project::{Project, Run};
use crate::support::tasks::{FIX, fixable};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

const NOBODY: &str = "65534";

/// A project that belongs to a user who is not root, and how to run programs as that user: needed
/// where root, whom no permission stops, runs the tests. `None` where that cannot be done.
fn of_plain_user(test: &str) -> Option<(Project, Vec<&'static str>)> {
    let project = fixable();
    if !is_root() {
        return Some((project, Vec::new()));
    }
    let user = vec![
        "setpriv",
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "--",
    ];
    let owned = Command::new("chown")
        .args(["-R", &format!("{NOBODY}:{NOBODY}")])
        .arg(project.beside(""))
        .status();
    let may = Command::new(user[0])
        .args(&user[1..])
        .args(["test", "-x", env!("CARGO_BIN_EXE_sprag"), "-a", "-w"])
        .arg(project.repo())
        .status();
    if !owned.is_ok_and(|status| status.success()) || !may.is_ok_and(|status| status.success()) {
        skip(test, "no other user can be who runs the program");
        return None;
    }
    Some((project, user))
}

fn run_as(project: &Project, user: &[&str], agent: &str) -> Run {
    let sprag = [
        env!("CARGO_BIN_EXE_sprag"),
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        agent,
    ];
    let all = [user, &sprag[..]].concat();
    project.finished(&project.program(all[0], &all[1..]).output().unwrap())
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_plain_user_works_in_a_repository_of_its_own() {
    let Some((project, user)) = of_plain_user("a_plain_user_works_in_a_repository_of_its_own")
    else {
        return;
    };
    let agent = project.agent(FIX);
    let run = run_as(&project, &user, &agent).expect(0);
    assert_eq!(run.summary["totals"]["done"], 1);
    let index = fs::metadata(project.repo().join(".git/index")).unwrap();
    assert_eq!(index.uid(), fs::metadata(project.repo()).unwrap().uid());
}

#[test]
fn places_that_cannot_be_written_are_named_before_any_turn() {
    let Some((project, user)) =
        of_plain_user("places_that_cannot_be_written_are_named_before_any_turn")
    else {
        return;
    };
    let agent = project.agent(FIX);
    let git = project.repo().join(".git");
    let places = [
        project.beside("state"),
        project.repo(),
        git.clone(),
        git.join("objects"),
    ];
    for place in places {
        set_mode(&place, 0o555);
        let run = run_as(&project, &user, &agent);
        set_mode(&place, 0o755);
        let shown = format!("{}\n{}\n{}", place.display(), run.stdout, run.stderr);
        assert_eq!(run.code, 4, "{shown}");
        assert!(run.stderr.contains(&place.display().to_string()), "{shown}");
        assert!(run.stderr.contains("Permission denied"), "{shown}");
        assert!(
            run.stderr.lines().count() > 1,
            "there is no remedy: {shown}"
        );
        assert_eq!(
            (project.calls(), project.run_dirs().len()),
            (0, 0),
            "{shown}"
        );
    }
    run_as(&project, &user, &agent).expect(0);
}

#[test]
fn a_repository_of_somebody_else_is_refused_until_git_is_told_to_trust_it() {
    let test = "a_repository_of_somebody_else_is_refused_until_git_is_told_to_trust_it";
    if !is_root() {
        return skip(test, "only root can give files away");
    }
    let Some((project, user)) = of_plain_user(test) else {
        return;
    };
    let agent = project.agent(FIX);
    let repo = project.repo();
    let given = |args: &[&str]| {
        Command::new(args[0])
            .args(&args[1..])
            .arg(&repo)
            .status()
            .unwrap()
            .success()
    };
    assert!(given(&["chown", "-R", "0:0"]) && given(&["chmod", "-R", "a+rwX"]));
    let refused = run_as(&project, &user, &agent).expect(4);
    let said = format!(
        "{} belongs to user 0, not to user {NOBODY}; run as its owner or run `git config --global --add safe.directory",
        repo.display()
    );
    assert!(refused.stderr.contains(&said), "{}", refused.stderr);
    assert_eq!((project.calls(), project.run_dirs().len()), (0, 0));
    let trusted = format!("[safe]\n\tdirectory = {}\n", repo.display());
    fs::write(project.beside("home/.gitconfig"), trusted).unwrap();
    run_as(&project, &user, &agent).expect(0);
}

/// The usual case of a job in a container: the checkout belongs to the runner's user.
#[test]
fn root_works_in_the_repository_of_somebody_else() {
    let test = "root_works_in_the_repository_of_somebody_else";
    if !is_root() {
        return skip(test, "only root can give files away");
    }
    let Some((project, _)) = of_plain_user(test) else {
        return;
    };
    let agent = project.agent(FIX);
    let run = run_as(&project, &[], &agent).expect(0);
    assert_eq!(run.summary["totals"]["done"], 1);
}

#[test]
fn a_lock_that_names_a_living_process_is_free_when_nobody_holds_it() {
    let project = fixable();
    let agent = project.agent(FIX);
    project.run(&agent, &[]).expect(0);
    let locks = project.beside("state/sprag/locks");
    let lock = fs::read_dir(&locks)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    // Process ids are given out again: the holder is long dead, and its id is somebody's.
    fs::write(&lock, format!("pid {}", std::process::id())).unwrap();
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(run.summary["status"], "no_work");
}

#[test]
fn the_environment_of_sprag_is_closed_to_what_it_starts() {
    let test = "the_environment_of_sprag_is_closed_to_what_it_starts";
    let Some((mut project, user)) = of_plain_user(test) else {
        return;
    };
    project.env("GITHUB_TOKEN", "canary-in-the-environment");
    let look = r#"
pid=$PPID
while [ "$pid" -gt 1 ]; do
  case $(cat "/proc/$pid/comm") in
    sprag*) echo sprag >>"$SPRAG_RUN_DIR/../looked"; cat "/proc/$pid/environ" "/proc/$pid/mem" >>"$SPRAG_RUN_DIR/../looked" ;;
  esac
  pid=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d' ' -f2)
done
"#;
    let looked = project.outside("looked");
    let look = look.replace("$SPRAG_RUN_DIR/../looked", &looked.display().to_string());
    let agent = project.agent(&format!("{look}{FIX}"));
    run_as(&project, &user, &agent).expect(0);
    let seen = String::from_utf8_lossy(&fs::read(&looked).unwrap()).into_owned();
    assert_eq!(seen, "sprag\n");
}
