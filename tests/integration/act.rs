//! The workflows that people copy, run by `act` for the event that each of them is for, up to what GitHub has
//! afterwards. `support/act.rs` says what stands in for what.

use crate::action_file::ROOT;
use crate::support::act::{self, Ended};
use crate::support::events;
use crate::support::github::{Job, WorkflowRun};
use crate::support::model_api::{ModelApi, Step};
use crate::support::runner::{Runner, repository};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// What `make` and `make test` are in the project.
const MAKEFILE: &str = "all:\n\t@true\ntest:\n\t@grep -q fixed a.txt\n";

/// A private repository with these files besides `a.txt`, which is broken; pull request 1 of `feature` onto `main`;
/// grace, who may write.
fn repository_with(files: &[(&str, &str)]) -> Runner {
    let files = [&[("a.txt", "broken"), ("Makefile", MAKEFILE)], files].concat();
    let runner = Runner::new(&files);
    runner.branch("feature", "b.txt", "feature");
    {
        let mut state = runner.github.state();
        state.repository.private = true;
        state.role("grace", "write");
        state.role("ada", "write");
        state.open_pull("ada", "Add b", "feature", "main");
    }
    runner
}

fn example(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join("examples/workflows").join(name)).unwrap()
}

/// An event that a person starts by hand, with these inputs, on `main`.
fn by_hand(runner: &mut Runner, inputs: &Value) {
    let event = json!({ "repository": repository(), "inputs": inputs, "ref": "refs/heads/main",
        "sender": { "login": "grace", "type": "User" } });
    runner.event("workflow_dispatch", "refs/heads/main", &event);
}

/// That the work was verified, pushed to this branch and reported.
fn assert_done(runner: &Runner, ended: &Ended, branch: &str) {
    let job = &ended.outputs.last().unwrap();
    assert_eq!(job.output("status"), "success", "{}", ended.text());
    assert_eq!(runner.file(branch, "a.txt"), "fixed");
    assert_eq!(runner.log(branch)[0], "Say fixed");
    assert_eq!(job.output("branch"), branch);
    assert_eq!(job.output("head-sha"), runner.at(branch));
    assert_eq!(job.output("report-status"), "ok", "{}", ended.text());
    let checks = runner.checks();
    let last = checks.last().unwrap();
    assert_eq!(last, &(runner.at(branch), "success".to_owned()));
}

/// What the examples keep of a run as an artifact.
fn assert_kept(runner: &Runner, name: &str) {
    let kept = runner.project.outside("artifacts").join(name);
    assert!(kept.join("report.html").is_file(), "{}", kept.display());
    assert!(!kept.join("turns").exists(), "no transcripts");
}

#[test]
fn the_comment_workflow_works_for_a_comment_on_a_pull_request_and_on_an_issue() {
    let mut runner = repository_with(&[]);
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let Some(ended) = act::run(&runner, &example("comment.yml")) else {
        return;
    };
    let ended = ended.expect(true);
    assert_done(&runner, &ended, "feature");
    assert_kept(&runner, "sprag-run");
    assert_eq!(ended.job("sprag").output("pull-request-number"), "1");
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains(&runner.at("feature")[..7]), "{comment}");

    let issue = runner
        .github
        .state()
        .open_issue("ada", "a.txt is broken", "It should say fixed.");
    runner.say(issue, "grace", "/sprag do it");
    let ended = act::run(&runner, &example("comment.yml"))
        .unwrap()
        .expect(true);
    let branch = format!("sprag/issue-{issue}");
    assert_done(&runner, &ended, &branch);
    let state = runner.github.state();
    let opened = state.pulls.values().last().unwrap();
    assert_eq!((&opened.head, opened.draft), (&branch, true));
}

