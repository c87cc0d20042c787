//! Checkouts without the contents of other commits, as `filter` and `sparse-checkout` of `actions/checkout` make them.

use super::{FIX, IS_FIXED, with_pull_over};
use crate::support::project::configure;
use crate::support::runner::Runner;
use std::fs;

/// A pull request on whose branch `a.txt` and `dir/c.txt` are as they were before `main` changed them, and a
/// checkout of `main` that lacks these contents.
fn job(args: &[&str]) -> Runner {
    let files = [
        ("a.txt", "broken"),
        ("dir/c.txt", "old"),
        ("far/d.txt", "far"),
    ];
    let runner = with_pull_over(&files);
    runner.push("main", "a.txt", "changed on main");
    runner.push("main", "dir/c.txt", "new");
    configure(
        &runner.bare().join("config"),
        "[uploadpack]\n\tallowFilter = true\n",
    );
    let repo = runner.project.repo();
    fs::remove_dir_all(&repo).unwrap();
    fs::create_dir(&repo).unwrap();
    let url = format!("file://{}", runner.bare().display());
    let clone = ["clone", "--quiet", "--filter=blob:none"];
    runner.project.git(&[&clone, args, &[&url, "."]].concat());
    // What git needs later is on a server that it cannot use.
    runner
        .project
        .git(&["remote", "set-url", "origin", "https://localhost:1/x"]);
    runner
}

#[test]
fn a_comment_is_worked_on_in_a_partial_clone() {
    let kinds = [
        &[][..],
        &["--depth=1"],
        &["--no-single-branch", "--depth=1"],
        &["--sparse"],
    ];
    for args in kinds {
        let mut runner = job(args);
        runner.say(1, "grace", "/sprag make a.txt say fixed");
        let agent = runner.project.agent(FIX);
        let check = format!("{IS_FIXED} && test ! -e dir || grep -q old dir/c.txt");
        let step = runner
            .step(&["--agent-command", &agent, "--verify", &check])
            .expect(0);
        assert_eq!(step.output("status"), "success", "{args:?}");
        assert_eq!(runner.file("feature", "a.txt"), "fixed");
        assert_eq!(runner.file("feature", "dir/c.txt"), "old");
        assert_eq!(runner.project.status(), "");
    }
}

#[test]
fn the_base_is_merged_in_a_partial_clone() {
    for args in [&[][..], &["--depth=1"], &["--sparse"]] {
        let mut runner = job(args);
        runner.say(1, "grace", "/sprag rebase");
        runner
            .step(&["--agent-command", "false", "--verify", "grep -q main a.txt"])
            .expect(0);
        assert_eq!(runner.file("feature", "dir/c.txt"), "new", "{args:?}");
        assert_eq!(runner.file("feature", "b.txt"), "feature");
    }
}
