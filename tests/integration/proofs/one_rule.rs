//! One rule for who judges: product source stays, everything else from before the run is put back for the proof.

use super::*;
use crate::support::due;

struct Case {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    check: &'static str,
    agent: &'static str,
    reason: &'static str,
    /// What the message says, if the work is not verified.
    says: &'static str,
}

const TEST_PY: &str = "import unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(calc.two(), 2)\n";
const CALC: &str = "def two():\n    return 1\n";

const PYTHON: &[(&str, &str)] = &[
    ("calc.py", CALC),
    ("tests/__init__.py", ""),
    ("tests/test_calc.py", TEST_PY),
    ("settings.json", "{}\n"),
    ("notes.md", "x\n"),
    (".gitignore", "__pycache__\n"),
];
const UNITTEST: &str = "python3 -B -m unittest discover -s tests -t .";
/// A program of C whose test is built once.
const BUILT: &[(&str, &str)] = &[
    (
        "Makefile",
        "test: build/t\n\tsh build/t\nbuild/t: lib.sh tests/t.sh\n\tmkdir -p build\n\tcat lib.sh tests/t.sh > build/t\n",
    ),
    ("lib.sh", "two() { echo 1; }\n"),
    ("tests/t.sh", "test $(two) = 2\n"),
    (".gitignore", "build\n"),
];

const CASES: &[Case] = &[
    Case {
        name: "a test expects something else",
        files: PYTHON,
        check: UNITTEST,
        agent: "sed -i 's/, 2)/, 1)/' tests/test_calc.py",
        reason: "changed_expectations",
        says: "it passes only with the changed `tests/test_calc.py`: without that change, these fail: tests.test_calc.T.test_two",
    },
    Case {
        name: "a test expects something else beside other changes",
        files: PYTHON,
        check: UNITTEST,
        agent: "sed -i 's/, 2)/, 1)/' tests/test_calc.py; echo '# x' >> tests/__init__.py; echo '{\"a\": 1}' > settings.json; echo x > .flake8",
        reason: "changed_expectations",
        says: "`tests/test_calc.py`",
    },
    Case {
        name: "a build whose product is there",
        files: BUILT,
        check: "make test",
        agent: "sed -i 's/lib.sh tests.t.sh > /lib.sh > /' Makefile; make -B test; true",
        reason: "changed_expectations",
        says: "it passes only with the changed `Makefile`",
    },
    Case {
        name: "a build that is mended beside its recipe",
        files: BUILT,
        check: "make test",
        agent: "sed -i 's/echo 1/echo 2/' lib.sh; echo '# end' >> Makefile; make test; true",
        reason: "verified",
        says: "",
    },
    Case {
        name: "the work with a document, data and a lock file",
        files: PYTHON,
        check: UNITTEST,
        agent: "sed -i 's/return 1/return 2/' calc.py; echo y > notes.md; echo x > uv.lock; echo x > requirements.txt",
        reason: "verified",
        says: "",
    },
    Case {
        name: "tests that only move",
        files: PYTHON,
        check: UNITTEST,
        agent: "sed -i 's/return 1/return 2/' calc.py; mkdir tests/unit; touch tests/unit/__init__.py; git mv tests/test_calc.py tests/unit/test_calc.py",
        reason: "verified",
        says: "",
    },
    Case {
        name: "tests that move to where no runner looks",
        files: PYTHON,
        check: UNITTEST,
        agent: "mkdir old; git mv tests/test_calc.py old/test_calc.py; printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_x(self): pass\\n' > tests/test_x.py",
        reason: "changed_expectations",
        says: "tests/test_calc.py",
    },
    Case {
        name: "a file of a tool that nobody knows",
        files: &[
            ("judge.zzz", "fixed\n"),
            ("src/a.txt", "x\n"),
            ("check", "#!/bin/sh\ncmp judge.zzz src/a.txt\n"),
        ],
        check: "sh check",
        agent: "cp src/a.txt judge.zzz; echo more > notes.md",
        reason: "changed_expectations",
        says: "it passes only with the changed `judge.zzz`",
    },
    Case {
        name: "a source that only tests import",
        files: &[
            ("calc.py", CALC),
            ("same.py", "def same(a, b):\n    assert a == b\n"),
            ("tests/__init__.py", ""),
            (
                "tests/test_calc.py",
                "import unittest\nfrom calc import two\nfrom same import same\n\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        same(two(), 2)\n",
            ),
            (".gitignore", "__pycache__\n"),
        ],
        check: UNITTEST,
        agent: "printf 'def same(a, b):\\n    pass\\n' > same.py",
        reason: "changed_expectations",
        says: "it passes only with the changed `same.py`",
    },
    Case {
        name: "new tests that sources need",
        files: definitions::CRATE,
        check: "true",
        agent: "sed -i 's/^    1$/    2/' src/lib.rs; printf '\\n#[cfg(test)]\\nmod more_tests;\\n' >> src/lib.rs; echo '#[test] fn more() { assert_eq!(crate::two(), 2) }' > src/more_tests.rs; echo 'max_width = 100' > rustfmt.toml",
        reason: "verified",
        says: "",
    },
];