#[test]
fn the_comment_workflow_starts_no_job_for_another_comment_and_no_agent_for_a_stranger() {
    let mut runner = repository_with(&[]);
    runner.say(1, "grace", "Looks good to me");
    let Some(ended) = act::run(&runner, &example("comment.yml")) else {
        return;
    };
    assert_eq!(ended.expect(true).outputs.len(), 0);
    runner.say(1, "mallory", "/sprag make a.txt say fixed");
    let ended = act::run(&runner, &example("comment.yml"))
        .unwrap()
        .expect(true);
    assert_eq!(
        ended.job("sprag").output("status"),
        "no_work",
        "{}",
        ended.text()
    );
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(runner.github.state().checks.len(), 0);
}

#[test]
fn the_workflows_for_labels_work_for_an_issue_and_a_pull_request() {
    let mut runner = repository_with(&[]);
    let issue = runner
        .github
        .state()
        .open_issue("ada", "a.txt is broken", "It should say fixed.");
    runner.labelled(issue, "grace");
    let Some(ended) = act::run(&runner, &example("issue-label.yml")) else {
        return;
    };
    assert_done(
        &runner,
        &ended.expect(true),
        &format!("sprag/issue-{issue}"),
    );

    let mut runner = repository_with(&[]);
    runner.github.state().issues.get_mut(&1).unwrap().body = "- [ ] a.txt says fixed\n".to_owned();
    runner.merge_ref(1);
    runner.labelled(1, "grace");
    let ended = act::run(&runner, &example("pull-request-label.yml"))
        .unwrap()
        .expect(true);
    assert_eq!(ended.job("sprag").output("status"), "success");
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    assert_kept(&runner, "sprag-run");
}

#[test]
fn the_workflow_for_forks_writes_nothing_and_keeps_what_it_came_to() {
    let mut runner = repository_with(&[]);
    runner.merge_ref(1);
    runner.labelled(1, "grace");
    let write = json!({"path": "a.txt", "content": "fixed"});
    let steps = [
        Step::Calls(String::new(), vec![("write_file", write)]),
        Step::Calls(
            String::new(),
            vec![("finish", json!({"summary": "Say fixed"}))],
        ),
    ];
    let model = ModelApi::start(steps).unwrap();
    let text = example("fork.yml");
    let own = "https://models.example.com/v1";
    assert!(text.contains(own));
    let text = text.replace(own, &format!("{}/v1", model.url()));
    let Some(ended) = act::run(&runner, &text) else {
        return;
    };
    let ended = ended.expect(true);
    assert_eq!(ended.job("sprag").output("status"), "success");
    assert_eq!(ended.job("sprag").output("commits").lines().count(), 1);
    assert_eq!(runner.server.pushes(), 0);
    let state = runner.github.state();
    assert!(state.comments.is_empty() && state.checks.is_empty());
    let kept = runner.project.outside("artifacts/sprag-run");
    assert!(kept.join("work.bundle").is_file());
}

#[test]
fn the_workflow_for_reviews_does_what_one_asks_for() {
    let mut runner = repository_with(&[]);
    let id = {
        let mut github = runner.github.state();
        github.issues.get_mut(&1).unwrap().labels = vec!["sprag".to_owned()];
        github.review(1, "grace", "CHANGES_REQUESTED", "a.txt has to say fixed")
    };
    runner.merge_ref(1);
    let event = events::review(&runner.github.state(), id);
    runner.event("pull_request_review", "refs/pull/1/merge", &event);
    let Some(ended) = act::run(&runner, &example("review.yml")) else {
        return;
    };
    assert_done(&runner, &ended.expect(true), "feature");
}

