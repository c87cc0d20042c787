//! What agents write into caches and temporary files reaches neither checks nor later programs.

use super::*;

/// Code that a check loads from the user's caches, and ways to change it.
const CACHED: &[&str] = &[
    ".cache/go-build/ab/x-d",
    ".cache/pre-commit/hook",
    ".cargo/registry/src/lib.rs",
    ".npm/_npx/1/run.js",
    "go/pkg/mod/m@v1/m.go",
];

const CHANGES: &[(&str, &str)] = &[
    ("overwritten", "echo agents > $file"),
    ("replaced", "echo agents > $file.new; mv $file.new $file"),
    ("appended", "echo agents >> $file"),
    ("removed", "rm -f $file"),
    ("a link", "ln -sf /etc/passwd $file"),
    (
        "a second name",
        "ln -f $file hard 2>/dev/null && echo agents > hard; rm -f hard; echo agents > $file",
    ),
    (
        "another directory",
        "mv $(dirname $file) $(dirname $file).away; mkdir -p $(dirname $file); echo agents > $file",
    ),
];

fn with_caches() -> Project {
    let mut project = project(&[]);
    let home = project.beside("home");
    for file in CACHED {
        let path = home.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "users\n").unwrap();
    }
    project.env("GOPATH", home.join("go"));
    project
}

/// A task for each change. Its check sees the user's caches, and the next agent what the one before has left.
fn plan_of_changes(project: &Project) {
    let check = CACHED.iter().map(|file| format!("grep -qx users ~/{file}"));
    let check = format!(
        "{} && test ! -e ~/.cache/mine && touch ~/.cache/of-checks",
        check.collect::<Vec<_>>().join(" && ")
    );
    let task = |number: usize| format!("  - id: t{number}\n    title: T\n");
    let tasks: String = (0..CHANGES.len()).map(task).collect();
    let text =
        format!("title: Caches\nverify:\n  - {{name: caches, run: {check:?}}}\ntasks:\n{tasks}");
    project.write("plan.yaml", &text);
    project.commit_all("plan");
}

fn agent_of_changes() -> String {
    let cases = CHANGES.iter().enumerate();
    let cases: String = cases
        .map(|(number, (_, change))| format!("t{number}) {change};;\n"))
        .collect();
    format!(
        "cd ~; test $SPRAG_TASK_ID = t0 || grep -qx mine .cache/mine || echo FORGOTTEN
         for file in {}; do grep -q . $file || test $SPRAG_TASK_ID != t0 || echo UNSEEN $file
         case $SPRAG_TASK_ID in {cases} esac; done
         echo mine > .cache/mine; cd - > /dev/null; echo $SPRAG_TASK_ID >> a.txt",
        CACHED.join(" ")
    )
}

fn assert_unchanged(project: &Project, about: &str) {
    let home = project.beside("home");
    for file in CACHED {
        let text = fs::read_to_string(home.join(file)).unwrap_or_default();
        assert_eq!(text, "users\n", "{about}: {file}");
    }
    assert!(!home.join(".cache/mine").exists(), "{about}");
    assert!(home.join(".cache/of-checks").exists(), "{about}");
}

#[test]
fn what_an_agent_changes_in_caches_reaches_neither_checks_nor_later_programs() {
    everywhere(&[2, 3], |user, level| {
        let project = with_caches();
        plan_of_changes(&project);
        let Some(run) = run(user, &project, level, &agent_of_changes(), &[]) else {
            return;
        };
        let run = run.expect(0);
        let said = said(&run);
        assert!(
            !said.contains("UNSEEN") && !said.contains("FORGOTTEN"),
            "{said}"
        );
        assert!(
            run.summary["sandbox"]["open"].is_null(),
            "{}",
            run.summary["sandbox"]
        );
        assert_unchanged(&project, &format!("{user:?} at level {level}"));
        let left: Vec<_> = fs::read_dir(project.beside("state/sprag/caches"))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "the copies are gone: {left:?}");
    });
}

#[test]
fn caches_are_private_by_default_and_shared_on_request() {
    for user in User::all() {
        let project = with_caches();
        plan_of_changes(&project);
        let agent = project.agent(&agent_of_changes());
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        run.expect(0);
        assert_unchanged(&project, &format!("{user:?} by default"));
        let mut project = with_caches();
        plan_of_changes(&project);
        let agent = project.agent(&agent_of_changes());
        project.env("SPRAG_CACHES", "shared");
        let Some(run) = by_default(user, &project, &agent) else {
            continue;
        };
        run.expect(1);
        assert!(project.beside("home/.cache/mine").exists());
    }
}

#[test]
fn what_is_open_on_a_machine_without_mounts_is_said_first_and_refused_if_required() {
    let project = with_caches();
    project.write("plan.yaml", &plan("true"));
    project.commit_all("plan");
    let agent = project.agent("echo x > a.txt");
    // A process that may have no namespaces has no mounts either.
    let run = |more: &[&str]| {
        let mut words = vec!["run", "--plan", "plan.yaml", "--agent-command", &agent];
        words.extend(more);
        let command = project.command(&words);
        let limited = "echo 0 > /proc/sys/user/max_mnt_namespaces && exec \"$@\"";
        let mut unshared = project.program(
            "unshare",
            &["--user", "--map-root-user", "sh", "-c", limited, "sh"],
        );
        unshared.arg(command.get_program()).args(command.get_args());
        project.finished(&unshared.output().unwrap())
    };
    let open = "agents can change caches and temporary files that checks use";
    let ended = run(&[]);
    if !ended.stdout.contains("sandbox level 2") {
        eprintln!("SKIPPED: {}{}", ended.stdout, ended.stderr);
        return;
    }
    let first: Vec<&str> = ended.stdout.lines().take(8).collect();
    assert!(first.join("\n").contains(open), "{first:?}");
    assert!(ended.summary["sandbox"]["open"].to_string().contains(open));
    run(&["--sandbox", "require"]).expect(4);
}

#[test]
fn the_temporary_files_of_checks_are_not_the_agents() {
    everywhere(&[2, 3], |user, level| {
        let project = project(&[]);
        let check = "test ! -e $TMPDIR/jest_rs/code && mkdir -p $TMPDIR/jest_rs && touch $TMPDIR/jest_rs/ok && grep -q fixed a.txt";
        project.write("plan.yaml", &plan(check));
        project.commit_all("plan");
        let agent = "mkdir -p $TMPDIR/jest_rs && echo x > $TMPDIR/jest_rs/code
            for other in $TMPDIR/../*; do
              test $other -ef $TMPDIR || { (mkdir -p $other/jest_rs && echo x > $other/jest_rs/code) && echo REACHED $other; }
            done; echo fixed > a.txt";
        let Some(run) = run(user, &project, level, agent, &[]) else {
            return;
        };
        let run = run.expect(0);
        assert!(!said(&run).contains("REACHED"), "{}", said(&run));
    });
}
