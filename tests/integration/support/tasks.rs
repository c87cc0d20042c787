//! Projects with work to do, and short ways to say what became of it.

use super::project::{Project, Run, plan};
use serde_json::Value;

/// The check of [`fixable`]: `a.txt` must say `fixed`.
pub const FIXED: &str = "grep -q fixed a.txt";

/// An agent's script that does the task of [`fixable`].
pub const FIX: &str = "echo fixed > a.txt; echo Done.";

/// Tells from a command agent that it used up 90 tokens in and 30 out.
pub const USAGE: &str = r#"printf '{"event":"agent.usage","tokens_in":90,"tokens_out":30}\n'"#;

/// A project whose one task is to make `a.txt` say `fixed`; the check counts its calls.
pub fn fixable() -> Project {
    fixable_by(FIXED)
}

/// As [`fixable`], with this check.
pub fn fixable_by(check: &str) -> Project {
    fixable_with(&[], check)
}

/// As [`fixable_by`], with further files.
pub fn fixable_with(files: &[(&str, &str)], check: &str) -> Project {
    let project = Project::new(&[&[("a.txt", "broken\n")], files].concat());
    let check = project.check(check);
    project.write("plan.yaml", &plan(&check));
    project.commit_all("plan");
    project
}

/// A project with a task for each name, done when a file of that name is there. The check accepts
/// every tree without a file `bad`.
pub fn several(names: &[&str]) -> Project {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let check = project.check("test ! -e bad");
    project.write("plan.yaml", &plan_of(names, &check));
    project.commit_all("plan");
    project
}

/// A plan with a task for each name.
pub fn plan_of(names: &[&str], check: &str) -> String {
    let check = serde_json::to_string(check).unwrap();
    let mut text = format!(
        "title: Example\nverify:\n  - {{ name: test, run: {check}, kind: test }}\ntasks:\n"
    );
    for name in names {
        text += &format!("  - id: {name}\n    title: Make {name}\n");
    }
    text
}

/// Runs the plan with this script as the agent.
pub fn run(project: &Project, agent: &str, args: &[&str]) -> Run {
    project.by(agent, args)
}

impl Project {
    /// Runs the plan with this script as the agent.
    pub fn by(&self, script: &str, args: &[&str]) -> Run {
        self.run(&self.agent(script), args)
    }
}

/// The assessments of a task's turns.
pub fn assessments(task: &Value) -> Vec<&str> {
    let turns = task["turns"].as_array().unwrap().iter();
    turns
        .map(|turn| turn["assessment"].as_str().unwrap())
        .collect()
}

/// `(status, reason)` of a task or a run.
pub fn end(value: &Value) -> (&str, &str) {
    (
        value["status"].as_str().unwrap(),
        value["reason"].as_str().unwrap_or("-"),
    )
}

/// `(status, reason)` of every task.
pub fn ends(run: &Run) -> Vec<(&str, &str)> {
    let tasks = run.summary["tasks"].as_array().unwrap();
    tasks.iter().map(end).collect()
}

/// The events of this name.
pub fn events<'r>(run: &'r Run, name: &str) -> Vec<&'r Value> {
    let of_name = |event: &&Value| event["event"] == name;
    run.events.iter().filter(of_name).collect()
}

/// All warnings that are no notes.
pub fn warnings(run: &Run) -> Vec<&str> {
    let warnings = run.summary["warnings"].as_array().unwrap();
    warnings.iter().map(|text| text.as_str().unwrap()).collect()
}

/// Whether a line of the log contains this text.
pub fn logged(run: &Run, text: &str) -> bool {
    run.stdout.lines().any(|line| line.contains(text))
}

/// A file of the run directory.
pub fn kept(run: &Run, name: &str) -> String {
    std::fs::read_to_string(run.dir.as_ref().unwrap().join(name)).unwrap()
}

/// The files of a commit, sorted.
pub fn files_of(project: &Project, commit: &str) -> Vec<String> {
    let listed = project.git(&["show", "--name-only", "--format=", commit]);
    listed.lines().map(str::to_owned).collect()
}

/// Subjects of all commits, newest first.
pub fn subjects(project: &Project) -> Vec<String> {
    let listed = project.git(&["log", "--format=%s"]);
    listed.lines().map(str::to_owned).collect()
}

/// The statuses that a plan file's text gives its tasks; `-` where it gives none.
pub fn statuses(plan: &str) -> Vec<String> {
    let mut statuses = Vec::new();
    for line in plan.lines() {
        if line.trim_start().starts_with("- id:") {
            statuses.push("-".to_owned());
        }
        if let (Some(status), Some(last)) =
            (line.trim().strip_prefix("status: "), statuses.last_mut())
        {
            *last = status.to_owned();
        }
    }
    statuses
}

/// Fails unless HEAD is still this commit and the plan in the work tree gives no status.
pub fn assert_nothing_recorded(project: &Project, head: &str) {
    assert_eq!(project.head(), head);
    assert!(!project.read("plan.yaml").contains("status:"));
}

/// The key that [`builtin`] sets.
pub const MODEL_KEY: &str = "not-a-real-key";

/// Points the built-in agent at a model server and names the arguments of a run of `plan.yaml`.
pub fn builtin<'a>(
    project: &mut Project,
    server: &str,
    model: &'a str,
    args: &[&'a str],
) -> Vec<&'a str> {
    let version = match model.split('/').next() {
        Some("gemini") => "v1beta",
        _ => "v1",
    };
    project.env("SPRAG_BASE_URL", format!("{server}/{version}"));
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"] {
        project.env(name, MODEL_KEY);
    }
    let plan = ["run", "--plan", "plan.yaml"];
    let agent = ["--agent", "builtin", "--model", model];
    [&plan[..], &agent, args].concat()
}
