//! Files that a program reads in the place of others or beside them, so that a new one decides.

use super::{Tree, decides};
use crate::checks::definitions::{Definitions, Role};

#[test]
fn a_new_file_that_a_program_prefers_to_the_one_before_decides() {
    for (files, check, path, expected) in [
        (
            &["Taskfile.dist.yml"][..],
            "task test",
            "Taskfile.yml",
            true,
        ),
        (&["Taskfile.yml"], "task test", "web/taskfile.yaml", true),
        (&["README.md"], "task test", "Taskfile.yml", false),
        (
            &["justfile", "web/a.js"],
            "cd web && just test",
            "web/justfile",
            true,
        ),
        (&["Rakefile"], "rake test", "rakefile", true),
        (&["Rakefile"], "rake test", "web/Rakefile.rb", true),
        (&["README.md"], "rake test", "Rakefile", false),
        (&["gulpfile.mjs"], "gulp test", "gulpfile.js", true),
        (&["Gruntfile.coffee"], "grunt test", "Gruntfile.js", true),
        (&["build.gradle.kts"], "gradle test", "build.gradle", true),
        (&["build.gradle"], "./gradlew test", "settings.gradle", true),
        (
            &["build.gradle"],
            "gradle test",
            "buildSrc/src/main/java/A.java",
            true,
        ),
        (&["pom.xml"], "mvn test", "build.gradle", false),
        (&["BUILD"], "bazel test //...", "BUILD.bazel", true),
        (&["BUILD"], "bazel test //...", "lib/BUILD.bazel", true),
        (&["WORKSPACE"], "bazel test //...", "tools/bazel", true),
        (&["build.sbt"], "sbt test", "more.sbt", true),
        (&["build.sbt"], "sbt test", "project/Skip.scala", true),
        (&["build.sc"], "mill test", "build.mill", true),
        (&["project.clj"], "lein test", "profiles.clj", true),
        (
            &["packages/a/package.json"],
            "npx nx test a",
            "packages/a/project.json",
            true,
        ),
        (
            &["packages/a/package.json"],
            "npx nx test a",
            "packages/b/project.json",
            false,
        ),
        (
            &["codeception.dist.yml"],
            "codecept run",
            "codeception.yml",
            true,
        ),
        (
            &["Package.swift"],
            "swift test",
            "Package@swift-5.9.swift",
            true,
        ),
        (&["magefile.go"], "mage test", "magefiles/a.go", true),
        (&["tasks.py"], "inv test", "tasks/__init__.py", true),
        (&["app.py"], "inv test", "tasks/__init__.py", false),
    ] {
        let files: Vec<_> = files.iter().map(|path| (*path, "")).collect();
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn what_a_justfile_imports_decides_also_if_it_does_not_exist_yet() {
    let files = [
        (
            "justfile",
            "import 'ci/rules'\nimport? 'local.just'\ntest: lint\n",
        ),
        ("ci/rules", "lint:\n    sh qa/lint\n"),
        ("qa/lint", ""),
    ];
    for (path, expected) in [
        ("ci/rules", true),
        ("qa/lint", true),
        ("local.just", true),
        ("other.just", false),
    ] {
        assert_eq!(decides(&files, "just test", path), expected, "{path}");
    }
}

#[test]
fn lists_of_exceptions_decide_where_their_program_runs() {
    for (files, check, path, expected) in [
        (&["src/a.py"][..], "isort --check .", "src/.isort.cfg", true),
        (&["src/a.js"], "npx jshint .", "src/.jshintrc", true),
        (&["src/a.js"], "npx jshint .", "src/.eslintrc", false),
        (&["src/a.txt"], "knip", "src/knip.json", false),
        (
            &[".haml-lint_todo.yml"],
            "haml-lint",
            ".haml-lint_todo.yml",
            true,
        ),
        (&[], "ansible-lint", ".ansible-lint-ignore", true),
        (&["a.js"], "flow check", ".flowconfig", true),
        (&[], "shellspec", ".shellspec-local", true),
        (
            &["lefthook.yml"],
            "lefthook run test",
            "lefthook-local.yml",
            true,
        ),
        (
            &["psalm-baseline.xml"],
            "vendor/bin/psalm",
            "psalm-baseline.xml",
            true,
        ),
        (
            &[".size-limit.js"],
            "npx size-limit",
            ".size-limit.js",
            true,
        ),
        (
            &[".standard_todo.yml"],
            "standardrb",
            ".standard_todo.yml",
            true,
        ),
        (&["rector.php"], "rector --dry-run", "rector.php", true),
        (&[], "cargo deny check", "deny.toml", true),
        (&[], "cargo +nightly audit", ".cargo/audit.toml", true),
        (
            &[],
            "cargo tarpaulin --fail-under 80",
            "tarpaulin.toml",
            true,
        ),
        (&[], "cargo test", "deny.toml", false),
        (&["knip.json"], "cross-env CI=1 knip", "knip.json", true),
        (
            &["conf/v.supp"],
            "valgrind --suppressions=conf/v.supp ./a",
            "conf/v.supp",
            true,
        ),
        (
            &["tsan.supp"],
            "TSAN_OPTIONS=suppressions=tsan.supp make test",
            "tsan.supp",
            true,
        ),
        (
            &["src/a.go"],
            "staticcheck ./...",
            "src/staticcheck.conf",
            true,
        ),
        (&["a.sh"], "shfmt -d .", ".editorconfig", true),
        (&["a.sh"], "shellcheck a.sh", ".editorconfig", false),
        (
            &["config/detekt/detekt.yml"],
            "gradle detekt",
            "config/detekt/detekt.yml",
            true,
        ),
        (
            &["detekt-baseline.xml"],
            "gradle detekt",
            "detekt-baseline.xml",
            true,
        ),
        (&["app/a.kt"], "./gradlew lint", "app/lint.xml", true),
        (
            &["App.Tests/a.cs"],
            "dotnet test",
            "App.Tests/App.Tests.csproj.user",
            true,
        ),
        (
            &["App.Tests/a.cs"],
            "dotnet test",
            "Directory.Solution.targets",
            true,
        ),
        (&["AppTests.fsproj"], "dotnet test", "AppTests.fsproj", true),
        (
            &["a.cs"],
            "dotnet format --verify-no-changes",
            ".editorconfig",
            true,
        ),
        (
            &["eslint-local-rules.js"],
            "npx eslint .",
            "eslint-local-rules.js",
            true,
        ),
    ] {
        let files: Vec<_> = files.iter().map(|path| (*path, "")).collect();
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn what_the_configuration_of_a_package_names_decides() {
    let files = [
        ("package.json", "{\"workspaces\":[\"packages/*\"]}"),
        ("web/package.json", "{}"),
        (
            "web/jest.config.js",
            "module.exports = { setupFiles: ['./conf/s.js'], roots: ['.', './verify'] }",
        ),
        ("web/conf/s.js", ""),
        ("web/verify/a.js", ""),
        ("web/app.js", ""),
        ("packages/a/package.json", "{}"),
        (
            "packages/a/vitest.config.ts",
            "export default { test: { setupFiles: ['./setup/s.ts', './src/setupTests.ts', './src/polyfills.ts'] } }",
        ),
        ("packages/a/setup/s.ts", ""),
        ("packages/a/src/setupTests.ts", ""),
        ("packages/a/src/polyfills.ts", ""),
        ("api/pytest.ini", "[pytest]\ntestpaths = verify\n"),
        ("api/verify/run.py", ""),
        ("api/conftest.py", "pytest_plugins = ['pkg.fix']\n"),
        ("api/src/pkg/fix.py", ""),
        ("api/src/pkg/app.py", ""),
        ("php/phpunit.xml", "<phpunit bootstrap=\"conf/boot.php\"/>"),
        ("php/conf/boot.php", ""),
        ("php/conf/app.php", ""),
        (".rspec", "--format doc\n--require ./conf/start\n"),
        ("conf/start.rb", ""),
    ];
    let tree = Tree(files.into_iter().collect());
    for (check, path, expected) in [
        ("cd web && npx jest", "web/conf/s.js", true),
        ("cd web && npx jest", "web/verify/a.js", true),
        ("cd web && npx jest", "web/app.js", false),
        ("npm test", "web/conf/s.js", false),
        ("npx vitest run", "packages/a/setup/s.ts", true),
        ("npx vitest run", "packages/a/src/setupTests.ts", true),
        ("npx vitest run", "packages/a/src/polyfills.ts", false),
        ("cd api && pytest", "api/verify/run.py", true),
        ("cd api && pytest", "api/src/pkg/fix.py", true),
        ("cd api && pytest", "api/src/pkg/app.py", false),
        ("pytest", "api/verify/run.py", false),
        ("cd php && phpunit", "php/conf/boot.php", true),
        ("cd php && phpunit", "php/conf/app.php", false),
        ("rspec", "conf/start.rb", true),
    ] {
        let role = Definitions::of([check], &tree).of_old(path);
        let counts = matches!(role, Some(Role::Test | Role::Definition(_)));
        assert_eq!(counts, expected, "{check}: {path}");
    }
    for path in ["src/setupTests.js", "web/src/setupTests.ts"] {
        let files = [("package.json", "{}"), ("src/App.test.js", "")];
        assert!(decides(&files, "npx react-scripts test", path), "{path}");
    }
}

#[test]
fn what_a_script_of_a_check_loads_from_its_directory_decides() {
    let files = [
        (
            "ci/check.py",
            "import sys, rules\nfrom . import more\nfrom kit.lists import (\n    names,\n)\nfrom app.verify import run\n",
        ),
        ("ci/rules.py", "import deeper\n"),
        ("ci/deeper.py", ""),
        ("ci/more.py", ""),
        ("ci/kit/lists.py", ""),
        ("ci/other.py", ""),
        ("app/verify.py", ""),
        ("check.py", "import calc\n"),
        ("calc.py", ""),
        ("ci/check.rb", "require 'json'\nrequire_relative 'judge'\n"),
        ("ci/judge.rb", ""),
        (
            "ci/check.php",
            "<?php require_once __DIR__ . '/judge.php';\n",
        ),
        ("ci/judge.php", ""),
        ("ci/check.pl", "require './ci/judge.pl';\n"),
        ("ci/judge.pl", ""),
    ];
    for (check, path, expected) in [
        ("python3 ci/check.py", "ci/rules.py", true),
        ("python3 ci/check.py", "ci/deeper.py", true),
        ("python3 ci/check.py", "ci/more.py", true),
        ("python3 ci/check.py", "ci/kit/lists.py", true),
        ("python3 ci/check.py", "ci/other.py", false),
        ("python3 ci/check.py", "app/verify.py", false),
        ("python3 check.py", "calc.py", false),
        ("ruby ci/check.rb", "ci/judge.rb", true),
        ("php ci/check.php", "ci/judge.php", true),
        ("perl ci/check.pl", "ci/judge.pl", true),
        ("true", "ci/judge.pl", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}

#[test]
fn what_runs_around_tests_or_lists_them_decides() {
    for (files, check, path, expected) in [
        (
            &["mise-tasks/test"][..],
            "mise run test",
            "mise-tasks/test",
            true,
        ),
        (&["spec/a_spec.rb"], "rspec", ".simplecov", true),
        (
            &["spec/a_spec.rb"],
            "parallel_rspec spec",
            ".rspec_parallel",
            true,
        ),
        (
            &["features/a.feature"],
            "cucumber",
            "config/cucumber.yml",
            true,
        ),
        (&["config/test.exs"], "mix test", "config/test.exs", true),
        (&["config/prod.exs"], "mix test", "config/prod.exs", false),
        (
            &["test/a_test.dart"],
            "flutter test",
            "test/flutter_test_config.dart",
            true,
        ),
        (
            &["App.xctestplan"],
            "xcodebuild test -scheme A",
            "App.xctestplan",
            true,
        ),
        (&["angular.json"], "ng test", "angular.json", true),
        (&["build.zig"], "zig build test", "build.zig", true),
        (&["src/dune"], "dune runtest", "src/dune", true),
        (&["dune-project"], "dune runtest", "dune", true),
        (&["src/a.ml"], "dune runtest", "src/a.ml", false),
        (&["deps.edn"], "clojure -M:test", "deps.edn", true),
        (
            &["a.test.js"],
            "npm test",
            "patches/jest-circus+29.7.0.patch",
            true,
        ),
        (
            &["a.test.js"],
            "npm test",
            "patches/left-pad+1.0.0.patch",
            false,
        ),
        (
            &["ATest.kt"],
            "gradle test",
            "src/test/kotlin/io/kotest/provided/ProjectConfig.kt",
            true,
        ),
        (
            &["ATest.java"],
            "mvn test",
            "src/main/java/junit/framework/Assert.java",
            true,
        ),
        (
            &["CalcSpec.groovy"],
            "gradle test",
            "src/test/resources/SpockConfig.groovy",
            true,
        ),
        (&["rush.json"], "rush test", "rush.json", true),
        (
            &["a.test.js"],
            "npx wtr",
            "web-test-runner.config.mjs",
            true,
        ),
        (
            &["features/a.feature"],
            "npx cucumber-js",
            "cucumber.js",
            true,
        ),
        (&["tests/test_a.py"], "nose2", "unittest.cfg", true),
        (&["a.py"], "lint-imports", ".importlinter", true),
        (&["Steepfile"], "steep check", "Steepfile", true),
        (&["sorbet/config"], "srb tc", "sorbet/config", true),
        (&["a.py"], "pyre check", ".pyre_configuration", true),
        (&["qa.py"], "python3 -m qa", "qa/__main__.py", true),
        (&["qa.py"], "python3 -m qa", "qa/more.py", false),
        (&["app.py"], "python3 -m qa", "qa/__main__.py", false),
    ] {
        let files: Vec<_> = files.iter().map(|path| (*path, "")).collect();
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
    let tree = Tree([("expected/a.out", ""), ("out/a.out", "")].into());
    for (path, expected) in [("expected/a.out", true), ("out/a.out", false)] {
        let role = Definitions::of(["diff -r expected out"], &tree).of_old(path);
        assert_eq!(role == Some(Role::Test), expected, "{path}");
    }
}

#[test]
fn commands_that_others_hold_as_one_argument_are_followed() {
    let files = [
        (
            "package.json",
            "{\"scripts\":{\"start\":\"node app.js\",\"e2e\":\"sh qa/judge\"}}",
        ),
        (
            "deno.json",
            "{\"tasks\":{\"test\":\"sh qa/judge\",\"run\":\"sh app/run\"}}",
        ),
        ("qa/judge", ""),
        ("app/run", ""),
    ];
    for (check, path, expected) in [
        ("nix-shell --run 'sh qa/judge'", "qa/judge", true),
        ("su -c 'cd qa && sh judge' ci", "qa/judge", true),
        ("npx concurrently 'sh qa/judge' 'x y'", "qa/judge", true),
        (
            "start-server-and-test start http://localhost:1 e2e",
            "qa/judge",
            true,
        ),
        (
            "start-server-and-test 'npm start' 1 'npm run e2e'",
            "qa/judge",
            true,
        ),
        ("deno task test", "qa/judge", true),
        ("deno task test", "app/run", false),
        ("grep -q 'sh qa/judge' README.md", "qa/judge", false),
        ("echo 'sh qa/judge'", "qa/judge", false),
    ] {
        assert_eq!(decides(&files, check, path), expected, "{check}: {path}");
    }
}
