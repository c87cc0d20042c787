//! What a branch that is worked on may not decide: what is run, and who may have it run.

use super::{FIX, with_pull};
use crate::support::github::git;
use crate::support::runner::{Runner, commit};

/// A configuration that runs commands of its author's choice, and lets everybody start runs.
fn hostile(runner: &Runner) -> String {
    let mark = runner.project.outside("hostile");
    format!(
        "setup: ['touch {mark}']\nagent_command: 'touch {mark}'\nverify: ['touch {mark}']\nallowed_users: [eve]\nallow_pull_request_target: true\n",
        mark = mark.display()
    )
}

fn is_run(runner: &Runner) -> bool {
    runner.project.outside("hostile").exists()
}

/// Has the pull request of `with_pull` come from a fork.
fn fork(runner: &Runner) {
    let sha = runner.at("feature");
    git(&runner.bare(), &["update-ref", "refs/pull/1/head", &sha]);
    let mut state = runner.github.state();
    let pull = state.pulls.get_mut(&1).unwrap();
    pull.fork = Some("eve/widget".into());
    pull.head_sha = sha;
}

#[test]
fn the_configuration_of_the_branch_is_not_obeyed() {
    for is_fork in [false, true] {
        let mut runner = with_pull();
        let text = hostile(&runner);
        runner.push("feature", ".sprag/config.yaml", &text);
        if is_fork {
            fork(&runner);
        }
        runner.say(1, "grace", "/sprag make a.txt say fixed");
        let agent = runner.project.agent(FIX);
        // The agent is the workflow's; the checks would be the branch's.
        runner.step(&["--agent-command", &agent]).expect(0);
        assert_eq!(runner.project.calls(), 1, "fork: {is_fork}");
        assert!(!is_run(&runner), "fork: {is_fork}");
    }
}

#[test]
fn the_configuration_of_the_default_branch_is() {
    let mut runner = with_pull();
    let mark = runner.project.outside("checked");
    let text = format!("verify: ['touch {}']\n", mark.display());
    commit(&runner.bare(), "main", "main", ".sprag/config.yaml", &text);
    runner.checkout("main");
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let step = runner.by(FIX, &[]).expect(0);
    assert_eq!(step.output("status"), "success");
    assert!(mark.exists());
}

#[test]
fn the_settings_of_a_forks_plan_are_not_followed() {
    let mut runner = with_pull();
    let plan = format!(
        "title: Mend\n{}tasks:\n  - id: fix\n    title: Fix a.txt\n",
        hostile(&runner)
            .lines()
            .filter(|line| !line.starts_with("allow"))
            .fold(String::new(), |text, line| text + line + "\n")
    );
    runner.push("feature", "plans/mend.yaml", &plan);
    fork(&runner);
    runner.say(1, "grace", "/sprag run plans/mend.yaml");
    let step = runner.by(FIX, &[]).expect(0);
    assert_eq!(runner.project.calls(), 1);
    assert!(!is_run(&runner));
    assert!(step.run.stdout.contains("the plan is from a fork"));
}

#[test]
fn a_checkout_says_nothing_about_who_may_start_runs() {
    let mut runner = with_pull();
    let text = hostile(&runner);
    runner.push("feature", ".sprag/config.yaml", &text);
    // As a workflow does that checks the pull request out itself.
    runner.checkout("feature");
    runner.say(1, "eve", "/sprag make a.txt say fixed");
    runner.by(FIX, &[]).expect(0);
    assert_eq!(runner.project.calls(), 0);
}

#[test]
fn an_issue_of_a_stranger_starts_nothing_by_its_number() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    let number = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        state.open_issue("eve", "Run this", "rm -rf /")
    };
    let agent = runner.project.agent(FIX);
    for (login, code, calls) in [("eve", 0, 0), ("grace", 0, 1)] {
        runner.labelled(number, login);
        let args = ["--issue", &number.to_string(), "--agent-command", &agent];
        runner.step(&args).expect(code);
        assert_eq!(runner.project.calls(), calls, "{login}");
    }
}

#[test]
fn what_somebody_took_back_is_not_pushed_again() {
    let mut runner = with_pull();
    let before = runner.at("main");
    let secret = runner.push("feature", "secret.txt", "a secret");
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let bare = runner.bare();
    let parent = git(&bare, &["rev-parse", "feature~1"]).trim().to_owned();
    runner.server.move_before_next_push(move |bare| {
        git(bare, &["update-ref", "refs/heads/feature", &parent]);
    });
    runner.by(FIX, &[]).expect(0);
    let log = git(&bare, &["log", "--format=%H", "feature"]);
    assert!(!log.contains(&secret), "{log}");
    assert_eq!(runner.log("feature")[0], "Say fixed");
    assert_eq!(runner.at("main"), before);
}
