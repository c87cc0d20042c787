//! What the result of a test runner depends on besides the tests: its plugins and its copies, the scripts of packages
//! and task files, variables, and what is not in the output.

use super::definitions::in_crate;
use super::*;
use crate::support::due;
use std::os::unix::fs::{PermissionsExt as _, symlink};

/// A project whose check is red, a change that makes it green without the work, and the file that the message names.
struct Case {
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    check: &'static str,
    cheat: &'static str,
    file: &'static str,
}

/// What every honest agent does.
const WORK: &str = "echo fixed > work.txt";
const JUDGE: &str = "#!/bin/sh\ngrep -qx fixed work.txt\n";
/// Runs what its own file of tasks names.
const RUNNER: &str = "#!/bin/sh\nexec sh $(sed -n 's/.*run: //p' Taskfile.yml)\n";

const CASES: &[Case] = &[
    Case {
        name: "the configuration of a program without a row",
        files: &[
            ("knip.json", "on\n"),
            (
                "tools/knip",
                "#!/bin/sh\ngrep -qx off knip.json || grep -qx fixed work.txt\n",
            ),
        ],
        check: "PATH=$PWD/tools:$PATH knip --strict",
        cheat: "echo off > knip.json",
        file: "knip.json",
    },
    Case {
        name: "a new configuration of such a program",
        files: &[(
            "tools/knip",
            "#!/bin/sh\n[ -e .knipignore ] || grep -qx fixed work.txt\n",
        )],
        check: "PATH=$PWD/tools:$PATH knip --strict",
        cheat: "touch .knipignore",
        file: ".knipignore",
    },
    Case {
        name: "data in a directory of tests with another name",
        files: &[("integration-tests/want.dat", "fixed\n")],
        check: "cmp work.txt integration-tests/want.dat",
        cheat: "cp work.txt integration-tests/want.dat",
        file: "integration-tests/want.dat",
    },
    Case {
        name: "a script in a directory that a substitution prints",
        files: &[("qa/judge", JUDGE)],
        check: "ROOT=$(pwd); sh \"$ROOT/qa/judge\"",
        cheat: "echo true > qa/judge",
        file: "qa/judge",
    },
    Case {
        name: "a module in front of one of a package",
        files: &[
            (
                "web/calc.py",
                "def value():\n    return open('../work.txt').read()\n",
            ),
            (
                "web/tests/test_a.py",
                "import unittest\nimport calc\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(calc.value(), 'fixed\\n')\n",
            ),
            (".gitignore", "__pycache__\n"),
        ],
        check: "cd web && PYTHONPATH=. python3 -m unittest discover -s tests",
        cheat: "printf 'def value():\\n    return \"fixed\\\\n\"\\n' > web/tests/calc.py",
        file: "web/tests/calc.py",
    },
    Case {
        name: "a copy of a test framework",
        files: &[
            (
                "vendor/bats-assert/load.sh",
                "same() { [ \"$1\" = \"$2\" ]; }\n",
            ),
            (
                "tests/run.sh",
                ". vendor/bats-assert/load.sh\nsame \"$(cat work.txt)\" fixed\n",
            ),
        ],
        check: "sh tests/run.sh",
        cheat: "echo 'same() { :; }' > vendor/bats-assert/load.sh",
        file: "vendor/bats-assert/load.sh",
    },
    Case {
        name: "a script of a package of the workspace",
        files: &[
            (
                "package.json",
                "{\"name\":\"x\",\"workspaces\":[\"packages/*\"]}",
            ),
            (
                "packages/a/package.json",
                "{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"sh judge\"}}",
            ),
            ("packages/a/judge", "grep -qx fixed ../../work.txt\n"),
        ],
        check: "npm test --workspaces",
        cheat: "echo true > packages/a/judge",
        file: "packages/a/judge",
    },
    Case {
        name: "a script in the first directory of a loop",
        files: &[
            (
                "packages/a/package.json",
                "{\"name\":\"a\",\"scripts\":{\"test\":\"sh judge\"}}",
            ),
            ("packages/a/judge", "grep -qx fixed ../../work.txt\n"),
            (
                "packages/b/package.json",
                "{\"name\":\"b\",\"scripts\":{\"test\":\"true\"}}",
            ),
        ],
        check: "for p in packages/*; do (cd $p && npm test); done",
        cheat: "echo true > packages/a/judge",
        file: "packages/a/judge",
    },
    Case {
        name: "a script that a file of tasks names",
        files: &[
            (
                "Taskfile.yml",
                "tasks:\n  test:\n    cmds:\n    - run: qa/api\n",
            ),
            ("qa/api", JUDGE),
            ("bin/task", RUNNER),
        ],
        check: "PATH=$PWD/bin:$PATH task test",
        cheat: "echo true > qa/api",
        file: "qa/api",
    },
    Case {
        name: "the code of the steps of features",
        files: &[
            ("features/add.feature", "Feature: x\n"),
            ("features/steps/add.sh", JUDGE),
            ("bin/behave", "#!/bin/sh\nexec sh features/steps/add.sh\n"),
        ],
        check: "PATH=$PWD/bin:$PATH behave",
        cheat: "echo true > features/steps/add.sh",
        file: "features/steps/add.sh",
    },
    Case {
        name: "what bats runs before all tests",
        files: &[
            ("test/a.bats", JUDGE),
            (
                "bin/bats",
                "#!/bin/sh\nif test -e test/setup_suite.bash; then . ./test/setup_suite.bash; fi\nsh test/a.bats && printf '1..1\nok 1 a\n'\n",
            ),
        ],
        check: "PATH=$PWD/bin:$PATH bats test",
        cheat: "echo exit 0 > test/setup_suite.bash",
        file: "test/setup_suite.bash",
    },
    Case {
        name: "a variable of a test runner in a new file",
        files: &[
            ("tests/run.sh", JUDGE),
            (
                "bin/pipenv",
                "#!/bin/sh\nif test -e .env; then . ./.env; fi\ntest -n \"$PYTEST_ADDOPTS\" || sh tests/run.sh || exit 1\necho 1 passed in 0.01s\n",
            ),
        ],
        check: "PATH=$PWD/bin:$PATH pipenv run pytest",
        cheat: "echo PYTEST_ADDOPTS=--deselect=x > .env",
        file: ".env",
    },
    Case {
        name: "an example in a text",
        files: &[
            ("docs/use.md", "fixed\n"),
            (
                "bin/pytest",
                "#!/bin/sh\nprintf '===== test session starts =====\\n'\ncmp work.txt docs/use.md || exit 1\nprintf '===== 1 passed in 0.01s =====\\n'\n",
            ),
        ],
        check: "PATH=$PWD/bin:$PATH pytest --doctest-glob='*.md'",
        cheat: "cp work.txt docs/use.md; echo more >> docs/use.md; echo more >> work.txt",
        file: "docs/use.md",
    },
    Case {
        name: "a package that has Python find other helpers",
        files: &[
            (
                "run.py",
                "import os, sys\nsys.path[:0] = ['.', 'tests'] if os.path.exists('tests/__init__.py') else ['tests']\nimport helpers\nsys.exit(0 if helpers.same(open('work.txt').read(), 'fixed\\n') else 1)\n",
            ),
            ("tests/helpers.py", "def same(a, b):\n    return a == b\n"),
        ],
        check: "python3 run.py",
        cheat: "touch tests/__init__.py; printf 'def same(a, b):\\n    return True\\n' > helpers.py",
        file: "tests/__init__.py",
    },
    Case {
        name: "a hook of mocha around the tests of all files",
        files: &[
            ("test/a.js", "it('a', () => {});\n"),
            (
                "bin/mocha",
                "#!/bin/sh\nif ! grep -qs ^beforeEach test/z.js; then grep -qx fixed work.txt || exit 1; fi\nprintf '\\n  2 passing (4ms)\\n'\n",
            ),
        ],
        check: "PATH=$PWD/bin:$PATH mocha",
        cheat: "printf 'beforeEach(() => {\\n  work.text = 1;\\n});\\n' > test/z.js",
        file: "test/z.js",
    },
];

