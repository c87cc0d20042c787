//! What is a signal, and what is none.

use super::{ChangedFile, Signal, SignalKind as K, signals};

fn changed(path: &str, old: &str, new: &str) -> ChangedFile {
    ChangedFile {
        path: path.into(),
        old: old.into(),
        new: new.into(),
    }
}

fn kinds(path: &str, old: &str, new: &str) -> Vec<(K, u32)> {
    let found = signals(&[changed(path, old, new)], Vec::new);
    found.iter().map(|one| (one.kind, one.line)).collect()
}

#[test]
fn each_kind_has_its_lines_in_several_languages() {
    for (kind, path, line) in [
        (K::Suppression, "app/a.py", "x = f()  # noqa: E501"),
        (
            K::Suppression,
            "app/a.py",
            "x: int = f()  # type: ignore[arg]",
        ),
        (
            K::Suppression,
            "src/a.ts",
            "// @ts-expect-error wrong types",
        ),
        (
            K::Suppression,
            "src/a.ts",
            "/* eslint-disable no-console */",
        ),
        (K::Suppression, "src/a.ts", "const x: any = f();"),
        (K::Suppression, "src/a.rs", "#[allow(dead_code)]"),
        (K::Suppression, "pkg/a.go", "x := f() //nolint:errcheck"),
        (
            K::TestDetection,
            "app/a.py",
            "if 'PYTEST_CURRENT_TEST' in os.environ:",
        ),
        (K::TestDetection, "app/a.py", "if 'pytest' in sys.modules:"),
        (
            K::TestDetection,
            "src/a.js",
            "if (process.env.NODE_ENV === 'test') return 1;",
        ),
        (K::TestDetection, "src/a.rs", "if cfg!(test) { return 1; }"),
        (K::TestDetection, "src/a.rs", "#[cfg(not(test))]"),
        (K::TestDetection, "lib/A.pm", "use Test::More;"),
        (
            K::Patched,
            "app/a.py",
            "    def __eq__(self, other): return True",
        ),
        (K::Patched, "src/lib.sh", "test() { :; }"),
        (K::EarlyExit, "app/a.py", "    sys.exit(0)"),
        (K::EarlyExit, "app/a.py", "    os._exit(0)"),
        (K::EarlyExit, "src/a.js", "process.exit();"),
        (K::EarlyExit, "src/a.rs", "std::process::exit(0);"),
        (K::Stub, "src/a.rs", "    todo!()"),
        (K::Stub, "app/a.py", "    raise NotImplementedError"),
        (K::Stub, "src/a.ts", "throw new Error('not implemented');"),
        (K::SwallowedError, "app/a.py", "except Exception: pass"),
        (K::SwallowedError, "src/a.ts", "try { f(); } catch (e) {}"),
        (K::SwallowedError, "src/a.ts", "await f().catch(() => {});"),
        (K::SwallowedError, "lib/a.rb", "x = f rescue nil"),
        (
            K::Patched,
            "src/a.js",
            "Array.prototype.map = function () {};",
        ),
        (K::Patched, "app/a.py", "builtins.len = lambda of: 3"),
        (
            K::Skip,
            "tests/test_a.py",
            "@pytest.mark.skip(reason='later')",
        ),
        (K::Skip, "src/a.test.ts", "it.skip('adds', () => {});"),
        (K::Skip, "pkg/a_test.go", "\tt.Skip(\"later\")"),
        (K::Skip, "tests/a.rs", "#[ignore]"),
        (
            K::Skip,
            "test/a.test.js",
            "test('a', { skip: true }, () => {});",
        ),
        (K::Skip, "spec/a_spec.rb", "  pending 'later'"),
        (K::Suppression, "app/a.py", "# ruff: noqa"),
        (K::Suppression, "app/a.py", "# isort: skip_file"),
        (K::Suppression, "app/a.py", "@typing.no_type_check"),
        (
            K::Suppression,
            "src/a.c",
            "#pragma GCC diagnostic ignored \"-Wall\"",
        ),
        (
            K::TestDetection,
            "src/a.js",
            "if (process.env.NODE_TEST_CONTEXT) {",
        ),
        (
            K::TestDetection,
            "lib/A.pm",
            "return 9 if $ENV{HARNESS_ACTIVE};",
        ),
        (
            K::TestDetection,
            "src/a.js",
            "if (typeof expect !== 'undefined') {",
        ),
        (K::TestDetection, "app/a.py", "if 'test' in sys.argv[0]:"),
        (
            K::TestDetection,
            "src/a.rs",
            "if std::thread::current().name() == Some(\"two\") {",
        ),
        (
            K::Patched,
            "src/a.js",
            "require('node:assert').equal = () => {};",
        ),
        (
            K::Patched,
            "src/a.js",
            "Object.assign(require('assert'), { equal() {} });",
        ),
        (K::EarlyExit, "src/lib.sh", "trap \"exit 0\" EXIT"),
        (K::Stub, "src/a.ts", "throw new Error('Not Implemented');"),
    ] {
        let new = format!("one\n{line}\n");
        assert!(kinds(path, "one\n", &new).contains(&(kind, 2)), "{line}");
        // What was there before is none.
        assert_eq!(kinds(path, &new, &format!("two\n{new}")), [], "{line}");
    }
}

