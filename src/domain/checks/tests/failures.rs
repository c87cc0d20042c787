use super::FAILED;
use crate::checks::diagnostic::WorkTree;
use crate::checks::verdict::CheckOutcome;
use crate::checks::*;
use proptest::prelude::*;

fn print(output: &str) -> String {
    check_fingerprint("test", &FAILED, output)
}

fn failing_tests(output: &str) -> Vec<FailingTest> {
    reading::read(&crate::text::plain(output), &[], &WorkTree::at("")).failing_tests
}

fn names(output: &str) -> Vec<String> {
    failing_tests(output)
        .into_iter()
        .map(|test| test.name)
        .collect()
}

#[test]
fn failing_tests_are_named_as_their_tool_names_them() {
    let table: &[(&str, &str, &[&str])] = &[
        (
            "cargo",
            "test a::ok ... ok\ntest a::bad ... FAILED\ntest a::sp - should panic ... FAILED\n\nfailures:\n    a::bad\n    a::listed\n\ntest result: FAILED.\n",
            &["a::bad", "a::listed", "a::sp"],
        ),
        (
            "nextest",
            "        FAIL [   0.004s] (1/6) rs tests::er\n    test tests::er ... FAILED\n     SIGABRT [   0.1s] (2/6) rs::it dies\n",
            &["rs tests::er", "rs::it dies"],
        ),
        (
            "pytest",
            "FAILED tests/x.py::test_a - assert 1 == 2\nFAILED tests/x.py::T::test_b[a b] - x - y\nERROR tests/y.py - ImportError\nERROR tests/z.py::test_c\n",
            &[
                "tests/x.py::T::test_b[a b]",
                "tests/x.py::test_a",
                "tests/y.py",
                "tests/z.py::test_c",
            ],
        ),
        (
            "pytest -v",
            "tests/x.py::test_a FAILED                 [ 50%]\ntests/x.py::test_b PASSED [100%]\n",
            &["tests/x.py::test_a"],
        ),
        (
            "pytest without summary",
            "=== FAILURES ===\n_____ T.test_a _____\nE  x\n",
            &["T.test_a"],
        ),
        (
            "unittest",
            "======================================================================\nFAIL: test_eq (test_a.T.test_eq)\n----\n======================================================================\nERROR: test_old (test_a.T)\n======================================================================\nFAIL: test_sub (test_a.T.test_sub) (n=1)\n",
            &[
                "test_a.T.test_eq",
                "test_a.T.test_old",
                "test_a.T.test_sub (n=1)",
            ],
        ),
        (
            "jest",
            "PASS t/ok.test.js\nFAIL t/a.test.js (5.1 s)\n  ● calc › adds\n  ● Console\nFAIL t/b.test.js\n  ● Test suite failed to run\n",
            &["t/a.test.js › calc › adds", "t/b.test.js"],
        ),
        (
            "vitest",
            " FAIL  v/a.test.mjs > calc > adds\n FAIL  v/b.test.mjs [ v/b.test.mjs ]\n FAIL  |unit| v/c.test.mjs > x\n",
            &[
                "v/a.test.mjs > calc > adds",
                "v/b.test.mjs",
                "v/c.test.mjs > x",
            ],
        ),
        (
            "mocha",
            "    1) adds\n\n  1 passing (4ms)\n  2 failing\n\n  1) calc\n       adds:\n\n      Error\n\n  2) flat:\n     Error\n",
            &["calc › adds", "flat"],
        ),
        (
            "go",
            "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/sub (0.00s)\n--- PASS: TestB (0.00s)\nFAIL\texample.com/m [build failed]\n",
            &["TestA", "TestA/sub", "example.com/m [build failed]"],
        ),
        (
            "tap",
            "not ok 1 - adds\nok 2 - fine\n    not ok 1 - inner\nnot ok 3 - later # TODO\nnot ok 4 - a # b # time=3ms\nnot ok 5 - \\# todo\n   not ok 6 - printed\n",
            &["\\# todo", "a # b", "adds", "inner"],
        ),
        (
            "node",
            "✖ adds (1.7ms)\n✔ fine (1ms)\n✖ failing tests:\n",
            &["adds"],
        ),
        (
            "go: time over, and no test",
            "panic: test timed out after 1s\nrunning tests:\n\tTestSlow (1s)\n\tTestSlow/sub (0s)\n\ngoroutine 1 [running]:\nFAIL\tm/a\t1.0s\nok  \tm/b\t0.1s\nFAIL\tm/c\t0.1s\n",
            &["TestSlow", "TestSlow/sub", "m/c"],
        ),
        (
            "rails",
            "Failure:\nUserTest#test_it_is_valid [/proj/test/user_test.rb:5]:\nExpected false\n\n1 runs, 1 assertions, 1 failures, 0 errors, 0 skips\n",
            &["UserTest#test_it_is_valid"],
        ),
        (
            "rspec",
            "rspec ./spec/a_spec.rb:12 # A does b\n",
            &["A does b"],
        ),
        (
            "minitest",
            "  1) Failure:\nTestA#test_b [test/a.rb:5]:\n",
            &["TestA#test_b"],
        ),
        ("gradle", "FooTest > adds() FAILED\n", &["FooTest > adds()"]),
        (
            "maven",
            "[ERROR] a.FooTest.bar -- Time elapsed: 0.01 s <<< FAILURE!\n",
            &["a.FooTest.bar"],
        ),
        ("dotnet", "  Failed A.B.C [12 ms]\n", &["A.B.C"]),
        (
            "nothing",
            "FAILED: the agent says so\nall good\n✖ 3 problems (3 errors, 0 warnings)\n",
            &[],
        ),
    ];
    for (tool, output, expected) in table {
        assert_eq!(names(output), *expected, "{tool}");
    }
}

