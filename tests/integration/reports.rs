//! What a run leaves to read, and the commands that only look and print.

use crate::support::project::{Project, Run, files, plan};
use crate::support::tasks::fixable_by;
use serde_json::{Value, json};
use sprag::domain::output_schema::{OutputSchema, StructuredOutput};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

const CHECK: &str =
    "grep -qx fixed a.txt || { echo \"FAIL greeting: expected fixed, got $(cat a.txt)\"; exit 1; }";
const SECOND_TIME: &str = "echo '{\"event\":\"agent.message\",\"text\":\"working\"}'; test $N = 1 && echo apple > a.txt || echo fixed > a.txt; echo Done.";

fn project() -> Project {
    fixable_by(CHECK)
}

fn schema(project: &Project, name: &str) -> Value {
    let run = project.sprag(&["schema", name]).expect(0);
    serde_json::from_str(&run.stdout).unwrap()
}

fn judged(schema: &Value, instance: &Value) -> StructuredOutput {
    let schema = OutputSchema::parse(&schema.to_string()).unwrap();
    schema.judge(instance.clone())
}

fn assert_valid(schema: &Value, instance: &Value) {
    let judged = judged(schema, instance);
    assert!(judged.is_ok(), "{judged:#?}\n{instance:#}");
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

/// The whole end of a command that only prints.
fn prints(project: &Project, args: &[&str], stdin: &str) -> Run {
    let mut child = project
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    project
        .finished(&child.wait_with_output().unwrap())
        .expect(0)
}

#[test]
fn every_schema_is_a_schema() {
    let project = project();
    for name in ["plan", "config", "event", "summary"] {
        let schema = schema(&project, name);
        let read = OutputSchema::parse(&schema.to_string());
        assert!(read.is_ok(), "{name}: {read:?}");
        assert!(
            schema["$schema"].as_str().unwrap().starts_with("http"),
            "{name}"
        );
        assert!(schema["title"].is_string(), "{name}");
    }
}

#[test]
fn real_files_follow_their_schemas_and_wrong_ones_do_not() {
    let project = project();
    let run = project.run(&project.agent(SECOND_TIME), &[]).expect(0);
    let (event, summary, plan) = (
        schema(&project, "event"),
        schema(&project, "summary"),
        schema(&project, "plan"),
    );
    assert_valid(&summary, &run.summary);
    for line in &run.events {
        assert_valid(&event, line);
    }
    let done = yaml(&project.read("plan.yaml"));
    assert_eq!(done["tasks"][0]["status"], "done");
    assert_valid(&plan, &done);
    for (schema, mut wrong, key) in [
        (&summary, run.summary.clone(), "totals"),
        (&event, run.events[0].clone(), "seq"),
        (&plan, done, "tasks"),
    ] {
        wrong.as_object_mut().unwrap().remove(key);
        assert!(judged(schema, &wrong).is_err(), "{key} may be missing");
    }
    let wrong = judged(&schema(&project, "config"), &json!({"max_retries": 11}));
    assert!(wrong.is_err());
}

#[test]
fn events_to_standard_output_are_nothing_but_events() {
    let project = project();
    let run = project
        .run(&project.agent(SECOND_TIME), &["--events", "-"])
        .expect(0);
    let schema = schema(&project, "event");
    let events: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for event in &events {
        assert_valid(&schema, event);
    }
    assert_eq!(events, run.events);
    assert!(run.stderr.contains("retry 1 of 3"), "{}", run.stderr);
    let order: Vec<&str> = run
        .event_names()
        .into_iter()
        .filter(|name| *name != "agent.raw")
        .collect();
    assert_eq!(
        order,
        [
            "run.started",
            "task.started",
            "proof.started",
            "check.started",
            "check.ended",
            "proof.ended",
            "turn.started",
            "agent.message",
            "turn.ended",
            "turn.assessed",
            "check.started",
            "check.ended",
            "retry.scheduled",
            "turn.started",
            "agent.message",
            "turn.ended",
            "turn.assessed",
            "check.started",
            "check.ended",
            "commit.created",
            "task.ended",
            "run.ended",
        ]
    );
    let seq: Vec<u64> = events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seq, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.iter().all(|event| event["v"] == 1));
}

