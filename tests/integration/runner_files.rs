//! The files by which a job speaks to its runner, written to by their path: what is added is taken out and named,
//! and the task is blocked. Without a sandbox: with one most of this cannot even be tried.

use crate::support::project::{Project, Run, plan};
use std::fs;
use std::path::PathBuf;

const CHECK: &str = "grep -q fixed a.txt";
const NAMES: [&str; 5] = ["ENV", "PATH", "OUTPUT", "STATE", "STEP_SUMMARY"];

/// A project whose runner's files lie where a runner has them, `GITHUB_STATE` not yet.
fn project() -> Project {
    let mut project = Project::new(&[("a.txt", "broken\n")]);
    project.env("SPRAG_SANDBOX", "off");
    fs::create_dir_all(file(&project, "ENV").parent().unwrap()).unwrap();
    for name in NAMES {
        let path = file(&project, name);
        if name != "STATE" {
            fs::write(&path, format!("before={name}\n")).unwrap();
        }
        project.env(&format!("GITHUB_{name}"), &path);
    }
    project
}

fn file(project: &Project, name: &str) -> PathBuf {
    let folder = project.beside("runner/_runner_file_commands");
    folder.join(name.to_lowercase())
}

fn assert_blocked(project: &Project, run: &Run, name: &str, shown: &str) {
    assert_eq!(run.code, 3, "{shown}: {}\n{}", run.stdout, run.stderr);
    assert_eq!(run.summary["status"], "blocked", "{shown}");
    let told = format!("{}{}", run.stdout, run.summary);
    assert!(
        told.contains(&format!("(GITHUB_{name})")),
        "{shown}: {told}"
    );
    assert_eq!(
        run.summary["commits"].as_array().unwrap().len(),
        0,
        "{shown}"
    );
    for name in ["ENV", "PATH"] {
        let text = fs::read_to_string(file(project, name)).unwrap();
        assert_eq!(text, format!("before={name}\n"), "{shown}");
    }
    assert!(!file(project, "STATE").exists(), "{shown}");
    for name in ["OUTPUT", "STEP_SUMMARY"] {
        let text = fs::read_to_string(file(project, name)).unwrap();
        let begins = text.starts_with(&format!("before={name}\n"));
        let is_clean = text.lines().all(|line| line != "evil=1");
        assert!(begins && is_clean, "{shown}: {text}");
    }
}

#[test]
fn whoever_writes_to_them_by_their_path_is_found_out() {
    for who in ["agent", "check", "hook", "setup"] {
        let project = project();
        let attack = format!(
            "for f in $(find {} -type f | sort) {}; do echo evil=1 >> $f; done",
            project.beside("runner").display(),
            file(&project, "STATE").display(),
        );
        let when = |it: &str| if it == who { attack.as_str() } else { ":" };
        let check = format!("{}; {CHECK}", when("check"));
        let text = format!("{}setup: [{:?}]\n", plan(&check), when("setup"));
        project.write("plan.yaml", &text);
        project.commit_all("plan");
        project.hook("pre-commit", when("hook"));
        let agent = project.agent(&format!("echo fixed > a.txt; {}", when("agent")));
        let run = project.run(&agent, &[]);
        for name in NAMES {
            assert_blocked(&project, &run, name, who);
        }
        if who != "setup" {
            assert_eq!(run.task(0)["reason"], "policy_violation", "{who}");
        }
        assert_eq!(project.commits(), 2, "{who}");
    }
}

#[test]
fn nothing_in_their_place_is_followed_or_waited_for() {
    for attack in [
        "rm $F; mkfifo $F",
        "rm $F; ln -s $T $F",
        "rm $F; mkdir $F",
        "ln $F $T.link",
        "rm $F",
    ] {
        for name in ["OUTPUT", "STEP_SUMMARY", "ENV"] {
            let project = project();
            project.write("plan.yaml", &plan(CHECK));
            project.commit_all("plan");
            let target = project.outside("target");
            fs::write(&target, "theirs").unwrap();
            let agent = project.agent(&format!(
                "F={} T={}; echo fixed > a.txt; {attack}",
                file(&project, name).display(),
                target.display()
            ));
            let run = project.run(&agent, &[]);
            assert_blocked(&project, &run, name, attack);
            assert_eq!(fs::read_to_string(&target).unwrap(), "theirs", "{attack}");
        }
    }
}