#[test]
fn the_reviewing_workflow_annotates_lines_and_posts_one_review() {
    let mut runner = repository_with(&[]);
    runner.merge_ref(1);
    let head = runner.at("feature");
    let mut event = json!({ "action": "opened", "number": 1, "repository": repository(),
        "sender": { "login": "ada", "type": "User" } });
    event["pull_request"] = events::pull(&runner.github.state(), 1);
    runner.event("pull_request", "refs/pull/1/merge", &event);
    let Some(ended) = act::run(&runner, &example("pull-request-review.yml")) else {
        return;
    };
    let ended = ended.expect(false);
    assert_eq!(ended.job("review").output("reason"), "review_findings");
    assert_eq!(runner.at("feature"), head);
    assert_kept(&runner, "sprag-review");
    let state = runner.github.state();
    let annotations = &state.checks[0].annotations;
    assert!(annotations.iter().any(|it| it["path"] == "b.txt"));
    assert_eq!(state.reviews.len(), 1);
    assert_eq!(state.review_comments.len(), 1);
}

#[test]
fn the_workflow_for_failed_ci_mends_the_branch_and_starts_ci_on_what_it_pushed() {
    let mut runner = repository_with(&[]);
    let job = Job {
        id: 901,
        name: "test".to_owned(),
        conclusion: Some("failure".to_owned()),
        steps: vec![("Test".to_owned(), "failure".to_owned())],
        log: Some("assertion failed: a.txt says broken\n".to_owned()),
    };
    let run = WorkflowRun {
        name: "CI".to_owned(),
        path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        head_branch: "feature".to_owned(),
        head_sha: runner.at("feature"),
        status: "completed".to_owned(),
        conclusion: Some("failure".to_owned()),
        attempt: 1,
        jobs: vec![job],
        pulls: vec![1],
    };
    runner.github.state().runs.insert(900, run);
    runner
        .github
        .state()
        .dispatchable
        .insert("ci.yml".to_owned());
    let event = events::workflow_run(&runner.github.state(), 900);
    runner.event("workflow_run", "refs/heads/main", &event);
    let Some(ended) = act::run(&runner, &example("fix-ci.yml")) else {
        return;
    };
    assert_done(&runner, &ended.expect(true), "feature");
    let dispatched = &runner.github.state().dispatches;
    assert_eq!(dispatched.len(), 1, "{dispatched:?}");
}

#[test]
fn the_nightly_workflow_takes_the_next_plan_of_the_queue() {
    let plan = "title: Night\nverify:\n  - { name: test, run: make test, kind: test }\ntasks:\n  - { id: fix, title: Say fixed }\n";
    let mut runner = repository_with(&[(".sprag/queue/night.yaml", plan)]);
    let event = json!({ "repository": repository(), "schedule": "17 2 * * *" });
    runner.event("schedule", "refs/heads/main", &event);
    let Some(ended) = act::run(&runner, &example("schedule.yml")) else {
        return;
    };
    assert_done(&runner, &ended.expect(true), "sprag/night");
    let night = act::run(&runner, &example("schedule.yml"))
        .unwrap()
        .expect(true);
    assert_eq!(night.job("sprag").output("status"), "no_work");
}

#[test]
fn the_workflow_for_a_pushed_plan_works_it_off_on_its_branch() {
    let plan = "title: Next\nverify:\n  - { name: test, run: make test, kind: test }\ntasks:\n  - { id: fix, title: Say fixed }\n";
    let mut runner = repository_with(&[(".sprag/plans/next.yaml", plan)]);
    let head = runner.at("main");
    let event = json!({ "repository": repository(), "ref": "refs/heads/main", "after": head,
        "head_commit": { "id": head, "message": "Plan", "author": { "username": "grace" } },
        "pusher": { "name": "grace" }, "sender": { "login": "grace", "type": "User" } });
    runner.event("push", "refs/heads/main", &event);
    let Some(ended) = act::run(&runner, &example("plan-pushed.yml")) else {
        return;
    };
    assert_done(&runner, &ended.expect(true), "main");
    assert!(
        runner
            .file("main", ".sprag/plans/next.yaml")
            .contains("status: done")
    );
}

