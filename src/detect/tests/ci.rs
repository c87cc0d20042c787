use super::*;

const CI: &str = r#"
name: CI
on: { push: { branches: [main] }, pull_request: {} }
defaults: { run: { working-directory: . } }
jobs:
  test:
    runs-on: ubuntu-latest
    strategy: { matrix: { python: ["3.9", "3.10", "3.13"] } }
    steps:
      - uses: actions/checkout@v5
      - uses: actions/setup-python@v5
        with: { python-version: "${{ matrix.python }}" }
      - run: sudo apt-get install -y libfoo
      - run: |
          python -m pip install --upgrade pip
          pip install -e .[test]
      - name: Test
        env: { FOO: a b }
        run: pytest -q           tests
      - run: tox -e ${{ matrix.python }}
      - run: pytest --slow
        if: github.event_name == 'push'
      - run: |
          if [ -f x ]; then
            pytest x
          fi
      - run: echo pytest
      - working-directory: web
        run: npm ci && npm test
      - run: |
          cd docs
          make lint
  windows:
    runs-on: windows-latest
    steps: [{ run: pytest windows }]
  database:
    runs-on: ubuntu-latest
    services: { postgres: { image: postgres } }
    steps: [{ run: pytest database }]
"#;

#[test]
fn what_ci_runs_comes_before_any_guess() {
    let files = [
        ("pyproject.toml", "[project]\n[tool.hatch.envs.default]"),
        ("docs", ""),
        ("web", ""),
        (".github/workflows/ci.yml", CI),
        (
            ".github/workflows/release.yml",
            "on: { release: {} }\njobs: { a: { steps: [{ run: cargo test }] } }",
        ),
        (
            ".github/workflows/tag.yml",
            "on: { push: { tags: [v1] } }\njobs: { a: { steps: [{ run: go test }] } }",
        ),
    ]
    .map(|(path, text)| (path, text.replace("\\n", "\n")));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    proposes(
        &files,
        &[
            VENV,
            &in_venv("pip install -e .[test]"),
            &in_venv("cd web && npm ci"),
        ],
        &[
            &format!("pytest: {}", in_venv("FOO='a b' pytest -q tests")),
            &format!("tox-test: {}", in_venv("tox -e 3.13")),
            &format!("npm-test: {}", in_venv("cd web && npm test")),
            &format!("lint: {}", in_venv("cd docs && make lint")),
        ],
    );
    let proposal = propose(&listing(&files));
    assert_eq!(proposal.workflows, [".github/workflows/ci.yml"]);
    assert_eq!(proposal.checks[0].from, ".github/workflows/ci.yml:17");
    let left_out: Vec<&str> = proposal
        .left_out
        .iter()
        .map(|it| it.what.as_str())
        .collect();
    assert_eq!(
        left_out,
        [
            "pytest --slow: it runs on a condition",
            "if [ -f x ]; then …: it is a script of several lines; put it into a file and name that",
            "job database: it needs the service postgres",
        ]
    );
    let steps = proposal.steps.join("\n");
    assert!(steps.contains("python-version: \"3.13\""), "{steps}");
    assert!(
        steps.contains("run: \"sudo apt-get install -y libfoo\""),
        "{steps}"
    );
    assert_eq!(proposal.not_found, ["a command that builds the project"]);
}

/// In either order.
#[test]
fn a_command_that_also_measures_coverage_is_proposed_without() {
    let ci = |first: &str, second: &str| {
        format!("on: push\njobs: {{ a: {{ steps: [{{ run: {first} }}, {{ run: {second} }}] }} }}")
    };
    let (plain, with) = (
        "php vendor/bin/phpunit",
        "php vendor/bin/phpunit --coverage-clover out.xml",
    );
    for (first, second) in [(plain, with), (with, plain)] {
        let text = ci(first, second);
        let files = [(".github/workflows/ci.yml", text.as_str())];
        let proposal = propose(&listing(&files));
        let checks: Vec<&str> = proposal
            .checks
            .iter()
            .map(|it| it.what.run.as_str())
            .collect();
        assert_eq!(checks, [plain], "{first}");
        let left_out = &proposal.left_out[0].what;
        assert!(left_out.starts_with(with), "{left_out}");
    }
}

