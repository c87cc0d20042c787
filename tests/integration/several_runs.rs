//! What one run in a repository means for the next, and how a person finds a run again.

use crate::support::proc::wait_until;
use crate::support::project::Project;
use crate::support::tasks::{FIX, fixable, fixable_by, logged};
use std::fs;

#[test]
fn what_only_checks_left_behind_does_not_block_the_next_run() {
    let project = fixable_by(
        "mkdir -p coverage; echo x > coverage/a; echo x > left.lock; grep -q fixed a.txt",
    );
    let run = project.run(&project.agent(FIX), &[]).expect(0);
    let named = "files that only the checks left behind were not committed: coverage/, left.lock; commit them or add them to .gitignore";
    let warned = |text: &str| text.matches(named).count();
    assert_eq!(warned(&run.stdout), 1, "{}", run.stdout);
    assert_eq!(project.status(), "?? coverage/\n?? left.lock");
    assert_eq!(run.summary["changed_files"], serde_json::json!(["a.txt"]));

    let flags = [
        "run",
        "--prompt",
        "Do it again",
        "--verify",
        "true",
        "--agent-command",
    ];
    let agent = project.agent("echo more > b.txt; echo Done.");
    let again = |agent: &str| {
        let mut flags = flags.to_vec();
        flags.push(agent);
        project.sprag(&flags)
    };
    let run = again(&agent).expect(0);
    assert_eq!(warned(&run.stdout), 1, "{}", run.stdout);
    let files = project.git(&["show", "--name-only", "--format=", "HEAD"]);
    assert_eq!(files.trim(), "b.txt");

    // What somebody else put there is dirt as ever.
    project.write("mine.txt", "x");
    let run = again(&agent).expect(2);
    assert!(
        run.stderr.contains("mine.txt") && !run.stderr.contains("left.lock"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_detached_head_is_warned_of_and_its_commits_can_be_named() {
    let project = fixable();
    project.git(&["checkout", "-q", "--detach"]);
    let run = project.run(&project.agent(FIX), &[]).expect(0);
    assert!(logged(&run, "HEAD is detached"), "{}", run.stdout);
    let name = format!("git branch NAME {}", &project.head()[..12]);
    assert!(logged(&run, &name), "{}", run.stdout);
}

#[test]
fn a_plan_that_is_done_says_so_and_nothing_else() {
    let project = fixable();
    project.run(&project.agent(FIX), &[]).expect(0);
    let run = project.run(&project.agent(FIX), &[]).expect(0);
    assert_eq!(run.stdout, "✓ nothing left to do: 1 task, 1 done\n");
}

#[test]
fn a_failed_run_says_how_to_drop_its_work_and_that_works() {
    let project = fixable();
    let agent = project.agent("echo wrong > a.txt; echo new > new.txt; echo Done.");
    let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
    let line = run
        .stdout
        .lines()
        .find(|line| line.contains("git apply -R "))
        .unwrap();
    let patch = line.trim().strip_prefix("git apply -R ").unwrap();
    assert_ne!(project.status(), "");
    project.git(&["apply", "-R", patch]);
    assert_eq!(project.status(), "");
}

#[test]
fn nobody_is_told_to_drop_changes_that_were_there_before_the_run() {
    let project = fixable();
    project.write("mine.txt", "mine\n");
    let agent = project.agent("echo wrong > a.txt; echo Done.");
    let run = project.run(&agent, &["--allow-dirty", "--max-retries", "0"]);
    let run = run.expect(1);
    assert!(!run.stdout.contains("git apply -R"), "{}", run.stdout);
    let said = "the work of fix and everything else that was not committed as a patch: ";
    assert!(logged(&run, said), "{}", run.stdout);
    assert_eq!(run.summary["allow_dirty"], true);
}

#[test]
fn an_agent_that_only_asks_has_not_planned_and_the_failing_checks_are_counted() {
    let project = fixable();
    let run = project
        .run(&project.agent("echo 'Should I edit a.txt?'"), &[])
        .expect(1);
    let said = "the agent asked and waited, and never changed a file; 1 check fails";
    assert!(logged(&run, said), "{}", run.stdout);
    let advice = "answer the agent's question in the task, then run it again";
    assert!(logged(&run, advice), "{}", run.stdout);
}

#[test]
fn a_run_in_a_directory_of_its_own_is_listed_resumed_and_its_files_are_known() {
    let project = Project::new(&[("a.txt", "")]);
    let check = "touch left.log; test ! -e bad";
    let started = |agent: &str, name: &str| {
        let dir = project.outside(name);
        let dir = dir.to_str().unwrap();
        let agent = project.agent(agent);
        let flags = ["run", name, "--verify", check, "--agent-command", &agent];
        project.sprag(&[&flags[..], &["--run-dir", dir, "--max-retries", "0"]].concat())
    };
    started("echo one > a.txt; echo Done.", "first").expect(0);
    // What the check of the first run left behind is not somebody's work.
    assert_eq!(project.status(), "?? left.log");
    started("touch bad; echo Done.", "second").expect(1);
    let listed = project.sprag(&["runs"]).expect(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].ends_with("second"), "{listed}");
    assert!(lines[1].ends_with("1/1  first"), "{listed}");
    let id = lines[1].split(' ').next().unwrap();
    let report = project.sprag(&["report", id]).expect(0);
    assert!(report.stdout.contains("first"), "{}", report.stdout);
    // The newest unfinished run is the second one.
    let agent = project.agent("rm -f bad; echo two > a.txt; echo Done.");
    let flags = ["run", "--resume", "--max-retries", "1"];
    let resumed = project.sprag(&[&flags[..], &["--agent-command", &agent]].concat());
    let resumed = resumed.expect(0);
    assert_eq!(resumed.summary["plan"]["title"], "second");
    assert!(project.outside("first").join("summary.json").exists());
}

#[test]
fn a_run_is_listed_as_running_while_its_process_lives() {
    let project = Project::new(&[("a.txt", "")]);
    let agent = project.agent("touch $OUT/begun; while [ -e $OUT/begun ]; do sleep 0.02; done");
    let mut child = project.start(&["run", "First", "--agent-command", &agent]);
    let begun = project.outside("begun");
    wait_until("the agent works", || begun.exists());
    let state = || project.sprag(&["runs"]).expect(0).stdout;
    assert!(state().contains("  running  "), "{}", state());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the lock is free", || state().contains("  unfinished  "));
    fs::remove_file(begun).unwrap();
}

#[test]
fn runs_are_listed_newest_first_with_ids_that_name_them() {
    let project = Project::new(&[("a.txt", "")]);
    let none = project.sprag(&["runs"]).expect(0).stdout;
    assert!(none.starts_with("no run of this repository"), "{none}");
    let agent = project.agent("echo $N > a.txt; echo Done.");
    for title in ["First", "Second"] {
        let flags = ["run", title, "--verify", "true", "--agent-command", &agent];
        project.sprag(&flags).expect(0);
    }
    let listed = project.sprag(&["runs"]).expect(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines[0].contains("success") && lines[0].ends_with("1/1  Second"),
        "{listed}"
    );
    assert!(lines[1].ends_with("First"), "{listed}");
    let id = lines[1].split(' ').next().unwrap();
    assert_eq!(id.len(), 8);
    let report = project.sprag(&["report", id]).expect(0);
    assert!(report.stdout.contains("First"), "{}", report.stdout);
    let refused = project.sprag(&["report", "nonesuch"]).expect(2);
    assert!(
        refused.stderr.contains("sprag runs lists the runs"),
        "{}",
        refused.stderr
    );
    let over = project
        .sprag(&["run", "--resume", "--run-dir", id])
        .expect(2);
    assert!(
        !over.stderr.contains("neither a directory"),
        "{}",
        over.stderr
    );
}

#[test]
fn a_queue_without_github_is_worked_off_on_the_checked_out_branch() {
    let plan = |priority: &str, more: &str| {
        format!("priority: {priority}\n{more}tasks: [{{title: x}}]\nverify: ['true']\n")
    };
    let project = Project::new(&[
        ("queue/first.yaml", &plan("low", "")),
        ("queue/second.yaml", &plan("medium", "")),
        ("queue/third.yaml", &plan("high", "depends_on: first\n")),
        ("queue/README.md", "No plan.\n"),
        ("queue/zero.yaml", "tasks: []\n"),
    ]);
    let agent = project.agent("echo $N >> a.txt; echo Done.");
    let queue = ["run", "--queue", "queue", "--agent-command", &agent];
    let head = project.head();
    let dry = ["run", "--queue", "queue", "--dry-run"];
    let shown = project.sprag(&dry).expect(0).stdout;
    assert!(shown.starts_with("plan: second\n"), "{shown}");
    for name in ["second", "first", "third"] {
        let run = project.sprag(&queue).expect(0);
        assert_eq!(run.summary["plan"]["path"], format!("queue/{name}.yaml"));
        assert_eq!(run.summary["branch"], "main");
        let warnings = run.summary["warnings"].to_string();
        assert!(warnings.contains("queue: zero: invalid: "), "{warnings}");
    }
    let stuck = project.sprag(&queue).expect(3).stdout;
    let only = "no plan of queue can continue without a person: zero: invalid: ";
    assert!(stuck.contains(only) && !stuck.contains(": done"), "{stuck}");
    fs::remove_file(project.repo().join("queue/zero.yaml")).unwrap();
    project.commit_all("Remove a plan");
    let since = format!("{head}..main");
    assert_eq!(project.git(&["rev-list", "--count", &since]), "4");
    let over = project.sprag(&queue).expect(0).stdout;
    assert!(
        over.starts_with("no_work: every plan of the queue is done"),
        "{over}"
    );
    project.write("queue/fourth.yaml", "tasks: []\n");
    project.commit_all("Add a plan");
    let blocked = project.sprag(&queue).expect(3).stdout;
    assert!(blocked.contains("fourth: invalid: "), "{blocked}");
    let pushed = [queue.as_slice(), &["--push"]].concat();
    let refused = project.sprag(&pushed).expect(4).stderr;
    assert!(refused.contains("--push needs GitHub"), "{refused}");
}
