//! What people say that CI does to agents, as one of them would meet it: tests/evidence/ci-complaints.md names these tests.

use super::kept_work::{kept, on_a_new_machine};
use super::{FIX, IS_FIXED, with_pull};
use crate::support::has;
use crate::support::runner::{Runner, Step};
use std::fs;

const ASKED: &str = "/sprag make a.txt say fixed";

/// A job for a comment on pull request 1, with this agent and these arguments.
fn job(runner: &mut Runner, script: &str, args: &[&str], code: i32) -> Step {
    let agent = runner.project.agent(script);
    let args = [&["--agent-command", &agent][..], args].concat();
    runner.step(&args).expect(code)
}

/// A check that runs this script, with `$OUT` for what it notes.
fn check(runner: &Runner, script: &str) -> String {
    let path = runner.project.outside("check.sh");
    let out = runner.project.outside("");
    fs::write(&path, format!("OUT={}\n{script}", out.display())).unwrap();
    format!("sh {}", path.display())
}

#[test]
fn a_test_that_was_red_before_costs_no_work() {
    let mut runner = with_pull();
    runner.project.env("SPRAG_BASELINE", "on-failure");
    // As pytest tells it: what failed, and how many passed.
    let script = "echo '=== short test summary info ==='\n\
        grep -q fixed a.txt && ended='1 failed, 1 passed' || ended='2 failed, 0 passed'\n\
        grep -q fixed a.txt || echo 'FAILED tests/test_x.py::test_new - assert False'\n\
        echo 'FAILED tests/test_x.py::test_old - assert False'\n\
        echo \"=== $ended in 0.01s ===\"\nexit 1\n";
    let check = check(&runner, script);
    runner.say(1, "grace", ASKED);
    let args = ["--verify", &check, "--known-failures", "tolerate"];
    let step = job(&mut runner, FIX, &args, 0);
    assert_eq!(step.output("status"), "unverified");
    assert!(step.output("known-failures").contains("test_old"));
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_eq!(runner.checks().last().unwrap().1, "neutral");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("was red before"), "{comment}");
    assert_eq!(
        runner.project.calls(),
        1,
        "no retry for what is not the agent's"
    );
}

#[test]
fn a_flaky_test_costs_no_work_and_is_named() {
    let mut runner = with_pull();
    // The first failure is then the one of the work.
    runner.project.env("SPRAG_BASELINE", "off");
    let script = "test -e $OUT/once && exit\ntouch $OUT/once\n\
        echo '=== short test summary info ==='\n\
        echo 'FAILED tests/test_x.py::test_clock - assert False'\nexit 1\n";
    let check = check(&runner, script);
    runner.say(1, "grace", ASKED);
    let args = ["--verify", &check, "--max-retries", "0"];
    let step = job(&mut runner, FIX, &args, 0);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert!(step.summary.contains("flaky"), "{}", step.summary);
    assert!(step.summary.contains("test_clock"), "{}", step.summary);
    assert_eq!(
        runner.project.calls(),
        1,
        "the agent is not asked to mend it"
    );
}

#[test]
fn what_a_rate_limit_cut_off_goes_on_when_it_is_continued() {
    let plan = "title: Two steps\ntasks:\n  - { id: one, title: The first }\n  - { id: two, title: The second }\n";
    let mut runner = with_pull();
    runner.project.env("SPRAG_MODEL_WAIT_MS", "1");
    runner.push("feature", "plans/steps.yaml", plan);
    runner.say(1, "grace", "/sprag run plans/steps.yaml");
    let limited = "test $SPRAG_TASK_ID = two && { echo 'Error: 429 Too Many Requests'; exit 1; }\n\
        echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt";
    let step = job(&mut runner, limited, &[], 4);
    assert_eq!(step.output("reason"), "agent_unavailable");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("/sprag continue"), "{comment}");

    on_a_new_machine(&mut runner);
    runner.say(1, "grace", "/sprag continue");
    let before = runner.project.calls();
    let works = "echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt";
    let step = job(&mut runner, works, &[], 0);
    assert_eq!(runner.project.calls() - before, 1, "the first task is done");
    assert_eq!(step.output("tasks-done"), "2");
    for task in ["one", "two"] {
        assert_eq!(
            runner.file("feature", &format!("{task}.txt")),
            format!("{task}\n")
        );
    }
    assert_eq!(kept(&runner), Vec::<String>::new());
}