#[test]
fn events_come_as_they_happen() {
    let project = project();
    let go = project.outside("go");
    // The agent gives up when nobody has read of its turn.
    let agent = project.agent("n=0; until test -e \"$OUT/go\" || test $n = 4000; do n=$(( n + 1 )); sleep 0.05; done; test -e \"$OUT/go\" && echo fixed > a.txt; echo Done.");
    let mut child = project.start(&[
        "run",
        "--plan",
        "plan.yaml",
        "--agent-command",
        &agent,
        "--events",
        "-",
    ]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let turn = lines.find(|line| line.as_ref().unwrap().contains("\"turn.started\""));
    assert!(turn.is_some());
    fs::write(go, "").unwrap();
    assert!(lines.last().unwrap().unwrap().contains("\"run.ended\""));
    let run = project
        .finished(&child.wait_with_output().unwrap())
        .expect(0);
    assert_eq!(run.task(0)["reason"], "verified");
}

#[test]
fn events_to_a_file() {
    let project = project();
    let path = project.outside("events.jsonl");
    let run = project
        .run(
            &project.agent(SECOND_TIME),
            &["--events", path.to_str().unwrap()],
        )
        .expect(0);
    let recorded = fs::read_to_string(run.dir.as_ref().unwrap().join("events.jsonl")).unwrap();
    assert_eq!(fs::read_to_string(path).unwrap(), recorded);
    assert!(run.stdout.contains("retry 1 of 3"), "{}", run.stdout);
}

/// Whoever resumes the run need not name the file again.
#[test]
fn events_to_a_file_in_the_work_tree_are_not_part_of_the_work() {
    let project = project();
    fs::create_dir(project.repo().join("out")).unwrap();
    let name = "out/a [1]*? #.jsonl";
    let agent = project
        .agent("case $N in 1) echo 'FAILED: no key' ;; *) echo fixed >> a.txt; echo Done. ;; esac");
    let blocked = project.run(&agent, &["--events", name]).expect(3);
    assert_eq!(blocked.task(0)["reason"], "failed_report");
    let run = project.sprag(&["run", "--resume"]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(run.task(0)["changed_files"], serde_json::json!(["a.txt"]));
    assert!(project.repo().join(name).is_file());
    assert_eq!(project.git(&["ls-files", "out"]), "");
    // The file that an earlier run left does not keep the next one from beginning.
    let prompt = ["run", "--prompt", "Go on", "--agent-command", &agent];
    let next = [prompt.as_slice(), &["--verify", "true", "--events", name]].concat();
    project.sprag(&next).expect(0);
}

/// Holds `actual` to the shape of `sample`: every key is there, with a value of the same type.
/// An array's items are held to the sample's first one; `null` in the sample means "or null".
fn assert_shape(path: &str, sample: &Value, actual: &Value) {
    match (sample, actual) {
        (Value::Object(keys), Value::Object(_)) => {
            for (key, sample) in keys {
                let found = actual
                    .get(key)
                    .unwrap_or_else(|| panic!("{path}.{key} is missing"));
                assert_shape(&format!("{path}.{key}"), sample, found);
            }
        }
        (Value::Array(sample), Value::Array(items)) => {
            let first = sample.first().unwrap();
            assert!(!items.is_empty(), "{path} is empty and shows nothing");
            for (index, item) in items.iter().enumerate() {
                assert_shape(&format!("{path}[{index}]"), first, item);
            }
        }
        (Value::String(_), Value::String(_))
        | (Value::Bool(_), Value::Bool(_))
        | (Value::Null, _) => {}
        (Value::Number(_), Value::Number(number)) => assert!(number.is_u64(), "{path}: {number}"),
        _ => panic!("{path} is {actual}, not like {sample}"),
    }
}

#[test]
fn the_summary_has_every_field_of_the_contract() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let test = "echo 'test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'; echo 'FAIL greeting'; grep -qx fixed a.txt";
    project.write("plan.yaml", &plan(&project.check(test)));
    project.commit_all("plan");
    let agent = "git config user.email elsewhere@example.invalid; case $N in 1) echo 'Plan: I will edit a.txt.' ;; 2) echo apple > a.txt; echo Done. ;; *) printf 'FAILED: no way\\nRequirements: a\\nProblems: b\\nPossible solutions: c\\n' ;; esac";
    let run = project.run(&project.agent(agent), &[]).expect(3);
    let state = json!({"head": "", "tree": "", "dirty": true});
    let sample = json!({
        "v": 1, "run_id": "", "status": "", "reason": "", "exit_code": 1, "elapsed_ms": 0, "branch": "", "head": "", "base": "",
        "plan": {"title": "", "path": ""}, "changed_files": null, "commits": null, "warnings": [""],
        "usage": {"tokens_in": null, "tokens_out": null, "cost_usd": null},
        "totals": {"tasks": 1, "done": 0, "attempts": 1, "retries": 1, "nudges": 1, "turns": 1, "verifications": 1, "verifications_skipped": 1},
        "tasks": [{
            "id": "", "title": "", "status": "", "reason": "", "commit": null, "attempts": 1, "retries": 1, "nudges": 1,
            "turns": [{"turn": 1, "purpose": "", "assessment": "", "indicators": null, "before": state, "after": state, "exit": ""}],
            "history": [{"attempt": 1, "changes": [""], "outcome": "", "errors": [""]}],
            "checks": [{"name": "", "kind": "", "passed": false, "passed_count": 3, "failed_count": 1, "timed_out": false, "elapsed_ms": 0, "log": ""}],
            "failed_report": {"summary": "", "requirements": "", "problems": "", "solutions": ""},
            "changes_made": true, "message": "", "patch": "", "agent_commits": 0,
        }],
    });
    assert_shape("summary", &sample, &run.summary);
    assert_eq!(
        run.task(0)["failed_report"],
        json!({"summary": "no way", "requirements": "a", "problems": "b", "solutions": "c"})
    );
    assert_eq!(
        run.summary["totals"],
        json!({"tasks": 1, "done": 0, "attempts": 2, "retries": 1, "nudges": 1, "turns": 3, "verifications": 1, "verifications_skipped": 0})
    );
    for key in ["changed_files", "commits"] {
        assert!(run.summary[key].is_array());
    }
    let dir = run.dir.as_ref().unwrap();
    for name in [
        "verify/01-test.log",
        "patches/fix.patch",
        "prompts/01.md",
        "turns/03-command.jsonl",
        "history.jsonl",
    ] {
        assert!(dir.join(name).is_file(), "{name}");
    }
}

#[test]
fn a_finished_run_is_rendered_again() {
    let project = project();
    let run = project.run(&project.agent(SECOND_TIME), &[]).expect(0);
    let dir = run.dir.as_ref().unwrap();
    let path = dir.to_str().unwrap();
    let report = fs::read_to_string(dir.join("report.md")).unwrap();
    for args in [&["report", path][..], &["report", path, "--format", "md"]] {
        assert_eq!(project.sprag(args).expect(0).stdout, report);
    }
    let json = project
        .sprag(&["report", path, "--format", "json"])
        .expect(0)
        .stdout;
    assert_eq!(json, fs::read_to_string(dir.join("summary.json")).unwrap());
    let none = project.sprag(&["report", "nowhere"]).expect(2);
    assert!(
        none.stderr
            .ends_with("\n  sprag runs lists the runs with their ids\n"),
        "{}",
        none.stderr
    );
}

#[test]
fn init_writes_what_check_accepts_and_never_overwrites() {
    let project = Project::new(&[(
        "Cargo.toml",
        "[package]\nname = \"x\"\nversion = \"0.1.0\"\n",
    )]);
    let first = project.sprag(&["init"]).expect(0);
    for name in [".sprag/config.yaml", ".github/workflows/sprag.yml"] {
        assert!(
            first.stdout.contains(&format!("wrote {name}\n")),
            "{}",
            first.stdout
        );
    }
    let config = yaml(&project.read(".sprag/config.yaml"));
    assert_valid(&schema(&project, "config"), &config);
    let plans: Vec<String> = files(&project.repo())
        .into_keys()
        .filter(|path| path.contains("/.sprag/") && !path.ends_with("config.yaml"))
        .collect();
    assert_eq!(plans.len(), 1, "{plans:?}");
    assert_valid(
        &schema(&project, "plan"),
        &yaml(&fs::read_to_string(&plans[0]).unwrap()),
    );
    let check = project.sprag(&["check", &plans[0]]).expect(0);
    assert!(!check.stdout.contains("warning:"), "{}", check.stdout);

    project.write(".sprag/config.yaml", "max_retries: 1\n");
    let before = files(&project.repo());
    let second = project.sprag(&["init"]).expect(0);
    assert_eq!(files(&project.repo()), before);
    assert_eq!(
        second.stdout.matches(": it already exists").count(),
        3,
        "{}",
        second.stdout
    );
    assert!(!second.stdout.contains("wrote"), "{}", second.stdout);
}

#[test]
fn completions_name_the_commands() {
    let project = project();
    for (shell, mark) in [
        ("bash", "complete -F _sprag"),
        ("zsh", "#compdef sprag"),
        ("fish", "complete -c sprag"),
    ] {
        let text = project.sprag(&["completions", shell]).expect(0).stdout;
        for part in [mark, "assess", "max-retries"] {
            assert!(text.contains(part), "{shell}: no {part}");
        }
    }
    assert_eq!(project.sprag(&["completions", "no-shell"]).code, 2);
}

#[test]
fn assess_reads_a_message() {
    let project = project();
    let said = |text: &str| prints(&project, &["assess"], text).stdout;
    for (text, class) in [
        (
            "Plan:\n1. Read the router.\n2. I'll implement the endpoint.\n",
            "planning_only",
        ),
        ("Shall I go on with this?", "awaiting_input"),
        ("All done. The endpoint is implemented.", "claims_done"),
        ("FAILED: no access to the database", "failed_report"),
        (
            "ALREADY_SATISFIED: the endpoint is there",
            "already_satisfied",
        ),
        ("", "empty"),
    ] {
        assert!(said(text).contains(class), "{text:?}: {}", said(text));
    }
    let path = project.outside("message.txt");
    fs::write(&path, "Shall I go on with this?").unwrap();
    let of_file = project.sprag(&["assess", path.to_str().unwrap()]).expect(0);
    assert_eq!(of_file.stdout, said("Shall I go on with this?"));
}

#[test]
fn assess_reads_lines() {
    let project = project();
    let input = "{\"id\":\"a\",\"text\":\"All done. The endpoint is implemented.\"}\n\n{\"id\":7,\"text\":\"\"}\n";
    let run = prints(&project, &["assess", "--jsonl"], input);
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["id"], &lines[0]["assessment"]),
        (&json!("a"), &json!("claims_done"))
    );
    assert!(!lines[0]["indicators"].as_array().unwrap().is_empty());
    assert_eq!(
        lines[1],
        json!({"id": 7, "assessment": "empty", "indicators": []})
    );
    let wrong = project.outside("wrong.jsonl");
    fs::write(&wrong, "{\"id\":1,\"text\":\"x\"}\n{\"id\":2}\n").unwrap();
    let run = project
        .sprag(&["assess", "--jsonl", wrong.to_str().unwrap()])
        .expect(2);
    assert!(
        run.stderr
            .starts_with("error: line 2 is not {\"id\", \"text\"}: "),
        "{}",
        run.stderr
    );
}
