//! A differential oracle: after any edits of an agent, the commit has the tree that `git add --all`
//! and `git write-tree` give of the same files in a plain clone.

use super::work;
use crate::support::project::Project;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const PATHS: [&str; 10] = [
    "a",
    "b",
    "dir/a",
    "dir/b",
    "dir/sub/c",
    "x.log",
    "dir/y.log",
    "t.crlf",
    "keep.log",
    "odd name\u{e9}",
];

/// One line of an agent's shell script.
fn edit() -> impl Strategy<Value = String> {
    let path = || prop::sample::select(PATHS.as_slice());
    let text = || prop::sample::select(vec!["", "one\\n", "two\\r\\nthree\\r\\n", "\\000\\377"]);
    prop_oneof![
        (path(), text()).prop_map(|(p, t)| format!("put '{p}' '{t}'")),
        (path(), text()).prop_map(|(p, t)| format!("printf '{t}' >> '{p}'")),
        path().prop_map(|p| format!("rm -rf '{p}'")),
        (path(), path())
            .prop_map(|(p, q)| format!("mkdir -p \"$(dirname '{q}')\" && mv -T '{p}' '{q}'")),
        path().prop_map(|p| format!("chmod 755 '{p}'")),
        path().prop_map(|p| format!("chmod 644 '{p}'")),
        path().prop_map(|p| format!("touch -d 2001-01-01 '{p}'")),
        (path(), path()).prop_map(|(p, q)| format!("rm -rf '{p}' && ln -s '{q}' '{p}'")),
        path().prop_map(|p| format!("rm -rf '{p}' && mkdir -p '{p}/inner' && put '{p}/inner/f' x")),
        Just("rm -rf dir && put dir file".to_owned()),
        path().prop_map(|p| format!("git add -A -- '{p}'")),
        Just("git commit -qam own".to_owned()),
        path().prop_map(|p| format!("git update-index --assume-unchanged '{p}'")),
        path().prop_map(|p| format!("git rm -q --cached -- '{p}'")),
    ]
}

/// `.gitattributes` belongs to the start; ignore rules that the agent writes are a case of their own.
fn base(which: &[usize]) -> Project {
    let mut files = vec![
        (".gitignore", "*.log\n!keep.log\n/dir/sub/ignored\n"),
        (".gitattributes", "*.crlf text eol=crlf\n"),
    ];
    files.extend(which.iter().map(|at| (PATHS[*at], "base\n")));
    let project = Project::new(&files);
    project.git(&["add", "--force", "--all"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message", "forced"]);
    project
}

#[test]
fn a_commit_has_the_tree_that_plain_git_gives() {
    let cases = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6);
    let mut runner = TestRunner::new(Config {
        cases,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..Config::default()
    });
    let which = prop::sample::subsequence((0..PATHS.len()).collect::<Vec<_>>(), 0..PATHS.len());
    let scripts = (which, prop::collection::vec(edit(), 1..12));
    let outcome = runner.run(&scripts, |(which, edits)| {
        let project = base(&which);
        let script = format!(
            "exec 2>/dev/null
            export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@y GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@y
            put() {{ mkdir -p \"$(dirname \"$1\")\"; printf \"$2\" > \"$1\"; }}
            {}
            cp -a . \"$OUT/plain\"",
            edits.join("\n")
        );
        let before = project.git(&["rev-parse", "HEAD^{tree}"]);
        let run = work(&project, &script);
        let expected = plain_tree(&project);
        let shown = format!("{}\n{}", run.stdout, run.stderr);
        if run.code != 0 {
            // Nothing to do is no success: it is the only other end that edits alone can have.
            let unchanged = expected == before && run.code == 1;
            prop_assert!(unchanged, "expected {expected}, was {before}\n{shown}");
            return Ok(());
        }
        prop_assert_eq!(project.git(&["rev-parse", "HEAD^{tree}"]), expected, "{}", shown);
        prop_assert_eq!(project.status(), "", "{}", shown);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// The tree that git gives of the copy of the work tree as the agent left it: what it staged and
/// committed counts for what is tracked, and no flag hides a change.
fn plain_tree(project: &Project) -> String {
    let plain = project.outside("plain");
    let plain = plain.to_str().unwrap();
    let flagged = project.git(&["-C", plain, "ls-files", "-z"]);
    let files: Vec<&str> = flagged.split_terminator('\0').collect();
    for path in files {
        project.git(&[
            "-C",
            plain,
            "update-index",
            "--no-assume-unchanged",
            "--",
            path,
        ]);
    }
    project.git(&["-C", plain, "add", "--all"]);
    project.git(&["-C", plain, "write-tree"])
}
