//! F20, F21 and F31: merges and the like under way, held locks, hooks, signatures.

use super::{assert_refused, delta, work};
use crate::support::project::Project;

/// Two branches that change the same line of `a.txt`.
fn diverged() -> Project {
    let project = Project::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    project.git(&["checkout", "--quiet", "-b", "other"]);
    project.write("a.txt", "theirs\n");
    project.commit_all("theirs");
    project.git(&["checkout", "--quiet", "main"]);
    project.write("a.txt", "ours\n");
    project.commit_all("ours");
    project
}

/// Runs git in the work tree and does not mind how it ends.
fn try_git(project: &Project, args: &[&str]) {
    project.program("git", args).output().unwrap();
}

#[test]
fn an_operation_under_way_at_the_start_is_refused_with_the_remedy() {
    let cases: [(&[&str], &str, &str); 5] = [
        (&["merge", "other"], "a merge", "git merge --abort"),
        (&["rebase", "other"], "a rebase", "git rebase --abort"),
        (
            &["cherry-pick", "other"],
            "a cherry-pick",
            "git cherry-pick --abort",
        ),
        (
            &["revert", "--no-edit", "HEAD~"],
            "a revert",
            "git revert --abort",
        ),
        (&["bisect", "start"], "a bisect", "git bisect reset"),
    ];
    for (args, name, remedy) in cases {
        let project = diverged();
        try_git(&project, args);
        let run = work(&project, "echo x > x");
        let said = format!("error: {name} is in progress; finish it or run `{remedy}`\n");
        assert_refused(&project, &run, 2, &said);
    }
}

