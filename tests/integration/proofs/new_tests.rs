//! New tests that make the others pass, and tests that no longer run.

use super::*;

const FILES: &[(&str, &str)] = &[
    (
        "app.py",
        "def done():\n    return open('work.txt').read() == 'fixed\\n'\n",
    ),
    (
        "tests/test_b.py",
        "import unittest, app\n\nclass B(unittest.TestCase):\n    def test_b(self):\n        self.assertTrue(app.done())\n\n    def test_c(self):\n        pass\n",
    ),
    ("work.txt", "x\n"),
    (".gitignore", "__pycache__\n"),
];
const CHECK: &str = "python3 -m unittest discover -s tests";

#[test]
fn new_tests_that_rule_the_others_verify_nothing() {
    for cheat in [
        "printf 'import app\\napp.done = lambda: True\\n' > tests/test_a.py",
        "printf 'import builtins\\nbuiltins.open = None\\n' > tests/test_a.py; printf 'def done():\\n    return True\\n' > tests/app.py",
        "printf 'def done():\\n    return True\\n' > tests/app.py",
    ] {
        let expected = [
            ("changed_expectations", ""),
            ("verified", "echo fixed > work.txt; "),
        ];
        for (reason, work) in expected {
            let project = project(FILES, CHECK, "max_retries: 0\n");
            let run = run(
                &project,
                &format!("{work}{cheat}; echo y > note.txt; echo Done."),
                &[],
            );
            // A module of the work that is replaced may fail by itself.
            let is_red = run.code == 1 && !work.is_empty();
            assert!(
                is_red || run.task(0)["reason"] == reason,
                "{cheat}: {}",
                run.stdout
            );
        }
    }
}

#[test]
fn honest_new_tests_need_no_proof() {
    // A new helper may be loaded in the place of another one.
    let helper = "echo 'x = 1' > tests/helper.py; ";
    for (helper, proof) in [("", &[][..]), (helper, &[("old_tests", "passed")])] {
        let project = project(FILES, CHECK, "max_retries: 0\n");
        let agent = format!(
            "{helper}printf 'import unittest, app\\n\\nclass A(unittest.TestCase):\\n    def test_a(self):\\n        self.x = app.done()\\n        self.assertTrue(self.x)\\n' > tests/test_a.py; echo fixed > work.txt; echo Done."
        );
        let run = run(&project, &agent, &[]).expect(0);
        proved(&run, proof);
        assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    }
}

/// What other tests load may not be another file than before.
#[test]
fn a_new_file_in_the_place_of_a_helper_verifies_nothing() {
    let files = [
        ("work.txt", "x\n"),
        ("test/wanted.json", "[\"fixed\\n\"]\n"),
        (
            "test/a.js",
            "const text = require('fs').readFileSync('work.txt', 'utf8');\nprocess.exit(require('./wanted').includes(text) ? 0 : 1);\n",
        ),
    ];
    for (file, work, reason, proof) in [
        (
            "wanted.js",
            "y",
            "changed_expectations",
            &[("old_tests", "failed")][..],
        ),
        ("wanted.js", "fixed", "verified", &[("old_tests", "passed")]),
        ("other.js", "fixed", "verified", &[("old_tests", "passed")]),
        ("other.json", "fixed", "verified", &[]),
    ] {
        let project = project(&files, "node test/a.js", "max_retries: 0\n");
        let agent = format!(
            "echo 'module.exports = [\"fixed\\\\n\", \"y\\\\n\"];' > test/{file}; echo {work} > work.txt; echo Done."
        );
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{file}: {}", run.stdout);
        proved(&run, proof);
    }
}

/// No file may stand where make would make one, also if the file is empty or its directory is.
#[test]
fn what_keeps_a_recipe_from_running_verifies_nothing() {
    let files = [
        ("Makefile", "test: unit\nunit:\n\tgrep -qx fixed work.txt\n"),
        ("work.txt", "x\n"),
    ];
    for (name, cheat) in [("test", "touch"), ("unit", "mkdir")] {
        let project = project(&files, "make test", "max_retries: 0\n");
        let agent = format!("{cheat} {name}; echo y > note.txt; echo Done.");
        let run = run(&project, &agent, &[]);
        // A recipe of another target runs in spite of a file with the name of the first.
        let is_red = name == "test" && run.code == 1;
        let reason = &run.task(0)["reason"];
        assert!(
            is_red || reason == "changed_expectations",
            "{agent}: {}",
            run.stdout
        );
    }
}

#[test]
fn tests_in_a_submodule_that_become_others_verify_nothing() {
    let check = "for t in tests/*.sh; do sh $t || exit 1; done";
    let project = project(&[("work.txt", "x\n")], check, "max_retries: 0\n");
    let commit = "git -c user.name=x -c user.email=x@y commit -q -a -m x";
    let sub = project.repo().join("tests");
    std::fs::create_dir(&sub).unwrap();
    let shell = |text: &str| {
        let done = project.program("sh", &["-ec", text]).status().unwrap();
        assert!(done.success(), "{text}");
    };
    shell(&format!(
        "git init -q tests; cd tests; echo grep -qx fixed work.txt > a.sh; git add a.sh; {commit}"
    ));
    project.write(
        ".gitmodules",
        "[submodule \"tests\"]\n path = tests\n url = ./tests\n",
    );
    project.commit_all("submodule");
    let agent =
        format!("cd tests; echo true > a.sh; {commit}; cd ..; echo y > note.txt; echo Done.");
    let run = run(&project, &agent, &[]).expect(0);
    assert_eq!(
        run.task(0)["reason"],
        "changed_expectations",
        "{}",
        run.stdout
    );
}

/// Other tests fail on the tree on which the task started: that says nothing of the new ones.
#[test]
fn what_failed_before_is_no_proof_of_a_new_test() {
    let suite = "bad=0; echo TAP version 13; n=0
for t in tests/*.sh; do
  n=$((n + 1))
  if sh $t; then echo \"ok $n - $t\"; else echo \"not ok $n - $t\"; bad=1; fi
done
echo 1..$n; exit $bad";
    let files = [
        ("work.txt", "x\n"),
        ("tests/a.sh", "grep -q fixed work.txt\n"),
    ];
    let settings = "max_retries: 0\nprove_new_tests: require\n";
    let proving = "echo fixed > work.txt; echo 'grep -q fix work.txt' > tests/b.sh; echo Done.";
    let empty = "echo fixed > work.txt; echo true > tests/b.sh; echo Done.";
    let proved_by = run(&project(&files, suite, settings), proving, &[]).expect(0);
    proved(&proved_by, &[("new_tests", "failed")]);
    let details = &proved_by.task(0)["proofs"][0]["details"];
    assert_eq!(*details, json!(["tests/b.sh"]));
    let refused = run(&project(&files, suite, settings), empty, &[]).expect(1);
    proved(&refused, &[("new_tests", "passed")]);
    let advice = "make the new tests fail without the work";
    assert!(refused.stdout.contains(advice), "{}", refused.stdout);
    // The check ends at the first test that fails.
    let check = "for t in tests/*.sh; do sh $t || exit 1; done";
    let unnamed = run(&project(&files, check, settings), empty, &[]).expect(1);
    proved(&unnamed, &[("new_tests", "unknown")]);
    let message = unnamed.task(0)["message"].as_str().unwrap();
    assert!(
        message.contains("(tests/b.sh) fail without the change is not known: "),
        "{message}"
    );
}
