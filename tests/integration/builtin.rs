//! The built-in agent end to end: a scripted model server on one side, a real repository on the other.

use crate::support::model_api::{ModelApi, Recorded, Step};
use crate::support::model_wire::{TOKENS_IN, TOKENS_OUT};
use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{MODEL_KEY, assessments, builtin};
use serde_json::{Value, json};

pub const KEY: &str = MODEL_KEY;

pub fn calls(text: &str, calls: Vec<(&'static str, Value)>) -> Step {
    Step::Calls(text.into(), calls)
}

pub fn finish() -> Step {
    calls("", vec![("finish", json!({"summary": "Fix a.txt"}))])
}

pub fn write_fixed() -> Step {
    calls(
        "",
        vec![("write_file", json!({"path": "a.txt", "content": "fixed\n"}))],
    )
}

/// A project whose check wants `fixed` in `a.txt`.
pub fn broken() -> Project {
    Project::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ])
}

pub fn run(project: &mut Project, api: &ModelApi, model: &str, args: &[&str]) -> Run {
    let all = builtin(project, &api.url(), model, args);
    project.sprag(&all)
}

pub fn session(run: &Run) -> &Value {
    let turns = run.task(0)["turns"].as_array().unwrap();
    &turns.last().unwrap()["builtin"]
}

/// Runs the project with this script in the format of chat completions.
pub fn played(project: &mut Project, script: Vec<Step>) -> (Run, Vec<Recorded>) {
    let api = ModelApi::start(script).unwrap();
    let run = run(project, &api, "openai/m", &[]);
    (run, api.model_requests())
}

#[test]
fn the_same_task_is_done_in_every_format_streamed_or_whole() {
    for (model, header, args) in [
        ("openai/m", "authorization", &[] as &[&str]),
        ("openai/m", "authorization", &["--agent-arg=--no-stream"]),
        ("openai-responses/m", "authorization", &[]),
        ("anthropic/m", "x-api-key", &[]),
        ("gemini/m", "x-goog-api-key", &[]),
    ] {
        let api = ModelApi::start([
            calls(
                "I look around — first.",
                vec![
                    ("read_file", json!({"path": "a.txt"})),
                    (
                        "run_command",
                        json!({"command": "env; echo marker-$((40 + 2))"}),
                    ),
                    (
                        "update_plan",
                        json!({"items": [{"text": "a.txt: fix it", "state": "pending"}]}),
                    ),
                ],
            ),
            calls(
                "",
                vec![(
                    "edit_file",
                    json!({"path": "a.txt", "search": "broken", "replace": "fixed"}),
                )],
            ),
            finish(),
        ])
        .unwrap();
        let mut project = broken();
        let run = run(&mut project, &api, model, args).expect(0);
        assert_eq!(project.read("a.txt"), "fixed\n", "{model}");
        assert_eq!((project.commits(), project.status().as_str()), (2, ""));
        let session = session(&run);
        assert_eq!(
            session["completion_kind"], "complete_verified",
            "{model} {session}"
        );
        assert_eq!(session["plan_finished"], 1);
        assert_eq!(session["tool_calls"], 5);
        assert_eq!(session["tokens"], 3 * (TOKENS_IN + TOKENS_OUT));
        let requests = api.model_requests();
        assert_eq!(requests.len(), 3);
        for request in &requests {
            assert!(request.header(header).unwrap().contains(KEY), "{model}");
            assert!(!request.mentions(KEY), "no key in what the model reads");
        }
        assert!(requests[1].mentions("     1\tbroken"), "{model}");
        assert!(requests[1].mentions("marker-42"), "{model}");
        assert!(requests[2].mentions("edited a.txt"), "{model}");
        let names = run.event_names();
        for name in [
            "agent.tool_call",
            "agent.tool_result",
            "agent.file_change",
            "agent.todo",
        ] {
            assert!(names.contains(&name), "{name} in {names:?}");
        }
        let log = run.dir.as_ref().unwrap().join("turns/01-builtin.jsonl");
        let log = std::fs::read_to_string(log).unwrap();
        let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
        assert_eq!(last["intent"], json!({"step": "end", "exit": "submitted"}));
    }
}

