//! One plan spread over several jobs, and their work brought together.

use crate::support::has;
use crate::support::project::{Project, Run};
use crate::support::tasks::{end, ends, files_of, statuses, subjects, warnings};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Twelve tasks in five groups, of which `g` cannot be done.
const PLAN: &[(&str, &[&str])] = &[
    ("a", &[]),
    ("d", &[]),
    ("b", &["a"]),
    ("f", &[]),
    ("i", &[]),
    ("e", &["d"]),
    ("g", &["f"]),
    ("j", &[]),
    ("c", &["b"]),
    ("h", &["g"]),
    ("k", &["j"]),
    ("l", &["j"]),
];

/// Makes a file for each task.
const WORK: &str = "test $SPRAG_TASK_ID = g && { echo 'FAILED: g cannot be done'; exit 0; }\n\
    echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt\n\
    echo \"SUGGESTED_COMMIT_MESSAGE: Make $SPRAG_TASK_ID\"";

fn plan(tasks: &[(&str, &[&str])], check: &str) -> String {
    let check = serde_json::to_string(check).unwrap();
    let mut text = format!(
        "title: Example\nverify:\n  - {{ name: test, run: {check}, kind: test }}\ntasks:\n"
    );
    for (id, on) in tasks {
        text += &format!(
            "  - id: {id}\n    title: Make {id}\n    depends_on: [{}]\n",
            on.join(", ")
        );
    }
    text
}

fn project(tasks: &[(&str, &[&str])], check: &str) -> Project {
    let project = Project::new(&[("a.txt", "one\ntwo\nthree\n")]);
    project.write("plan.yaml", &plan(tasks, check));
    project.commit_all("plan");
    project
}

fn rows(project: &Project, args: &[&str]) -> Vec<(String, String)> {
    let run = project
        .sprag(&[&["matrix", "plan.yaml"], args].concat())
        .expect(0);
    let rows: Value = serde_json::from_str(run.stdout.trim_end()).unwrap();
    assert_eq!(run.stdout.lines().count(), 1, "an output is one line");
    let include = rows["include"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    include
        .map(|row| (text(&row["name"]), text(&row["tasks"])))
        .collect()
}

/// A copy of the repository as it is now, as another job checks it out.
fn checkout(project: &Project, name: &str) -> PathBuf {
    let to = project.beside(name);
    let copied = Command::new("cp")
        .arg("-a")
        .arg(project.repo())
        .arg(&to)
        .status();
    assert!(copied.unwrap().success());
    to
}

/// The command of a job that works on these tasks, and its run directory.
fn job(
    project: &Project,
    name: &str,
    tasks: &str,
    agent: &str,
    more: &[&str],
) -> (Command, PathBuf) {
    job_of("plan.yaml", project, name, tasks, agent, more)
}

/// The same for tasks of any plan.
fn job_of(
    plan: &str,
    project: &Project,
    name: &str,
    tasks: &str,
    agent: &str,
    more: &[&str],
) -> (Command, PathBuf) {
    let checkout = checkout(project, &format!("checkout-{name}"));
    let run_dir = project.beside(&format!("shards/{name}"));
    fs::create_dir_all(run_dir.parent().unwrap()).unwrap();
    let agent = project.agent(agent);
    let mut args = vec!["run", "--plan", plan, "--no-push", "--max-retries=0"];
    args.extend([
        "--agent-command",
        &agent,
        "--run-dir",
        run_dir.to_str().unwrap(),
    ]);
    args.extend(tasks.split(' ').flat_map(|task| ["--task", task]));
    args.extend(more);
    let mut command = project.command(&args);
    command.current_dir(checkout);
    (command, run_dir)
}

/// A job that runs to its end.
fn shard(project: &Project, name: &str, tasks: &str, agent: &str, code: i32) -> String {
    let (mut command, run_dir) = job(project, name, tasks, agent, &["--keep-going"]);
    let output = command.output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{log}");
    run_dir.to_str().unwrap().to_owned()
}

fn integrate(project: &Project, shards: &[&str]) -> Run {
    let args = [
        &["integrate", "--plan", "plan.yaml", "--keep-going"],
        shards,
    ]
    .concat();
    project.sprag(&args)
}

/// Everything in the last commit, the plan without the times of its tasks.
fn tree(project: &Project) -> (String, String) {
    let files = project.git(&["ls-tree", "-r", "HEAD"]);
    let files = files.lines().filter(|line| !line.ends_with("plan.yaml"));
    let plan = project.git(&["show", "HEAD:plan.yaml"]);
    let plan = plan.lines().filter(|line| !line.contains("completed_at"));
    (
        files.collect::<Vec<_>>().join("\n"),
        plan.collect::<Vec<_>>().join("\n"),
    )
}

fn message(run: &Run, task: &str) -> String {
    let mut tasks = run.summary["tasks"].as_array().unwrap().iter();
    let task = tasks.find(|it| it["id"] == task).unwrap();
    task["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_plan_in_five_shards_comes_to_what_it_comes_to_in_one_job() {
    let one = project(PLAN, "true");
    let alone = one.by(WORK, &["--max-retries=0", "--keep-going"]).expect(3);

    let many = project(PLAN, "true");
    let rows = rows(&many, &[]);
    let groups: Vec<&str> = rows.iter().map(|(_, tasks)| tasks.as_str()).collect();
    assert_eq!(groups, ["a b c", "d e", "f g h", "i", "j k l"]);
    for (name, tasks) in &rows {
        shard(&many, name, tasks, WORK, if name == "f" { 3 } else { 0 });
    }
    let at = many.beside("shards");
    let together = integrate(&many, &[at.to_str().unwrap()]).expect(3);
    assert_eq!(ends(&together), ends(&alone));
    assert_eq!(end(&together.summary), end(&alone.summary));
    assert_eq!(tree(&many), tree(&one));
    assert_eq!(many.status(), "");
    assert_eq!(together.summary["totals"]["done"], 10);
    assert_eq!(together.summary["agent"], "none");
    // The states are written once, and each commit names its task and the run that made it.
    let touched = many.git(&["log", "--format=%s", "--", "plan.yaml"]);
    assert_eq!(
        touched.lines().collect::<Vec<_>>(),
        ["[sprag] Record the status of plan", "plan"]
    );
    let task = many.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Sprag-Task)",
        "--grep=Make k",
    ]);
    assert_eq!(task.trim(), "Sprag-Task: plan/k");
    let runs = many.git(&[
        "log",
        "--format=%(trailers:key=Sprag-Run,valueonly,separator=)",
    ]);
    let runs: std::collections::BTreeSet<&str> =
        runs.lines().filter(|run| !run.is_empty()).collect();
    assert_eq!(
        runs.len(),
        6,
        "those of five shards, and of the integration"
    );
    assert_eq!(
        many.calls(),
        11,
        "no agent runs where the shards are brought together"
    );
}

