//! Python projects.

use super::{Listing, Toolchain};
use crate::domain::checks::verdict::CheckKind;

pub(super) fn project(files: &Listing) -> Option<Toolchain> {
    if !files.has_any(&[
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "tox.ini",
        "pytest.ini",
        "requirements.txt",
        "Pipfile",
    ]) {
        return None;
    }
    let manager = Manager::of(files);
    let mut found = Toolchain::default();
    found.setup.extend(manager.setup(files));
    if files.line_starts("pyproject.toml", "[tool.hatch.envs") && manager == Manager::Pip {
        found.setup.clear();
        found.check("hatch", CheckKind::Test, "hatch test");
    } else if uses_pytest(files) {
        found.check("python", CheckKind::Test, manager.run("pytest"));
    } else if files.line_starts("tox.ini", "[tox]") || files.line_starts("tox.ini", "[testenv]") {
        found.setup.clear();
        found.check("python", CheckKind::Test, "tox");
    } else if files.has_any(&["tests", "test"]) {
        let directory = if files.has("tests") { "tests" } else { "test" };
        found.check(
            "python",
            CheckKind::Test,
            manager.run(&format!("unittest discover -s {directory} -t .")),
        );
    }
    if uses_ruff(files) {
        found.check("python", CheckKind::Lint, manager.tool("ruff check"));
    }
    Some(found)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Uv,
    Poetry,
    Pdm,
    Pipenv,
    Pip,
}

impl Manager {
    fn of(files: &Listing) -> Self {
        if files.has("uv.lock") {
            Self::Uv
        } else if files.has("poetry.lock") || files.line_starts("pyproject.toml", "[tool.poetry]") {
            Self::Poetry
        } else if files.has("pdm.lock") {
            Self::Pdm
        } else if files.has("Pipfile") {
            Self::Pipenv
        } else {
            Self::Pip
        }
    }

    fn setup(self, files: &Listing) -> Vec<String> {
        let one = |command: &str| vec![command.to_owned()];
        match self {
            Self::Uv => one("uv sync --locked"),
            Self::Poetry => one("poetry install --no-interaction"),
            Self::Pdm => one("pdm install --frozen-lockfile"),
            Self::Pipenv if files.has("Pipfile.lock") => one("pipenv sync --dev"),
            Self::Pipenv => one("pipenv install --dev --skip-lock"),
            Self::Pip => pip_install(files).into_iter().collect(),
        }
    }

    /// The command that runs a module of Python in the project's environment.
    fn run(self, module: &str) -> String {
        match self {
            Self::Pip => format!("python3 -m {module}"),
            _ => format!("{} python -m {module}", self.prefix()),
        }
    }

    /// The command that runs a program in the project's environment.
    fn tool(self, program: &str) -> String {
        match self {
            Self::Pip => program.to_owned(),
            _ => format!("{} {program}", self.prefix()),
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Uv => "uv run --locked",
            Self::Poetry => "poetry run",
            Self::Pdm => "pdm run",
            Self::Pipenv => "pipenv run",
            Self::Pip => "",
        }
    }
}

/// One `pip install` of everything that the project lists, itself included.
fn pip_install(files: &Listing) -> Option<String> {
    let mut what: Vec<String> = ["requirements.txt", "requirements-dev.txt"]
        .into_iter()
        .filter(|name| files.has(name))
        .map(|name| format!("-r {name}"))
        .collect();
    if files.has("setup.py") || files.line_starts("pyproject.toml", "[project]") {
        what.push(match extra(files) {
            Some(extra) => format!("-e '.[{extra}]'"),
            None => "-e .".to_owned(),
        });
    }
    (!what.is_empty()).then(|| format!("python3 -m pip install {}", what.join(" ")))
}

/// The optional dependencies that tests need, by their usual names.
fn extra(files: &Listing) -> Option<&'static str> {
    let keys: Vec<&str> = files
        .read("pyproject.toml")
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[project.optional-dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .collect();
    ["test", "tests", "testing", "dev"]
        .into_iter()
        .find(|name| keys.contains(name))
}

fn uses_pytest(files: &Listing) -> bool {
    files.has_any(&["pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py"])
        || [
            "pyproject.toml",
            "setup.cfg",
            "setup.py",
            "tox.ini",
            "requirements.txt",
            "requirements-dev.txt",
            "Pipfile",
        ]
        .into_iter()
        .any(|name| files.read(name).contains("pytest"))
}

fn uses_ruff(files: &Listing) -> bool {
    files.has_any(&["ruff.toml", ".ruff.toml"]) || files.line_starts("pyproject.toml", "[tool.ruff")
}
