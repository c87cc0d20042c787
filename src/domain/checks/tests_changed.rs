//! Recognises test files: an agent may make a check pass by weakening its tests.

use crate::pattern::Pattern;

/// Test directories and file names of the common toolchains.
static TEST_PATH: Pattern = Pattern::only_if(TEST_PATHS, may_be_test);

const TEST_PATHS: &str = r"(?x)
        (?:^|/)(?:[Tt]ests?|__tests__|[Ss]pecs?|testdata|test[-_]data|__snapshots__|__fixtures__|goldens?|e2e)/
        | [._-]tests/ | [A-Za-z0-9._-]Tests/ | \.Test/ | (?:^|/)proptest-regressions/
        | (?:^|/)(?:acceptance|android|e2e|functional|integration|regression|smoke|system|unit)[._-]?[Tt]est/
        | (?:^|/)test[-_]?[Ff]ixtures/ | (?:^|/)src/\w*[a-z0-9]Test/(?:groovy|java|kotlin|resources|scala|swift)/
        | \.(?:cy|spec|test)\.[cm]?[jt]sx?-snapshots/ | (?:^|/)__(?:image_snapshots|screenshots)__/
        | \.verified\.(?:csv|html|json|md|png|txt|xml|ya?ml)$
        | (?:^|/)(?:[Tt]est_[^/]*\.(?:py|rb|jl|lua|c|cc|cpp|cxx|sh)|test-[^/]*\.(?:sh|[cm]?[jt]sx?))$
        | (?:^|/)conftest\.py$ | (?:^|/)features/(?:steps|step_definitions|support)/
        | _tests?\.(?:go|py|rb|erl|exs|dart|c|cc|cpp|cxx|rs|sh|clj[cs]?|[cm]?[jt]sx?)$
        | _unittest\.(?:c|cc|cpp|cxx)$
        | _spec\.(?:rb|lua|[cm]?[jt]sx?)$ | _SUITE\.erl$
        | [.-](?:cy|(?:spec|test)(?:-d)?)\.[cm]?[jt]sx?$
        | [a-z0-9]Spec\.(?:[cm]?[jt]sx?|scala|groovy|kt|cs|hs|swift)$
        | (?:^|/)[^/]*(?:Tests?|TestCase)\.(?:java|kt|groovy|cs|swift|scala|php)$
        | (?:^|/)Test[A-Z][^/]*\.java$ | [a-z0-9]IT\.(?:java|kt)$ | [a-z0-9]Suite\.scala$
        | (?:^|/)tests?\.(?:rs|py|sh|[cm]?[jt]sx?|c|cc|cpp|cxx|rb|pl|php)$
        | (?:^|/)x?t/(?:.*/)?[^/]*\.(?:t|pm)$ | \.(?:bats|feature|hurl|phpt|robot|snap|golden)$ | \.approved\.[^/]*$
        | \.[Tt]ests?\.ps1$ | \.t\.sol$ | \.tftest\.hcl$ | _test\.(?:gleam|nim|rego|zig)$
        ";

/// Whether a path contains what every path that matches [`TEST_PATHS`] contains.
fn may_be_test(path: &str) -> bool {
    const PARTS: &str = "est pec features/ t/ e2e cy. golden IT. Suite.scala _SUITE.erl __snapshots__ __fixtures__ .approved. .bats
        .feature .hurl .phpt .robot .snap .t.sol .verified. __image_snapshots__ __screenshots__";
    PARTS.split_whitespace().any(|part| path.contains(part))
}

/// Whether a path is a test by the conventions of the common toolchains.
pub fn is_test(path: &str) -> bool {
    TEST_PATH.is_match(path)
}

