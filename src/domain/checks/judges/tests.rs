//! The rule on projects of many tools. Each row is a project with its check, and says which paths are put back when the
//! work changes or adds them, and which are the work's.

use super::{Judges, Named, Role, Start, may_rule_by_name, tests_inside};
use crate::checks::tests_changed::{holds_tests, is_test};
use std::collections::BTreeMap;

struct Tree(BTreeMap<&'static str, &'static str>, Vec<String>);

impl Tree {
    fn of(files: &[(&'static str, &'static str)]) -> Self {
        let files: BTreeMap<_, _> = files.iter().copied().collect();
        let paths = files.keys().map(|path| (*path).to_owned()).collect();
        Self(files, paths)
    }
}

impl Start for Tree {
    fn is_file(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    fn is_directory(&self, path: &str) -> bool {
        self.1
            .iter()
            .any(|known| known.starts_with(&format!("{path}/")))
    }

    fn paths(&self) -> &[String] {
        &self.1
    }

    fn read(&self, path: &str) -> Option<String> {
        self.0.get(path).map(|text| (*text).to_owned())
    }
}

struct Project {
    check: &'static str,
    /// Files whose content matters.
    files: &'static [(&'static str, &'static str)],
    /// Earlier files that judge, separated by spaces.
    judge: &'static str,
    /// Earlier files that are the work's.
    work: &'static str,
    /// New files that would judge, or rule those that do.
    new_judge: &'static str,
    /// New files that judge nothing that was there.
    new_work: &'static str,
}

const PROJECTS: &[Project] = &[
    Project {
        check: "cargo test --locked && cargo clippy -- -D warnings",
        files: &[],
        judge: "Cargo.toml crates/a/Cargo.toml .cargo/config.toml build.rs rust-toolchain.toml clippy.toml rustfmt.toml deny.toml .config/nextest.toml tests/it/main.rs src/parser/tests.rs xtask/src/main.rs src/snapshots/a.snap tests/data/in.json .github/workflows/ci.yml",
        work: "src/main.rs src/lib.rs crates/a/src/lib.rs benches/b.rs examples/e.rs README.md Cargo.lock src/data/words.json src/query.sql docs/guide.md LICENSE",
        new_judge: "clippy.toml .cargo/config.toml build.rs rust-toolchain Makefile",
        new_work: "src/new.rs crates/b/src/lib.rs tests/new.rs docs/new.md CHANGELOG.md tests/common/mod.rs",
    },
    Project {
        check: "cargo test && cargo run -q -p gate -- src && perl -MGate -Ilib t.pl",
        files: &[
            (
                "Cargo.toml",
                "[dependencies]\ncore = { path = 'core' }\n[dev-dependencies]\nkit = { path = 'kit' }\ncore = { path = 'core' }\n",
            ),
            ("gate/Cargo.toml", "[package]\nname = \"gate\"\n"),
            ("gate/src/main.rs", ""),
            ("kit/src/lib.rs", ""),
            ("core/src/lib.rs", ""),
            ("lib/Gate.pm", ""),
            ("lib/Calc.pm", ""),
        ],
        judge: "gate/src/main.rs kit/src/lib.rs lib/Gate.pm",
        work: "core/src/lib.rs src/lib.rs lib/Calc.pm",
        new_judge: "kit/src/more.rs",
        new_work: "core/src/more.rs",
    },
    Project {
        check: "python -m pytest -q && mypy src && ruff check .",
        files: &[
            ("setup.cfg", "[tool:pytest]\ntestpaths =\n    verify\n"),
            ("verify/one.py", ""),
        ],
        judge: "pyproject.toml setup.cfg setup.py pytest.ini tox.ini mypy.ini conftest.py tests/conftest.py tests/test_a.py tests/helper.py verify/one.py noxfile.py .coveragerc .pre-commit-config.yaml ruff.toml src/app.egg-info/entry_points.txt src/stub.pyi scripts/lint.py",
        work: "src/app/__init__.py app/core.py calc.py requirements.txt requirements-dev.txt src/app/data.json docs/index.rst uv.lock templates/base.html main.py",
        new_judge: "conftest.py tests/conftest.py pytest.ini tests/app.py tests/unittest.py tests/__init__.py pytest.py unittest/__init__.py sitecustomize.py pytest_randomly.py calc.pyi .env x.egg-info/entry_points.txt tox.ini tests/json.pyc tests/pytest.ini",
        new_work: "src/app/new.py tests/test_new.py tests/data/new.json tests/unit/test_more.py migrations/0002.py README.md",
    },
    Project {
        check: "npm run lint && npm test",
        files: &[
            (
                "package.json",
                "{\"scripts\":{\"test\":\"npm run unit && jest\",\"unit\":\"node ./run.js\",\"lint\":\"eslint src\",\"start\":\"node bot.js\"}}",
            ),
            ("run.js", "require('./helpers/check.js');\n"),
            ("helpers/check.js", ""),
            ("bot.js", ""),
            ("src/check.js", ""),
        ],
        judge: "package.json run.js helpers/check.js jest.config.js babel.config.js .eslintrc.json eslint.config.mjs tsconfig.json src/tsconfig.json vite.config.ts .npmrc .babelrc src/a.test.js src/__tests__/b.js src/__snapshots__/a.snap src/setupTests.ts jest.setup.js cypress/e2e/a.cy.ts .mocharc.yml src/__mocks__/../a.spec.ts scripts/test.js node_modules/jest-circus/run.js Dockerfile",
        work: "src/index.js src/check.js bot.js src/App.vue src/style.css src/i18n/de.json public/logo.svg package-lock.json pnpm-lock.yaml README.md src/types.d.ts lib/a.mjs locales/de.json",
        new_judge: ".npmrc jest.config.ts tests/package.json test/node_modules/a.js .env.test test/helper.js test/setup.js knip.json tsconfig.build.json chai.js mocha/index.js",
        new_work: "src/new.ts src/new.test.ts test/new.spec.js src/assets/new.png src/i18n/fr.json test/fixtures/new.json",
    },
    Project {
        check: "go vet ./... && go test ./...",
        files: &[],
        judge: "go.mod a_test.go pkg/b_test.go testdata/in.txt pkg/testdata/x.golden magefile.go .golangci.yml Makefile go.work vendor/github.com/stretchr/testify/assert/a.go",
        work: "main.go cmd/app/main.go internal/a/a.go go.sum vendor/modules.txt vendor/github.com/spf13/cobra/c.go api/v1.proto web/index.html",
        new_judge: "go.work Makefile .golangci.yml",
        new_work: "internal/b/b.go internal/b/b_test.go testdata/new.txt",
    },
    Project {
        check: "make test",
        files: &[
            (
                "Makefile",
                "PY = python3\n.PHONY: all \\\n  lint\nall: test\ntest: unit\n\t@$(PY) tool/all.py\nunit:\n\t./unit.sh\n\t$(MAKE) -C sub\nlint:\n\tsh check.sh\nrun:\n\t./app.sh\n",
            ),
            ("tool/all.py", ""),
            ("unit.sh", "#!/bin/sh\nsh qa2/judge.sh\nsh slug.sh\n"),
            ("qa2/judge.sh", ""),
            ("slug.sh", ""),
            ("app.sh", "#!/bin/sh\n"),
            ("check.sh", "./greet.sh"),
            ("greet.sh", "#!/bin/sh\n"),
            ("sub/x.c", ""),
        ],
        judge: "Makefile rules.mk tool/all.py unit.sh qa2/judge.sh check.sh configure Makefile.am test_a.c tests/t.c CMakeLists.txt cmake/x.cmake third_party/unity/unity.h expected.txt limits.json",
        work: "slug.sh app.sh greet.sh src/a.c include/a.h a.c notes.txt",
        new_judge: "GNUmakefile test unit unit/a conf.inc assert.h inc/gtest/gtest.h string.h",
        new_work: "src/b.c b.h tests/new_test.c docs/x.md",
    },
    Project {
        check: "CI=1 timeout 5m ./gate && cd tool && python run.py",
        files: &[
            ("gate", "#!/bin/sh\n. ./lib/common.sh\npython3 -m app\n"),
            ("lib/common.sh", ""),
            (
                "tool/run.py",
                "import subprocess\nsubprocess.run(['bash', 'tool/deep-check.sh'])",
            ),
            ("tool/deep-check.sh", ""),
            ("app.py", ""),
            ("tool/slug.py", ""),
        ],
        judge: "gate tool/run.py tool/deep-check.sh",
        work: "app.py tool/slug.py",
        new_judge: "gate.conf suite",
        new_work: "tool/new.py",
    },
    Project {
        check: "sh greet.sh | grep -qx hello; [ \"$(sh main.sh)\" = x ]; sh -n parsed.sh; sh check.sh | grep -q ok; ./run.sh | tee log; python3 main.py > log; test \"$(awk -f sum.awk n.txt)\" = 3; jq -f rules.jq in.json",
        files: &[
            ("greet.sh", "#!/bin/sh\n"),
            ("main.sh", ""),
            ("parsed.sh", ""),
            ("check.sh", ""),
            ("run.sh", "#!/bin/sh\n"),
            ("main.py", ""),
            ("sum.awk", ""),
            ("rules.jq", ""),
        ],
        judge: "check.sh run.sh rules.jq",
        work: "greet.sh main.sh parsed.sh main.py sum.awk n.txt",
        new_judge: "",
        new_work: "",
    },
    Project {
        check: "gcc -Wall a.c -o a && mypy --strict a.py && eslint --config rules.js a.js && node -r ./hook.js --test && node --check x.js && python -m pip install pytest",
        files: &[
            ("a.c", ""),
            ("a.py", ""),
            ("rules.js", ""),
            ("a.js", ""),
            ("hook.js", ""),
            ("x.js", ""),
        ],
        judge: "rules.js hook.js",
        work: "a.c a.py a.js x.js",
        new_judge: "",
        new_work: "",
    },
    Project {
        check: "npm test && python -m quality && python3 -m app && node gate && node -r ./hook go.js && python -m pytest",
        files: &[
            (
                "package.json",
                "{\"jest\":{\"setupFiles\":[\"<rootDir>/boot.js\"]},\"exports\":{\"require\":\"./own.js\"},\"scripts\":{\"test\":\"mocha --require ./lib/start\"}}",
            ),
            (
                ".mocharc.json",
                "{\"require\": [\"./more.js\", \"./shared.js\"]}",
            ),
            ("boot.js", ""),
            ("lib/start.js", ""),
            ("more.js", ""),
            ("shared.js", ""),
            ("own.js", ""),
            ("src/uses.js", "require('../shared.js');"),
            ("quality/__main__.py", "from calc import total"),
            ("app/__main__.py", ""),
            ("app/core.py", "from app.util import x"),
            ("gate/index.js", ""),
            ("hook.js", ""),
            ("conftest.py", "pytest_plugins = [\"support.fix\"]"),
            ("support/fix.py", ""),
        ],
        judge: "boot.js lib/start.js more.js quality/__main__.py gate/index.js hook.js support/fix.py setup.cfg tox.ini",
        work: "own.js shared.js app/__main__.py app/core.py bin/tool.py",
        new_judge: "",
        new_work: "",
    },
    Project {
        check: "bundle exec rspec && rubocop",
        files: &[],
        judge: "Rakefile .rspec .rubocop.yml .rubocop_todo.yml spec/a_spec.rb spec/spec_helper.rb spec/support/x.rb config/environments/test.rb rakelib/a.rake features/steps/a.rb vendor/bundle/gems/rspec-core-3.12/lib/rspec/core.rb",
        work: "lib/a.rb app/models/user.rb Gemfile Gemfile.lock config/locales/de.yml db/seeds.rb lib/minitest/own.rb",
        new_judge: "lib/minitest/assertions.rb .rspec-local spec/support/new.rb lib/rspec/core.rb rakelib/b.rake",
        new_work: "app/models/new.rb spec/models/new_spec.rb",
    },
    Project {
        check: "composer test && vendor/bin/phpunit",
        files: &[
            ("phpunit.xml", "<directory>checks2</directory>"),
            ("checks2/A.php", ""),
        ],
        judge: "composer.json phpunit.xml phpstan.neon phpstan-baseline.neon tests/ATest.php .php-cs-fixer.php checks2/A.php rector.php",
        work: "src/A.php composer.lock public/index.php",
        new_judge: "phpunit.xml tests/bootstrap.php psalm.xml",
        new_work: "src/B.php tests/BTest.php",
    },
    Project {
        check: "./gradlew check",
        files: &[("gradlew", "#!/bin/sh\n")],
        judge: "gradlew build.gradle.kts settings.gradle.kts gradle.properties gradle/wrapper/gradle-wrapper.properties src/test/java/a/ATest.java src/test/resources/x.json buildSrc/src/main/kotlin/c.kt config/checkstyle/checkstyle.xml pom.xml .mvn/maven.config build.sbt src/testFixtures/java/A.java",
        work: "src/main/java/a/A.java src/main/kotlin/B.kt src/main/resources/app.yml gradle/libs.versions.toml gradle.lockfile",
        new_judge: "settings.gradle src/test/java/org/junit/Assert.java src/test/java/a/A.java buildSrc/build.gradle more.sbt",
        new_work: "src/main/java/a/C.java src/test/java/a/CTest.java",
    },
    Project {
        check: "dotnet test && mix test && swift test && zig build test && dune test",
        files: &[],
        judge: "App.csproj Directory.Build.props x.runsettings App.sln MyApp.Tests/Util.cs global.json mix.exs config/test.exs test/a_test.exs Package.swift Tests/AppTests/A.swift build.zig dune-project lib/dune .formatter.exs",
        work: "App/Program.cs lib/a.ex Sources/App/A.swift src/main.zig lib/a.ml Package.resolved mix.lock",
        new_judge: "Directory.Build.targets dune Package@swift-5.swift",
        new_work: "lib/b.ex test/b_test.exs Tests/AppTests/BTests.swift",
    },
    Project {
        check: "pytest --doctest-glob='*.md' && for p in packages/*; do (cd $p && sh judge.sh); done",
        files: &[("packages/a/judge.sh", ""), ("packages/b/x", "")],
        judge: "docs/use.md README.md packages/a/judge.sh",
        work: "notes.txt",
        new_judge: "",
        new_work: "",
    },
];

fn is_judge(role: Role, path: &str) -> bool {
    match role {
        Role::Work => false,
        Role::Data | Role::Judge(_) => true,
        Role::Test => is_test(path) || !path.is_empty(),
    }
}

#[test]
fn earlier_files_judge_unless_they_are_the_work() {
    let mut judged = 0;
    for project in PROJECTS {
        let tree = Tree::of(project.files);
        let judges = Judges::of([project.check], &tree, &[], &[]);
        for (paths, expected) in [(project.judge, true), (project.work, false)] {
            for path in paths.split_whitespace() {
                let role = judges.of_old(path);
                assert_eq!(
                    is_judge(role, path),
                    expected,
                    "{}: {path} {role:?}",
                    project.check
                );
                judged += 1;
            }
        }
    }
    assert!(judged > 200, "{judged}");
}

#[test]
fn new_files_judge_if_they_may_rule_what_was_there() {
    for project in PROJECTS {
        let tree = Tree::of(project.files);
        let judges = Judges::of([project.check], &tree, &[], &[]);
        for (paths, expected) in [(project.new_judge, true), (project.new_work, false)] {
            for path in paths.split_whitespace() {
                let rules = match judges.of_new(path) {
                    Role::Work => false,
                    Role::Data | Role::Judge(_) => true,
                    Role::Test => may_rule_by_name(path),
                };
                assert_eq!(rules, expected, "{}: {path}", project.check);
            }
        }
    }
}

#[test]
fn a_source_that_only_tests_import_helps_them_if_it_asserts() {
    const ASSERTS: &str = "def same(a, b):\n    assert a == b\n";
    let tree = Tree::of(&[
        (
            "calc.py",
            "def total(xs):\n    assert xs\n    return sum(xs)\n",
        ),
        ("same.py", ASSERTS),
        ("used.py", ASSERTS),
        ("alone.py", ASSERTS),
        ("fix.py", "import pytest\n"),
        ("util/same.js", "const assert = require('node:assert');\n"),
        ("tools/Same.pm", "use Test::More;\n"),
        ("src/calc.js", ""),
        ("lib/Calc.pm", ""),
        ("app.py", "import used\n"),
        ("conftest.py", "from fix import want\n"),
        (
            "tests/test_calc.py",
            "from calc import total\nfrom same import same\nfrom used import same\n",
        ),
        ("tests/test_alone.py", "import alone\n"),
        (
            "test/a.test.js",
            "require('../src/calc.js'); require('../util/same.js');\n",
        ),
        ("t/a.t", "use Calc;\nuse Same;\n"),
    ]);
    let judges = Judges::of(["make test"], &tree, &[], &[]);
    for (path, expected) in [
        ("same.py", true),
        ("fix.py", true),
        ("util/same.js", true),
        ("tools/Same.pm", true),
        ("calc.py", false),
        ("used.py", false),
        ("alone.py", false),
        ("src/calc.js", false),
    ] {
        let text = tree.read(path).unwrap_or_default();
        assert_eq!(judges.is_helper(path, &text, &tree), expected, "{path}");
    }
}

#[test]
fn a_package_that_the_product_imports_is_the_product_whatever_its_name_is() {
    let tree = Tree::of(&[
        ("main.py", "from checks.rules import rule\n"),
        ("checks/rules.py", ""),
        ("checks/test_rules.py", ""),
        ("qa/lint.py", ""),
        ("test_main.py", "import qa\n"),
        ("cmd/app/main.go", "import (\n\t\"m/hack\"\n)\n"),
        ("hack/fix.go", ""),
        ("ci/run.py", "from ci import steps\n"),
        ("ci/steps.py", ""),
        ("app.py", "import ci\n"),
    ]);
    let judges = Judges::of(["pytest && python ci/run.py"], &tree, &[], &[]);
    for (path, expected) in [
        ("checks/rules.py", true),
        ("checks/new.py", true),
        ("checks/test_rules.py", false),
        ("qa/lint.py", false),
        ("hack/fix.go", true),
        ("ci/run.py", false),
        ("ci/steps.py", false),
    ] {
        assert_eq!(judges.is_of_product(path, &tree), expected, "{path}");
    }
}

#[test]
fn settings_say_who_judges() {
    let (judges, product) = (
        ["src/rules/**".to_owned()],
        ["bin/*".to_owned(), "scripts/app.py".to_owned()],
    );
    let rule = Judges::of(["make"], &Tree::of(&[]), &judges, &product);
    for (path, expected) in [
        ("src/rules/a.py", true),
        ("src/a.py", false),
        ("bin/tool", false),
        ("scripts/app.py", false),
        ("scripts/other.py", true),
    ] {
        assert_eq!(is_judge(rule.of_old(path), path), expected, "{path}");
    }
}

#[test]
fn tests_inside_of_sources_are_told() {
    assert!(tests_inside("src/lib.rs").is_some() && tests_inside("src/a.py").is_none());
    assert!(holds_tests("qa/a.rb", "RSpec.describe A do\nend"));
}

#[test]
fn a_command_that_installs_finds_or_judges_runs_no_test() {
    let tree = Tree::of(&[("Makefile", "test:\n\tpytest\n")]);
    for (check, expected) in [
        ("pytest", true),
        ("uv run --frozen pytest -q", true),
        ("npx --yes jest", true),
        ("python3 -m pytest", true),
        ("pip install -q pytest && pytest", true),
        ("make test", true),
        ("node --test", true),
        ("python3 -m pip install pytest", false),
        ("uv pip install pytest && ruff check", false),
        ("command -v pytest", false),
        ("echo pytest", false),
        ("eslint --env jest src", false),
    ] {
        assert_eq!(Named::of([check], &tree).runs_tests, expected, "{check}");
    }
}

#[test]
fn makefiles_that_name_themselves_come_to_an_end() {
    let text = "A = $(B)$(B)\nB = $(A)$(A)\ntest: test\n\tmake test $(A)\n\tsh ./x.sh\n";
    let files = [("Makefile", text), ("x.sh", "sh ./x.sh; make test")];
    let named = Named::of(["make test"], &Tree::of(&files));
    assert!(named.programs.contains("x.sh"));
    assert!(named.goals.contains("test"));
}

#[test]
fn a_check_that_only_asks_whether_anything_changed_sees_the_work_as_committed() {
    let script = "import subprocess\nsubprocess.run(['git', 'status'])\n";
    let tree = Tree::of(&[
        (
            "package.json",
            "{\"scripts\":{\"ci\":\"git status -s | (! grep .)\"}}",
        ),
        ("src/a.js", ""),
        ("clean.py", script),
        ("ci/x.sh", "bash <<E\ngit diff-index --quiet HEAD --\nE\n"),
    ]);
    for (check, expected) in [
        ("test -z \"$(git -C . status --porcelain)\"", true),
        ("git diff --exit-code HEAD -- src main", true),
        ("git add -A && git diff --cached --quiet", true),
        ("git diff HEAD --quiet src/a.js", true),
        ("git -c a.b=c diff --exit-code HEAD", true),
        ("git diff HEAD --shortstat | (! grep .)", true),
        ("test \"$(git stash create)\" = \"\"", true),
        ("git describe --dirty | (! grep dirty)", true),
        ("npm run ci", true),
        ("python3 clean.py", true),
        ("sh ci/x.sh", true),
        ("make test; git diff --exit-code", false),
        ("git status -s | cut -c4- | xargs lint", false),
        ("git diff HEAD | scan; git status", false),
        ("git diff --quiet origin/main -- src && git status", false),
        ("git diff --quiet main...HEAD && git status", false),
    ] {
        assert_eq!(
            Named::of([check], &tree).needs_commit(),
            expected,
            "{check}"
        );
    }
}
