//! What the built-in agent shows its model of large things and of long work: never more than the
//! window holds, never without task and plan, and in little memory.

use crate::builtin::{broken, calls, finish, played, run, session, write_fixed};
use crate::support::model_api::{ModelApi, Recorded, Step};
use crate::support::proc::run_with_peak_memory;
use crate::support::project::{Project, plan};
use crate::support::tasks::builtin;
use serde_json::{Value, json};
use sprag_agent::tokens::estimate;
use std::fs;

/// The most memory that Sprag may ever take, in KiB.
const MAX_MEMORY_KIB: u64 = 100 << 10;

/// Tokens of everything that a request tells the model, tools included.
fn tokens(request: &Recorded) -> usize {
    fn told(value: &Value) -> usize {
        match value {
            Value::String(text) => estimate(text),
            Value::Array(values) => values.iter().map(told).sum(),
            Value::Object(fields) => fields.values().map(told).sum(),
            _ => 0,
        }
    }
    let tools = estimate(&request.body["tools"].to_string());
    told(&request.body["messages"]) + tools
}

fn messages(request: &Recorded) -> &[Value] {
    request.body["messages"].as_array().unwrap()
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({"path": path}))
}

fn write(path: &str) -> (&'static str, Value) {
    (
        "write_file",
        json!({"path": path, "content": format!("this is {path}\n")}),
    )
}

fn command(command: &str) -> (&'static str, Value) {
    ("run_command", json!({"command": command}))
}

fn lines(count: usize, of: &str) -> String {
    let lines = (0..count).map(|n| format!("line number {n} of {of}\n"));
    lines.collect()
}

