use super::{Definitions, Entry, Part, Role, Start, fits, names_path};
use crate::checks::tests_changed::is_test;
use std::collections::{BTreeMap, BTreeSet};

mod found;
mod preferred;

/// Files by path. Content that starts with `->` is a link; content that starts with `#!` is executable.
struct Tree(BTreeMap<&'static str, &'static str>);

impl Start for Tree {
    fn entry(&self, path: &str) -> Option<Entry> {
        if let Some(text) = self.0.get(path) {
            return Some(match text.strip_prefix("->") {
                Some(target) => Entry::Link(target.to_owned()),
                None => Entry::File {
                    executable: text.starts_with("#!"),
                },
            });
        }
        let dir = format!("{path}/");
        let is_dir = self.0.keys().any(|path| path.starts_with(&dir));
        is_dir.then_some(Entry::Directory)
    }

    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).map(|text| (*text).to_owned())
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        let below = self.0.keys().filter_map(|path| match dir {
            "" => Some(*path),
            _ => path.strip_prefix(dir)?.strip_prefix('/'),
        });
        let names = below.filter_map(|path| path.split('/').next());
        let names: BTreeSet<String> = names.map(str::to_owned).collect();
        names.into_iter().collect()
    }

    fn has_tests_below(&self, dir: &str) -> bool {
        let mut tests = self.0.keys().filter(|path| is_test(path));
        let dir = format!("{dir}/");
        tests.any(|path| dir == "/" || path.starts_with(&dir))
    }
}

fn decides(files: &[(&'static str, &'static str)], check: &str, path: &str) -> bool {
    let tree = Tree(files.iter().copied().collect());
    let definitions = Definitions::of([check], &tree);
    let role = match tree.entry(path) {
        Some(_) => definitions.of_old(path),
        None => definitions.of_new(path, &tree),
    };
    matches!(role, Some(Role::Definition(_)))
}