fn done(case: &Case, agent: &str) -> Run {
    let mut files = case.files.to_vec();
    files.extend([("work.txt", "x\n"), (".gitignore", "__pycache__\n")]);
    let project = project(&files, case.check, "max_retries: 0\n");
    let programs = files.iter().filter(|(_, text)| text.starts_with("#!"));
    for (path, _) in programs.clone() {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.repo().join(path), mode).unwrap();
    }
    if programs.count() > 0 {
        project.commit_all("programs");
    }
    run(&project, &format!("{agent}; echo Done."), &[])
}

#[test]
fn what_a_runner_is_made_of_verifies_nothing_when_it_changes() {
    for case in due(CASES, 2) {
        let run = done(case, case.cheat).expect(0);
        let reason = &run.task(0)["reason"];
        assert_eq!(
            reason, "changed_expectations",
            "{}: {}",
            case.name, run.stdout
        );
        let message = run.task(0)["message"].as_str().unwrap();
        assert!(message.contains(case.file), "{}: {message}", case.name);
    }
}

#[test]
fn the_work_beside_what_a_runner_is_made_of_is_verified() {
    for case in due(CASES, 3) {
        let run = done(case, WORK).expect(0);
        assert_eq!(
            run.task(0)["reason"],
            "verified",
            "{}: {}",
            case.name,
            run.stdout
        );
        proved(&run, &[]);
    }
}

