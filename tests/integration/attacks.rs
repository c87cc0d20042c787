//! Hostile agents: whatever they plant, none of it runs, leaves the repository or is committed unseen.

use crate::support::project::{Project, Run, plan};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const CHECK: &str = "grep -q fixed a.txt";

/// A project with one task, and a program that leaves a note when anything runs it.
fn project() -> Project {
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))]);
    let canary = project.outside("canary.sh");
    let text = format!(
        "#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n",
        project.outside("canary").display()
    );
    fs::write(&canary, text).unwrap();
    fs::set_permissions(&canary, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

/// Runs an agent that does its task and then `script`, in which `$OUT/canary.sh` is the canary.
fn attack(project: &Project, script: &str) -> Run {
    let agent = project.agent(&format!("echo fixed > a.txt\n{script}\necho Done."));
    project.run(&agent, &[])
}

fn assert_quiet(project: &Project, run: &Run) {
    assert_eq!(
        project.notes("canary"),
        Vec::<String>::new(),
        "{}",
        run.stdout
    );
}

fn assert_committed(project: &Project, run: &Run, shown: &str) {
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), shown);
    assert_eq!(project.commits(), 2);
}

fn warned(run: &Run, what: &str) -> bool {
    let warnings = run.summary["warnings"].as_array().unwrap();
    warnings
        .iter()
        .any(|one| one.as_str().unwrap().contains(what))
}

#[test]
fn planted_hooks_are_removed_and_never_run() {
    let project = project();
    let run = attack(
        &project,
        "for hook in pre-commit commit-msg prepare-commit-msg post-commit post-index-change \
         reference-transaction post-checkout pre-push post-rewrite fsmonitor-watchman; do
           cp \"$OUT/canary.sh\" .git/hooks/$hook
         done",
    );
    assert_quiet(&project, &run);
    assert_committed(&project, &run, "fixed");
    assert!(warned(&run, ".git/hooks"), "{}", run.summary["warnings"]);
    assert!(!project.repo().join(".git/hooks/pre-commit").exists());
}

#[test]
fn planted_configuration_runs_nothing_and_is_undone() {
    let keys = [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "diff.external",
        "gpg.program",
        "credential.helper",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "alias.update-ref",
    ];
    for kind in ["keys", "hooks", "process"] {
        let project = project();
        let before = fs::read(project.repo().join(".git/config")).unwrap();
        let planted = match kind {
            "hooks" => "mkdir \"$OUT/hooks\"
                for hook in pre-commit post-index-change reference-transaction; do
                  cp \"$OUT/canary.sh\" \"$OUT/hooks/$hook\"
                done
                git config core.hooksPath \"$OUT/hooks\""
                .to_owned(),
            "process" => "git config filter.x.process \"$OUT/canary.sh\"
                git config filter.x.required true"
                .to_owned(),
            _ => keys
                .iter()
                .map(|key| format!("git config {key} \"$OUT/canary.sh\"\n"))
                .collect(),
        };
        let script = format!(
            "mkdir -p .git/info\necho '* filter=x diff=x' > .git/info/attributes\n\
             {planted}\ngit config commit.gpgSign true\ngit config core.attributesFile \"$OUT/attributes\""
        );
        let run = attack(&project, &script);
        assert_quiet(&project, &run);
        assert_committed(&project, &run, "fixed");
        assert!(warned(&run, ".git/config"), "{}", run.summary["warnings"]);
        let after = fs::read(project.repo().join(".git/config")).unwrap();
        assert_eq!(after, before, "{kind}");
        assert!(!project.repo().join(".git/info/attributes").exists());
    }
}

#[test]
fn an_attribute_file_in_the_tree_cannot_bring_a_filter_along() {
    let project = project();
    let run = attack(
        &project,
        "git config filter.x.clean 'echo evil'\necho '*.txt filter=x' > .gitattributes",
    );
    assert_committed(&project, &run, "fixed");
}

