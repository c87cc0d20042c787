//! What keeps git busy: commits that stand for more than git can list, and filters that do not end. The run ends soon,
//! nothing is lost, and a signal is heeded meanwhile.

use crate::support::proc::{assert_nothing_left, end_of, run_with_peak_memory, signal, wait_until};
use crate::support::project::{Project, Run, plan};
use std::fs;

const CHECK: &str = "grep -q fixed a.txt";
/// A few objects for ten billion files; `$t` is their tree.
const BOMB: &str = r#"b=$(echo x | git hash-object -w --stdin)
t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '100644 blob %s\tf%s\n' $b $i; done | git mktree)
for l in 1 2 3 4 5 6 7 8 9; do t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %s\td%s\n' $t $i; done | git mktree); done
"#;

fn project() -> Project {
    Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))])
}

fn run(project: &Project, script: &str, args: &[&str]) -> Run {
    let agent = project.agent(&format!("echo fixed > a.txt\n{script}\necho Done."));
    let all = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let all = [&all[..], &["--max-retries", "0"], args].concat();
    // A run that hangs fails the test there.
    run_with_peak_memory(project, &all).0
}

/// The task is blocked, the branch is where it was, and the work is still there.
fn assert_put_back(project: &Project, base: &str, run: Run, said: &str) {
    let run = run.expect(3);
    assert_eq!(run.task(0)["reason"], "policy_violation");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains(said), "{message}");
    assert_eq!(project.head(), base);
    assert_eq!(project.read("a.txt"), "fixed\n");
}

#[test]
fn commits_that_stand_for_too_many_files_are_put_back_unread() {
    let last = "git update-ref HEAD $(git commit-tree -p HEAD -m bomb $t)";
    let between = "c=$(git commit-tree -p HEAD -m bomb $t); git update-ref HEAD $(git commit-tree -p $c -m gone HEAD^{tree})";
    let merged = "git update-ref HEAD $(git commit-tree -p HEAD -p $(git commit-tree -m bomb $t) -m merge HEAD^{tree})";
    for (commits, settings) in [
        (last, &[][..]),
        (between, &[]),
        (merged, &[]),
        (last, &["--agent-commits", "accept"]),
    ] {
        let mut project = project();
        // Secrets of the job are searched for in every commit.
        project.env("MODEL_TOKEN", "canary-0123456789-canary");
        let base = project.head();
        let run = run(&project, &format!("{BOMB}{commits}"), settings);
        assert_put_back(
            &project,
            &base,
            run,
            "which changes more than 1000000 files",
        );
    }
}

#[test]
fn a_commit_with_a_path_that_no_file_system_has_is_put_back() {
    let project = project();
    let base = project.head();
    let script = "n=$(head -c 100000 /dev/zero | tr '\\0' n); b=$(echo x | git hash-object -w --stdin)
        t=$(printf '100644 blob %s\\t%s\\n' $b $n | git mktree); git update-ref HEAD $(git commit-tree -p HEAD -m long $t)";
    let run = run(&project, script, &[]);
    assert_put_back(&project, &base, run, "which has a path of 100000 bytes");
}

#[test]
fn many_new_refs_are_removed_together_and_a_few_of_them_named() {
    let project = project();
    let base = project.head();
    project.git(&["update-ref", "refs/heads/kept", "HEAD"]);
    let script = r#"h=$(git rev-parse HEAD); git update-ref refs/heads/kept $(git commit-tree -m other HEAD^{tree})
        git symbolic-ref refs/heads/link refs/heads/main
        { echo '# pack-refs with: peeled fully-peeled sorted '; seq -f "$h refs/heads/new/%06g" 1 3000; } > .git/packed-refs"#;
    let run = run(&project, script, &[]);
    assert_put_back(&project, &base, run, "refs/heads/kept was moved");
    let refs = project.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert_eq!(
        refs,
        format!("refs/heads/kept {base}\nrefs/heads/main {base}")
    );
    let run = project.left(3);
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("2992 more refs were changed"), "{message}");
}

#[test]
fn a_signal_ends_a_filter_that_does_not_end_and_the_work_is_taken_up_again() {
    let mut project = project();
    project.env("SPRAG_AFTER_SIGNAL_TIMES", "1");
    let (filter, began) = (project.outside("clean.sh"), project.outside("began"));
    let command = format!("sh {}", filter.display());
    project.git(&["config", "filter.slow.clean", &command]);
    project.git(&["config", "filter.slow.smudge", "cat"]);
    project.git(&["config", "filter.slow.required", "true"]);
    let hangs = format!("touch {}; sleep 1000\n", began.display());
    fs::write(&filter, hangs).unwrap();
    let agent = project
        .agent("echo '*.bin filter=slow' > .gitattributes; echo x > x.bin; echo fixed > a.txt");
    let mut sprag = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    wait_until("the filter begins", || began.exists());
    signal(sprag.id(), "INT");
    // Without the signal, only git's own limit of ten minutes would end it.
    assert_eq!(end_of(&mut sprag).code(), Some(130));
    let run = project.finished(&sprag.wait_with_output().unwrap());
    assert_eq!(run.summary["status"], "cancelled", "{}", run.stdout);
    assert!(!run.event_names().contains(&"commit.rejected"));
    assert_eq!(project.commits(), 1);
    assert_nothing_left(&project);
    fs::write(&filter, "cat\n").unwrap();
    project
        .sprag(&["run", "--resume", "--agent-command", &agent])
        .expect(0);
    assert_eq!(project.git(&["cat-file", "blob", "HEAD:x.bin"]), "x");
    assert_eq!(project.calls(), 1);
}
