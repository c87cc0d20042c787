//! What a run keeps and records: outputs, changed files, statuses, notes, waits.

use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{
    FIX, assert_nothing_recorded, assessments, end, ends, events, files_of, fixable, kept, logged,
    plan_of, several, statuses, subjects, warnings,
};
use serde_json::json;

const MAKE: &str = "touch $SPRAG_TASK_ID; echo Done.";

#[test]
fn output_capture() {
    let project = fixable();
    let agent =
        project.agent("echo \"turn $N\"; [ $N = 2 ] && echo fixed > a.txt || echo wrong > a.txt");
    let run = project.run(&agent, &[]).expect(0);
    for n in [1, 2] {
        assert_eq!(
            kept(&run, &format!("turns/0{n}-command.jsonl")),
            format!("turn {n}\n")
        );
        assert_eq!(
            kept(&run, &format!("turns/0{n}-final.md")),
            format!("turn {n}")
        );
        assert_eq!(kept(&run, &format!("prompts/0{n}.md")), project.prompt(n));
        let check = &run.task(0)["checks"][n as usize - 1];
        // The first log is the one of the tree on which the task started.
        assert_eq!(check["log"], format!("verify/0{}-test.log", n + 1));
        assert_eq!(check["passed"], n == 2);
    }
    let turns = run.task(0)["turns"].as_array().unwrap();
    let numbers: Vec<u64> = turns
        .iter()
        .map(|turn| turn["turn"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 2]);
    let seqs: Vec<u64> = run
        .events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
}

#[test]
fn baseline_changed_files() {
    let project = fixable();
    let base = project.head();
    let agent = project.agent(
        "echo one > committed.txt; git add committed.txt; git commit --quiet --message own; echo two > untracked.txt; echo fixed > a.txt; rm -f $OUT/none",
    );
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(
        run.summary["changed_files"],
        json!(["a.txt", "committed.txt", "untracked.txt"])
    );
    assert_eq!(
        run.task(0)["changed_files"],
        json!(["a.txt", "committed.txt", "untracked.txt"])
    );
    assert_eq!(run.summary["base"], base.as_str());
    assert_eq!(run.summary["head"], project.head().as_str());
    assert_eq!(
        project.git(&["diff", "--name-only", &base, "HEAD"]),
        "a.txt\ncommitted.txt\nplan.yaml\nuntracked.txt"
    );
}

#[test]
fn skip_empty_commit() {
    let cases = [
        ("fail", 1, ("failed", "no_progress"), "-"),
        (
            "warn",
            0,
            ("no_work", "no_progress"),
            "a task changed nothing",
        ),
        ("ok", 0, ("no_work", "no_progress"), "-"),
    ];
    for (policy, code, expected, warning) in cases {
        let project = fixable();
        let head = project.head();
        let agent = project.agent("echo Done.");
        let run = project
            .run(&agent, &["--if-no-changes", policy])
            .expect(code);
        assert_eq!(end(&run.summary), expected, "{policy}");
        assert_eq!(end(run.task(0)), ("failed", "no_progress"), "{policy}");
        let warned = warnings(&run).contains(&"a task changed nothing");
        assert_eq!(warned, warning != "-", "{policy}");
        let offered = logged(&run, "--if-no-changes ok");
        assert_eq!(offered, policy == "fail", "{}", run.stdout);
        assert_eq!(run.summary["commits"], json!([]));
        assert_nothing_recorded(&project, &head);
        assert_eq!(project.status(), "");
    }
}

#[test]
fn tolerated_idleness_lets_the_plan_go_on_also_with_what_depends_on_it() {
    let project = several(&["one", "two"]);
    let plan = project.read("plan.yaml") + "    depends_on: [one]\n";
    project.write("plan.yaml", &plan);
    project.commit_all("depend");
    let agent =
        project.agent("[ $SPRAG_TASK_ID = one ] && { echo Done.; exit; }; touch two; echo Done.");
    let run = project.run(&agent, &["--if-no-changes", "warn"]).expect(0);
    assert_eq!(
        ends(&run),
        [("failed", "no_progress"), ("done", "verified")]
    );
    assert!(warnings(&run).contains(&"a task changed nothing"));
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["-", "done"]
    );
}

#[test]
fn status_written_by_the_agent_is_put_right() {
    let project = several(&["one", "two"]);
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = two ] && { touch bad; echo Done.; exit; }; touch one; sed -i 's/title: Make two/title: Make two\\n    status: done/' plan.yaml; echo Done.",
    );
    let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert_eq!(
        ends(&run),
        [("done", "verified"), ("failed", "verification_failed")]
    );
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done", "pending"]
    );
}