#[test]
fn a_work_tree_set_elsewhere_is_not_followed() {
    let project = project();
    let run = attack(
        &project,
        "mkdir \"$OUT/other\"; echo theirs > \"$OUT/other/a.txt\"
         git config core.worktree \"$OUT/other\"",
    );
    assert_committed(&project, &run, "fixed");
    let theirs = fs::read_to_string(project.outside("other/a.txt")).unwrap();
    assert_eq!(theirs, "theirs\n");
}

#[test]
fn a_git_directory_that_is_not_the_one_of_the_start_is_refused() {
    let scripts = [
        "rm -rf .git",
        "cp -r .git \"$OUT/git\"; rm -rf .git; echo \"gitdir: $OUT/git\" > .git",
        "cp -r .git \"$OUT/git\"; rm -rf .git; ln -s \"$OUT/git\" .git",
        "rm -rf .git; git init -q . ; git add a.txt; git -c user.name=x -c user.email=x commit -qm x",
    ];
    for script in scripts {
        let project = project();
        let run = attack(&project, script);
        let shown = format!("{script}\n{}\n{}", run.stdout, run.stderr);
        assert_ne!(run.code, 0, "{shown}");
        assert_eq!(
            run.summary["commits"].as_array().unwrap().len(),
            0,
            "{shown}"
        );
        let copy = project.outside("git");
        if copy.exists() {
            let master = fs::read_to_string(copy.join("logs/HEAD")).unwrap();
            assert_eq!(master.lines().count(), 1, "{shown}");
        }
    }
}

