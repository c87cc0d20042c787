//! Repositories of jj, with the real program: they are worked in through git, and jj loses nothing.

mod agents;
mod pushes;
mod scenarios;

use crate::support::npm;
use crate::support::project::{Project, Run, configure};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Two tasks, each of which makes a file of its name.
const PLAN: &str = "title: Example\nverify: [ { name: test, run: 'true', kind: test } ]\ntasks:\n  - { id: one, title: One }\n  - { id: two, title: Two }\n";
const AGENT: &str = "echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt; echo \"SUGGESTED_COMMIT_MESSAGE: Add $SPRAG_TASK_ID\"";

/// The directory of the jj program. `scripts/test` names it in `SPRAG_TEST_JJ`, or `none` if there is none. Without the
/// variable it is looked for.
///
/// `None` when it is not here: the test that asks has then nothing to do, and its reader is told so. With
/// `SPRAG_CI_STRICT=1` that is a failure.
fn jj_directory() -> Option<PathBuf> {
    let is_there = |dir: &PathBuf| dir.join("jj").is_file();
    let found = match std::env::var_os("SPRAG_TEST_JJ") {
        Some(none) if none == "none" => None,
        Some(named) => {
            let named = PathBuf::from(named);
            assert!(is_there(&named), "there is no jj in {}", named.display());
            Some(named)
        }
        None => {
            let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tools");
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut places =
                std::iter::once(tools.join("jj/bin")).chain(std::env::split_paths(&path));
            places.find(is_there)
        }
    };
    if found.is_none() {
        npm::not_tested("the real jj", "scripts/install-jj builds it");
    }
    found
}

/// A repository with jj beside it.
struct Both {
    project: Project,
    jj: PathBuf,
    config: PathBuf,
}

/// A clean git repository on `main` with a plan and a colocated jj.
fn colocated() -> Option<Both> {
    let project = Project::new(&[("a.txt", "a\n"), ("plan.yaml", PLAN)]);
    let both = with_jj(project)?;
    both.jj(&["git", "init", "--colocate"]);
    Some(both)
}

/// A project with jj able to work in it.
fn with_jj(mut project: Project) -> Option<Both> {
    let directory = jj_directory()?;
    let config = project.beside("jj.toml");
    let text = "[user]\nname = \"Ada\"\nemail = \"ada@example.org\"\n";
    fs::write(&config, text).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.clone()).chain(std::env::split_paths(&path));
    project.env("PATH", std::env::join_paths(all).unwrap());
    project.env("JJ_CONFIG", &config);
    let jj = directory.join("jj");
    Some(Both {
        project,
        jj,
        config,
    })
}

impl Both {
    /// Adds lines to jj's configuration.
    fn configure(&self, lines: &str) {
        configure(&self.config, lines);
    }

    /// Runs jj and gives what it prints.
    fn jj(&self, args: &[&str]) -> String {
        self.jj_in(&self.project.repo(), args)
    }

