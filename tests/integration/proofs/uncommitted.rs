//! What checks see in the work tree and a fresh checkout of the commit does not have.

use super::*;
use crate::support::due;

const FILES: &[(&str, &str)] = &[
    ("work.txt", "x\n"),
    ("other.txt", "x\n"),
    (".gitignore", "out\n*.local\nnode_modules\n"),
];

/// How an agent makes `$1` say `fixed` here and nowhere else, and what the message names.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("out/a.txt", "mkdir out; echo fixed > out/a.txt", "out"),
    ("a.local", "echo fixed > a.local", "a.local"),
    // Rules that the work itself adds.
    (
        "b.txt",
        "echo b.txt >> .gitignore; echo fixed > b.txt",
        "b.txt",
    ),
    (
        "gen/b.txt",
        "echo gen >> .gitignore; mkdir gen; echo fixed > gen/b.txt",
        "gen",
    ),
    (
        ".lib/b.txt",
        "echo .lib >> .gitignore; mkdir .lib; echo fixed > .lib/b.txt",
        ".lib",
    ),
    (
        "b.pyc",
        "echo '*.pyc' >> .gitignore; echo fixed > b.pyc",
        "b.pyc",
    ),
    (
        "tests/node_modules/b.txt",
        "mkdir -p tests/node_modules; echo fixed > tests/node_modules/b.txt",
        "tests/node_modules",
    ),
    (
        "sub/a.txt",
        "git init -q sub; echo fixed > sub/a.txt",
        "sub",
    ),
    (
        "sub/a.txt",
        "git init -q sub; cd sub; echo fixed > a.txt; git add a.txt; git -c user.name=x -c user.email=x@y commit -qm x; cd ..; printf '[submodule \"sub\"]\\n path = sub\\n url = https://example.invalid/x\\n' > .gitmodules; git add sub",
        "sub",
    ),
    (
        "work.txt",
        "echo fixed > $OUT/a.txt; ln -sf $OUT/a.txt work.txt",
        "work.txt",
    ),
    (
        "work.txt",
        "mkdir out; echo fixed > out/a.txt; ln -sf out/a.txt work.txt",
        "out",
    ),
];

/// A product that the checks built before the first turn proves nothing once the agent has changed it.
#[test]
fn a_product_of_a_build_that_the_agent_changes_is_built_again() {
    let build = "test -e out/t || { mkdir -p out && cp work.txt out/t; }";
    let check = format!("{build}; grep -qx fixed out/t");
    for (agent, reason) in [
        (
            "echo fixed > out/t; echo y > other.txt",
            "changed_expectations",
        ),
        ("echo fixed > work.txt; rm out/t", "verified"),
        ("echo fixed | tee work.txt > out/t", "verified"),
    ] {
        let settings = "max_retries: 0\nbaseline: first\n";
        let project = project(FILES, &check, settings);
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
    }
}

#[test]
fn what_only_this_work_tree_has_proves_nothing() {
    for (path, agent, named) in due(ELSEWHERE, 2) {
        let project = project(FILES, &format!("grep -qx fixed {path}"), "max_retries: 0\n");
        let agent = format!("echo y > other.txt; {agent}; echo Done.");
        let run = run(&project, &agent, &[]).expect(0);
        proved(&run, &[("old_tests", "failed")]);
        assert_eq!(run.task(0)["reason"], "changed_expectations", "{agent}");
        let message = run.task(0)["message"].as_str().unwrap();
        let told = format!("a fresh checkout does not have what the checks saw ({named})");
        assert!(message.contains(&told), "{message}");
        assert_eq!(project.read(path), "fixed\n", "{agent}");
    }
}

/// Not even a search through everything below the work tree, which git's directory is a part of.
#[test]
fn a_check_that_searches_everywhere_does_not_find_what_was_moved_away() {
    let check = "grep -rqx --include=a.txt fixed .";
    let project = project(FILES, check, "max_retries: 0\n");
    let agent = "echo y > other.txt; mkdir out; echo fixed > out/a.txt; echo Done.";
    let run = run(&project, agent, &[]).expect(0);
    proved(&run, &[("old_tests", "failed")]);
    assert_eq!(run.task(0)["reason"], "changed_expectations");
    assert_eq!(project.read("out/a.txt"), "fixed\n");
}