#[test]
fn a_model_may_name_files_by_absolute_paths_and_end_with_plain_text() {
    let mut project = broken();
    let path = project.repo().join("a.txt").display().to_string();
    let write = json!({"file_path": path, "content": "fixed\n"});
    let script = vec![
        calls("I write the file.", vec![("write_file", write)]),
        Step::Text("Done: a.txt was written.".into()),
    ];
    let (run, requests) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!((requests.len(), project.commits()), (2, 2));
    assert_eq!(session(&run)["exit"], "submitted");
}

#[test]
fn a_model_that_only_plans_is_nudged_like_any_agent() {
    let plan = "Here's what I'll do:\n1. Read a.txt.\n2. I'll change it to say fixed.";
    let mut script = vec![Step::Text(plan.into()); 3];
    script.extend([write_fixed(), finish()]);
    let mut project = broken();
    let (run, _) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!(assessments(run.task(0)), ["planning_only", "changed"]);
}

pub const TWO_ITEMS: &str = "```SPRAG_PLAN\n- [ ] src/a.rs: one\n- [ ] src/b.rs: two\n```\n";

/// A session that stalls until the repair message, which this answers.
pub fn stalled(last: Step) -> Vec<Step> {
    let look = |n: u32| {
        calls(
            "",
            vec![("read_file", json!({"path": "src/a.rs", "start": n}))],
        )
    };
    let begin = calls(TWO_ITEMS, vec![("read_file", json!({"path": "src/a.rs"}))]);
    let looks = (1..8).map(look);
    std::iter::once(begin).chain(looks).chain([last]).collect()
}

pub fn stalled_project() -> Project {
    let lines = "// line\n".repeat(20);
    Project::new(&[
        ("src/a.rs", &lines),
        ("src/b.rs", &lines),
        ("plan.yaml", &plan("true")),
    ])
}

#[test]
fn no_tool_reaches_out_of_the_work_tree() {
    let mut project = broken();
    let secret = project.outside("secret");
    std::fs::write(&secret, "secret-text").unwrap();
    std::os::unix::fs::symlink(&secret, project.repo().join("link")).unwrap();
    project.commit_all("a link");
    let absolute = secret.to_str().unwrap().to_owned();
    let reads = [
        "../agent/secret",
        &absolute,
        "link",
        ".GIT/config",
        ".git/HEAD",
    ];
    let reads = reads
        .iter()
        .map(|path| ("read_file", json!({"path": path})));
    let writes = [
        "../agent/secret",
        &absolute,
        "link",
        ".GIT/config",
        ".git/hooks/pre-commit",
    ];
    let writes = writes
        .iter()
        .map(|path| ("write_file", json!({"path": path, "content": "x"})));
    let attack: Vec<_> = reads.chain(writes).collect();
    let count = attack.len();
    let (run, requests) = played(
        &mut project,
        vec![calls("", attack), write_fixed(), finish()],
    );
    let run = run.expect(0);
    let refused = run
        .events
        .iter()
        .filter(|event| event["event"] == "agent.tool_result");
    assert_eq!(refused.filter(|event| event["ok"] == false).count(), count);
    assert!(
        requests
            .iter()
            .all(|request| !request.mentions("secret-text"))
    );
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret-text");
    assert!(!project.repo().join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_model_that_cannot_call_tools_is_named_as_such() {
    let api = ModelApi::without_tools([]).unwrap();
    let mut project = broken();
    let ended = run(&mut project, &api, "openai/m", &[]);
    assert_eq!(ended.code, 4);
    assert_eq!(ended.task(0)["turns"].as_array().unwrap().len(), 1);
    let why = "name a model that can call tools with --model";
    assert!(ended.stdout.contains(why), "{}", ended.stdout);
    assert_eq!(project.commits(), 1);
    let api = ModelApi::start([]).unwrap();
    let argument = ["--agent-arg=--text-tools"];
    let run = run(&mut broken(), &api, "openai/m", &argument).expect(2);
    assert!(
        run.stderr.contains("has no argument `--text-tools`"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_built_in_agent_is_chosen_where_a_model_can_be_reached() {
    let mut project = broken();
    project.env("ANTHROPIC_API_KEY", KEY);
    let run = project
        .sprag(&["run", "--plan", "plan.yaml", "--dry-run"])
        .expect(0);
    let line = "agent: builtin (claude-sonnet-5-5 by anthropic at https://api.anthropic.com/v1)";
    assert!(run.stdout.contains(line), "{}", run.stdout);
    assert!(!run.stdout.contains(KEY));
}
