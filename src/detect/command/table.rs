//! The known programs and options.

use super::Purpose::{self, Check, Setup};
use crate::domain::checks::verdict::CheckKind::{Build, Lint, Test};
use Rule::{Args, Is, Named};

/// How a program's command is classified.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// It always has this purpose.
    Is(Purpose),
    /// By the first non-flag arguments, which have `|` between them, longest match first. Other commands are ignored.
    Args(&'static [(Purpose, &'static str)]),
    /// By the name of a task, which is the first argument that is neither a flag nor one of these words nor
    /// sets a variable.
    /// Without a name, the last value applies.
    Named(&'static str, Option<Purpose>),
}

/// The known programs, without directory, version and extension, with spaces between their names.
pub(super) const PROGRAMS: &[(&str, Rule)] = &[
    (
        "cargo",
        Args(&[
            (Check(Build), "build|check"),
            (Check(Test), "test|nextest run"),
            (Check(Lint), "clippy|fmt"),
            (Setup, "fetch"),
        ]),
    ),
    (
        "go",
        Args(&[
            (Check(Build), "build"),
            (Check(Test), "test"),
            (Check(Lint), "vet"),
            (Setup, "mod download|get"),
        ]),
    ),
    ("npm pnpm yarn bun", Named("run run-script", Some(Setup))),
    (
        "deno",
        Args(&[
            (Check(Test), "test|task test"),
            (Check(Lint), "lint|check|task lint"),
            (Check(Build), "task build"),
        ]),
    ),
    ("pip", Args(&[(Setup, "install")])),
    (
        "uv poetry pdm pipenv",
        Args(&[
            (Setup, "sync|install|pip install|pip sync|venv"),
            (Check(Build), "build"),
        ]),
    ),
    ("hatch", Args(&[(Check(Test), "test|run test|run cov")])),
    (
        "pytest py.test unittest nose2 jest vitest mocha ava tap tape c8 nyc ctest rspec phpunit bats",
        Is(Check(Test)),
    ),
    ("tox nox", Named("", Some(Check(Test)))),
    ("ruff", Args(&[(Check(Lint), "check|format")])),
    (
        "flake8 mypy black isort pylint pyright eslint prettier tsc xo standard biome golangci-lint gofmt staticcheck rubocop standardrb phpstan psalm phpcs shellcheck actionlint clang-format cppcheck",
        Is(Check(Lint)),
    ),
    ("pre-commit", Args(&[(Check(Lint), "run")])),
    (
        "make gmake just task ninja mage",
        Named("", Some(Check(Build))),
    ),
    (
        "turbo nx lerna mise moon",
        Named("run run-many affected", None),
    ),
    (
        "bazel bazelisk",
        Args(&[(Check(Build), "build"), (Check(Test), "test")]),
    ),
    ("rake", Named("", Some(Check(Test)))),
    ("cmake", Is(Check(Build))),
    (
        "meson",
        Args(&[(Check(Build), "setup|compile"), (Check(Test), "test")]),
    ),
    ("configure autoreconf autogen bootstrap", Is(Setup)),
    (
        "mvn mvnw",
        Args(&[
            (Check(Build), "compile|test-compile|clean compile"),
            (
                Check(Test),
                "test|package|verify|install|clean test|clean package|clean verify|clean install",
            ),
        ]),
    ),
    (
        "gradle gradlew",
        Args(&[
            (Check(Build), "assemble|compileJava"),
            (Check(Test), "build|check|test|clean build|clean test"),
        ]),
    ),
    (
        "dotnet",
        Args(&[
            (Setup, "restore"),
            (Check(Build), "build"),
            (Check(Test), "test"),
            (Check(Lint), "format"),
        ]),
    ),
    ("bundle", Args(&[(Setup, "install")])),
    ("composer", Named("run run-script", None)),
    (
        "mix",
        Args(&[
            (Setup, "deps.get"),
            (Check(Build), "compile"),
            (Check(Test), "test"),
            (Check(Lint), "format|credo"),
        ]),
    ),
    (
        "swift stack cabal zig gleam crystal",
        Args(&[(Check(Build), "build"), (Check(Test), "test")]),
    ),
    (
        "dune",
        Args(&[(Check(Build), "build"), (Check(Test), "runtest|test")]),
    ),
    (
        "sbt",
        Args(&[(Check(Build), "compile"), (Check(Test), "test")]),
    ),
];