fn cargo_run(seconds: &str, thread: u32, order: [&str; 2], right: u32) -> String {
    let [one, two] = order;
    format!(
        "   Compiling rs v0.1.0 (/work)
     Running unittests src/lib.rs (target/debug/deps/rs-{thread:016x})

running 2 tests
test {one} ... FAILED
test {two} ... FAILED

failures:

---- {one} stdout ----

thread '{one}' ({thread}) panicked at src/lib.rs:2:46:
assertion `left == right` failed
  left: 2
 right: {right}

---- {two} stdout ----

thread '{two}' ({thread}1) panicked at src/lib.rs:2:46:
assertion `left == right` failed
  left: 2
 right: {right}

failures:
    {one}
    {two}

test result: FAILED. 0 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in {seconds}s
"
    )
}

#[test]
fn the_order_of_concurrent_tests_does_not_count() {
    let a = cargo_run("0.07", 10_289, ["tests::a", "tests::b"], 3);
    let b = cargo_run("1.20", 20_111, ["tests::b", "tests::a"], 3);
    assert_eq!(print(&a), print(&b));
}

#[test]
fn neither_the_order_of_suites_nor_more_passing_tests_count() {
    let jest = |order: [&str; 2], passed: u32| {
        let suites: String = order
            .iter()
            .map(|it| {
                format!(
                    "FAIL t/{it}.test.js\n  ● {it} › works\n\n    Expected: 3\n    Received: 2\n\n\
                     \x20     at Object.toBe (t/{it}.test.js:{passed}:59)\n\nPASS t/{passed}.test.js\n"
                )
            })
            .collect();
        format!(
            "{suites}\nTest Suites: 2 failed, {passed} passed\nTests: 2 failed, {passed} passed\nTime: 0.{passed} s\n"
        )
    };
    assert_eq!(print(&jest(["a", "b"], 3)), print(&jest(["b", "a"], 4)));
    let unittest = |ran: u32| {
        let rule = "=".repeat(70);
        format!(
            "{rule}\nFAIL: test_eq (a.T.test_eq)\n-----\nAssertionError: 1 != 2\n\n-----\n\
             Ran {ran} tests in 0.00{ran}s\n\nFAILED (failures=1)\n"
        )
    };
    assert_eq!(print(&unittest(2)), print(&unittest(3)));
}

#[test]
fn another_value_test_check_or_exit_is_another_failure() {
    let base = cargo_run("0.07", 1, ["tests::a", "tests::b"], 3);
    let value = cargo_run("0.07", 1, ["tests::a", "tests::b"], 4);
    let test = cargo_run("0.07", 1, ["tests::a", "tests::c"], 3);
    let all = [
        print(&base),
        print(&value),
        print(&test),
        check_fingerprint("other", &FAILED, &base),
        check_fingerprint("test", &CheckOutcome::Failed { exit: 2 }, &base),
        check_fingerprint("test", &CheckOutcome::Signalled { signal: 9 }, &base),
    ];
    let distinct: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
    assert!(
        all.iter()
            .all(|it| it.len() == 32 && it.chars().all(|c| c.is_ascii_hexdigit()))
    );
}