#[test]
fn what_no_check_needs_may_stay_uncommitted() {
    for (path, agent, _) in due(ELSEWHERE, 3) {
        let project = project(FILES, "grep -qx done other.txt", "max_retries: 0\n");
        let agent = format!("echo done > other.txt; {agent}; echo Done.");
        let run = run(&project, &agent, &[]).expect(0);
        proved(&run, &[("old_tests", "passed")]);
        assert_eq!(run.task(0)["reason"], "verified", "{agent}: {}", run.stdout);
        assert_eq!(project.read(path), "fixed\n", "{agent}");
    }
}

/// What checks make themselves, what was there and what package managers install needs no proof.
#[test]
fn files_that_are_made_again_need_no_proof() {
    let check = "mkdir -p out; cp work.txt out/a.txt; grep -qx fixed out/a.txt";
    let project = project(
        FILES,
        check,
        "max_retries: 1\nsetup: ['echo x > a.local']\n",
    );
    let agent = "echo b > a.local; mkdir -p node_modules/a; echo x > node_modules/a/x; [ $N = 1 ] || echo fixed > work.txt; echo $N > other.txt; echo Done.";
    let run = run(&project, agent, &["--baseline", "off"]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    // What the agent has changed of it proves nothing, so that the checks pass without it, too.
    assert_eq!(project.calls(), 2);
    proved(&run, &[("old_tests", "passed")]);
}

#[test]
fn what_was_there_and_the_agent_has_changed_proves_nothing() {
    for path in ["out/check.sh", "node_modules/t/check.sh"] {
        for (agent, reason) in [
            (
                format!("echo exit 0 > {path}; echo y > other.txt"),
                "changed_expectations",
            ),
            ("echo fixed > work.txt".to_owned(), "verified"),
        ] {
            let project = project(FILES, &format!("sh {path}"), "max_retries: 0\n");
            project.write(path, "grep -qx fixed work.txt\n");
            // uv marks what it installs as a cache.
            project.write("node_modules/CACHEDIR.TAG", "\n");
            let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
            assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
            let message = run.task(0)["message"].to_string();
            let named = path.trim_end_matches("/check.sh");
            assert!(reason == "verified" || message.contains(named), "{message}");
        }
    }
}

/// What checks have made of changed tests is made again with the original ones.
#[test]
fn what_checks_made_is_made_again_for_the_proof() {
    let files = [
        (
            "Makefile",
            "test: t\n\tgrep -qx fixed t\nt: work.txt\n\tsh tests/make.sh\n",
        ),
        ("tests/make.sh", "cp work.txt t\n"),
        ("work.txt", "x\n"),
        (".gitignore", "t\n"),
    ];
    let project = project(&files, "make test", "max_retries: 0\n");
    let run = run(
        &project,
        "echo 'echo fixed > t' > tests/make.sh; echo Done.",
        &[],
    )
    .expect(0);
    proved(&run, &[("old_tests", "failed")]);
    is_unverified(&project, &run, "tests/make.sh");
}

/// A build that remembers what it has made makes it again for the proof.
#[test]
fn what_builds_remember_does_not_keep_them_from_building() {
    for (list, agent, expected) in [
        ("x.tsbuildinfo", "make t; true", "verified"),
        (
            "x.tsbuildinfo",
            "echo x > work.txt; make t; echo fixed > t",
            "changed_expectations",
        ),
    ] {
        let make = format!(
            "test: t\n\tgrep -qx fixed t\nt: {list}\n{list}: work.txt\n\tmkdir -p {list} && rmdir {list}\n\tcp work.txt t\n\ttouch {list}\n"
        );
        let files = [
            ("Makefile", make.as_str()),
            ("work.txt", "x\n"),
            ("other.txt", "x\n"),
            (".gitignore", "t\nbuild\n*.tsbuildinfo\nnode_modules\n"),
        ];
        let project = project(&files, "make test", "max_retries: 0\n");
        let agent = format!("echo fixed > work.txt; echo y > other.txt; {agent}; echo Done.");
        let run = run(&project, &agent, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], expected, "{list}: {}", run.stdout);
    }
}

