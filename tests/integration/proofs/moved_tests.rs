//! Tests that are moved or come with changed helpers.

use super::definitions::{CRATE, in_crate};
use super::*;

/// Runs every test, and refuses two of the same name, as many runners do.
const ALL: &str = "test -z \"$(cat $(find tests -name 'test_*') | grep '^# test' | sort | uniq -d)\" || exit 1\nfor t in $(find tests -name 'test_*'); do sh -e $t || exit 1; done\n";

const A: &str = "# test a\ngrep -qx fixed work.txt\n";

#[test]
fn a_test_that_is_only_moved_is_not_run_beside_the_original_one() {
    let files = [
        ("work.txt", "x\n"),
        ("tests/all.sh", ALL),
        ("tests/test_a.sh", A),
    ];
    let to_unit = "mkdir tests/unit; git mv tests/test_a.sh tests/unit/";
    let weaken = "sed -i 's/fixed/fine/' $(find tests -name 'test_*')";
    for (agent, reason) in [
        (format!("echo fixed > work.txt; {to_unit}"), "verified"),
        (
            "echo fixed > work.txt; git mv tests/test_a.sh tests/test_b.sh".to_owned(),
            "verified",
        ),
        (
            format!("echo fine > work.txt; {to_unit}; {weaken}"),
            "changed_expectations",
        ),
        // Where no check looks for it.
        (
            "mkdir -p old/tests; git mv tests/test_a.sh old/tests/".to_owned(),
            "changed_expectations",
        ),
        // What only has the content of a test does not stand for it.
        (
            "git mv tests/test_a.sh tests/data.txt".to_owned(),
            "changed_expectations",
        ),
    ] {
        let project = project(&files, "sh tests/all.sh", "max_retries: 0\n");
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
    }
}

const HELPER: (&str, &str) = (
    "tests/common/mod.rs",
    "pub fn expected() -> i32 {\n    2\n}\n",
);
const WITH_HELPER: (&str, &str) = (
    "tests/a.rs",
    "mod common;\n#[test]\nfn two() {\n    assert_eq!(x::two(), common::expected());\n}\n",
);
const FIX: &str = "sed -i 's/^    1$/    2/' src/lib.rs";
/// A new test that needs a new function of a helper, and one that needs a new program.
const NEW_TEST: &str = "printf 'pub fn three() -> i32 {\\n    3\\n}\\n' >> tests/common/mod.rs; printf 'mod common;\\n#[test]\\nfn three() {\\n    assert_eq!(x::two() + 1, common::three());\\n}\\n' > tests/new.rs";
const NEW_PROGRAM: &str = "printf '[[bin]]\\nname = \"tool\"\\npath = \"src/tool.rs\"\\n' >> Cargo.toml; echo 'fn main() {}' > src/tool.rs; printf '#[test]\\nfn cli() {\\n    assert!(std::process::Command::new(env!(\"CARGO_BIN_EXE_tool\")).status().unwrap().success());\\n}\\n' > tests/cli.rs";

#[test]
fn a_new_test_that_needs_what_the_proof_puts_back_is_left_out_of_it() {
    let start = [CRATE[0], CRATE[1], CRATE[2], HELPER, WITH_HELPER];
    let weaken = "sed -i 's/ == 2/ == 1/; s/(), 2/(), 1/' src/lib.rs; sed -i 's/    2/    1/' tests/common/mod.rs";
    let new_test = NEW_TEST.replace("    3", "    2");
    for (agent, reason) in [
        (format!("{FIX}; {NEW_TEST}"), "verified"),
        (format!("{FIX}; {NEW_PROGRAM}"), "verified"),
        (format!("{weaken}; {new_test}"), "changed_expectations"),
        (format!("{NEW_PROGRAM}; {weaken}"), "changed_expectations"),
    ] {
        let run = in_crate(&start, &agent).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
    }
}

#[test]
fn tests_of_a_rust_module_are_put_back_into_the_file_in_which_it_is() {
    let one = CRATE[2].1;
    let start = [
        CRATE[0],
        CRATE[1],
        ("src/lib.rs", "mod one;\npub use one::two;\n"),
        ("src/one.rs", one),
        HELPER,
        WITH_HELPER,
    ];
    let to_dir = "mkdir src/one; git mv src/one.rs src/one/mod.rs";
    let fix = "sed -i 's/^    1$/    2/' src/one/mod.rs";
    let weaken = "sed -i 's/    2/    1/' tests/common/mod.rs";
    for (agent, reason) in [
        (format!("{to_dir}; {fix}"), "verified"),
        (
            format!(
                "{FIX_ONE}; mkdir tests/a; git mv tests/a.rs tests/a/main.rs; git mv tests/common tests/a/"
            ),
            "verified",
        ),
        (
            format!("{to_dir}; sed -i 's/(), 2/(), 1/' src/one/mod.rs; {weaken}"),
            "changed_expectations",
        ),
        (
            format!("{to_dir}; sed -i '/cfg.test/,$d' src/one/mod.rs; {weaken}"),
            "changed_expectations",
        ),
        (
            format!(
                "{to_dir}; sed -i '1i #![cfg(not(test))]' src/one/mod.rs; sed -i 's/^mod/#[cfg(not(test))]\\nmod/; s/^pub use/#[cfg(not(test))]\\npub use/' src/lib.rs; rm tests/a.rs"
            ),
            "changed_expectations",
        ),
        // Cargo finds no tests there.
        (
            "mkdir tests/a; git mv tests/a.rs tests/a/mod.rs; sed -i 's/(), 2/(), 1/' src/one.rs"
                .to_owned(),
            "changed_expectations",
        ),
    ] {
        let run = in_crate(&start, &agent).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
    }
}

const FIX_ONE: &str = "sed -i 's/^    1$/    2/' src/one.rs";
