use crate::checks::diagnostic::*;
use crate::checks::reading::{parse, parse_in};
use proptest::prelude::*;

/// `path:line:column severity code source | message`, for readable tables.
pub(super) fn shown(output: &str) -> Vec<String> {
    shown_of(parse_in(output, "/proj"))
}

pub(super) fn shown_of(found: Vec<Diagnostic>) -> Vec<String> {
    let part = |it: Option<u32>| it.map_or("-".to_owned(), |n| n.to_string());
    found
        .into_iter()
        .map(|it| {
            format!(
                "{}:{}:{} {:?} {} {} | {}",
                it.path.as_deref().unwrap_or("-"),
                part(it.line),
                part(it.column),
                it.severity,
                it.code.as_deref().unwrap_or("-"),
                it.source,
                it.message.replace('\n', "⏎")
            )
        })
        .collect()
}

pub(super) fn expect(output: &str, expected: &[&str]) {
    assert_eq!(shown(output), expected, "{output}");
}

#[test]
fn findings_of_linters_are_told_from_those_of_compilers() {
    for (output, expected) in [
        ("tests/a.py:1:1: F401 'os' imported but unused", true),
        ("Would reformat: tests/a.py", true),
        ("tests/a.zig:1:1: error: expected ';'", false),
        ("a.c:1:2: error: 'x' undeclared (first use)", false),
    ] {
        let found = parse(output);
        assert_eq!(found.len(), 1, "{output}");
        assert_eq!(found[0].is_of_linter(), expected, "{output}");
    }
}

#[test]
fn rustc_and_clippy() {
    expect(
        "   Compiling rs v0.1.0 (/proj)
warning: unused variable: `unused`
 --> src/lib.rs:4:24
  |
4 | fn g() -> String { let unused = 1; 5 }
  |                        ^^^^^^ help: prefix it
  |
  = note: `#[warn(unused_variables)]` on by default

error[E0308]: mismatched types
  --> /proj/src/x.rs:3:5
   |
3  |     5
   |     ^ expected `String`, found integer

error: this could be a `const`
 --> /home/user/.cargo/registry/src/dep-1.0.0/src/lib.rs:9:1

error: linking with `cc` failed: exit status: 1
  |
  = note: ld: cannot find -lfoo

warning: `rs` (lib) generated 1 warning
error: could not compile `rs` (lib) due to 2 previous errors; 1 warning emitted
",
        &[
            "src/x.rs:3:5 Error E0308 rustc | mismatched types",
            "-:-:- Error - rustc | this could be a `const`",
            "-:-:- Error - rustc | linking with `cc` failed: exit status: 1",
            "src/lib.rs:4:24 Warning unused_variables rustc | unused variable: `unused`",
        ],
    );
}

#[test]
fn rust_panics_in_both_forms() {
    expect(
        "---- tests::adds stdout ----

thread 'tests::adds' (10289) panicked at src/lib.rs:2:46:
assertion `left == right` failed: sum of 1
  left: 2
 right: 3
stack backtrace:
   0: rust_begin_unwind
             at /rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/std/src/panicking.rs:689:5
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace

---- tests::old stdout ----
thread 'tests::old' panicked at 'assertion failed: `(left == right)`
  left: `2`,
 right: `3`', src/old.rs:10:5
thread 'main' panicked at 'it's gone', src/main.rs:4:9
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
thread '<unnamed>' panicked at /rustc/5980/library/core/src/option.rs:9:1:
called `Option::unwrap()` on a `None` value
",
        &[
            "src/lib.rs:2:46 Error - cargo test | tests::adds: assertion `left == right` failed: sum of 1⏎  left: 2⏎ right: 3",
            "src/old.rs:10:5 Error - cargo test | tests::old: assertion failed: `(left == right)`⏎  left: `2`,⏎ right: `3`",
            "src/main.rs:4:9 Error - cargo test | it's gone",
            "-:-:- Error - cargo test | called `Option::unwrap()` on a `None` value",
        ],
    );
}

#[test]
fn typescript_plain_and_pretty() {
    expect(
        "src/a.ts(1,7): error TS2322: Type 'A' is not assignable to type 'B'.
  Property 'x' is missing in type 'A'.
src/(group)/[id]/page.tsx(4,2): error TS2304: Cannot find name 'y'.
src/b.ts:1:19 - error TS2307: Cannot find module './b'.

1 import { y } from './b';
                    ~~~~~

error TS18003: No inputs were found in config file.
Found 3 errors in 2 files.
",
        &[
            "src/a.ts:1:7 Error TS2322 tsc | Type 'A' is not assignable to type 'B'.⏎Property 'x' is missing in type 'A'.",
            "src/(group)/[id]/page.tsx:4:2 Error TS2304 tsc | Cannot find name 'y'.",
            "src/b.ts:1:19 Error TS2307 tsc | Cannot find module './b'.",
            "-:-:- Error TS18003 tsc | No inputs were found in config file.",
        ],
    );
}