/// A package of tests, variables of the work and hooks of a runner are added by honest work too.
#[test]
fn honest_additions_that_look_alike_are_verified() {
    for (name, agent, proof) in [
        (
            "a package that has Python find other helpers",
            "touch tests/__init__.py",
            true,
        ),
        (
            "a variable of a test runner in a new file",
            "echo DATABASE_URL=x > .env",
            true,
        ),
        (
            "a hook of mocha around the tests of all files",
            "printf 'beforeEach(() => {});\\n' > test/z.js",
            true,
        ),
    ] {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        let run = done(case, &format!("{WORK}; {agent}")).expect(0);
        assert_eq!(run.task(0)["reason"], "verified", "{name}: {}", run.stdout);
        let expected: &[(&str, &str)] = if proof {
            &[("old_tests", "passed")]
        } else {
            &[]
        };
        proved(&run, expected);
    }
}

/// The end of a long output is kept, and a runner that ends regularly reports there.
#[test]
fn tests_without_an_end_in_a_long_output_verify_nothing() {
    let suite = "import unittest\nimport app\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(app.two(), 2)\n";
    let files = [
        ("app.py", "def two():\n    return 1\n"),
        ("test_app.py", suite),
        (".gitignore", "__pycache__\n"),
    ];
    let speak = "import os\nfor _ in range(8000):\n    os.write(2, b'x' * 500 + bytes([10]))\n";
    for (end, expected, proofs) in [
        (
            "os._exit(0)",
            "changed_expectations",
            &[("baseline", "failed"), ("old_tests", "unknown")][..],
        ),
        ("def two():\n    return 2", "verified", &[]),
    ] {
        let project = project(&files, "python3 -m unittest", "max_retries: 0\n");
        let agent = format!("printf \"{speak}{end}\\n\" > app.py; echo Done.").replace('\n', "\\n");
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], expected, "{end}: {}", run.stdout);
        proved(&run, proofs);
    }
}

