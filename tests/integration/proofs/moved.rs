//! Original tests that the work has elsewhere with the same content, where the runner refuses two of one name.

use super::*;

/// Runs every test, and refuses two of the same name, as pytest does without packages.
const RUNNER: &str = "twice=$(find tests app -name '*test*.sh' | sed 's/.*\\///' | sort | uniq -d)
if [ -n \"$twice\" ]; then echo \"mismatch: $twice\"; exit 2; fi
for test in $(find tests app -name 'test_*.sh'); do sh -e $test || exit 1; done
";

const FILES: &[(&str, &str)] = &[
    ("run.sh", RUNNER),
    (
        "tests/test_work.sh",
        "cmp work.txt $(dirname $0)/want.txt\n",
    ),
    ("tests/want.txt", "fixed\n"),
    (
        "tests/test_names.sh",
        "[ -z \"$(find app/fast -name '*_test.sh')\" ]\n",
    ),
    ("app/speed_test.sh", "echo fast\n"),
    ("app/fast/a.sh", "echo fast\n"),
    ("work.txt", "x\n"),
];

#[test]
fn a_moved_test_is_proved_where_it_was_and_where_it_is() {
    let moved = "mkdir -p tests/unit; git mv tests/test_work.sh tests/unit/test_work.sh";
    for (agent, expected) in [
        // With the data beside it, and with others.
        (format!("{moved}; git mv tests/want.txt tests/unit/want.txt; echo fixed > work.txt"), "verified"),
        (format!("{moved}; cp work.txt tests/unit/want.txt"), "changed_expectations"),
        // What is moved is a test by its name only, and breaks another test at its new place.
        (
            "git mv app/speed_test.sh app/fast/speed_test.sh; echo true > tests/test_names.sh; echo fixed > work.txt".to_owned(),
            "changed_expectations",
        ),
        // Another test is weakened as well.
        (
            format!("{moved}; git mv tests/want.txt tests/unit/; echo fixed > work.txt; touch app/fast/b_test.sh; echo true > tests/test_names.sh"),
            "changed_expectations",
        ),
        // The content is another one.
        (format!("{moved}; echo true > tests/unit/test_work.sh"), "changed_expectations"),
    ] {
        let project = project(FILES, "sh run.sh", "max_retries: 0\n");
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
        assert_eq!(run.task(0)["reason"], expected, "{agent}: {}", run.stdout);
        let result = if expected == "verified" { "passed" } else { "failed" };
        proved(&run, &[("old_tests", result)]);
        let status = project.git(&["status", "--porcelain"]);
        assert_eq!(status, "", "{agent}");
    }
}