#[test]
fn a_killed_shard_is_missing_and_comes_in_later() {
    let project = project(&[("a", &[]), ("b", &["a"]), ("c", &[])], "true");
    let first = shard(&project, "c", "c", WORK, 0);
    let hangs = format!("test $SPRAG_TASK_ID = b && {{ touch $OUT/hangs; sleep 600; }}\n{WORK}");
    let (mut command, killed) = job(&project, "a", "a b", &hangs, &[]);
    let mut child = command.spawn().unwrap();
    while !project.outside("hangs").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = killed.to_str().unwrap();
    let run = integrate(&project, &[killed, &first]).expect(1);
    assert_eq!(end(&run.summary), ("partial", "missing_shard"));
    let missing = ("pending", "missing_shard");
    assert_eq!(ends(&run), [missing, missing, ("done", "verified")]);
    let told = warnings(&run);
    let named: Vec<&&str> = told.iter().filter(|line| line.contains(killed)).collect();
    assert_eq!(named.len(), 1, "{told:?}");
    assert!(
        named[0].starts_with(&format!("shard {killed} is missing")),
        "{told:?}"
    );
    assert_eq!(statuses(&project.read("plan.yaml")), ["-", "-", "done"]);
    // What is left is spread again.
    assert_eq!(rows(&project, &[]), [("a".to_owned(), "a b".to_owned())]);
    let again = shard(&project, "again", "a b", WORK, 0);
    let run = integrate(&project, &["no-such-shard", &again]).expect(0);
    assert_eq!(end(&run.summary), ("success", "verified"));
    assert!(
        warnings(&run)
            .iter()
            .any(|line| line.contains("no-such-shard"))
    );
    assert_eq!(
        statuses(&project.read("plan.yaml")),
        ["done", "done", "done"]
    );
    assert_eq!(rows(&project, &[]), []);
}