#[test]
fn what_changes_from_run_to_run_does_not_count() {
    let table = [
        (
            "uuid",
            "id 550e8400-e29b-41d4-a716-446655440000 failed",
            "id 6ba7b810-9dad-11d1-80b4-00c04fd430c8 failed",
        ),
        (
            "number",
            "request id=323420826 failed",
            "request id=99834127 failed",
        ),
        (
            "duration",
            "2 tests, 1 error in 1.02s",
            "2 tests, 1 error in 0.9s",
        ),
        (
            "finished",
            "error; finished in 0.00s",
            "error; finished in 12.5s",
        ),
        (
            "milliseconds",
            "FAIL suite a (123 ms)",
            "FAIL suite a (4 ms)",
        ),
        ("trailing duration", "   × adds 5ms", "   × adds 11ms"),
        (
            "address",
            "at 0x7ffd1234abcd: bad",
            "at 0x55d01234abcd: bad",
        ),
        (
            "temporary directory",
            "cannot read /tmp/.tmpAbC123/a.json",
            "cannot read /tmp/.tmpXyZ789/a.json",
        ),
        (
            "temporary file",
            "cannot read /tmp/tmp.0aXb9",
            "cannot read /tmp/tmp.9bYc1",
        ),
        (
            "mac",
            "in /var/folders/ab/x1y2/T/q/a.js: bad",
            "in /private/var/folders/cd/z9/T/r/a.js: bad",
        ),
        (
            "cargo suffix",
            "deps/foo-1a2b3c4d5e died",
            "deps/foo-5e4d3c2b1a died",
        ),
        ("pid", "process 1234 died, pid=99", "process 77 died, pid=1"),
        (
            "thread",
            "thread 'main' (10289) panicked",
            "thread 'main' (3) panicked",
        ),
        (
            "port",
            "GET http://127.0.0.1:41231/ refused",
            "GET http://127.0.0.1:5512/ refused",
        ),
        (
            "date",
            "2026-01-02 10:11:12.123 ERROR bad",
            "2026-02-03 20:21:22 ERROR bad",
        ),
        ("stamp", "[10:11:12] expected 1", "[20:21:22] expected 1"),
        (
            "moment",
            "expected 3 but got 4 at 2026-01-02T10:11:12Z",
            "expected 3 but got 4 at 2026-01-03T10:11:13.5Z",
        ),
        (
            "commit",
            "at commit a1b2c3d4e5f6 it broke",
            "at commit 0f9e8d7c6b5a it broke",
        ),
        ("line", "src/a.rs:3:5: bad", "src/a.rs:13:5: bad"),
        ("source", "3 | let x = 1;", "14 | let x = 1;"),
        ("seed", "Randomized with seed 123", "Randomized with seed 9"),
        (
            "counter",
            "FAIL [ 0.1s] (1/6) a b",
            "FAIL [ 0.2s] (3/6) a b",
        ),
        ("colour", "\u{1b}[31mbad\u{1b}[0m", "bad"),
        ("progress", "bad\n.F..s [ 50%]\n", "bad\n..F.s [ 50%]\n"),
        ("order", "one bad\ntwo bad", "two bad\none bad"),
    ];
    for (what, a, b) in table {
        assert_eq!(print(a), print(b), "{what}");
    }
}

#[test]
fn what_a_test_is_about_does_count() {
    let table = [
        ("number", "  left: 2", "  left: 3"),
        (
            "digest",
            "expected 9f86d081884c7d65, got 1",
            "expected 60303ae22b998861, got 1",
        ),
        (
            "date",
            "assert '2026-01-02' == x",
            "assert '2026-01-03' == x",
        ),
        ("duration", " right: 5s", " right: 6s"),
        ("small hex", "flags 0xff", "flags 0xfe"),
        ("file", "src/a.rs:3:5: bad", "src/b.rs:3:5: bad"),
        ("word", "no such column", "no such table"),
        (
            "file in temporary directory",
            "/tmp/x1/a.json: bad",
            "/tmp/x1/b.json: bad",
        ),
    ];
    for (what, a, b) in table {
        assert_ne!(print(a), print(b), "{what}");
    }
}

#[test]
fn several_checks_have_one_fingerprint() {
    let check = |name, output| FailingCheck {
        name,
        outcome: &FAILED,
        output,
    };
    let fingerprint = |checks: &[FailingCheck<'_>]| {
        let each = checks.iter();
        let each: Vec<String> = each
            .map(|it| check_fingerprint(it.name, it.outcome, it.output))
            .collect();
        combined(each.iter().map(String::as_str))
    };
    let both = fingerprint(&[check("a", "x"), check("b", "y")]);
    assert_eq!(both, fingerprint(&[check("a", "x\n"), check("b", "y")]));
    assert_ne!(both, fingerprint(&[check("a", "x")]));
    assert_ne!(both, fingerprint(&[check("a", "x"), check("b", "z")]));
}

