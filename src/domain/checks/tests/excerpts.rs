use super::FAILED;
use crate::checks::verdict::CheckOutcome;
use crate::checks::*;
use proptest::prelude::*;

#[test]
fn a_short_output_is_shown_whole() {
    let output = "one\n\n\ttwo\nFAILED\n";
    assert_eq!(excerpt(output, 8_000), "one\n\n\ttwo\nFAILED");
}

#[test]
fn repetitions_are_folded() {
    let output = format!(
        "{}a\na\n{}end\n",
        "same\n".repeat(37),
        "first line\nsecond line\n".repeat(4)
    );
    let expected = "same\n… repeated 37 times\na\na\nfirst line\nsecond line\n\
                    … the 2 lines above repeated 4 times\nend";
    assert_eq!(excerpt(&output, 8_000), expected);
    assert_eq!(excerpt("a\n\n\n\n\nb\n", 8_000), "a\n\nb");
}

#[test]
fn frames_of_the_runtime_are_folded() {
    let output = "stack backtrace:
   0: core::panicking::panic_fmt
             at /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/panicking.rs:80:14
   1: mine::f
             at ./src/lib.rs:2:46
   2: core::ops::function::FnOnce::call_once
             at /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/ops/function.rs:250:5
end";
    let expected = "stack backtrace:
      … 2 lines of runtime frames
   1: mine::f
             at ./src/lib.rs:2:46
      … 2 lines of runtime frames
end";
    assert_eq!(excerpt(output, 8_000), expected);
}

#[test]
fn a_megabyte_keeps_its_last_failure_and_its_last_line() {
    let noise: String = (0..20_000)
        .map(|n| format!("step {n}: loading resource {}\n", n * 7))
        .collect();
    let output = format!(
        "FAIL first_suite: assertion failed: 1\n{noise}{noise}FAIL last_suite: expected 7 got 9\n    at deep/inside.js:3:5\n{noise}Ran 2 suites.\n"
    );
    assert!(output.len() > 1_000_000);
    let shown = excerpt(&output, 8_000);
    assert!(shown.chars().count() <= 8_000);
    assert!(
        shown.contains("FAIL first_suite: assertion failed: 1\n"),
        "{shown}"
    );
    assert!(shown.contains("FAIL last_suite: expected 7 got 9\n    at deep/inside.js:3:5\n"));
    assert!(shown.ends_with("Ran 2 suites."));
    assert!(shown.contains(" characters cut …]\n"));
}

#[test]
fn one_endless_line_keeps_both_of_its_ends() {
    let output = format!("begin{}FAILED at the end", "x".repeat(1_000_000));
    let shown = excerpt(&output, 8_000);
    assert!(
        shown.starts_with("beginxxx") && shown.ends_with("FAILED at the end"),
        "{shown}"
    );
    assert!(shown.contains("[… 999,"), "{shown}");
}

#[test]
fn every_failing_test_is_named_however_long_its_output() {
    let noise: String = (0..5_000)
        .map(|n| format!("    line {n} of the log\n"))
        .collect();
    let suites: String = ["alpha", "beta", "gamma"]
        .iter()
        .map(|it| format!("FAIL t/{it}.test.js\n  ● {it} › works\n\n    expected 1\n\n{noise}\n"))
        .collect();
    let shown = excerpt(&suites, 2_000);
    let names = "Failing tests (3):\n- t/alpha.test.js › alpha › works\n- t/beta.test.js › beta › works\n- t/gamma.test.js › gamma › works\n\n";
    assert!(shown.starts_with(names), "{shown}");
    let again = excerpt(&shown, 1_000);
    assert!(again.starts_with(names), "{again}");
    let short = excerpt(&shown, 620);
    assert!(
        short.starts_with("Failing tests (3):\n- t/alpha.test.js › alpha › works\n"),
        "{short}"
    );
}

#[test]
fn too_many_failing_tests_are_named_by_file() {
    let output: String = (0..2_000)
        .map(|n| {
            format!(
                "FAILED tests/test_{}.py::test_number_{n} - assert {n} == 0\n",
                n % 4
            )
        })
        .collect();
    let shown = excerpt(&output, 4_000);
    let groups = "Failing tests (2,000):\n- tests/test_0.py (500 failing)\n- tests/test_1.py (500 failing)\n- tests/test_2.py (500 failing)\n- tests/test_3.py (500 failing)\n\n";
    assert!(shown.starts_with(groups), "{shown}");
    assert!(shown.ends_with("FAILED tests/test_3.py::test_number_1999 - assert 1999 == 0"));
}

#[test]
fn several_checks_share_the_budget() {
    let long: String = (0..2_000).map(|n| format!("line {n}\n")).collect();
    let late = CheckOutcome::TimedOut { after_ms: 600_000 };
    let checks = [
        FailingCheck {
            name: "lint",
            outcome: &FAILED,
            output: "a.js: bad\n",
        },
        FailingCheck {
            name: "unit",
            outcome: &FAILED,
            output: &long,
        },
        FailingCheck {
            name: "e2e",
            outcome: &late,
            output: "",
        },
    ];
    let shown = excerpts(&checks, 4_000);
    let count = shown.chars().count();
    assert!((3_700..=4_000).contains(&count), "{count}");
    let start =
        "### lint: failed with exit code 1\na.js: bad\n\n### unit: failed with exit code 1\n";
    assert!(shown.starts_with(start), "{shown}");
    let end = "line 1999\n\n### e2e: timed out after 600 s\n(no output)";
    assert!(shown.ends_with(end), "{shown}");
    assert_eq!(excerpts(&[], 100), "");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn an_excerpt_keeps_its_budget(
        lines in prop::collection::vec(r"(FAIL x|error: y|  ● n|E   ä|not ok 1 - q|[a-zäß ]{0,80}|)", 0..200),
        budget in 0usize..3_000,
    ) {
        let output = lines.join("\n");
        prop_assert!(excerpt(&output, budget).chars().count() <= budget);
        let checks = [
            FailingCheck { name: "a", outcome: &FAILED, output: &output },
            FailingCheck { name: "b", outcome: &FAILED, output: "short" },
        ];
        prop_assert!(excerpts(&checks, budget).chars().count() <= budget);
    }

    #[test]
    fn the_last_line_is_always_kept(
        lines in prop::collection::vec(r"(FAIL x|error: y|not ok 1 - q|[a-z]{0,200})", 0..100),
        budget in 600usize..4_000,
    ) {
        let output = format!("{}\nthe very end", lines.join("\n"));
        prop_assert!(excerpt(&output, budget).ends_with("the very end"));
    }

    #[test]
    fn folding_never_makes_it_longer(
        lines in prop::collection::vec(r"(FAIL x|a|b||   0: core::x|[a-z]{0,30}|y{700,800})", 0..60),
    ) {
        let output = lines.join("\n");
        prop_assert!(excerpt(&output, 100_000).chars().count() <= output.chars().count());
    }
}
