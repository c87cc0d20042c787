use super::diagnostics::{shown, shown_of};
use crate::checks::counts::Counts;
use crate::checks::junit::{MAX_REPORT_BYTES, Report, read};
use proptest::prelude::*;

fn names(report: &Report) -> Vec<&str> {
    report
        .failing_tests
        .iter()
        .map(|test| test.name.as_str())
        .collect()
}

#[test]
fn a_report_of_vitest() {
    let report = read(
        r#"<?xml version="1.0" encoding="UTF-8" ?>
<testsuites name="vitest tests" tests="4" failures="4" errors="0" time="0.015133503">
    <testsuite name="v/a.test.mjs" tests="3" failures="2">
        <testcase classname="v/a.test.mjs" name="calc &gt; adds" time="0.01041579">
            <failure message="expected 2 to be 3 // Object.is equality" type="AssertionError">
AssertionError: expected 2 to be 3 // Object.is equality

- Expected
+ Received

 ❯ node_modules/dep/index.mjs:1:1
 ❯ helper v/a.test.mjs:2:32
            </failure>
        </testcase>
        <testcase classname="v/a.test.mjs" name="fine"/>
        <testcase classname="v/a.test.mjs" name="later"><skipped/></testcase>
        <testcase classname="v/a.test.mjs" name="throws" time="0.000639868">
            <failure message="boom &quot;&#33;&quot;" type="Error"/>
        </testcase>
    </testsuite>
</testsuites>"#
            .as_bytes(),
        "/proj",
    );
    assert_eq!(
        shown_of(report.diagnostics.clone()),
        [
            "v/a.test.mjs:2:32 Error - junit | v/a.test.mjs > calc > adds: expected 2 to be 3 // Object.is equality",
            "-:-:- Error - junit | v/a.test.mjs > throws: boom \"!\"",
        ]
    );
    assert_eq!(
        names(&report),
        ["v/a.test.mjs > calc > adds", "v/a.test.mjs > throws"]
    );
    assert_eq!(report.counts(), Counts::of(1, 2));
    assert_eq!((report.skipped, report.problem), (1, None));
}

#[test]
fn a_report_of_pytest_and_one_without_a_root() {
    let pytest = r#"<testsuite name="pytest"><testcase classname="tests.test_a.TestX" name="test_b" file="tests/test_a.py" line="3"><failure message="assert 1 == 2"><![CDATA[def test_b():
>       assert 1 == 2
E       assert 1 == 2 & more

/proj/tests/test_a.py:7: AssertionError]]></failure></testcase>
<testcase classname="tests.test_a" name="test_c" file="tests/test_a.py" line="9"><error>KeyError: &amp; &nothing;
example.com:80: refused</error><error message="again"/></testcase></testsuite>"#;
    let report = read(pytest.as_bytes(), "/proj");
    assert_eq!(
        shown_of(report.diagnostics),
        [
            "tests/test_a.py:7:- Error - junit | tests.test_a.TestX::test_b: assert 1 == 2",
            "tests/test_a.py:9:- Error - junit | tests.test_a::test_c: KeyError: & ⏎example.com:80: refused",
        ]
    );
    assert_eq!((report.passed, report.failed), (0, 2));
}

#[test]
fn reports_are_added_up() {
    let one =
        r#"<testsuite><testcase name="a"><failure/></testcase><testcase name="b"/></testsuite>"#;
    let mut report = read(one.as_bytes(), "");
    report.join(read(one.replace("\"a\"", "\"c\"").as_bytes(), ""));
    report.join(read(b"<html>", ""));
    assert_eq!(report.counts(), Counts::of(2, 2));
    assert_eq!(names(&report), ["a", "c"]);
    assert_eq!(
        shown_of(report.diagnostics.clone()),
        [
            "-:-:- Error - junit | a: failed",
            "-:-:- Error - junit | c: failed"
        ]
    );
    assert_eq!(
        report.problem.as_deref(),
        Some("it is not JUnit XML: it has no testsuite")
    );
}

#[test]
fn hostile_reports_take_no_more_than_their_length() {
    let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<testsuite><testcase name="&b;"><failure message="&b;">&b;&c;x</failure></testcase></testsuite>"#;
    let report = read(bomb.as_bytes(), "");
    assert_eq!(
        shown_of(report.diagnostics),
        ["-:-:- Error - junit | &b;: &b;"]
    );
    let deep = format!("<testsuite>{}", "<a>".repeat(500_000));
    assert_eq!(read(deep.as_bytes(), "").counts(), Counts::UNKNOWN);
    let mut large = b"<testsuite><testcase name='a'/>".to_vec();
    large.resize(MAX_REPORT_BYTES + 1, b' ');
    let report = read(&large, "");
    assert_eq!(report.counts(), Counts::of(1, 0));
    assert_eq!(
        report.problem.as_deref(),
        Some("it has 8388609 bytes, of which 8388608 were read")
    );
}

#[test]
fn what_is_damaged_is_read_up_to_there() {
    let torn = b"<testsuite><testcase name='\xff'><failure message='m'/></testcase><testcase na";
    let report = read(torn, "");
    assert_eq!(
        shown_of(report.diagnostics),
        ["-:-:- Error - junit | \u{fffd}: m"]
    );
    assert!(
        report
            .problem
            .is_some_and(|why| why.starts_with("it is damaged: "))
    );
    let mut many = "<testsuite>".to_owned();
    for n in 0..1_500 {
        many.push_str(&format!("<testcase name='t{n}'><failure/></testcase>"));
    }
    let report = read(many.as_bytes(), "");
    assert_eq!((report.failed, report.diagnostics.len()), (1_500, 1_000));
}

#[test]
fn a_report_in_the_output_is_no_diagnostic() {
    assert_eq!(
        shown("<testcase name=\"x\"><failure message=\"m\"/></testcase>"),
        [""; 0]
    );
}

proptest! {
    #[test]
    fn reading_any_report_is_total(xml in "(<testsuite>|<testcase name='a'>|<failure message='&lt;'>|</failure>|</testcase>|&#x41;|&|<!\\[CDATA\\[|]]>|[a-z<>/'&;:.]){0,30}") {
        let report = read(xml.as_bytes(), "/proj");
        prop_assert!(report.diagnostics.len() as u64 <= report.failed);
    }
}
