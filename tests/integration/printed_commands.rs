//! Each command that the end of a run prints works where it is printed, and takes nothing from anybody.

use crate::support::project::{Project, Run};
use std::path::Path;
use std::process::Command;

/// The command below the line that says what it is for.
fn command(run: &Run, what: &str) -> String {
    let mut lines = run.stdout.lines().map(str::trim);
    let found = lines.find(|line| line.starts_with(what));
    assert!(found.is_some(), "{what}\n{}", run.stdout);
    lines.next().unwrap().to_owned()
}

fn shell(project: &Project, command: &str) {
    shell_in(&project.repo(), command);
}

fn shell_in(directory: &Path, command: &str) {
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}");
}

const PLAN: &str =
    "verify: ['false']\nmax_retries: 0\nnudges: 0\ntasks:\n  - { id: one, title: Make it }\n";

#[test]
fn unfinished_work_is_discarded_and_applied_as_printed_and_a_new_plan_stays() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.write("plan.yaml", PLAN);
    let agent = project.agent("echo b > a.txt; echo new > new.txt; echo Done.");
    let run = project.run(&agent, &[]).expect(1);

    shell(&project, &command(&run, "discard the unfinished work here"));
    assert_eq!(project.status(), "?? plan.yaml");
    assert_eq!(project.read("plan.yaml").trim(), PLAN.trim());
    assert_eq!(project.read("a.txt"), "a\n");

    shell(&project, &command(&run, "apply the unfinished work"));
    assert_eq!(project.read("a.txt"), "b\n");
    assert_eq!(project.read("new.txt"), "new\n");

    let resume = command(&run, "continue from here");
    let args: Vec<&str> = resume.split(' ').skip(1).collect();
    let agent = project.agent("echo Done.");
    let again =
        project.sprag(&[&args[..], &["--agent-command", &agent, "--verify", "true"]].concat());
    assert_eq!(again.expect(0).summary["totals"]["done"], 1);
}

#[test]
fn commands_work_in_the_shell_that_started_the_run() {
    for (directory, options) in [("sub", &[][..]), ("..", &["-C", "repo"][..])] {
        let project = Project::new(&[("sub/a.txt", "a\n")]);
        project.write("plan.yaml", PLAN);
        project.commit_all("plan");
        let agent = project.agent("echo b > sub/a.txt; echo Done.");
        let plan = if directory == "sub" {
            "../plan.yaml"
        } else {
            "plan.yaml"
        };
        let args = ["run", "--plan", plan, "--agent-command", &agent];
        let shell = project.repo().join(directory);
        let mut command_line = project.command(&[options, &args].concat());
        let output = command_line.current_dir(&shell).output().unwrap();
        let run = project.finished(&output).expect(1);
        shell_in(&shell, &command(&run, "discard the unfinished work here"));
        assert_eq!(project.read("sub/a.txt"), "a\n");
        shell_in(&shell, &command(&run, "apply the unfinished work"));
        assert_eq!(project.read("sub/a.txt"), "b\n");
        let resume = command(&run, "continue from here");
        assert_eq!(resume.contains(" -C "), !options.is_empty(), "{resume}");
    }
}

#[test]
fn nothing_is_kept_of_an_agent_that_changed_nothing() {
    let project = Project::new(&[("a.txt", "a\n")]);
    project.write("plan.yaml", PLAN);
    let agent =
        project.agent("echo 'Shall I use tabs or spaces?'; echo 'Please tell me before I begin.'");
    let run = project.run(&agent, &[]).expect(1);
    for word in ["Kept:", "git apply", "discard"] {
        assert!(!run.stdout.contains(word), "{word}: {}", run.stdout);
    }
    assert_eq!(project.status(), "?? plan.yaml");
    // The question is there as a whole, and the next step is to answer it.
    let asked = "the agent asks:\n        Shall I use tabs or spaces?\n        Please tell me before I begin.\n";
    assert!(run.stdout.contains(asked), "{}", run.stdout);
    let next = "answer the agent's question in the task, then run it again";
    assert!(run.stdout.contains(next), "{}", run.stdout);
}

/// A plan that nobody has committed outlives a failed task beside which the run goes on.
#[test]
fn a_new_plan_outlives_the_tasks_that_fail() {
    let project = Project::new(&[("a.txt", "a\n")]);
    let plan = format!("{PLAN}  - {{ id: two, title: Make another }}\n");
    project.write("plan.yaml", &plan);
    let agent = project.agent("echo $N > new.txt; echo Done.");
    let run = project.run(&agent, &["--keep-going"]).expect(1);
    let apply = command(&run, "apply the unfinished work");
    assert!(project.read("plan.yaml").contains("title: Make another"));
    shell(&project, &apply);
    assert_eq!(project.read("new.txt"), "1\n");
}
