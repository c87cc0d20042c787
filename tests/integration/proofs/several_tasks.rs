//! The original tests are those before the first task of a run: a task whose work passes them may not weaken them for the
//! work of the next one.

use super::*;

const TESTS: &[(&str, &str)] = &[
    ("tests/a.sh", "grep -qx fixed work.txt\n"),
    ("tests/b.sh", "grep -qx ok other.txt\n"),
    ("work.txt", "x\n"),
    ("other.txt", "ok\n"),
];
const ALL: &str = "for t in tests/*.sh; do sh $t || exit 1; done";

fn plan_of(checks: &[&str]) -> String {
    let tasks = checks.iter().enumerate().map(|(at, check)| {
        let check = serde_json::to_string(check).unwrap();
        format!("  - id: t{at}\n    title: T\n    verify: [{{ name: test, run: {check} }}]\n")
    });
    let tasks: String = tasks.collect();
    format!("title: Several\nmax_retries: 0\ntasks:\n{tasks}")
}

/// The reasons of the tasks. The agent runs one of `turns` in each.
fn reasons(files: &[(&str, &str)], checks: &[&str], turns: &[&str]) -> (Run, Vec<String>) {
    let project = project(files, "true", "");
    project.write("plan.yaml", &plan_of(checks));
    project.commit_all("tasks");
    let turns = turns.iter().enumerate();
    let cases: String = turns
        .map(|(at, turn)| format!("{}) {turn} ;; ", at + 1))
        .collect();
    let run = run(
        &project,
        &format!("case $N in {cases} esac; echo Done."),
        &[],
    )
    .expect(0);
    let reason = |at| run.task(at)["reason"].as_str().unwrap().to_owned();
    let all = (0..checks.len()).map(reason).collect();
    (run, all)
}

#[test]
fn tests_that_an_earlier_task_weakens_judge_nothing_in_a_later_one() {
    let made = [
        TESTS,
        &[
            ("Makefile", "test:\n\tsh ci/x.sh\n\tsh tests/a.sh\n"),
            ("ci/x.sh", "grep -qx ok other.txt\n"),
        ],
    ]
    .concat();
    for (files, checks, turns, file) in [
        (
            TESTS,
            &[ALL, ALL][..],
            &[
                "echo true > tests/b.sh; echo fixed > work.txt",
                "echo broken > other.txt",
            ][..],
            "tests/b.sh",
        ),
        (
            TESTS,
            &[ALL, ALL, ALL],
            &[
                "rm tests/b.sh; echo fixed > work.txt",
                "echo more > more.txt",
                "echo broken > other.txt",
            ],
            "tests/b.sh",
        ),
        // The checks of the first task do not run the tests that it weakens.
        (
            TESTS,
            &["test -s other.txt", "sh tests/a.sh"],
            &[
                "echo true > tests/a.sh; echo more >> other.txt",
                "echo y > work.txt",
            ],
            "tests/a.sh",
        ),
        // What the check runs is told by what the original definitions name.
        (
            &made,
            &["make test", "make test"],
            &[
                "printf 'test:\\n\\tsh tests/a.sh\\n' > Makefile; echo fixed > work.txt",
                "echo true > ci/x.sh; echo broken > other.txt",
            ],
            "ci/x.sh",
        ),
    ] {
        let (run, reasons) = reasons(files, checks, turns);
        let (last, before) = reasons.split_last().unwrap();
        assert_eq!(last, "changed_expectations", "{turns:?}: {}", run.stdout);
        assert!(before.iter().all(|it| it == "verified"), "{reasons:?}");
        let message = run.task(before.len())["message"].as_str().unwrap();
        assert!(message.contains(file), "{message}");
        assert_eq!(run.summary["status"], "unverified");
    }
}

#[test]
fn later_work_that_passes_the_original_tests_is_verified() {
    let package = |more: &str| {
        format!("{{\"scripts\":{{\"test\":\"sh tests/a.sh\"{more}}},\"dependencies\":{{")
    };
    let first = package("");
    let (start, mut files) = (format!("{first}}}}}"), TESTS.to_vec());
    files.push(("package.json", &start));
    let more = package(",\"x\":\"y\"");
    let (one, two) = (
        format!("echo '{more}\"l\":\"1\"}}}}' > package.json; echo fixed > work.txt"),
        format!("echo '{more}\"l\":\"1\",\"m\":\"1\"}}}}' > package.json"),
    );
    for (checks, turns) in [
        (
            [ALL, ALL],
            [
                "echo 'grep -q fixed work.txt' >> tests/a.sh; echo fixed > work.txt",
                "echo new > new.txt",
            ],
        ),
        (
            [ALL, ALL],
            [
                "echo 'test -e work.txt' > tests/c.sh; echo fixed > work.txt",
                "echo 'test -e new.txt' >> tests/c.sh; echo new > new.txt",
            ],
        ),
        (["npm test", "npm test"], [&one, &two]),
    ] {
        let (run, reasons) = reasons(&files, &checks, &turns);
        assert_eq!(reasons, ["verified"; 2], "{turns:?}: {}", run.stdout);
    }
}

/// What a report has said already is not said again of every later task.
#[test]
fn tests_that_a_task_needs_otherwise_are_the_original_ones_of_the_next() {
    let turns = [
        "echo 'grep -qx other work.txt' > tests/a.sh; echo other > work.txt",
        "echo new > new.txt",
        "echo true > tests/b.sh; echo broken > other.txt",
    ];
    let (run, reasons) = reasons(TESTS, &[ALL, ALL, ALL], &turns);
    let expected = ["changed_expectations", "verified", "changed_expectations"];
    assert_eq!(reasons, expected, "{}", run.stdout);
    assert!(run.task(1)["proofs"].as_array().is_none_or(Vec::is_empty));
}
