//! What an agent writes into the plan file alone is no change, and is put right.

use crate::support::has;
use crate::support::project::{Project, Run};

const PLAN: &str = "title: Example
verify: [ grep -qx fixed a.txt ]
max_retries: 1
tasks:
  - id: fix
    title: Fix a.txt
";

fn run(a: &str, agent: &str) -> (Project, Run) {
    let project = Project::new(&[("a.txt", a), ("plan.yaml", PLAN)]);
    let run = project.run(&project.agent(agent), &[]);
    (project, run)
}

/// Nothing was done, whatever the plan was made to say.
fn came_to_nothing(what: &str, (project, run): (Project, Run)) {
    assert_eq!(run.code, 1, "{what}: {}", run.stdout);
    assert_eq!(
        run.task(0)["reason"],
        "no_progress",
        "{what}: {}",
        run.stdout
    );
    assert_eq!(run.task(0)["changes_made"], false, "{what}");
    assert_eq!(
        (project.commits(), project.head()),
        (1, project.git(&["rev-parse", "main"])),
        "{what}"
    );
    assert_eq!(
        project.git(&["show", "HEAD:plan.yaml"]),
        PLAN.trim_end(),
        "{what}"
    );
    assert!(!project.read("plan.yaml").contains("note"), "{what}");
}

#[test]
fn changes_of_the_plan_alone_are_none_however_often_they_are_made() {
    for (what, script) in [
        (
            "a status",
            "sed -i 's/^    title.*/&\\n    status: done/' plan.yaml",
        ),
        (
            "another check",
            "sed -i 's/grep -qx fixed a.txt/true/' plan.yaml",
        ),
        ("a comment", "echo \"# a note $N\" >> plan.yaml"),
        ("no plan at all", "echo \"note $N\" > plan.yaml"),
        ("a deleted plan", "rm -f plan.yaml"),
        ("a link", "rm -f plan.yaml; ln -s a.txt plan.yaml"),
        (
            "a commit",
            "echo \"# a note $N\" >> plan.yaml; git commit -qam note",
        ),
        ("an empty commit", "git commit -q --allow-empty -m note"),
    ] {
        came_to_nothing(what, run("fixed\n", &format!("{script}; echo 'All done.'")));
    }
}

#[test]
fn the_plan_is_right_again_before_the_next_turn() {
    let agent = "grep -c status plan.yaml >> $OUT/seen; sed -i 's/^    title.*/&\\n    status: done/' plan.yaml; test $N = 1 || echo fixed > a.txt; echo 'All done.'";
    let (project, run) = run("broken\n", agent);
    assert_eq!((run.code, project.calls()), (0, 2), "{}", run.stdout);
    assert_eq!(project.notes("seen"), ["0", "0"]);
    assert_eq!(run.task(0)["reason"], "verified");
    assert_eq!(
        project
            .git(&["show", "HEAD:plan.yaml"])
            .matches("status: done")
            .count(),
        1
    );
}

#[test]
fn words_for_the_plan_that_come_with_work_stay() {
    let (project, run) = run(
        "broken\n",
        "echo '# a note' >> plan.yaml; echo fixed > a.txt; echo Done.",
    );
    assert_eq!(run.code, 0, "{}", run.stdout);
    has(&project.git(&["show", "HEAD:plan.yaml"]), "# a note");
}

/// A plan may come from anybody.
#[test]
fn a_plan_that_is_shown_commands_neither_a_terminal_nor_a_runner() {
    let text = "title: \"P\\u202e\\e[31m\\n::stop-commands::x\"\ntasks:\n- id: a\n  title: \"T\\n::error::y ##[group]z\"\n  verify: [\"echo \\u200b\"]\n  description: \"\\e]0;w\\a\\n::warning::v\"\n";
    let mut project = Project::new(&[("a.txt", "a\n"), ("plan.yaml", text)]);
    let commands: [&[&str]; 3] = [
        &["check", "plan.yaml"],
        &["check", "plan.yaml", "--json"],
        &[
            "run",
            "--plan",
            "plan.yaml",
            "--dry-run",
            "--agent-command",
            "x",
        ],
    ];
    for in_actions in [false, true] {
        if in_actions {
            project.env("GITHUB_ACTIONS", "true");
        }
        for args in commands {
            let run = project.sprag(args).expect(0);
            let is_json = args.contains(&"--json");
            let hidden =
                |c: char| "\u{1b}\u{7}".contains(c) || (!is_json && "\u{202e}\u{200b}".contains(c));
            assert!(!run.stdout.contains(hidden), "{args:?}: {:?}", run.stdout);
            let obeyed = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
            assert!(
                !in_actions || !run.stdout.lines().any(obeyed),
                "{args:?}: {}",
                run.stdout
            );
            assert!(run.stdout.contains('T'));
        }
    }
    let run = project.sprag(&["check", "plan.yaml", "--json"]).expect(0);
    let shown: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(shown["tasks"][0]["title"], "T ::error::y ##[group]z");
}

#[test]
fn a_plan_of_rmplan_says_when_and_which_files_were_changed() {
    let plan = "goal: Mend it\nupdatedAt: 2024-01-01T00:00:00.000Z\nchangedFiles: []\ntasks:\n  - title: Fix a.txt\n    description: It must say fixed\n    done: false\n    steps: []\n";
    let project = Project::new(&[("a.txt", "bad\n"), ("plan.yml", plan)]);
    let agent = project.agent("echo fixed > a.txt; echo new > b.txt; echo Done.");
    let args = ["run", "--plan", "plan.yml", "--agent-command", &agent];
    let check = ["--verify", "grep -qx fixed a.txt"];
    project.sprag(&[&args[..], &check].concat()).expect(0);
    let committed = project.git(&["show", "HEAD:plan.yml"]);
    has(&committed, "changedFiles: [\"a.txt\", \"b.txt\"]");
    assert!(!committed.contains("2024-01-01"), "{committed}");
    assert!(committed.contains("done: true"), "{committed}");
    assert_eq!((project.commits(), project.status()), (2, String::new()));
}