#[test]
fn the_workflow_by_hand_works_off_a_prompt_and_its_annotations_are_the_runners() {
    let mut runner = repository_with(&[]);
    by_hand(
        &mut runner,
        &json!({ "prompt": "Make a.txt say fixed", "plan": "", "queue": "" }),
    );
    let Some(ended) = act::run(&runner, &example("dispatch.yml")) else {
        return;
    };
    assert_done(&runner, &ended.expect(true), "main");

    // A check that fails, without `checks: write`: what failed is on its line, as the runner shows it.
    let failing = "test:\n\t@echo a.txt:1:1: error: it says broken; exit 1\nall:\n\t@true\n";
    let mut runner = repository_with(&[("Makefile", failing)]);
    by_hand(
        &mut runner,
        &json!({ "prompt": "Make a.txt say fixed", "plan": "", "queue": "" }),
    );
    let text = example("dispatch.yml").replace("      checks: write # for the check run\n", "");
    let ended = act::run(&runner, &text).unwrap().expect(false);
    assert_eq!(ended.job("sprag").output("status"), "failed");
    let annotations = ended.annotations();
    let on_line = annotations
        .iter()
        .find(|(kind, file, _)| kind == "error" && file == "a.txt");
    assert!(on_line.is_some(), "{annotations:?}\n{}", ended.text());
}

#[test]
fn the_matrix_of_plans_pushes_each_to_the_branch() {
    let plan = |name: &str| {
        format!(
            "title: {name}\nverify: [make]\ntasks:\n  - {{ id: part-{name}, title: Add part-{name} }}\n"
        )
    };
    let texts = ["export", "import", "settings"]
        .map(|name| (format!(".sprag/plans/{name}.yaml"), plan(name)));
    let files: Vec<(&str, &str)> = texts
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    let mut runner = repository_with(&files);
    by_hand(&mut runner, &json!({}));
    let Some(ended) = act::run(&runner, &example("matrix.yml")) else {
        return;
    };
    let ended = ended.expect(true);
    let mut plans: Vec<String> = ended
        .outputs
        .iter()
        .map(|outputs| outputs.matrix["plan"].to_string())
        .collect();
    plans.sort_unstable();
    assert_eq!(plans, ["\"export\"", "\"import\"", "\"settings\""]);
    let mut log = runner.log("main");
    assert_eq!(log.pop().unwrap(), "base");
    log.sort_unstable();
    assert_eq!(
        log,
        ["Add part-export", "Add part-import", "Add part-settings"]
    );
}

#[test]
fn one_plan_is_spread_over_jobs_and_brought_together() {
    let plan = "title: Export\nverify: [make]\ntasks:\n  - { id: part-a, title: Add part-a }\n  - { id: part-b, title: Add part-b, depends_on: [part-a] }\n  - { id: part-c, title: Add part-c }\n";
    let mut runner = repository_with(&[(".sprag/plans/export.yaml", plan)]);
    by_hand(&mut runner, &json!({ "plan": ".sprag/plans/export.yaml" }));
    let Some(ended) = act::run(&runner, &example("fan-out.yml")) else {
        return;
    };
    let ended = ended.expect(true);
    let work: Vec<&str> = ended
        .outputs
        .iter()
        .filter(|outputs| outputs.job == "work")
        .map(|outputs| outputs.matrix["tasks"].as_str().unwrap())
        .collect();
    assert_eq!(work, ["part-a part-b", "part-c"]);
    assert_eq!(ended.job("integrate").output("status"), "success");
    assert_eq!(
        runner.log("main"),
        [
            "[sprag] Record the status of export",
            "Add part-c",
            "Add part-b",
            "Add part-a",
            "base"
        ]
    );
    let done = runner.file("main", ".sprag/plans/export.yaml");
    assert_eq!(done.matches("status: done").count(), 3, "{done}");
}

