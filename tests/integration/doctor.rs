//! `sprag doctor` says whether a run could work, and touches nothing to find out.

use crate::support::github::{Access, Area, Fault, Github, State, Token, Trouble};
use crate::support::has;
use crate::support::project::{Project, Run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

const TOKEN: &str = "ghs_canary0000000000000000000000000000";
const PERSONAL: &str = "ghp_canary0000000000000000000000000000";
const KEY: &str = "sk-canary-of-a-key";
const CONFIG: &str = "agent: codex\nverify: [ 'true' ]\n";

/// A project whose configuration names codex, a codex that tells the version that is known to work,
/// and its key.
fn project(config: &str) -> Project {
    let mut project = Project::new(&[(".sprag/config.yaml", config), ("a.txt", "a\n")]);
    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    program(&bin.join("codex"), "echo 'codex-cli 0.169.0'");
    let path = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{path}", bin.display()));
    project.env("OPENAI_API_KEY", KEY);
    project
}

fn program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The same as a step of a job with this token, for a private repository.
fn job(token: &str, rights: Token) -> (Project, Github) {
    let mut project = project(CONFIG);
    let github = Github::start();
    github.token(token, rights);
    github.state().repository.private = true;
    let temp = project.beside("runner");
    fs::create_dir(&temp).unwrap();
    project.env("GITHUB_ACTIONS", "true");
    project.env("GITHUB_REPOSITORY", "acme/widget");
    project.env("GITHUB_API_URL", github.url());
    project.env("GITHUB_TOKEN", token);
    project.env("RUNNER_TEMP", &temp);
    (project, github)
}

/// Runs `sprag doctor --json`: its findings by check, and that nobody was told a secret.
fn doctor(project: &Project, args: &[&str]) -> (Run, BTreeMap<String, Value>) {
    let mut all = vec!["doctor", "--json"];
    all.extend_from_slice(args);
    let run = project.sprag(&all);
    for secret in [TOKEN, PERSONAL, KEY] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret));
    }
    let found: Vec<Value> = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", run.stdout, run.stderr));
    let by_check = found
        .into_iter()
        .map(|finding| {
            let check = finding["check"].as_str().unwrap().to_owned();
            (check, finding)
        })
        .collect();
    (run, by_check)
}

fn states<'f>(found: &'f BTreeMap<String, Value>, state: &str) -> Vec<&'f str> {
    let of_state = found.iter().filter(|(_, it)| it["state"] == state);
    of_state.map(|(check, _)| check.as_str()).collect()
}

fn state<'f>(found: &'f BTreeMap<String, Value>, check: &str) -> &'f str {
    found[check]["state"].as_str().unwrap()
}

/// Every file below a directory with what it holds and when it was changed.
fn content(dir: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                all.insert(
                    format!("{}/", path.display()),
                    (Vec::new(), std::time::UNIX_EPOCH),
                );
                dirs.push(path);
            } else {
                let changed = path.symlink_metadata().unwrap().modified().unwrap();
                let text = fs::read(&path).unwrap_or_default();
                all.insert(path.display().to_string(), (text, changed));
            }
        }
    }
    all
}

fn counts(state: &State) -> [usize; 6] {
    [
        state.checks.len(),
        state.issues.len(),
        state.comments.len(),
        state.reactions.len(),
        state.dispatches.len(),
        state.all_refs().len(),
    ]
}

#[test]
fn all_well_on_a_laptop() {
    let project = project(CONFIG);
    let (run, found) = doctor(&project, &[]);
    run.expect(0);
    assert_eq!(states(&found, "fail"), Vec::<&str>::new());
    assert_eq!(state(&found, "agent-program"), "ok");
    assert_eq!(found["github"]["state"], "unknown");
    let told = project.sprag(&["doctor"]).expect(0).stdout;
    has(
        &told,
        "ok       model-key            OPENAI_API_KEY is set\n",
    );
    assert!(!told.contains("Landlock: not known"), "{told}");
    assert!(told.ends_with("\na run could work here\n"), "{told}");
}

