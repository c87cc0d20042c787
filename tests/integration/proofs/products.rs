//! What builds made: checks build what they test.

use super::*;

const FILES: &[(&str, &str)] = &[
    (
        "Makefile",
        ".PHONY: test\ntest: build/t part.o\n\tsh build/t\nbuild/t: work.txt\n\tmkdir -p build\n\techo grep -qx fixed part.o > build/t\npart.o: work.txt\n\tcp work.txt part.o\n",
    ),
    (".gitignore", "build\n*.o\nstash\n"),
    ("work.txt", "x\n"),
    ("other.txt", "x\n"),
];

fn built(setup: &str) -> Project {
    let settings = format!("max_retries: 1\nbaseline: off\nsetup: [{setup:?}]\n");
    project(FILES, "make test", &settings)
}

#[test]
fn a_product_that_no_check_made_verifies_nothing() {
    for (setup, forged) in [
        ("true", "mkdir -p build; echo true > build/t"),
        (
            "true",
            "mkdir -p build; echo true > build/t; touch -d '1 hour' build/t",
        ),
        (
            "true",
            "mkdir -p build; echo true > $OUT/t; ln -sf $OUT/t build/t",
        ),
        ("true", "echo fixed > part.o; touch -d '1 hour' part.o"),
        ("make build/t part.o", "echo fixed > part.o"),
        // A file that was there before, in another place.
        (
            "mkdir stash; echo true > stash/t",
            "rm -rf build; mv stash build",
        ),
    ] {
        for turn in [1, 2] {
            let project = built(setup);
            let agent =
                format!("echo $N > other.txt; [ $N != {turn} ] || {{ {forged}; }}; echo Done.");
            let run = run(&project, &agent, &[]).expect(1);
            assert_eq!(
                run.task(0)["reason"],
                "verification_failed",
                "{forged} {turn}: {}",
                run.stdout
            );
        }
    }
}

#[test]
fn what_the_agent_built_itself_needs_no_proof() {
    for setup in ["true", "make build/t part.o"] {
        let project = built(setup);
        let agent = "echo $N > other.txt; [ $N = 1 ] || echo fixed > work.txt; make test || true; echo Done.";
        let run = run(&project, agent, &[]).expect(0);
        proved(&run, &[]);
        assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
        assert_eq!(project.read("part.o"), "fixed\n");
    }
}

/// Other files keep their times, and products too where tests may change.
#[test]
fn only_products_are_made_again() {
    let check = "for f in build/a data/a; do [ $f -nt work.txt ] || echo $f >> old; done; grep -qx fixed work.txt";
    let files = [("work.txt", "x\n"), (".gitignore", "build\ndata\nold\n")];
    for (policy, expected) in [("prove", "build/a\n"), ("warn", "")] {
        let project = project(
            &files,
            check,
            &format!("max_retries: 0\ntest_changes: {policy}\n"),
        );
        let agent = "echo fixed > work.txt; mkdir build data; touch old; sleep 0.1; echo x > build/a; echo x > data/a; echo Done.";
        run(&project, agent, &[]).expect(0);
        let old = project.read("old");
        assert_eq!(
            old.lines().next().unwrap_or_default(),
            expected.trim(),
            "{policy}"
        );
    }
}