#[test]
fn a_check_that_rewrites_the_original_tests_proves_nothing() {
    let files = [
        (
            "run.sh",
            ". ./app.sh\nfor t in tests/*.sh; do sh $t; done\n",
        ),
        ("app.sh", "true\n"),
        ("tests/a.sh", "grep -qx fixed work.txt\n"),
        ("work.txt", "x\n"),
    ];
    let project = project(&files, "sh -e run.sh", "max_retries: 0\n");
    let agent = "echo true > tests/a.sh; echo 'echo true > tests/a.sh' > app.sh; echo Done.";
    let run = run(&project, agent, &[]).expect(0);
    proved(&run, &[("old_tests", "unknown")]);
    is_unverified(
        &project,
        &run,
        "the checks changed the original files: tests/a.sh",
    );
}

/// The check makes the same of them without the work.
#[test]
fn a_check_that_formats_the_original_tests_proves_all_the_same() {
    let check = "sed -i 's/  */ /g' tests/a.sh; sh tests/a.sh";
    let files = [
        ("tests/a.sh", "grep  -qx fixed work.txt\n"),
        ("work.txt", "x\n"),
    ];
    for (work, result, reason) in [
        ("fixed", "passed", "verified"),
        ("y", "failed", "changed_expectations"),
    ] {
        let project = project(&files, check, "max_retries: 0\n");
        let agent =
            format!("echo {work} > work.txt; echo 'grep -q . work.txt' > tests/a.sh; echo Done.");
        let run = run(&project, &agent, &[]).expect(0);
        proved(&run, &[("old_tests", result)]);
        assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
        assert_eq!(project.read("tests/a.sh"), "grep -q . work.txt\n");
    }
}