#[test]
fn an_operation_that_the_agent_leaves_under_way_commits_nothing() {
    let author = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y;";
    for operation in [
        "git merge other",
        "git rebase other",
        "git merge --no-commit --no-ff -s ours other",
    ] {
        let project = diverged();
        let base = project.head();
        let run = work(
            &project,
            &format!("{author} {operation} >/dev/null 2>&1; echo x > x"),
        );
        assert_eq!(run.code, 3, "{operation}\n{}", run.stdout);
        assert_eq!(run.task(0)["reason"], "policy_violation", "{operation}");
        let message = run.task(0)["message"].as_str().unwrap();
        assert!(
            message.contains("was left in progress"),
            "{operation}: {message}"
        );
        assert_eq!(
            project.git(&["rev-parse", "refs/heads/main"]),
            base,
            "{operation}"
        );
        assert_eq!(run.summary["commits"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn a_merge_that_the_agent_finished_is_its_commit() {
    let project = diverged();
    let base = project.head();
    let script = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y
        git merge -q other >/dev/null 2>&1; echo both > a.txt; git commit -qam merged; echo more > c.txt";
    let run = work(&project, script).expect(0);
    assert_eq!(
        delta(&project, &base),
        ["A c.txt", "M a.txt"],
        "{}",
        run.stdout
    );
    assert_eq!(run.task(0)["agent_commits"], 2);
}

#[test]
fn a_conflict_that_is_only_in_the_index_commits_nothing() {
    let project = diverged();
    let base = project.head();
    let script = "git merge other >/dev/null 2>&1; rm -f .git/MERGE_HEAD .git/MERGE_MSG .git/MERGE_MODE; echo tidy > a.txt";
    let run = work(&project, script).expect(1);
    assert_eq!(run.task(0)["reason"], "commit_rejected");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(
        message.contains("unresolved conflicts in a.txt"),
        "{message}"
    );
    assert_eq!(project.head(), base);
}

#[test]
fn a_lock_that_a_killed_git_of_the_turn_left_is_removed() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    let run = work(
        &project,
        "touch .git/index.lock .git/refs/heads/main.lock; echo b > a.txt",
    )
    .expect(0);
    assert_eq!(delta(&project, &base), ["M a.txt"]);
    let told = ["index.lock", "refs/heads/main.lock"]
        .map(|lock| format!("a lock left behind was removed: .git/{lock}"));
    assert_eq!(super::warnings(&run), told);
}

#[test]
fn a_lock_held_for_a_moment_is_waited_for() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    let lock = project.repo().join(".git/index.lock");
    // The holder lets go once Sprag has made its own lock ready, so that it finds the other one.
    let ours = project.repo().join(".git/sprag-index.lock");
    let (held, waited) = (lock.clone(), ours.clone());
    std::fs::write(&held, "").unwrap();
    let holder = std::thread::spawn(move || {
        while !waited.exists() {
            std::thread::yield_now();
        }
        std::fs::remove_file(held).unwrap();
    });
    let run = work(&project, "echo b > a.txt").expect(0);
    holder.join().unwrap();
    assert_eq!(delta(&project, &base), ["M a.txt"], "{}", run.stdout);
    assert!(!lock.exists() && !ours.exists());
}

#[test]
fn a_signature_without_a_key_commits_nothing_and_asks_nobody() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.git(&["config", "commit.gpgSign", "true"]);
    project.git(&["config", "gpg.program", "/no/such/gpg"]);
    let base = project.head();
    let run = work(&project, "touch \"$OUT/worked\"; echo b > a.txt").expect(4);
    for told in [
        "commits cannot be signed",
        "/no/such/gpg",
        "gpgSign to false",
    ] {
        assert!(run.stderr.contains(told), "{}", run.stderr);
    }
    assert!(!project.outside("worked").exists());
    assert_eq!(project.head(), base);
    // A run that commits nothing signs nothing.
    let plan = "cat <<'E'\ntasks: [{title: Fix it}]\nE";
    let draft = project.sprag(&["plan", "Fix it", "--agent-command", &project.agent(plan)]);
    assert!(draft.expect(0).stdout.contains("Fix it"));
    let agent = project.agent("echo b > a.txt");
    let run = project.sprag(&[
        "run",
        "--prompt",
        "Fix it",
        "--verify",
        "true",
        "--allow-dirty",
        "--agent-command",
        &agent,
    ]);
    assert_eq!(run.expect(0).summary["totals"]["done"], 1);
}

/// Such as one that imports a key.
#[test]
fn a_setup_command_may_make_signing_possible() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let signer = project.beside("signer");
    let script = "#!/bin/sh\ncat > /dev/null\necho '-----BEGIN PGP SIGNATURE-----'\necho '-----END PGP SIGNATURE-----'\necho '[GNUPG:] SIG_CREATED ' >&2\n";
    let found = project.beside("found");
    std::fs::write(&found, script).unwrap();
    project.git(&["config", "commit.gpgSign", "true"]);
    project.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    let setup = format!(
        "cp {found} {signer}; chmod +x {signer}",
        found = found.display(),
        signer = signer.display()
    );
    let config = format!("setup:\n  - {setup}\nsandbox: \"off\"\n");
    project.write(".sprag/config.yaml", &config);
    project.git(&["add", "-A"]);
    project.git(&["commit", "--quiet", "--no-gpg-sign", "-m", "configuration"]);
    work(&project, "echo b > a.txt").expect(0);
    let signed = project.git(&["cat-file", "commit", "HEAD"]);
    assert!(signed.contains("gpgsig -----BEGIN"), "{signed}");
}

#[test]
fn without_an_identity_the_commit_is_made_and_it_is_said() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.git(&["config", "--unset", "user.name"]);
    project.git(&["config", "--unset", "user.email"]);
    let run = work(&project, "echo b > a.txt").expect(0);
    let author = project.git(&["log", "-1", "--format=%an <%ae>"]);
    assert_eq!(author, "sprag <sprag@localhost>");
    let told = "git knows no user.name and user.email; commits are made as sprag <sprag@localhost>";
    assert!(super::warnings(&run).contains(&told));
}
