//! Unfinished work that outlives the machine on which it was done.

use super::{FIX, IS_FIXED, own_comments, with_pull};
use crate::support::github::git;
use crate::support::has;
use crate::support::proc::{end_of, left_in, signal, wait_until};
use crate::support::runner::{Runner, Step, commit};
use std::fs;
use std::process::Stdio;

const PLAN: &str = "title: Two steps\ntasks:\n  - { id: one, title: The first }\n  - { id: two, title: The second }\n";
/// Does the first task, and hangs in the second with half of the work done.
const HANGS_IN_TWO: &str = "echo $SPRAG_TASK_ID >> done.txt\n[ $SPRAG_TASK_ID = one ] && exit\n\
    touch $OUT/working; exec sleep 1000";

/// The names of references that keep unfinished work.
pub(super) fn kept(runner: &Runner) -> Vec<String> {
    let refs = git(
        &runner.bare(),
        &["for-each-ref", "--format=%(refname)", "refs/sprag/work/"],
    );
    refs.lines().map(str::to_owned).collect()
}

/// Another machine: nothing of the first one is there but what the repository has.
pub(super) fn on_a_new_machine(runner: &mut Runner) {
    let _ = fs::remove_dir_all(runner.project.beside("runner").join("sprag"));
    runner.checkout("main");
}

pub(super) fn kill(pid: u32) {
    // It may have ended by itself.
    let args = ["-KILL", &pid.to_string()];
    let _ = std::process::Command::new("kill")
        .args(args)
        .stderr(Stdio::null())
        .status();
}

