use crate::checks::counts;
use crate::checks::counts::Counts;
use proptest::prelude::*;

const UNKNOWN: Counts = Counts::UNKNOWN;

/// A summary that states only the number of failed tests.
const fn failed_of_unknown(failed: u64) -> Counts {
    Counts {
        passed: None,
        failed: Some(failed),
    }
}

/// The printed summaries, by the name of the tool.
const SUMMARIES: &[(&str, &str, Counts)] = &[
    (
        "cargo",
        "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\nrunning 3 tests\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.07s\n",
        Counts::of(3, 1),
    ),
    (
        "cargo in colour",
        "test result: \u{1b}[32mok\u{1b}[0m. 1 passed; 0 failed; 0 ignored\r\n",
        Counts::of(1, 0),
    ),
    (
        "nextest",
        "    test result: FAILED. 0 passed; 1 failed; 0 ignored\n     Summary [   0.142s] 6 tests run: 1 passed (1 slow), 5 failed, 0 skipped\n",
        Counts::of(1, 5),
    ),
    (
        "nextest stopped early",
        "     Summary [   0.1s] 3/6 tests run: 1 passed, 1 failed, 1 timed out, 0 skipped\n",
        Counts::of(1, 2),
    ),
    (
        "pytest",
        "=================== 1 failed, 3 passed, 2 skipped, 1 warning in 0.12s ===================\n",
        Counts::of(3, 1),
    ),
    (
        "pytest -q",
        "4 failed, 3 passed in 62.02s (0:01:02)\n",
        Counts::of(3, 4),
    ),
    (
        "pytest -qq",
        "..sxF................................................................... [ 96%]\n..X                                                                      [100%]\n",
        Counts::of(72, 1),
    ),
    (
        "pytest -qq whose tests end the process",
        "..sxF................................................................... [ 96%]\n..",
        Counts::UNKNOWN,
    ),
    (
        "pytest collection error",
        "=============== 1 error in 0.08s ===============\n",
        Counts::of(0, 1),
    ),
    (
        "pytest empty",
        "============ no tests ran in 0.01s ============\n",
        Counts::of(0, 0),
    ),
    (
        "unittest",
        "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, skipped=1)\n",
        Counts::of(2, 2),
    ),
    (
        "unittest ok",
        "Ran 2 tests in 0.000s\n\nOK (expected failures=1)\n",
        Counts::of(1, 0),
    ),
    (
        "jest",
        "Test Suites: 1 failed, 1 passed, 2 total\nTests:       1 failed, 1 skipped, 3 passed, 5 total\n",
        Counts::of(3, 1),
    ),
    (
        "jest suite that did not run",
        "Test Suites: 1 failed, 1 total\nTests:       0 total\n",
        Counts {
            passed: Some(0),
            failed: None,
        },
    ),
    (
        "vitest",
        " Test Files  2 failed (2)\n      Tests  1 failed | 4 passed | 1 skipped (6)\n",
        Counts::of(4, 1),
    ),
    (
        "mocha",
        "\n  3 passing (4ms)\n  1 pending\n  2 failing\n",
        Counts::of(3, 2),
    ),
    ("mocha passing", "  3 passing (4ms)\n", Counts::of(3, 0)),
    (
        "go",
        "--- FAIL: TestA (0.00s)\n    a_test.go:5: bad\nFAIL\nFAIL\texample.com/m/a\t0.002s\nok  \texample.com/m/b\t0.1s\n",
        failed_of_unknown(1),
    ),
    (
        "go passing",
        "ok  \texample.com/m/b\t(cached)\n",
        failed_of_unknown(0),
    ),
    (
        "go -v",
        "=== RUN   TestA\n--- FAIL: TestA (0.00s)\n=== RUN   TestB\n=== RUN   TestB/x\n--- PASS: TestB (0.00s)\n    --- PASS: TestB/x (0.00s)\nFAIL\nFAIL\texample.com/m\t0.1s\n",
        Counts::of(1, 1),
    ),
    (
        "go build failure",
        "FAIL\texample.com/m [build failed]\n",
        UNKNOWN,
    ),
    (
        "tap",
        "TAP version 13\nok 1 - a\nnot ok 2 - b\nnot ok 3 - c # TODO later\nok 4 # skip\n1..4\n",
        Counts::of(1, 1),
    ),
    (
        "node tap",
        "TAP version 13\nnot ok 1 - adds\n1..1\n# tests 3\n# pass 1\n# fail 2\n# cancelled 1\n",
        Counts::of(1, 3),
    ),
    (
        "node spec",
        "ℹ tests 3\nℹ pass 1\nℹ fail 2\nℹ cancelled 0\n",
        Counts::of(1, 2),
    ),
    (
        "rspec",
        "5 examples, 1 failure, 1 pending\n",
        Counts::of(3, 1),
    ),
    (
        "rspec outside",
        "0 examples, 0 failures, 1 error occurred outside of examples\n",
        Counts::of(0, 1),
    ),
    (
        "minitest",
        "5 runs, 7 assertions, 1 failures, 1 errors, 1 skips\n",
        Counts::of(2, 2),
    ),
    (
        "maven",
        "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.1 s <<< FAILURE! -- in a.B\n[ERROR] Tests run: 5, Failures: 1, Errors: 1, Skipped: 1\n",
        Counts::of(2, 2),
    ),
    (
        "junit console",
        "[         3 tests successful      ]\n[         1 tests failed          ]\n",
        Counts::of(3, 1),
    ),
    (
        "dotnet",
        "Failed!  - Failed:     1, Passed:     4, Skipped:     0, Total:     5, Duration: 9 ms - x.dll (net8.0)\n",
        Counts::of(4, 1),
    ),
];

