//! Work in a checkout of jj whose commits are pushed, in a job.

use super::jj_directory;
use crate::support::proc::wait_until;
use crate::support::runner::{Runner, repository};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A job for a push to `main`, with jj in its checkout.
struct Job {
    runner: Runner,
    jj: PathBuf,
    config: PathBuf,
}

/// jj is beside git, or alone.
fn job(is_alone: bool) -> Option<Job> {
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
    let user = "[user]\nname = \"Ada\"\nemail = \"ada@example.org\"\n";
    fs::write(&config, user).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory.clone()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(all).unwrap();
    runner.project.env("PATH", path);
    runner.project.env("JJ_CONFIG", &config);
    let jj = directory.join("jj");
    let job = Job { runner, jj, config };
    job.jj(&["git", "init", "--colocate"]);
    if is_alone {
        job.jj(&["git", "colocation", "disable"]);
    }
    Some(job)
}

impl Job {
    fn jj(&self, args: &[&str]) -> String {
        let project = &self.runner.project;
        let output = Command::new(&self.jj)
            .args(["--no-pager", "--color=never", "--quiet"])
            .args(args)
            .current_dir(project.repo())
            .env("JJ_CONFIG", &self.config)
            .env("HOME", project.beside(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "jj {args:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Ids of commits that jj knows.
    fn ids(&self, revisions: &str) -> String {
        self.jj(&["log", "--no-graph", "-r", revisions, "-T", "commit_id"])
    }
}

#[test]
fn what_is_done_in_a_checkout_of_jj_is_pushed_and_jj_has_it() {
    for is_alone in [false, true] {
        let Some(mut job) = job(is_alone) else {
            return;
        };
        let script = "printf fixed > a.txt; jj --quiet status >/dev/null; echo 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
        let agent = job.runner.project.agent(script);
        let args = [
            "--agent-command",
            &agent,
            "--verify",
            "grep -q fixed a.txt",
            "--prompt",
            "Mend a.txt",
        ];
        let step = job.runner.step(&args).expect(0);
        let branch = step.output("branch");
        assert_eq!(
            job.runner.file(branch, "a.txt"),
            "fixed",
            "{is_alone} {branch}"
        );
        assert_eq!(step.output("head-sha"), job.runner.at(branch));
        let below = job.ids("@-");
        assert_eq!(below, job.runner.at(branch), "{is_alone}");
        assert_eq!(job.jj(&["diff", "--name-only"]), "");
    }
}

/// Whoever pushes first is below the work, in git and in jj.
#[test]
fn work_that_was_overtaken_is_on_top_of_the_other_push_in_jj_too() {
    for is_alone in [false, true] {
        let Some(mut job) = job(is_alone) else {
            return;
        };
        let script = "touch \"$OUT/began\"; while [ ! -e \"$OUT/go\" ]; do sleep 0.1; done; printf fixed > a.txt; \
                      echo 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
        let agent = job.runner.project.agent(script);
        let args = [
            "--agent-command",
            &agent,
            "--verify",
            "grep -q fixed a.txt",
            "--prompt",
            "Mend a.txt",
        ];
        let mut command = job.runner.command(&args);
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("the turn", || job.runner.project.outside("began").exists());
        job.runner.push("main", "theirs.txt", "theirs");
        fs::write(job.runner.project.outside("go"), "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{is_alone}");
        assert_eq!(
            job.runner.log("main").len(),
            3,
            "{:?}",
            job.runner.log("main")
        );
        assert_eq!(job.runner.log("main")[0], "Say fixed");
        let below = job.ids("@-");
        assert_eq!(below, job.runner.at("main"), "{is_alone}");
        assert_eq!(job.jj(&["diff", "--name-only"]), "", "{is_alone}");
        assert_eq!(job.runner.project.read("theirs.txt"), "theirs");
        let broken = "conflicts() | divergent()";
        assert_eq!(job.ids(broken), "");
    }
}

/// The second of two jobs pushes what the first one did in a checkout of jj.
#[test]
fn what_is_done_in_a_checkout_of_jj_is_published_by_another_job() {
    for is_alone in [false, true] {
        let Some(mut job) = job(is_alone) else {
            return;
        };
        let agent = "printf fixed > a.txt; echo 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
        let agent = job.runner.project.agent(agent);
        let verify = "grep -q fixed a.txt";
        let args = [
            "--agent-command",
            &agent,
            "--verify",
            verify,
            "--prompt",
            "Mend a.txt",
        ];
        let done = job
            .runner
            .step(&[&args[..], &["--no-push"]].concat())
            .expect(0);
        assert_eq!(job.runner.log("main"), ["base"]);
        let from = job.runner.project.beside("downloaded");
        fs::rename(done.dir.unwrap(), &from).unwrap();
        fs::remove_dir_all(job.runner.project.beside("runner").join("sprag")).unwrap();
        let output = job
            .runner
            .command_of("publish", &[from.to_str().unwrap()])
            .output();
        let published = job.runner.ended(&output.unwrap());
        assert_eq!(published.run.code, 0, "{}", published.run.stdout);
        assert_eq!(job.runner.log("main"), ["Say fixed", "base"]);
    }
}
