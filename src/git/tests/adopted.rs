//! What a resumed run takes of the repository that somebody changed since the run ended.

use super::support::*;
use std::fs;
use std::os::unix::fs::symlink;

/// A turn in which an agent did something, and then what a person did.
fn adopted(f: &mut Fixture, agent: impl FnOnce(&Fixture)) -> String {
    let mark = f.repo.mark_turn().unwrap();
    agent(f);
    if !f.repo.is_configured_as_found() {
        f.repo.inspect_turn(&mark).unwrap();
    }
    assert!(f.repo.is_configured_as_found());
    f.git(&["remote", "add", "fork", "https://example.invalid/fork"]);
    let warning = f.repo.adopt_changed_configuration().unwrap();
    assert!(f.repo.is_configured_as_found());
    assert_eq!(f.repo.adopt_changed_configuration().unwrap(), None);
    warning.unwrap()
}

#[test]
fn links_that_an_agent_made_stay_foreign() {
    let mut f = Worktree::new().start();
    let warning = adopted(&mut f, |f| {
        fs::remove_dir_all(f.path(".git/logs")).unwrap();
        fs::create_dir(f.path(".git/logs")).unwrap();
        symlink(f.root().join("victim"), f.path(".git/logs/HEAD")).unwrap();
    });
    let expected = ".git/config changed after the end of the run; it is used as it is now";
    assert_eq!(warning, expected);
    assert!(f.repo.refuse_links("HEAD").is_err());
}

#[test]
fn hooks_of_the_work_tree_are_those_of_the_start_even_if_the_agent_removed_them() {
    let ground = Worktree::new();
    ground.script("hooks/pre-commit", "exit 1");
    ground.git(&["config", "core.hooksPath", "hooks"]);
    let mut f = ground.start();
    adopted(&mut f, |f| f.remove("hooks/pre-commit"));
    assert!(f.repo.private.hook("pre-commit").unwrap().exists());
    adopted_again(&mut f, |f| fs::remove_dir_all(f.path("hooks")).unwrap());
    assert!(f.repo.private.hook("pre-commit").unwrap().exists());
}

fn adopted_again(f: &mut Fixture, agent: impl FnOnce(&Fixture)) {
    f.git(&["remote", "remove", "fork"]);
    f.repo.adopt_changed_configuration().unwrap();
    adopted(f, agent);
}

#[test]
fn rules_of_the_work_tree_are_those_of_the_start() {
    let ground = Worktree::new();
    ground.write("rules", "*.old\n");
    ground.git(&["config", "core.excludesFile", "rules"]);
    fs::remove_file(ground.path(".git/info/exclude")).ok();
    symlink("../../rules", ground.path(".git/info/exclude")).unwrap();
    let mut f = ground.start();
    let shown = |f: &mut Fixture| {
        let found = f.repo.snapshot(&Default::default()).unwrap();
        let paths = found.dirty_paths().into_iter();
        let paths: Vec<String> = paths.map(|it| String::from_utf8(it).unwrap()).collect();
        paths.join(" ")
    };
    f.write("x.old", "");
    f.write("x.new", "");
    adopted(&mut f, |f| f.write("rules", "*.new\n"));
    assert_eq!(shown(&mut f), "rules x.new");
    adopted_again(&mut f, |f| f.remove("rules"));
    assert_eq!(shown(&mut f), "x.new");
}

#[test]
fn configuration_that_includes_files_is_that_of_the_start() {
    let ground = Worktree::new();
    ground.git(&["config", "include.path", "more"]);
    ground.write(".git/more", "[user]\n\tname = Included\n");
    let mut f = ground.start();
    let name = |f: &Fixture| f.repo.configured_identity().unwrap().name;
    let warning = adopted(&mut f, |f| f.write(".git/more", "[user]\n\tname = Agent\n"));
    assert!(warning.contains("what was there at its start"), "{warning}");
    assert_eq!(name(&f), "Included");
    adopted_again(&mut f, |f| f.write(".git/more", ""));
    assert_eq!(name(&f), "Included");
}

#[test]
fn a_planted_file_says_nothing_about_letter_case() {
    let ground = Worktree::new();
    ground.git(&["config", "core.ignoreCase", "true"]);
    let mut f = ground.start();
    adopted(&mut f, |f| f.write(".git/CoNfIg", ""));
    f.write("A", "");
    let found = f.repo.snapshot(&Default::default()).unwrap();
    assert_eq!(found.dirty_paths(), [b"A"]);
}

#[test]
fn what_a_killed_process_has_taken_in_part_is_taken_again() {
    let mut f = Worktree::new().start();
    f.repo.private.state.is_partial = true;
    f.git(&["config", "user.name", "Somebody"]);
    assert!(f.repo.adopt_changed_configuration().unwrap().is_some());
    // Also if somebody has put all files back.
    f.repo.private.state.is_partial = true;
    f.repo.private.state.identity = None;
    assert!(!f.repo.is_configured_as_found());
    assert_eq!(f.repo.adopt_changed_configuration().unwrap(), None);
    assert!(f.repo.is_configured_as_found());
    assert_eq!(f.repo.configured_identity().unwrap().name, "Somebody");
}

#[test]
fn the_directory_of_jj_stays_excluded() {
    let ground = Worktree::new();
    ground.write(".jj/repo", "");
    let mut f = ground.start();
    f.write(".git/info/exclude", "*.mine\n");
    f.repo.adopt_changed_configuration().unwrap();
    f.remove(".git/info/exclude");
    f.repo.adopt_changed_configuration().unwrap();
    assert!(f.repo.started_with_jj());
}