/// Whether the content of a file is that of a test, wherever it lies and whatever it is called: configuration
/// may have a test runner look anywhere.
pub fn holds_tests(path: &str, text: &str) -> bool {
    static JAVASCRIPT: Pattern =
        Pattern::new(r#"(?m)^\s*(?:describe|it|test|suite|specify)(?:\.\w+)*\s*\(\s*["'`]"#);
    static ASSERTS: Pattern =
        Pattern::new(r"\bexpect\s*\(|\bassert\b|\bnode:test\b|\.should\b|\bchai\b");
    static C_NAME: Pattern = Pattern::new(r"(?:Tests?\.\w+|(?:^|/)Test[A-Z]\w*\.\w+)$");
    static MAIN: Pattern = Pattern::new(r"\bmain\s*\(");
    static OTHERS: Pattern = Pattern::of_lines(
        r"(?x)^\s*(?:TEST(?:_F|_P|_CASE|_METHOD)?|TYPED_TEST|SCENARIO|BOOST_AUTO_TEST_CASE|START_TEST)\s*\(
        | ^\s*RSpec\.describe\b | <\s*(?:Minitest::Test|Test::Unit::TestCase)\b
        | ^\s*@(?:Test|ParameterizedTest|RepeatedTest)\b
        | ^\s*\[(?:Fact|Theory|Test|TestCase|TestMethod|TestClass|TestFixture)\b
        | ^class\x20\w+\((?:\w+\.)?\w*TestCase\)\s*: | ^\s*use\x20ExUnit\.Case\b
        | \bextends\x20(?:\\?PHPUnit\\Framework\\)?TestCase\b | :\s*XCTestCase\b",
    );
    // A file with other code than tests is restored in part, and in `src` cargo finds no test of its own.
    static RUST: Pattern = Pattern::of_lines(r"^#\[(?:\w+::)*test\b");
    static RUST_ITEM: Pattern = Pattern::of_lines(
        r"^pub(?:\([a-z: ]+\))? (?:async |const |unsafe )*(?:const|enum|fn|mod|static|struct|trait|type)\b|^(?:async )?fn main\b",
    );
    let (_, ending) = path.rsplit_once('.').unwrap_or_default();
    match ending {
        _ if is_javascript(ending) => JAVASCRIPT.is_match(text) && ASSERTS.is_match(text),
        "c" | "cc" | "cpp" | "cxx" | "m" | "mm" => {
            OTHERS.is_match(text) || C_NAME.is_match(path) && MAIN.is_match(text)
        }
        "rs" => {
            let is_source = path.split('/').any(|dir| dir == "src");
            !is_source && RUST.is_match(text) && !RUST_ITEM.is_match(text)
        }
        "rb" | "java" | "kt" | "groovy" | "scala" | "cs" | "fs" | "vb" | "py" | "ex" | "exs"
        | "php" | "swift" => OTHERS.is_match(text),
        _ => false,
    }
}

fn is_javascript(ending: &str) -> bool {
    ["cjs", "cts", "js", "jsx", "mjs", "mts", "ts", "tsx"].contains(&ending)
}

/// Whether a new test file may control the tests beside it: its text contains something that test runners
/// call before all tests, or it ends the process.
pub fn may_rule_others(path: &str, text: &str) -> bool {
    static RULES: Pattern = Pattern::new(
        r#"(?x)
            \bfunc\s+TestMain\s*\(
            | \bdef\s+(?:load_tests|pytest_\w+)\s*\(
            | \bos\._exit\b | \bos\.Exit\b | \bsyscall\.(?:Exit|Kill)\b
            | \bprocess\.(?:exit|reallyExit|abort|kill)\b | \bDeno\.exit\b
            | \bSystem\.(?:exit|halt)\b | \bRuntime\.getRuntime\b
            | \bEnvironment\.Exit\b | \bexit!|\b_?exit\s*\(\s*0
            | \bat_exit\b | \bregister_shutdown_function\b | \batexit\.register\b
            | \bos\.kill\b | \bProcess\.kill\b
            | \bpytest\.exit\b | \bos\.exec | \bsyscall\.Exec\b
            | \bprocess\.(?:exitCode|on|once)\b
            # Only some tests of all files.
            | \b(?:it|test|describe|context|suite|specify)\.only\b
            | (?m:(?:^|[{;])\s*f(?:it|describe|context|specify)\b\s*[("'])
            | \[["'](?:only|skip)["']\] | \bfocus:\s*true\b | ,\s*:focus\b | \bthis\.skip\b
            | \bRSpec\.config | \bos\.Args\b | \bflag\.Set\b | \bfunc\s+init\s*\(
            # Code of others that is replaced when the file is loaded.
            | \bsys\.modules\b | \bbuiltins\b | \brequire\.cache\b | \.prototype\b | \.prepend\b | \bclass_eval\b
            | \brequire\s*\([^)\n]*\)(?:\.\w+)+\s*= | (?m:(?:^|;)\s*(?:Object\.(?:assign|definePropert)|Reflect\.(?:set|definePropert)))
            | (?m:(?:^|[^.\w])setattr\s*\() | \b__dict__\b | (?m:^vars\s*\()
            | (?m:^(?:\w+\.)*patch(?:\.\w+)*\s*\([^\n]*\)\.start\s*\()
            "#,
    );
    // mocha runs them around the tests of all files.
    static ROOT_HOOK: Pattern = Pattern::new(
        r"(?m)^(?:(?:before|after)(?:Each)?|(?:suiteS|s)etup|(?:suiteT|t)eardown)\s*\(",
    );
    static REPLACED: Pattern =
        Pattern::new(r#"(?m)(?:^|;[ \t]*)([A-Za-z_]\w*(?:\.\w+|\[["']\w+["']\])+)\s*=[^=>]"#);
    // Go evaluates it before the tests of a package.
    static GO_VARIABLE: Pattern = Pattern::of_lines(r"^var\s[^=\n]*=\s*(?:func\s*\(|[a-z]\w*\()");
    static STATEMENT: Pattern = Pattern::new(r"(?m)^[A-Za-z_@(\[]");
    // Its own exports and variables of the environment are no code of others.
    let own = ["module.exports", "exports.", "os.environ[", "process.env"];
    let is_foreign = |name: &str| !own.iter().any(|own| name.starts_with(own));
    let replaces = || {
        let mut replaced = REPLACED.captures_iter(text);
        replaced.any(|found| is_foreign(&found[1]))
    };
    let (_, ending) = path.rsplit_once('.').unwrap_or_default();
    // A package runs before every test below its directory.
    let is_package = path.ends_with("/__init__.py");
    let rules = RULES.is_match(text) || is_package && STATEMENT.is_match(text);
    match ending {
        "sh" | "bats" => false,
        "go" => rules || GO_VARIABLE.is_match(text),
        "py" | "rb" => rules || replaces(),
        _ if is_javascript(ending) => rules || ROOT_HOOK.is_match(text) || replaces(),
        _ => rules,
    }
}

#[cfg(test)]
mod tests {
    use super::{TEST_PATHS, holds_tests, is_test, may_be_test, may_rule_others};
    use crate::pattern::{Pattern, of_three_words};

    #[test]
    fn every_path_of_a_test_contains_one_of_the_parts() {
        static PLAIN: Pattern = Pattern::new(TEST_PATHS);
        let words = [
            "a",
            "x/",
            "/x",
            "t/",
            "test_",
            "Test",
            "tests",
            "__tests__",
            "testdata",
            "test-",
            "TestCase",
            "TestA",
            "_test",
            "_unittest",
            "conftest",
            "spec",
            "Spec",
            "_spec",
            ".spec",
            "__snapshots__",
            "__fixtures__",
            "golden",
            ".golden",
            "e2e",
            ".cy",
            "IT",
            "Suite",
            "_SUITE",
            ".approved",
            ".verified",
            "-snapshots/",
            "__screenshots__",
            "testFixtures",
            "commonTest",
            "src/",
            "java/",
            ".phpt",
            "-d",
            ".txt",
            "integration_test",
            ".py",
            ".rs",
            ".js",
            ".java",
            ".scala",
            ".erl",
            ".t",
            ".pm",
            ".bats",
            ".feature",
            ".hurl",
            ".robot",
            ".snap",
            ".ps1",
            ".sol",
            ".tftest",
            ".hcl",
            ".go",
        ];
        let is_test = |path: &String| PLAIN.is_match(path);
        let tests: Vec<String> = of_three_words(&words).filter(is_test).collect();
        assert!(tests.len() > 1000);
        for path in tests {
            assert!(may_be_test(&path), "{path}");
        }
    }

    #[test]
    fn what_runs_before_all_tests_or_ends_the_process_may_rule_others() {
        for text in [
            "func TestMain(m *testing.M) { }",
            "def load_tests(loader, tests, pattern):",
            "import os; os._exit(0)",
            "process.exit(0)",
            "exit(0);",
            "Kernel.exit!",
        ] {
            assert!(may_rule_others("a_test.go", text), "{text}");
        }
        for text in [
            "pytest.exit('', returncode=0)",
            "it.only('a', () => {})",
            "  fit('a') { }",
            "it('a', focus: true) {}",
            "import app\napp.add = lambda a, b: a + b",
            "require('assert').equal = () => {}",
            "assert.equal = () => {}",
            "const a = require('assert'); a['equal'] = () => {}",
            "for name in names:\n    setattr(TestCase, name, print)",
            "func init() { os.Args = nil }",
            "RSpec.configure { |c| c.before { skip } }",
            "const d = describe; d['only']('a', () => {})",
            "const a = require('assert'); Object.assign(a, { equal() {} })",
            "const a = require('assert');\nReflect.set(a, 'equal', () => {})",
            "patch('app.add', f).start()",
            "import app\nvars(app).update(add=f)",
            "app.__dict__.update(add=f)",
            "const a = require('./a');\nbeforeEach(() => {\n  a.add = f;\n});",
            "teardown(function () {});",
        ] {
            assert!(may_rule_others("a_test.js", text), "{text}");
        }
        for text in [
            "module.exports = 1\nexports.a = 2",
            "class A:\n    def test_a(self):\n        self.a = 1\n        app.b = 2",
            "const a = b.c === d;\nfitting('x')",
            "a == b",
            "os.environ['MODE'] = 'y'\nprocess.env.MODE = 'y'",
            "def test_a(monkeypatch):\n    monkeypatch.setattr(app, 'add', print)",
            "setup = 1\nbeforeEach = 2",
        ] {
            assert!(!may_rule_others("test_a.py", text), "{text}");
        }
        for (path, text, expected) in [
            ("a_test.go", "var _ = swap()", true),
            (
                "a_test.go",
                "var done = func() bool { return swap() }()",
                true,
            ),
            ("a_test.go", "var word = regexp.MustCompile(`a`)", false),
            ("a_test.go", "var cases = []string{}\nvar n int", false),
            ("a_test.js", "var app = require('../app')", false),
        ] {
            assert_eq!(may_rule_others(path, text), expected, "{text}");
        }
        let skips = "import pytest\npytest.skip('x', allow_module_level=True)\n";
        assert!(may_rule_others("tests/__init__.py", skips));
        for (path, text) in [
            ("tests/__init__.py", "\n# All tests.\n"),
            ("tests/test_a.py", skips),
            (
                "tests/test_a.py",
                "class A:\n    def setUp(self):\n        patch('app.add', f).start()\n",
            ),
            ("tests/a.sh", "exit 0"),
            (
                "a_test.go",
                "func TestMaintenance(t *testing.T) { t.Fatal(1) }",
            ),
            ("test_a.py", "def test_exit(): assert run() == 0"),
        ] {
            assert!(!may_rule_others(path, text), "{text}");
        }
    }

    #[test]
    fn tests_are_told_by_what_they_hold() {
        for (path, text) in [
            (
                "qa/a.js",
                "const {expect} = require('chai');\ndescribe('a', () => { it('b', () => expect(1)) })",
            ),
            (
                "qa/a.ts",
                "import test from 'node:test';\ntest(\"a\", () => {});",
            ),
            (
                "checks/a.cc",
                "#include <gtest/gtest.h>\nTEST(A, B) { EXPECT_EQ(1, 1); }",
            ),
            ("qa/a.rb", "RSpec.describe A do\nend"),
            ("qa/A.java", "class A {\n  @Test\n  void a() {}\n}"),
            ("qa/A.cs", "class A {\n  [Fact]\n  public void B() {}\n}"),
            (
                "qa/a.py",
                "import unittest\nclass A(unittest.TestCase):\n    pass\n",
            ),
            ("qa/A.php", "class A extends TestCase {}"),
            ("qa/a.rs", "use x::y;\n#[tokio::test]\nasync fn a() {}"),
            ("CalcTest.cpp", "int main() { return add(1, 2) != 3; }"),
        ] {
            assert!(holds_tests(path, text), "{path}");
        }
        for (path, text) in [
            ("src/a.js", "export const it = (x) => x;\nit(1)"),
            ("src/a.js", "router.test('/x', f)"),
            ("src/a.js", "test('a', 1)"),
            ("src/a.py", "def test_connection(self):\n    pass\n"),
            ("src/A.java", "// @Test\nclass A {}"),
            ("src/a.c", "static int TEST(void);"),
            ("src/HitTest.cpp", "bool hit(Ray ray) { return true; }"),
            ("src/main.c", "int main(void) { return 0; }"),
            ("src/a.rs", "pub fn a() {}\n#[test]\nfn b() {}"),
            ("src/a.rs", "mod tests {\n    #[test]\n    fn b() {}\n}"),
            ("src/a.rs", "fn a() {}\n#[test]\nfn b() {}"),
            ("qa/a.rs", "fn main() {}\n#[test]\nfn b() {}"),
            ("docs/a.md", "describe('a'); expect(1)"),
        ] {
            assert!(!holds_tests(path, text), "{path} {text}");
        }
    }

    #[test]
    fn tests_are_told_by_where_they_are_and_how_they_are_called() {
        for path in [
            "tests/run.rs",
            "crates/a/tests/b/c.txt",
            "src/__tests__/a.js",
            "pkg/test_a.py",
            "conftest.py",
            "pkg/a_test.go",
            "spec/a_spec.rb",
            "src/a.test.tsx",
            "src/a.spec.mjs",
            "src/FooTest.java",
            "src/parser/tests.rs",
            "test.sh",
            "src/a.snap",
            "app-test.js",
            "test-app.mjs",
            "test.mjs",
            "app_test.ts",
            "Tests/AppTests/A.swift",
            "src/userSpec.js",
            "src/TestUser.java",
            "src/UserIT.java",
            "t/basic.t",
            "t/more/basic.t",
            "t/lib/Helper.pm",
            "qa/a.bats",
            "out/two.golden",
            "src/__fixtures__/a.json",
            "test_util.c",
            "api/login.hurl",
            "Get-User.Tests.ps1",
            "src/UserSuite.scala",
            "integration-tests/util.js",
            "unit_tests/util.py",
            "MyApp.Tests/Util.cs",
            "MyApp.Test/Util.cs",
            "AppUITests/Util.swift",
            "app/src/androidTest/java/A.java",
            "integration_test/app.dart",
            "proptest-regressions/a.txt",
            "src/a.spec.ts-snapshots/a.png",
            "src/__screenshots__/a.png",
            "src/A.verified.txt",
            "index.test-d.ts",
            "src/a.phpt",
            "xt/author.t",
            "src/calc_tests.erl",
            "app/src/testFixtures/java/A.java",
            "src/commonTest/kotlin/A.kt",
        ] {
            assert!(is_test(path), "{path}");
        }
        for path in [
            "src/test_support_is_fine.rs",
            "latest/a.rs",
            "src/contest.py",
            "attestation.go",
            "src/Testimonials.java",
            "src/latest.js",
            "src/fastest-path.js",
            "contest-app.js",
            "src/spec.md",
            "testify.py",
            "contests/a.py",
            "speed-test/a.js",
            "src/user.verified.ts",
            "latests/a.py",
            "next/a.pm",
            "src/speedTest/a.kt",
            "src/index-d.ts",
        ] {
            assert!(!is_test(path), "{path}");
        }
    }
}