#[test]
fn a_changed_workflow_is_held_back_and_the_rest_is_pushed() {
    let mut runner = with_pull();
    runner.server.refuse_workflows();
    runner.say(1, "grace", ASKED);
    let script =
        format!("mkdir -p .github/workflows; echo on: push > .github/workflows/ci.yml\n{FIX}");
    let step = job(&mut runner, &script, &["--verify", IS_FIXED], 0);
    assert_eq!(step.output("status"), "success");
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_eq!(step.output("changed-files"), "a.txt");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains(".github/workflows/ci.yml"), "{comment}");
    let patches = step.dir.unwrap().join("patches");
    let held = fs::read_dir(patches)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    assert!(held.into_iter().any(|patch| patch.contains("+on: push")));
}

#[test]
fn another_agent_takes_over_after_a_failed_attempt_and_is_named() {
    let mut runner = with_pull();
    runner.say(1, "grace", ASKED);
    let other = runner.project.outside("other.sh");
    fs::write(&other, format!("{FIX}\n")).unwrap();
    let list = format!("[{{agent_command: sh {}}}]", other.display());
    let args = ["--verify", IS_FIXED, "--escalate", &list];
    let step = job(&mut runner, "echo $N > a.txt", &args, 0);
    assert_eq!(runner.project.calls(), 1);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    has(&step.summary, "1 of 1 takes over");
    has(&step.run.stdout, "takes over");
}

#[test]
fn the_fallback_takes_over_from_an_agent_that_is_unavailable_and_is_named() {
    let mut runner = with_pull();
    runner.project.env("SPRAG_MODEL_WAIT_MS", "1");
    runner.say(1, "grace", ASKED);
    let other = runner.project.outside("other.sh");
    fs::write(&other, format!("{FIX}\n")).unwrap();
    let fallback = format!("{{agent_command: sh {}}}", other.display());
    let args = ["--verify", IS_FIXED, "--fallback", &fallback];
    let down = "echo 'Error: 503 Service Unavailable'; exit 1";
    let step = job(&mut runner, down, &args, 0);
    assert!(runner.project.calls() > 1, "it is waited for first");
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("takes over: command"), "{comment}");
    has(&step.run.stdout, "`fallback`");
}

#[test]
fn a_long_turn_tells_the_log_of_the_job_how_far_it_is() {
    let mut runner = with_pull();
    runner.project.env("SPRAG_HEARTBEAT", "100ms");
    runner.say(1, "grace", ASKED);
    // The agent goes on once its turn was told of.
    let script = format!(
        "echo '{{\"event\":\"agent.usage\",\"tokens_in\":1200,\"tokens_out\":30,\"cost_usd\":0.25}}'\n\
         echo '{{\"event\":\"agent.file_change\",\"path\":\"a.txt\"}}'\n\
         echo '{{\"event\":\"agent.tool_call\",\"name\":\"shell\",\"summary\":\"cargo test\"}}'\n\
         events=$(dirname \"$SPRAG_PROMPT_FILE\")/../events.jsonl\n\
         until grep '\"turn.progress\"' \"$events\" | grep -q 'cargo test'; do sleep 0.05; done\n{FIX}"
    );
    let step = job(&mut runner, &script, &["--verify", IS_FIXED], 0);
    let log = &step.run.stdout;
    let told = "last: shell cargo test · 1 file changed · 1.2k in / 30 out tokens, $0.25";
    assert!(log.contains(told), "{log}");
}