/// Programs that run each task that their arguments name, not only the first.
pub(super) const TAKES_TASKS: &str =
    "make gmake just task ninja mage rake turbo nx lerna mise moon gradle gradlew mvn mvnw sbt";

/// Words in the names of tasks that are no checks: they publish, change files, do not end, or check
/// something else.
pub(super) const REFUSED: &str = "deploy publish release watch fix bench upload clean audit doc";

/// Words in the names of tasks and environments that read the code without running it.
pub(in crate::detect) const STATIC: &str = "lint style types typecheck type-check tsc clippy vet mypy pyright typing ruff flake8 black isort pre-commit pre_commit zizmor";

/// Programs that install for the machine or for the user, whatever their arguments are.
pub(super) const SYSTEM_INSTALLERS: &str = "apk apt apt-get asdf brew choco conda corepack dnf mamba microdnf nvm pacman pyenv rustup sdk snap winget yum
    zypper";

/// The packages by which pip installs others.
pub(super) const PIP_ITSELF: &str = "build pip setuptools twine wheel";

/// Programs that run containers.
pub(super) const CONTAINERS: &str = "docker docker-compose nerdctl podman podman-compose";

/// Programs that run the script in their first argument.
pub(super) const INTERPRETERS: &str = "sh bash python node ruby perl php";

/// Options of these after which no script comes.
pub(super) const RUNS_TEXT: &str = "-c -e -p -pe -v -V --eval --print --version";

/// Programs that rewrite files unless a flag makes them only check.
pub(super) const REWRITES: &[(&str, Option<&str>)] = &[
    ("cargo", Some("fmt")),
    ("ruff", Some("format")),
    ("dotnet", Some("format")),
    ("mix", Some("format")),
    ("black", None),
    ("isort", None),
    ("prettier", None),
    ("gofmt", None),
    ("clang-format", None),
];
pub(super) const ONLY_LOOKS: &str = "--check --check-only --check-formatted -c -l -d --diff --dry-run --list-different --verify-no-changes";

/// Options of programs that run tasks by name, each followed by the place where the task is, or by another
/// word that is no task.
pub(super) const PLACES: &[(&str, &str)] = &[
    ("npm", "-w --workspace --prefix -C"),
    ("pnpm", "-F --filter -C --dir"),
    ("yarn bun", "--cwd --filter"),
    ("make gmake", "-C --directory -f --file --makefile"),
    ("just", "-f --justfile -d --working-directory"),
    ("task", "-d --dir -t --taskfile"),
    ("ninja", "-C -f"),
    ("turbo", "-F --filter"),
    (
        "nx",
        "-p --project --projects --exclude -c --configuration --base --head",
    ),
    ("lerna", "--scope --ignore"),
    ("gradle gradlew", "-x --exclude-task -p --project-dir"),
    ("mvn mvnw", "-pl --projects -f --file"),
];

/// Beginnings of the flags with which test runners list or compile the tests and build tools show what they would do.
pub(super) const RUNS_NONE: &str =
    "--no-run --notest --collect-only --list --show-only --dry-run --just-print --recon
    -DskipTests -Dmaven.test.skip";

/// Arguments of single programs with the same effect.
pub(super) const RUNS_NONE_OF: &[(&str, &str)] = &[
    ("make gmake", "-n"),
    ("ctest", "-N"),
    ("tox", "-n"),
    ("go", "-run ^$"),
    ("go", "-run=^$"),
    ("go", "-bench"),
    ("go", "-bench=."),
    ("gradle gradlew", "-x test"),
    ("gradle gradlew", "-x check"),
    ("gradle gradlew", "--exclude-task test"),
];

/// Programs that build when they run no tests.
pub(super) const BUILDS: &str = "cargo gradle gradlew mvn mvnw stack";

/// The words of [`REFUSED`] that refuse a command that names other tasks too.
pub(super) const CHANGES_MORE: &str = "deploy publish release watch fix upload";

/// Options of `tox` and `nox` that are followed by the names of what to run.
pub(super) const ENVIRONMENTS: &str = "-e --env -s --session --sessions";