#[test]
fn hidden_changes_are_seen_verified_and_committed() {
    let scripts = [
        "git update-index --assume-unchanged a.txt",
        "git update-index --skip-worktree a.txt",
        "git config core.fileMode false",
        "git config core.checkStat minimal; git config core.trustctime false; touch -r plan.yaml a.txt",
        "git config core.sparseCheckout true; echo plan.yaml > .git/info/sparse-checkout",
        "git add a.txt; git -c user.name=x -c user.email=x@y commit -qm theirs",
    ];
    for script in scripts {
        let project = project();
        let run = attack(&project, script);
        let shown = format!("{script}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.code, 0, "{shown}");
        assert_eq!(run.task(0)["turns"][0]["assessment"], "changed", "{shown}");
        assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed", "{shown}");
        assert_eq!(project.status(), "", "{shown}");
    }
}

#[test]
fn new_files_that_the_agent_hides_by_ignore_rules_are_seen() {
    for script in [
        "echo secret > hidden; echo hidden >> .git/info/exclude",
        "echo secret > hidden; echo hidden > \"$OUT/ignore\"; git config core.excludesFile \"$OUT/ignore\"",
    ] {
        let project = project();
        let run = attack(&project, script);
        assert_eq!(run.code, 0, "{script}\n{}", run.stdout);
        assert_eq!(project.git(&["show", "HEAD:hidden"]), "secret", "{script}");
    }
}

#[test]
fn an_only_change_behind_an_edited_gitignore_is_a_change() {
    let project = project();
    let agent = project.agent("echo hidden > .gitignore; echo x > hidden; echo Done.");
    let run = project.run(&agent, &["--max-retries", "0"]);
    assert_eq!(run.task(0)["turns"][0]["assessment"], "changed");
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_eq!(run.task(0)["reason"], "verification_failed");
}

#[test]
fn moved_refs_are_put_back_and_block_the_task() {
    let scripts = [
        ("git tag evil", "refs/tags/evil"),
        ("git branch evil", "refs/heads/evil"),
        ("git checkout -q -b evil", "refs/heads/evil"),
        (
            "git replace HEAD $(git commit-tree -m x HEAD^{tree})",
            "refs/replace/",
        ),
        (
            "git update-ref refs/notes/commits HEAD",
            "refs/notes/commits",
        ),
        (
            "git symbolic-ref refs/heads/evil refs/heads/main",
            "refs/heads/evil",
        ),
    ];
    for (script, name) in scripts {
        let project = project();
        let base = project.head();
        let script = format!(
            "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x\n{script}"
        );
        let run = attack(&project, &script);
        let shown = format!("{script}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.code, 3, "{shown}");
        assert_eq!(run.task(0)["reason"], "policy_violation", "{shown}");
        assert_eq!(project.head(), base, "{shown}");
        assert_eq!(project.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        let refs = project.git(&["for-each-ref", "--format=%(refname)"]);
        assert!(!refs.contains(name), "{shown}\n{refs}");
        assert!(
            run.dir.unwrap().join("patches/fix.patch").exists(),
            "{shown}"
        );
    }
}

#[test]
fn what_the_code_of_a_check_does_to_refs_and_history_is_put_back_and_told() {
    let project = project();
    project.git(&["commit", "--quiet", "--allow-empty", "-m", "second"]);
    project.write("check.sh", "grep -q fixed a.txt\n");
    project.write("plan.yaml", &plan("sh check.sh"));
    project.commit_all("check");
    project.git(&["branch", "release"]);
    let base = project.head();
    let evil = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x
        evil=$(git commit-tree -m evil HEAD^{tree}); git update-ref refs/heads/release $evil; git branch evil
        git replace $(git rev-parse HEAD:a.txt) $(echo evil | git hash-object -w --stdin)
        git rev-parse HEAD > .git/shallow";
    let run = attack(&project, &format!("cat > check.sh << 'E'\n{evil}\nE"));
    let shown = format!("{}\n{}", run.stdout, run.summary["warnings"]);
    for (name, left) in [("release", Some(&base)), ("evil", None), ("replace/", None)] {
        let listed = project.git(&[
            "for-each-ref",
            "--format=%(objectname)",
            &format!("refs/**/{name}**"),
        ]);
        assert_eq!(listed, left.cloned().unwrap_or_default(), "{name}: {shown}");
        assert!(warned(&run, &format!("/{name}")), "{shown}");
    }
    assert!(warned(&run, ".git/shallow"), "{shown}");
    assert!(!project.repo().join(".git/shallow").exists(), "{shown}");
}

#[test]
fn an_amended_commit_is_rewritten_history() {
    let project = project();
    let base = project.head();
    let run = attack(
        &project,
        "git -c user.name=x -c user.email=x@y commit -qa --amend -m theirs",
    );
    assert_eq!(run.code, 3, "{}", run.stdout);
    assert_eq!(run.task(0)["reason"], "policy_violation");
    assert_eq!(project.head(), base);
}

#[test]
fn a_run_directory_that_is_a_link_is_refused_and_its_target_left_alone() {
    let project = project();
    fs::create_dir(project.outside("target")).unwrap();
    let link = project.outside("link");
    std::os::unix::fs::symlink(project.outside("target"), &link).unwrap();
    let agent = project.agent("echo fixed > a.txt; echo Done.");
    let run = project.run(&agent, &["--run-dir", link.to_str().unwrap()]);
    assert_eq!(run.code, 4, "{}", run.stderr);
    assert_eq!(project.calls(), 0);
    assert_eq!(fs::read_dir(project.outside("target")).unwrap().count(), 0);
}

/// A turn that is cut off by the death of Sprag may have left anything: none of it is believed when the
/// run is taken up.
#[test]
fn what_a_dead_turn_planted_is_not_believed_when_the_run_is_taken_up() {
    let project = project();
    let two = format!("{}  - id: second\n    title: Second\n", plan(CHECK));
    project.write("plan.yaml", &two);
    project.commit_all("plan");
    let base = project.head();
    let agent = project.agent(
        "if [ \"$N\" = 1 ]; then
           mkdir -p .sprag
           echo 'verify: [ \"true\" ]' > .sprag/config.yaml
           echo 'setup: [ \"touch '$OUT'/canary\" ]' >> .sprag/config.yaml
           sed -i 's/    title: /    status: done\\n    title: /' plan.yaml
           cp \"$OUT/canary.sh\" .git/hooks/pre-commit
           cp \"$OUT/canary.sh\" .git/hooks/post-index-change
           git config core.fsmonitor \"$OUT/canary.sh\"
           git tag evil
           kill_sprag
           sleep 60
         fi
         echo Done.",
    );
    let killed = project.run(&agent, &[]);
    assert_eq!(killed.code, -9, "{}", killed.stdout);
    let run = project.sprag(&["run", "--resume", "--agent-command", &agent]);
    assert_quiet(&project, &run);
    assert_eq!(run.code, 3, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(run.task(0)["reason"], "policy_violation");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("refs/tags/evil"), "{message}");
    let held = "removed from task fix and kept as patches/fix-held-02.patch: .sprag/config.yaml";
    assert!(run.stdout.contains(held), "{}", run.stdout);
    assert_eq!(project.head(), base);
    assert_eq!(run.task(1)["status"], "pending");
    assert!(
        !Path::new(&project.repo())
            .join(".git/hooks/pre-commit")
            .exists()
    );
}

/// Puts an object of another kind or content under the id of the file that will be committed, and under that
/// of the tree that holds nothing else.
const PLANTED: &str = "id=$(git hash-object a.txt)
    other=$(echo evil | git hash-object -w --stdin)
    tree=$(printf \"100644 blob $id\\ta.txt\\n\" | git mktree --missing)
    place() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }
    for one in $id $tree; do
      mkdir -p $(dirname $(place $one)); rm -f $(place $one); cp $(place $other) $(place $one)
    done";

#[test]
fn an_object_planted_under_the_id_that_will_be_committed_is_not_committed() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let agent = project.agent(&format!("echo fixed > a.txt\n{PLANTED}\necho Done."));
    let prompt = ["run", "--prompt", "Fix", "--agent-command", &agent];
    let run = project.sprag(&[&prompt[..], &["--verify", CHECK]].concat());
    assert_committed(&project, &run, "fixed");
    assert!(warned(&run, "object store"), "{}", run.summary["warnings"]);
    assert_eq!(project.git(&["ls-tree", "--name-only", "HEAD"]), "a.txt");
    project.git(&["fsck", "--strict"]);
}

#[test]
fn what_stands_in_the_place_of_a_protected_directory_is_that_directory_changed() {
    for script in [
        "ln -s . .github",
        "mkdir -p .GITHUB/workflows; echo on: push > .GITHUB/workflows/x.yml",
        "echo x > .claude",
        "mkdir .claude; cd .claude; git init -q
         git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x; cd ..; git add .claude",
        "git init -q .claude; echo '{}' > .claude/settings.json; echo x > other",
        "mkdir .github; printf x > \"$(printf '.github/\\377')\"",
    ] {
        let mut project = project();
        project.env("SPRAG_ON_PROTECTED", "block");
        let run = attack(&project, script);
        assert_ne!(run.code, 0, "{script}\n{}", run.stdout);
        assert_eq!(project.commits(), 1, "{script}");
        assert!(run.stdout.contains("protected paths"), "{}", run.stdout);
    }
}

#[test]
fn what_progress_leaves_out_is_protected_all_the_same() {
    let exempt = format!("progress:\n  ignore: [\".github/**\"]\n{}", plan(CHECK));
    let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &exempt)]);
    project.env("SPRAG_ON_PROTECTED", "block");
    let run = attack(&project, "mkdir -p .github; echo x > .github/x.yml");
    assert_ne!(run.code, 0, "{}", run.stdout);
    assert_eq!(project.commits(), 1);
    assert!(run.stdout.contains("protected paths"), "{}", run.stdout);
}

#[test]
fn what_the_plan_has_run_is_not_the_agents_to_change() {
    for (script, told) in [
        ("sed -i '1i setup: [touch evil]' plan.yaml", true),
        ("sed -i 's/grep -q fixed a.txt/true/' plan.yaml", true),
        (
            "sed -i 's/    title: /    agent_command: evil\\n    title: /' plan.yaml",
            true,
        ),
        (
            "sed -i '1i goal: More' plan.yaml; echo '# a note' >> plan.yaml",
            false,
        ),
    ] {
        let project = project();
        let run = attack(&project, script);
        let shown = format!("{script}\n{}\n{}", project.read("plan.yaml"), run.stdout);
        assert_eq!(
            run.stdout.contains("only its words may change"),
            told,
            "{shown}"
        );
        assert_eq!(
            (run.code, project.commits()),
            if told { (3, 1) } else { (0, 2) },
            "{shown}"
        );
    }
}
