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
        (".github/workflows/ci.yml", CI),
        (
            ".github/workflows/release.yml",
            "on: push\njobs: { a: { steps: [{ run: cargo test }] } }",
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
            "python -m pip install --upgrade pip",
            "pip install -e .[test]",
            "cd web && npm ci",
        ],
        &[
            "pytest: FOO='a b' pytest -q tests",
            "tox-test: tox -e 3.13",
            "npm-test: cd web && npm test",
            "lint: cd docs && make lint",
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
