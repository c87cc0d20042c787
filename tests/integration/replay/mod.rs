//! Sessions of the built-in agent that are recorded, decided again, and played in a model's place.

mod demo;

use crate::support::model_api::{ModelApi, Step};
use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{MODEL_KEY, builtin};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

fn calls(text: &str, calls: Vec<(&'static str, Value)>) -> Step {
    Step::Calls(text.into(), calls)
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

fn missed(path: &str) -> (&'static str, Value) {
    let arguments = json!({"path": path, "search": "never there", "replace": "x"});
    ("edit_file", arguments)
}

fn finish(summary: &str) -> (&'static str, Value) {
    ("finish", json!({"summary": summary}))
}

/// A project whose check wants `fixed` in `a.txt`.
fn broken() -> Project {
    Project::new(&[
        ("a.txt", "broken\n"),
        ("b.txt", "old\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ])
}

fn run_with(project: &mut Project, api: &ModelApi, model: &str, args: &[&str]) -> Run {
    let args = builtin(project, &api.url(), model, args);
    project.sprag(&args)
}

/// Runs this script with `--record` and returns the recording.
fn recorded(project: &mut Project, script: Vec<Step>, code: i32) -> (Run, PathBuf) {
    let api = ModelApi::start(script).unwrap();
    let file = project.outside("recording.jsonl");
    let record = ["--record", file.to_str().unwrap()];
    let run = run_with(project, &api, "openai/m", &record).expect(code);
    assert_eq!(api.steps_left(), 0);
    (run, file)
}

fn replay(project: &Project, file: &Path) -> Run {
    project.sprag(&["replay", file.to_str().unwrap()])
}

fn replay_json(project: &Project, file: &Path) -> Value {
    let run = project.sprag(&["replay", file.to_str().unwrap(), "--format", "json"]);
    serde_json::from_str(&run.stdout).unwrap()
}

fn simple() -> Vec<Step> {
    vec![
        calls(
            "I look around.",
            vec![("read_file", json!({"path": "a.txt"}))],
        ),
        calls("", vec![write("a.txt", "fixed\n"), finish("Fix a.txt")]),
    ]
}

const PLAN: &str = "```SPRAG_PLAN\n- [ ] a.txt: mend it\n- [ ] b.txt: renew it\n```\n";

/// Turn 1 stalls until the repair message and leaves the check failing; turn 2 cannot edit b.txt
/// until a session on that file alone does.
fn eventful() -> Vec<Step> {
    let look = |n: u32| {
        calls(
            "",
            vec![("read_file", json!({"path": "a.txt", "start": n}))],
        )
    };
    let mut script = vec![calls(PLAN, vec![("read_file", json!({"path": "a.txt"}))])];
    script.extend((1..8).map(look));
    script.push(calls(
        "```SPRAG_PLAN_UPDATE\n- [x] a.txt: mend it\n```\n",
        vec![write("b.txt", "new\n"), finish("All is done")],
    ));
    script.extend([
        Step::RateLimit(0),
        calls("One.", vec![missed("b.txt")]),
        calls("A second way to say it.", vec![missed("b.txt")]),
        calls("Now quite differently worded.", vec![missed("b.txt")]),
        calls(
            "On this file alone.",
            vec![write("b.txt", "newer\n"), finish("b.txt is new")],
        ),
        calls("", vec![write("a.txt", "fixed\n")]),
        calls("", vec![finish("Mend a.txt and renew b.txt")]),
    ]);
    script
}

#[test]
fn a_run_with_everything_in_it_is_decided_the_same() {
    let mut project = broken();
    let (run, file) = recorded(&mut project, eventful(), 0);
    assert_eq!(run.task(0)["turns"].as_array().unwrap().len(), 2);
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let told = replay(&project, &file).expect(0).stdout;
    for shown in [
        "Session 1 of 2: task fix, attempt 1, turn 1 (implement); m by openai; Sprag",
        "told: forced mode, an edit is demanded, next: a.txt: mend it",
        "told: repair message, one more response is taken; 2 items open",
        "Session 2 of 2: task fix, attempt 2, turn 2 (retry)",
        "the model's API failed: ",
        "not ok  edit_file b.txt: ",
        "a session on b.txt alone, which changed it",
        "said: On this file alone.",
        "in 2 sessions, all as they were recorded",
    ] {
        assert!(told.contains(shown), "{shown}: {told}");
    }
    for never in ["DIFFERS", "read differently", "is another one", MODEL_KEY] {
        assert!(!told.contains(never), "{never}: {told}");
    }

    let json = replay_json(&project, &file);
    assert_eq!((&json["v"], &json["same"]), (&json!(1), &json!(true)));
    let turns = run.task(0)["turns"].as_array().unwrap();
    for (session, turn) in json["sessions"].as_array().unwrap().iter().zip(turns) {
        let (told, kept) = (&session["telemetry"], &turn["builtin"]);
        for field in [
            "exit",
            "tool_calls",
            "plan_finished",
            "fix_slice_count",
            "tokens",
        ] {
            assert_eq!(told[field], kept[field], "{field}");
        }
    }

    // The transcripts of the turns are the same sessions.
    let run_dir = run.dir.unwrap();
    let of_run = replay_json(&project, &run_dir);
    assert_eq!(of_run["decisions"], json["decisions"]);
    let one = run_dir.join("turns/02-builtin.jsonl");
    assert_eq!(replay_json(&project, &one)["sessions"][0]["turn"], 2);
    replay(&project, &run_dir.join("turns")).expect(2);
}

#[test]
fn a_recording_that_was_altered_names_the_step() {
    let mut project = broken();
    let (_, file) = recorded(&mut project, eventful(), 0);
    let text = fs::read_to_string(&file).unwrap();
    let altered = text.replacen(
        r#""note":"forced","next":"a.txt: mend it""#,
        r#""note":"forced","next":null"#,
        1,
    );
    assert_ne!(altered, text);
    let file = project.outside("altered.jsonl");
    fs::write(&file, altered).unwrap();
    let run = replay(&project, &file).expect(1);
    let end = run
        .stdout
        .split("differ from what was recorded:\n")
        .nth(1)
        .unwrap();
    let lines: Vec<&str> = end.lines().collect();
    assert!(
        lines[0].starts_with("  session 1, step ") && lines[0].contains("(line "),
        "{end}"
    );
    assert_eq!(
        lines[1],
        "    then: ask the model; forced mode, an edit is demanded"
    );
    assert!(
        lines[2].ends_with("demanded, next: a.txt: mend it"),
        "{end}"
    );
    assert!(
        run.stdout.contains("DIFFERS, then: ask the model"),
        "{}",
        run.stdout
    );
    let json = replay_json(&project, &file);
    assert_eq!(
        (&json["same"], json["differences"].as_array().unwrap().len()),
        (&json!(false), 1)
    );
}

#[test]
fn what_is_no_recording_is_refused_with_what_to_do() {
    let mut project = broken();
    let (_, file) = recorded(&mut project, simple(), 0);
    let good = fs::read_to_string(&file).unwrap();
    let project = broken();
    let newer = good.replacen("\"v\":1", "\"v\":7", 1);
    let swapped: Vec<&str> = good.lines().collect();
    let swapped = [swapped[0], swapped[2], swapped[1]].join("\n") + "\n";
    for (text, why) in [
        (
            "",
            "line 1: nothing was recorded; expected the header of a session",
        ),
        ("what is this\n", "line 1: this is not a line of JSON"),
        (
            "[{\"role\":\"system\",\"text\":\"\"}]\n",
            "line 1: a list, as transcripts of versions before",
        ),
        (
            &newer,
            "line 1: version 7 of the format; expected version 1",
        ),
        (
            &swapped,
            "line 2: the observation `model_responded`; expected the next step",
        ),
    ] {
        let file = project.outside("wrong.jsonl");
        fs::write(&file, text).unwrap();
        let shown = file.display().to_string();
        let replayed = replay(&project, &file).expect(2).stderr;
        let argument = format!("--agent-arg=--replay={shown}");
        let begin = ["run", "--plan", "plan.yaml", "--agent", "builtin"];
        let played = project
            .sprag(&[&begin[..], &[&argument]].concat())
            .expect(2)
            .stderr;
        for told in [replayed, played] {
            assert!(told.contains(why) && told.contains(&shown), "{told}");
            assert!(told.contains("sprag run --record"), "{told}");
        }
    }
    let missing = replay(&project, &project.outside("none.jsonl"))
        .expect(2)
        .stderr;
    assert!(missing.contains("there is no recording"), "{missing}");
    let directory = replay(&project, &project.beside("home")).expect(2).stderr;
    assert!(
        directory.contains("has no transcript of the built-in agent"),
        "{directory}"
    );
}

#[test]
fn a_recording_that_was_cut_off_is_told_up_to_there() {
    let mut project = broken();
    let (_, file) = recorded(&mut project, simple(), 0);
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, &text[..text.len() - 20]).unwrap();
    let told = replay(&project, &file).expect(0).stdout;
    let last = text.lines().count();
    assert!(
        told.contains(&format!("line {last} was cut off in its middle")),
        "{told}"
    );
    assert!(told.contains("all as they were recorded"), "{told}");
}

#[test]
fn nothing_is_recorded_where_that_cannot_be() {
    let mut project = broken();
    let api = ModelApi::start([]).unwrap();
    let there = project.outside("there.jsonl");
    fs::write(&there, "precious").unwrap();
    let inside = project.repo().join("r.jsonl");
    let nowhere = project.outside("no/such/r.jsonl");
    for (file, why) in [
        (&there, "already exists"),
        (&inside, "lies inside the repository"),
        (&nowhere, "cannot be made"),
    ] {
        let record = ["--record", file.to_str().unwrap()];
        let run = run_with(&mut project, &api, "openai/m", &record).expect(2);
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert_eq!(run.dir, None);
    }
    assert_eq!(fs::read_to_string(&there).unwrap(), "precious");
    assert_eq!(project.status(), "");

    let file = project.outside("new.jsonl");
    let record = ["--record", file.to_str().unwrap()];
    let run = project.run("true", &record).expect(2);
    let why = "--record keeps the sessions of the built-in agent only, and task fix has the agent command";
    assert!(run.stderr.contains(why), "{}", run.stderr);
    assert!(
        run.stderr.contains("turns/ of the run directory"),
        "{}",
        run.stderr
    );
    assert!(!file.exists());

    // A run that cannot begin leaves no empty recording behind.
    project.write("dirt.txt", "x");
    run_with(&mut project, &api, "openai/m", &record).expect(2);
    assert!(!file.exists());
    assert_eq!(api.requests().len(), 0);
}

#[test]
fn a_recording_holds_no_secret_of_the_environment() {
    let mut project = broken();
    let secret = "s3cr3t/with \"quotes\"";
    project.env("DEPLOY_TOKEN", secret);
    project.write("a.txt", &format!("broken\n{secret}\n"));
    project.commit_all("a secret in a file");
    let script = vec![
        calls("I read it.", vec![("read_file", json!({"path": "a.txt"}))]),
        calls(
            &format!("It says {secret}."),
            vec![write("a.txt", "fixed\n")],
        ),
        calls("", vec![finish("Fix a.txt")]),
    ];
    let (_, file) = recorded(&mut project, script, 0);
    let text = fs::read_to_string(&file).unwrap();
    let escaped = serde_json::to_string(secret).unwrap();
    for form in [secret, escaped.trim_matches('"'), MODEL_KEY] {
        assert!(!text.contains(form), "{form}: {text}");
    }
    assert!(text.contains("It says ***."), "{text}");
    // The digest of a text that is not there any more would only mislead.
    let json = replay_json(&project, &file);
    assert_eq!(json["same"], true);
    assert_eq!(json["sessions"][0]["requests"], 1);
    assert_eq!(json["sessions"][0]["requests_changed"], json!([]));
}

/// `sprag run` with a recording in the model's place, without key and address.
fn played(project: &Project, file: &Path, args: &[&str]) -> Run {
    let replay = format!("--agent-arg=--replay={}", file.display());
    let begin = ["run", "--plan", "plan.yaml", "--agent", "builtin", &replay];
    project.sprag(&[&begin[..], args].concat())
}

/// The files of the last commit; the plan's has a time in it.
fn tree(project: &Project) -> String {
    let files = project.git(&["ls-tree", "-r", "HEAD"]);
    let files = files.lines().filter(|line| !line.ends_with("plan.yaml"));
    files.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_recording_in_the_models_place_makes_the_same_tree() {
    let mut project = broken();
    let (first, file) = recorded(&mut project, eventful(), 0);
    let other = broken();
    let copy = other.outside("again.jsonl");
    let again = played(&other, &file, &["--record", copy.to_str().unwrap()]).expect(0);
    assert_eq!(tree(&other), tree(&project));
    assert_eq!(again.task(0)["reason"], first.task(0)["reason"]);
    let telemetry = |run: &Run| {
        let turns = run.task(0)["turns"].as_array().unwrap().iter();
        turns
            .map(|turn| turn["builtin"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(telemetry(&again), telemetry(&first));
    let json = replay_json(&other, &copy);
    assert_eq!(
        (&json["same"], &json["sessions"][1]["provider"]),
        (&json!(true), &json!("recording"))
    );
}

#[test]
fn a_recording_that_is_over_ends_the_run() {
    let mut project = broken();
    let (_, file) = recorded(&mut project, simple(), 0);
    let shown = file.display().to_string();
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let short = project.outside("short.jsonl");
    // Header, request, response, calls, results: the second response is missing.
    fs::write(&short, lines[..5].join("\n") + "\n").unwrap();
    let run = played(&broken(), &short, &[]).expect(4);
    assert_eq!(run.task(0)["reason"], "agent_unavailable");
    let why = format!(
        "the recording {} has no further response: its session 1 has 1 response, and one more",
        short.display()
    );
    assert!(run.stdout.contains(&why), "{}", run.stdout);

    let other = Project::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q never-there a.txt")),
    ]);
    let run = played(&other, &file, &[]).expect(4);
    let why = format!(
        "the recording {shown} has no further session: it has 1 session, and turn 2 of the run started"
    );
    assert!(run.stdout.contains(&why), "{}", run.stdout);
}

#[test]
fn a_recording_is_named_where_a_provider_would_be() {
    let mut project = broken();
    let (_, file) = recorded(&mut project, simple(), 0);
    let project = broken();
    let what = format!(
        "the responses in {}: 1 session, 2 responses",
        file.display()
    );
    let dry = played(&project, &file, &["--dry-run"]).expect(0).stdout;
    assert!(dry.contains(&format!("  agent: builtin ({what})")), "{dry}");
    let argument = format!("--agent-arg=--replay={}", file.display());
    let doctor = project.sprag(&["doctor", "--agent", "builtin", &argument]);
    let told = doctor.stdout;
    assert!(
        told.contains(&what) && told.contains("no model is used"),
        "{told}"
    );
}

#[test]
fn the_repository_cannot_choose_a_recording() {
    let mut project = broken();
    let (_, file) = recorded(&mut project, simple(), 0);
    let mut project = broken();
    let config = format!(
        "agent: builtin\nagent_args: ['--replay={}']\n",
        file.display()
    );
    project.write(".sprag/config.yaml", &config);
    project.commit_all("configure a recording");
    for command in [&["check"] as &[&str], &["run", "--plan", "plan.yaml"]] {
        let run = project.sprag(command).expect(2);
        let why = "--replay is set in the agent_args of a plan or a configuration file";
        assert!(run.stderr.contains(why), "{}", run.stderr);
        assert!(
            run.stderr.contains("--agent-arg=--replay=FILE"),
            "{}",
            run.stderr
        );
    }
    project.env("SPRAG_AGENT_ARGS", format!("--replay={}", file.display()));
    let told = project.sprag(&["check", "plan.yaml"]).expect(0).stdout;
    assert!(told.contains("the responses in "), "{told}");
}