/// Variables and the main command of CI, and all that a run cannot do.
#[test]
fn the_gate_is_as_strong_as_the_one_of_ci_or_the_reason_is_named() {
    let build_deploy = r#"
on: [push]
env: { RUSTFLAGS: -D warnings, CARGO_TERM_COLOR: always, TOKEN: "${{ secrets.X }}", OTHER: "${{ github.actor }}" }
jobs:
  module:
    steps: [{ run: "mvn --batch-mode verify -pl core" }]
  build:
    env: { LEVEL: high }
    steps:
      - run: npm i -fg corepack && corepack enable
      - run: mvn --batch-mode verify ${{ matrix.extra || '' }}
      - run: $GITHUB_WORKSPACE/ci/lint.sh
      - run: bash "$GITHUB_WORKSPACE/lint.sh"
        working-directory: web
  web:
    steps:
      - run: docker compose up -d
      - run: npm run test:browser
  image:
    steps: [{ run: docker compose run --rm app pytest }]
  database:
    services: { postgres: { image: postgres } }
    steps: [{ run: go test ./db }]
  shared:
    uses: org/ci/.github/workflows/test.yml@v1
"#;
    let files = [
        ("pom.xml", ""),
        ("web", ""),
        (".github/workflows/build-deploy.yml", build_deploy),
    ];
    let found = propose(&listing(&files));
    let setup: Vec<&str> = found.setup.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(setup, Vec::<&str>::new());
    let runs: Vec<&str> = found.checks.iter().map(|it| it.what.run.as_str()).collect();
    assert_eq!(
        runs,
        [
            "RUSTFLAGS='-D warnings' LEVEL=high mvn --batch-mode verify ",
            "RUSTFLAGS='-D warnings' LEVEL=high $PWD/ci/lint.sh",
            "cd web && RUSTFLAGS='-D warnings' LEVEL=high bash \"$OLDPWD/lint.sh\""
        ]
        .map(str::trim)
    );
    let steps = found.steps.join("\n");
    assert!(steps.contains("npm i -fg corepack"), "{steps}");
    let left_out: Vec<&str> = found.left_out.iter().map(|it| it.what.as_str()).collect();
    for named in [
        "RUSTFLAGS='-D warnings' mvn --batch-mode verify -pl core: the job build runs all of it",
        "the variable OTHER: it depends on an expression of the workflow",
        "docker compose up -d: it needs containers, which the checks of a run cannot start",
        "npm run test:browser: it may need the containers of `docker compose up -d`",
        "docker compose run --rm app pytest: it needs containers, which the checks of a run cannot start",
        "job database: it needs the service postgres",
        "job shared: it is the workflow org/ci/.github/workflows/test.yml@v1 of another repository",
    ] {
        assert!(left_out.contains(&named), "{named}: {left_out:#?}");
    }
    assert_eq!(found.workflows, [".github/workflows/build-deploy.yml"]);
}

#[test]
fn the_rows_of_other_packages_are_named() {
    let text = "on: push\njobs:\n  a:\n    strategy: { matrix: { package: [core, web] } }\n    steps: [{ run: 'npm test -w ${{ matrix.package }}' }]\n";
    let found = propose(&listing(&[(".github/workflows/ci.yml", text)]));
    assert_eq!(found.checks[0].what.run, "npm test -w core");
    let told = "`npm test -w core` with web: only one row of matrix.package is taken";
    assert_eq!(found.left_out[0].what, told);
}

#[test]
fn another_target_is_named_and_a_value_of_other_rows_is_empty() {
    let text = "on: push\njobs:\n  a:\n    strategy: { matrix: { include: [{ rust: stable, features: x }, { rust: beta, args: y }] } }\n    steps:\n      - run: cargo test --features \"${{ matrix.features }}\" -- ${{ matrix.args }}\n      - run: cargo build --target wasm32-unknown-unknown\n";
    let found = propose(&listing(&[(".github/workflows/ci.yml", text)]));
    assert_eq!(found.checks[0].what.run, "cargo test --features \"\" -- y");
    let told = "cargo build --target wasm32-unknown-unknown: it needs another target or a nightly toolchain";
    assert_eq!(found.left_out[0].what, told);
}

/// What depends on a value that only a runner or another row has is left out and named, and never run without it.
#[test]
fn a_command_with_an_unknown_value_is_named_and_not_proposed() {
    let text = r#"
on: push
jobs:
  a:
    strategy:
      matrix:
        include:
          - { python: "3.13" }
          - { python: pypy-3.11, chost: arm }
    env: { CHOST: "${{ matrix.chost }}", LEVEL: "2" }
    steps:
      - run: $PYTHON -m pytest
      - run: |
          VER=$(cat VERSION)
          make check VERSION=$VER
      - run: |
          PKG=dist/typer*
          pip install $PKG
      - run: tox -e py${{ matrix.python }}
      - run: (cd docs && make lint)
      - run: make all
        if: runner.os == 'Linux'
      - run: make check-mac
        if: startsWith(matrix.os, 'macos')
      - run: make test-fork
        if: github.event.pull_request.head.repo.fork
"#;
    let found = propose(&listing(&[(".github/workflows/ci.yml", text)]));
    let setup: Vec<&str> = found.setup.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        setup,
        [
            VENV,
            &in_venv("export LEVEL=2 && export PKG='dist/typer*' && pip install $PKG"),
        ]
    );
    let runs: Vec<&str> = found.checks.iter().map(|it| it.what.run.as_str()).collect();
    assert_eq!(
        runs,
        [
            &in_venv("LEVEL=2 make all"),
            &in_venv("LEVEL=2 tox -e py3.13"),
            &in_venv("export LEVEL=2 && cd docs && make lint"),
        ]
    );
    let left_out: Vec<&str> = found.left_out.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(
        left_out,
        [
            "$PYTHON -m pytest: it needs the variable PYTHON, which is not known here",
            "make check VERSION=$VER: it needs a variable that its script computes",
            "make test-fork: it runs on a condition",
        ]
    );
}

/// What the manifest suggests of the same installation or linter is not told again.
#[test]
fn what_ci_installs_and_lints_is_proposed_once() {
    let workflow = "on: push\njobs:\n  t:\n    runs-on: ubuntu-latest\n    steps:\n      - run: pip install -e .[dev]\n      - run: ruff check .\n";
    let manifest =
        "[project]\nname = 'x'\n[project.optional-dependencies]\ndev = ['pytest']\n[tool.ruff]\n";
    let files = listing(&[
        (".github/workflows/ci.yml", workflow),
        ("pyproject.toml", manifest),
    ]);
    let proposal = propose(&files);
    let setup: Vec<&str> = proposal.setup.iter().map(|it| &*it.what).collect();
    assert_eq!(setup, [VENV, &in_venv("pip install -e .[dev]")]);
    assert_eq!(proposal.left_out, []);
    assert_eq!(proposal.checks.len(), 2);
}