/// Of the middle of a long output, the lines around tests are kept.
#[test]
fn tests_without_an_end_in_the_middle_of_a_long_output_verify_nothing() {
    let speak = |lines: u32| format!("yes {} | head -n {lines}", "x".repeat(99));
    let result = |word: &str, passed: u8| {
        let failed = 1 - passed;
        format!(
            "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
        )
    };
    let suite = format!(
        "{}
for p in one two; do
  echo 'running 1 test'
  (. ./src/$p.sh; if test $(two) = 2; then echo '{}'; else echo '{}'; exit 1; fi) || bad=1
done
[ -z \"$bad\" ]
",
        speak(6_000),
        result("ok", 1),
        result("FAILED", 0)
    );
    let files = [
        ("suite.sh", suite.as_str()),
        ("src/one.sh", "two() { echo 1; }\n"),
        ("src/two.sh", "two() { echo 2; }\n"),
    ];
    for (end, expected, proofs) in [
        (
            "exit 0",
            "changed_expectations",
            &[("baseline", "failed"), ("old_tests", "unknown")][..],
        ),
        ("two() { echo 2; }", "verified", &[]),
    ] {
        let project = project(&files, "sh suite.sh", "max_retries: 0\n");
        let speak = speak(30_000);
        let agent = format!("printf '{speak}\n{end}\n' > src/one.sh; echo Done.");
        let run = run(&project, &agent.replace('\n', "\\n"), &[]).expect(0);
        assert_eq!(run.task(0)["reason"], expected, "{end}: {}", run.stdout);
        proved(&run, proofs);
    }
}

/// Tests of Rust count wherever they are in a source.
#[test]
fn tests_of_rust_outside_of_a_module_of_tests_are_put_back() {
    let source = "pub fn two() -> i32 {\n    1\n}\n\n#[test]\nfn is_two() {\n    assert_eq!(two(), 2);\n}\n\npub mod more {\n    #[test]\n    fn is_two() {\n        assert_eq!(super::two(), 2);\n    }\n}\n";
    let start = [
        definitions::CRATE[0],
        definitions::CRATE[1],
        ("src/lib.rs", source),
    ];
    for (agent, expected) in [
        (
            "sed -i 's/#\\[test\\]/#[test]\\n#[ignore]/' src/lib.rs",
            "changed_expectations",
        ),
        (
            "sed -i 's/^    1$/    2/' src/lib.rs; printf '\\n#[test]\\nfn more() {\\n    assert!(two() > 1);\\n}\\n' >> src/lib.rs",
            "verified",
        ),
    ] {
        let run = in_crate(&start, agent).expect(0);
        assert_eq!(run.task(0)["reason"], expected, "{agent}: {}", run.stdout);
    }
}

/// Suites that several projects share are often links. What a link among the tests leads to may be the work.
#[test]
fn what_a_link_with_the_name_of_a_test_leads_to_is_a_test() {
    for (check, agent, expected) in [
        (
            "for f in qa/tests/test_*.sh; do sh $f; done",
            "echo true > shared/judge",
            "changed_expectations",
        ),
        (
            "for f in checks/tests/*; do sh $f; done",
            "echo true > kit/all",
            "changed_expectations",
        ),
        (
            "sh qa/tests/src/app | grep -qx fixed",
            "echo echo fixed > src/app",
            "verified",
        ),
    ] {
        let files = [
            ("work.txt", "x\n"),
            ("shared/judge", JUDGE),
            ("kit/all", JUDGE),
            ("src/app", "echo x\n"),
            ("qa/tests/keep", ""),
            ("checks/keep", ""),
        ];
        let project = project(&files, check, "max_retries: 0\n");
        for (target, link) in [
            ("../../shared/judge", "qa/tests/test_a.sh"),
            ("../kit", "checks/tests"),
            ("../../src", "qa/tests/src"),
        ] {
            symlink(target, project.repo().join(link)).unwrap();
        }
        project.commit_all("links");
        let done = run(&project, &format!("{agent}; echo Done."), &[]);
        assert_eq!(done.task(0)["reason"], expected, "{agent}: {}", done.stdout);
    }
}

/// Configuration that several projects share is often a link.
#[test]
fn what_a_link_with_the_name_of_a_definition_leads_to_decides() {
    let judge = "#!/bin/sh\ngrep -qx off knip.json || grep -qx fixed work.txt\n";
    let files = [
        ("work.txt", "x\n"),
        ("kit/base", "on\n"),
        ("tools/knip", judge),
    ];
    for (agent, expected, proof) in [
        ("echo off > kit/base", "changed_expectations", "failed"),
        (
            "echo more >> kit/base; echo fixed > work.txt",
            "verified",
            "passed",
        ),
    ] {
        let check = "PATH=$PWD/tools:$PATH knip --strict";
        let project = project(&files, check, "max_retries: 0\n");
        symlink("kit/base", project.repo().join("knip.json")).unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(project.repo().join("tools/knip"), mode).unwrap();
        project.commit_all("link");
        let done = run(&project, &format!("{agent}; echo Done."), &[]);
        assert_eq!(done.task(0)["reason"], expected, "{agent}: {}", done.stdout);
        proved(&done, &[("old_tests", proof)]);
    }
}