/// Runs until the agent is at work in its last task, and ends the process by this signal.
fn ended_by(runner: &mut Runner, script: &str, more: &[&str], name: &str) {
    let agent = runner.project.agent(script);
    let args = [&["--agent-command", &agent][..], more].concat();
    let mut command = runner.command(&args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let working = runner.project.outside("working");
    wait_until("the agent works", || working.exists());
    signal(child.id(), name);
    end_of(&mut child);
    // The machine ends with everything that runs on it.
    wait_until("nothing is left", || {
        let left = left_in(&runner.project, &[]);
        left.keys().for_each(|pid| kill(*pid));
        left.is_empty()
    });
    fs::remove_file(working).unwrap();
}

fn step(runner: &mut Runner, script: &str, more: &[&str], code: i32) -> Step {
    let agent = runner.project.agent(script);
    let args = [&["--agent-command", &agent][..], more].concat();
    runner.step(&args).expect(code)
}

#[test]
fn a_job_that_is_run_again_after_its_machine_died_goes_on_from_the_last_commit() {
    let mut runner = with_pull();
    runner.push("feature", "plans/steps.yaml", PLAN);
    let before = runner.at("feature");
    let id = runner.say(1, "grace", "/sprag run plans/steps.yaml");
    ended_by(&mut runner, HANGS_IN_TWO, &[], "KILL");
    assert_eq!(runner.at("feature"), before, "no branch is touched");
    assert_eq!(kept(&runner).len(), 1);

    on_a_new_machine(&mut runner);
    runner.project.env("GITHUB_RUN_ATTEMPT", "2");
    runner.commented(id);
    let calls = runner.project.calls();
    let again = step(&mut runner, "echo $SPRAG_TASK_ID >> done.txt", &[], 0);
    assert_eq!(runner.project.calls() - calls, 1, "the first task is done");
    assert_eq!(runner.file("feature", "done.txt"), "one\ntwo\n");
    assert_eq!(
        runner.log("feature")[..2],
        [
            "[sprag] Complete task two: The second",
            "[sprag] Complete task one: The first"
        ]
    );
    assert_eq!(again.output("tasks-done"), "2");
    assert_eq!(again.output("attempts"), "2");
    assert_eq!(kept(&runner), Vec::<String>::new());
    assert_eq!(own_comments(&runner), 1);
    runner.checks();
}

#[test]
fn unfinished_work_without_a_comment_is_continued_on_top_of_somebody_elses_commits() {
    let mut runner = with_pull();
    runner.push("feature", "plans/steps.yaml", PLAN);
    runner.say(1, "grace", "/sprag continue");
    let nothing = step(&mut runner, "true", &[], 2);
    has(&nothing.run.stdout, "there is no unfinished work");
    runner.say(1, "grace", "/sprag run plans/steps.yaml");
    ended_by(&mut runner, HANGS_IN_TWO, &[], "KILL");
    assert_eq!(kept(&runner).len(), 1);
    runner.github.state().comments.clear();
    runner.push("feature", "theirs.txt", "theirs");

    on_a_new_machine(&mut runner);
    runner.say(1, "grace", "/sprag continue");
    let calls = runner.project.calls();
    step(&mut runner, "echo $SPRAG_TASK_ID >> done.txt", &[], 0);
    assert_eq!(runner.project.calls() - calls, 1, "the first task is done");
    assert_eq!(runner.file("feature", "done.txt"), "one\ntwo\n");
    assert_eq!(runner.file("feature", "theirs.txt"), "theirs");
    assert_eq!(runner.log("feature")[2], "Somebody's work");
    assert_eq!(kept(&runner), Vec::<String>::new());
}

/// The tests from before the run judge its tasks on every machine.
#[test]
fn tests_that_were_weakened_on_another_machine_judge_nothing_here() {
    let mut runner = with_pull();
    runner.project.env("SPRAG_TEST_CHANGES", "prove");
    runner.push("feature", "plans/steps.yaml", PLAN);
    runner.push("feature", "tests/a.sh", "test ! -e broken.txt\n");
    let id = runner.say(1, "grace", "/sprag run plans/steps.yaml");
    let weakens = HANGS_IN_TWO.replacen("echo", "echo true > tests/a.sh; echo", 1);
    let check = ["--verify", "sh tests/a.sh"];
    ended_by(&mut runner, &weakens, &check, "KILL");

    on_a_new_machine(&mut runner);
    runner.project.env("GITHUB_RUN_ATTEMPT", "2");
    runner.commented(id);
    let again = step(&mut runner, "echo x > broken.txt", &check, 0);
    assert_eq!(again.output("tasks-done"), "2");
    assert_eq!(again.output("status"), "unverified");
}

#[test]
fn what_a_cancelled_job_has_half_done_is_there_when_it_is_continued() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let script = "printf half > a.txt; mkdir -p new; echo x > new/file\n\
        touch $OUT/working; exec sleep 1000";
    ended_by(&mut runner, script, &["--verify", IS_FIXED], "INT");
    let names = kept(&runner);
    assert_eq!(names.len(), 1);
    let told = runner.comment(1).unwrap();
    assert!(told.contains("`/sprag continue`"), "{told}");
    has(&told, names[0].trim_start_matches("refs/"));

    on_a_new_machine(&mut runner);
    runner.say(1, "grace", "/sprag continue");
    let script = format!("[ $(cat a.txt) = half ] && cat new/file > seen.txt\n{FIX}");
    let step = step(&mut runner, &script, &["--verify", IS_FIXED], 0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(runner.file("feature", "seen.txt"), "x\n");
    assert_eq!(runner.file("feature", "new/file"), "x\n");
    assert_eq!(runner.log("feature")[0], "Say fixed");
    assert_eq!(kept(&runner), Vec::<String>::new());
    assert_eq!(own_comments(&runner), 1);
    runner.checks();
}

#[test]
fn notes_of_a_scheduled_run_reach_the_next_one_on_another_machine() {
    let mut runner = with_pull();
    let plan = "title: Two steps\ntasks:\n  - { id: one, title: The first }\n  - { id: two, title: The second }\n";
    runner.push("main", "plans/steps.yaml", plan);
    let scheduled = |runner: &mut Runner, script: &str, code: i32| {
        on_a_new_machine(runner);
        let event = serde_json::json!({ "repository": crate::support::runner::repository(), "schedule": "0 3 * * *" });
        runner.event("schedule", "refs/heads/main", &event);
        step(runner, script, &["--queue", "plans"], code)
    };
    let fails = "[ $SPRAG_TASK_ID = one ] && { echo one > done.txt; exit; }\n\
        printf 'FAILED: no key\\n\\nNOTE: the key is in the vault\\n'";
    scheduled(&mut runner, fails, 3);
    assert_eq!(kept(&runner).len(), 1);

    runner.github.state().clock_ahead = 24 * 3600;
    let calls = runner.project.calls();
    let works = "echo $SPRAG_TASK_ID >> done.txt";
    scheduled(&mut runner, works, 0);
    let prompt = runner.project.prompt(calls + 1);
    has(&prompt, "Z, task two: the key is in the vault\n");
    assert_eq!(
        kept(&runner),
        Vec::<String>::new(),
        "what has landed needs them no more"
    );
}

#[test]
fn a_failed_task_goes_on_with_its_work_and_what_it_cost_is_remembered() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let cost =
        "echo '{\"event\":\"agent.usage\",\"tokens_in\":1,\"tokens_out\":1,\"cost_usd\":6}'\n";
    let args = ["--verify", IS_FIXED, "--max-retries", "0"];
    step(
        &mut runner,
        &format!("{cost}printf worse > a.txt"),
        &args,
        1,
    );
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(kept(&runner).len(), 1);

    on_a_new_machine(&mut runner);
    runner.say(1, "grace", "/sprag continue");
    let script = format!("{cost}cat a.txt > seen.txt\n{FIX}");
    let step = step(&mut runner, &script, &args, 0);
    assert_eq!(runner.file("feature", "seen.txt"), "worse");
    assert_eq!(
        step.output("cost-usd").parse(),
        Ok(12.0),
        "both jobs, and each below 10"
    );
    assert_eq!(kept(&runner), Vec::<String>::new());
}

