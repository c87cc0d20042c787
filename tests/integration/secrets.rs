//! The secrets of the job in what an agent leaves behind: nothing of it is committed.

use crate::support::project::{Project, Run};
use crate::support::tasks::{end, fixable, fixable_by};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::fs;

const KEY: &str = "canary/model+key-7f3a9c";

/// Runs an agent that fixes `a.txt` and then does this, beside a variable that holds [`KEY`].
fn run(project: &mut Project, script: &str, args: &[&str]) -> Run {
    project.env("MODEL_API_KEY", KEY);
    let agent = project.agent(&format!("echo fixed > a.txt\n{script}\necho Done."));
    project.run(&agent, args)
}

fn assert_refused(project: &Project, run: Run, place: &str) {
    let run = run.expect(3);
    let task = run.task(0);
    assert_eq!(end(task), ("blocked", "policy_violation"));
    let message = task["message"].as_str().unwrap();
    let told = format!("the value of MODEL_API_KEY is in {place}");
    assert!(message.contains(&told), "{message}");
    assert_eq!(project.commits(), 2, "nothing is committed");
    let dir = run.dir.as_ref().unwrap();
    let patch = fs::read_to_string(dir.join(task["patch"].as_str().unwrap())).unwrap();
    assert!(!patch.contains(KEY), "{patch}");
    assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY));
}

#[test]
fn a_secret_in_a_file_blocks_the_task() {
    let encoded = BASE64_STANDARD.encode(KEY);
    for script in [
        format!("mkdir conf; echo 'key = {KEY}' > conf/key"),
        format!("mkdir conf; printf 'x\\0{KEY}\\0' > conf/key"),
        format!("mkdir conf; echo '{encoded}' > conf/key"),
        format!("mkdir conf; ln -s '{KEY}' conf/key"),
        format!("mkdir conf; echo '{KEY}' > conf/key; git add conf"),
    ] {
        let mut project = fixable();
        let run = run(&mut project, &script, &[]);
        assert_refused(&project, run, "conf/key");
    }
}

#[test]
fn a_secret_in_a_commit_of_the_agent_s_own_blocks_the_task() {
    for script in [
        format!("echo '{KEY}' > k; git add k; git commit -qm one; git rm -q k; git commit -qm two"),
        format!("git commit -qam 'Use {KEY}'"),
    ] {
        let mut project = fixable();
        let run = run(&mut project, &script, &[]);
        assert_refused(&project, run, "a commit of the agent's own");
    }
}

#[test]
fn what_the_repository_holds_already_is_no_secret() {
    let mut project = fixable();
    project.write("compose.yaml", &format!("password: {KEY}\n"));
    project.commit_all("compose");
    let script = format!("echo 'password: {KEY}' >> compose.yaml; echo '{KEY}' > other");
    let run = run(&mut project, &script, &[]).expect(0);
    assert_eq!(run.summary["totals"]["done"], 1);
}

#[test]
fn what_is_not_committed_may_hold_a_secret() {
    let mut project = fixable();
    project.write(".gitignore", ".env\n");
    project.commit_all("ignore");
    run(&mut project, &format!("echo '{KEY}' > .env"), &[]).expect(0);
}

#[test]
fn a_check_that_writes_a_secret_into_a_tracked_file_makes_no_commit() {
    let check = "grep -q fixed a.txt && { grep -qF \"$MODEL_API_KEY\" a.txt || echo \"$MODEL_API_KEY\" >> a.txt; }";
    let mut project = fixable_by(check);
    let plan = format!("verify_env: [MODEL_API_KEY]\n{}", project.read("plan.yaml"));
    project.write("plan.yaml", &plan);
    project.commit_all("verify_env");
    let run = run(&mut project, "", &["--max-retries", "0"]).expect(1);
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("MODEL_API_KEY is in a.txt"), "{message}");
    assert_eq!(project.commits(), 3);
}