#[test]
fn all_well_in_a_job_and_nothing_is_written() {
    let (mut project, github) = job(TOKEN, Token::job());
    let event = project.outside("event.json");
    fs::write(
        &event,
        r#"{"repository":{"full_name":"acme/widget","default_branch":"main"}}"#,
    )
    .unwrap();
    project.env("GITHUB_EVENT_NAME", "schedule");
    project.env("GITHUB_EVENT_PATH", &event);
    let places = ["repo", "home", "state", "tmp", "runner"].map(|name| project.beside(name));
    let before = (
        places.each_ref().map(|dir| content(dir)),
        counts(&github.state()),
    );
    let (run, found) = doctor(&project, &[]);
    run.expect(0);
    let after = (
        places.each_ref().map(|dir| content(dir)),
        counts(&github.state()),
    );
    assert!(before == after);
    let queries = github.requests_to("POST /graphql");
    let writes = github
        .requests()
        .into_iter()
        .filter(|it| it.method != "GET");
    assert_eq!(writes.count(), queries.len());
    assert!(
        queries
            .iter()
            .all(|it| it.body["query"].as_str().unwrap().starts_with("query"))
    );
    assert_eq!(states(&found, "fail"), Vec::<&str>::new());
    for check in [
        "token",
        "api",
        "github-repository",
        "may-actions",
        "trigger",
    ] {
        assert_eq!(state(&found, check), "ok", "{}", found[check]);
    }
    assert_eq!(state(&found, "may-contents"), "unknown");
}

#[test]
fn a_token_without_rights_is_told_the_lines_that_give_them() {
    let mut rights = Token::job();
    for area in [
        Area::Contents,
        Area::Issues,
        Area::Pulls,
        Area::Checks,
        Area::Actions,
    ] {
        rights = rights.may(area, Access::None);
    }
    let (project, _github) = job(TOKEN, rights);
    let (run, found) = doctor(&project, &[]);
    run.expect(0);
    assert_eq!(state(&found, "may-checks"), "warn");
    assert_eq!(
        found["may-checks"]["remedy"],
        "give the job `permissions: checks: write`"
    );
    let (run, found) = doctor(&project, &["--push"]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["may-contents"]);
}

#[test]
fn a_personal_token_cannot_write_check_runs() {
    let (project, _github) = job(PERSONAL, Token::personal("anna"));
    let (run, found) = doctor(&project, &[]);
    run.expect(0);
    assert_eq!(state(&found, "token"), "warn");
    let said = found["token"]["found"].as_str().unwrap();
    has(said, "ghp_");
    has(said, "acts as anna");
}

#[test]
fn a_token_that_is_none_and_no_token() {
    let (mut project, github) = job(TOKEN, Token::job());
    project.env("GITHUB_TOKEN", PERSONAL);
    let (run, found) = doctor(&project, &[]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["token"]);
    let asked = github.requests().len();
    project.env("GITHUB_TOKEN", "");
    let (run, found) = doctor(&project, &[]);
    run.expect(0);
    assert_eq!(state(&found, "token"), "warn");
    assert_eq!(state(&found, "api"), "unknown");
    assert_eq!(github.requests().len(), asked);
}

#[test]
fn everything_is_said_when_github_hangs_or_is_gone() {
    let (project, github) = job(TOKEN, Token::job());
    github.fault(Fault::every("*", "**", Trouble::Hang));
    let (run, hung) = doctor(&project, &[]);
    run.expect(0);
    github.shut_down();
    let (run, gone) = doctor(&project, &["--report", "github"]);
    run.expect(4);
    for (found, expected) in [(hung, "warn"), (gone, "fail")] {
        assert_eq!(state(&found, "api"), expected);
        assert_eq!(state(&found, "may-contents"), "unknown");
        assert_eq!(state(&found, "agent-program"), "ok");
        assert_eq!(state(&found, "run-directory"), "ok");
    }
}

/// As actions/checkout leaves it: in `.git/config` up to v5, in a file of the runner's from v6 on.
#[test]
fn credentials_of_a_shallow_detached_checkout_are_found_in_both_layouts() {
    for in_file in [false, true] {
        let (mut project, _github) = job(TOKEN, Token::job());
        project.write("b.txt", "b\n");
        project.commit_all("second");
        let origin = project.beside("origin");
        fs::rename(project.repo(), &origin).unwrap();
        fs::create_dir(project.repo()).unwrap();
        project.git(&["init", "--quiet", "--initial-branch=main"]);
        let url = format!("file://{}", origin.display());
        let refs = "+HEAD:refs/remotes/pull/7/merge";
        project.git(&["fetch", "--quiet", "--depth=1", &url, refs]);
        project.git(&[
            "checkout",
            "--quiet",
            "--detach",
            "refs/remotes/pull/7/merge",
        ]);
        let key = "http.https://github.com/.extraheader";
        let value = format!("AUTHORIZATION: basic {TOKEN}");
        let file = project.beside("runner").join("git-credentials-1.config");
        let holder = if in_file {
            project.git(&["config", "--file", file.to_str().unwrap(), key, &value]);
            let dir = project.repo().join(".git");
            let include = format!("includeIf.gitdir:{}.path", dir.display());
            project.git(&["config", &include, file.to_str().unwrap()]);
            file
        } else {
            project.git(&["config", key, &value]);
            project.repo().join(".git/config")
        };
        project.env("GITHUB_REF", "refs/pull/7/merge");
        let (run, found) = doctor(&project, &[]);
        run.expect(0);
        let said = found["checkout"]["found"].as_str().unwrap();
        has(said, "(refs/remotes/pull/7/merge), shallow: 1 commit");
        assert_eq!(state(&found, "credentials"), "warn");
        let said = found["credentials"]["found"].as_str().unwrap();
        assert!(said.contains(holder.to_str().unwrap()), "{said}");
        let remedy = found["credentials"]["remedy"].as_str().unwrap();
        assert!(remedy.contains("persist-credentials: false"), "{remedy}");
    }
}

