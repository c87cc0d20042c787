//! What an agent leaves in any git directory of the repository is put back and told: nothing of it runs later.

use crate::support::project::{Project, Run, plan};
use std::fs;

const ALLOW: &str = "-c protocol.file.allow=always";

/// A repository with a submodule, another work tree, and hooks in an ignored directory. The planted program leaves a
/// canary.
fn project() -> Project {
    let project = Project::new(&[
        ("a.txt", "broken\n"),
        (".gitignore", "/.hooks/\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    let origin = project.outside("origin");
    let origin = origin.to_str().unwrap();
    project.git(&["clone", "--quiet", ".", origin]);
    let allow: Vec<&str> = ALLOW.split(' ').collect();
    project.git(&[&allow[..], &["submodule", "--quiet", "add", origin, "sub"]].concat());
    project.commit_all("submodule");
    let other = project.outside("other");
    project.git(&[
        "worktree",
        "add",
        "--quiet",
        "--detach",
        other.to_str().unwrap(),
    ]);
    fs::create_dir(project.repo().join(".hooks")).unwrap();
    fs::write(project.repo().join(".hooks/helper"), "#!/bin/sh\n").unwrap();
    project.git(&["config", "core.hooksPath", ".hooks"]);
    let evil = project.outside("evil");
    let canary = project.outside("canary");
    fs::write(
        &evil,
        format!("#!/bin/sh\ntouch {}\ncat\n", canary.display()),
    )
    .unwrap();
    project.git(&["update-index", "-q", "--refresh"]);
    project
}

fn attack(project: &Project, script: &str) -> Run {
    let script = format!("chmod 755 $OUT/evil; echo fixed > a.txt\n{script}");
    let agent = project.agent(&script);
    project.run(&agent, &[])
}

/// What people and their editors do after a run.
fn use_git(project: &Project) {
    let uses: [&[&str]; 8] = [
        &["status"],
        &["diff", "--submodule=diff"],
        &["-C", "sub", "status"],
        &["-C", "sub", "log", "-1"],
        &["rebase", "--continue"],
        &["am", "--continue"],
        &["commit", "--allow-empty", "-qm", "mine"],
        &["worktree", "list"],
    ];
    let other = project.outside("other");
    let in_other = ["-C", other.to_str().unwrap(), "status"];
    for words in uses.iter().copied().chain([&in_other[..]]) {
        // Some of these fail, since nothing is under way.
        let _ = project.program("git", words).output().unwrap();
    }
}

/// Attacks, each with a path that the report names.
const ATTACKS: &[(&str, &str)] = &[
    (
        "git -C sub config core.fsmonitor $OUT/evil",
        ".git/modules/sub/config",
    ),
    (
        "mkdir -p .git/modules/sub/hooks; cp $OUT/evil .git/modules/sub/hooks/post-index-change",
        ".git/modules/sub/hooks",
    ),
    (
        "echo '* filter=e' > .git/modules/sub/info/attributes; git -C sub config filter.e.clean $OUT/evil",
        ".git/modules/sub",
    ),
    (
        "rm sub/.git; cp -r .git/modules/sub sub/.git; git config -f sub/.git/config --unset core.worktree; git -C sub config core.fsmonitor $OUT/evil",
        "sub/.git",
    ),
    (
        "mkdir -p x; cp -r .git/modules/sub x/git; git config -f x/git/config core.fsmonitor $OUT/evil; git config -f x/git/config core.worktree $PWD/sub; echo \"gitdir: $PWD/x/git\" > sub/.git; mv x .git/x",
        "sub/.git",
    ),
    (
        "git config extensions.worktreeConfig true; git -C $OUT/other config --worktree core.fsmonitor $OUT/evil",
        ".git/worktrees/other/config.worktree",
    ),
    (
        "cp -r .git .git/x; git config -f .git/x/config core.fsmonitor $OUT/evil; echo $PWD/.git/x > .git/worktrees/other/commondir",
        ".git/worktrees/other/commondir",
    ),
    (
        "cp $OUT/evil .hooks/pre-commit; cp $OUT/evil .hooks/post-index-change",
        ".hooks",
    ),
    (
        "rm -r .hooks; mkdir $OUT/h; cp $OUT/evil $OUT/h/pre-commit; ln -s $OUT/h .hooks",
        ".hooks",
    ),
    (
        "mkdir .git/rebase-merge; cd .git/rebase-merge; echo refs/heads/main > head-name; git rev-parse HEAD | tee onto orig-head > /dev/null; echo \"exec $OUT/evil\" > git-rebase-todo; touch done; echo 1 | tee end msgnum > /dev/null; touch interactive; cd ../..; git rev-parse HEAD > .git/REBASE_HEAD",
        ".git/rebase-merge",
    ),
    (
        "mkdir .git/sequencer; echo \"exec $OUT/evil\" > .git/sequencer/todo",
        ".git/sequencer",
    ),
    (
        "mkdir -p .git/modules/evil; cp -r .git/modules/sub/. .git/modules/evil; git config -f .git/modules/evil/config core.fsmonitor $OUT/evil",
        ".git/modules/evil/",
    ),
    (
        "mkdir -p .git/worktrees/evil; cp -r .git/worktrees/other/. .git/worktrees/evil; touch .git/worktrees/evil/config.worktree",
        ".git/worktrees/evil",
    ),
    (
        "mv .git/modules .git/m; ln -s m .git/modules; git -C sub config core.fsmonitor $OUT/evil",
        ".git/modules",
    ),
    (
        "echo x > .git/description; mkdir .git/branches; echo y > .git/branches/origin",
        ".git/description",
    ),
];

#[test]
fn nothing_that_an_agent_leaves_in_a_git_directory_runs_later() {
    for (script, named) in ATTACKS {
        let project = project();
        let run = attack(&project, script);
        let warned = run.summary["warnings"].to_string();
        assert!(warned.contains(named), "{script}: {warned}");
        let _ = fs::remove_file(project.outside("canary"));
        use_git(&project);
        assert!(
            !project.outside("canary").exists(),
            "{script}\n{}",
            run.stdout
        );
        assert!(
            project.repo().join(".git/modules/sub/HEAD").exists(),
            "{script}"
        );
    }
}

#[test]
fn what_the_configuration_of_git_names_in_the_work_tree_is_protected() {
    let project = Project::new(&[
        ("a.txt", "broken\n"),
        (".githooks/helper", "#!/bin/sh\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    project.git(&["config", "core.hooksPath", ".githooks"]);
    project.git(&["config", "include.path", "../.gitlocal"]);
    let evil = project.outside("evil");
    let canary = project.outside("canary");
    fs::write(&evil, format!("#!/bin/sh\ntouch {}\n", canary.display())).unwrap();
    let run = attack(
        &project,
        "cp $OUT/evil .githooks/post-index-change; git config -f .gitlocal core.fsmonitor $OUT/evil",
    );
    let warned = run.expect(0).summary["warnings"].to_string();
    for named in [".githooks/post-index-change", ".gitlocal"] {
        assert!(warned.contains(named), "{named}: {warned}");
        assert!(!project.repo().join(named).exists(), "{named}");
    }
    let _ = fs::remove_file(&canary);
    use_git(&project);
    assert!(!canary.exists());
}

/// Links through which a write of Sprag's would lead out, and the agent's word for the place.
const LINKS: &[&str] = &[
    "ln -s $OUT/victim .git/sprag-away",
    "mkdir .git/sprag-away; for run in $(ls $OUT/../state/sprag/*/ 2>/dev/null); do ln -sn $OUT/victim .git/sprag-away/$(basename $run); done",
    "mkdir -p .git/logs/refs/remotes; ln -s $OUT/victim .git/logs/refs/remotes/origin",
    "rm -rf .git/logs/refs; ln -s $OUT/victim .git/logs/refs",
    "ln -s $OUT/victim/file .git/logs/refs/stash",
    "ln -s $OUT/victim/file .git/objects/info/alternates",
    "rm -f .git/logs/HEAD; ln $OUT/victim/file .git/logs/HEAD",
    "rm -rf .git/info; ln -s $OUT/victim .git/info",
    "ln -s $OUT/victim/file .git/ORIG_HEAD; ln -s $OUT/victim/file .git/FETCH_HEAD",
];

#[test]
fn no_write_of_a_run_follows_a_link_that_the_agent_has_made() {
    for script in LINKS {
        let project = project();
        let victim = project.outside("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("file"), "theirs\n").unwrap();
        let run = attack(&project, script);
        assert_eq!(
            fs::read_to_string(victim.join("file")).unwrap(),
            "theirs\n",
            "{script}\n{}",
            run.stdout
        );
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 1, "{script}");
    }
}

#[test]
fn a_work_tree_that_was_moved_away_ends_the_run() {
    for link in [
        "ln -s $OUT/victim repo",
        "cp -r $OUT/victim repo",
        "mkdir repo",
    ] {
        let project = project();
        let victim = project.outside("victim");
        fs::create_dir_all(victim.join(".git")).unwrap();
        fs::write(victim.join("plan.yaml"), "theirs\n").unwrap();
        fs::write(victim.join("CLAUDE.md"), "theirs\n").unwrap();
        let run = attack(&project, &format!("cd ..; mv repo moved; {link}"));
        assert_ne!(run.code, 0, "{}", run.stdout);
        for file in ["plan.yaml", "CLAUDE.md"] {
            let text = fs::read_to_string(victim.join(file)).unwrap();
            assert_eq!(text, "theirs\n", "{link}");
        }
        assert!(!victim.join("a.txt").exists(), "{link}");
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains("no longer"), "{said}");
    }
}

#[test]
fn ignored_files_that_an_agent_makes_are_named_and_those_that_run_by_themselves_taken_away() {
    let project = Project::new(&[
        ("a.txt", "broken\n"),
        (
            ".gitignore",
            ".envrc\n.vscode\n.env\n/data\n.claude\nbuild\n.idea\n",
        ),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    fs::write(project.repo().join(".env"), "MINE=1\n").unwrap();
    fs::create_dir(project.repo().join(".idea")).unwrap();
    fs::write(project.repo().join(".idea/mine"), "").unwrap();
    let agent = project.agent(
        "echo 'touch $OUT/canary' > .envrc; mkdir -p .vscode sub/.vscode .claude build data
         echo x > .vscode/tasks.json; echo x > sub/.vscode/tasks.json; echo x > .claude/settings.json
         mkdir .idea/runConfigurations; echo x > .idea/runConfigurations/x.xml; echo x > build/x; echo x > data/x; echo MORE=1 >> .env; echo fixed > a.txt",
    );
    let run = project.run(&agent, &[]).expect(0);
    let warned = run.summary["warnings"].to_string();
    let idea = ".idea/runConfigurations/x.xml";
    for gone in [".envrc", ".vscode", "sub/.vscode", ".claude", idea] {
        assert!(!project.repo().join(gone).exists(), "{gone}");
        assert!(warned.contains(gone), "{warned}");
    }
    assert!(project.repo().join("data/x").exists() && warned.contains("data"));
    assert!(warned.contains(".env, ") && project.repo().join(".idea/mine").exists());
    assert!(project.repo().join("build/x").exists() && project.repo().join(".env").exists());
}