#[test]
fn several_agents_do_one_task_side_by_side_and_push_nothing() {
    let mut runner = repository_with(&[]);
    by_hand(&mut runner, &json!({ "prompt": "Make a.txt say fixed" }));
    let Some(ended) = act::run(&runner, &example("agents.yml")) else {
        return;
    };
    let ended = ended.expect(true);
    assert_eq!(ended.outputs.len(), 2);
    for (outputs, agent, cost) in [
        (&ended.outputs[0], "claude", "0.25"),
        (&ended.outputs[1], "codex", ""),
    ] {
        assert_eq!(outputs.matrix["agent"], agent);
        assert_eq!(
            outputs.output("status"),
            "success",
            "{agent}: {}",
            ended.text()
        );
        assert_eq!(outputs.output("cost-usd"), cost, "{agent}");
        let kept = runner
            .project
            .outside("artifacts")
            .join(format!("sprag-{agent}"));
        let patches = fs::read_dir(kept.join("commits")).unwrap_or_else(|_| panic!("{agent}"));
        assert_eq!(patches.count(), 1);
    }
    assert_eq!(runner.server.pushes(), 0);
}

#[test]
fn the_second_of_two_jobs_pushes_what_the_first_one_did() {
    let mut runner = repository_with(&[]);
    by_hand(&mut runner, &json!({ "prompt": "Make a.txt say fixed" }));
    let Some(ended) = act::run(&runner, &example("two-jobs.yml")) else {
        return;
    };
    let ended = ended.expect(true);
    assert_eq!(ended.job("run").output("status"), "success");
    assert_eq!(ended.job("publish").output("status"), "success");
    assert_eq!(ended.job("publish").output("head-sha"), runner.at("main"));
    assert_eq!(runner.file("main", "a.txt"), "fixed");
    assert_eq!(runner.server.pushes(), 1);
}

#[test]
fn what_init_writes_answers_a_comment_in_both_forms() {
    for (args, job) in [
        (&["init"][..], "sprag"),
        (&["init", "--two-jobs"], "publish"),
    ] {
        let mut runner = repository_with(&[]);
        let output = runner.project.command(args).output().unwrap();
        runner.project.finished(&output).expect(0);
        let workflow = runner.project.read(".github/workflows/sprag.yml");
        let configuration = runner.project.read(".sprag/config.yaml");
        assert!(configuration.contains("make test"), "{configuration}");
        runner.push("main", ".github/workflows/sprag.yml", &workflow);
        runner.push("main", ".sprag/config.yaml", &configuration);
        runner.checkout("main");
        runner.say(1, "grace", "/sprag make a.txt say fixed");
        let Some(ended) = act::run(&runner, &workflow) else {
            return;
        };
        let ended = ended.expect(true);
        assert_eq!(runner.file("feature", "a.txt"), "fixed");
        assert_eq!(ended.job(job).output("status"), "success");
        let comment = runner.comment(1).unwrap();
        assert!(comment.contains(&runner.at("feature")[..7]), "{comment}");
    }
}

#[test]
fn the_lines_of_the_readme_lead_from_nothing_to_the_first_answered_comment() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let mut blocks = readme
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap());
    let workflow = blocks
        .find(|block| block.starts_with("name: Sprag\n"))
        .unwrap();
    let mut runner = repository_with(&[(".github/workflows/sprag.yml", workflow)]);
    let id = runner.say(1, "grace", "/sprag fix the flaky date test");
    let Some(ended) = act::run(&runner, workflow) else {
        return;
    };
    let ended = ended.expect(true);
    assert_done(&runner, &ended, "feature");
    assert_eq!(
        runner.project.notes("cargo"),
        ["install --locked --git https://github.com/sprag-ci/sprag sprag"]
    );
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains(&runner.at("feature")[..7]), "{comment}");
    let reactions = runner.reactions(crate::support::github::Subject::Comment(id));
    assert_eq!(reactions, ["eyes", "rocket"]);
}

/// A further example is run here too.
#[test]
fn every_example_is_run() {
    let here = include_str!("act.rs");
    for entry in fs::read_dir(Path::new(ROOT).join("examples/workflows")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        assert!(here.contains(&format!("example(\"{name}\")")), "{name}");
    }
}
