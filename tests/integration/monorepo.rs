//! A repository of several parts: which configuration counts, and where setup, agent and checks work.

use crate::support::has;
use crate::support::project::{Project, Run};

const CONFIG: &str =
    "setup: pwd > where.txt\nverify:\n  - { name: test, run: test -f made.txt, kind: test }\n";

/// Two parts, of which one has a configuration of its own.
fn parts() -> Project {
    Project::new(&[
        ("api/.sprag/config.yaml", CONFIG),
        ("api/a.txt", "a\n"),
        ("web/w.txt", "w\n"),
        (".sprag/config.yaml", "verify: ['test -f root.txt']\n"),
    ])
}

fn run_in(project: &Project, directory: &str, args: &[&str]) -> Run {
    let agent = project.agent("pwd > \"$OUT/place\"; echo x > made.txt; echo Done.");
    let args = [&["run", "--agent-command", &agent], args].concat();
    let mut command = project.command(&args);
    command.current_dir(project.repo().join(directory));
    project.finished(&command.output().unwrap())
}

fn place(project: &Project, of: &str) -> String {
    let whole = project.notes(of).concat();
    let root = project.repo().canonicalize().unwrap();
    whole.replace(&root.display().to_string(), "ROOT")
}

#[test]
fn the_nearest_configuration_decides_and_all_work_in_its_directory() {
    for (directory, args) in [("", &["-C", "api", "Make it"][..]), ("api", &["Make it"])] {
        let project = parts();
        let run = run_in(&project, directory, args).expect(0);
        let said = "works in api, with the configuration api/.sprag/config.yaml";
        assert!(run.stdout.contains(said), "{}", run.stdout);
        assert_eq!(run.summary["status"], "success", "{args:?}");
        assert_eq!(project.read("api/made.txt"), "x\n");
        assert!(project.read("api/where.txt").ends_with("/api\n"));
        assert_eq!(place(&project, "place"), "ROOT/api");
        let prompt = project.prompt(1);
        has(&prompt, "The work belongs in the directory `api`");
    }
}

/// Checks of the root are written for the root: a shell in another directory does not narrow them.
#[test]
fn the_directory_of_the_shell_alone_narrows_no_check() {
    let project = parts();
    let agent = "echo x > root.txt; echo Done.";
    let agent = project.agent(agent);
    let mut command = project.command(&["run", "Make it", "--agent-command", &agent]);
    command.current_dir(project.repo().join("web"));
    let run = project.finished(&command.output().unwrap()).expect(0);
    assert_eq!(run.summary["status"], "success");
    assert!(!run.stdout.contains("works in"), "{}", run.stdout);
    assert_eq!(project.read("root.txt"), "x\n");
}

#[test]
fn a_task_and_a_check_have_directories_of_their_own() {
    let project = parts();
    let plan = "verify:\n  - { name: made, run: test -f made.txt }\n  - { name: there, run: test -f w.txt, directory: web }\ntasks:\n  - { id: one, title: Make one, directory: web }\n  - { id: two, title: Make two, directory: ./api/ }\n";
    project.write("plan.yaml", plan);
    project.commit_all("plan");
    let run = run_in(&project, "", &["--plan", "plan.yaml"]).expect(0);
    assert_eq!(run.summary["totals"]["done"], 2);
    assert_eq!(project.read("web/made.txt"), "x\n");
    assert_eq!(project.read("api/made.txt"), "x\n");
    let shown = project.sprag(&["check", "plan.yaml"]).expect(0).stdout;
    assert!(shown.contains("cd api && test -f made.txt"), "{shown}");
    assert!(shown.contains("cd web && test -f w.txt"), "{shown}");

    project.write("plan.yaml", &plan.replace("./api/", "../x"));
    let refused = project.sprag(&["check", "plan.yaml"]).expect(2);
    let said = "directory must be a path below the work tree";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);

    let plan = "tasks:\n  - { id: one, title: Make one, directory: api }\n";
    project.write("plan.yaml", plan);
    for args in [&["check", "plan.yaml"][..], &["run", "--plan", "plan.yaml"]] {
        let refused = project.sprag(args).expect(2);
        has(&refused.stderr, "does not read the configuration of api");
    }
}

#[test]
fn a_resumed_run_works_where_it_began() {
    let project = parts();
    let idle = [
        "run",
        "-C",
        "api",
        "Make it",
        "--nudges",
        "0",
        "--max-retries",
        "0",
    ];
    let agent = project.agent("echo Done.");
    let stopped = project.sprag(&[&idle[..], &["--agent-command", &agent]].concat());
    assert_eq!(stopped.code, 1, "{}", stopped.stdout);
    let resumed = run_in(&project, "", &["--resume"]).expect(0);
    assert_eq!(resumed.summary["status"], "success");
    assert_eq!(project.read("api/made.txt"), "x\n");
}

/// No agent may change the configuration of a part.
#[test]
fn the_configuration_of_a_part_is_protected() {
    let project = parts();
    let agent = project.agent("echo x > root.txt; echo 'verify: \"true\"' > web/.sprag/config.yaml || { mkdir -p web/.sprag; echo 'verify: \"true\"' > web/.sprag/config.yaml; }; echo Done.");
    let args = ["run", "Make it", "--agent-command", &agent];
    let run = project.sprag(&args);
    let changed = run.task(0)["changed_files"].to_string();
    assert!(!changed.contains("config"), "{changed}");
    has(&run.stdout, "web/.sprag/config.yaml");
    assert_eq!(project.git(&["ls-files", "web/.sprag"]), "");
}
