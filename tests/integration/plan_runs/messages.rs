//! The commit's message: the agent's last suggestion of this task, made harmless, or the default.

use crate::support::project::Project;
use crate::support::tasks::{FIX, fixable, several, subjects};

/// The whole message of the commit that an agent with this final message leads to.
fn message(said: &str) -> (Project, String) {
    let project = fixable();
    std::fs::write(project.outside("said"), said).unwrap();
    let agent = project.agent("echo fixed > a.txt; cat $OUT/said");
    project.run(&agent, &[]).expect(0);
    assert_eq!(project.commits(), 3);
    let message = project.git(&["log", "-1", "--format=%B"]);
    (project, message)
}

#[test]
fn prompt() {
    let project = fixable();
    project.by(FIX, &[]).expect(0);
    let prompt = project.prompt(1);
    let lines: Vec<&str> = prompt.lines().map(str::trim).collect();
    for line in [
        "# Task fix: Fix a.txt",
        "a.txt must say fixed",
        "## Plan: Example",
        "- DO NOT commit your changes - the executor will handle the commit",
        "SUGGESTED_COMMIT_MESSAGE: <message>",
        "FAILED: <summary in one line>",
        "ALREADY_SATISFIED: <why>",
    ] {
        assert!(lines.contains(&line), "{line:?} is not a line of\n{prompt}");
    }
    assert!(prompt.contains("Nobody will answer questions or grant permission."));
    // The same text is in the file that the variable names.
    let env = std::fs::read_to_string(project.outside("env-1")).unwrap();
    assert!(env.contains("SPRAG_TASK_ID=fix\n"));
    assert!(env.contains("SPRAG_ATTEMPT=1\n"));
    assert!(env.contains("SPRAG_TURN=1\n"));
    assert!(env.contains("SPRAG_PURPOSE=implement\n"));
}

#[test]
fn suggested_message() {
    let (project, message) = message(
        "SUGGESTED_COMMIT_MESSAGE: first\nmore\nSUGGESTED_COMMIT_MESSAGE:    Fix the file   \n",
    );
    let run_id = project.run_dirs()[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        message,
        format!("Fix the file\n\nSprag-Task: plan/fix\nSprag-Run: {run_id}")
    );
    assert_eq!(
        project
            .git(&["log", "-1", "--format=%(trailers:key=Sprag-Task,valueonly)"])
            .trim(),
        "plan/fix"
    );
}

#[test]
fn no_message_of_another_task_or_turn() {
    let project = several(&["one", "two"]);
    let agent = project.agent(
        "touch $SPRAG_TASK_ID; case $N in 1) echo 'SUGGESTED_COMMIT_MESSAGE: Make the first' ;; 2) touch bad; echo 'SUGGESTED_COMMIT_MESSAGE: wrong' ;; *) rm bad; echo Done. ;; esac",
    );
    project.run(&agent, &[]).expect(0);
    assert_eq!(
        subjects(&project),
        [
            "[sprag] Complete task two: Make two",
            "Make the first",
            "plan",
            "base"
        ]
    );
}

#[test]
fn special_characters() {
    let verbatim = [
        r#"Fix "it" \n % %H $(touch pwned) `touch pwned` ${HOME} $HOME; touch pwned \u{e4}"#,
        "-m --amend --no-verify",
        "# not a comment",
    ];
    for text in verbatim {
        let (project, message) = message(&format!("SUGGESTED_COMMIT_MESSAGE: {text}\n"));
        assert_eq!(message.lines().next(), Some(text));
        assert!(!project.repo().join("pwned").exists());
    }
}

#[test]
fn special_characters_in_the_plan() {
    let project = Project::new(&[]);
    let title = r#"Fix "a" & $(touch pwned); -m <b>"#;
    project.write(
        "plan.yaml",
        &format!(
            "title: Example\nverify: [ 'true' ]\ntasks:\n  - id: fix\n    title: {}\n",
            serde_json::json!(title)
        ),
    );
    project.commit_all("plan");
    project.by("touch new; echo Done.", &[]).expect(0);
    assert_eq!(
        subjects(&project)[0],
        format!("[sprag] Complete task fix: {title}")
    );
    assert!(!project.repo().join("pwned").exists());
}

#[test]
fn identity_in_actions() {
    let mut project = fixable();
    for (name, value) in [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_SERVER_URL", "https://github.example"),
        ("GITHUB_REPOSITORY", "owner/name"),
        ("GITHUB_RUN_ID", "42"),
    ] {
        project.env(name, value);
    }
    let temp = project.outside("runner-temp");
    std::fs::create_dir(&temp).unwrap();
    project.env("RUNNER_TEMP", &temp);
    project.by(FIX, &[]).expect(0);
    assert_eq!(
        project.git(&["log", "-1", "--format=%an|%cn"]),
        "github-actions[bot]|github-actions[bot]"
    );
    let link = project.git(&["log", "-1", "--format=%(trailers:key=Sprag-Run,valueonly)"]);
    assert_eq!(
        link.trim(),
        "https://github.example/owner/name/actions/runs/42"
    );
    assert_eq!(std::fs::read_dir(temp.join("sprag")).unwrap().count(), 1);
}
