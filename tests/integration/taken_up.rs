//! What a run that is taken up again knows, and what it refuses.

use crate::support::has;
use crate::support::project::{KILL_SPRAG, Project, Run};
use crate::support::tasks::{FIX, fixable, several, warnings};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// Kills `sprag` from inside of a turn of a command agent.
const KILL: &str = "kill_sprag; sleep 60";

fn resume(project: &Project, more: &[&str]) -> Run {
    project.sprag(&[&["run", "--resume"], more].concat())
}

/// A run that was killed in its first turn, its agent, and its directory.
fn killed() -> (Project, PathBuf) {
    let project = fixable();
    let agent = project.agent(&format!("[ $N = 1 ] && {{ {KILL}; }}; {FIX}"));
    project.run(&agent, &[]).expect(-9);
    let dir = project.run_dirs().remove(0);
    (project, dir)
}

#[test]
fn the_agents_own_commits_are_still_counted() {
    let project = fixable();
    let agent = project.agent(&format!(
        "case $N in 1) echo x > b.txt; git add b.txt; git commit -q -m own; echo Done. ;; 2) {KILL} ;; *) {FIX} ;; esac"
    ));
    project
        .run(&agent, &["--agent-commits", "accept"])
        .expect(-9);
    let run = resume(&project, &[]).expect(0);
    assert_eq!(run.task(0)["agent_commits"], 1);
    assert_eq!(project.commits(), 4);
}

/// codex tells what its whole session has used up, so a turn's share is known only by what the session
/// had used up before.
#[test]
fn what_a_session_has_used_up_is_counted_once() {
    let mut project = fixable();
    let bin = project.outside("bin");
    fs::create_dir(&bin).unwrap();
    let total = |tokens: u32| {
        format!(
            "echo '{{\"type\":\"thread.started\",\"thread_id\":\"s1\"}}'; echo '{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{tokens},\"output_tokens\":0}}}}'"
        )
    };
    let script = format!(
        "#!/bin/sh\n{KILL_SPRAG}OUT={}\ncat > /dev/null\nN=$(( $(cat $OUT/n 2> /dev/null || echo 0) + 1 )); echo $N > $OUT/n\ncase $N in 1) echo wrong > a.txt; {} ;; 2) kill_sprag; sleep 60 ;; *) echo fixed > a.txt; {} ;; esac\n",
        project.outside("").display(),
        total(100),
        total(250),
    );
    fs::write(bin.join("codex"), script).unwrap();
    fs::set_permissions(bin.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    project.env("PATH", path);
    project.env("OPENAI_API_KEY", "none");
    let args = ["run", "--plan", "plan.yaml", "--agent", "codex"];
    project.sprag(&args).expect(-9);
    let run = resume(&project, &["--max-tokens", "300"]).expect(0);
    assert_eq!(run.summary["usage"]["tokens_in"], 250);
}

#[test]
fn an_edited_plan_in_the_tree_is_named_and_the_committed_one_counts() {
    let project = several(&["one", "two"]);
    let agent = project.agent(&format!(
        "[ $N = 2 ] && {{ {KILL}; }}; touch $SPRAG_TASK_ID; echo Done."
    ));
    project.run(&agent, &[]).expect(-9);
    let plan = project
        .read("plan.yaml")
        .replace("title: Make two", "title: Make more");
    project.write("plan.yaml", &plan);
    let run = resume(&project, &[]).expect(0);
    let said = "plan.yaml was edited; the run continues with the last committed version; start a new run for the edited one";
    assert!(
        warnings(&run).iter().any(|text| text.ends_with(said)),
        "{:?}",
        warnings(&run)
    );
    assert_eq!(run.task(1)["title"], "Make two");
}

#[test]
fn an_edited_plan_outside_of_the_tree_is_named_and_counts() {
    let project = several(&["one", "two"]);
    let plan = project.outside("plan.yaml");
    fs::write(&plan, project.read("plan.yaml")).unwrap();
    let agent = project.agent(&format!(
        "[ $N = 2 ] && {{ {KILL}; }}; touch $SPRAG_TASK_ID; echo Done."
    ));
    let args = [
        "run",
        "--plan",
        plan.to_str().unwrap(),
        "--agent-command",
        &agent,
    ];
    project.sprag(&args).expect(-9);
    let text = fs::read_to_string(&plan).unwrap();
    fs::write(&plan, text.replace("title: Make two", "title: Make more")).unwrap();
    let run = resume(&project, &[]).expect(0);
    let said = "plan.yaml was edited since the run started; the run continues with the new version";
    assert!(
        warnings(&run).iter().any(|text| text.ends_with(said)),
        "{:?}",
        warnings(&run)
    );
    assert_eq!(
        project.git(&["log", "-1", "--format=%s"]),
        "[sprag] Complete task two: Make more"
    );
}

#[test]
fn what_cannot_be_taken_up_is_refused_and_left_as_it_is() {
    let (project, dir) = killed();
    let manifest = fs::read_to_string(dir.join("manifest.json")).unwrap();
    let history = fs::read_to_string(dir.join("history.jsonl")).unwrap();
    let newer = history.clone() + "{\"task\":\"fix\",\"record\":\"foreseen\"}\n";
    let cases = [
        (
            "manifest.json",
            manifest.replace("\"v\": 1", "\"v\": 2"),
            "has version 2, but this Sprag reads version 1",
        ),
        ("manifest.json", "{".into(), "manifest.json is damaged"),
        (
            "history.jsonl",
            newer,
            "is not understood: was it written by another version of Sprag?",
        ),
        (
            "history.jsonl",
            format!("x\n{history}"),
            "history.jsonl:1 is damaged",
        ),
    ];
    for (name, text, said) in cases {
        let kept = fs::read(dir.join(name)).unwrap();
        fs::write(dir.join(name), &text).unwrap();
        let run = resume(&project, &["--run-dir", dir.to_str().unwrap()]).expect(2);
        assert!(run.stderr.contains(said), "{}", run.stderr);
        assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), text);
        fs::write(dir.join(name), kept).unwrap();
    }
    let git = dir.join("git");
    fs::rename(&git, dir.join("away")).unwrap();
    let run = resume(&project, &[]).expect(2);
    has(&run.stderr, "the run cannot be resumed: cannot read");
    has(&run.stderr, "start a new run; the commits of this one stay");
    fs::rename(dir.join("away"), git).unwrap();
    assert_eq!(project.calls(), 1);
    resume(&project, &[]).expect(0);
}