#[test]
fn first_errors_are_one_line_each() {
    let table: &[(&str, &[&str])] = &[
        (
            "error[E0308]: mismatched types\n --> src/x.rs:3:5\n\nerror[E0001]: second\n --> src/y.rs:4:5\n\nerror[E0002]: third\n --> src/z.rs:4:5\n",
            &[
                "src/x.rs:3: E0308: mismatched types",
                "src/y.rs:4: E0001: second",
            ],
        ),
        ("not ok 1 - adds\n", &["adds"]),
        (
            "=== FAILED ===\nhalfway\nError: the widget   is\tgone\nlast\n",
            &["Error: the widget is gone"],
        ),
        (
            "npm error npx canceled due to missing packages and no YES option: [\"knip@6.44.2\"]\nnpm notice\nnpm error A complete log of this run can be found in: /root/.npm/_logs/1.log\n",
            &[
                "npm error npx canceled due to missing packages and no YES option: [\"knip@6.44.2\"]",
            ],
        ),
        (
            "npm error Missing script: \"tets\"\nnpm error\nnpm error To see a list of scripts, run:\nnpm error   npm run\nnpm error A complete log of this run can be found in: /root/.npm/_logs/1.log\n",
            &["npm error Missing script: \"tets\""],
        ),
        (
            "/lib/a.rb:4:in `m': Could not find rake (Bundler::GemNotFound)\n\tfrom /lib/b.rb:2:in `n'\n",
            &["/lib/a.rb:4:in `m': Could not find rake (Bundler::GemNotFound)"],
        ),
        (
            "  × Failed to download `six==1.17.0`\n  ╰─▶ invalid peer certificate: UnknownIssuer\n  help: `six` was included because\n        `a` depends on\n        `six`\n",
            &["× Failed to download `six==1.17.0`"],
        ),
        ("something\nquiet ending\n\n", &["quiet ending"]),
        (
            "> node t.js\n\ncannot open database\n\u{2009}ELIFECYCLE\u{2009} Test failed. See above for more details.\n",
            &["cannot open database"],
        ),
        (
            "$ node t.js\ncannot open database\n[ELIFECYCLE] Command failed with exit code 3.\n",
            &["cannot open database"],
        ),
        (
            "cannot open database\nmake: *** [Makefile:2: test] Error 3\n",
            &["cannot open database"],
        ),
        (
            "make: *** No rule to make target 'tets'.  Stop.\n",
            &["make: *** No rule to make target 'tets'. Stop."],
        ),
        (
            "[ELIFECYCLE] Command failed with exit code 1.\n",
            &["[ELIFECYCLE] Command failed with exit code 1."],
        ),
        ("", &[]),
    ];
    for (output, expected) in table {
        assert_eq!(first_errors(output, 2, 100), *expected, "{output}");
    }
    assert_eq!(first_errors("Error: abcdefghij", 2, 10), ["Error: ab…"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn times_ids_and_addresses_do_not_count(
        uuid in prop::array::uniform2(any::<u128>()),
        address in prop::array::uniform2(0x10_0000u64..0xffff_ffff_ffff),
        millis in prop::array::uniform2(0u32..100_000),
        clock in prop::array::uniform2((0u32..24, 0u32..60, 0u32..60)),
        port in prop::array::uniform2(1_024u16..),
    ) {
        let text = |n: usize| {
            let (hour, minute, second) = clock[n];
            format!(
                "[{hour:02}:{minute:02}:{second:02}] FAIL suite {} at {:#x} on localhost:{} ({} ms)\n\
                 2026-01-02T{hour:02}:{minute:02}:{second:02}Z error: lost connection after {}.{:03}s\n",
                uuid_of(uuid[n]), address[n], port[n], millis[n], millis[n] / 1_000, millis[n] % 1_000,
            )
        };
        prop_assert_eq!(print(&text(0)), print(&text(1)));
    }

    #[test]
    fn every_function_is_total(output in any::<String>(), budget in 0usize..200) {
        excerpt(&output, budget);
        failing_tests(&output);
        first_errors(&output, 2, budget);
        prop_assert!(hints(&output).len() <= 5);
        prop_assert_eq!(print(&output), print(&output));
    }
}

fn uuid_of(n: u128) -> String {
    let hex = format!("{n:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ]
    .join("-")
}
