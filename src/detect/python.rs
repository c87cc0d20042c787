//! Python projects.

use super::{Found, Listing, TEST_DIRECTORIES, Toolchain, is_python_test, rows};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::command_line::{CommandLine, Simple};
use toml::{Table, Value};

/// Files that indicate a Python project. The first one that exists is named as the source.
const SIGNS: &str = "pyproject.toml setup.py setup.cfg tox.ini pytest.ini
    requirements.txt requirements-dev.txt Pipfile conftest.py";

/// Managers of environments: the file that shows that one is used, its setup command, and the command that runs a
/// program in the environment.
const MANAGERS: &str = "\
uv.lock | uv sync --locked | uv run --locked
poetry.lock | poetry install --no-interaction | poetry run
[tool.poetry] | poetry install --no-interaction | poetry run
pdm.lock | pdm install --frozen-lockfile | pdm run
Pipfile.lock | pipenv sync --dev | pipenv run
Pipfile | pipenv install --dev --skip-lock | pipenv run";

/// Files with requirements that pip reads.
const REQUIREMENTS: [&str; 2] = ["requirements.txt", "requirements-dev.txt"];

/// How the tests are run.
struct Tests {
    /// The module of Python that runs them, with its arguments; or `hatch`, which is no module.
    run: String,
    /// The package that has it, which tox and Hatch install into environments of their own.
    package: Option<&'static str>,
    because: String,
}

pub(super) fn project(files: &Listing) -> Option<Toolchain> {
    let sign = SIGNS.split_whitespace().find(|name| files.has(name));
    let from = match sign {
        Some(sign) => sign,
        None => files.ending(&[".py"]).find(|name| is_python_test(name))?,
    };
    let pyproject: Table = toml::from_str(files.read("pyproject.toml")).unwrap_or_default();
    let is_there = |sign: &str| files.has(sign) || files.line_starts("pyproject.toml", sign);
    let manager = rows::<3>(MANAGERS).find(|[sign, ..]| is_there(sign));
    let mut found = Toolchain::in_language(from, "python");
    let tests = tests(files, manager.is_some());
    let installed = Installed::of(files, &pyproject, manager.is_some());
    if let Some(tests) = &tests {
        let run = match manager {
            Some([_, _, prefix]) => format!("{prefix} python -m {}", tests.run),
            None if tests.package == Some("hatch") => tests.run.clone(),
            None => format!("python3 -m {}", tests.run),
        };
        found.check_from("python", CheckKind::Test, run, tests.because.clone());
    }
    let package = tests.and_then(|tests| tests.package);
    if let Some([_, setup, _]) = manager {
        found.setup(setup);
    } else {
        let is_apart = matches!(package, Some("hatch" | "tox"));
        let missing = package.filter(|package| is_apart || !installed.has(package));
        let own = pip_install(files, &pyproject).filter(|_| !is_apart);
        let what: Vec<String> = own.into_iter().chain(missing.map(str::to_owned)).collect();
        if !what.is_empty() {
            found.setup(format!("python3 -m pip install {}", what.join(" ")));
        }
    }
    let has_settings = pyproject.get("tool").and_then(|tool| tool.get("ruff"));
    if has_settings.is_some() || files.has_any(&["ruff.toml", ".ruff.toml"]) {
        let prefix = manager.map_or(String::new(), |[_, _, prefix]| format!("{prefix} "));
        if installed.has("ruff") {
            found.check("python", CheckKind::Lint, format!("{prefix}ruff check"));
        } else {
            found.leave_out("ruff check: nothing in the project installs ruff");
        }
    }
    if manager.is_none() && !found.setup.is_empty() {
        for setup in &mut found.setup {
            setup.what = in_venv(&setup.what);
        }
        for command in &mut found.commands {
            command.run = in_venv(&command.run);
        }
        let (what, from) = (VENV.to_owned(), found.from.clone());
        found.setup.insert(0, Found { what, from });
    }
    Some(found)
}

/// Makes the environment into which pip installs: systems refuse to install beside their own packages (PEP 668), and
/// the machine's packages are not the project's to change. The environment hides itself from git.
pub(super) const VENV: &str = "python3 -m venv .venv && echo '*' > .venv/.gitignore";

/// Variables by which installers of Python write outside of the project's environment.
pub(super) const OUTSIDE: &str =
    "PIP_BREAK_SYSTEM_PACKAGES PIP_PREFIX PIP_TARGET PIP_USER UV_BREAK_SYSTEM_PACKAGES
    UV_SYSTEM_PYTHON UV_TARGET";

/// The command with the programs of that environment.
pub(super) fn in_venv(command: &str) -> String {
    format!(". .venv/bin/activate && {command}")
}