#[test]
fn programs_and_scripts_of_the_work_tree_that_a_command_names_decide() {
    let files = [
        (
            "check.sh",
            "#!/bin/sh\n. ./lib/common.sh\n. ./slug.sh\npython3 -m app\n./run\npython3 tools/run.py src/a.py\n",
        ),
        ("lib/common.sh", "x=1"),
        (
            "tools/run.py",
            "import subprocess\nsubprocess.run(['bash', 'tools/deep.sh'])\n",
        ),
        ("tools/deep.sh", "echo"),
        ("src/a.py", "x"),
        ("slug.sh", "x"),
        ("lib/slug.sh", "x"),
        ("tools/slug.sh", "x"),
        ("app.py", "x"),
        ("run", "#!/bin/sh\n"),
        ("bin/check", "#!/usr/bin/env node\n"),
        ("plain", "x"),
    ];
    for (check, path, expected) in [
        ("./check.sh", "check.sh", true),
        ("sh check.sh", "check.sh", true),
        ("bash -e ./check.sh --fast", "check.sh", true),
        ("CI=1 timeout 5m ./check.sh", "check.sh", true),
        ("sh -c 'cd . && ./check.sh'", "check.sh", true),
        ("true && (./check.sh || exit 1)", "check.sh", true),
        ("if true; then ./check.sh; fi", "check.sh", true),
        (". ./check.sh", "check.sh", true),
        ("\"$PWD/check.sh\"", "check.sh", true),
        ("cd tools && python run.py", "tools/run.py", true),
        // A subshell and a substitution do not change the directory of what follows.
        ("(cd tools && true); sh slug.sh", "slug.sh", true),
        (
            "(cd tools); (cd lib && true) && sh slug.sh",
            "slug.sh",
            true,
        ),
        ("x=\"$(cd tools && ls)\"; sh slug.sh", "slug.sh", true),
        ("(cd tools && python run.py)", "tools/run.py", true),
        (
            "(cd tools; case \"$(x)\" in a) ;; (b|c) ;; esac; python run.py); sh slug.sh",
            "tools/run.py",
            true,
        ),
        (
            "(cd tools; case $X in a) ;; (b|c) ;; esac; python run.py); sh slug.sh",
            "slug.sh",
            true,
        ),
        ("f() { cd tools; python run.py; }; f", "tools/run.py", true),
        (
            "for d in lib tools; do cd $d && python run.py && cd ..; done; sh slug.sh",
            "tools/run.py",
            true,
        ),
        (
            "for d in lib tools; do cd $d && ls && cd ..; done; sh slug.sh",
            "slug.sh",
            true,
        ),
        (
            "if x; then cd tools; fi; python run.py",
            "tools/run.py",
            true,
        ),
        ("if x; then cd tools; fi; sh slug.sh", "slug.sh", true),
        ("./check.sh", "lib/common.sh", true),
        ("./check.sh", "tools/run.py", true),
        ("./check.sh", "tools/deep.sh", true),
        ("./check.sh", "src/a.py", false),
        // A script that another script runs is the work itself, unless its name says that it checks.
        ("./check.sh", "slug.sh", false),
        ("./check.sh", "app.py", false),
        ("./check.sh", "run", false),
        ("sh slug.sh", "slug.sh", true),
        // A file that is only parsed does not run.
        ("sh -n slug.sh", "slug.sh", false),
        ("bash -en ./slug.sh", "slug.sh", false),
        ("python3 -m py_compile app.py", "app.py", false),
        ("python3 -m app", "app.py", true),
        ("bin/check", "bin/check", true),
        ("grep -q x plain", "plain", false),
        ("true", "check.sh", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn links_on_the_way_to_a_program_decide_as_well() {
    let files = [
        ("check", "->ci/current/check.sh"),
        ("ci/current", "->v2"),
        ("ci/v2/check.sh", "#!/bin/sh\ntrue\n"),
        ("ci/v1/check.sh", "#!/bin/sh\ntrue\n"),
    ];
    for (path, expected) in [
        ("check", true),
        ("ci/current", true),
        ("ci/v2/check.sh", true),
        ("ci/v1/check.sh", false),
    ] {
        assert_eq!(decides(&files, "./check", path), expected, "{path}");
    }
}

#[test]
fn configuration_decides_where_its_program_is_run() {
    let files = [
        (
            "package.json",
            r#"{"scripts":{"test":"npm run unit","unit":"node scripts/unit.js","start":"node server.js"}}"#,
        ),
        ("scripts/unit.js", "x"),
        ("server.js", "x"),
        ("jest.config.js", "x"),
        (
            "Makefile",
            "PY = python3\ntest: unit\n\t@$(PY) tools/all.py\nunit:\n\t./unit.sh\nrun:\n\t./app.sh\n",
        ),
        ("tools/all.py", "x"),
        ("unit.sh", "#!/bin/sh"),
        ("app.sh", "#!/bin/sh"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = verify\n"),
        ("verify/one.py", "x"),
        ("Cargo.toml", "[package]"),
        ("crates/a/Cargo.toml", "[package]"),
        ("tests/a.py", "x"),
        ("go.mod", "module a"),
        ("pom.xml", "x"),
        ("web/.npmrc", "x"),
    ];
    for (check, path, expected) in [
        ("npm test", "package.json", true),
        ("npm test", "jest.config.js", true),
        ("npm test", "scripts/unit.js", true),
        ("npm test", "server.js", false),
        ("yarn unit", "scripts/unit.js", true),
        ("cargo test", "package.json", false),
        ("cargo test", "Cargo.toml", true),
        ("cargo test", "crates/a/Cargo.toml", true),
        ("cargo test", ".cargo/config.toml", true),
        ("npm test", ".cargo/config.toml", false),
        ("make test", "Makefile", true),
        ("make test", "unit.sh", true),
        ("make test", "tools/all.py", true),
        ("make test", "app.sh", false),
        ("make test", "setup.cfg", true),
        ("make test", "GNUmakefile", true),
        ("python -m pytest -q", "setup.cfg", true),
        ("python -m pytest -q", "conftest.py", true),
        ("python -m pytest -q", "pytest.py", true),
        ("go test ./...", "go.mod", true),
        ("go test ./...", "pom.xml", false),
        ("./mvnw -q test", "pom.xml", true),
        ("mvn -q test", "pom.xml", true),
        ("eslint -c web/.npmrc .", "web/.npmrc", true),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
    let tree = Tree(files.into_iter().collect());
    let pytest = Definitions::of(["pytest"], &tree);
    assert_eq!(pytest.of_old("verify/one.py"), Some(Role::Test));
    let node = Definitions::of(["node --test verify"], &tree);
    assert_eq!(node.of_old("verify/one.py"), Some(Role::Test));
    assert_eq!(
        Definitions::of(["eslint verify"], &tree).of_old("verify/one.py"),
        None
    );
}

#[test]
fn a_new_definition_is_one_only_where_something_was_decided_before() {
    let empty = [("README.md", "x")];
    for (check, path) in [
        ("make test", "Makefile"),
        ("pytest", "conftest.py"),
        ("npm test", "package.json"),
        ("npm test", ".npmrc"),
        ("cargo test", ".cargo/config.toml"),
        ("./check.sh", "check.sh"),
    ] {
        assert!(!decides(&empty, check, path), "{check}: {path}");
    }
}

#[test]
fn a_source_file_of_rust_decides_by_its_tests() {
    let tree = Tree(BTreeMap::from([("src/lib.rs", "x"), ("tests/a.rs", "x")]));
    let cargo = Definitions::of(["cargo test"], &tree);
    assert_eq!(
        cargo.of_old("src/lib.rs"),
        Some(Role::Definition(Part::RustTests))
    );
    assert_eq!(cargo.of_old("tests/a.rs"), Some(Role::Test));
    assert_eq!(cargo.of_new("src/new.rs", &tree), None);
}

#[test]
fn makefiles_that_name_themselves_come_to_an_end() {
    let files = [
        (
            "Makefile",
            "A = $(B)$(B)\nB = $(A)$(A)\ntest: test\n\tmake test $(A)\n\tsh ./x.sh\n",
        ),
        ("x.sh", "sh ./x.sh; make test"),
    ];
    assert!(decides(&files, "make test", "x.sh"));
}

#[test]
fn names_fit_patterns() {
    for (pattern, text, expected) in [
        ("jest.config.*", "jest.config.ts", true),
        ("*.mk", "rules.mk", true),
        ("*.mk", "mk", false),
        ("python*", "python3.12", true),
        ("tsconfig*.json", "tsconfig.test.json", true),
        ("a", "ab", false),
        ("*", "", true),
    ] {
        assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
    }
    for (name, path, expected) in [
        ("Makefile", "a/b/Makefile", true),
        (".cargo/config.toml", "x/.cargo/config.toml", true),
        (".cargo/config.toml", "config.toml", false),
        ("xtask/", "xtask/src/main.rs", true),
        (".mvn/", "a/.mvn/maven.config", true),
        ("xtask/", "xtasks/a", false),
    ] {
        assert_eq!(names_path(name, path), expected, "{name} {path}");
    }
}

#[test]
fn what_a_script_runs_is_followed_once_more_where_a_command_names_it_too() {
    let files = [
        ("test.sh", "#!/bin/sh\nnpm test\n"),
        ("package.json", r#"{"scripts":{"test":"node ./run.js"}}"#),
        ("run.js", "x"),
    ];
    for check in ["npm test", "sh test.sh; npm test", "npm test; sh test.sh"] {
        assert!(decides(&files, check, "run.js"), "{check}");
    }
}

#[test]
fn modules_beside_a_script_of_python_run_in_place_of_known_ones() {
    let files = [
        ("tests/run.py", "import sys\nsys.path.insert(0, '.')\n"),
        ("ci/lint.py", "import json\n"),
        ("tests/test_a.py", ""),
    ];
    for (check, path, expected) in [
        ("python3 tests/run.py", "tests/unittest.py", true),
        ("python3 tests/run.py", "unittest/__init__.py", true),
        ("python3 ci/lint.py", "ci/json.py", true),
        ("python3 ci/lint.py", "json.py", false),
        ("python3 ci/lint.py", "ci/orders.py", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn data_by_which_a_check_judges_decides() {
    let files = [
        (
            "check.js",
            "const limits = require('./thresholds.json');\nread('check.json'); read('data.json');\n",
        ),
        ("thresholds.json", "{}"),
        ("check.json", "{}"),
        ("data.json", "{}"),
    ];
    for (path, expected) in [
        ("thresholds.json", true),
        ("check.json", true),
        ("data.json", false),
    ] {
        assert_eq!(decides(&files, "node check.js", path), expected, "{path}");
    }
}

#[test]
fn headers_in_front_of_those_of_the_system_decide() {
    let files = [("Makefile", "test:\n\tcc -I. t.c\n"), ("tests/t.c", "")];
    for (path, expected) in [
        ("assert.h", true),
        ("inc/gtest/gtest.h", true),
        ("two.h", false),
    ] {
        assert_eq!(decides(&files, "make test", path), expected, "{path}");
    }
}

#[test]
fn a_link_out_of_the_work_tree_is_a_program_all_the_same() {
    let tree = Tree([(".venv/bin/python", "->/usr/bin/python3")].into());
    let definitions = Definitions::of([".venv/bin/python -m pytest"], &tree);
    assert!(
        definitions
            .programs()
            .any(|path| path == ".venv/bin/python")
    );
}

#[test]
fn what_stands_in_the_place_of_a_target_decides_unless_it_is_phony() {
    let files = [
        (
            "Makefile",
            ".PHONY: lint \\\n  all\nall: test lint lib gen.txt\nlib:\n\ttrue\ngen.txt:\n\ttrue\ntest: unit\n\tsh t.sh\nunit:\n\ttrue\nlint:\n\ttrue\n%.o: %.c\n\tcc $<\n",
        ),
        ("t.sh", ""),
        ("lib/x", ""),
    ];
    for (path, expected) in [
        ("test", true),
        ("unit/a", true),
        ("lint", false),
        ("all", false),
        ("tested", false),
        ("gen.txt", false),
        ("lib/a", false),
    ] {
        assert_eq!(decides(&files, "make all", path), expected, "{path}");
    }
    let text = "DIRS = app\n.PHONY: $(DIRS)\ntest: app\n\tsh t.sh\napp:\n\tmake -C app\n";
    let files = [("Makefile", text), ("t.sh", "")];
    assert!(!decides(&files, "make test", "app"), "phony by a variable");
}

#[test]
fn a_new_module_among_tests_that_has_the_name_of_another_one_decides() {
    let files = [
        ("app.py", ""),
        ("src/pkg/a.py", ""),
        ("tests/test_a.py", ""),
    ];
    for (path, expected) in [
        ("tests/app.py", true),
        ("tests/pkg.py", true),
        ("tests/json.py", true),
        ("tests/helper.py", false),
        ("tests/__init__.py", false),
        ("tests/app.txt", false),
    ] {
        assert_eq!(decides(&files, "pytest", path), expected, "{path}");
    }
}

#[test]
fn settings_that_let_tests_pass_decide_if_they_are_new() {
    for (check, path) in [
        ("pytest", "x.egg-info/entry_points.txt"),
        ("cargo test", ".config/insta.yaml"),
        ("deno test", "deno.json"),
        ("pnpm test", "pnpm-workspace.yaml"),
    ] {
        let files = [
            ("package.json", "{}"),
            ("Cargo.toml", ""),
            ("tests/a.py", ""),
        ];
        assert!(decides(&files, check, path), "{path}");
    }
    let files = [
        ("go.mod", ""),
        ("p/a_test.go", ""),
        ("docs/a.go", ""),
        (".yarn/releases/yarn.cjs", ""),
    ];
    for (check, path, expected) in [
        ("go test ./...", "p/go.mod", true),
        ("go test ./...", "q/go.mod", false),
        ("go test ./...", "docs/go.mod", false),
        ("yarn test", ".yarn/releases/yarn.cjs", true),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{path}");
    }
}

/// What compilers and linters get as arguments is the work, also after an option without a value.
#[test]
fn only_the_options_that_configure_name_definitions() {
    let files = [
        (
            "Makefile",
            "test:\n\tgcc -Wall a.c tests/t.c -o t\n\tcc -c a.c\n\tgcc -include conf.h a.c\n",
        ),
        ("a.c", ""),
        ("conf.h", ""),
        ("a.py", ""),
        ("a.js", ""),
        ("rules.js", ""),
        ("rules.ini", ""),
        ("src/common/words.json", ""),
        ("expected.txt", ""),
    ];
    for (check, path, expected) in [
        ("make test", "a.c", false),
        ("make test", "conf.h", true),
        ("mypy --strict a.py", "a.py", false),
        ("python3 -m mypy --strict a.py", "a.py", false),
        ("mypy --config-file rules.ini a.py", "rules.ini", true),
        ("uv run --frozen ruff check --quiet a.py", "a.py", false),
        ("npx --yes prettier --check a.js", "a.js", false),
        ("npx eslint --max-warnings=0 a.js", "a.js", false),
        ("npx eslint -c rules.js a.js", "rules.js", true),
        ("npx eslint --config=rules.js a.js", "rules.js", true),
        ("eslint --no-config-lookup a.js", "a.js", false),
        ("tsc --noEmit --strict a.js", "a.js", false),
        ("tsc -p rules.ini", "rules.ini", true),
        ("go build -v a.go", "a.go", false),
        ("npx mocha -r rules.js", "rules.js", true),
        ("node -r ./rules.js --test", "rules.js", true),
        ("make -f rules.ini", "rules.ini", true),
        ("cppcheck --library=rules.ini a.c", "rules.ini", true),
        ("cppcheck --library rules.ini a.c", "rules.ini", true),
        ("isort --sp rules.ini a.py", "rules.ini", true),
        ("rubocop -r ./rules.js", "rules.js", true),
        ("tsc -b rules.ini", "rules.ini", true),
        ("gcc @rules.ini a.c", "rules.ini", true),
        ("yamllint --strict a.js", "a.js", false),
        ("cat a.js | node --test", "a.js", false),
        (
            "cat src/common/words.json && node --test",
            "src/common/words.json",
            false,
        ),
        ("diff out expected.txt", "expected.txt", true),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check} {path}");
    }
}

#[test]
fn a_command_that_installs_finds_or_judges_runs_no_test() {
    let tree = Tree([("Makefile", "lint:\n\truff check\ntest:\n\tpytest\n")].into());
    for (check, expected) in [
        ("pytest", true),
        ("uv run --frozen pytest -q", true),
        ("npx --yes jest", true),
        ("c8 mocha", true),
        ("python3 -m pytest", true),
        ("pip install -q pytest && pytest", true),
        ("make test", true),
        ("node --test", true),
        ("make lint", false),
        ("python3 -m pip install pytest", false),
        ("uv pip install pytest && ruff check", false),
        ("npm i mocha", false),
        ("npm ci --ignore-scripts mocha", false),
        ("yarn ci --runner jest", true),
        ("command -v pytest", false),
        ("echo pytest", false),
        ("eslint --env jest src", false),
        ("CI=1 mypy --exclude pytest src", false),
    ] {
        let definitions = Definitions::of([check], &tree);
        assert_eq!(definitions.runs_tests(), expected, "{check}");
    }
}

/// Files under names that a check or its tools read, and that make it pass without any work.
#[test]
fn what_tools_read_instead_of_or_beside_something_decides() {
    let files = [
        (
            "check.sh",
            "[ ! -f ci.local ] || . ./ci.local\n[ ! -f .env ] || . ./.env\nexport $(cat .env.test)\nsh qa/$(cat suite.txt)\npip install -r requirements-test.txt\n",
        ),
        (
            "Makefile",
            "-include $(wildcard conf/*.inc)\ntest:\n\tcc t.c\n",
        ),
        (".env.test", ""),
        ("suite.txt", ""),
        ("notes.txt", ""),
        ("requirements-test.txt", ""),
        (
            "tsconfig.json",
            "{\"extends\": \"./config/base.json\", \"include\": [\"pages\"]}",
        ),
        (".eslintrc.json", "{\"extends\": \"./config/lint.js\"}"),
        ("config/base.json", "{}"),
        ("config/lint.js", ""),
        ("pages/a.ts", ""),
        ("app.py", ""),
        ("lib/add.rb", ""),
        ("Rakefile", ""),
        ("compose.yaml", ""),
        ("tasks.py", ""),
        ("third_party/unity/unity.h", ""),
        ("tests/a.sh", ""),
    ];
    for (check, path, expected) in [
        ("sh check.sh", "ci.local", true),
        ("sh check.sh", "other.local", false),
        ("sh check.sh", ".env", true),
        ("sh check.sh", ".env.test", true),
        ("make test", "conf/b.inc", true),
        ("make test", "other/b.inc", false),
        ("sh check.sh", "suite.txt", true),
        ("sh check.sh notes.txt", "notes.txt", false),
        ("sh check.sh", "requirements-test.txt", false),
        ("node --env-file-if-exists=ci.env --test", "ci.env", true),
        ("npx tsc", "config/base.json", true),
        ("npx tsc", "pages/a.ts", false),
        ("npx eslint .", "config/lint.js", true),
        ("npx tsc", "config/lint.js", true),
        ("npm test", "tests/package.json", true),
        ("npm test", "tests/new/package.json", false),
        ("npm test", "lib/package.json", true),
        ("npm test", "new/package.json", false),
        ("mypy .", "app.pyi", true),
        ("mypy .", "other.pyi", false),
        ("rake test", "rakelib/a.rake", true),
        ("ruby -Ilib tests/a.rb", "lib/minitest/x_plugin.rb", true),
        ("ruby -Ilib tests/a.rb", "lib/minitest/extra.rb", false),
        ("prove -l", "lib/Test/More.pm", true),
        ("mvn test", "src/test/java/org/junit/Assert.java", true),
        ("make test", "third_party/unity/unity.h", true),
        ("docker compose run app", "compose.yaml", true),
        ("docker compose run app", "compose.override.yaml", true),
        ("docker compose run app", "compose.other.yaml", false),
        ("docker compose run app", "tasks.py", false),
        ("invoke test", "tasks.py", true),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check} {path}");
    }
}
