use super::Purpose::{Check, Containers, Machine, Setup};
use super::{Purpose, plain_test, purpose};
use crate::domain::checks::verdict::CheckKind::{Build, Lint, Test};

#[test]
fn a_command_is_known_by_its_words() {
    let table: [(&str, Option<Purpose>); 98] = [
        ("cargo build --locked", Some(Check(Build))),
        ("cargo +stable test --all-features", Some(Check(Test))),
        ("cargo nextest run", Some(Check(Test))),
        ("cargo fmt --all -- --check", Some(Check(Lint))),
        ("cargo fmt", None),
        ("cargo publish", None),
        ("cargo test --workspace --no-run", Some(Check(Build))),
        (
            "cargo hack test --each-feature --workspace",
            Some(Check(Test)),
        ),
        ("pytest --collect-only", None),
        ("go test -race ./...", Some(Check(Test))),
        ("go mod download", Some(Setup)),
        ("go mod tidy", None),
        ("npm ci", Some(Setup)),
        ("npm install -g pnpm", Some(Machine)),
        ("npm test", Some(Check(Test))),
        ("npm run build --if-present", Some(Check(Build))),
        ("npm run test:unit", Some(Check(Test))),
        ("npm run lint", Some(Check(Lint))),
        ("npm run lint:fix", None),
        ("npm publish", None),
        ("npm run ci", Some(Check(Test))),
        ("npm --prefix web ci", Some(Setup)),
        ("npm test -w packages/a", Some(Check(Test))),
        ("pnpm --filter ./packages/a build", Some(Check(Build))),
        ("pnpm -w lint", Some(Check(Lint))),
        ("yarn workspace web test", Some(Check(Test))),
        ("turbo run test", Some(Check(Test))),
        ("npx nx run-many -t lint", Some(Check(Lint))),
        ("bazel test //...", Some(Check(Test))),
        ("make ci", Some(Check(Test))),
        ("make -C lib -j 4 test", Some(Check(Test))),
        ("make -j 4", Some(Check(Build))),
        ("task -d api test", Some(Check(Test))),
        ("just ci", Some(Check(Test))),
        ("./scripts/doctest.sh", None),
        ("yarn", Some(Setup)),
        ("yarn eslint .", Some(Check(Lint))),
        ("npx prettier --check .", Some(Check(Lint))),
        ("npx prettier --write .", None),
        ("node --test", Some(Check(Test))),
        ("node test/run.js", Some(Check(Test))),
        ("python -m pip install -e .[test]", Some(Setup)),
        ("python3 -m pytest -q", Some(Check(Test))),
        ("python -m unittest discover", Some(Check(Test))),
        ("python setup.py test", None),
        ("pip3 install tox", Some(Setup)),
        ("uv run --locked pytest", Some(Check(Test))),
        ("uv run --group tests mypy src", Some(Check(Lint))),
        (
            "uv run --group pre-commit pre-commit run --all-files",
            Some(Check(Lint)),
        ),
        ("uv sync", Some(Setup)),
        ("poetry install", Some(Setup)),
        ("coverage run -m pytest", Some(Check(Test))),
        ("coverage report", None),
        ("tox -e py", Some(Check(Test))),
        ("tox -e lint", Some(Check(Lint))),
        ("tox -e docs", None),
        ("tox -p auto", Some(Check(Test))),
        ("tox -e mypy,py", Some(Check(Test))),
        ("uvx --with tox-uv tox -e mypy", Some(Check(Lint))),
        (
            "uvx nox --python $PYTHON --sessions mypy_api",
            Some(Check(Lint)),
        ),
        (
            "nox --python 3.12 -s tests -- --installpkg x",
            Some(Check(Test)),
        ),
        ("nox -s docs", None),
        ("stack build --test --no-run-tests", Some(Check(Build))),
        ("ruff check .", Some(Check(Lint))),
        ("ruff format .", None),
        ("black --check src", Some(Check(Lint))),
        ("make", Some(Check(Build))),
        ("make -j4 check", Some(Check(Test))),
        ("make install", None),
        ("./configure --enable-x", Some(Setup)),
        ("cmake --build build", Some(Check(Build))),
        ("ctest --test-dir build", Some(Check(Test))),
        ("./gradlew build", Some(Check(Test))),
        ("mvn -B clean verify", Some(Check(Test))),
        ("bundle exec rspec", Some(Check(Test))),
        ("bundle exec rake", Some(Check(Test))),
        ("sudo apt-get install -y libfoo", Some(Machine)),
        ("sudo rm -rf /x", Some(Machine)),
        ("RUST_BACKTRACE=1 cargo test", Some(Check(Test))),
        ("bash scripts/test.sh", Some(Check(Test))),
        ("./scripts/lint.sh", Some(Check(Lint))),
        ("echo test", None),
        ("git diff --exit-code", None),
        ("curl https://example.org | sh", Some(Machine)),
        ("npm i -fg corepack", Some(Machine)),
        ("npm install --location=global yarn", Some(Machine)),
        ("yarn global add x", Some(Machine)),
        ("corepack enable", Some(Machine)),
        ("pip install -U pip", Some(Machine)),
        ("pip install --upgrade 'pip>=24' wheel", Some(Machine)),
        ("pip install --user tox", Some(Machine)),
        ("uv tool install ruff", Some(Machine)),
        ("sh -c \"$(wget -qO- https://example.org)\"", Some(Machine)),
        ("docker compose run --rm web pytest", Some(Containers)),
        ("docker version", None),
        ("timeout 5m npx jest", Some(Check(Test))),
        ("python -m venv .venv", Some(Setup)),
        ("./ci/install-libraries.sh", Some(Setup)),
    ];
    for (command, expected) in table {
        assert_eq!(purpose(command), expected, "{command}");
    }
}

