//! Definitions that are found behind less usual commands, and what stays the work.

use super::{Tree, decides};
use crate::checks::definitions::{Definitions, Role};

#[test]
fn scripts_are_found_behind_variables_options_and_quotes() {
    let files = [
        ("qa/judge", "sh qa/other"),
        ("qa/other", ""),
        ("qa/rules", "t:\n\tD=qa; sh $$D/judge\n"),
        ("qa/Makefile", "t:\n\tsh judge\n"),
        ("qa/j.py", ""),
        ("qa/__main__.py", ""),
        ("qa/j.js", ""),
        ("qa/index.js", ""),
        ("pkgs/a/package.json", "{\"scripts\":{\"test\":\"sh j\"}}"),
        ("pkgs/a/j", ""),
        ("pkgs/b/x", ""),
        ("work.txt", ""),
    ];
    for (check, path, expected) in [
        ("J=qa/judge; sh $J", "qa/judge", true),
        ("D=qa; sh \"$D/judge\"", "qa/judge", true),
        ("sh \"${J:-qa/judge}\"", "qa/judge", true),
        ("D=$(pwd); sh \"$D/qa/judge\"", "qa/judge", true),
        ("D=work.txt; D=$(x); sh \"$D/qa/judge\"", "qa/judge", true),
        ("for f in x qa/judge; do sh \"$f\"; done", "qa/judge", true),
        ("J=qa/judge; J=work.txt; sh $J", "qa/judge", false),
        ("bash -o errexit qa/judge", "qa/judge", true),
        ("bash +x qa/judge", "qa/judge", true),
        ("eval 'sh qa/judge'", "qa/judge", true),
        ("trap 'sh qa/judge' EXIT", "qa/judge", true),
        ("sh qa/judge", "qa/other", true),
        ("pushd qa; sh judge", "qa/judge", true),
        ("make -Cqa t", "qa/judge", true),
        ("make --directory=qa t", "qa/judge", true),
        ("make -fqa/rules t", "qa/rules", true),
        ("make --file=qa/rules t", "qa/judge", true),
        ("python3 -mqa.j", "qa/j.py", true),
        ("python3 qa", "qa/__main__.py", true),
        ("node ./qa", "qa/index.js", true),
        ("node qa/j", "qa/j.js", true),
        ("npm test -w pkgs/a", "pkgs/a/j", true),
        ("npm test --workspace=pkgs/a", "pkgs/a/j", true),
        (
            "for p in pkgs/b pkgs/a; do (cd $p && npm test); done",
            "pkgs/a/j",
            true,
        ),
        (
            "for p in pkgs/a pkgs/b; do (cd $p && npm test); done",
            "pkgs/a/j",
            true,
        ),
        (
            "for p in pkgs/*; do (cd \"$p\" && npm test); done",
            "pkgs/a/j",
            true,
        ),
        (
            "for p in other/*; do (cd \"$p\" && npm test); done",
            "pkgs/a/j",
            false,
        ),
        ("sed -i s/a/b/ work.txt", "work.txt", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn files_of_rules_decide_and_what_text_tools_work_on_does_not() {
    let files = [
        ("rules", ""),
        ("SUMS", ""),
        ("work.txt", ""),
        ("cases.txt", ""),
        ("tests/run.sh", ""),
    ];
    for (check, path, expected) in [
        ("awk -f rules work.txt", "rules", true),
        ("sed -n -f rules work.txt", "rules", true),
        ("grep -qxf rules work.txt", "rules", true),
        ("grep --file=rules work.txt", "rules", true),
        ("jq -e --from-file rules work.txt", "rules", true),
        ("sha256sum -c SUMS", "SUMS", true),
        ("sha256sum --check SUMS", "SUMS", true),
        ("awk -f rules work.txt", "work.txt", false),
        ("awk -F, '{print $1}' work.txt", "work.txt", false),
        ("grep -q x work.txt", "work.txt", false),
        ("grep -rn --exclude=work.txt x .", "work.txt", false),
        ("sha256sum work.txt", "work.txt", false),
        (
            "while read a; do ./x $a; done < cases.txt",
            "cases.txt",
            true,
        ),
        (
            "while read a; do ./x $a; done < work.txt",
            "work.txt",
            false,
        ),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

/// Where another command judges what a program prints, or its name says that it starts the work, it is the work.
#[test]
fn a_program_whose_output_is_judged_or_that_starts_the_work_is_the_work() {
    let files = [
        ("greet.sh", "#!/bin/sh\n"),
        ("check.sh", "#!/bin/sh\n"),
        ("main.py", ""),
        ("index.js", ""),
        ("app/__main__.py", ""),
        ("ci/main.py", ""),
        ("expected.txt", ""),
    ];
    for (check, path, expected) in [
        ("./greet.sh", "greet.sh", true),
        ("./greet.sh | grep -qx hello", "greet.sh", false),
        (
            "./greet.sh | tr a b | diff - expected.txt",
            "greet.sh",
            false,
        ),
        (
            "./greet.sh | tr a b | diff - expected.txt",
            "expected.txt",
            true,
        ),
        ("[ \"$(./greet.sh)\" = hello ]", "greet.sh", false),
        (
            "out=$(./greet.sh); test \"$out\" = hello",
            "greet.sh",
            false,
        ),
        ("diff <(./greet.sh) expected.txt", "greet.sh", false),
        ("./greet.sh || grep -q x y", "greet.sh", true),
        ("./greet.sh | tee log", "greet.sh", true),
        ("(./greet.sh)", "greet.sh", true),
        ("./check.sh | grep -q ok", "check.sh", true),
        ("python3 main.py", "main.py", false),
        ("node index.js --check", "index.js", false),
        ("python3 -m app", "app/__main__.py", false),
        ("python3 ci/main.py", "ci/main.py", true),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn files_that_a_shell_runs_by_a_pattern_are_tests_if_they_say_that_they_check() {
    let tree = Tree([("checks/a", ""), ("src/a.sh", ""), ("README.md", "")].into());
    for (check, path, expected) in [
        (
            "for f in src/a.sh checks/*; do sh \"$f\"; done",
            "checks/a",
            true,
        ),
        ("for f in src/*.sh; do sh \"$f\"; done", "src/a.sh", false),
        (
            "for f in checks/*; do sh -n \"$f\"; done",
            "checks/a",
            false,
        ),
        ("python3 -m doctest README.md", "README.md", true),
        ("python3 -m other README.md", "README.md", false),
    ] {
        let definitions = Definitions::of([check], &tree);
        let is_test = definitions.of_old(path) == Some(Role::Test);
        assert_eq!(is_test, expected, "{check}: {path}");
    }
}

#[test]
fn a_new_file_among_the_tests_that_is_loaded_instead_of_the_work_decides() {
    let files = [
        ("calc.py", ""),
        ("include/calc.h", ""),
        ("lib/My/Calc.pm", ""),
        ("src/main/java/a/Calc.java", ""),
        ("tests/test_a.py", ""),
        ("tests/nested/__init__.py", ""),
        ("tests/unit/tools.py", ""),
        ("tests/fakes/__init__.py", ""),
        ("test/data.json", "{}"),
        ("test/kit/index.js", ""),
        ("test/text.txt", ""),
        ("package.json", "{}"),
        ("pkg/__init__.py", ""),
        ("pkg/tests/test_a.py", ""),
        ("web/src/tool.py", ""),
        ("web/core/calc.py", ""),
        ("web/tests/test_a.py", ""),
    ];
    for (check, path, expected) in [
        ("cd web && pytest", "web/tests/tool.py", true),
        ("cd web && pytest", "web/tests/unit/tool.py", true),
        ("cd web && pytest", "web/tests/core/calc.py", true),
        ("cd web && pytest", "web/tests/core/__init__.py", true),
        ("cd web && pytest", "web/tests/tool.pyc", true),
        (
            "cd web && pytest",
            "web/tests/tool.cpython-311-x86_64.so",
            true,
        ),
        ("cd web && pytest", "web/tests/other.so", false),
        ("python3 -m unittest", "unittest.pyc", true),
        ("cd web && pytest", "web/tests/helper.py", false),
        ("cd web && pytest", "web/tests/core/helper.py", false),
        ("cd web && pytest", "tests/tool.py", false),
        // It comes before the directory.
        ("pytest", "web/tests.py", true),
        ("pytest", "pkg.py", false),
        ("pytest", "web/src.py", false),
        ("pytest", "tests/calc/__init__.py", true),
        ("pytest", "tests/nested/calc/__init__.py", false),
        ("pytest", "tests/other/__init__.py", false),
        ("pytest", "tests/__init__.py", false),
        // A module that other tests load under this name.
        ("pytest", "tests/api/tools.py", true),
        ("pytest", "tests/api/v1/tools.py", true),
        ("pytest", "tests/tools.py", true),
        ("pytest", "tests/api/fakes.py", true),
        ("pytest", "tests/api/test_a.py", false),
        ("pytest", "tests/api/helper.py", false),
        ("npm test", "test/data.js", true),
        ("npm test", "test/kit.js", true),
        ("npm test", "test/data.mts", true),
        ("npm test", "test/text.js", false),
        ("npm test", "test/more/data.js", false),
        ("make test", "tests/calc.h", true),
        ("make test", "tests/macros.h", false),
        ("prove -l", "t/lib/My/Calc.pm", true),
        ("prove -l", "t/lib/Helper.pm", false),
        ("prove -l", "lib/strict.pm", true),
        ("mvn test", "src/test/java/a/Calc.java", true),
        ("mvn test", "src/test/java/a/CalcTest.java", false),
        ("npm test", "test/node_modules/chai/index.js", true),
        ("npm test", "node_modules/chai/index.js", false),
        ("ruff check .", ".gitignore", true),
        ("npx prettier --check .", "src/.gitignore", true),
        ("pytest", ".gitignore", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn an_environment_of_python_comes_first_only_where_a_check_uses_it() {
    let tree = Tree([("tests/a.py", "")].into());
    for (check, expected) in [
        ("python -m pytest", false),
        (". .venv/bin/activate; pytest", true),
        ("PATH=$PWD/venv/bin:$PATH pytest", true),
        ("uv run pytest", true),
        ("poetry run pytest", true),
    ] {
        let definitions = Definitions::of([check], &tree);
        assert_eq!(definitions.finds_first(".venv/bin"), expected, "{check}");
        assert!(definitions.finds_first("node_modules/.bin"), "{check}");
    }
}

#[test]
fn scripts_of_the_packages_of_a_workspace_are_found() {
    let of = |root: (&'static str, &'static str)| {
        [
            root,
            (
                "packages/a/package.json",
                "{\"scripts\":{\"test\":\"sh j\",\"lint\":\"sh l\"}}",
            ),
            ("packages/a/j", ""),
            ("packages/a/l", ""),
        ]
    };
    let npm = of(("package.json", "{\"workspaces\":[\"packages/*\"]}"));
    let yarn = of((
        "package.json",
        "{\"workspaces\":{\"packages\":[\"./packages/a\"]}}",
    ));
    let pnpm = of(("pnpm-workspace.yaml", "packages:\n  - 'packages/**'\n"));
    for (files, check) in [
        (&npm, "npm test --workspaces"),
        (&npm, "npm run test -ws --if-present"),
        (&npm, "npm test -w @x/a"),
        (&npm, "npx turbo run test"),
        (&npm, "npx nx run-many --target=test"),
        (&yarn, "yarn workspaces foreach -A run test"),
        (&yarn, "yarn workspace a test"),
        (&pnpm, "pnpm -r test"),
        (&pnpm, "pnpm --filter a run test"),
    ] {
        assert!(decides(files, check, "packages/a/j"), "{check}");
        assert!(!decides(files, check, "packages/a/l"), "{check}");
    }
    assert!(!decides(&npm, "npm test", "packages/a/j"));
}

#[test]
fn scripts_that_files_of_task_runners_name_are_found() {
    let files = [
        (
            "tox.ini",
            "[testenv]\ncommands =\n  python tools/api.py\n  python build.py\n",
        ),
        (".pre-commit-config.yaml", "  entry: ./ci/names\n"),
        (
            "composer.json",
            "{\"scripts\":{\"test\":\"@php check_all.php\"}}",
        ),
        (
            "CMakeLists.txt",
            "add_test(NAME a COMMAND ${CMAKE_SOURCE_DIR}/qa/run.sh)\nadd_custom_command(OUTPUT a.c COMMAND tools/generate.py)\n",
        ),
        ("tools/api.py", ""),
        ("tools/generate.py", ""),
        ("build.py", ""),
        ("ci/names", "#!/bin/sh\n"),
        ("check_all.php", ""),
        ("qa/run.sh", ""),
    ];
    for (check, path, expected) in [
        ("tox -e py", "tools/api.py", true),
        ("tox -e py", "build.py", false),
        ("tox -e py", "ci/names", false),
        ("pre-commit run -a", "ci/names", true),
        ("composer test", "check_all.php", true),
        ("ctest", "qa/run.sh", true),
        ("ctest", "tools/generate.py", false),
        ("pytest", "tools/api.py", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn texts_with_examples_and_steps_of_tests_are_tests() {
    let files = [
        ("docs/use.md", ""),
        ("docs/use.rst", ""),
        ("features/steps/add.py", ""),
        ("pytest.ini", ""),
    ];
    let with_settings = [
        ("docs/use.md", ""),
        ("docs/use.rst", ""),
        (
            "pytest.ini",
            "[pytest]\naddopts = -q --doctest-glob='*.md'\n",
        ),
    ];
    for (files, check, path, expected) in [
        (
            &files[..],
            "pytest --doctest-glob='*.md'",
            "docs/use.md",
            true,
        ),
        (
            &files[..],
            "pytest --doctest-glob '*.md'",
            "docs/use.rst",
            false,
        ),
        (&with_settings[..], "pytest", "docs/use.md", true),
        (&with_settings[..], "pytest", "docs/use.rst", false),
        (&files[..], "pytest", "docs/use.md", false),
        (&files[..], "behave", "features/steps/add.py", true),
        (&files[..], "pytest", "features/steps/add.py", false),
    ] {
        let tree = Tree(files.iter().copied().collect());
        let role = Definitions::of([check], &tree).of_old(path);
        assert_eq!(role == Some(Role::Test), expected, "{check}: {path}");
    }
}

#[test]
fn a_new_program_that_a_check_finds_before_the_usual_one_decides() {
    let files = [
        (
            "tests/run.sh",
            "PATH=$PWD/bin:$PATH\ngreet | grep -qx hello\n",
        ),
        ("tests/plain.sh", "greet\n"),
    ];
    for (check, path, expected) in [
        ("sh tests/run.sh", "bin/grep", true),
        ("PATH=bin:$PATH greet", "bin/diff", true),
        ("export PATH=bin:$PATH; greet", "bin/diff", true),
        ("sh tests/run.sh", "bin/greet", false),
        ("sh tests/plain.sh", "bin/grep", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

/// What a check runs after a `case` in a subshell is still in the directory of that subshell.
#[test]
fn the_patterns_of_a_case_end_no_subshell() {
    let files = [("tools/run.py", "x"), ("run.py", "x")];
    for check in [
        "(cd tools; case $X in a) ;; esac; python run.py)",
        "(cd tools; for x in *; do case $x in a) ;; esac; done; python run.py)",
        "(cd tools; if true; then case $X in a) ;; b) ;; esac; fi; python run.py)",
        "(cd tools; { case \"$(x)\" in a) ;; esac; }; python run.py)",
    ] {
        assert!(decides(&files, check, "tools/run.py"), "{check}");
        assert!(!decides(&files, check, "run.py"), "{check}");
        let after = format!("{check}; python run.py");
        assert!(decides(&files, &after, "run.py"), "{after}");
    }
}

/// Where a change of directory leads to is not always known: the directory before is one of those that count then.
#[test]
fn a_change_of_directory_may_lead_back() {
    let files = [
        (
            "Makefile",
            "test:\n\tcd web && sh ci/check.sh\n\tsh ci/check.sh\nweb:\n\tcd ci && ls\n\tcd web && sh ci/check.sh\n",
        ),
        ("ci/check.sh", "x"),
        ("web/ci/check.sh", "x"),
        ("web/all.sh", "cd \"$(dirname \"$0\")\"\nsh ci/check.sh\n"),
        (
            "web/all-tests.sh",
            "here=$(dirname \"$0\")\ncd \"$here\" && sh ci/check.sh\n",
        ),
    ];
    for check in [
        "cd web && sh ci/check.sh; cd - && sh ci/check.sh",
        "pushd web; sh ci/check.sh; popd; sh ci/check.sh",
        "ROOT=$(pwd); cd web && sh ci/check.sh; cd \"$ROOT\"; sh ci/check.sh",
        "cd web && sh ci/check.sh; cd \"$(git rev-parse --show-toplevel)\"; sh ci/check.sh",
        "test -n \"$X\" && cd web; sh ci/check.sh",
        "if test -n \"$X\"; then\n  cd web\nfi\nsh ci/check.sh",
        "enter() {\n  cd web\n}\nif test -n \"$X\"; then enter; fi\nsh ci/check.sh",
        "make test",
        "sh web/all.sh",
        "sh web/all-tests.sh",
    ] {
        for path in ["ci/check.sh", "web/ci/check.sh"] {
            assert!(decides(&files, check, path), "{check}: {path}");
        }
    }
    for check in [
        "cd web; sh ci/check.sh; sh ci/check.sh",
        "(cd web && sh ci/check.sh)",
        "set -e\nX=1\ncd web\nsh ci/check.sh\n",
        "make web",
    ] {
        assert!(!decides(&files, check, "ci/check.sh"), "{check}");
    }
    let check = "x=`cd web && ls`; sh ci/check.sh";
    assert!(decides(&files, check, "ci/check.sh"));
}

#[test]
fn a_program_without_a_row_is_configured_by_files_of_its_name_and_by_options() {
    let files = [
        (
            "package.json",
            "{\"scripts\":{\"lint\":\"knip --strict\",\"data\":\"node d.js\"}}",
        ),
        ("Makefile", "lint:\n\tcd web && knip\n"),
        ("knip.json", ""),
        (".kniprc.yml", ""),
        (".knipignore", ""),
        ("knip.config.ts", ""),
        (".config/knip.toml", ""),
        ("knip.ts", ""),
        ("knip.lock.json", ""),
        ("knipper.json", ""),
        ("web/knip.json", ""),
        ("hugo.toml", ""),
        ("rebar.config", ""),
        ("astro.config.mjs", ""),
        ("greet.json", ""),
        ("greet", "#!/bin/sh\n"),
        ("data/rules.yml", ""),
        ("data/a.json", ""),
        ("vulture.toml", ""),
        ("data.json", ""),
        ("echo.json", ""),
        ("serve.toml", ""),
        ("src/serve/main.py", ""),
        ("my-tool.toml", ""),
        ("my_tool/__main__.py", ""),
        ("daemon.yaml", ""),
        ("cmd/daemon/main.go", ""),
    ];
    for (check, path, expected) in [
        ("knip", "knip.json", true),
        ("CI=1 timeout 60 knip --strict", "knip.json", true),
        ("if ! knip; then exit 1; fi", "knip.json", true),
        ("npx --yes knip", "knip.json", true),
        ("pnpm exec knip", "knip.json", true),
        ("npm run lint", "knip.json", true),
        ("knip", ".kniprc.yml", true),
        ("knip", ".knipignore", true),
        ("knip", "knip.config.ts", true),
        ("knip", ".config/knip.toml", true),
        ("knip", "knip.yml", true),
        ("knip", ".kniprc", true),
        ("knip", ".knip", true),
        ("knip", "knip", false),
        ("knip", "knip.ts", false),
        ("knip", "knip.md", false),
        ("knip", "knip.lock.json", false),
        ("knip", "knipper.json", false),
        ("knip", "web/knip.json", false),
        ("cd web && knip", "web/knip.json", true),
        ("cd web && knip", "knip.json", true),
        ("make lint", "web/knip.json", true),
        ("echo knip", "knip.json", false),
        ("greet() { knip; }; greet", "greet.json", false),
        ("greet() { knip; }; greet", "knip.json", true),
        ("greet && knip", "greet.json", true),
        ("cat knip", "knip.json", false),
        ("rebar3 eunit", "rebar.config", true),
        ("python3 -m vulture .", "vulture.toml", true),
        // What makes the work is configured by a part of the work.
        ("hugo --minify", "hugo.toml", false),
        ("npx astro build", "astro.config.mjs", false),
        ("npx astro check", "astro.config.mjs", true),
        ("./greet", "greet.json", false),
        ("PATH=$PWD/out:$PATH daemon --check", "daemon.yaml", false),
        ("poetry run serve --check", "serve.toml", false),
        ("python3 -m serve", "serve.toml", false),
        ("my-tool lint", "my-tool.toml", false),
        // The names of scripts and the words of a shell are no programs.
        ("npm run data", "data.json", false),
        ("yarn data", "data.json", false),
        ("pnpm run data", "data.json", false),
        ("pnpm knip", "knip.json", true),
        ("npm exec -- knip", "knip.json", true),
        ("for x in a b; do echo $x; done", "echo.json", false),
        (
            "semgrep --config data/rules.yml src",
            "data/rules.yml",
            true,
        ),
        ("semgrep --rules=data/rules.yml src", "data/rules.yml", true),
        ("checker --input data/a.json", "data/a.json", false),
        ("checker --input=data/a.json", "data/a.json", false),
        (
            "checker --schema data/rules.yml data/a.json",
            "data/rules.yml",
            true,
        ),
        (
            "checker --schema data/rules.yml data/a.json",
            "data/a.json",
            false,
        ),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}
