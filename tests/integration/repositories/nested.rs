//! F28: submodules and nested repositories are committed as defined, and never in silence.

use super::{assert_exact, delta, warnings, work};
use crate::support::project::Project;

const AS: &str = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.invalid \
    GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.invalid;";

/// A project with the submodule `sub`, whose origin is outside of the work tree.
fn with_submodule() -> Project {
    let project = Project::new(&[("a.txt", "a\n")]);
    let origin = project.outside("origin");
    let origin = origin.to_str().unwrap();
    project.git(&["clone", "--quiet", ".", origin]);
    let allow = ["-c", "protocol.file.allow=always"];
    project.git(&[&allow[..], &["submodule", "--quiet", "add", origin, "sub"]].concat());
    project.commit_all("submodule");
    project
}

#[test]
fn a_new_commit_inside_a_submodule_is_committed_as_its_link() {
    let project = with_submodule();
    let base = project.head();
    let run = work(
        &project,
        &format!("{AS} cd sub; echo new > b.txt; git add b.txt; git commit -qm inside"),
    );
    let inside = project.git(&["-C", "sub", "rev-parse", "HEAD"]);
    let told = format!("the submodule sub is at the commit {} now", &inside[..12]);
    assert!(
        warnings(&run).iter().any(|it| it.contains(&told)),
        "{:?}",
        warnings(&run)
    );
    assert_exact(&project, run, &base, &["M sub"]);
    assert_eq!(project.git(&["rev-parse", "HEAD:sub"]), inside);
}

#[test]
fn a_file_changed_inside_a_submodule_is_not_committed_and_named() {
    let project = with_submodule();
    let base = project.head();
    let run = work(&project, "echo changed > sub/a.txt; echo b > a.txt").expect(0);
    assert_eq!(delta(&project, &base), ["M a.txt"]);
    assert_eq!(project.status(), " M sub");
    let told = "files changed inside submodules were not committed: sub; only a submodule's own commits are";
    assert_eq!(warnings(&run), [told]);
}

#[test]
fn a_task_that_only_changed_files_inside_a_submodule_says_so() {
    let project = with_submodule();
    let run = work(&project, "echo new > sub/new.txt").expect(1);
    assert_eq!(run.task(0)["reason"], "no_progress");
    let told = "files changed inside submodules were not committed: sub; only a submodule's own commits are";
    assert_eq!(warnings(&run), [told]);
}

#[test]
fn what_a_submodule_names_to_be_run_is_not_run() {
    let project = with_submodule();
    let script = r#"printf '#!/bin/sh\ntouch %s/canary\ncat\n' "$OUT" > "$OUT/evil"; chmod 755 "$OUT/evil"
        echo '* filter=evil' > sub/.gitattributes; echo x >> sub/a.txt; echo b > a.txt
        for key in core.fsmonitor filter.evil.clean filter.evil.process core.pager diff.external; do
          git -C sub config $key "$OUT/evil"
        done
        mkdir -p .git/modules/sub/hooks; cp "$OUT/evil" .git/modules/sub/hooks/post-index-change
        rm -f "$OUT/canary""#;
    work(&project, script).expect(0);
    assert!(!project.outside("canary").exists());
}

#[test]
fn a_submodule_that_the_agent_adds_is_committed_with_its_description() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.git(&[
        "clone",
        "--quiet",
        ".",
        project.outside("origin").to_str().unwrap(),
    ]);
    let base = project.head();
    let add = "git -c protocol.file.allow=always submodule --quiet add \"$OUT/origin\" sub";
    let run = work(&project, add).expect(0);
    assert_eq!(delta(&project, &base), ["A .gitmodules", "A sub"]);
    let link = project.git(&["ls-tree", "HEAD", "sub"]);
    assert!(link.starts_with("160000 commit "), "{link}");
    assert!(
        warnings(&run).contains(&"sub is a new submodule"),
        "{:?}",
        warnings(&run)
    );
}

