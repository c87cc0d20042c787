//! Commits that GitHub makes itself.

use super::pushes::{assert_checks_over, conclusion, fix, on_pull};
use crate::support::github::{Fault, Trouble, git};
use crate::support::has;
use crate::support::runner::Runner;

/// What a run whose commits GitHub is to make left, with this agent.
fn made(runner: &mut Runner, script: &str) -> crate::support::runner::Step {
    let agent = runner.project.agent(script);
    let check = "grep -q fixed a.txt";
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        check,
        "--commit-via",
        "api",
    ];
    runner.step(&args).expect(0)
}

#[test]
fn github_makes_and_signs_the_commits_and_the_branch_here_follows() {
    let (mut runner, number, _) = on_pull();
    let step = fix(&mut runner, &["--commit-via", "api"]).expect(0);
    let head = runner.at("feature");
    assert_eq!(
        runner.log("feature"),
        ["Say fixed", "Somebody's work", "base"]
    );
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert!(runner.github.state().signed.contains(&head));
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(runner.project.head(), head);
    assert_eq!(runner.project.status(), "");
    assert_eq!(step.output("commits"), head);
    assert_eq!(step.output("head-sha"), head);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains(&head), "{comment}");
    assert!(comment.contains("signed by GitHub"), "{comment}");
    has(&step.run.stdout, "signed by GitHub");
    assert_eq!(conclusion(&runner, &head), "success");
    assert_checks_over(&runner);
}

#[test]
fn an_object_planted_under_a_future_id_is_not_what_github_is_given() {
    let (mut runner, _, _) = on_pull();
    let script = "printf fixed > a.txt
        id=$(git hash-object a.txt)
        other=$(echo evil | git hash-object -w --stdin)
        place() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }
        mkdir -p $(dirname $(place $id))
        cp $(place $other) $(place $id)";
    let step = made(&mut runner, script);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_eq!(runner.server.pushes(), 0);
    has(&step.run.stdout, "object store");
    runner.project.git(&["fsck", "--strict"]);
}

#[test]
fn what_github_cannot_express_is_pushed_with_the_reason() {
    for (script, word) in [
        ("printf fixed > a.txt; chmod +x a.txt", "executable"),
        ("printf fixed > a.txt; ln -s a.txt link", "link"),
    ] {
        let (mut runner, number, _) = on_pull();
        let step = made(&mut runner, script);
        assert_eq!(runner.server.pushes(), 1);
        assert_eq!(runner.log("feature").len(), 3);
        assert_eq!(step.output("head-sha"), runner.at("feature"));
        let comment = runner.comment(number).unwrap();
        assert!(comment.contains("without GitHub's signature"), "{comment}");
        assert!(comment.contains(word), "{comment}");
        assert!(runner.github.state().signed.is_empty());
        assert_checks_over(&runner);
    }
}

#[test]
fn a_branch_that_has_moved_is_pushed_to_in_the_ordinary_way() {
    let (mut runner, number, _) = on_pull();
    let bare = runner.bare();
    let script = format!(
        "printf fixed > a.txt\n\
         export GIT_DIR={} GIT_AUTHOR_NAME=S GIT_AUTHOR_EMAIL=s@example.invalid\n\
         export GIT_COMMITTER_NAME=S GIT_COMMITTER_EMAIL=s@example.invalid\n\
         new=$(git commit-tree -p feature -m Theirs 'feature^{{tree}}')\n\
         git update-ref refs/heads/feature $new",
        bare.display()
    );
    let step = made(&mut runner, &script);
    let log = runner.log("feature");
    assert_eq!(log.len(), 4, "{log:?}");
    assert_eq!(log[1], "Theirs");
    let head = runner.at("feature");
    assert_eq!(step.output("commits"), head);
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("without GitHub's signature"), "{comment}");
    assert!(comment.contains(&head), "{comment}");
    assert_checks_over(&runner);
}

#[test]
fn a_commit_of_another_tree_than_the_verified_one_is_an_error_that_names_both() {
    let (mut runner, _, _) = on_pull();
    runner.github.state().added_file = Some("unasked.txt".to_owned());
    let step = fix(&mut runner, &["--commit-via", "api"]).expect(4);
    let there = git(&runner.bare(), &["rev-parse", "feature^{tree}"]);
    let verified = runner.project.git(&["rev-parse", "HEAD^{tree}"]);
    assert_ne!(there.trim(), verified);
    let told = format!("of tree {}, and tree {verified} was verified", there.trim());
    assert!(step.run.stdout.contains(&told), "{}", step.run.stdout);
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(step.output("status"), "environment");
}

#[test]
fn a_commit_of_which_github_does_not_say_the_tree_is_an_error_with_its_reason() {
    let (mut runner, _, _) = on_pull();
    let path = "/repos/acme/widget/git/commits/*";
    let fault = Fault::nth(2, "GET", path, Trouble::forbidden());
    runner.github.fault(fault);
    let step = fix(&mut runner, &["--commit-via", "api"]).expect(4);
    let log = &step.run.stdout;
    let told = format!(
        "made commit {} whose tree cannot be read (GET",
        runner.at("feature")
    );
    assert!(log.contains(&told), "{log}");
    assert_eq!(runner.server.pushes(), 0);
}