#[test]
fn only_the_status_written_by_the_agent_is_no_change() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent(
        "grep -q 'status: done' plan.yaml || echo '    status: done' >> plan.yaml; echo Done.",
    );
    let run = project.run(&agent, &[]).expect(1);
    assert_eq!(assessments(run.task(0)), ["claims_done", "claims_done"]);
    assert_eq!(project.head(), head);
}

#[test]
fn continue_until_complete() {
    let project = several(&["one", "two", "three"]);
    let agent = project.agent(MAKE);
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(ends(&run), [("done", "verified"); 3]);
    assert_eq!(project.calls(), 3);
    assert_eq!((project.commits(), project.status()), (5, "".into()));
    assert_eq!(
        statuses(&project.read("plan.yaml")),
        ["done", "done", "done"]
    );
    let nothing = project.run(&agent, &[]).expect(0);
    assert_eq!(project.calls(), 3);
    assert_eq!(end(&nothing.summary), ("no_work", "no_work"));
    let prompt = project.prompt(2);
    has(&prompt, "Tasks that are done:\n\n- one: Make one\n");
    has(
        &prompt,
        "Tasks that come later and are not yours now:\n\n- three: Make three\n",
    );
}

#[test]
fn progress_notes() {
    let project = fixable();
    let agent = project.agent(&format!(
        r#"echo '{{"event":"agent.message","text":"half way"}}'; echo '{{"event":"agent.todo","items":[{{"text":"edit","status":"in_progress"}}]}}'; {FIX}"#
    ));
    let run = project.run(&agent, &[]).expect(0);
    let notes = events(&run, "agent.message");
    assert_eq!(notes.len(), 1);
    let note = notes[0];
    assert_eq!(note["text"], "half way");
    assert_eq!(
        (&note["task"], &note["attempt"], &note["turn"]),
        (&json!("fix"), &json!(1), &json!(1))
    );
    let ts = note["ts"].as_str().unwrap();
    assert!(
        ts.len() >= 20 && ts.ends_with('Z') && ts.contains('T'),
        "{ts}"
    );
    let todo = &events(&run, "agent.todo")[0]["items"][0];
    assert_eq!(*todo, json!({ "text": "edit", "status": "in_progress" }));
    let saved = kept(&run, "events.jsonl");
    assert!(saved.contains("half way"));
}

#[test]
fn backoff_is_bounded() {
    let mut project = fixable();
    project.env("SPRAG_MODEL_WAIT_MS", "10");
    let head = project.head();
    let agent = project.agent("echo 'Error: 429 Too Many Requests, retry after 0 seconds'; exit 1");
    let run = project.run(&agent, &[]).expect(4);
    assert_eq!(project.calls(), 6);
    assert_eq!(end(run.task(0)), ("failed", "agent_unavailable"));
    assert_eq!(end(&run.summary), ("environment", "agent_unavailable"));
    let message = run.task(0)["message"].as_str().unwrap();
    has(message, "429");
    has(message, "5 waits");
    assert_eq!(run.task(0)["attempts"], 1);
    assert_nothing_recorded(&project, &head);
    // What is fixed meanwhile goes on where it stopped.
    let agent = project.agent(FIX);
    let resumed = project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!(end(resumed.task(0)), ("done", "verified"));
    assert_eq!(
        subjects(&project)[0],
        "[sprag] Complete task fix: Fix a.txt"
    );
}

#[test]
fn backoff_never_outlives_the_deadline() {
    let project = fixable();
    let agent =
        project.agent("echo 'Error: 429 Too Many Requests, retry after 7200 seconds'; exit 1");
    let run = project.run(&agent, &["--deadline", "2m"]).expect(5);
    assert_eq!(project.calls(), 1);
    assert_eq!(end(run.task(0)), ("pending", "deadline"));
    assert_eq!(end(&run.summary), ("deadline", "deadline"));
}

#[test]
fn one_task_by_name() {
    let project = Project::new(&[]);
    let plan = format!(
        "{}    depends_on: [ one ]\n",
        plan_of(&["one", "two"], "true")
    );
    project.write("plan.yaml", &plan);
    project.commit_all("plan");
    let agent = project.agent(MAKE);
    let run = project.run(&agent, &["--task", "two"]).expect(0);
    assert_eq!(ends(&run), [("pending", "-"), ("done", "verified")]);
    assert_eq!(run.task(0)["message"], "not selected");
    assert_eq!(files_of(&project, "HEAD"), ["plan.yaml", "two"]);
    assert_eq!(
        warnings(&run),
        ["task two is run alone: it depends on one, which is not done"]
    );
    let unknown = project.run(&agent, &["--task", "tow"]).expect(2);
    has(&unknown.stderr, "did you mean");
}