#[test]
fn large_files_and_floods_take_neither_the_window_nor_the_memory() {
    let bundle = "function f(a){return a+1};".repeat(200_000);
    let mut project = Project::new(&[
        ("a.txt", "broken\n"),
        (".gitignore", "huge.log\n"),
        ("bundle.min.js", &bundle),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    let huge = fs::File::create(project.repo().join("huge.log")).unwrap();
    huge.set_len(500 << 20).unwrap();
    let api = ModelApi::start([
        calls("", vec![read("huge.log"), read("bundle.min.js")]),
        calls(
            "",
            vec![
                ("search", json!({"pattern": "return b"})),
                command("yes | head -c 100000000; echo the end"),
            ],
        ),
        calls(
            "",
            vec![command("cat bundle.min.js"), command("cat huge.log")],
        ),
        write_fixed(),
        finish(),
    ])
    .unwrap();
    let args = ["--agent-arg=--context-window=9000"];
    let args = builtin(&mut project, &api.url(), "openai/m", &args);
    let (run, peak) = run_with_peak_memory(&project, &args);
    run.expect(0);
    assert!(peak < MAX_MEMORY_KIB, "{peak} KiB");
    let requests = api.model_requests();
    assert_eq!(requests.len(), 5);
    for request in &requests {
        assert!(tokens(request) <= 6_750, "{}", tokens(request));
    }
    assert!(requests[1].mentions("huge.log has 524288000 bytes, too many to be read"));
    assert!(requests[1].mentions("[cut: the line has 5200000 bytes]"));
    assert!(requests[2].mentions("(not searched, for their size: 1 files;"));
    assert!(requests[2].mentions("y\ny\n") && requests[2].mentions("the end\n(code 0)"));
}

#[test]
fn long_work_stays_in_the_window_with_its_task_its_plan_and_a_beginning_that_lasts() {
    const FILES: usize = 40;
    const WINDOW: usize = 16_000;
    let texts: Vec<(String, String)> = (0..FILES)
        .map(|n| (format!("in-{n}.txt"), lines(60, &format!("file {n}"))))
        .collect();
    let check = plan("test -f out-39.txt");
    let mut files: Vec<(&str, &str)> = texts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    files.push(("plan.yaml", &check));
    let mut project = Project::new(&files);
    let items: Vec<Value> = (0..FILES)
        .map(|n| json!({"text": format!("out-{n}.txt: write it"), "state": "pending"}))
        .collect();
    let mut script = vec![calls("", vec![("update_plan", json!({"items": items}))])];
    script.extend((0..FILES).map(|n| {
        calls(
            "",
            vec![read(&format!("in-{n}.txt")), write(&format!("out-{n}.txt"))],
        )
    }));
    script.push(finish());
    let api = ModelApi::start(script).unwrap();
    let window = format!("--agent-arg=--context-window={WINDOW}");
    let run = run(&mut project, &api, "openai/m", &[&window]).expect(0);
    assert_eq!(session(&run)["plan_finished"], FILES);
    let requests = api.model_requests();
    assert_eq!(requests.len(), FILES + 2);
    let mut whole = 0;
    for (n, request) in requests.iter().enumerate() {
        assert!(
            tokens(request) <= WINDOW * 3 / 4,
            "{n}: {}",
            tokens(request)
        );
        assert!(request.mentions("a.txt must say fixed"), "the task, {n}");
        assert!(
            n == 0 || request.mentions("out-39.txt: write it"),
            "the plan, {n}"
        );
        let left_out = left_out(request);
        let kept = left_out
            .iter()
            .position(|left_out| !left_out)
            .unwrap_or(left_out.len());
        assert!(
            !left_out[kept..].contains(&true),
            "the oldest first: {left_out:?}"
        );
        whole += left_out.len() - kept;
    }
    assert!(whole > FILES * 4, "most of the window is used: {whole}");
    let elisions = requests
        .windows(2)
        .filter(|pair| {
            let (before, after) = (messages(&pair[0]), messages(&pair[1]));
            let same = after[..before.len()] == *before;
            let fewer = |request| left_out(request).iter().filter(|it| **it).count();
            assert!(
                same || fewer(&pair[1]) > fewer(&pair[0]),
                "only an elision changes it"
            );
            !same
        })
        .count();
    assert!((2..=16).contains(&elisions), "{elisions}");
}

/// Of each output of `read_file`, whether it was left out.
fn left_out(request: &Recorded) -> Vec<bool> {
    let results = messages(request).iter().filter(|it| it["role"] == "tool");
    let outputs = results.map(|it| it["content"].as_str().unwrap());
    outputs
        .filter(|output| output.contains("line number") || output.contains("left out"))
        .map(|output| output.contains("bytes of output left out to save space"))
        .collect()
}

#[test]
fn an_output_that_is_too_long_for_a_small_window_is_shown_in_part() {
    let mut project = broken();
    project.write("long.txt", &lines(3_000, "long.txt"));
    project.commit_all("a long file");
    let api = ModelApi::start([
        calls("", vec![read("long.txt"), read("a.txt")]),
        write_fixed(),
        finish(),
    ])
    .unwrap();
    let args = ["--agent-arg=--context-window=6000"];
    run(&mut project, &api, "anthropic/m", &args).expect(0);
    let requests = api.model_requests();
    assert_eq!(requests[0].body["max_tokens"], 1_500);
    let next = &requests[1];
    assert!(next.mentions("     1\tline number 0 of long.txt\n"));
    assert!(next.mentions("bytes left out here to save space; ask for less at a time]"));
    assert!(
        next.mentions("lines; go on with start="),
        "the end is there too"
    );
    assert!(next.mentions("     1\tbroken"));
    assert!(tokens(next) <= 4_500, "{}", tokens(next));
}

fn too_long() -> Step {
    Step::Refused(400, "This model's maximum context length is 8192 tokens")
}

/// A session that reads four files at once and is then refused so often.
fn refused(times: usize) -> (Project, Vec<Step>) {
    let text = lines(600, "a file");
    let project = Project::new(&[
        ("a.txt", "broken\n"),
        ("b.txt", &text),
        ("c.txt", &text),
        ("d.txt", &text),
        ("e.txt", &text),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    let reads = ["b.txt", "c.txt", "d.txt", "e.txt"].map(read);
    let mut script = vec![calls("", reads.to_vec())];
    script.extend(std::iter::repeat_n(too_long(), times));
    script.extend([write_fixed(), finish()]);
    (project, script)
}

#[test]
fn a_request_that_is_too_long_is_made_smaller_three_times_far_below_the_window() {
    let (mut project, script) = refused(3);
    let (run, requests) = played(&mut project, script);
    run.expect(0);
    assert_eq!(requests.len(), 6);
    let sizes: Vec<usize> = requests.iter().map(tokens).collect();
    for pair in sizes[1..5].windows(2) {
        assert!(pair[1] * 4 <= pair[0] * 3 + 200, "{sizes:?}");
    }
    let bounds = sizes[5..].iter().all(|size| *size < sizes[4] + 400);
    assert!(bounds, "what was learned stays: {sizes:?}");
    assert_eq!(project.read("a.txt"), "fixed\n");
}

#[test]
fn a_request_that_stays_too_long_ends_the_session() {
    let (mut project, script) = refused(4);
    let (run, requests) = played(&mut project, script);
    let run = run.expect(0);
    let turns = run.task(0)["turns"].as_array().unwrap();
    assert_eq!(turns[0]["builtin"]["exit"], "model_error");
    assert_eq!(turns[0]["assessment"], "agent_crashed");
    // The turn is made again, in a session of its own.
    assert_eq!((turns.len(), requests.len()), (2, 7));
    assert_eq!(turns[1]["purpose"], "retry");
    assert_eq!(project.read("a.txt"), "fixed\n");
}
