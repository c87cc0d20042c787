mod ci;
mod jobs;
mod names;
mod parts;

use super::python::{VENV, in_venv};
use super::{CHECK_TIMEOUT_MS, Found, Listing, propose};
use crate::domain::checks::verdict::{Check, CheckKind};

/// The files of a root, the setup commands, and the checks as `name: command`.
type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a [&'a str]);

fn listing(files: &[(&str, &str)]) -> Listing {
    let mut listing = Listing::new();
    for (name, text) in files {
        listing.text(*name, *text);
    }
    listing
}

fn proposal(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
    let files = listing(files);
    let proposal = propose(&files);
    let checks = proposal
        .checks
        .into_iter()
        .map(|check| check.what)
        .map(|check| format!("{}: {}", check.name, check.run));
    let setup = proposal.setup.into_iter().map(|it| it.what);
    (setup.collect(), checks.collect())
}

#[track_caller]
fn proposes(files: &[(&str, &str)], setup: &[&str], checks: &[&str]) {
    let owned = |texts: &[&str]| {
        texts
            .iter()
            .map(|&text| text.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(proposal(files), (owned(setup), owned(checks)), "{files:?}");
}

/// As [`proposes`], for commands that pip prepares.
#[track_caller]
fn proposes_in_venv(files: &[(&str, &str)], setup: &[&str], checks: &[&str]) {
    let setup = setup.iter().map(|command| in_venv(command));
    let setup: Vec<String> = std::iter::once(VENV.to_owned()).chain(setup).collect();
    let in_check = |check: &&str| {
        let (name, command) = check.split_once(": ").unwrap();
        format!("{name}: {}", in_venv(command))
    };
    let checks: Vec<String> = checks.iter().map(in_check).collect();
    assert_eq!(proposal(files), (setup, checks), "{files:?}");
}

#[test]
fn a_check_is_complete() {
    assert_eq!(
        propose(&listing(&[("go.mod", "")])).checks,
        [
            ("build", "go build ./...", CheckKind::Build),
            ("test", "go test ./...", CheckKind::Test),
            ("lint", "go vet ./...", CheckKind::Lint),
        ]
        .map(|(name, run, kind)| Found {
            what: Check {
                junit: None,
                problem_matcher: None,
                name: name.to_owned(),
                run: run.to_owned(),
                kind,
                timeout_ms: CHECK_TIMEOUT_MS,
            },
            from: "go.mod".to_owned(),
        })
    );
}

#[test]
fn nothing_is_proposed_for_what_is_not_recognised() {
    proposes(&[], &[], &[]);
    proposes(&[("README.md", ""), ("src", "")], &[], &[]);
    proposes(&[("package.json", "{ broken")], &[], &[]);
    proposes(&[("composer.json", "")], &[], &[]);
}

#[test]
fn cargo() {
    proposes(
        &[("Cargo.toml", "[package]")],
        &[],
        &["build: cargo build", "test: cargo test"],
    );
    proposes(
        &[
            ("Cargo.toml", "[workspace]\nmembers = []"),
            ("Cargo.lock", ""),
        ],
        &[],
        &[
            "build: cargo build --workspace --locked",
            "test: cargo test --workspace --locked",
        ],
    );
}

#[test]
fn package_scripts_by_manager() {
    let scripts = r#"{"scripts":{"build":"tsc","test":"vitest run","lint":"eslint .","dev":"x"}"#;
    let plain = format!("{scripts}}}");
    let with = |manager: &str| format!(r#"{scripts},"packageManager":"{manager}"}}"#);
    let table: [(&str, &str, &str, [&str; 3]); 6] = [
        (
            &plain,
            "package-lock.json",
            "npm ci",
            ["npm run build", "npm test", "npm run lint"],
        ),
        (
            &plain,
            "pnpm-lock.yaml",
            "pnpm install --frozen-lockfile",
            ["pnpm run build", "pnpm test", "pnpm run lint"],
        ),
        (
            &plain,
            "yarn.lock",
            "yarn install --frozen-lockfile",
            ["yarn run build", "yarn run test", "yarn run lint"],
        ),
        (
            &plain,
            "bun.lockb",
            "bun install --frozen-lockfile",
            ["bun run build", "bun run test", "bun run lint"],
        ),
        (
            &with("yarn@4.9.0"),
            "yarn.lock",
            "yarn install --immutable",
            ["yarn run build", "yarn run test", "yarn run lint"],
        ),
        (
            &with("yarn@1.22.22"),
            "yarn.lock",
            "yarn install --frozen-lockfile",
            ["yarn run build", "yarn run test", "yarn run lint"],
        ),
    ];
    for (manifest, lock, setup, [build, test, lint]) in table {
        proposes(
            &[("package.json", manifest), (lock, "")],
            &[setup],
            &[
                &format!("build: {build}"),
                &format!("test: {test}"),
                &format!("lint: {lint}"),
            ],
        );
    }
}

#[test]
fn package_without_a_lock_file() {
    proposes(
        &[("package.json", r#"{"scripts":{"test":"node --test"}}"#)],
        &[],
        &["test: npm test"],
    );
    proposes(
        &[(
            "package.json",
            r#"{"devDependencies":{"x":"1"},"scripts":{"test":"x"}}"#,
        )],
        &["npm install --no-package-lock"],
        &["test: npm test"],
    );
}

#[test]
fn scripts_that_say_nothing_are_left_out() {
    for script in [
        r#"echo \"Error: no test specified\" && exit 1"#,
        "jest --watch",
        "jest --watchAll",
        "vitest watch",
        " ",
    ] {
        let manifest = format!(r#"{{"scripts":{{"test":"{script}"}}}}"#);
        proposes(&[("package.json", &manifest)], &[], &[]);
    }
    proposes(
        &[(
            "package.json",
            r#"{"scripts":{"test":"jest --watchAll=false"}}"#,
        )],
        &[],
        &["test: npm test"],
    );
    proposes(
        &[(
            "package.json",
            r#"{"scripts":{"test":"react-scripts test"}}"#,
        )],
        &[],
        &["test: CI=true npm test"],
    );
}

#[test]
fn two_linters_of_one_tool_keep_apart() {
    proposes(
        &[(
            "package.json",
            r#"{"scripts":{"lint":"eslint","typecheck":"tsc"}}"#,
        )],
        &[],
        &["npm-lint: npm run lint", "typecheck: npm run typecheck"],
    );
}

#[test]
fn deno() {
    proposes(
        &[("deno.jsonc", "{ // a comment\n}")],
        &[],
        &["test: deno test", "lint: deno lint"],
    );
    proposes(
        &[(
            "deno.json",
            r#"{"tasks":{"test":"deno test -A","build":"x"}}"#,
        )],
        &[],
        &[
            "build: deno task build",
            "test: deno task test",
            "lint: deno lint",
        ],
    );
}

#[test]
fn a_linter_that_nothing_installs_is_not_proposed() {
    let configured = "[project]\n[tool.ruff]\n";
    let of = |text: &str, others: &[(&str, &str)]| {
        let mut files = vec![("pyproject.toml", text)];
        files.extend_from_slice(others);
        propose(&listing(&files))
    };
    let alone = of(configured, &[]);
    assert_eq!(alone.checks, []);
    assert_eq!(
        alone.left_out[0].what,
        "ruff check: nothing in the project installs ruff"
    );
    assert_eq!(
        of(configured, &[("requirements-dev.txt", "ruff==0.9\n")])
            .checks
            .len(),
        1
    );
    let extra = "[project]\n[project.optional-dependencies]\ndev = [\"ruff>=0.9\"]\n[tool.ruff]\n";
    assert_eq!(of(extra, &[]).checks.len(), 1);
    let other = extra.replace("dev =", "docs =");
    assert_eq!(of(&other, &[]).checks, []);
}

#[test]
fn tests_of_python_are_run_as_they_are_written() {
    let unittest = "import unittest\n";
    let pytest = "def test_x():\n    pass\n";
    proposes(
        &[("app.py", ""), ("test_app.py", unittest)],
        &[],
        &["test: python3 -m unittest"],
    );
    proposes_in_venv(
        &[("app.py", ""), ("test_app.py", pytest)],
        &["python3 -m pip install pytest"],
        &["test: python3 -m pytest"],
    );
    proposes_in_venv(
        &[
            ("setup.py", ""),
            ("tests", ""),
            ("tests/test_x.py", unittest),
        ],
        &["python3 -m pip install -e ."],
        &["test: python3 -m unittest discover -s tests"],
    );
    let tox =
        "[tox]\n[testenv]\ncommands =\n    python -m unittest -v\n[testenv:x]\ncommands = y\n";
    proposes_in_venv(
        &[("setup.cfg", "pytest"), ("setup.py", ""), ("tox.ini", tox)],
        &["python3 -m pip install tox"],
        &["test: python3 -m tox -e py"],
    );
    let more =
        "[testenv]\ndeps = coverage\ncommands =\n    coverage run {posargs}\n    coverage report\n";
    proposes_in_venv(
        &[("setup.py", ""), ("tox.ini", more)],
        &["python3 -m pip install tox"],
        &["test: python3 -m tox -e py"],
    );
}

#[test]
fn what_npm_runs_by_itself_is_not_proposed_again() {
    let package = |scripts: &str| {
        format!(r#"{{"scripts":{{"test":"node --test","lint":"eslint .",{scripts}}}}}"#)
    };
    proposes(
        &[(
            "package.json",
            &package(r#""pretest":"npm run --silent lint""#),
        )],
        &[],
        &["test: npm test"],
    );
    proposes(
        &[(
            "package.json",
            &package(r#""pretest":"npm run lint","posttest":"npx aud --production""#),
        )],
        &[],
        &["test: npm test"],
    );
    proposes(
        &[("package.json", &package(r#""posttest":"rm -rf out""#))],
        &[],
        &["test: npm test", "lint: npm run lint"],
    );
}

#[test]
fn python_by_manager() {
    let pyproject = "[project]\nname = 'x'\ndependencies = [\n  'ruff', 'pytest']\n[tool.pytest.ini_options]\n[tool.ruff]\n";
    let table: [(&str, &str, &str, &str); 4] = [
        (
            "uv.lock",
            "uv sync --locked",
            "uv run --locked python -m pytest",
            "uv run --locked ruff check",
        ),
        (
            "poetry.lock",
            "poetry install --no-interaction",
            "poetry run python -m pytest",
            "poetry run ruff check",
        ),
        (
            "pdm.lock",
            "pdm install --frozen-lockfile",
            "pdm run python -m pytest",
            "pdm run ruff check",
        ),
        (
            "README.md",
            "python3 -m pip install -e .",
            "python3 -m pytest",
            "ruff check",
        ),
    ];
    for (lock, setup, test, lint) in table {
        let files = [("pyproject.toml", pyproject), (lock, "")];
        let checks = [format!("test: {test}"), format!("lint: {lint}")];
        let checks = [checks[0].as_str(), checks[1].as_str()];
        if setup.contains("pip install") {
            proposes_in_venv(&files, &[setup], &checks);
        } else {
            proposes(&files, &[setup], &checks);
        }
    }
}

#[test]
fn python_without_a_lock_file() {
    proposes_in_venv(
        &[(
            "pyproject.toml",
            "[project]\n[project.optional-dependencies]\ndocs = []\ndev = ['pytest']\n[tool.x]\ntest = 1",
        )],
        &["python3 -m pip install -e '.[dev]'"],
        &["test: python3 -m pytest"],
    );
    proposes_in_venv(
        &[
            ("requirements.txt", "flask"),
            ("requirements-dev.txt", "pytest>=8"),
        ],
        &["python3 -m pip install -r requirements.txt -r requirements-dev.txt"],
        &["test: python3 -m pytest"],
    );
    proposes_in_venv(
        &[("setup.py", ""), ("tests", "")],
        &["python3 -m pip install -e ."],
        &["test: python3 -m unittest discover -s tests -t ."],
    );
    proposes_in_venv(
        &[("setup.py", ""), ("tox.ini", "[tox]")],
        &["python3 -m pip install tox"],
        &["test: python3 -m tox -e py"],
    );
    proposes_in_venv(
        &[(
            "pyproject.toml",
            "[project]\n[tool.hatch.envs.default]\ndependencies = ['pytest']",
        )],
        &["python3 -m pip install hatch"],
        &["test: hatch test"],
    );
    proposes(
        &[("Pipfile", "pytest = '*'"), ("Pipfile.lock", "")],
        &["pipenv sync --dev"],
        &["test: pipenv run python -m pytest"],
    );
    proposes_in_venv(
        &[("requirements.txt", "flask")],
        &["python3 -m pip install -r requirements.txt"],
        &[],
    );
}

#[test]
fn make_and_just_stand_in_for_missing_kinds() {
    let makefile = "CC := gcc\nURL = a:b\n.PHONY: all\nall build: x\n\tcc test: y\ncheck:\n\ttrue\nlint: ; true\n";
    proposes(
        &[("Makefile", makefile)],
        &[],
        &["build: make build", "test: make check", "lint: make lint"],
    );
    proposes(
        &[("Makefile", makefile), ("Cargo.toml", "")],
        &[],
        &["build: cargo build", "test: cargo test", "lint: make lint"],
    );
    let justfile = "set shell := ['sh']\nbuild target:\n  x\n@test *args: build\n  y\n[private]\nlint level='a':\n";
    proposes(
        &[("justfile", justfile)],
        &[],
        &["test: just test", "lint: just lint"],
    );
    proposes(
        &[("Makefile", "test:\n"), ("justfile", "test:\nbuild:\n")],
        &[],
        &["build: just build", "test: make test"],
    );
}

#[test]
fn other_toolchains() {
    let maven =
        |command: &str, goal: &str| format!("{command} --batch-mode --no-transfer-progress {goal}");
    let table: [Row; 14] = [
        (
            &[("pom.xml", "")],
            &[],
            &[
                &format!("build: {}", maven("mvn", "test-compile")),
                &format!("test: {}", maven("mvn", "test")),
            ],
        ),
        (
            &[("pom.xml", ""), ("mvnw", "")],
            &[],
            &[
                &format!("build: {}", maven("./mvnw", "test-compile")),
                &format!("test: {}", maven("./mvnw", "test")),
            ],
        ),
        (
            &[("build.gradle.kts", ""), ("gradlew", "")],
            &[],
            &[
                "build: ./gradlew --no-daemon assemble",
                "test: ./gradlew --no-daemon check",
            ],
        ),
        (
            &[("App.sln", ""), ("A.csproj", "")],
            &[],
            &["build: dotnet build App.sln", "test: dotnet test App.sln"],
        ),
        (
            &[("My App.csproj", "")],
            &[],
            &[
                "build: dotnet build 'My App.csproj'",
                "test: dotnet test 'My App.csproj'",
            ],
        ),
        (&[("A.csproj", ""), ("B.csproj", "")], &[], &[]),
        (
            &[("Gemfile", ""), ("spec", ""), (".rubocop.yml", "")],
            &["bundle install"],
            &["test: bundle exec rspec", "lint: bundle exec rubocop"],
        ),
        (
            &[("Gemfile", ""), ("Rakefile", ""), ("test", "")],
            &["bundle install"],
            &["test: bundle exec rake test"],
        ),
        (
            &[("composer.json", "{}"), ("phpunit.xml.dist", "")],
            &["composer install --no-interaction"],
            &["test: vendor/bin/phpunit"],
        ),
        (
            &[("composer.json", r#"{"scripts":{"test":"x","lint":["y"]}}"#)],
            &["composer install --no-interaction"],
            &[
                "test: composer run-script test",
                "lint: composer run-script lint",
            ],
        ),
        (
            &[("CMakeLists.txt", "Enable_Testing()")],
            &[],
            &[
                "build: cmake -S . -B build && cmake --build build",
                "test: ctest --test-dir build --output-on-failure",
            ],
        ),
        (
            &[("mix.exs", "")],
            &["mix deps.get"],
            &["build: mix compile", "test: mix test"],
        ),
        (
            &[("Package.swift", "")],
            &[],
            &["build: swift build --build-tests", "test: swift test"],
        ),
        (
            &[("Makefile.PL", ""), ("t", "")],
            &[],
            &[
                "build: perl Makefile.PL && make",
                "test: prove --blib --recurse t",
            ],
        ),
    ];
    for (files, setup, checks) in table {
        proposes(files, setup, checks);
    }
}

#[test]
fn several_toolchains_are_told_apart() {
    proposes(
        &[
            ("Cargo.toml", ""),
            ("package.json", r#"{"scripts":{"test":"x","lint":"y"}}"#),
            ("package-lock.json", ""),
        ],
        &["npm ci"],
        &[
            "build: cargo build",
            "cargo-test: cargo test",
            "npm-test: npm test",
            "lint: npm run lint",
        ],
    );
}
