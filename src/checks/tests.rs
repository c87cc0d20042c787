use super::*;

fn failed(name: &str, output: &str) -> CheckResult {
    read(name, CheckOutcome::Failed { exit: 1 }, output)
}

fn read(name: &str, outcome: CheckOutcome, output: &str) -> CheckResult {
    let check = Check {
        name: name.to_owned(),
        run: "true".to_owned(),
        kind: CheckKind::Test,
        timeout_ms: 1_000,
        junit: None,
        problem_matcher: None,
    };
    CheckResult::read(&check, outcome, output, 1, "")
}

#[test]
fn the_history_takes_one_error_of_each_check_first() {
    let with_errors = |name: &str, errors: &[&str]| CheckResult {
        errors: errors.iter().map(|it| (*it).to_owned()).collect(),
        ..failed(name, "")
    };
    let errors = |results: Vec<CheckResult>| {
        let verification = Verification {
            verdict: verdict(&results),
            failing_output: String::new(),
            results,
        };
        verification.errors()
    };
    let results = vec![with_errors("a", &["a1", "a2"]), with_errors("b", &["b1"])];
    assert_eq!(errors(results), ["a1", "b1"]);
    assert!(errors(Vec::new()).is_empty());
}

#[test]
fn all_failing_checks_are_shown_and_no_other() {
    let outputs = ["all good", "left: 1\n", "waiting\n"].map(str::to_owned);
    let results = [
        read("fine", CheckOutcome::Passed, &outputs[0]),
        failed("unit", &outputs[1]),
        read(
            "e2e",
            CheckOutcome::TimedOut { after_ms: 1_500 },
            &outputs[2],
        ),
    ];
    let expected = "### unit: failed with exit code 1\nleft: 1\n\n\
                    ### e2e: timed out after 1500 ms\nwaiting";
    assert_eq!(failing_output(&results, &outputs), expected);
    assert_eq!(failing_output(&results[..1], &outputs), "");
}
