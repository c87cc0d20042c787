//! What a run costs beside its agents and checks, counted in git processes: numbers that do not
//! depend on the machine, so that the overhead does not grow back unnoticed.

use crate::support::model_api::{ModelApi, Step};
use crate::support::project::Project;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// Git processes of a run of one task with a check, which also runs before it, and a commit.
const ONE_TASK: usize = 48;

/// Git processes of each further task, from its turn to the next one's.
const FURTHER_TASK: usize = 20;

/// Puts a `git` first on the search path that notes every call in `$OUT/git`, runs `before` and then
/// is the real one.
fn watch_git(project: &mut Project, before: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let real = std::env::split_paths(&path)
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    let git = bin.join("git");
    let script = format!(
        "#!/bin/sh\nOUT={out}\necho \"git $*\" >> \"$OUT/git\"\n{before}\nexec {real} \"$@\"\n",
        out = project.outside("").display(),
        real = real.display(),
    );
    fs::write(&git, script).unwrap();
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let dirs = std::iter::once(bin).chain(std::env::split_paths(&path));
    project.env("PATH", std::env::join_paths(dirs).unwrap());
}

fn plan(tasks: usize) -> String {
    let tasks: String = (1..=tasks)
        .map(|n| format!("  - {{ id: t{n}, title: Task {n} }}\n"))
        .collect();
    format!("title: Many\nverify: ['true']\ntasks:\n{tasks}")
}

/// The calls before the first turn, from each turn to the next, and from the last turn on.
fn calls(project: &Project) -> Vec<Vec<String>> {
    let notes = project.notes("git");
    let parts = notes.split(|line| line == "turn");
    parts.map(<[String]>::to_vec).collect()
}

/// Runs as many tasks, each of which changes a file.
fn run(tasks: usize) -> Vec<Vec<String>> {
    run_after(tasks, &[])
}

/// Like [`run`], after a git command.
fn run_after(tasks: usize, command: &[&str]) -> Vec<Vec<String>> {
    let mut project = Project::new(&[("plan.yaml", &plan(tasks)), ("a.txt", "0\n")]);
    if !command.is_empty() {
        project.git(command);
    }
    watch_git(&mut project, "");
    let agent = project.agent("echo turn >> \"$OUT/git\"; echo $N > a.txt");
    project.run(&agent, &[]).expect(0);
    assert_eq!(project.commits(), tasks + 1);
    calls(&project)
}

/// Also right after a clone, of which everything is in a pack.
#[test]
fn one_task_starts_few_git_processes() {
    for before in [&[][..], &["repack", "-adq"]] {
        let calls = run_after(1, before).concat();
        assert!(
            calls.len() <= ONE_TASK,
            "{before:?}: {} instead of {ONE_TASK}:\n{}",
            calls.len(),
            calls.join("\n")
        );
    }
}

#[test]
fn the_twentieth_task_starts_as_many_git_processes_as_the_second() {
    let calls = run(21);
    assert_eq!(calls.len(), 22);
    let (second, twentieth) = (&calls[2], &calls[20]);
    assert_eq!(second.len(), twentieth.len(), "{second:#?}\n{twentieth:#?}");
    assert!(
        second.len() <= FURTHER_TASK,
        "{} instead of {FURTHER_TASK}:\n{}",
        second.len(),
        second.join("\n")
    );
}

/// Small files are kept in memory.
#[test]
fn the_old_versions_of_many_large_files_cost_as_many_git_processes_as_one() {
    let large = "counted = 1\n".repeat(4_000);
    let names: Vec<String> = (0..9).map(|n| format!("src/f{n}.py")).collect();
    let count = |changed: usize| {
        let plan = plan(1);
        let mut files = vec![("plan.yaml", plan.as_str())];
        files.extend(names.iter().map(|name| (name.as_str(), large.as_str())));
        let mut project = Project::new(&files);
        project.git(&["repack", "-adq"]);
        watch_git(&mut project, "");
        let edit = format!(
            "for f in {}; do echo 'counted = 2' >> $f; done",
            names[..changed].join(" ")
        );
        let agent = project.agent(&edit);
        project.run(&agent, &[]).expect(0);
        assert_eq!(project.commits(), 2);
        calls(&project).concat().len()
    };
    assert_eq!(count(9), count(1));
}

/// Looks at the whole tree among some calls.
fn looks(calls: &[String]) -> usize {
    let is_look = |call: &&String| call.starts_with("git status");
    calls.iter().filter(is_look).count()
}

