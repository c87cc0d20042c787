//! Honest checks of honest work pass: those that ask git, and those that write outside of the work tree.

use crate::support::has;
use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{end, warnings};
use std::fs;
use std::path::Path;

const FIX: &str = "echo fixed > a.txt";

/// A project whose one task is to make `a.txt` say `fixed`, with this check.
fn project(files: &[(&str, &str)], check: &str) -> Project {
    let plan = plan(check);
    let own = [("a.txt", "broken\n"), ("plan.yaml", plan.as_str())];
    Project::new(&[&own, files].concat())
}

/// Runs the task with an agent that runs this script, once.
fn run(project: &Project, script: &str, more: &[&str]) -> Run {
    let script = script.replace('\'', r"'\''");
    let agent = format!("sh -c '{script}; echo Done.'");
    let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    project.sprag(&[&args, more].concat())
}

fn verified_by(check: &str, files: &[(&str, &str)], script: &str) -> (Project, Run) {
    let project = project(files, check);
    let run = run(&project, script, &["--max-retries", "0"]);
    (project, run)
}

#[test]
fn a_check_that_asks_git_sees_only_what_it_changes_itself() {
    for check in [
        "git add -N . && git diff --exit-code",
        "test -z \"$(git ls-files --others --exclude-standard)\"",
        "sh ci/clean.sh",
        "test -z \"$(git status --porcelain)\"",
        "! git status --porcelain --untracked-files=all | grep .",
        "git diff --quiet HEAD && git diff-index --quiet HEAD -- && grep -q fixed a.txt",
        "make clean-tree",
        "git add -A && git diff --cached --exit-code",
        "python3 ci/clean.py",
    ] {
        let script = "import subprocess\nexit(len(subprocess.check_output([\"git\", \"status\", \"-s\"])))\n";
        let recipe = "clean-tree:\n\t@dirty=$$(git status -s); [ -z \"$$dirty\" ]\n";
        let files = [
            ("ci/clean.sh", "git diff --exit-code\n"),
            ("Makefile", recipe),
            ("ci/clean.py", script),
        ];
        let (project, run) = verified_by(check, &files, &format!("echo new > new.txt; {FIX}"));
        let run = run.expect(0);
        assert_eq!(end(run.task(0)), ("done", "verified"), "{check}");
        let changed = project.git(&["show", "--format=", "--name-only", "HEAD"]);
        assert_eq!(changed, "a.txt\nnew.txt\nplan.yaml", "{check}");
        assert_eq!(project.status(), "", "{check}");
    }
}

#[test]
fn what_a_check_generates_is_part_of_the_work_and_what_it_cannot_settle_is_named() {
    let files = [("gen.txt", "broken\n")];
    let (project, run) = verified_by("cp a.txt gen.txt; git diff --exit-code", &files, FIX);
    assert_eq!(end(run.expect(0).task(0)), ("done", "verified"));
    assert_eq!(project.git(&["show", "HEAD:gen.txt"]), "fixed");

    let check = "if grep -q fixed a.txt; then date +%N >> gen.txt; fi; git diff --exit-code";
    let (project, run) = verified_by(check, &files, FIX);
    let run = run.expect(1);
    let shown = format!("{}\n{}", run.stdout, run.summary);
    has(&shown, "gen.txt:1: `git diff` shows a change of this file");
    assert_eq!(project.commits(), 1);
}

#[test]
fn a_check_that_compares_with_the_last_commit_names_the_remedy() {
    for (check, said) in [
        (
            "test -z \"$(git diff --name-only HEAD)\"",
            "use `git diff --exit-code` without a revision",
        ),
        (
            "grep -q broken a.txt || touch left.txt; test -z \"$(git status --porcelain)\"",
            "git saw the work as committed: a check that finds changes then has made them itself",
        ),
    ] {
        let (project, ended) = verified_by(check, &[], FIX);
        let ended = ended.expect(1);
        has(&format!("{}\n{}", ended.stdout, ended.summary), said);
        assert_eq!(project.git(&["for-each-ref", "refs/sprag"]), "");
    }
}

/// A project whose check writes this path below the home directory, where the sandbox allows only some places.
fn writes_at_home(path: &str, baseline: &str) -> Project {
    let check = format!("touch \"$HOME/{path}\" && grep -q fixed a.txt");
    let mut project = project(&[], &check);
    project.env("SPRAG_SANDBOX", "require:2");
    project.env("SPRAG_BASELINE", baseline);
    for place in ["home/closed", "home/.rustup"] {
        fs::create_dir_all(project.beside(place)).unwrap();
    }
    project
}

