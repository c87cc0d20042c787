//! Tests that are moved, split, or come with changed helpers.

use super::definitions::{CRATE, in_crate};
use super::*;

const CHECK: &str = "sh tests/all.inc";
/// Runs every test, and refuses two of the same name, as many runners do.
const ALL: &str = "test -z \"$(grep -rhs '^# test' tests | sort | uniq -d)\" || exit 1\nfor t in $(find tests -name '*.sh'); do sh -e $t || exit 1; done\n";

fn files() -> Vec<(&'static str, &'static str)> {
    vec![
        ("work.txt", "x\n"),
        ("tests/all.inc", ALL),
        ("tests/helper.inc", "is() { grep -qx $1 work.txt; }\n"),
        (
            "tests/a.sh",
            "# test a\n. tests/helper.inc\nis fixed\n# test b\ntest -e work.txt\n",
        ),
    ]
}

const MOVES: &[&str] = &[
    "git mv tests/a.sh tests/c.sh",
    "mkdir tests/unit; git mv tests/a.sh tests/unit/a.sh",
    "printf '# test b\\ntest -e work.txt\\n' > tests/b.sh; sed -i '/test b/,$d' tests/a.sh",
    "echo 'has() { grep -q $1 work.txt; }' >> tests/helper.inc; printf '# test c\\n. tests/helper.inc\\nhas e\\n' > tests/c.sh",
];

#[test]
fn tests_that_move_or_need_a_changed_helper_prove_what_they_proved_before() {
    for change in MOVES {
        let project = project(&files(), CHECK, "max_retries: 0\n");
        let agent = format!("echo fixed > work.txt; {change}; echo Done.");
        let run = run(&project, &agent, &[]).expect(0);
        proved(&run, &[("old_tests", "passed")]);
        assert_eq!(run.task(0)["reason"], "verified", "{change}");
    }
    for change in MOVES {
        let project = project(&files(), CHECK, "max_retries: 0\n");
        let agent = format!(
            "echo fine > work.txt; {change}; sed -i 's/is fixed/is fine/' $(find tests -name '*.sh'); echo Done."
        );
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], "changed_expectations", "{change}");
    }
}

#[test]
fn work_that_needs_a_file_among_the_tests_is_verified_with_it() {
    let check =
        "test -e tests/limits.txt && cat $(cat parts) > /dev/null && grep -qx fixed work.txt";
    let start = [
        ("work.txt", "x\n"),
        ("parts", "work.txt\n"),
        ("tests/limits.txt", "1\n"),
    ];
    for (work, reason) in [("fixed", "verified"), ("y", "changed_expectations")] {
        let check = format!("{check} || test $(cat tests/limits.txt) = 2 -a -e tests/new.txt");
        let project = project(&start, &check, "max_retries: 0\n");
        let agent = format!(
            "echo {work} > work.txt; echo 2 > tests/limits.txt; echo tests/new.txt > parts; echo x > tests/new.txt; echo Done."
        );
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
    }
}

/// Neither the original tests nor what is put back tell whether the new tests need a file that is ignored.
#[test]
fn a_new_test_that_passes_only_with_an_ignored_file_proves_nothing() {
    let start = [
        (
            "Makefile",
            "test:\n\tset -e; for t in tests/*.sh; do sh $$t; done\n",
        ),
        ("work.txt", "x\n"),
        ("tests/a.sh", "grep -qx fixed work.txt\n"),
        (".gitignore", "*.local\n"),
    ];
    for (data, reason) in [("a.local", "changed_expectations"), ("a.txt", "verified")] {
        let project = project(&start, "make test", "max_retries: 0\n");
        let agent = format!(
            "echo fixed > work.txt; echo x > {data}; echo 'test -e {data}' > tests/b.sh; echo '# end' >> Makefile; echo Done."
        );
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
    }
}

const TESTS: &str = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn is_two() {\n        assert_eq!(super::two(), 2);\n    }\n}\n";

/// A file that only a declaration in another one makes a part of the crate does not run where it is put back.
#[test]
fn tests_of_a_module_that_was_renamed_are_those_that_moved_with_it() {
    let two = format!("pub fn two() -> i32 {{\n    1\n}}\n\n{TESTS}");
    let start = [
        CRATE[0],
        CRATE[1],
        ("src/lib.rs", "mod one;\npub use one::two;\n"),
        ("src/one.rs", &two),
    ];
    let fix = "sed -i 's/^    1$/    2/' src/*.rs src/*/*.rs 2>/dev/null";
    let drop = "sed -i '/cfg.test/,$d' src/other.rs";
    let rename = "git mv src/one.rs src/other.rs; sed -i 's/one/other/' src/lib.rs";
    for (agent, reason) in [
        (format!("{rename}; {fix}"), "verified"),
        (
            format!("mkdir src/one; git mv src/one.rs src/one/mod.rs; {fix}"),
            "verified",
        ),
        (format!("{rename}; {drop}"), "changed_expectations"),
        (
            format!("{rename}; sed -i 's/, 2)/, 1)/' src/other.rs"),
            "changed_expectations",
        ),
        (
            format!(
                "{rename}; sed -i '1i #![cfg(not(test))]' src/other.rs; sed -i 's/^mod/#[cfg(not(test))]\\nmod/; s/^pub/#[cfg(not(test))]\\npub/' src/lib.rs"
            ),
            "changed_expectations",
        ),
    ] {
        let run = in_crate(&start, &format!("{agent}; echo y > note.txt")).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
    }
    // The tests of a module in a file of their own.
    let start = [
        CRATE[0],
        CRATE[1],
        ("src/lib.rs", "mod one;\npub use one::two;\n"),
        (
            "src/one.rs",
            "pub fn two() -> i32 {\n    1\n}\n\n#[cfg(test)]\nmod tests;\n",
        ),
        (
            "src/one/tests.rs",
            "#[test]\nfn is_two() {\n    assert_eq!(super::two(), 2);\n}\n",
        ),
    ];
    let rename = format!("{rename}; git mv src/one src/other");
    for (agent, reason) in [
        (format!("{rename}; {fix}"), "verified"),
        (
            format!("{rename}; sed -i 's/, 2)/, 1)/' src/other/tests.rs"),
            "changed_expectations",
        ),
    ] {
        let run = in_crate(&start, &format!("{agent}; echo y > note.txt")).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
    }
}
