//! What an agent can make of `.git`, of Sprag's own git directory and of the files that git reads: no
//! canary runs, nothing hangs, what was broken is put back and told, and the change is seen.

use crate::support::project::{Project, Run, plan};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};

const CHECK: &str = "grep -q fixed a.txt";

fn project() -> Project {
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan(CHECK))]);
    let canary = project.outside("canary.sh");
    let note = project.outside("canary");
    fs::write(
        &canary,
        format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", note.display()),
    )
    .unwrap();
    fs::set_permissions(&canary, fs::Permissions::from_mode(0o755)).unwrap();
    project
}

fn attack(project: &Project, script: &str) -> Run {
    let agent = project.agent(&format!("echo fixed > a.txt\n{script}\necho Done."));
    let run = project.run(&agent, &["--max-retries", "0"]);
    assert_eq!(project.notes("canary"), Vec::<String>::new(), "{script}");
    run
}

fn told(run: &Run) -> String {
    let warnings = run.summary["warnings"].as_array().unwrap();
    let lines: Vec<&str> = warnings.iter().map(|one| one.as_str().unwrap()).collect();
    lines.join("\n")
}

/// The fix and nothing else is committed, the repository is whole, and what happened is told.
fn assert_survived(project: &Project, run: &Run, script: &str, said: &str) {
    let shown = format!("{script}\n{}\n{}", run.stdout, run.stderr);
    assert_eq!(run.code, 0, "{shown}");
    assert!(told(run).contains(said), "{shown}");
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed", "{shown}");
    assert_eq!(project.commits(), 2, "{shown}");
    assert_eq!(project.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    let changed = project.git(&["diff", "--name-only", "HEAD~", "HEAD"]);
    assert_eq!(changed, "a.txt\nplan.yaml", "{shown}");
    project.git(&["fsck", "--strict"]);
}

#[test]
fn a_pipe_or_device_in_the_git_directory_holds_nothing_up() {
    for (name, made) in [
        ("HEAD", "mkfifo"),
        ("index", "ln -s /dev/zero"),
        ("FETCH_HEAD", "mkfifo"),
        ("shallow", "ln -s /dev/zero"),
        ("logs/refs/heads/main", "mkfifo"),
        ("objects/info/commit-graph", "mkfifo"),
    ] {
        let project = project();
        let script = format!("rm -f .git/{name}; {made} .git/{name}");
        let run = attack(&project, &script);
        let said = format!(".git/{name} was a pipe or device on which git would block forever");
        assert_survived(&project, &run, &script, &said);
    }
}

#[test]
fn a_pipe_or_device_in_the_place_of_the_branch_is_its_deletion() {
    for made in ["mkfifo", "ln -s /dev/zero"] {
        let project = project();
        let base = project.head();
        let file = ".git/refs/heads/main";
        let run = attack(&project, &format!("rm {file}; {made} {file}"));
        assert_eq!(run.code, 3, "{made}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.task(0)["reason"], "policy_violation", "{made}");
        assert_eq!(project.head(), base, "{made}");
    }
}

#[test]
fn a_pipe_that_rules_the_work_tree_is_removed_once_it_holds_git() {
    for (made, path) in [
        ("mkdir s; mkfifo s/.gitignore", "s/.gitignore"),
        ("mkfifo .gitattributes", ".gitattributes"),
        (
            "mkdir -p n/.git/objects n/.git/refs; mkfifo n/.git/HEAD",
            "n/.git/HEAD",
        ),
        (
            "mkdir -p \"$OUT/g/objects\" \"$OUT/g/refs\" n; mkfifo \"$OUT/g/HEAD\"; echo \"gitdir: $OUT/g\" > n/.git",
            "agent/g/HEAD",
        ),
    ] {
        let project = project();
        let run = attack(&project, made);
        let said = format!("{path} was a pipe or device on which git would block forever");
        assert_survived(&project, &run, made, &said);
    }
}

#[test]
fn pipes_and_devices_that_git_does_not_read_are_left_alone() {
    let project = project();
    let script = "mkfifo pipe; mkdir d; mkfifo d/pipe; ln -s /dev/zero zeros; ln -s \"$OUT\" out; mkfifo \"$OUT/.gitignore\"";
    let run = attack(&project, script);
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(told(&run), "");
    let pipe = fs::symlink_metadata(project.repo().join("d/pipe")).unwrap();
    assert!(pipe.file_type().is_fifo() && project.outside(".gitignore").exists());
    assert_eq!(
        project.git(&["cat-file", "blob", "HEAD:zeros"]),
        "/dev/zero"
    );
}

#[test]
fn a_plan_that_became_something_else_holds_nothing_up() {
    for script in [
        "mkfifo plan.yaml",
        "ln -s /dev/zero plan.yaml",
        "mkdir plan.yaml",
        "truncate -s 200M plan.yaml",
    ] {
        let project = project();
        let run = attack(&project, &format!("rm plan.yaml; {script}"));
        assert_eq!(run.code, 0, "{script}\n{}\n{}", run.stdout, run.stderr);
        let plan = project.git(&["show", "HEAD:plan.yaml"]);
        assert!(plan.contains("status: done"), "{script}: {plan}");
    }
}

#[test]
fn a_git_directory_without_what_git_needs_is_put_back() {
    for (script, said) in [
        ("rm .git/HEAD", "changes to .git/HEAD were undone"),
        (
            "echo rubbish > .git/HEAD",
            "changes to .git/HEAD were undone",
        ),
        (
            "echo 'ref: ../../../etc/passwd' > .git/HEAD",
            "changes to .git/HEAD were undone",
        ),
        ("echo rubbish > .git/index", "was invalid and was restored"),
        ("rm .git/index", ""),
    ] {
        let project = project();
        let run = attack(&project, script);
        assert_survived(&project, &run, script, said);
    }
}

#[test]
fn refs_that_git_cannot_read_any_more_are_put_back_one_by_one() {
    for script in [
        "git pack-refs --all; echo rubbish > .git/packed-refs",
        "rm -rf .git/refs; rm -f .git/packed-refs",
        "rm -rf .git/refs; touch .git/refs",
    ] {
        let project = project();
        project.git(&["tag", "v1"]);
        project.git(&["branch", "other"]);
        let refs = project.git(&["for-each-ref"]);
        let run = attack(&project, script);
        assert_eq!(run.code, 3, "{script}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.task(0)["reason"], "policy_violation", "{script}");
        assert_eq!(project.git(&["for-each-ref"]), refs, "{script}");
    }
}

#[test]
fn an_object_store_that_is_gone_ends_the_task_and_hides_nothing() {
    let project = project();
    let run = attack(&project, "rm -rf .git/objects");
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert_eq!(run.summary["commits"].as_array().unwrap().len(), 0);
    assert!(
        told(&run).contains("was removed or replaced during the run"),
        "{}",
        told(&run)
    );
    assert_eq!(project.read("a.txt"), "fixed\n");
}

/// A loose object is not hashed when it is read: one rewritten to hold what the work tree has would
/// make a change look like none.
#[test]
fn an_object_that_is_not_what_its_name_says_hides_no_change() {
    for attributes in ["", "*.txt text\n"] {
        let project = project();
        project.write(".gitattributes", attributes);
        project.commit_all("attributes");
        let object = project.git(&["rev-parse", "HEAD:a.txt"]);
        let forged = project.outside("forged");
        fs::write(&forged, "fixed\n").unwrap();
        let other = project.git(&["hash-object", "-w", forged.to_str().unwrap()]);
        let path = |oid: &str| format!(".git/objects/{}/{}", &oid[..2], &oid[2..]);
        let run = attack(
            &project,
            &format!("cp -f {} {}", path(&other), path(&object)),
        );
        assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
        assert_eq!(run.task(0)["turns"][0]["assessment"], "changed");
        assert_eq!(project.git(&["rev-parse", "HEAD:a.txt"]), other);
    }
}

#[test]
fn what_is_done_to_the_private_git_directory_ends_the_task() {
    let private = "P=$(dirname \"$(dirname \"$SPRAG_PROMPT_FILE\")\")/git";
    for script in [
        "git config --file \"$P/git/config\" core.fsmonitor \"$OUT/canary.sh\"",
        "git config --file \"$P/git/config\" filter.x.clean \"$OUT/canary.sh\"; echo '* filter=x' > .gitattributes",
        "cp \"$OUT/canary.sh\" \"$P/no-hooks/post-index-change\"",
        "mkdir -p \"$P/hooks/hooks\"; cp \"$OUT/canary.sh\" \"$P/hooks/hooks/pre-commit\"",
        "echo a.txt > \"$P/git/info/exclude\"",
        "GIT_DIR=\"$P/git\" GIT_WORK_TREE=. git update-index --skip-worktree a.txt",
        "rm -rf \"$P\"",
        "rm -rf \"$P/recorded\"",
    ] {
        let mut project = project();
        // A sandbox would keep the agent from there: this is what holds without one.
        project.env("SPRAG_SANDBOX", "off");
        let base = project.head();
        let config = fs::read(project.repo().join(".git/config")).unwrap();
        let run = attack(&project, &format!("{private}; {script}"));
        assert_eq!(run.code, 1, "{script}\n{}\n{}", run.stdout, run.stderr);
        let said = "is unusable: it was changed or removed during the run, and not by Sprag";
        assert!(told(&run).contains(said), "{script}\n{}", told(&run));
        assert_eq!(project.head(), base, "{script}");
        assert_eq!(project.read("a.txt"), "fixed\n", "{script}");
        assert_eq!(
            fs::read(project.repo().join(".git/config")).unwrap(),
            config,
            "{script}"
        );
    }
}

/// Before a run, nothing in `.git` is the agent's doing: it is named and left as it is.
#[test]
fn a_damaged_git_directory_is_named_before_any_turn() {
    for (script, named) in [
        ("rm .git/HEAD; mkfifo .git/HEAD", "/.git/HEAD is a pipe"),
        (
            "mkfifo .git/objects/info/alternates",
            "/alternates is a pipe",
        ),
        ("mkdir .git/packed-refs", "/packed-refs is a directory"),
        (
            "rm -r .git/objects; touch .git/objects",
            "/objects is a file",
        ),
        ("mv .git g; mkfifo .git", "/.git is a pipe"),
        ("rm .git/HEAD", "/.git/HEAD is missing"),
        (": > .git/HEAD", "/.git/HEAD has lost its content"),
        (": > .git/index", "/.git/index has lost its content"),
        (
            ": > .git/refs/heads/main",
            "/refs/heads/main has lost the id",
        ),
    ] {
        let project = project();
        let made = project.program("sh", &["-c", script]).status();
        assert!(made.unwrap().success(), "{script}");
        let agent = project.agent("echo fixed > a.txt");
        let run = project.run(&agent, &[]).expect(4);
        assert!(run.stderr.contains(named), "{script}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{script}: {}", run.stderr);
        assert_eq!(project.calls(), 0, "{script}");
    }
}

/// A check runs code that the agent wrote, after the look at what the turn did.
#[test]
fn what_a_check_does_to_the_repository_is_undone_too() {
    for script in [
        "mkfifo \"$OUT/pipe\"; git config include.path \"$OUT/pipe\"",
        "git config core.fsmonitor \"$OUT/canary.sh\"; cp \"$OUT/canary.sh\" .git/hooks/post-index-change",
        "rm .git/HEAD; mkfifo .git/HEAD",
        "rm .git/index; ln -s /dev/zero .git/index",
    ] {
        let project = project();
        let out = project.outside("");
        let check = format!("OUT={}; {CHECK}; {script}", out.display());
        project.write("plan.yaml", &plan(&check));
        project.commit_all("check");
        let agent = project.agent("echo fixed > a.txt; echo Done.");
        let run = project.run(&agent, &["--max-retries", "0"]);
        assert_eq!(project.notes("canary"), Vec::<String>::new(), "{script}");
        assert_eq!(run.code, 0, "{script}\n{}\n{}", run.stdout, run.stderr);
        assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed", "{script}");
        assert_eq!(project.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert!(!told(&run).is_empty(), "{script}");
    }
}

#[test]
fn configuration_of_every_kind_is_undone_and_changes_nothing() {
    let project = project();
    let before = fs::read(project.repo().join(".git/config")).unwrap();
    let script = "printf '[core]\\nfsmonitor=%s\\nhooksPath=%s\\n' \"$OUT/canary.sh\" \"$OUT\" > \"$OUT/included\"
        for key in core.gitProxy core.sshCommand core.askPass core.alternateRefsCommand sequence.editor \
            uploadpack.packObjectsHook gpg.program gpg.ssh.program gpg.x509.program credential.helper \
            merge.evil.driver diff.evil.command diff.external interactive.diffFilter \
            remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs trailer.x.command; do
          git config $key \"$OUT/canary.sh\"
        done
        git config alias.status \"!$OUT/canary.sh\"; git config submodule.x.update \"!$OUT/canary.sh\"
        git config include.path \"$OUT/included\"; git config includeIf.gitdir:/**.path \"$OUT/included\"
        git config core.excludesFile \"$OUT/x\"; git config core.attributesFile \"$OUT/x\"; echo '* filter=x' > \"$OUT/x\"
        git config url.ext::evil.insteadOf file://; git config core.untrackedCache true; git config index.version 4
        git config core.bare true; git config extensions.worktreeConfig true; git config extensions.evil 1
        git config core.repositoryFormatVersion 1; echo '[core]' > .git/config.worktree
        git config --file .git/config core.worktree /etc
        mkdir -p .git/info; echo x > .git/info/grafts; echo '!/*' > .git/info/sparse-checkout
        mkdir -p \"$OUT/alt\"; echo \"$OUT/alt\" > .git/objects/info/alternates";
    let run = attack(&project, script);
    assert_survived(&project, &run, script, "changes to .git/config were undone");
    let after = fs::read(project.repo().join(".git/config")).unwrap();
    assert_eq!(after, before);
    for name in ["config.worktree", "objects/info/alternates", "info/grafts"] {
        assert!(!project.repo().join(".git").join(name).exists(), "{name}");
    }
}

#[test]
fn a_linked_work_trees_pointers_are_put_back() {
    let project = project();
    let linked = project.outside("linked");
    let dir = linked.to_str().unwrap();
    project.git(&["worktree", "add", "--quiet", "-b", "other", dir]);
    let own = project.repo().join(".git/worktrees/linked");
    for name in ["commondir", "gitdir"] {
        let before = fs::read(own.join(name)).unwrap();
        let script = format!(
            "echo fixed > a.txt; echo /etc > {}; echo Done.",
            own.join(name).display()
        );
        let agent = project.agent(&script);
        let args = [
            "run",
            "-C",
            dir,
            "--prompt",
            "x",
            "--verify",
            CHECK,
            "--agent-command",
            &agent,
        ];
        let run = project.sprag(&args);
        assert!(
            told(&run).contains("were undone"),
            "{name}\n{}\n{}",
            run.stdout,
            run.stderr
        );
        assert_eq!(fs::read(own.join(name)).unwrap(), before, "{name}");
        project.git(&["-C", dir, "reset", "--quiet", "--hard", "main"]);
    }
}

#[test]
fn a_path_too_long_for_the_system_is_not_lost_in_silence() {
    let project = project();
    // The shell goes down one step at a time, as far as the system lets it.
    let script = "n=$(printf 'd%.0s' $(seq 200)); i=0
        while [ $i -lt 25 ] && mkdir $n 2>/dev/null && cd -P $n 2>/dev/null; do i=$((i+1)); echo x > f 2>/dev/null; done";
    let run = attack(&project, script);
    let message = run.task(0)["message"].as_str().unwrap().to_owned();
    let whole = project.status().is_empty() && run.code == 0;
    let refused = run.code == 1 && message.contains("cannot read");
    assert!(whole || refused, "{}\n{message}", run.code);
}

#[test]
fn a_file_too_large_for_github_is_committed_and_named() {
    let project = project();
    let run = attack(&project, "truncate -s 101M big.bin");
    assert_eq!(run.code, 0, "{}", run.stdout);
    let said = "big.bin has 101 MiB; GitHub refuses files larger than 100 MiB";
    assert_eq!(told(&run), said);
}

#[test]
fn programs_that_the_work_tree_brings_along_are_not_run() {
    let mut project = project();
    let rest = std::env::var("PATH").unwrap();
    let bin = project.repo().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("keep"), "").unwrap();
    project.commit_all("bin");
    project.env("PATH", format!("{}:bin:.:{rest}", bin.display()));
    let run = attack(
        &project,
        "for name in git git-lfs gpg; do cp \"$OUT/canary.sh\" bin/$name; cp \"$OUT/canary.sh\" $name; done",
    );
    assert_eq!(run.code, 0, "{}\n{}", run.stdout, run.stderr);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed");
}