#[test]
fn what_the_sandbox_refuses_also_without_the_work_is_the_machines_fault() {
    for (baseline, turns) in [("first", 0), ("off", 1)] {
        let project = writes_at_home("closed/x", baseline);
        let ended = run(&project, FIX, &[]).expect(4);
        assert_eq!(end(ended.task(0)), ("failed", "environment"), "{baseline}");
        let message = ended.task(0)["message"].as_str().unwrap();
        let path = project.beside("home").join("closed/x");
        assert!(message.contains(&path.display().to_string()), "{message}");
        assert!(message.contains("`sandbox_write`"), "{message}");
        let taken = ended.task(0)["turns"].as_array().unwrap().len();
        assert_eq!(taken, turns, "{baseline}");
        project.git(&["checkout", "-q", "."]);
        let named = path.parent().unwrap().display().to_string();
        let again = run(&project, FIX, &["--sandbox-write", &named]).expect(0);
        assert_eq!(end(again.task(0)), ("done", "verified"), "{baseline}");
    }
}

#[test]
fn what_only_the_work_writes_outside_is_its_own_failure() {
    let files = [("write.sh", "true\n")];
    let mut project = project(&files, "sh ./write.sh && grep -q fixed a.txt");
    project.env("SPRAG_SANDBOX", "require:2");
    let closed = project.beside("home/closed");
    fs::create_dir_all(&closed).unwrap();
    let script = format!("echo touch {}/x > write.sh; {FIX}", closed.display());
    let ended = run(&project, &script, &["--max-retries", "0"]).expect(1);
    assert_eq!(end(ended.task(0)), ("failed", "verification_failed"));
}

#[test]
fn a_check_may_create_files_at_the_top_of_a_home_and_where_toolchains_keep_theirs() {
    for path in [".node-spawn-wrap-1-ab", ".rustup/tmp/x"] {
        let project = writes_at_home(path, "first");
        let ended = run(&project, FIX, &[]).expect(0);
        assert_eq!(end(ended.task(0)), ("done", "verified"), "{path}");
        let home = project.beside("home");
        let is_top = !Path::new(path).starts_with(".rustup");
        assert_eq!(home.join(path).exists(), !is_top, "{path}");
        let told = warnings(&ended).concat();
        assert_eq!(told.contains("a home of its own"), is_top, "{told}");
    }
}

#[test]
fn a_filter_that_is_not_set_up_is_said_before_the_first_turn() {
    let project = project(
        &[(".gitattributes", "*.psd filter=nowhere -text\n")],
        "true",
    );
    let ended = run(&project, FIX, &[]).expect(0);
    let said = "not set up here, so that files are committed as they are or not at all: nowhere";
    let (start, rest) = ended.stdout.split_once("turn 1").unwrap();
    assert!(start.contains(said), "{start}");
    assert!(!rest.contains(said), "{rest}");
}

#[test]
fn findings_of_a_linter_in_files_that_were_put_back_say_nothing_of_the_work() {
    for (found_in, reason) in [
        ("tests/a_test.txt", "verified"),
        ("a.txt", "changed_expectations"),
    ] {
        let check = format!(
            "if grep -q fixed a.txt && ! grep -q fixed tests/a_test.txt; then echo '::error file={found_in},line=1::old word'; exit 1; fi"
        );
        let project = project(&[("tests/a_test.txt", "broken\n")], &check);
        let script = format!("echo fixed > tests/a_test.txt; {FIX}");
        let ended = run(&project, &script, &[]).expect(0);
        assert_eq!(end(ended.task(0)), ("done", reason), "{found_in}");
    }
}

/// A linter that mends trailing spaces, and fails if it found any.
#[test]
fn a_linter_that_mends_the_original_files_runs_again_on_what_it_made() {
    let mend =
        "if grep -q ' $' *.txt tests/*.txt; then sed -i 's/ *$//' *.txt tests/*.txt; exit 1; fi";
    let check = format!("{mend}; test \"$(head -n 1 tests/a_test.txt)\" = \"$(cat a.txt)\"");
    for (old, reason) in [("fixed", "verified"), ("broken", "changed_expectations")] {
        let project = project(&[("tests/a_test.txt", &format!("{old}  \nx\n"))], &check);
        let script = format!("echo fixed > tests/a_test.txt; {FIX}");
        let ended = run(&project, &script, &[]).expect(0);
        assert_eq!(end(ended.task(0)), ("done", reason), "{old}");
    }
}

#[test]
fn a_failure_after_a_changed_manifest_says_that_older_versions_are_installed() {
    let mut project = project(&[("package.json", "{}\n")], "false");
    project.env("SPRAG_BASELINE", "off");
    project.write(".sprag/config.yaml", "setup: [ 'true' ]\n");
    project.commit_all("setup");
    let script = format!("echo > package.json; {FIX}");
    let ended = run(&project, &script, &["--max-retries", "1"]).expect(1);
    let prompts = ended.dir.as_ref().unwrap().join("prompts");
    let prompts: String = fs::read_dir(prompts)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let hint = "`package.json` changed, and the checks ran with what was installed before";
    assert!(prompts.contains(hint), "{prompts}");
}