    fn jj_in(&self, directory: &Path, args: &[&str]) -> String {
        let output = Command::new(&self.jj)
            .args(["--no-pager", "--color=never", "--quiet"])
            .args(args)
            .current_dir(directory)
            .env("JJ_CONFIG", &self.config)
            .env("HOME", self.project.beside(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "jj {args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a template says of the commits of a revision set, as jj knows them now, without looking at git.
    fn known(&self, revisions: &str, template: &str) -> Vec<String> {
        let template = format!("{template} ++ \"\\n\"");
        let args = [
            "log",
            "--ignore-working-copy",
            "--no-graph",
            "-r",
            revisions,
            "-T",
            &template,
        ];
        self.jj(&args).lines().map(str::to_owned).collect()
    }

    fn operations(&self) -> Vec<String> {
        let args = [
            "op",
            "log",
            "--ignore-working-copy",
            "--no-graph",
            "-T",
            "id ++ \"\\n\"",
        ];
        self.jj(&args).lines().map(str::to_owned).collect()
    }

    fn run(&self, script: &str, args: &[&str]) -> Run {
        self.project.run(&self.project.agent(script), args)
    }

    /// What holds after every run: jj's working copy is on HEAD, and index and work tree are as HEAD has them.
    fn assert_in_step(&self) {
        let head = self.project.head();
        assert_eq!(self.known("@-", "commit_id"), [head.trim()]);
        assert_eq!(
            self.known("@", "if(empty, \"empty\", \"changed\")"),
            ["empty"]
        );
        assert_eq!(self.project.status(), "");
        let (index, tree) = (["write-tree"], ["rev-parse", "HEAD^{tree}"]);
        assert_eq!(self.project.git(&index), self.project.git(&tree));
    }
}

/// Leaves nothing on the search path but git and a shell.
fn without_jj(project: &mut Project) {
    let programs = project.beside("programs");
    fs::create_dir(&programs).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for name in ["git", "sh"] {
        let mut found = std::env::split_paths(&path).map(|dir| dir.join(name));
        let found = found.find(|path| path.is_file()).unwrap();
        symlink(found, programs.join(name)).unwrap();
    }
    project.env("PATH", &programs);
}

#[test]
fn commits_of_a_run_are_below_the_working_copy_of_jj_and_its_bookmark_follows_the_branch() {
    let Some(both) = colocated() else { return };
    let before = both.operations();
    let run = both.run(AGENT, &[]).expect(0);
    assert_eq!(run.summary["warnings"], json!([]));
    assert_eq!(
        both.known("::@-", "description.first_line()")[..2],
        ["Add two", "Add one"]
    );
    assert_eq!(
        both.known("main", "commit_id"),
        [both.project.head().trim()]
    );
    both.assert_in_step();
    let after = both.operations();
    assert!(
        after.ends_with(&before),
        "operations can still be undone: {after:?}"
    );
    assert_eq!(both.known("@", "author.email()"), ["ada@example.org"]);
}

#[test]
fn a_new_plan_that_jj_has_seen_becomes_part_of_the_first_commit() {
    let Some(both) = colocated() else { return };
    let plan = both.project.read("plan.yaml");
    both.project.write("new.yaml", &plan);
    both.jj(&["status"]);
    let agent = both.project.agent(AGENT);
    let args = ["run", "--agent-command", &agent, "--plan", "new.yaml"];
    both.project.sprag(&args).expect(0);
    both.assert_in_step();
    let files = both.project.git(&["ls-tree", "--name-only", "HEAD"]);
    assert!(files.lines().any(|name| name == "new.yaml"), "{files}");
}

#[test]
fn what_jj_has_beside_the_work_stays_as_it_is() {
    let Some(both) = colocated() else { return };
    // A commit of its own with a bookmark, a line of work that goes nowhere yet, and a described working copy.
    both.project.write("own.txt", "own\n");
    both.jj(&["commit", "-m", "Own work"]);
    both.jj(&["bookmark", "create", "own", "-r", "@-"]);
    both.jj(&["new", "main", "-m", "Elsewhere"]);
    both.project.write("elsewhere.txt", "x\n");
    both.jj(&["new", "own", "-m", "What comes next"]);
    let all = both.known("all()", "change_id");
    let run = both.run(AGENT, &[]).expect(0);
    assert_eq!(
        run.summary["branch"],
        json!(null),
        "jj leaves HEAD detached"
    );
    both.assert_in_step();
    let now = both.known("all()", "change_id");
    let lost: Vec<&String> = all.iter().filter(|id| !now.contains(id)).collect();
    assert_eq!(lost, Vec::<&String>::new());
    assert_eq!(both.known("own", "description.first_line()"), ["Own work"]);
    assert_eq!(
        both.known("::@- & own", "description.first_line()"),
        ["Own work"]
    );
    assert_eq!(both.known("main", "commit_id").len(), 1);
    assert_eq!(both.project.read("own.txt"), "own\n");
    both.jj(&["undo"]);
}

#[test]
fn a_failed_task_leaves_its_work_to_jjs_working_copy_and_commits_nothing() {
    let Some(both) = colocated() else { return };
    let (head, before) = (both.project.head(), both.operations());
    both.run(
        "echo half > half.txt",
        &["--verify", "false", "--max-retries=0"],
    )
    .expect(1);
    assert_eq!(both.project.head(), head);
    assert_eq!(both.operations(), before, "there was nothing to tell");
    assert!(both.jj(&["diff", "--summary"]).contains("A half.txt"));
}

#[test]
fn an_agent_that_uses_jj_breaks_nothing() {
    let Some(both) = colocated() else { return };
    both.jj(&["new"]);
    both.jj(&["abandon", "@-"]);
    let script =
        format!("{AGENT}; jj --no-pager status; jj --no-pager describe -m mine; jj --no-pager log");
    let run = both.run(&script, &[]).expect(0);
    assert_eq!(run.summary["totals"]["done"], 2);
    both.assert_in_step();
    assert_eq!(
        both.known("::@-", "description.first_line()")[..2],
        ["Add two", "Add one"]
    );
}

#[test]
fn a_commit_that_the_agent_makes_with_jj_becomes_one_of_the_runs() {
    let Some(both) = colocated() else { return };
    both.jj(&["new"]);
    let run = both
        .run(
            &format!("{AGENT}; jj --no-pager commit -m mine"),
            &["--task", "one"],
        )
        .expect(0);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    both.assert_in_step();
    assert_eq!(both.known("@-", "description.first_line()"), ["Add one"]);
}

#[test]
fn changes_in_the_working_copy_are_refused_with_jjs_own_remedy() {
    let Some(both) = colocated() else { return };
    both.project.write("open.txt", "open\n");
    let run = both.run(AGENT, &[]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("`jj new`"), "{}", run.stderr);
    both.jj(&["describe", "-m", "Open work"]);
    both.jj(&["new"]);
    both.run(AGENT, &[]).expect(0);
    both.assert_in_step();
    assert_eq!(
        both.known("::@-", "description.first_line()")[..3],
        ["Add two", "Add one", "Open work"]
    );
}

#[test]
fn a_commit_with_conflicts_is_refused_with_what_ends_them() {
    let Some(both) = colocated() else { return };
    both.jj(&["new", "main", "-m", "left"]);
    both.project.write("a.txt", "left\n");
    both.jj(&["new", "main", "-m", "right"]);
    both.project.write("a.txt", "right\n");
    both.jj(&["rebase", "-r", "@", "-o", "subject(exact:left)"]);
    both.jj(&["new"]);
    let run = both.run(AGENT, &[]).expect(2);
    assert!(run.stderr.contains("run `jj squash`"), "{}", run.stderr);
    both.project.write("a.txt", "both\n");
    both.jj(&["squash"]);
    both.run(AGENT, &[]).expect(0);
    both.assert_in_step();
}

#[test]
fn a_repository_of_jj_that_cannot_be_worked_in_is_refused_with_what_helps() {
    let Some(both) = colocated() else { return };
    let refused = |directory: &Path, words: &str| {
        let place = directory.display().to_string();
        let args = [
            "run",
            "-C",
            &place,
            "--prompt",
            "x",
            "--agent-command",
            "true",
        ];
        let refused = both.project.sprag(&args);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(words), "{}", refused.stderr);
    };
    let further = both.project.beside("further");
    both.jj(&["workspace", "add", further.to_str().unwrap()]);
    refused(&further, "further working copy");
    both.jj(&["git", "colocation", "disable"]);
    both.jj(&["new", "root()", "-m", "Elsewhere"]);
    both.jj(&["new", "@", "main"]);
    refused(&both.project.repo(), "run `jj new`");
    both.jj(&["new"]);
    both.run(AGENT, &[]).expect(0);
}

#[test]
fn a_repository_of_jj_inside_of_one_of_git_is_the_one_that_is_meant() {
    let project = Project::new(&[("a.txt", "a\n"), ("plan.yaml", PLAN)]);
    fs::create_dir_all(project.repo().join("inside/.jj/repo")).unwrap();
    let refused = project.sprag(&[
        "run",
        "-C",
        "inside",
        "--prompt",
        "x",
        "--agent-command",
        "true",
    ]);
    assert_eq!(refused.code, 2);
    let words = "inside is a jj repository whose git directory cannot be found";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}

#[test]
fn without_the_program_a_repository_of_jj_alone_is_refused() {
    let mut project = Project::new(&[("a.txt", "a\n"), ("plan.yaml", PLAN)]);
    let store = project.repo().join(".jj/repo/store");
    fs::create_dir_all(&store).unwrap();
    fs::write(store.join("git_target"), "git").unwrap();
    fs::rename(project.repo().join(".git"), store.join("git")).unwrap();
    without_jj(&mut project);
    let refused = project.run(&project.agent("true"), &[]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let words = "jj was not found on PATH";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
}

#[test]
fn without_the_program_a_colocated_repository_is_refused_before_any_turn() {
    let mut project = Project::new(&[("a.txt", "a\n"), ("plan.yaml", PLAN)]);
    let store = project.repo().join(".jj/repo/store");
    fs::create_dir_all(&store).unwrap();
    fs::write(store.join("git_target"), "../../../.git").unwrap();
    fs::write(project.repo().join(".jj/.gitignore"), "/*\n").unwrap();
    without_jj(&mut project);
    let refused = project.by("true", &[]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("jj was not found on PATH"),
        "{}",
        refused.stderr
    );
    assert_eq!(project.calls(), 0);
}
