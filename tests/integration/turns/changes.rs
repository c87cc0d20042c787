//! What a turn did is read from the repository.

use crate::support::project::Project;
use crate::support::tasks::{FIX, assessments, end, files_of, fixable, fixable_by, warnings};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

#[test]
fn state_capture() {
    let project = fixable();
    let head = project.head();
    let agent = project.agent("case $N in 1) echo 'Plan: edit.' ;; *) echo fixed > a.txt ;; esac");
    let run = project.run(&agent, &[]).expect(0);
    let turns = run.task(0)["turns"].as_array().unwrap();
    let [first, second] = turns.as_slice() else {
        panic!("{turns:?}")
    };
    assert_eq!(first["before"], first["after"]);
    assert_eq!(first["before"]["head"], head.as_str());
    assert_eq!(first["before"]["dirty"], false);
    assert_eq!(second["before"], first["after"]);
    assert_eq!(second["after"]["head"], head.as_str());
    assert_eq!(second["after"]["dirty"], true);
    assert_ne!(second["after"]["tree"], second["before"]["tree"]);
    assert_eq!(second["turn"], 2);
    assert_eq!(second["purpose"], "nudge");
    assert_eq!(second["exit"], "code 0");
}

#[test]
fn state_compare() {
    let project = fixable();
    let agent =
        project.agent("echo \"try $N\" > a.txt; [ $N = 3 ] && echo fixed > a.txt; echo Done.");
    let run = project.run(&agent, &[]).expect(0);
    // The second turn edits a file that is dirty already.
    assert_eq!(assessments(run.task(0)), ["changed", "changed", "changed"]);
    assert_eq!(run.task(0)["turns"][1]["before"]["dirty"], true);
    assert_eq!(project.checks(), 4);
    assert_eq!(run.task(0)["retries"], 2);
}

#[test]
fn same_bytes_are_no_change() {
    let project = fixable();
    let agent = project.agent("cat a.txt > copy; cat copy > a.txt; rm copy; echo Done.");
    let run = project.run(&agent, &[]).expect(1);
    assert_eq!(assessments(run.task(0)), ["claims_done", "claims_done"]);
}

#[test]
fn untracked_counts_and_ignored_does_not() {
    let project = Project::new(&[(".gitignore", "*.log\n")]);
    let check = project.check("test -e new.txt");
    project.write("plan.yaml", &crate::support::project::plan(&check));
    project.commit_all("plan");
    let agent = project
        .agent("case $N in 1) echo x > debug.log ;; *) echo x > new.txt ;; esac; echo Done.");
    let run = project.run(&agent, &[]).expect(0);
    assert_eq!(assessments(run.task(0)), ["claims_done", "changed"]);
    assert_eq!(files_of(&project, "HEAD"), ["new.txt", "plan.yaml"]);
}

#[test]
fn delete_or_rename() {
    for script in ["rm a.txt", "git mv a.txt b.txt"] {
        let project = fixable_by("test ! -e a.txt");
        let agent = project.agent(&format!("{script}; echo 'Plan: I will remove a.txt.'"));
        let run = project.run(&agent, &[]).expect(0);
        assert_eq!(project.calls(), 1, "{script}");
        assert_eq!(assessments(run.task(0)), ["changed"], "{script}");
        assert_eq!(project.status(), "", "{script}");
        let left = project.git(&["ls-tree", "--name-only", "HEAD"]);
        let expected = if script.contains("mv") {
            "b.txt\nplan.yaml"
        } else {
            "plan.yaml"
        };
        assert_eq!(left, expected, "{script}");
    }
}

#[test]
fn mode_changes_count() {
    let project = fixable_by("test -x a.txt");
    let run = project.by("chmod +x a.txt; echo Done.", &[]).expect(0);
    assert_eq!(assessments(run.task(0)), ["changed"]);
    let listed = project.git(&["ls-files", "--stage", "a.txt"]);
    assert!(listed.starts_with("100755 "), "{listed}");
}

#[test]
fn concurrent_edits() {
    let project = fixable();
    let (working, go_on) = (project.outside("working"), project.outside("go-on"));
    for fifo in [&working, &go_on] {
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    let agent = project.agent(&format!(
        "echo now > {}; read line < {}; echo 'Plan: I will edit a.txt.'",
        working.display(),
        go_on.display()
    ));
    let child = project.start(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    assert_eq!(fs::read_to_string(&working).unwrap(), "now\n");
    project.write("a.txt", "fixed\n");
    fs::write(&go_on, "on\n").unwrap();
    let run = project
        .finished(&child.wait_with_output().unwrap())
        .expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(assessments(run.task(0)), ["changed"]);
}

#[test]
fn status_unavailable() {
    let project = fixable();
    let head = project.head();
    let hidden = project.outside("hidden");
    let agent = project.agent(&format!(
        "mv .git {}; echo 'Plan: I will edit a.txt.'",
        hidden.display()
    ));
    let run = project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert_eq!(project.calls(), 1, "no nudge without knowing the state");
    assert_eq!(assessments(run.task(0)), ["unknown"]);
    assert_eq!(project.checks(), 2, "verification runs all the same");
    let warned = warnings(&run);
    let expected = "progress detection is off for this turn";
    assert!(
        warned.iter().any(|text| text.contains(expected)),
        "{warned:?}"
    );
    fs::rename(&hidden, project.repo().join(".git")).unwrap();
    assert_eq!(project.head(), head);
    assert_eq!(project.status(), "");
}

#[test]
fn sandbox_permissions() {
    let project = fixable();
    let agent = project.agent(&format!("echo secret > locked; chmod 000 locked; {FIX}"));
    let path = project.outside("probe");
    fs::write(&path, "x").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    // Permissions mean nothing to root, unless it gives that up.
    let all_powerful = fs::read(&path).is_ok();
    let plain = project.command(&["run", "--plan", "plan.yaml", "--agent-command", &agent]);
    let output = if all_powerful {
        let mut limited = Command::new("setpriv");
        limited
            .args(["--bounding-set", "-dac_override,-dac_read_search"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(project.repo());
        limited.output().unwrap()
    } else {
        { plain }.output().unwrap()
    };
    let run = project.finished(&output);
    assert!(run.summary["status"].is_string(), "{}", run.stderr);
    assert_eq!(run.event_names().last(), Some(&"run.ended"));
    assert_eq!(project.calls(), 2, "the agent is told once and asked again");
    assert!(
        project.prompt(2).contains("locked"),
        "{}",
        project.prompt(2)
    );
    let warned = warnings(&run);
    assert!(
        warned.iter().any(|text| text.contains("locked")),
        "{warned:?}"
    );
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
}