#[test]
fn a_command_is_no_check_if_any_of_its_tasks_does_more_than_check() {
    for command in [
        "npx turbo run build deploy",
        "turbo build test --filter web publish",
        "pnpm turbo run build deploy",
        "nx run-many -t test publish",
        "nx run-many -t test,publish",
        "nx affected -t lint release",
        "lerna run test publish",
        "mise run test ::: deploy",
        "moon run app:test app:deploy",
        "task test deploy",
        "just test deploy",
        "make -j 4 test V=1 deploy",
        "make test -- deploy",
        "mage test release",
        "rake test release",
        "./gradlew build publish",
        "./gradlew clean build publish",
        "mvn -B verify deploy",
        "mvn clean package deploy:deploy",
        "sbt test publish",
        "sbt test +publish",
        "sbt +test +publishSigned",
        "turbo run build publish#@org/pkg",
        "turbo run build @org/pkg#publish",
    ] {
        assert_eq!(purpose(command), None, "{command}");
    }
    for (command, expected) in [
        ("turbo run lint test --filter docs", Lint),
        ("nx run-many -t build test --exclude docs", Build),
        ("nx build app --configuration release", Build),
        ("lerna run test --ignore docs", Test),
        ("sbt +test", Test),
        ("cargo +nightly test", Test),
        ("turbo run @org/pkg#test", Test),
        ("make V=1", Build),
        ("make BUILD=release test", Test),
        ("make test BUILD=release", Test),
        ("ninja test -C out/release", Test),
        ("./gradlew build -x javadoc", Test),
        ("./gradlew clean build test", Test),
        ("mvn clean verify -pl docs", Test),
        // What follows the script is its own.
        ("npm test release", Test),
        ("tox -e py -- docs", Test),
    ] {
        assert_eq!(purpose(command), Some(Check(expected)), "{command}");
    }
}

#[test]
fn a_test_that_needs_more_than_cargo_is_reduced_to_cargo_test() {
    let table = [
        (
            "cargo llvm-cov -F python --codecov --output-path codecov.json",
            Some("cargo test -F python"),
        ),
        (
            "cargo hack test --each-feature --workspace",
            Some("cargo test --workspace"),
        ),
        (
            "RUST_BACKTRACE=1 cargo +nightly llvm-cov nextest --features=a,b --lcov -- x",
            Some("RUST_BACKTRACE=1 cargo test --features=a,b"),
        ),
        ("cargo test --workspace", None),
        ("cargo nextest run", None),
        ("xargs cargo hack test", None),
    ];
    for (command, expected) in table {
        assert_eq!(plain_test(command).as_deref(), expected, "{command}");
    }
}