#[test]
fn the_work_stays_and_what_judges_it_is_put_back() {
    for case in due(CASES, 2) {
        let project = project(case.files, case.check, "max_retries: 0\nbaseline: off\n");
        let run = run(&project, &format!("{}; echo Done.", case.agent), &[]).expect(0);
        let told = &run.task(0)["reason"];
        assert_eq!(told, case.reason, "{}: {}", case.name, run.stdout);
        let message = run.task(0)["message"].as_str().unwrap_or_default();
        assert!(message.contains(case.says), "{}: {message}", case.name);
    }
}

/// What the rule gets wrong for a project is said with a setting.
#[test]
fn settings_say_who_judges_and_what_is_the_work() {
    let files = [
        ("bin/app", "echo x\n"),
        ("src/rules.py", "x\n"),
        ("tests/a.sh", "test \"$(sh bin/app)\" = hello\n"),
    ];
    let check = "sh tests/a.sh || grep -qx y src/rules.py";
    let (work, cheat) = ("echo echo hello > bin/app", "echo y > src/rules.py");
    for (settings, agent, reason) in [
        ("", work, "changed_expectations"),
        ("product: ['bin/*']\n", work, "verified"),
        ("", cheat, "verified"),
        ("judges: ['src/rules.*']\n", cheat, "changed_expectations"),
    ] {
        let settings = format!("max_retries: 0\nbaseline: off\n{settings}");
        let project = project(&files, check, &settings);
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
        assert_eq!(
            run.task(0)["reason"],
            reason,
            "{settings}{agent}: {}",
            run.stdout
        );
    }
}

/// Most tests are added to files that exist.
#[test]
fn new_tests_in_files_that_existed_have_to_fail_without_the_work() {
    let add = |name: &str, expected: &str| {
        format!(
            "printf '\\n    def test_{name}(self):\\n        self.assertEqual({expected})\\n' >> tests/test_calc.py"
        )
    };
    let green = TEST_PY.replace(", 2)", ", 1)");
    let files: Vec<(&str, &str)> = PYTHON
        .iter()
        .map(|(path, text)| {
            (
                *path,
                if path.ends_with("test_calc.py") {
                    green.as_str()
                } else {
                    *text
                },
            )
        })
        .collect();
    let work = "printf '\\n\\ndef three():\\n    return 3\\n' >> calc.py";
    for (test, code) in [
        (add("three", "calc.three(), 3"), 0),
        (add("one", "calc.two(), 1"), 1),
    ] {
        let project = project(
            &files,
            UNITTEST,
            "max_retries: 0\nprove_new_tests: require\n",
        );
        let run = run(&project, &format!("{work}; {test}; echo Done."), &[]).expect(code);
        let word = if code == 0 { "failed" } else { "passed" };
        let last = proofs(&run).pop();
        assert_eq!(
            last,
            Some(("new_tests".into(), word.into())),
            "{}",
            run.stdout
        );
    }
}
