//! Plans that cannot be read or run.

use super::*;

#[test]
fn a_missing_plan() {
    refused(
        &project(),
        &["run", "--plan", "no.yaml", "--agent-command", "x"],
        2,
        "error: there is no plan $ROOT/repo/no.yaml\n  check the path; it is relative to the current directory\n",
    );
}

#[test]
fn a_directory_as_plan() {
    refused(
        &project(),
        &["run", "--plan", ".", "--agent-command", "x"],
        2,
        "error: the plan $ROOT/repo is a directory, not a file\n  name a file in it\n",
    );
}

#[test]
fn an_empty_plan() {
    for empty in ["", "\n\n", "# nothing yet\n", "---\n"] {
        refused_plan(
            empty.as_bytes(),
            "error: plan.yaml:1:1: the plan is empty: it needs `tasks`\n",
        );
    }
    refused_plan(
        b"title: Example\n",
        "error: plan.yaml:1:1: the plan has no `tasks`: add a list of at least one task\n",
    );
    refused_plan(
        b"tasks: []\n",
        "error: plan.yaml:1:1: `tasks` is empty: a plan needs at least one task\n",
    );
}

#[test]
fn a_binary_plan() {
    refused_plan(
        b"\x7fELF\x02\x01\x00\x00",
        "error: plan.yaml:1:7: a zero byte: this is not a text file; save it as UTF-8 text\n",
    );
    refused_plan(
        b"title: caf\xe9\n",
        "error: plan.yaml:1:11: not UTF-8: save the file as UTF-8 text\n",
    );
}

#[test]
fn a_huge_plan() {
    let project = project();
    let huge = project.outside("huge.yaml");
    fs::File::create(&huge).unwrap().set_len(100 << 20).unwrap();
    for (flag, what) in [
        ("--plan", "agent/huge.yaml"),
        ("--prompt-file", "agent/huge.yaml"),
    ] {
        refused(
            &project,
            &["run", flag, huge.to_str().unwrap(), "--agent-command", "x"],
            2,
            &format!(
                "error: $ROOT/{what}:1:1: the file has 104857600 bytes, but at most 1048576 are read: split it\n"
            ),
        );
    }
}

#[test]
fn a_plan_indented_with_tabs() {
    refused_plan(
        b"title: Example\ntasks:\n\t- id: fix\n",
        "error: plan.yaml:3:1: a tab cannot indent YAML: use spaces\n",
    );
}

#[test]
fn an_unknown_task() {
    let project = project();
    refused(
        &project,
        &[&RUN[..], &["--task", "fx"]].concat(),
        2,
        "error: --task fx: the plan has no such task (did you mean `fix`?)\n  its tasks are fix\n",
    );
}

#[test]
fn wrong_dependencies() {
    let plan = |first: &str, second: &str| {
        format!(
            "tasks:\n  - id: alpha\n    title: A\n    depends_on: [{first}]\n  - id: beta\n    title: B\n    depends_on: [{second}]\n"
        )
    };
    refused_plan(
        plan("beta", "alpha").as_bytes(),
        "error: plan.yaml:4:18: depends_on has a cycle: alpha -> beta -> alpha; remove one of these dependencies\n",
    );
    refused_plan(
        plan("alpha", "").as_bytes(),
        "error: plan.yaml:4:18: depends_on has a cycle: alpha -> alpha; remove one of these dependencies\n",
    );
    refused_plan(
        plan("bate", "").as_bytes(),
        "error: plan.yaml:4:18: depends_on names the task `bate`, which does not exist (did you mean `beta`?)\n",
    );
    refused_plan(
        plan("something-else", "").as_bytes(),
        "error: plan.yaml:4:18: depends_on names the task `something-else`, which does not exist; add that task or remove the dependency\n",
    );
}

#[test]
fn a_task_id_given_twice() {
    refused_plan(
        b"tasks:\n  - id: a\n    title: A\n  - id: a\n    title: B\n",
        "error: plan.yaml:4:9: the task id `a` is given twice, first on line 2; give one of them another id\n",
    );
}

#[test]
fn wrong_retries() {
    for wrong in ["-1", "1.5", "11", "\"x\"", "x"] {
        let message = |place: &str, wrong: &str| {
            format!("error: {place} must be a whole number from 0 to 10, got {wrong}\n")
        };
        refused_plan(
            format!("max_retries: {wrong}\n{PLAN}").as_bytes(),
            &message("plan.yaml:1:14: max_retries", wrong),
        );
        refused_plan(
            format!("{PLAN}    max_retries: {wrong}\n").as_bytes(),
            &message("plan.yaml:5:18: max_retries", wrong),
        );

        let in_file = project();
        in_file.write(
            ".sprag/config.yaml",
            &format!("model: m\nmax_retries: {wrong}\n"),
        );
        in_file.commit_all("configuration");
        refused(
            &in_file,
            &RUN,
            2,
            &message(".sprag/config.yaml:2:14: max_retries", wrong),
        );

        let bare = wrong.trim_matches('"');
        let by_flag = project();
        refused(
            &by_flag,
            &[&RUN[..], &["--max-retries", bare]].concat(),
            2,
            &message("--max-retries", bare),
        );
        for (variable, place) in [
            ("SPRAG_MAX_RETRIES", "SPRAG_MAX_RETRIES"),
            ("INPUT_MAX-RETRIES", "action input max-retries"),
        ] {
            let mut project = project();
            project.env(variable, bare);
            refused(&project, &RUN, 2, &message(place, bare));
        }
    }
}
