use super::*;

/// A workflow for every push with these jobs.
fn ci(jobs: &str) -> String {
    format!("on: push\njobs:\n{jobs}")
}

fn with_ci<'a>(
    files: &[(&'a str, &'a str)],
    workflow: &'a str,
) -> (Vec<String>, Vec<String>, Vec<String>, String) {
    let mut files = files.to_vec();
    files.push((".github/workflows/ci.yml", workflow));
    let (setup, checks) = proposal(&files);
    let proposal = propose(&listing(&files));
    let left_out = proposal.left_out.into_iter().map(|it| it.what).collect();
    (setup, checks, left_out, proposal.steps.join("\n"))
}

#[test]
fn a_row_of_the_matrix_fills_expressions_and_decides_conditions() {
    let workflow = ci(r#"
  test:
    runs-on: ${{ matrix.os }}
    strategy: { matrix: { python: ["pypy3.11", "3.9", "3.13", "3.14t"], os: [windows-latest, ubuntu-latest] } }
    env: { PYTHON: "${{ matrix.python }}", OTHER: x }
    steps:
      - run: sudo apt install gettext
        if: startsWith(matrix.os, 'ubuntu')
      - run: brew install gettext && make check-mac
        if: runner.os == 'macOS'
      - run: uvx --python ${{ matrix.python }} tox -e py
      - run: uvx nox --python $PYTHON -s lint
        continue-on-error: ${{ matrix.experimental }}
      - run: make test-slow
        if: github.event_name == 'push'
"#);
    let (setup, checks, left_out, steps) = with_ci(&[], &workflow);
    assert_eq!(setup, Vec::<String>::new());
    assert_eq!(
        checks,
        [
            "test: PYTHON=3.13 OTHER=x uvx --python 3.13 tox -e py",
            "lint: export PYTHON=3.13 && export OTHER=x && uvx nox --python $PYTHON -s lint"
        ]
    );
    assert_eq!(left_out, ["make test-slow: it runs on a condition"]);
    assert!(steps.contains("pipx install uv"), "{steps}");
    assert!(steps.contains("sudo apt install gettext"), "{steps}");
    let rows = ci(r"
  test:
    strategy:
      matrix:
        include:
          - { elixir: 1.14, otp: 24 }
          - { elixir: 1.18, otp: 27, lint: true }
    steps:
      - uses: erlef/setup-beam@v1
        with: { otp-version: '${{matrix.otp}}', elixir-version: '${{matrix.elixir}}', cache: true }
      - run: mix format --check-formatted
        if: ${{ matrix.lint }}
      - run: mix test
");
    let (setup, checks, _, steps) = with_ci(&[("mix.exs", "")], &rows);
    assert_eq!(setup, ["mix deps.get"]);
    assert_eq!(
        checks,
        ["test: mix test", "lint: mix format --check-formatted"]
    );
    assert!(
        steps.contains("- uses: erlef/setup-beam@v1\n  with:\n    otp-version: \"27\"\n    elixir-version: \"1.18\""),
        "{steps}"
    );
    assert!(
        !steps.contains("cache") && !steps.contains("apt-get"),
        "{steps}"
    );
}

#[test]
fn what_may_fail_in_ci_is_not_guessed_either() {
    let workflow = ci(r"
  lint:
    continue-on-error: true
    steps: [{ run: bundle exec rubocop }]
  test:
    steps: [{ run: ruby -Ilib exe/rake }]
");
    let gemfile = "gem 'rake'\ngem 'rubocop'\n";
    let files = [
        ("Gemfile", gemfile),
        ("Rakefile", ""),
        ("test", ""),
        (".rubocop.yml", ""),
    ];
    let (_, checks, left_out, _) = with_ci(&files, &workflow);
    assert_eq!(checks, ["test: bundle exec rake test"]);
    assert_eq!(left_out, ["bundle exec rubocop: it may fail"]);
    let (_, checks) = proposal(&files);
    assert_eq!(
        checks,
        ["test: bundle exec rake test", "lint: bundle exec rubocop"]
    );
}

#[test]
fn what_a_job_installs_counts_only_with_a_check_of_it() {
    let workflow = ci(r"
  test:
    steps:
      - run: |
          source <(cargo llvm-cov show-env --export-prefix)
          cargo llvm-cov clean --workspace
          uv sync --group dev
      - run: |
          source <(cargo llvm-cov show-env --export-prefix)
          uv run pytest
        env: { TOKEN: '${{ secrets.TOKEN }}' }
      - run: ./scripts/doctest.sh
  wheels:
    steps:
      - run: pip install twine
      - run: cargo install cross
  install-dev:
    steps:
      - run: uv pip install -e .[dev]
");
    let (setup, checks, _, steps) = with_ci(&[("pyproject.toml", "[project]")], &workflow);
    assert_eq!(setup, ["uv sync --group dev"]);
    assert_eq!(checks, ["test: uv run pytest"]);
    assert!(!steps.contains("cross"), "{steps}");
}

#[test]
fn one_job_is_enough_for_the_tests_of_one_tool() {
    let workflow = ci(r"
  node:
    steps:
      - run: npm ci
      - run: npm run test:cover
  deno:
    steps: [{ run: npm run test:deno }]
  web:
    steps: [{ run: npm test, working-directory: web }]
  fmt:
    steps: [{ run: npm run lint }]
  types:
    steps: [{ run: npm run typecheck }]
  valgrind:
    steps: [{ run: make test-valgrind }]
  minimal-versions:
    steps: [{ run: cargo check }]
  heads:
    continue-on-error: true
    steps: [{ run: make check-heads }]
  other:
    steps: [{ run: make check-other || echo ignored }]
  arm:
    runs-on: [self-hosted, ARM64]
    steps: [{ run: make check-arm }]
  i386:
    container: { image: i386/ubuntu }
    steps: [{ run: apt-get install -y gcc }, { run: make check-i386 }]
");
    let (_, checks, left_out, steps) = with_ci(&[("web", "")], &workflow);
    assert_eq!(
        checks,
        [
            "test-cover: npm run test:cover",
            "npm-test: cd web && npm test",
            "npm-lint: npm run lint",
            "typecheck: npm run typecheck"
        ]
    );
    assert_eq!(
        left_out,
        [
            "npm run test:deno: the job node has a test with npm",
            "job valgrind: by its name it is about valgrind",
            "job minimal-versions: by its name it is about minimal",
            "make check-heads: it may fail",
            "make check-other || echo ignored: it may fail",
            "job arm: it needs the project's own runner",
            "job i386: it runs in the container i386/ubuntu"
        ]
    );
    assert!(!steps.contains("apt-get"), "{steps}");
}

/// Compiling the tests, a type checker in tox, and a measure of coverage that needs another program.
#[test]
fn a_check_that_runs_no_test_is_no_test() {
    let workflow = ci(r"
  test:
    steps:
      - uses: taiki-e/install-action@v2
        with: { tool: cargo-hack }
      - run: cargo test --workspace --no-run
      - run: cargo hack test --each-feature --workspace
");
    let (_, checks, _, steps) = with_ci(&[("Cargo.toml", "[workspace]")], &workflow);
    assert!(!steps.contains("cargo-hack"), "{steps}");
    assert_eq!(
        checks,
        [
            "build: cargo test --workspace --no-run",
            "test: cargo test --workspace"
        ]
    );
    let workflow = ci("  types: { steps: [{ run: uvx tox -e mypy }] }\n");
    let files = [
        ("pyproject.toml", "[project]"),
        ("tox.ini", "[testenv]\ncommands = pytest\n"),
    ];
    let (setup, checks, ..) = with_ci(&files, &workflow);
    assert_eq!(
        setup,
        [
            VENV.to_owned(),
            in_venv("python3 -m pip install -e . pytest")
        ]
    );
    let test = format!("test: {}", in_venv("python3 -m pytest"));
    assert_eq!(checks, [test, "lint: uvx tox -e mypy".to_owned()]);
}

#[test]
fn dependencies_that_an_action_installs_have_a_setup_command() {
    let workflow = ci(r"
  test:
    steps:
      - uses: ruby/setup-ruby@v1
        with: { ruby-version: '3.4', bundler-cache: true }
      - run: bundle exec rake test
");
    let (setup, checks, _, steps) = with_ci(&[("gems.rb", "")], &workflow);
    assert_eq!(setup, ["bundle install"]);
    assert_eq!(checks, ["test: bundle exec rake test"]);
    assert_eq!(
        steps,
        "# .github/workflows/ci.yml:6\n- uses: ruby/setup-ruby@v1\n  with:\n    ruby-version: \"3.4\""
    );
}

#[test]
fn the_group_of_the_tests_is_installed() {
    proposes_in_venv(
        &[(
            "pyproject.toml",
            "[project]\nname = \"a\"\n[dependency-groups]\ntests = [\"pytest>=9\", \"anyio\"]\n",
        )],
        &["python3 -m pip install --group tests -e ."],
        &["test: python3 -m pytest"],
    );
}

#[test]
fn zig_and_cabal() {
    proposes(
        &[("build.zig", "const t = b.step(\"test\", \"Run\");")],
        &[],
        &["build: zig build", "test: zig build test"],
    );
    proposes(&[("build.zig", "")], &[], &["build: zig build"]);
    proposes(
        &[("a.cabal", "")],
        &["cabal update"],
        &[
            "build: cabal build all --enable-tests",
            "test: cabal test all",
        ],
    );
    proposes(
        &[("a.cabal", ""), ("stack.yaml", "")],
        &[],
        &[
            "build: stack build --test --no-run-tests",
            "test: stack test",
        ],
    );
}

#[test]
fn the_steps_of_the_projects_own_actions_count_as_those_of_the_job() {
    let workflow = ci(r#"
  test:
    strategy: { matrix: { node: [18, 22] } }
    steps:
      - uses: ./.github/actions/setup
        with: { node: "${{ matrix.node }}" }
      - run: pnpm test
  docs:
    steps:
      - uses: ./.github/actions/setup
        with: { node: 24 }
"#);
    let action = r#"
inputs: { node: { default: 20 }, flags: { default: --frozen-lockfile } }
runs:
  using: composite
  steps:
    - uses: pnpm/action-setup@v4
    - uses: actions/setup-node@v4
      with: { node-version: "${{ inputs.node }}" }
    - run: pnpm install ${{ inputs.flags }}
      shell: bash
    - run: pnpm run lint ${{ inputs.unknown }}
      shell: bash
"#;
    let files = [
        ("package.json", r#"{"scripts":{"test":"node --test"}}"#),
        (".github/actions/setup/action.yml", action),
    ];
    let (setup, checks, left_out, steps) = with_ci(&files, &workflow);
    assert_eq!(setup, ["pnpm install --frozen-lockfile"]);
    assert_eq!(checks, ["test: pnpm test"]);
    assert!(steps.contains("node-version: \"22\""), "{steps}");
    assert!(steps.contains("- uses: pnpm/action-setup@v4"), "{steps}");
    assert!(!steps.contains("corepack"), "{steps}");
    let because = "it depends on an expression of the workflow";
    let lint = format!("pnpm run lint ${{{{ inputs.unknown }}}}: {because}");
    assert_eq!(left_out, [lint]);
}

#[test]
fn the_condition_of_a_step_decides_about_the_action_that_it_uses() {
    let action = r#"
runs:
  using: composite
  steps:
    - uses: pnpm/action-setup@v4
    - run: pnpm install
      shell: bash
    - run: make check-action
      shell: bash
"#;
    let files = [(".github/actions/own/action.yml", action)];
    let job = |condition: &str| {
        ci(&format!(
            "
  test:
    runs-on: ${{{{ matrix.os }}}}
    strategy: {{ matrix: {{ os: [ubuntu-latest, macos-latest] }} }}
    steps:
      - uses: ./.github/actions/own
        if: {condition}
      - run: npm test
"
        ))
    };
    let because = "it runs on a condition";
    let on_condition = ["pnpm install", "make check-action"].map(|it| format!("{it}: {because}"));
    for (condition, setup, checks, left_out) in [
        (
            "matrix.os == 'ubuntu-latest'",
            &["pnpm install"][..],
            &["check-action: make check-action", "npm-test: npm test"][..],
            &[][..],
        ),
        ("matrix.os == 'macos-latest'", &[], &["test: npm test"], &[]),
        (
            "github.ref == 'refs/heads/main'",
            &[],
            &["test: npm test"],
            &on_condition,
        ),
    ] {
        let workflow = job(condition);
        let found = with_ci(&files, &workflow);
        assert_eq!(found.0, setup, "{condition}");
        assert_eq!(found.1, checks, "{condition}");
        assert_eq!(found.2, left_out, "{condition}");
        let is_copied = found.3.contains("pnpm/action-setup");
        assert_eq!(is_copied, !condition.contains("macos"), "{}", found.3);
    }
}

#[test]
fn a_language_of_the_job_is_installed_wherever_its_manifest_is() {
    let workflow = ci("
  web:
    defaults: { run: { working-directory: web } }
    steps:
      - uses: actions/setup-node@v4
        with: { node-version-file: web/.nvmrc }
      - run: npm test
  api:
    steps:
      - uses: actions/setup-go@v5
      - run: go test ./...
        working-directory: api
  docs:
    steps:
      - uses: actions/setup-python@v5
      - run: mkdocs build
");
    let (_, checks, _, steps) = with_ci(&[("api", ""), ("web", "")], &workflow);
    let wanted = [
        "npm-test: cd web && npm test",
        "go-test: cd api && go test ./...",
    ];
    assert_eq!(checks, wanted);
    assert!(steps.contains("node-version-file: web/.nvmrc"), "{steps}");
    assert!(steps.contains("go-version: \"stable\""), "{steps}");
    assert!(!steps.contains("setup-python"), "{steps}");
}

#[test]
fn a_job_that_runs_only_after_the_merge_is_no_check_of_a_change() {
    let pulls = "[push, pull_request, schedule]";
    for (on, condition, counts) in [
        (pulls, "github.ref == 'refs/heads/main'", false),
        (pulls, "startsWith(github.ref, 'refs/tags/v')", false),
        (pulls, "${{ github.event_name == 'schedule' }}", false),
        (pulls, "github.event_name != 'pull_request'", true),
        (
            pulls,
            "github.event_name == 'push' && github.repository == 'a/b'",
            true,
        ),
        (
            pulls,
            "github.ref_type == 'tag' || (github.event_name == 'schedule' && always())",
            false,
        ),
        (pulls, "${{ !(github.event_name == 'pull_request') }}", true),
        (pulls, "false", false),
        (pulls, "github.event_name == 'pull_request'", true),
        (pulls, "github.event_name != 'schedule'", true),
        (pulls, "${{ !startsWith(github.ref, 'refs/tags/') }}", true),
        (pulls, "github.repository == 'a/b'", true),
        (pulls, "needs.changes.outputs.rust == 'true'", true),
        (
            pulls,
            "!contains(github.event.head_commit.message, '[skip ci] || main')",
            true,
        ),
        (
            pulls,
            "github.event_name != 'pull_request' || github.event.pull_request.head.repo.full_name != github.repository",
            true,
        ),
        ("push", "github.event_name == 'push'", true),
        ("push", "github.ref != 'refs/heads/main'", true),
        ("push", "github.ref == 'refs/heads/develop'", false),
        ("push", "github.ref_name == 'main'", false),
        (
            "{ push: {}, workflow_call: {} }",
            "github.event_name == 'pull_request'",
            true,
        ),
        (
            "{ workflow_call: {} }",
            "github.event_name == 'schedule'",
            false,
        ),
        (
            "{ pull_request: { branches: [main] } }",
            "github.event_name == 'push'",
            true,
        ),
    ] {
        let condition = serde_json::Value::from(condition);
        let workflow = format!(
            "on: {on}\njobs:\n  it:\n    if: {condition}\n    steps:\n      - run: make test\n"
        );
        let (_, checks, left_out, _) = with_ci(&[], &workflow);
        let expected: &[&str] = if counts { &["test: make test"] } else { &[] };
        assert_eq!(checks, expected, "{on}: {condition}");
        let told = ["job it: it does not run for a change before its merge"];
        let told: &[&str] = if counts { &[] } else { &told };
        assert_eq!(left_out, told, "{on}: {condition}");
    }
}

#[test]
fn a_check_means_what_it_means_in_ci() {
    for (jobs, expected, left) in [
        // A negation belongs to the command.
        (
            "  a: { env: { A: 1 }, steps: [{ run: '! sh tests/failing.sh' }] }\n",
            &["test: export A=1 && ! sh tests/failing.sh"][..],
            &[][..],
        ),
        (
            "  a: { steps: [{ run: make test && ! make lint }] }\n",
            &["test: make test", "lint: ! make lint"],
            &[],
        ),
        // A row of `include` adds to the row that it agrees with.
        (
            "  a:\n    strategy: { matrix: { arch: [amd64], include: [{ arch: amd64, CC: gcc-9 }, { arch: arm, CC: x }] } }\n    steps: [{ run: 'make test CC=${{ matrix.CC }}' }]\n",
            &["test: make test CC=gcc-9"],
            &[],
        ),
        (
            "  a:\n    runs-on: ${{ matrix.os }}\n    strategy: { matrix: { include: [{ os: windows-2022 }] } }\n    steps: [{ run: make test }]\n",
            &[],
            &[],
        ),
        // Nothing is installed outside of the work tree.
        (
            "  a:\n    env: { UV_SYSTEM_PYTHON: 1 }\n    steps: [{ run: uv pip install -e . }, { run: UV_SYSTEM_PYTHON=1 uv run pytest }]\n",
            &["test: . .venv/bin/activate && uv run pytest"],
            &[],
        ),
        (
            "  a: { steps: [{ run: make test, working-directory: old }] }\n",
            &[],
            &["make test: the repository has no directory old"],
        ),
        (
            "  a: { steps: [{ run: cmake -B out && cd out && ctest }] }\n",
            &["build: cmake -B out", "test: cd out && ctest"],
            &[],
        ),
        (
            "  a: { steps: [{ uses: github/codeql-action/init@v3 }, { run: cmake -B build }] }\n",
            &[],
            &["job a: it builds for CodeQL"],
        ),
        (
            "  a: { env: { PYTHON: '${{ fromJson(x) }}' }, steps: [{ run: tox run -e $PYTHON-tests }] }\n",
            &[],
            &[
                "the variable PYTHON: it depends on an expression of the workflow",
                "tox run -e $PYTHON-tests: it needs the variable PYTHON, which is not known here",
            ],
        ),
        (
            "  a: { env: { CARGO: cargo, FLAGS: }, steps: [{ run: '${{ env.CARGO }} test ${{ env.FLAGS }}' }] }\n",
            &["test: CARGO=cargo FLAGS='' cargo test"],
            &[],
        ),
        (
            "  b: { steps: [{ run: mvn clean test --projects gson }] }\n  a: { steps: [{ run: mvn verify javadoc:jar }] }\n",
            &["test: mvn verify javadoc:jar"],
            &["mvn clean test --projects gson: the job a runs all of it"],
        ),
    ] {
        let workflow = ci(jobs);
        let (setup, checks, left_out, _) = with_ci(&[], &workflow);
        assert_eq!(checks, expected, "{jobs}");
        assert_eq!(left_out, left, "{jobs}");
        assert!(setup.iter().all(|it| !it.contains("SYSTEM")), "{setup:?}");
    }
}

#[test]
fn the_tests_of_a_workflow_for_linters_come_last() {
    let linters =
        "on: push\njobs: { a: { steps: [{ run: tox -e flake8 }, { run: tox -e apicheck }] } }";
    let package = "on: push\njobs: { b: { steps: [{ run: tox -e py-unit }] } }";
    let files = [
        (".github/workflows/linter.yml", linters),
        (".github/workflows/python-package.yml", package),
    ];
    let (_, checks) = proposal(&files);
    assert_eq!(checks, ["test: tox -e py-unit", "lint: tox -e flake8"]);
}