#[test]
fn no_agent_no_program_and_no_key() {
    let none = Project::new(&[("a.txt", "a\n")]);
    let (run, found) = doctor(&none, &[]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["agent"]);
    assert_eq!(state(&found, "checks"), "warn");

    let mut bare = Project::new(&[("a.txt", "a\n")]);
    let only_git = bare.outside("bin");
    fs::create_dir(&only_git).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file());
    symlink(git.unwrap(), only_git.join("git")).unwrap();
    bare.env("PATH", &only_git);
    let (run, found) = doctor(&bare, &["--agent", "codex"]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["agent-program", "model-key"]);
    let remedy = found["agent-program"]["remedy"].as_str().unwrap();
    has(remedy, "npm install --global @openai/codex");
    bare.env("OPENAI_KEY", "canary-0123456789");
    let (run, found) = doctor(&bare, &["--agent", "codex"]);
    let remedy = found["model-key"]["remedy"].as_str().unwrap();
    has(
        remedy,
        "OPENAI_KEY is set, which nothing reads: rename it to OPENAI_API_KEY",
    );
    assert!(!run.stdout.contains("canary"), "{}", run.stdout);

    let broken = project(CONFIG);
    program(&broken.outside("bin/codex"), "exit 3");
    let (run, found) = doctor(&broken, &[]);
    run.expect(0);
    assert_eq!(state(&found, "agent-program"), "warn");
}

#[test]
fn a_wrong_configuration_a_dirty_tree_and_no_repository_end_4() {
    let wrong = project("max_retries: lots\n");
    let (run, found) = doctor(&wrong, &[]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["configuration"]);
    let said = found["configuration"]["found"].as_str().unwrap();
    assert!(said.starts_with(".sprag/config.yaml:1:"), "{said}");

    let dirty = project(CONFIG);
    dirty.write("a.txt", "changed\n");
    let (run, found) = doctor(&dirty, &[]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["work-tree"]);

    // Beside the work tree there may be a repository around all of it.
    let outside = tempfile::tempdir().unwrap();
    let (run, found) = doctor(
        &dirty,
        &["-C", outside.path().to_str().unwrap(), "--agent", "codex"],
    );
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["repository"]);
}

#[test]
fn the_program_of_every_check_and_setup_command_is_looked_for() {
    let missing =
        project("agent: codex\nverify: ['no-such-linter --all && true', './missing.sh']\n");
    let (run, found) = doctor(&missing, &[]);
    run.expect(4);
    assert_eq!(states(&found, "fail"), ["programs"]);
    let told = found["programs"]["found"].as_str().unwrap();
    has(told, "no-such-linter");
    has(told, "./missing.sh");

    let installed = project("agent: codex\nsetup: [git --version]\nverify: [no-such-linter]\n");
    let (run, found) = doctor(&installed, &[]);
    run.expect(0);
    assert_eq!(state(&found, "programs"), "warn");
}

#[test]
fn whether_the_key_of_the_model_stays_with_sprag_is_told() {
    let told = |project: &Project, args: &[&str]| {
        let (run, found) = doctor(project, args);
        let gateway = &found["model-gateway"];
        let words = [&gateway["state"], &gateway["found"]].map(|it| it.as_str().unwrap());
        (run.code, words.join(": "))
    };
    let mut project = project(CONFIG);
    let (code, kept) = told(&project, &[]);
    assert_eq!(kept, "ok: the key of its model stays with Sprag");
    assert_eq!(code, 0);
    let elsewhere = ["--agent-arg=--oss"];
    let (code, own) = told(&project, &elsewhere);
    assert!(own.starts_with("ok: not used: "), "{own}");
    assert_eq!(code, 0);
    let (code, refused) = told(&project, &["--gateway", "on", elsewhere[0]]);
    let why = "fail: `gateway: on` keeps the key of its model with Sprag, which is not possible: ";
    assert!(refused.starts_with(why), "{refused}");
    assert_eq!(code, 4);
    project.env("OPENAI_BASE_URL", "nowhere");
    let (_, wrong) = told(&project, &[]);
    assert!(wrong.contains("OPENAI_BASE_URL"), "{wrong}");
}
