//! Plans that cannot be read or run.

use super::*;

#[test]
fn plans_that_cannot_be_read() {
    for (text, stderr) in [
        (&b""[..], "1:1: the plan is empty: it needs `tasks`"),
        (
            b"title: Example\n",
            "1:1: the plan has no `tasks`: add a list of at least one task",
        ),
        (
            b"tasks: []\n",
            "1:1: `tasks` is empty: a plan needs at least one task",
        ),
        (
            b"\x7fELF\x02\x01\x00\x00",
            "1:7: a zero byte: this is not a text file; save it as UTF-8 text",
        ),
        (
            b"title: caf\xe9\n",
            "1:11: not UTF-8: save the file as UTF-8 text",
        ),
        (
            b"title: Example\ntasks:\n\t- id: fix\n",
            "3:1: a tab cannot indent YAML: use spaces",
        ),
        (
            b"title: Example\n<<<<<<< HEAD\ngoal: one\n=======\ngoal: two\n>>>>>>> topic\n",
            "2:1: unresolved merge conflict: resolve it",
        ),
        (
            b"tasks:\n  - id: a\n    title: A\n  - id: a\n    title: B\n",
            "4:9: the task id `a` is given twice, first on line 2; give one of them another id",
        ),
    ] {
        refused_plan(text, &format!("error: plan.yaml:{stderr}\n"));
    }
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
fn wrong_retries() {
    let wrong = "11";
    let message =
        |place: &str| format!("error: {place} must be a whole number from 0 to 10, got {wrong}\n");
    refused_plan(
        format!("max_retries: {wrong}\n{PLAN}").as_bytes(),
        &message("plan.yaml:1:14: max_retries"),
    );
    refused_plan(
        format!("{PLAN}    max_retries: {wrong}\n").as_bytes(),
        &message("plan.yaml:5:18: max_retries"),
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
        &message(".sprag/config.yaml:2:14: max_retries"),
    );

    let by_flag = project();
    refused(
        &by_flag,
        &[&RUN[..], &["--max-retries", wrong]].concat(),
        2,
        &message("--max-retries"),
    );
    for (variable, place) in [
        ("SPRAG_MAX_RETRIES", "SPRAG_MAX_RETRIES"),
        ("INPUT_MAX-RETRIES", "action input max-retries"),
    ] {
        let mut project = project();
        project.env(variable, wrong);
        refused(&project, &RUN, 2, &message(place));
    }
}
