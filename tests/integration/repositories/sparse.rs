//! F26: a sparse checkout commits what was touched, inside of it and outside, and no deletion.

use super::{assert_exact, warnings, work};
use crate::support::project::Project;

const FILES: [(&str, &str); 4] = [
    ("top.txt", "top\n"),
    ("near/a.txt", "a\n"),
    ("far/b.txt", "b\n"),
    ("far/deep/c.txt", "c\n"),
];

/// The three ways of a sparse checkout that holds the top and `near`.
fn sparse() -> Vec<(&'static str, Project)> {
    let ways: [(&str, &[&str]); 3] = [
        ("cone", &["set", "--cone", "near"]),
        ("no cone", &["set", "--no-cone", "/*", "!/far/"]),
        ("sparse index", &["set", "--cone", "--sparse-index", "near"]),
    ];
    let made = |(name, args): (&'static str, &[&str])| {
        let project = Project::new(&FILES);
        project.git(&[&["sparse-checkout"], args].concat());
        assert!(!project.repo().join("far").exists(), "{name}");
        (name, project)
    };
    ways.into_iter().map(made).collect()
}

#[test]
fn a_commit_holds_what_was_touched_and_no_deletion() {
    for (name, project) in sparse() {
        let base = project.head();
        let run = work(
            &project,
            "echo more >> near/a.txt; echo new > near/new.txt; rm top.txt",
        );
        eprintln!("{name}");
        let expected = ["A near/new.txt", "D top.txt", "M near/a.txt"];
        let run = assert_exact(&project, run, &base, &expected);
        assert_eq!(warnings(&run), Vec::<&str>::new(), "{name}");
        assert!(!project.repo().join("far").exists(), "{name}");
        let rest = project.git(&["ls-tree", "-r", "--name-only", "HEAD", "far"]);
        assert_eq!(rest, "far/b.txt\nfar/deep/c.txt", "{name}");
        let kept = project.git(&["ls-files", "-t", "far"]);
        assert!(kept.lines().all(|line| line.starts_with("S ")), "{kept}");
    }
}

#[test]
fn what_the_agent_does_outside_of_the_cone_is_committed_too() {
    for (name, project) in sparse() {
        let base = project.head();
        let script = "mkdir -p far/fresh; echo changed > far/b.txt; echo new > far/fresh/d.txt";
        let run = work(&project, script).expect(0);
        eprintln!("{name}: {}", run.stdout);
        assert_eq!(
            super::delta(&project, &base),
            ["A far/fresh/d.txt", "M far/b.txt"]
        );
        assert_eq!(project.git(&["show", "HEAD:far/b.txt"]), "changed");
        assert_eq!(project.git(&["show", "HEAD:far/deep/c.txt"]), "c");
    }
}

#[test]
fn a_plan_in_a_sparse_checkout_keeps_its_status() {
    let check = "grep -q fixed near/a.txt";
    let project = Project::new(
        &[
            &FILES[..],
            &[("plan.yaml", &crate::support::project::plan(check))],
        ]
        .concat(),
    );
    project.git(&["sparse-checkout", "set", "--cone", "near"]);
    let base = project.head();
    let run = project.by("echo fixed > near/a.txt; echo Done.", &[]);
    assert_exact(&project, run, &base, &["M near/a.txt", "M plan.yaml"]);
}

#[test]
fn a_checkout_that_the_agent_makes_sparse_hides_no_deletion_and_commits_none() {
    let project = Project::new(&FILES);
    let base = project.head();
    let run = work(
        &project,
        "git sparse-checkout set --cone near; echo more >> near/a.txt",
    )
    .expect(0);
    // Outside of a sparse checkout a missing file is a deleted one, and the checks ran without it.
    let expected = ["D far/b.txt", "D far/deep/c.txt", "M near/a.txt"];
    assert_eq!(super::delta(&project, &base), expected, "{}", run.stdout);
    assert!(warnings(&run).contains(&"changes to .git/config were undone"));
}
