//! Tests that share a name: an old failure of one excuses no new one of another.

use super::*;

/// Tests of two packages may have the same name.
#[test]
fn a_new_failure_is_not_an_old_one_of_the_same_name_in_another_file() {
    let suite = "for p in a b; do
  if grep -qx ok $p/work.txt; then echo \"✔ adds (1ms)\"; else
    printf '✖ adds (1ms)\\n  AssertionError: no\\n      at TestContext.<anonymous> (%s/%s/add.test.js:4:3)\\n' $PWD $p; bad=1; fi
done
printf 'ℹ tests 2\\nℹ pass 1\\nℹ fail 1\\n'
[ -z \"$bad\" ]
";
    let files = [
        ("suite.sh", suite),
        ("a/work.txt", "x\n"),
        ("b/work.txt", "ok\n"),
        ("a/add.test.js", ""),
        ("b/add.test.js", ""),
        ("c.txt", ""),
    ];
    let settings = "max_retries: 0\nknown_failures: tolerate\n";
    for (agent, code, blame) in [
        ("echo ok > a/work.txt; echo x > b/work.txt", 1, "unknown"),
        ("echo y > c.txt", 0, "was_red_before"),
    ] {
        let project = project(&files, "sh suite.sh", settings);
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(code);
        assert_eq!(blamed(&run), pairs(&[("adds", blame)]), "{}", run.stdout);
    }
}

/// Several tests of one name are told apart by their order, where the tool names all of them.
#[test]
fn failures_of_one_name_are_told_apart_where_every_test_is_named() {
    let suite = "n=0; for v in $(sh src/app.sh); do n=$((n + 1))
  if [ $v = ok ]; then echo \"ok $n - adds\"; else echo \"not ok $n - adds\"; bad=1; fi
done
echo 1..$n
[ -z \"$bad\" ]
";
    // One of the tests has no name.
    let unnamed = suite.replace("echo 1..$n", "echo ok; echo 1..$((n + 1))");
    let settings = "max_retries: 0\nknown_failures: tolerate\n";
    for (suite, before, now, blame) in [
        (suite, "x x ok", "ok x ok", "was_red_before"),
        (suite, "x ok ok", "ok x ok", "new"),
        (suite, "x ok ok", "x ok", "unknown"),
        (&unnamed, "x x ok", "x x ok", "unknown"),
    ] {
        let app = format!("echo {before}\n");
        let files = [("suite.sh", suite), ("src/app.sh", &app), ("other.txt", "")];
        let project = project(&files, "sh suite.sh", settings);
        let agent = format!("echo 'echo {now}' > src/app.sh; echo y > other.txt; echo Done.");
        let is_old = blame == "was_red_before";
        let run = run(&project, &agent, &[]).expect(i32::from(!is_old));
        let reason = if is_old {
            "unverified"
        } else {
            "verification_failed"
        };
        let told = (run.task(0)["reason"].as_str(), blamed(&run));
        let expected = (Some(reason), pairs(&[("adds", blame)]));
        assert_eq!(told, expected, "{before}, {now}: {}", run.stdout);
    }
}

/// Two packages may have tests of the same name: that one of them was red before excuses no other.
#[test]
fn a_new_failure_is_not_tolerated_under_the_name_of_an_old_one() {
    let suite = "for p in a b; do if grep -qx ok $p.txt; then echo '2 passed in 0.01s'; else printf 'FAILED tests/t.py::test_add - assert 1 == 2\\n1 failed, 1 passed in 0.01s\\n'; bad=1; fi; done\n[ -z \"$bad\" ]\n";
    for (agent, expected) in [
        ("echo x > c.txt; echo Done.", "was_red_before"),
        ("echo x > b.txt; echo Done.", "unknown"),
        ("echo ok > a.txt; echo x > b.txt; echo Done.", "unknown"),
    ] {
        let files = [("suite.sh", suite), ("a.txt", "x\n"), ("b.txt", "ok\n")];
        let settings = "max_retries: 0\nknown_failures: tolerate\n";
        let project = project(&files, "sh suite.sh", settings);
        let is_old = expected == "was_red_before";
        let run = run(&project, agent, &[]).expect(i32::from(!is_old));
        let reason = if is_old {
            "unverified"
        } else {
            "verification_failed"
        };
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
        assert_eq!(
            blamed(&run),
            pairs(&[("tests/t.py::test_add", expected)]),
            "{agent}"
        );
    }
}

/// Rust's examples in one comment have one name but for their lines, and are printed as they end.
#[test]
fn examples_of_one_comment_are_told_apart_however_they_are_printed() {
    let suite = "echo 'running 2 tests'; while read line result; do
  echo \"test src/a.rs - (line $line) ... $result\"
done < src/app.sh
echo 'test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s'
exit 1
";
    let settings = "max_retries: 0\nknown_failures: tolerate\n";
    for (now, blame) in [
        ("9 ok\n3 FAILED\n", "was_red_before"),
        // It ends where the old one was.
        ("10 FAILED\n4 ok\n", "new"),
    ] {
        let files = [
            ("suite.sh", suite),
            ("src/app.sh", "3 FAILED\n9 ok\n"),
            ("other.txt", ""),
        ];
        let project = project(&files, "sh suite.sh", settings);
        let agent = format!("printf '{now}' > src/app.sh; echo y > other.txt; echo Done.");
        let run = run(&project, &agent, &[]).expect(i32::from(blame == "new"));
        let expected = pairs(&[("src/a.rs - (line <n>)", blame)]);
        assert_eq!(blamed(&run), expected, "{now}: {}", run.stdout);
    }
}

/// Whoever passes an output on, and in whatever form, its tests have the same names and places.
#[test]
fn failing_tests_are_named_and_placed_whatever_is_around_their_output() {
    let go = "--- FAIL: TestAdd (0.00s)\n    add_test.go:9: no\nFAIL\nFAIL\texample.org/m/sub\t0.1s\nok  \texample.org/m\t0.1s\n";
    let jest = "\u{1b}[31m FAIL \u{1b}[39m web/src/a.test.js\n  ● calc › adds\n\n    no\n\n      at Object.toBe (src/a.test.js:3:5)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n";
    let before_each = |before: &str, output: &str| -> String {
        let lines = output.lines();
        lines.map(|line| format!("{before}{line}\n")).collect()
    };
    let events = |output: &str| -> String {
        let lines = output.lines().map(|line| {
            let output = format!("{line}\n");
            json!({"Action": "output", "Package": "example.org/m", "Output": output})
        });
        lines.map(|event| format!("{event}\n")).collect()
    };
    let in_go = ("TestAdd", "sub/add_test.go", 9);
    let in_jest = ("web/src/a.test.js › calc › adds", "web/src/a.test.js", 3);
    for (output, expected) in [
        (events(go), in_go),
        (before_each("web-1  | ", jest), in_jest),
    ] {
        let files = [
            ("out.txt", output.as_str()),
            ("add_test.go", ""),
            ("sub/add_test.go", ""),
            ("web/src/a.test.js", ""),
            ("other/src/a.test.js", ""),
            ("work.txt", ""),
        ];
        let project = project(&files, "cat out.txt; exit 1", "max_retries: 0\n");
        let run = run(&project, "echo x > work.txt; echo Done.", &[]).expect(1);
        let test = &run.task(0)["failing_tests"][0];
        let (name, path, line) = expected;
        assert_eq!(
            (&test["test"], &test["path"], &test["line"]),
            (&json!(name), &json!(path), &json!(line)),
            "{output}"
        );
    }
}
