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
    for (model, header) in [
        ("openai/m", "authorization"),
        ("openai-responses/m", "authorization"),
        ("anthropic/m", "x-api-key"),
        ("gemini/m", "x-goog-api-key"),
    ] {
        for args in [&[] as &[&str], &["--agent-arg=--no-stream"]] {
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

fn checked_off(summary: &str) -> String {
    format!(
        "```SPRAG_PLAN_UPDATE\n- [x] src/a.rs: one\n```\n```SPRAG_PLAN_UPDATE\n- [x] src/b.rs: two\n```\n\
         ```SPRAG_FINAL\n{summary}\n```\n"
    )
}

#[test]
fn a_late_update_with_an_edit_counts_on_the_turn_on_which_the_session_would_be_given_up() {
    let edit = (
        "write_file",
        json!({"path": "src/b.rs", "content": "// new\n"}),
    );
    let script = stalled(calls(&checked_off("Add two"), vec![edit]));
    let asked = script.len();
    let mut project = stalled_project();
    let (run, requests) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!(requests.len(), asked);
    assert!(requests.last().unwrap().mentions("come to a standstill"));
    assert_eq!(project.read("src/b.rs"), "// new\n");
    let session = session(&run);
    assert_eq!(
        [
            &session["exit"],
            &session["completion_kind"],
            &session["plan_update_count"],
            &session["plan_finished"]
        ],
        [
            &json!("submitted"),
            &json!("complete_verified"),
            &json!(2),
            &json!(2)
        ]
    );
    assert_eq!(session["repair_turns"], 1);
}

#[test]
fn a_late_update_without_an_edit_is_satisfied_and_not_partial() {
    let last = checked_off("ALREADY_SATISFIED: both are there");
    let script = stalled(calls(&last, Vec::new()));
    let asked = script.len();
    let mut project = stalled_project();
    let (run, requests) = played(&mut project, script);
    let run = run.expect(0);
    assert_eq!(requests.len(), asked);
    assert_eq!(run.task(0)["reason"], "already_satisfied");
    let session = session(&run);
    assert_eq!(
        [
            &session["completion_kind"],
            &session["plan_update_count"],
            &session["plan_finished"]
        ],
        [&json!("complete_verified"), &json!(2), &json!(2)]
    );
}

#[test]
fn what_passes_is_waited_out_and_nothing_of_a_broken_response_counts() {
    for failure in [
        Step::RateLimit(0),
        Step::Status(503),
        Step::Cut,
        Step::Garbled,
    ] {
        for model in ["openai/m", "anthropic/m"] {
            let api = ModelApi::start([failure.clone(), write_fixed(), finish()]).unwrap();
            let mut project = broken();
            run(&mut project, &api, model, &[]).expect(0);
            assert_eq!(api.steps_left(), 0, "{model} {failure:?}");
            assert!(!project.repo().join("cut.txt").exists());
            assert_eq!(project.commits(), 2);
        }
    }
}

#[test]
fn a_refused_key_ends_the_run_at_once() {
    for model in ["openai/m", "openai-responses/m", "anthropic/m", "gemini/m"] {
        let api = ModelApi::start([Step::Status(401)]).unwrap();
        let run = run(&mut broken(), &api, model, &[]).expect(4);
        assert_eq!(run.task(0)["reason"], "agent_unavailable", "{model}");
        assert_eq!(api.model_requests().len(), 1);
        assert!(!run.stdout.contains(KEY) && !run.stderr.contains(KEY));
    }
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
    for model in ["openai/m", "openai-responses/m", "anthropic/m", "gemini/m"] {
        let api = ModelApi::without_tools([]).unwrap();
        let mut project = broken();
        let run = run(&mut project, &api, model, &[]);
        assert_ne!(run.code, 0, "{model}");
        let why = "name a model that can call tools with --model";
        assert!(run.stdout.contains(why), "{model}: {}", run.stdout);
        assert_eq!(project.commits(), 1);
    }
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

/// A repair in one language: its files, its check, what is looked for and what takes its place.
struct Repair {
    needs: &'static str,
    files: &'static [(&'static str, &'static str)],
    check: &'static str,
    path: &'static str,
    search: &'static str,
    replace: &'static str,
}

const REPAIRS: &[Repair] = &[
    Repair {
        needs: "python3",
        files: &[
            (
                "stats.py",
                "def mean(values):\n    return sum(values) / (len(values) - 1)\n",
            ),
            (
                "check.py",
                "from stats import mean\nassert mean([2, 4]) == 3\n",
            ),
        ],
        check: "python3 -B check.py",
        path: "stats.py",
        search: "(len(values) - 1)",
        replace: "len(values)",
    },
    Repair {
        needs: "node",
        files: &[
            (
                "sum.js",
                "module.exports = (list) => list.reduce((a, b) => a + b);\n",
            ),
            (
                "check.js",
                "require('assert').strictEqual(require('./sum.js')([]), 0);\n",
            ),
        ],
        check: "node check.js",
        path: "sum.js",
        search: "(a, b) => a + b)",
        replace: "(a, b) => a + b, 0)",
    },
    Repair {
        needs: "gcc",
        files: &[(
            "max.c",
            "static int max(int a, int b) { return a < b ? a : b; }\nint main(void) { return max(1, 2) == 2 ? 0 : 1; }\n",
        )],
        check: "gcc -o $TMPDIR/max max.c && $TMPDIR/max",
        path: "max.c",
        search: "a < b ? a : b",
        replace: "a < b ? b : a",
    },
    Repair {
        needs: "sh",
        files: &[
            ("greet.sh", "echo \"hello $1\"\n"),
            ("check.sh", "test \"$(sh greet.sh)\" = 'hello world'\n"),
        ],
        check: "sh check.sh",
        path: "greet.sh",
        search: "$1",
        replace: "${1:-world}",
    },
    Repair {
        needs: "awk",
        files: &[
            ("total.awk", "{ total += $1 } END { print total }\n"),
            ("rows.txt", "a 1\nb 2\n"),
        ],
        check: "test \"$(awk -f total.awk rows.txt)\" = 3",
        path: "total.awk",
        search: "$1",
        replace: "$2",
    },
];

#[test]
fn small_repairs_are_made_from_the_failing_check_to_the_commit() {
    for repair in REPAIRS {
        let found = std::process::Command::new("sh")
            .args(["-c", &format!("command -v {}", repair.needs)])
            .output()
            .is_ok_and(|output| output.status.success());
        if !found {
            eprintln!("not tried: {} is not here", repair.needs);
            continue;
        }
        let plan = plan(repair.check);
        let mut files = repair.files.to_vec();
        files.push(("plan.yaml", &plan));
        let mut project = Project::new(&files);
        // Some checks name the file that is repaired, which is then a judge.
        project.env("SPRAG_TEST_CHANGES", "warn");
        let edit = |search: &str| {
            let arguments =
                json!({"path": repair.path, "search": search, "replace": repair.replace});
            vec![("edit_file", arguments)]
        };
        let check = || ("run_command", json!({"command": repair.check}));
        let missed = format!("{} // not there", repair.search);
        let (run, requests) = played(
            &mut project,
            vec![
                calls("I reproduce it.", vec![check(), ("list_files", json!({}))]),
                calls("", vec![("read_file", json!({"path": repair.path}))]),
                calls("", edit(&missed)),
                calls("", edit(repair.search)),
                calls("", vec![check()]),
                calls("", vec![("finish", json!({"summary": "Repair it"}))]),
            ],
        );
        let run = run.expect(0);
        assert!(requests[1].mentions(repair.path), "{}", repair.needs);
        assert!(requests[3].mentions("is not in"), "{}", repair.needs);
        assert!(requests[5].mentions("(code 0)"), "{}", repair.needs);
        assert!(project.read(repair.path).contains(repair.replace));
        assert_eq!(
            (project.commits(), project.status().as_str()),
            (2, ""),
            "{}",
            repair.needs
        );
        assert_eq!(session(&run)["completion_kind"], "complete_verified");
    }
}
