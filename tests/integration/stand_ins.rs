//! Agents that work in place of a task's own: after a failed verification, and where it is unavailable.

use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{end, ends, warnings};

/// A check that wants what only the second stand-in writes.
const CHECK: &str = "grep -q best a.txt";

/// An agent of this name that notes its calls and runs a script; its command.
fn agent(project: &Project, name: &str, script: &str) -> String {
    let path = project.outside(&format!("{name}.sh"));
    let out = project.outside("");
    let text = format!("echo {name} >> {}/order\n{script}\n", out.display());
    std::fs::write(&path, text).unwrap();
    format!("sh {}", path.display())
}

fn project(extra: &str, tasks: &str) -> Project {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let text = format!(
        "title: Example\n{extra}verify:\n  - {{ name: test, run: \"{CHECK}\", kind: test }}\ntasks:\n{tasks}"
    );
    project.write("plan.yaml", &text);
    project.commit_all("plan");
    project
}

const ONE: &str = "  - { id: one, title: Make it best }\n";

#[test]
fn after_failed_verifications_other_agents_take_over_in_order() {
    let project = project("", ONE);
    let own = agent(&project, "own", "echo good >> a.txt; echo Done.");
    let second = agent(&project, "second", "echo better >> a.txt; echo Done.");
    let third = agent(
        &project,
        "third",
        "grep -q again a.txt && echo best >> a.txt || echo again >> a.txt; echo Done.",
    );
    let list = format!("[{{agent_command: {second}}}, {{agent_command: {third}, model: large}}]");
    let run = project
        .run(&own, &["--escalate", &list, "--identical-failures", "9"])
        .expect(0);
    assert_eq!(project.notes("order"), ["own", "second", "third", "third"]);
    assert_eq!(end(&run.summary), ("success", "verified"));
    let told = warnings(&run).join("\n");
    for line in [
        "task one: verification has failed; `escalate` 1 of 2 takes over: command",
        "task one: verification has failed; `escalate` 2 of 2 takes over: command with the model large",
    ] {
        assert!(told.contains(line), "{told}");
        assert!(run.stdout.contains(line), "{}", run.stdout);
    }
}

#[test]
fn an_unavailable_agent_is_replaced_for_the_rest_of_the_run() {
    let tasks = "  - { id: one, title: Make it best }\n  - { id: two, title: More }\n";
    let project = project("", tasks);
    let own = agent(&project, "own", "exit 127");
    let other = agent(
        &project,
        "other",
        "echo best $SPRAG_TASK_ID >> a.txt; echo Done.",
    );
    let fallback = format!("{{agent_command: {other}}}");
    let run = project.run(&own, &["--fallback", &fallback]).expect(0);
    assert_eq!(project.notes("order"), ["own", "other", "other"]);
    assert_eq!(ends(&run), [("done", "verified"), ("done", "verified")]);
    let told = warnings(&run).join("\n");
    has(&told, "task one: the agent command is unavailable");
    assert!(told.contains("`fallback` takes over: command"), "{told}");
    assert_eq!(
        run.summary["totals"]["attempts"], 2,
        "no attempt is spent on it"
    );
}

#[test]
fn without_a_fallback_or_with_one_that_is_unavailable_too_the_run_ends() {
    let project = project("", ONE);
    let own = agent(&project, "own", "exit 127");
    let other = agent(&project, "other", "exit 127");
    let run = project
        .run(
            &own,
            &["--fallback", &format!("{{agent_command: {other}}}")],
        )
        .expect(4);
    assert_eq!(end(&run.summary), ("environment", "agent_unavailable"));
    assert_eq!(project.notes("order"), ["own", "other"]);
    project.run(&own, &[]).expect(4);
}

#[test]
fn an_agent_that_is_not_installed_is_replaced_before_the_first_turn() {
    let mut project = project("agent: codex\n", ONE);
    project.env("PATH", "/usr/bin:/bin");
    let other = agent(&project, "other", "echo best >> a.txt; echo Done.");
    let text = format!(
        "{}fallback: {{agent: command, agent_command: {other}}}\n",
        project.read("plan.yaml")
    );
    project.write("plan.yaml", &text);
    project.commit_all("fallback");
    let run = project.sprag(&["run", "--plan", "plan.yaml"]).expect(0);
    let told = warnings(&run).join("\n");
    has(&told, "`fallback` works instead of codex: command");
    assert_eq!(project.notes("order"), ["other"]);
}

#[test]
fn the_fallback_works_when_the_waits_for_an_agent_have_run_out() {
    let mut project = project("", ONE);
    project.env("SPRAG_MODEL_WAIT_MS", "1");
    let own = agent(
        &project,
        "own",
        "echo 'Error: 429 Too Many Requests, retry after 0 seconds'; exit 1",
    );
    let other = agent(&project, "other", "echo best >> a.txt; echo Done.");
    let run = project
        .run(
            &own,
            &["--fallback", &format!("{{agent_command: {other}}}")],
        )
        .expect(0);
    let order = project.notes("order");
    assert_eq!(order.last().map(String::as_str), Some("other"));
    assert_eq!(
        order.iter().filter(|name| *name == "own").count(),
        6,
        "one turn and five waits"
    );
    assert_eq!(end(&run.summary), ("success", "verified"));
}