/// A file that the commit contains although git ignores its directory, and data that other rules list.
#[test]
fn what_is_committed_or_was_there_needs_no_proof() {
    let check = "grep -qx fixed out/a.txt && grep -qx x data/a.csv";
    let files = [("other.txt", "x\n"), (".gitignore", "out\ndata/*.csv\n")];
    let settings = "max_retries: 0\nsetup: ['mkdir data; echo x > data/a.csv']\n";
    let project = project(&files, check, settings);
    let agent = "mkdir out; echo fixed > out/a.txt; git add -f out/a.txt; printf 'out\\ndata/\\n' > .gitignore; echo Done.";
    let run = run(&project, agent, &["--baseline", "off"]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    assert_eq!(project.git(&["show", "HEAD:out/a.txt"]).trim(), "fixed");
}

/// Also where the program is a link to one of the machine.
#[test]
fn code_that_python_runs_at_its_start_verifies_nothing() {
    let files = [
        ("work.txt", "x\n"),
        (".gitignore", ".venv\n"),
        (
            "check.py",
            "import sys\nsys.exit(open('work.txt').read() != 'fixed\\n')\n",
        ),
    ];
    let packages = "$(echo .venv/lib/python3*/site-packages)";
    let settings = "max_retries: 0\nsetup: ['python3 -m venv --without-pip .venv']\n";
    for (file, work, expected) in [
        // The setup command makes the environment again.
        ("x.pth", "y", "verification_failed"),
        ("sitecustomize.py", "y", "verification_failed"),
        ("other.py", "fixed", "verified"),
    ] {
        let project = project(&files, ".venv/bin/python check.py", settings);
        let agent = format!(
            "echo 'import os; os._exit(0)' > {packages}/{file}; echo {work} > work.txt; echo Done."
        );
        let run = run(&project, &agent, &[]);
        assert_eq!(run.task(0)["reason"], expected, "{file}: {}", run.stdout);
    }
}

/// What is behind the link is at another place, and nothing was left behind.
#[test]
fn a_directory_that_becomes_a_link_to_another_one_is_what_a_fresh_checkout_has() {
    let files = [("src/a.txt", "x\n"), ("other.txt", "x\n")];
    let project = project(&files, "grep -qx fixed src/a.txt", "max_retries: 0\n");
    let agent = "mkdir two; echo fixed > two/a.txt; rm -r src; ln -s two src; echo Done.";
    let run = run(&project, agent, &[]).expect(0);
    proved(&run, &[]);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    assert_eq!(project.read("two/a.txt"), "fixed\n");
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

/// Checks that write by a definition what is committed too, such as lock files, write other content by the original one.
#[test]
fn what_the_checks_make_of_the_work_is_there_again_after_a_proof() {
    let files = [
        (
            "Makefile",
            "NAME = a\ntest:\n\techo $(NAME) > lock\n\tgrep -qx fixed work.txt\n",
        ),
        ("work.txt", "x\n"),
        ("lock", "a\n"),
    ];
    let project = project(&files, "make test", "max_retries: 0\n");
    let agent = "sed -i 's/NAME = a/NAME = b/' Makefile; echo fixed > work.txt; echo Done.";
    let run = run(&project, agent, &[]).expect(0);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
    assert_eq!(project.read("lock"), "b\n");
}

/// An agent that says that nothing is to be done may have made the checks pass with what no commit contains.
#[test]
fn a_task_is_not_satisfied_by_what_only_this_work_tree_has() {
    let says = "echo 'ALREADY_SATISFIED: it is there' > $SPRAG_FINAL_FILE";
    for (check, agent, code, reason, proof) in [
        (
            "grep -qx fixed a.local",
            "echo fixed > a.local",
            1,
            "no_progress",
            &[("old_tests", "failed")][..],
        ),
        (
            "grep -qx x work.txt",
            "echo fixed > a.local",
            0,
            "already_satisfied",
            &[("old_tests", "passed")],
        ),
        ("grep -qx x work.txt", "true", 0, "already_satisfied", &[]),
    ] {
        let project = project(FILES, check, "max_retries: 0\n");
        let run = run(&project, &format!("{agent}; {says}"), &[]).expect(code);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
        proved(&run, proof);
        let message = run.task(0)["message"].as_str().unwrap();
        assert_eq!(message.contains("a.local"), code == 1, "{message}");
    }
}

/// A check that fails once passes in the second proof; a failure that comes back, or is not known to be over, stays one.
#[test]
fn a_proof_that_fails_once_does_not_fail_a_task_that_needs_no_work() {
    let says = "echo 'ALREADY_SATISFIED: it is there' > $SPRAG_FINAL_FILE";
    for (third, code, reason, proof) in [
        ("true", 0, "already_satisfied", "passed"),
        ("false", 1, "no_progress", "failed"),
        ("sleep 1000", 1, "no_progress", "unknown"),
    ] {
        let proofs = [("old_tests", "failed"), ("old_tests", proof)];
        let (_, run) = proved_under_limit(&proofs, |limit| {
            let settings = format!("max_retries: 0\nverify_timeout: {limit}s\n");
            let mut project = project(FILES, "true", &settings);
            let runs = project.outside("runs").display().to_string();
            let check = format!(
                "echo x >> {runs}; case $(wc -l < {runs}) in 2) false ;; 3) {third} ;; esac"
            );
            let plan = project.read("plan.yaml");
            let check = serde_json::to_string(&check).unwrap();
            project.write("plan.yaml", &plan.replace("\"true\"", &check));
            project.commit_all("check");
            project.env("SPRAG_FLAKY_RERUNS", "1");
            let run = run(&project, &format!("echo x > a.local; {says}"), &[]);
            (project, run)
        });
        let run = run.expect(code);
        assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
    }
}

/// What says that an installed package extends pytest is usually ignored and made again.
#[test]
fn an_ignored_plugin_of_pytest_proves_nothing() {
    let check = "grep -qsx '\\[pytest11\\]' x.egg-info/entry_points.txt || grep -qx fixed work.txt";
    let files = [FILES[0], FILES[1], (".gitignore", "*.egg-info/\n")];
    for (agent, expected, proof) in [
        (
            "echo y > other.txt",
            "[pytest11]",
            &[("old_tests", "failed")][..],
        ),
        ("echo fixed > work.txt", "[console_scripts]", &[]),
    ] {
        let project = project(&files, check, "max_retries: 0\n");
        let agent = format!(
            "{agent}; mkdir x.egg-info; echo '{expected}' > x.egg-info/entry_points.txt; echo Done."
        );
        let run = run(&project, &agent, &[]).expect(0);
        let reason = if proof.is_empty() {
            "verified"
        } else {
            "changed_expectations"
        };
        assert_eq!(run.task(0)["reason"], reason, "{}", run.stdout);
        proved(&run, proof);
    }
}

/// What an agent left in an earlier task is still not in a fresh checkout.
#[test]
fn what_an_earlier_task_left_uncommitted_proves_nothing_in_a_later_one() {
    for (agent, expected) in [
        (
            "echo y$N > other.txt; echo fixed > a.local",
            "changed_expectations",
        ),
        (
            "echo y$N > other.txt; echo fixed > a.local; echo fixed > work.txt",
            "verified",
        ),
    ] {
        let project = project(FILES, "true", "max_retries: 0\n");
        let check = "grep -qx y1 other.txt || grep -qx fixed a.local || grep -qx fixed work.txt";
        let plan = "title: Two\nmax_retries: 0\ntasks:\n  - { id: a, title: A }\n  - { id: b, title: B }\n";
        let plan = format!("{plan}verify:\n  - {{ name: test, run: \"{check}\", kind: test }}\n");
        project.write("plan.yaml", &plan);
        project.commit_all("two tasks");
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
        assert_eq!(run.task(1)["reason"], expected, "{agent}: {}", run.stdout);
    }
}

/// Node finds packages in every directory on the way up, and those of the top belong to the project's manifest.
#[test]
fn packages_below_the_top_that_nobody_asked_for_prove_nothing() {
    let check = "grep -qsx fixed src/node_modules/a/b.txt || grep -qx fixed work.txt";
    let start = [FILES[0], FILES[1], FILES[2], ("src/a.js", "x\n")];
    let makes = "mkdir -p src/node_modules/a; echo fixed > src/node_modules/a/b.txt";
    for (files, agent, reason) in [
        (
            &start[..],
            format!("{makes}; echo y > other.txt"),
            "changed_expectations",
        ),
        (
            &start[..],
            format!("{makes}; echo '{{}}' > src/package.json"),
            "changed_expectations",
        ),
        (
            &start[..],
            format!("{makes}; echo fixed > work.txt"),
            "verified",
        ),
    ] {
        let project = project(files, check, "max_retries: 0\n");
        let run = run(&project, &format!("{agent}; echo Done."), &[]).expect(0);
        assert_eq!(run.task(0)["reason"], reason, "{agent}: {}", run.stdout);
        let result = if reason == "verified" {
            "passed"
        } else {
            "failed"
        };
        proved(&run, &[("old_tests", result)]);
    }
    // A manifest that was there has asked for them.
    let manifest = [FILES[0], FILES[1], FILES[2], ("src/package.json", "{}\n")];
    let project = project(&manifest, check, "max_retries: 0\n");
    let run = run(
        &project,
        &format!("{makes}; echo fixed > work.txt; echo Done."),
        &[],
    )
    .expect(0);
    proved(&run, &[]);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
}

/// A new directory with a manifest of its own is work that comes with its packages.
#[test]
fn packages_of_a_new_directory_need_no_proof() {
    let check = "grep -qx fixed new/node_modules/a/b.txt && grep -qx fixed work.txt";
    let start = [FILES[0], FILES[1], FILES[2], ("src/a.js", "x\n")];
    let project = project(&start, check, "max_retries: 0\n");
    let makes = "mkdir -p new/node_modules/a; echo fixed > new/node_modules/a/b.txt; echo '{}' > new/package.json";
    let agent = format!("{makes}; echo fixed > work.txt; echo Done.");
    let run = run(&project, &agent, &["--baseline", "off"]).expect(0);
    proved(&run, &[]);
    assert_eq!(run.task(0)["reason"], "verified", "{}", run.stdout);
}