#[test]
fn every_tool_s_summary_is_read() {
    for (name, output, expected) in SUMMARIES {
        assert_eq!(counts(output), *expected, "{name}");
    }
}

#[test]
fn what_cannot_be_told_is_unknown_and_not_zero() {
    let table = [
        ("nothing", ""),
        ("prose", "all tests passed\n3 passed, they say\n"),
        (
            "a binary that died",
            "running 3 tests\ntest a ... ok\nerror: test failed\nrunning 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n",
        ),
        (
            "ok with failures",
            "test result: ok. 1 passed; 2 failed; 0 ignored\n",
        ),
        (
            "a number past the end",
            "test result: ok. 99999999999999999999999 passed; 0 failed; 0 ignored\n",
        ),
        (
            "a sum past the end",
            "test result: ok. 18446744073709551615 passed; 0 failed; x\ntest result: ok. 1 passed; 0 failed; x\n",
        ),
        (
            "two tools",
            "3 passed in 0.1s\ntest result: ok. 4 passed; 0 failed; 0 ignored\n",
        ),
        (
            "a wrong total",
            "Test Suites: 1 passed, 1 total\nTests:       1 passed, 5 total\n",
        ),
        ("an incomplete plan", "TAP version 13\n1..4\nok 1\n"),
        ("unittest without an end", "Ran 5 tests in 0.001s\n"),
        (
            "unittest that contradicts itself",
            "Ran 5 tests in 0.001s\nOK (failures=1)\n",
        ),
    ];
    for (name, output) in table {
        assert_eq!(counts(output), UNKNOWN, "{name}");
    }
}

#[test]
fn two_tools_that_agree_are_believed() {
    let output = "3 passed in 0.1s\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
    assert_eq!(counts(output), Counts::of(3, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_output_panics(output in r"(TAP version 1|ok|not ok|1\.\.|Ran [0-9] tests in 1s|OK|FAILED|[0-9]{1,22} (passed|failed) in 1s|Tests: |Test Suites: |[ \n0-9])*") {
        counts(&output);
    }

    #[test]
    fn cargo_results_add_up(results in prop::collection::vec((0u64..1000, 0u64..1000), 1..6)) {
        let output: String = results
            .iter()
            .map(|(passed, failed)| {
                let word = if *failed == 0 { "ok" } else { "FAILED" };
                format!("test result: {word}. {passed} passed; {failed} failed; 0 ignored\n")
            })
            .collect();
        let passed = results.iter().map(|it| it.0).sum();
        let failed = results.iter().map(|it| it.1).sum();
        prop_assert_eq!(counts(&output), Counts::of(passed, failed));
    }
}
