//! The test tools that are installed here, each on a project of its own: every failing test has its name and its place.

use super::*;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};

struct Case {
    /// Succeeds where the tool is installed.
    probe: &'static str,
    files: &'static [(&'static str, &'static str)],
    check: &'static str,
    /// Name, file and line of each failing test.
    failing: &'static [(&'static str, &'static str, u32)],
}

const CASES: &[Case] = &[
    Case {
        probe: "python3 -c 'import unittest'",
        files: &[(
            "tests/test_a.py",
            "import unittest\n\n\nclass A(unittest.TestCase):\n    def test_b(self):\n        for n in (1, 2):\n            with self.subTest(n=n):\n                self.assertEqual(n, 1)\n\n    def test_c(self):\n        raise ValueError('no')\n",
        )],
        check: "python3 -B -m unittest discover -s tests",
        failing: &[
            ("test_a.A.test_b (n=2)", "tests/test_a.py", 8),
            ("test_a.A.test_c", "tests/test_a.py", 11),
        ],
    },
    Case {
        probe: "python3 -c 'import pytest'",
        files: &[(
            "tests/test_a.py",
            "import pytest\n\n\n@pytest.mark.parametrize('text', ['a - b', 'x [y]', 'ok'])\ndef test_b(text):\n    print('FAILED tests/other.py::test_c - no')\n    assert text == 'ok'\n",
        )],
        check: "python3 -B -m pytest -p no:cacheprovider",
        failing: &[
            ("tests/test_a.py::test_b[a - b]", "tests/test_a.py", 7),
            ("tests/test_a.py::test_b[x [y]]", "tests/test_a.py", 7),
        ],
    },
    Case {
        probe: "node -e 'require(\"node:test\").describe'",
        files: &[(
            "a.test.js",
            "const { describe, it } = require('node:test');\nconst assert = require('node:assert');\n\nfor (const name of ['one', 'two']) {\n  describe(name, () => {\n    it('adds # up', () => assert.strictEqual(1, 2));\n  });\n}\n",
        )],
        check: "node --test --test-reporter=spec a.test.js",
        failing: &[
            ("one", "a.test.js", 6),
            ("one › adds # up", "a.test.js", 6),
            ("two", "a.test.js", 6),
            ("two › adds # up", "a.test.js", 6),
        ],
    },
    Case {
        probe: "go version",
        files: &[
            ("go.mod", "module example.org/m\n\ngo 1.18\n"),
            (
                "a_test.go",
                "package m\n\nimport \"testing\"\n\nfunc TestTop(t *testing.T) {}\n",
            ),
            (
                "sub/a_test.go",
                "package sub\n\nimport \"testing\"\n\nfunc TestLogs(t *testing.T) {\n\tt.Error(\"no\")\n}\n\nfunc TestPanics(t *testing.T) {\n\tvar none map[string]int\n\tnone[\"a\"] = 1\n}\n",
            ),
        ],
        check: "GOCACHE=$PWD/.git/go go test -json ./...",
        failing: &[
            ("TestLogs", "sub/a_test.go", 6),
            ("TestPanics", "sub/a_test.go", 11),
        ],
    },
    Case {
        probe: "bats --version",
        files: &[(
            "a.bats",
            "@test \"adds # up (x)\" {\n  echo 'not ok 9 printed'\n  [ 1 = 2 ]\n}\n\n@test \"fine\" {\n  true\n}\n",
        )],
        check: "bats a.bats",
        failing: &[("adds # up (x)", "a.bats", 3)],
    },
    Case {
        probe: "prove --version",
        files: &[(
            "t/a.t",
            "use Test::More tests => 2;\nok(1, 'fine');\nis(1, 2, 'adds # up');\n",
        )],
        check: "prove t",
        failing: &[("adds # up", "t/a.t", 3)],
    },
    Case {
        probe: "rspec --version",
        files: &[(
            "spec/a_spec.rb",
            "RSpec.describe 'a' do\n  it('adds: up') { expect(1).to eq(2) }\nend\n",
        )],
        check: "rspec",
        failing: &[("a adds: up", "spec/a_spec.rb", 2)],
    },
    Case {
        probe: "ruby -e 'require \"minitest\"'",
        files: &[(
            "a_test.rb",
            "require 'minitest/autorun'\n\ndescribe 'a' do\n  it('adds up') { _(1).must_equal 2 }\n  it('waits') { skip }\nend\n",
        )],
        check: "ruby a_test.rb --verbose",
        failing: &[("a#test_0001_adds up", "a_test.rb", 4)],
    },
    Case {
        probe: "ruby -e 'require \"test-unit\"'",
        files: &[(
            "a_test.rb",
            "require 'test/unit'\n\nclass ATest < Test::Unit::TestCase\n  test 'adds up' do\n    assert_equal 1, 2\n  end\nend\n",
        )],
        check: "ruby a_test.rb",
        failing: &[("test: adds up(ATest)", "a_test.rb", 5)],
    },
    Case {
        probe: "phpunit --version",
        files: &[(
            "tests/ATest.php",
            "<?php\nfinal class ATest extends PHPUnit\\Framework\\TestCase {\n  public function testAdds(): void {\n    $this->assertSame(1, 2);\n  }\n}\n",
        )],
        check: "phpunit --do-not-cache-result tests",
        failing: &[("ATest::testAdds", "tests/ATest.php", 4)],
    },
];

fn is_installed(probe: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", probe]).stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn failing_tests_of_the_installed_tools_are_named_and_placed() {
    let installed = CASES.iter().filter(|case| is_installed(case.probe));
    let mut checked = 0;
    for case in installed {
        let files: Vec<(&str, &str)> = case
            .files
            .iter()
            .copied()
            .chain([("work.txt", "")])
            .collect();
        let settings = "max_retries: 0\nbaseline: off\nflaky_reruns: 0\n";
        let project = project(&files, case.check, settings);
        let run = run(&project, "echo x > work.txt; echo Done.", &[]).expect(1);
        let failing = run.task(0)["failing_tests"].as_array().unwrap();
        let told: BTreeSet<String> = failing
            .iter()
            .map(|test| format!("{} {} {}", test["test"], test["path"], test["line"]))
            .collect();
        let expected: BTreeSet<String> = case
            .failing
            .iter()
            .map(|(name, path, line)| format!("{} {} {line}", json!(name), json!(path)))
            .collect();
        assert_eq!(told, expected, "{}\n{}", case.check, run.stdout);
        checked += 1;
    }
    // Every machine has Python, which the tests need elsewhere too.
    assert!(checked > 0);
}