/// Also where the level of the sandbox is found out by starting children first. A run of the checks before the turn costs
/// three looks.
#[test]
fn the_tree_is_looked_at_once_before_the_first_turn_and_three_times_after_it() {
    for (sandbox, baseline, before) in [("off", "off", 1), ("auto", "off", 1), ("off", "first", 4)]
    {
        let mut project = Project::new(&[("plan.yaml", &plan(1)), ("a.txt", "0\n")]);
        watch_git(&mut project, "");
        project.env("SPRAG_SANDBOX", sandbox);
        project.env("SPRAG_BASELINE", baseline);
        let agent = project.agent("echo turn >> \"$OUT/git\"; echo $N > a.txt");
        project.run(&agent, &[]).expect(0);
        let calls = calls(&project);
        let counts: Vec<usize> = calls.iter().map(|calls| looks(calls)).collect();
        assert_eq!(counts, [before, 3], "{sandbox}, {baseline}: {calls:#?}");
    }
}

#[test]
fn a_command_of_the_builtin_agent_costs_one_look() {
    let mut project = Project::new(&[("a.txt", "0\n")]);
    watch_git(&mut project, "");
    let notes = project.outside("git").display().to_string();
    let call = |tool, arguments| Step::Calls(String::new(), vec![(tool, arguments)]);
    let command = |n: u32| {
        let command = format!("echo turn >> {notes}; echo {n} > a.txt");
        call("run_command", json!({"command": command}))
    };
    let edit = call("write_file", json!({"path": "b.txt", "content": "b\n"}));
    let finish = call("finish", json!({"summary": "Count"}));
    let before = (1..=10).map(command);
    let after = [edit, command(11), command(12), finish];
    let api = ModelApi::start(before.chain(after)).unwrap();
    project.env("SPRAG_BASE_URL", format!("{}/v1", api.url()));
    project.env("OPENAI_API_KEY", "none");
    project.env("SPRAG_BASELINE", "off");
    let prompt = ["run", "--prompt", "Count", "--verify", "true"];
    let agent = ["--agent", "builtin", "--model", "m"];
    let run = project.sprag(&[&prompt[..], &agent[..]].concat()).expect(0);
    let told: Vec<&str> = run
        .events
        .iter()
        .filter(|event| event["event"] == "agent.file_change")
        .filter_map(|event| event["path"].as_str())
        .collect();
    let ten = ["a.txt"; 10];
    assert_eq!(told, [&ten[..], &["b.txt", "a.txt", "a.txt"]].concat());
    let calls = calls(&project);
    // Before the first command there is the look with which the run begins, as no check runs before it.
    let counts: Vec<usize> = calls[..12].iter().map(|calls| looks(calls)).collect();
    assert_eq!(counts, [1; 12], "{calls:#?}");
}

#[test]
fn what_somebody_else_writes_once_the_checks_are_over_is_not_in_the_commit() {
    for (writes, refused) in [
        // A file that the checks did not see stays where it is, and is told of.
        ("echo stray > stray.txt", false),
        // One that they saw is staged as it lies there, which is no longer what they saw.
        ("echo other > a.txt", true),
    ] {
        written_while_staging(writes, refused);
    }
}

fn written_while_staging(writes: &str, refused: bool) {
    let mut project = Project::new(&[("a.txt", "0\n")]);
    watch_git(
        &mut project,
        &format!(
            "case \"$*\" in *update-index*--stdin*)\n\
             if [ -e \"$OUT/checked\" ]; then cd \"$GIT_WORK_TREE\"; {writes}; fi ;; esac"
        ),
    );
    let agent = project.agent("echo 1 > a.txt");
    let check = format!("touch {}", project.outside("checked").display());
    let base = project.head();
    let run = project.sprag(&[
        "run",
        "--prompt",
        "x",
        "--agent-command",
        &agent,
        "--verify",
        &check,
        "--max-retries",
        "0",
    ]);
    let told = if refused {
        "changed while committing: a.txt"
    } else {
        "the tree is not clean after the commit: stray.txt"
    };
    assert!(run.stdout.contains(told), "{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.head() == base, refused, "{}", run.stdout);
    let reason = if refused {
        "policy_violation"
    } else {
        "verified"
    };
    assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
    if !refused {
        assert_eq!(project.git(&["show", "HEAD:a.txt"]), "1");
        let listed = project.git(&["ls-tree", "--name-only", "HEAD"]);
        assert!(!listed.contains("stray.txt"), "{listed}");
    }
}
