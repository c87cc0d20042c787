//! Small real repairs, each from a failing test of a project of several files to the commit, with all of the tools.
//!
//! What the model does is data: every response is a list of calls. A language whose tools are not
//! here is left out, and said so.

mod faults;

use crate::builtin::{run, session};
use crate::support::model_api::{ModelApi, Step};
use crate::support::project::{Project, plan};
use serde_json::{Value, json};
use std::process::Command;

/// A call of the model.
#[derive(Debug, Clone, Copy)]
enum Call {
    Read(&'static str),
    Lines(&'static str, u64, u64),
    List(&'static str),
    Search(&'static str, Option<&'static str>),
    Edit(&'static str, &'static str, &'static str),
    Write(&'static str, &'static str),
    Delete(&'static str),
    Move(&'static str, &'static str),
    /// Runs the project's check.
    Check,
    /// Items with their states.
    Plan(&'static [(&'static str, &'static str)]),
    /// Ends the work with this as the subject of the commit.
    Finish(&'static str),
}

/// A project with a fault, and the work of the model on it.
struct Repair {
    language: &'static str,
    /// The programs that it needs.
    needs: &'static [&'static str],
    model: &'static str,
    files: &'static [(&'static str, &'static str)],
    check: &'static str,
    /// What the check says before the repair.
    fails_with: &'static str,
    responses: &'static [&'static [Call]],
    /// What the model is told in answer to which response, from 1.
    told: &'static [(usize, &'static str)],
    /// The commit: `git show --name-status`, and lines that it adds.
    changed: &'static [&'static str],
    adds: &'static [&'static str],
}

impl Call {
    fn wire(self, check: &str) -> (&'static str, Value) {
        match self {
            Self::Read(path) => ("read_file", json!({"path": path})),
            Self::Lines(path, start, end) => (
                "read_file",
                json!({"path": path, "start": start, "end": end}),
            ),
            Self::List(path) => ("list_files", json!({"path": path})),
            Self::Search(pattern, path) => ("search", json!({"pattern": pattern, "path": path})),
            Self::Edit(path, search, replace) => (
                "edit_file",
                json!({"path": path, "search": search, "replace": replace}),
            ),
            Self::Write(path, content) => ("write_file", json!({"path": path, "content": content})),
            Self::Delete(path) => ("delete_file", json!({"path": path})),
            Self::Move(from, to) => ("move_file", json!({"from": from, "to": to})),
            Self::Check => ("run_command", json!({"command": check})),
            Self::Plan(items) => {
                let items = items
                    .iter()
                    .map(|(text, state)| json!({"text": text, "state": state}));
                ("update_plan", json!({"items": items.collect::<Vec<_>>()}))
            }
            Self::Finish(subject) => {
                let summary = format!("It works now.\n\nSUGGESTED_COMMIT_MESSAGE: {subject}");
                ("finish", json!({"summary": summary}))
            }
        }
    }
}

fn is_here(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output();
    found.is_ok_and(|output| output.status.success())
}

impl Repair {
    fn can_run(&self) -> bool {
        self.needs.iter().all(|program| is_here(program))
    }

    fn subject(&self) -> &'static str {
        match self.responses.last().and_then(|calls| calls.last()) {
            Some(Call::Finish(subject)) => subject,
            other => panic!("no end: {other:?}"),
        }
    }

    fn project(&self) -> Project {
        let plan = plan(self.check);
        let mut files = self.files.to_vec();
        files.push(("plan.yaml", &plan));
        let mut project = Project::new(&files);
        // Some checks name the file that is repaired, which is then a judge.
        project.env("SPRAG_TEST_CHANGES", "warn");
        project
    }

    fn play(&self) {
        let what = format!("{}: {}", self.language, self.subject());
        if !self.can_run() {
            eprintln!("NOT TRIED, {:?} is not here: {what}", self.needs);
            return;
        }
        let mut project = self.project();
        let before = project.program("sh", &["-c", self.check]).output().unwrap();
        let said = [before.stdout, before.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        assert!(!before.status.success(), "{what} does not fail");
        assert!(said.contains(self.fails_with), "{what}: {said}");
        project.git(&["clean", "-fdxq"]);
        let script = self.responses.iter().map(|calls| {
            let calls = calls.iter().map(|call| call.wire(self.check));
            Step::Calls(String::new(), calls.collect())
        });
        let api = ModelApi::start(script).unwrap();
        let run = run(&mut project, &api, self.model, &[]).expect(0);
        let requests = api.model_requests();
        assert_eq!(requests.len(), self.responses.len(), "{what}");
        for (response, text) in self.told {
            let request = &requests[*response];
            assert!(
                request.mentions(text),
                "{what}, {response}: {text}\n{}",
                request.body
            );
        }
        self.assert_committed(&what, &project);
        let session = session(&run);
        assert_eq!(
            session["completion_kind"], "complete_verified",
            "{what} {session}"
        );
        let calls: usize = self.responses.iter().map(|calls| calls.len()).sum();
        assert_eq!(session["tool_calls"], calls, "{what}");
    }

    fn assert_committed(&self, what: &str, project: &Project) {
        assert_eq!(
            (project.commits(), project.status().as_str()),
            (2, ""),
            "{what}"
        );
        assert_eq!(project.git(&["log", "-1", "--format=%s"]), self.subject());
        let names = project.git(&["show", "--name-status", "--no-renames", "--format=", "HEAD"]);
        // The status of the task rides in the same commit.
        let names = names.lines().filter(|line| *line != "M\tplan.yaml");
        let names: Vec<String> = names.map(|line| line.replace('\t', " ")).collect();
        assert_eq!(names, self.changed, "{what}");
        let diff = project.git(&["show", "--format=", "HEAD"]);
        for line in self.adds {
            let added = diff.lines().any(|it| it.strip_prefix('+') == Some(line));
            assert!(added, "{what}: {line}\n{diff}");
        }
    }
}

fn play(language: &str) {
    let of_it = faults::REPAIRS.iter().filter(|it| it.language == language);
    let count = of_it.map(Repair::play).count();
    assert!(count > 0, "{language}");
}

#[test]
fn in_python() {
    play("python");
}

#[test]
fn in_javascript() {
    play("javascript");
}

#[test]
fn in_shell() {
    play("shell");
}