/// Writes its own line over the second line of a file, or a file of its own.
const LINES: &str = "case $SPRAG_TASK_ID in a|c) sed -i \"s/two/$SPRAG_TASK_ID/\" a.txt;; *) echo $SPRAG_TASK_ID > $SPRAG_TASK_ID;; esac\n\
    echo \"SUGGESTED_COMMIT_MESSAGE: Write $SPRAG_TASK_ID\"";

#[test]
fn of_two_shards_that_conflict_the_earlier_task_stays() {
    let tasks: &[(&str, &[&str])] = &[
        ("a", &[]),
        ("b", &[]),
        ("c", &[]),
        ("d", &["c"]),
        ("e", &[]),
    ];
    let project = project(tasks, "true");
    let later = shard(&project, "later", "c d e", LINES, 0);
    let first = shard(&project, "first", "a b", LINES, 0);
    let run = integrate(&project, &[&later, &first]).expect(3);
    let done = ("done", "verified");
    let skipped = ("skipped", "dependency_failed");
    assert_eq!(
        ends(&run),
        [done, done, ("blocked", "conflict"), skipped, done]
    );
    assert_eq!(end(&run.summary), ("blocked", "conflict"));
    let told = message(&run, "c");
    assert!(told.contains(&format!("of shard {later}")), "{told}");
    has(&told, format!("task a (shard {first}) in a.txt"));
    assert_eq!(project.read("a.txt"), "one\na\nthree\n");
    assert!(project.repo().join("e").exists() && !project.repo().join("d").exists());
    assert_eq!(
        statuses(&project.read("plan.yaml")),
        ["done", "done", "blocked", "-", "done"]
    );
}

#[test]
fn a_shard_without_its_commits_is_missing_with_what_to_do() {
    let project = project(&[("a", &[])], "true");
    let pushed = shard(&project, "a", "a", WORK, 0);
    fs::remove_file(Path::new(&pushed).join("work.bundle")).unwrap();
    let run = integrate(&project, &[&pushed]).expect(1);
    let told = warnings(&run);
    let expected = "summary.json lists 1 commit, but there is no work.bundle; run with --no-push";
    assert!(told.iter().any(|line| line.contains(expected)), "{told:?}");
}

/// As the first of two jobs is started, on any machine.
#[test]
fn without_a_report_a_run_keeps_its_commits_for_another_job() {
    let project = project(&[("a", &[])], "true");
    let base = project.git(&["rev-parse", "HEAD"]);
    let dir = project.beside("first");
    let args = ["--report", "none", "--run-dir", dir.to_str().unwrap()];
    project.run(&project.agent(WORK), &args).expect(0);
    project.git(&["reset", "--quiet", "--hard", &base]);
    let run = integrate(&project, &[dir.to_str().unwrap()]).expect(0);
    assert_eq!(ends(&run), [("done", "verified")]);
}