#[test]
fn a_plan_on_the_command_line_is_taken_up_where_it_is_asked_for() {
    let mut runner = with_pull();
    runner.push("main", "plan.yaml", PLAN);
    runner.checkout("main");
    let payload = serde_json::json!({ "ref": "refs/heads/main", "inputs": null,
        "repository": crate::support::runner::repository(),
        "sender": { "login": "grace", "type": "User" } });
    runner.event("workflow_dispatch", "refs/heads/main", &payload);
    let nothing = ["--plan", "plan.yaml", "--resume", "--from-remote"];
    let refused = step(&mut runner, FIX, &nothing, 2);
    has(&refused.run.stderr, "no unfinished work");
    ended_by(&mut runner, HANGS_IN_TWO, &["--plan", "plan.yaml"], "KILL");
    assert_eq!(kept(&runner).len(), 1);
    on_a_new_machine(&mut runner);
    runner.event("workflow_dispatch", "refs/heads/main", &payload);
    step(&mut runner, "echo $SPRAG_TASK_ID >> done.txt", &nothing, 0);
    assert_eq!(runner.file("main", "done.txt"), "one\ntwo\n");
    assert_eq!(kept(&runner), Vec::<String>::new());
}

#[test]
fn a_secret_of_the_job_is_not_kept_and_no_branch_is_made() {
    let mut runner = with_pull();
    runner
        .project
        .env("DEPLOY_TOKEN", "canary-of-the-deployment");
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let script = "printf canary-of-the-deployment > a.txt; echo more > b.txt";
    step(&mut runner, script, &["--verify", IS_FIXED], 3);
    assert_eq!(kept(&runner), Vec::<String>::new());
    let branches = git(
        &runner.bare(),
        &["for-each-ref", "--format=%(refname)", "refs/heads/"],
    );
    assert_eq!(branches, "refs/heads/feature\nrefs/heads/main\n");
}

#[test]
fn what_is_older_than_thirty_days_is_removed_by_the_next_run() {
    let mut runner = with_pull();
    let old = commit(&runner.bare(), "scratch", "main", "x", "x");
    let made = |message: &str| {
        let tree = format!("{old}^{{tree}}");
        let args = ["-c", "user.name=S", "-c", "user.email=s@example.invalid"];
        let commit = ["commit-tree", &tree, "-p", &old, "-m", message];
        let id = git(&runner.bare(), &[&args[..], &commit].concat());
        id.trim().to_owned()
    };
    let (past, future) = (
        made("w\n\nSprag-Kept-At: 1000000000"),
        made("w\n\nSprag-Kept-At: 9000000000"),
    );
    git(
        &runner.bare(),
        &["update-ref", "refs/sprag/work/past", &past],
    );
    git(
        &runner.bare(),
        &["update-ref", "refs/sprag/work/future", &future],
    );
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    step(&mut runner, FIX, &["--verify", IS_FIXED], 0);
    assert_eq!(kept(&runner), ["refs/sprag/work/future"]);
}