/// A call of `tox` for all its environments, of which many need other versions of Python or have other business, as
/// a call for the tests with the Python that is there.
pub(super) fn of_one_environment(command: &str) -> String {
    const CHOICES: [&str; 5] = ["-e", "--env", "-f", "-m", "-l"];
    let line = CommandLine::read(command);
    let is_of_all = |command: &Simple| {
        command.program().is_some_and(|program| {
            let mut arguments = program.arguments.iter();
            let is_choice = |word: &String| CHOICES.iter().any(|choice| word.starts_with(choice));
            program.name() == "tox" && !arguments.any(is_choice)
        }) && command.assignments.iter().all(|(name, _)| name != "TOXENV")
    };
    if !line.commands().any(is_of_all) {
        return command.to_owned();
    }
    let words = command
        .split(' ')
        .map(|word| match word.rsplit('/').next() {
            Some("tox") => format!("{word} -e py"),
            _ => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}

/// How the tests are run: by Hatch or tox if they are set up, by pytest if a file names it, otherwise as the test
/// files import.
fn tests(files: &Listing, has_manager: bool) -> Option<Tests> {
    let of = |run: &str, package, because: String| {
        Some(Tests {
            run: run.to_owned(),
            package,
            because,
        })
    };
    if files.line_starts("pyproject.toml", "[tool.hatch.envs") && !has_manager {
        let because = "pyproject.toml has environments of Hatch".to_owned();
        return of("hatch test", Some("hatch"), because);
    }
    let has_tox = ["[tox]", "[testenv]"]
        .iter()
        .any(|section| files.line_starts("tox.ini", section));
    let commands = files.read("tox.ini").contains("commands");
    if let Some(sign) = pytest_sign(files).filter(|sign| !commands || *sign == "tox.ini") {
        return of("pytest", Some("pytest"), format!("{sign} names pytest"));
    }
    if has_tox {
        return of("tox -e py", Some("tox"), "tox.ini".to_owned());
    }
    of_test_files(files)
}

/// The framework of the test files: unittest if one imports it and none imports pytest.
fn of_test_files(files: &Listing) -> Option<Tests> {
    let directory = TEST_DIRECTORIES.into_iter().find(|name| files.has(name));
    let start = directory.map_or(String::new(), |name| format!("{name}/"));
    let is_test = |name: &&str| {
        let name = name.strip_prefix(start.as_str());
        name.is_some_and(|name| !name.contains('/') && is_python_test(name))
    };
    let tests: Vec<&str> = files.below(&start).filter(is_test).collect();
    let imports = |module: &str| {
        let starts = ["import", "from"].map(|word| format!("{word} {module}"));
        let mut pairs = tests
            .iter()
            .flat_map(|name| starts.iter().map(move |start| (name, start)));
        pairs.any(|(name, start)| files.line_starts(name, start))
    };
    let first = tests.first();
    if let Some(first) = first.filter(|_| imports("pytest") || !imports("unittest")) {
        return Some(Tests {
            run: "pytest".to_owned(),
            package: Some("pytest"),
            because: format!("{first} is a test for pytest"),
        });
    }
    let run = match directory {
        None => first.map(|_| "unittest".to_owned())?,
        Some(name) if first.is_none() || files.has(&format!("{name}/__init__.py")) => {
            format!("unittest discover -s {name} -t .")
        }
        Some(name) => format!("unittest discover -s {name}"),
    };
    let because = match first {
        Some(file) => format!("{file} imports unittest"),
        None => format!("the directory {}", directory.unwrap_or_default()),
    };
    Some(Tests {
        run,
        package: None,
        because,
    })
}

/// All dependencies of the project and the project itself, as arguments of `pip install`.
fn pip_install(files: &Listing, pyproject: &Table) -> Option<String> {
    let listed = REQUIREMENTS.into_iter().filter(|name| files.has(name));
    let mut what: Vec<String> = listed.map(|name| format!("-r {name}")).collect();
    what.extend(group(pyproject).map(|(name, _)| format!("--group {name}")));
    if files.has("setup.py") || pyproject.contains_key("project") {
        what.push(match extra(pyproject) {
            Some((extra, _)) => format!("-e '.[{extra}]'"),
            None => "-e .".to_owned(),
        });
    }
    (!what.is_empty()).then(|| what.join(" "))
}

/// The requirements that the setup commands install.
struct Installed(Vec<String>);

impl Installed {
    /// Managers install everything that the project names; pip only the chosen extra and group.
    fn of(files: &Listing, pyproject: &Table, has_manager: bool) -> Self {
        let lines = REQUIREMENTS.into_iter().chain(["Pipfile"]);
        let lines = lines.flat_map(|name| files.read(name).lines());
        let mut all: Vec<String> = lines.map(str::to_owned).collect();
        if has_manager {
            let text = files.read("pyproject.toml").split([',', '[', '\n']);
            all.extend(text.map(|word| word.trim().trim_matches(['"', '\'']).to_owned()));
        }
        let project = pyproject.get("project");
        let own = project.and_then(|project| project.get("dependencies"));
        let chosen = [extra(pyproject), group(pyproject)];
        let lists = chosen.into_iter().flatten().map(|(_, list)| list);
        let entries = own.into_iter().chain(lists).filter_map(Value::as_array);
        all.extend(
            entries
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned),
        );
        Self(all)
    }

    fn has(&self, package: &str) -> bool {
        self.0.iter().any(|entry| {
            let rest = entry.trim_start().strip_prefix(package);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
        })
    }
}

/// The extra with the test dependencies.
fn extra(pyproject: &Table) -> Option<(&'static str, &Value)> {
    let project = pyproject.get("project")?;
    for_tests(project.get("optional-dependencies")?)
}

/// The group of dependencies for the tests.
fn group(pyproject: &Table) -> Option<(&'static str, &Value)> {
    for_tests(pyproject.get("dependency-groups")?)
}

/// What has one of the usual names for dependencies of the tests.
fn for_tests(lists: &Value) -> Option<(&'static str, &Value)> {
    let mut names = ["test", "tests", "testing", "dev"].into_iter();
    names.find_map(|name| Some((name, lists.get(name)?)))
}

/// The file which shows that the tests use pytest.
fn pytest_sign(files: &Listing) -> Option<&'static str> {
    let mut named = "pytest.ini .pytest.ini pytest.toml conftest.py".split(' ');
    let mut others =
        "tox.ini pyproject.toml setup.cfg setup.py requirements.txt requirements-dev.txt Pipfile"
            .split(' ');
    named
        .find(|name| files.has(name))
        .or_else(|| others.find(|name| files.read(name).contains("pytest")))
}