#[test]
fn pytest_sections() {
    expect(
        "==================== ERRORS ====================
____________ ERROR collecting tests/test_b.py ____________
tests/test_b.py:1: in <module>
    import nowhere
E   ModuleNotFoundError: No module named 'nowhere'
==================== FAILURES ====================
___________________ test_bad ___________________

    def test_bad():
>       assert helper(2) == 5
E       assert 4 == 5
E        +  where 4 = helper(2)

tests/test_a.py:7: AssertionError
_______________ TestX.test_deep[a-1] _______________

tests/test_a.py:20: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _
/usr/lib/python3/json/decoder.py:355: JSONDecodeError
E   json.decoder.JSONDecodeError: Expecting value
=============== short test summary info ===============
FAILED tests/test_a.py::test_bad - assert 4 == 5
1 failed in 0.02s
",
        &[
            "tests/test_b.py:1:- Error - pytest | tests/test_b.py: ModuleNotFoundError: No module named 'nowhere'",
            "tests/test_a.py:7:- Error - pytest | test_bad: assert 4 == 5⏎+  where 4 = helper(2)",
            "tests/test_a.py:20:- Error - pytest | TestX.test_deep[a-1]: json.decoder.JSONDecodeError: Expecting value",
        ],
    );
}

#[test]
fn pytest_summary_alone() {
    expect(
        "FAILED tests/x.py::TestA::test_b[1 - 2] - assert 1 == 2\nERROR tests/y.py\n",
        &[
            "tests/x.py:-:- Error - pytest | TestA::test_b[1 - 2]: assert 1 == 2",
            "tests/y.py:-:- Error - pytest | failed",
        ],
    );
}