#[test]
fn a_shard_of_another_plan_with_the_same_task_is_missing() {
    let project = project(&[("a", &[]), ("b", &[])], "true");
    project.write("other.yaml", &project.read("plan.yaml"));
    project.commit_all("other");
    let (mut command, run_dir) = job_of("other.yaml", &project, "a", "a", WORK, &[]);
    assert!(command.output().unwrap().status.success());
    let checkout = project.beside("checkout-a");
    let branch = ["fetch", "--quiet", checkout.to_str().unwrap(), "main:other"];
    project.git(&branch);
    for shard in [run_dir.to_str().unwrap(), "other"] {
        let run = integrate(&project, &[shard]).expect(1);
        let missing = ("pending", "missing_shard");
        assert_eq!(ends(&run), [missing, missing], "{shard}");
        assert_eq!(warnings(&run).len(), 1, "{:?}", warnings(&run));
    }
    assert_eq!(project.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_shard_without_a_commit_of_a_task_that_it_calls_done_does_not_deliver_it() {
    let project = project(&[("a", &[]), ("b", &[]), ("c", &["b"])], "true");
    let honest = shard(&project, "honest", "b", WORK, 0);
    let lies = shard(
        &project,
        "lies",
        "a b c",
        "test $SPRAG_TASK_ID = a && echo a > a",
        1,
    );
    let path = Path::new(&lies).join("summary.json");
    let mut summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for at in [1, 2] {
        summary["tasks"][at]["status"] = "done".into();
        summary["tasks"][at]["reason"] = "verified".into();
    }
    summary["totals"]["done"] = 3.into();
    fs::write(&path, summary.to_string()).unwrap();
    let (done, missing) = (("done", "verified"), ("pending", "missing_shard"));
    let run = integrate(&project, &[&lies, &honest]).expect(1);
    assert_eq!(ends(&run), [done, done, missing]);
    assert!(message(&run, "c").contains("has no commit of it"));
}

#[test]
fn a_shard_that_breaks_what_is_there_is_left_out() {
    let check = "test ! -e a -o ! -e b";
    let project = project(&[("a", &[]), ("b", &[]), ("c", &[])], check);
    let work = "echo x > $SPRAG_TASK_ID; echo Done.";
    let shards = ["a", "b", "c"].map(|name| shard(&project, name, name, work, 0));
    let run = integrate(&project, &shards.each_ref().map(String::as_str)).expect(1);
    let done = ("done", "verified");
    assert_eq!(ends(&run), [done, ("failed", "verification_failed"), done]);
    assert!(
        message(&run, "b").contains("these checks fail"),
        "{}",
        message(&run, "b")
    );
    let files = ["a", "b", "c"].map(|name| project.repo().join(name).exists());
    assert_eq!(files, [true, false, true]);
    assert_eq!(project.status(), "");
}

#[test]
fn what_fails_only_together_is_new_and_what_failed_before_is_known() {
    let mut project = Project::new(&[("a.txt", "one\n")]);
    project.env("SPRAG_BASELINE", "on-failure");
    // As pytest tells it: what failed, and how many passed.
    let script = "echo '=== short test summary info ==='
echo 'FAILED tests/test_x.py::test_old - assert False'
test -e a.txt -a -e b.txt && test -e c.txt || { echo '=== 1 failed, 2 passed in 0.01s ==='; exit 1; }
echo 'FAILED tests/test_x.py::test_together - assert False'
echo '=== 2 failed, 1 passed in 0.01s ==='
exit 1
";
    let check = project.outside("check.sh");
    fs::write(&check, script).unwrap();
    let tasks: &[(&str, &[&str])] = &[("b", &[]), ("c", &[]), ("d", &[])];
    let text = plan(tasks, &format!("sh {}", check.display()));
    project.write("plan.yaml", &format!("known_failures: tolerate\n{text}"));
    project.commit_all("plan");
    let shards = ["b", "c", "d"].map(|name| shard(&project, name, name, WORK, 0));
    let run = integrate(&project, &shards.each_ref().map(String::as_str)).expect(1);
    let known = ("done", "unverified");
    assert_eq!(
        ends(&run),
        [known, ("failed", "verification_failed"), known]
    );
    let told = message(&run, "c");
    assert!(told.contains("test_together: new"), "{told}");
    assert!(told.contains("test_old: was red before"), "{told}");
    let blamed = |n: usize| -> Vec<String> {
        let tests = run.task(n)["failing_tests"].as_array().unwrap().iter();
        tests
            .map(|test| test["blame"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(blamed(0), ["was_red_before"]);
    assert_eq!(blamed(1), ["was_red_before", "new"]);
    let files = ["b", "c", "d"].map(|name| project.repo().join(format!("{name}.txt")).exists());
    assert_eq!(files, [true, false, true]);
    assert_eq!(project.status(), "");
}

#[test]
fn what_fails_on_the_union_is_blamed_also_where_known_failures_fail() {
    let check = "test ! -e a -o ! -e b";
    let mut project = project(&[("a", &[]), ("b", &[])], check);
    project.env("SPRAG_BASELINE", "on-failure");
    let work = "echo x > $SPRAG_TASK_ID; echo Done.";
    let shards = ["a", "b"].map(|name| shard(&project, name, name, work, 0));
    let run = integrate(&project, &shards.each_ref().map(String::as_str)).expect(1);
    let told = message(&run, "b");
    assert!(told.contains("test (check test: new)"), "{told}");
    assert!(!project.repo().join("b").exists());
}

#[test]
fn branches_are_shards_too() {
    let project = project(&[("a", &[]), ("b", &[]), ("c", &[])], "true");
    for name in ["a", "b"] {
        let (mut command, _) = job(&project, name, name, WORK, &[]);
        let checkout = project.beside(&format!("checkout-{name}"));
        assert!(command.output().unwrap().status.success());
        let from = format!("main:shard-{name}");
        project.git(&["fetch", "--quiet", checkout.to_str().unwrap(), &from]);
    }
    let run = integrate(&project, &["shard-b", "shard-a"]).expect(1);
    let done = ("done", "verified");
    assert_eq!(ends(&run), [done, done, ("pending", "missing_shard")]);
    assert_eq!(subjects(&project)[1..3], ["Make b", "Make a"]);
    assert_eq!(files_of(&project, "HEAD~1"), ["b.txt"]);
}

#[test]
fn a_forged_shard_is_refused() {
    let project = project(&[("a", &[]), ("b", &[])], "true");
    let (mut command, _) = job(&project, "a", "a", WORK, &[]);
    assert!(command.output().unwrap().status.success());
    let checkout = project.beside("checkout-a");
    let forge = |args: &[&str]| {
        let done = project.program("git", args).current_dir(&checkout).status();
        assert!(done.unwrap().success(), "{args:?}");
    };
    forge(&[
        "commit",
        "--quiet",
        "--amend",
        "--no-edit",
        "--author=M <m@b>",
    ]);
    project.git(&[
        "fetch",
        "--quiet",
        checkout.to_str().unwrap(),
        "main:forged",
    ]);
    let before = project.head();
    let run = integrate(&project, &["forged"]).expect(3);
    assert_eq!(end(&run.summary), ("blocked", "policy_violation"));
    assert_eq!(
        ends(&run),
        [
            ("blocked", "policy_violation"),
            ("pending", "missing_shard")
        ]
    );
    assert!(
        message(&run, "a").contains("has the author M <m@b>"),
        "{}",
        message(&run, "a")
    );
    let left = project.git(&["diff", "--name-only", &before, "HEAD"]);
    assert_eq!(left.trim(), "plan.yaml");
}

#[test]
fn an_integration_that_was_killed_goes_on() {
    let project = project(&[("a", &[]), ("b", &[])], "true");
    let shards = ["a", "b"].map(|name| shard(&project, name, name, WORK, 0));
    let hangs = project.outside("hangs");
    let check = format!(
        "test ! -e b.txt || test -e {0} || {{ touch {0}; sleep 600; }}",
        hangs.display()
    );
    let args = [
        "integrate",
        "--plan",
        "plan.yaml",
        "--verify",
        &check,
        &shards[0],
        &shards[1],
    ];
    let mut child = project.start(&args);
    while !hangs.exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let run = project.sprag(&["run", "--resume"]).expect(0);
    let done = ("done", "verified");
    assert_eq!(ends(&run), [done, done]);
    assert_eq!(statuses(&project.read("plan.yaml")), ["done", "done"]);
    assert_eq!(subjects(&project)[1..3], ["Make b", "Make a"]);
    assert_eq!(project.status(), "");
}

#[test]
fn the_rows_are_an_output_of_a_step() {
    let mut project = project(PLAN, "true");
    let output = project.outside("output");
    fs::write(&output, "").unwrap();
    project.env("GITHUB_OUTPUT", &output);
    let rows = rows(&project, &["--shards", "2"]);
    assert_eq!(rows.len(), 2);
    let text = fs::read_to_string(Path::new(&output)).unwrap();
    assert!(text.starts_with("matrix<<"), "{text}");
    has(&text, format!(r#""tasks":"{}""#, rows[1].1));
    let by_flag = project.sprag(&["matrix", "--plan", "plan.yaml"]).expect(0);
    assert!(
        by_flag
            .stdout
            .starts_with(r#"{"include":[{"name":"a","tasks":"a b c"}"#)
    );
    project.sprag(&["matrix"]).expect(2);
    project
        .sprag(&["matrix", "plan.yaml", "--shards", "0"])
        .expect(2);
    project.sprag(&["integrate", "x"]).expect(2);
}

#[test]
fn what_the_shards_cost_is_the_cost_of_their_tasks_and_of_the_whole() {
    let project = project(&[("a", &[]), ("b", &[])], "true");
    let cost =
        "echo '{\"event\":\"agent.usage\",\"tokens_in\":10,\"tokens_out\":2,\"cost_usd\":0.25}'\n";
    let script = format!("test $SPRAG_TASK_ID = a && {cost}{WORK}");
    let first = shard(&project, "a", "a", &script, 0);
    let second = shard(&project, "b", "b", &script, 0);
    let run = integrate(&project, &[&first, &second]).expect(0);
    let usage = |usage: &Value| serde_json::json!([usage["tokens_in"], usage["cost_usd"]]);
    assert_eq!(usage(&run.task(0)["usage"]), serde_json::json!([10, 0.25]));
    assert_eq!(
        usage(&run.task(1)["usage"]),
        serde_json::json!([null, null])
    );
    assert_eq!(usage(&run.summary["usage"]), serde_json::json!([10, 0.25]));
    assert!(run.summary["limits"].is_null(), "it is no limit here");
}
