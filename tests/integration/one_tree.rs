//! The commit is the tree that the checks judged, and what cannot be shown to be is not committed.

use crate::action_file::write_program;
use crate::support::project::{Project, Run};
use crate::support::tasks::{end, fixable_by, kept};

fn run(project: &Project, script: &str, args: &[&str]) -> Run {
    project.run(&project.agent(&format!("{script}\necho Done.")), args)
}

/// Every file of a fresh checkout, the plan aside.
fn fresh_checkout(project: &Project) -> Vec<(String, Vec<u8>)> {
    let copy = project.outside("fresh");
    project.git(&["clone", "-q", ".", copy.to_str().unwrap()]);
    let listed = project.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    let names = listed.lines().filter(|name| *name != "plan.yaml");
    names
        .map(|name| (name.to_owned(), std::fs::read(copy.join(name)).unwrap()))
        .collect()
}

fn is_what_was_checked(project: &Project) {
    for (name, content) in fresh_checkout(project) {
        let here = std::fs::read(project.repo().join(&name)).unwrap();
        assert_eq!(here, content, "{name}");
    }
}

#[test]
fn what_a_formatter_made_of_the_work_is_checked_and_committed() {
    let project = fixable_by("sed -i 's/ *$//' a.txt; grep -qx fixed a.txt");
    let run = run(&project, "echo 'fixed   ' > a.txt", &[]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!((project.calls(), project.checks()), (1, 3));
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed");
    is_what_was_checked(&project);
}

#[test]
fn a_check_that_rewrites_what_it_tested_commits_nothing() {
    // What it leaves is checked like anything else.
    let project = fixable_by("grep -qx fixed a.txt && echo evil > a.txt");
    let failed = run(&project, "echo fixed > a.txt", &["--max-retries", "0"]).expect(1);
    assert_eq!(end(failed.task(0)), ("failed", "verification_failed"));
    assert_eq!((project.commits(), project.checks()), (2, 3));

    // What it changes every time is never the tree that it judged.
    let project = fixable_by("grep -q fixed a.txt && echo more >> a.txt");
    let blocked = run(&project, "echo fixed > a.txt", &[]).expect(3);
    assert_eq!(end(blocked.task(0)), ("blocked", "unstable_checks"));
    let message = blocked.task(0)["message"].as_str().unwrap();
    assert!(message.contains("a.txt"), "{message}");
    assert_eq!((project.commits(), project.checks()), (2, 3));
    assert!(kept(&blocked, "report.md").contains("a.txt"));
}

#[test]
fn a_tree_that_cannot_be_read_after_the_checks_is_not_committed() {
    let mut project = fixable_by("true");
    let hidden = project.outside("hidden");
    let check = format!("grep -q fixed a.txt && mv .git {}", hidden.display());
    let plan = project
        .read("plan.yaml")
        .replace("; true", &format!("; {check}"));
    project.write("plan.yaml", &plan);
    project.commit_all("check");
    let head = project.head();
    project.env("SPRAG_FLAKY_RERUNS", "0");
    let run = run(&project, "echo fixed > a.txt", &["--max-retries", "0"]);
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert_ne!(run.task(0)["reason"], "verified");
    if hidden.exists() {
        std::fs::rename(&hidden, project.repo().join(".git")).unwrap();
    }
    assert_eq!(project.head(), head);
}

#[test]
fn attributes_that_give_a_fresh_checkout_other_files_block_the_task() {
    for (rules, refused) in [
        ("* text=auto", None),
        ("a.txt eol=lf", None),
        ("a.txt eol=crlf", Some("a.txt")),
        ("b.txt working-tree-encoding=UTF-16", Some("b.txt")),
    ] {
        let project = fixable_by("grep -q fixed a.txt");
        project.write("b.txt", "as before\n");
        project.commit_all("another file");
        let script = format!("echo fixed > a.txt; echo '{rules}' > .gitattributes");
        let code = if refused.is_some() { 3 } else { 0 };
        let run = run(&project, &script, &[]).expect(code);
        let task = run.task(0);
        let message = task["message"].as_str().unwrap_or_default();
        let Some(path) = refused else {
            assert_eq!(end(task), ("done", "verified"), "{rules}: {message}");
            is_what_was_checked(&project);
            continue;
        };
        assert_eq!(end(task), ("blocked", "policy_violation"), "{rules}");
        let told = format!(
            "changed attributes give a fresh checkout other content than the checks saw: {path}"
        );
        assert!(message.contains(&told), "{rules}: {message}");
        assert_eq!(project.commits(), 3, "{rules}");
    }
}

/// A git before 2.41 reads attributes from the work tree only.
#[test]
fn changed_attributes_that_git_cannot_compare_block_the_task() {
    for (agent, is_refused) in [
        (
            "printf 'fixed\\r\\n' > a.txt; echo 'a.txt text eol=lf' > .gitattributes",
            true,
        ),
        (
            "printf 'fixed\\r\\n' > a.txt; echo 'a.txt text eol=lf' > .gitattributes; echo .gitattributes > .gitignore",
            true,
        ),
        ("printf 'fixed\\r\\n' > a.txt", false),
    ] {
        let mut project = fixable_by("printf 'fixed\\r\\n' | cmp - a.txt");
        let bin = project.outside("bin");
        std::fs::create_dir(&bin).unwrap();
        let path = std::env::var("PATH").unwrap();
        let git = format!(
            "#!/bin/sh\ncase \" $* \" in *' version '*) echo git version 2.39.5; exit ;; esac\nunset GIT_ATTR_SOURCE\nPATH='{path}'; exec git \"$@\"\n"
        );
        write_program(&bin.join("git"), &git);
        project.env("PATH", format!("{}:{path}", bin.display()));
        let code = if is_refused { 3 } else { 0 };
        let run = run(&project, agent, &[]).expect(code);
        let message = run.task(0)["message"].as_str().unwrap_or_default();
        if is_refused {
            assert_eq!(end(run.task(0)), ("blocked", "policy_violation"));
            assert!(message.contains("install git 2.41"), "{message}");
            assert_eq!(project.commits(), 2);
        } else {
            assert_eq!(end(run.task(0)), ("done", "verified"), "{message}");
            is_what_was_checked(&project);
        }
    }
}

#[test]
fn checks_see_changed_files_as_a_fresh_checkout_has_them() {
    for (rules, before, work, checked) in [
        ("* text=auto", "x\\n", "fixed\\r\\n", "fixed\\n"),
        ("*.txt text eol=lf", "x\\n", "fixed\\r\\n", "fixed\\n"),
        ("*.txt text eol=crlf", "x\\r\\n", "fixed\\n", "fixed\\r\\n"),
        ("*.txt -text", "x\\n", "fixed\\r\\n", "fixed\\r\\n"),
    ] {
        let check =
            format!("printf '{checked}' | cmp - a.txt && printf '{checked}' | cmp - new.txt");
        let project = fixable_by(&check);
        project.write(".gitattributes", &format!("{rules}\n"));
        project.write("a.txt", &before.replace("\\r", "\r").replace("\\n", "\n"));
        project.commit_all("rules");
        let script = format!("printf '{work}' > a.txt; cp a.txt new.txt; chmod 755 new.txt");
        let run = run(&project, &script, &["--max-retries", "0"]).expect(0);
        assert_eq!(end(run.task(0)), ("done", "verified"), "{rules}");
        is_what_was_checked(&project);
        assert!(
            project
                .git(&["ls-tree", "HEAD", "new.txt"])
                .starts_with("100755")
        );
        assert_eq!(project.status(), "", "{rules}");
    }
}

#[test]
fn what_git_cannot_convert_is_not_committed() {
    let project = fixable_by("grep -q fixed a.txt");
    let script = "echo fixed > a.txt; echo 'a.txt working-tree-encoding=UTF-16' > .gitattributes";
    let run = run(&project, script, &["--max-retries", "0"]).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    assert_eq!(project.commits(), 2);
}