#[test]
fn a_run_directory_is_one_and_of_this_repository() {
    let (project, dir) = killed();
    let dir = dir.to_str().unwrap();
    let twice = resume(&project, &["--run-dir", dir, "--run-dir", dir]).expect(2);
    has(
        &twice.stderr,
        "'--run-dir <DIR>' cannot be used multiple times",
    );
    let other = fixable();
    let foreign = resume(&other, &["--run-dir", dir]).expect(2);
    let said = format!(
        "{dir} is a run of {}, not of {}",
        project.repo().display(),
        other.repo().display()
    );
    assert!(foreign.stderr.contains(&said), "{}", foreign.stderr);
    let used = project
        .by(FIX, &["--run-dir", dir, "--allow-dirty"])
        .expect(2);
    has(&used.stderr, "exists and is not an empty directory");
    let none = resume(&project, &["--run-dir", "/no/such/run"]).expect(2);
    has(&none.stderr, "there is no run directory /no/such/run");
    let empty = project.outside("empty");
    fs::create_dir(&empty).unwrap();
    let empty = resume(&project, &["--run-dir", empty.to_str().unwrap()]).expect(2);
    has(&empty.stderr, "is not the directory of a run");
}

/// Cut here and there in the last line, as a kill, a full disk or a loss of power leaves them. (The
/// unit tests cut at every byte.)
#[test]
fn files_that_are_cut_in_their_last_line_are_taken_up() {
    let project = several(&["one", "two"]);
    let agent = project.agent(&format!(
        "[ $N = 2 ] && {{ {KILL}; }}; touch $SPRAG_TASK_ID; echo Done."
    ));
    project.run(&agent, &[]).expect(-9);
    let dir = project.run_dirs().remove(0);
    for name in ["history.jsonl", "state/events.jsonl", "events.jsonl"] {
        let whole = fs::read(dir.join(name)).unwrap();
        let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends: Vec<usize> = ends.map(|(at, _)| at + 1).collect();
        let last = ends[ends.len() - 2];
        for cut in [
            last,
            last + 1,
            (last + whole.len()) / 2,
            whole.len() - 2,
            whole.len() - 1,
        ] {
            fs::write(dir.join(name), &whole[..cut]).unwrap();
            // An agent that is not there keeps it from going further than reading.
            let run = resume(&project, &["--agent", "codex"]);
            let shown = format!("{name} cut at {cut}: {}", run.stderr);
            assert_eq!(run.code, 4, "{shown}");
            assert!(run.stderr.contains("codex"), "{shown}");
        }
    }
    let run = resume(&project, &[]).expect(0);
    assert_eq!(run.summary["totals"]["done"], 2);
    assert!(!warnings(&run).concat().contains("edited"));
    assert_eq!((project.commits(), project.status()), (4, String::new()));
    // No line ran into another: all of them were read.
    let numbers = run
        .events
        .iter()
        .map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.max() >= Some(20), "{:?}", run.events);
}

/// The turns of one phase would be taken for those of another: a plan's task for a review that accepts it.
#[test]
fn other_phases_than_those_that_a_task_began_in_are_refused_and_change_nothing() {
    let (project, dir) = killed();
    let kept =
        || ["history.jsonl", "state/events.jsonl"].map(|name| fs::read(dir.join(name)).unwrap());
    let before = kept();
    let began = "the run cannot be resumed: task fix began with other settings of `review`, `tdd` or `roles`";
    for (flag, said) in [
        ("--review", began),
        ("--tdd", began),
        (
            "--review-only",
            "the run cannot be resumed with `review_only`: it does the tasks of a plan",
        ),
    ] {
        let run = resume(&project, &[flag]).expect(2);
        assert!(run.stderr.contains(said), "{flag}: {}", run.stderr);
    }
    assert_eq!(kept(), before);
    assert!(!dir.join("summary.json").exists());
    assert_eq!(project.calls(), 1);
    resume(&project, &[]).expect(0);
}

#[test]
fn a_failed_run_does_not_become_a_review_and_a_task_that_begins_anew_may_have_other_phases() {
    let project = fixable();
    let agent = project.agent(&format!(
        "[ $SPRAG_ROLE = reviewer ] && {{ echo 'VERDICT: ACCEPTABLE'; exit; }}; [ $N = 1 ] && {{ echo 'FAILED: no'; exit; }}; {FIX}"
    ));
    project.run(&agent, &[]).expect(3);
    let run = resume(&project, &["--review-only"]).expect(2);
    has(&run.stderr, "resume it without `review_only`");
    let run = resume(&project, &["--review"]).expect(0);
    assert_eq!(run.task(0)["turns"][1]["role"], "reviewer");
    assert_eq!(run.task(0)["reason"], "verified");
}