#[test]
fn python_tracebacks() {
    expect(
        "Traceback (most recent call last):
  File \"/proj/tests/test_a.py\", line 13, in test_eq
    self.assertEqual(1, 2)
  File \"/usr/lib/python3.11/unittest/case.py\", line 873, in assertEqual
    raise self.failureException(msg)
AssertionError: 1 != 2
  File \"app/x.py\", line 3
    def f(:
          ^
SyntaxError: invalid syntax
",
        &[
            "tests/test_a.py:13:- Error - python | AssertionError: 1 != 2",
            "app/x.py:3:- Error - python | SyntaxError: invalid syntax",
        ],
    );
}

#[test]
fn go_builds_vets_and_tests() {
    expect(
        "# example.com/m/calc
./calc/calc.go:3:5: undefined: total
vet: calc/vet.go:9:2: fmt.Printf format %d has arg s of wrong type string
=== RUN   TestAdd
    calc_test.go:12: Add(1, 2) = 4; want 3
        more about it
--- FAIL: TestAdd (0.00s)
panic: runtime error: index out of range [3] with length 3

goroutine 7 [running]:
testing.tRunner.func1.2({0x5a1b20, 0xc000010d98})
\t/usr/local/go/src/testing/testing.go:1545 +0x238
example.com/m/calc.Get(...)
\t/proj/calc/get.go:8
FAIL\texample.com/m/calc\t0.003s
",
        &[
            "calc/calc.go:3:5 Error - go | undefined: total",
            "calc/vet.go:9:2 Error - go | fmt.Printf format %d has arg s of wrong type string",
            "calc_test.go:12:- Error - go | TestAdd: Add(1, 2) = 4; want 3⏎more about it",
            "calc/get.go:8:- Error - go | TestAdd: panic: runtime error: index out of range [3] with length 3",
        ],
    );
}

#[test]
fn jest_vitest_mocha_and_node() {
    expect(
        "FAIL t/a.test.js
  ● calc › adds

    expect(received).toBe(expected) // Object.is equality

    Expected: 3
    Received: 2

    > 1 | test('adds', () => { expect(1+1).toBe(3) });
        |                                  ^

      at Object.toBe (t/a.test.js:1:59)
 FAIL  v/a.test.mjs > calc > adds
AssertionError: expected 2 to be 3 // Object.is equality
 ❯ v/a.test.mjs:2:59
      1| import {test} from 'vitest';
  1 failing

  1) calc
       subtracts:
     AssertionError: 2 !== 3
      at Object.run (node_modules/assert/index.js:1:1)
      at Context.<anonymous> (m/a.js:1:84)

✖ inner bad (0.079406ms)
  Error: x
      at TestContext.<anonymous> (file:///proj/n/a.test.js:1:200)
✖ elsewhere (0.1ms)
  Error: y
      at Test.run (node:internal/test_runner/test:796:25)
",
        &[
            "t/a.test.js:1:59 Error - jest | calc › adds: expect(received).toBe(expected) // Object.is equality⏎Expected: 3⏎Received: 2",
            "v/a.test.mjs:2:59 Error - vitest | v/a.test.mjs > calc > adds: AssertionError: expected 2 to be 3 // Object.is equality",
            "m/a.js:1:84 Error - mocha | calc › subtracts: AssertionError: 2 !== 3",
            "n/a.test.js:1:200 Error - node --test | inner bad: Error: x",
        ],
    );
}

#[test]
fn plain_places_of_other_tools() {
    expect(
        "src/main.c:12:5: error: expected ';' before '}' token
src/main.c:10:1: warning: unused variable 'x' [-Wunused-variable]
src/main.c:9: note: declared here
/usr/include/stdio.h:30:1: fatal error: gone
app/models.py:3: error: Incompatible types in assignment  [assignment]
app/x.py:1:80: E501 line too long (88 > 79 characters)
Makefile:3: error: missing separator
C:\\src\\a.cpp:4:2: error: outside
",
        &[
            "src/main.c:12:5 Error - gcc | expected ';' before '}' token",
            "-:-:- Error - gcc | gone",
            "app/models.py:3:- Error assignment mypy | Incompatible types in assignment",
            "app/x.py:1:80 Error E501 other | line too long (88 > 79 characters)",
            "Makefile:3:- Error - other | missing separator",
            "-:-:- Error - gcc | outside",
            "src/main.c:10:1 Warning -Wunused-variable gcc | unused variable 'x'⏎note: src/main.c:9: declared here",
        ],
    );
}

#[test]
fn what_only_looks_like_a_place_is_none() {
    let lines = [
        "12:30:45: starting up",
        "2026-01-02T12:30:45: starting up",
        "http://example.org:80:1: not a file",
        "example.com:443: connection refused",
        "example.com:443:1: connection refused",
        "localhost:8080: error: refused",
        "127.0.0.1:80:1: refused",
        "main.go:12: listening",
        "server.py:12: INFO: started",
        "app.js:1:2: debug: loaded",
        "error: 3 files changed",
        "warning: LF will be replaced by CRLF",
        "thread pool: 3:4: x",
        "2 failing",
        "  1) not a place",
    ];
    for line in lines {
        assert_eq!(parse(line), [], "{line}");
    }
}

#[test]
fn foreign_paths_lose_their_place_but_not_their_message() {
    let expected = Diagnostic {
        path: None,
        line: None,
        column: None,
        severity: Severity::Error,
        code: None,
        message: "m".to_owned(),
        source: "mypy".into(),
        ..Diagnostic::default()
    };
    for path in ["../a.py", "/etc/a.py", "src/../../a.py", "~/a.py"] {
        assert_eq!(
            parse_in(&format!("{path}:1:2: error: m"), "/proj"),
            std::slice::from_ref(&expected)
        );
    }
}

#[test]
fn repetitions_are_dropped_and_the_number_is_bounded() {
    let same = "a.c:1:2: error: m\n".repeat(5);
    assert_eq!(parse(&same).len(), 1);
    let many: String = (1..2_000)
        .map(|n| format!("a.c:{n}:1: error: m\n"))
        .collect();
    let lines: Vec<_> = parse(&many).into_iter().filter_map(|it| it.line).collect();
    assert_eq!(lines, (1..=1_000).collect::<Vec<u32>>());
}

#[test]
fn messages_are_bounded() {
    let long = format!("a.c:1:1: error: {}", "ä".repeat(10_000));
    let chars: Vec<usize> = parse(&long)
        .iter()
        .map(|it| it.message.chars().count())
        .collect();
    assert_eq!(chars, [2_000]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_output_panics_and_no_path_leaves_the_root(
        output in r"(error(\[E0308\])?: |\.\./|/proj/|a\.(c|py|go|ts)|:[0-9]{1,11}|\([0-9],[0-9]\)|: | --> |thread 'x' panicked at |'|E   |___ t ___|\n|--- FAIL: T|[ \tx0-9]){0,40}",
    ) {
        for found in parse_in(&output, "/proj") {
            prop_assert!(found.path.is_some() || found.line.is_none());
            prop_assert!(found.line.is_some() || found.column.is_none());
            let path = found.path.unwrap_or_default();
            prop_assert!(!path.starts_with('/') && !path.split('/').any(|part| part == ".."));
            prop_assert!(!found.message.is_empty());
        }
    }

    #[test]
    fn parsing_any_text_is_total(output in any::<String>()) {
        parse(&output);
    }
}