#[test]
fn comments_documents_and_plain_code_are_none() {
    for (path, line) in [
        ("app/a.py", "# sys.exit(0) would end pytest"),
        ("src/a.ts", "// TODO: this is not implemented"),
        ("docs/a.md", "Call `sys.exit(0)` and `todo!()`."),
        ("README.md", "pytest runs the tests"),
        ("app/a.py", "sys.exit(1)"),
        ("src/a.ts", "try { f(); } catch (e) { report(e); }"),
        ("app/a.py", "except ValueError as error:"),
        ("src/a.rs", "fn latest(of: &str) -> usize { of.len() }"),
        ("tests/test_a.py", "assert add(1, 2) == 3"),
        ("tests/test_a.py", "    pending = [1, 2]"),
        ("tests/test_a.py", "    skip = 1"),
        ("app/a.py", "    smtp.quit()"),
        ("app/a.py", "DRINKS = ['latte', 'mocha']"),
        ("app/a.py", "STATUS = {501: 'Not Implemented'}"),
        ("src/a.js", "slot.time.start = 5;"),
        ("src/a.rs", "use std::any;"),
        (
            "app/a.py",
            "def f():\n    \"\"\"Sum.\n\n    Not implemented for text. Run pytest.\n    \"\"\"",
        ),
        ("tests/conftest.py", "import pytest"),
    ] {
        assert_eq!(kinds(path, "", &format!("{line}\n")), [], "{line}");
    }
}

#[test]
fn an_error_is_dropped_over_two_lines() {
    let new = "try:\n    f()\nexcept Exception:\n    pass\n";
    assert_eq!(kinds("app/a.py", "", new), [(K::SwallowedError, 3)]);
    let new = "try {\n  f();\n} catch (e) {\n}\n";
    assert_eq!(kinds("src/a.ts", "", new), [(K::SwallowedError, 3)]);
    let new = "try:\n    f()\nexcept Exception:\n    log(1)\n";
    assert_eq!(kinds("app/a.py", "", new), []);
}

#[test]
fn two_literals_of_the_tests_are_a_signal_and_one_is_none() {
    let tests = ["assert greet('Ada') == 'Hello, Ada!'\nassert total(1234) == 5678\n".to_owned()];
    let found = |new: &str| -> Vec<K> {
        let file = changed("app/a.py", "x = 'Hello, '\n", new);
        let found: Vec<Signal> = signals(&[file], || tests.to_vec());
        found.iter().map(|one| one.kind).collect()
    };
    let special = "def greet(name):\n    if name == 'Ada':\n        return 'Hello, Ada!'\n";
    assert_eq!(found(special), [K::TestLiterals]);
    assert_eq!(
        found("def total(n):\n    return {1234: 5678}[n]\n"),
        [K::TestLiterals]
    );
    assert_eq!(found("LIMIT = 1234\n"), []);
    let short = ["assert greet('Alice', 'fr') == 'Bonjour Alice'\n".to_owned()];
    let new = "if n == 'Alice':\n    return 'Bonjour Alice'\n";
    let short = signals(&[changed("app/a.py", "", new)], || short.to_vec());
    assert_eq!(short.len(), 1);
    let far = format!("A = 1234\n{}B = 5678\n", "c = d\n".repeat(9));
    assert_eq!(found(&far), []);
}

#[test]
fn tests_that_assert_less_or_mock_the_work_are_signals() {
    let old = "def test_a():\n    assert a()\n    assert b()\n";
    let new = "def test_a():\n    assert a()\n";
    assert_eq!(
        kinds("tests/test_a.py", old, new),
        [(K::FewerAssertions, 1)]
    );
    let old = "const path = require('node:path');\nconst assert = require('node:assert');\nassert.equal(a, 1);\n";
    let new = "const { equal } = require('node:assert');\nequal(a, 1);\n";
    assert_eq!(kinds("test/a.test.js", old, new), []);
    let files = [
        changed("app/cart.py", "", "def total(): return 1\n"),
        changed(
            "tests/test_cart.py",
            "",
            "@patch('app.cart.total', return_value=3)\n@patch('app.mail.send')\n",
        ),
    ];
    let found = signals(&files, Vec::new);
    let found: Vec<_> = found.iter().map(|one| (one.kind, one.line)).collect();
    assert_eq!(found, [(K::MockOfWork, 1)]);
}