#[test]
fn a_removed_submodule_is_a_removal() {
    let project = with_submodule();
    let base = project.head();
    let run = work(&project, "git rm -qf sub").expect(0);
    assert_eq!(
        delta(&project, &base),
        ["D sub", "M .gitmodules"],
        "{}",
        run.stdout
    );
    assert_eq!(project.status(), "");
}

#[test]
fn nested_repositories_are_left_and_named() {
    let commits =
        format!("{AS} git init -q n; cd n; echo x > f; git add f; git commit -qm x; cd ..");
    for (script, status) in [
        (commits.as_str(), "?? n/"),
        ("git init -q n", "?? n/"),
        (
            "git init -q --separate-git-dir \"$OUT/elsewhere\" n; echo x > n/f",
            "?? n/",
        ),
    ] {
        let project = Project::new(&[("a.txt", "a\n")]);
        let base = project.head();
        let run = work(&project, &format!("{script}; echo b > a.txt")).expect(0);
        assert_eq!(delta(&project, &base), ["M a.txt"], "{script}");
        assert_eq!(project.status(), status, "{script}");
        let told = "nested repositories were not committed: n";
        assert!(
            warnings(&run).contains(&told),
            "{script}: {:?}",
            warnings(&run)
        );
    }
}

#[test]
fn a_git_file_that_leads_nowhere_is_not_silent() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    let script = "mkdir n; echo 'gitdir: /nowhere' > n/.git; echo x > n/f; echo b > a.txt";
    let run = work(&project, script).expect(0);
    let committed = delta(&project, &base);
    let whole = ["A n/f", "M a.txt"];
    let told = warnings(&run)
        .iter()
        .any(|one| one.contains('n') && one.contains("nested"));
    assert!(
        committed == whole || told,
        "{committed:?} {:?}",
        warnings(&run)
    );
}

/// The agent makes git track a repository of which nobody has the commits: a link to it would be all that a
/// fresh checkout gets.
#[test]
fn a_repository_that_no_fresh_checkout_could_have_is_no_submodule() {
    let index = "git rm -rq --cached src; git add src 2>/dev/null";
    let link = "id=$(git -C src rev-parse HEAD); git rm -rq --cached src; git update-index --add --cacheinfo 160000,$id,src";
    let described = "printf '[submodule \"src\"]\\n path = other\\n url = x\\n[submodule \"y\"]\\n path = src\\n' > .gitmodules";
    let (all, new) = ("git add -A", "git add new.txt");
    for (track, add) in [
        (link.to_owned(), all),
        (format!("{index}; git commit -qm theirs"), new),
        (format!("{described}; {index}"), all),
    ] {
        let files = [("a.txt", "a\n"), ("src/f.txt", "f\n"), ("src/g.txt", "g\n")];
        let project = Project::new(&files);
        let base = project.head();
        let script = format!(
            "{AS} cd src; git init -q; echo new > new.txt; {add}; git commit -qm inside; cd ..; {track}; echo b > a.txt"
        );
        let run = work(&project, &script).expect(0);
        let committed = delta(&project, &base);
        let rest: Vec<&String> = committed
            .iter()
            .filter(|one| !one.contains(".gitmodules"))
            .collect();
        assert_eq!(
            rest,
            ["A src/new.txt", "M a.txt"],
            "{script}\n{}",
            run.stdout
        );
        assert_eq!(project.status(), "", "{script}");
    }
}

#[test]
fn a_new_repository_that_only_the_index_names_is_left_and_named() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let base = project.head();
    let script = format!(
        "{AS} mkdir n; cd n; git init -q; echo x > f; git add f; git commit -qm x; cd ..; git add n 2>/dev/null; echo b > a.txt"
    );
    let run = work(&project, &script).expect(0);
    assert_eq!(delta(&project, &base), ["M a.txt"]);
    let told = "nested repositories were not committed: n";
    assert!(warnings(&run).contains(&told), "{:?}", warnings(&run));
}
