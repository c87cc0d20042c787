//! Work in a checkout of jj whose commits are pushed, in a job.

use super::jj_directory;
use crate::support::proc::wait_until;
use crate::support::runner::{Runner, repository};
use serde_json::json;
use std::fs;
use std::process::{Command, Stdio};

/// A job for a push to `main`, in whose checkout jj is beside git, or alone. The function runs jj there.
fn job(is_alone: bool) -> Option<(Runner, impl Fn(&Runner, &[&str]) -> String)> {
    let directory = jj_directory()?;
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    runner.github.state().role("grace", "write");
    let head = runner.at("main");
    let payload = json!({ "ref": "refs/heads/main", "before": "0".repeat(40), "after": head,
        "deleted": false, "created": false, "forced": false, "repository": repository(),
        "sender": { "login": "grace", "type": "User" },
        "head_commit": { "id": head, "message": "base" }, "commits": [] });
    runner.event("push", "refs/heads/main", &payload);
    let config = runner.project.beside("jj.toml");
    fs::write(
        &config,
        "[user]\nname = \"Ada\"\nemail = \"ada@example.org\"\n",
    )
    .unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.clone()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(all).unwrap();
    runner.project.env("PATH", path);
    runner.project.env("JJ_CONFIG", &config);
    let jj = move |runner: &Runner, args: &[&str]| {
        let mut command = Command::new(directory.join("jj"));
        command
            .args(["--no-pager", "--color=never", "--quiet"])
            .args(args);
        command
            .current_dir(runner.project.repo())
            .env("JJ_CONFIG", &config);
        let output = command
            .env("HOME", runner.project.beside(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "jj {args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    };
    jj(&runner, &["git", "init", "--colocate"]);
    if is_alone {
        jj(&runner, &["git", "colocation", "disable"]);
    }
    Some((runner, jj))
}

#[test]
fn what_is_done_in_a_checkout_of_jj_is_pushed_and_jj_has_it() {
    for is_alone in [false, true] {
        let Some((mut runner, jj)) = job(is_alone) else {
            return;
        };
        let script = "printf fixed > a.txt; jj --quiet status >/dev/null; echo 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
        let agent = runner.project.agent(script);
        let args = [
            "--agent-command",
            &agent,
            "--verify",
            "grep -q fixed a.txt",
            "--prompt",
            "Mend a.txt",
        ];
        let step = runner.step(&args).expect(0);
        let branch = step.output("branch");
        assert_eq!(
            runner.file(&branch, "a.txt"),
            "fixed",
            "{is_alone} {branch}"
        );
        assert_eq!(step.output("head-sha"), runner.at(&branch));
        let below = jj(
            &runner,
            &["log", "--no-graph", "-r", "@-", "-T", "commit_id"],
        );
        assert_eq!(below, runner.at(&branch), "{is_alone}");
        assert_eq!(jj(&runner, &["diff", "--name-only"]), "");
    }
}

/// Whoever pushes first is below the work, in git and in jj.
#[test]
fn work_that_was_overtaken_is_on_top_of_the_other_push_in_jj_too() {
    for is_alone in [false, true] {
        let Some((mut runner, jj)) = job(is_alone) else {
            return;
        };
        let script = "touch \"$OUT/began\"; while [ ! -e \"$OUT/go\" ]; do sleep 0.1; done; printf fixed > a.txt; \
                      echo 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
        let agent = runner.project.agent(script);
        let args = [
            "--agent-command",
            &agent,
            "--verify",
            "grep -q fixed a.txt",
            "--prompt",
            "Mend a.txt",
        ];
        let mut command = runner.command(&args);
        let job = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut job = job.unwrap();
        wait_until("the turn", || runner.project.outside("began").exists());
        runner.push("main", "theirs.txt", "theirs");
        fs::write(runner.project.outside("go"), "").unwrap();
        assert_eq!(job.wait().unwrap().code(), Some(0), "{is_alone}");
        assert_eq!(runner.log("main").len(), 3, "{:?}", runner.log("main"));
        assert_eq!(runner.log("main")[0], "Say fixed");
        let below = jj(
            &runner,
            &["log", "--no-graph", "-r", "@-", "-T", "commit_id"],
        );
        assert_eq!(below, runner.at("main"), "{is_alone}");
        assert_eq!(jj(&runner, &["diff", "--name-only"]), "", "{is_alone}");
        assert_eq!(runner.project.read("theirs.txt"), "theirs");
        let broken = "conflicts() | divergent()";
        assert_eq!(
            jj(
                &runner,
                &["log", "--no-graph", "-r", broken, "-T", "commit_id"]
            ),
            ""
        );
    }
}
