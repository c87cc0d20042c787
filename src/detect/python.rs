//! Python projects.

use super::{Found, Listing, TEST_DIRECTORIES, Toolchain, is_python_test};
use crate::domain::checks::verdict::CheckKind;
use crate::domain::command_line::{CommandLine, Program, Simple};

/// Files that indicate a Python project. The first one that exists is named as the source.
const SIGNS: &str = "pyproject.toml setup.py setup.cfg tox.ini pytest.ini
    requirements.txt requirements-dev.txt Pipfile conftest.py";

/// How the tests are run.
enum Tests {
    Hatch,
    /// A command without `python -m`, such as `tox`.
    Tox,
    /// A Python module with its arguments, and its package.
    Module(String, Option<&'static str>),
}

pub(super) fn project(files: &Listing) -> Option<Toolchain> {
    let sign = SIGNS.split_whitespace().find(|name| files.has(name));
    let from = match sign {
        Some(sign) => sign.to_owned(),
        None => files
            .ending(&[".py"])
            .find(|name| is_python_test(name))?
            .to_owned(),
    };
    let manager = Manager::of(files);
    let mut found = Toolchain::in_language(&from, "python");
    let install = manager.setup(files);
    let (tests, because) = match tests(files, manager) {
        Some((tests, because)) => (Some(tests), because),
        None => (None, String::new()),
    };
    let mut needs = Vec::new();
    match tests {
        Some(Tests::Hatch) => {
            found.check_from("python", CheckKind::Test, "hatch test", because);
            needs.push("hatch");
        }
        Some(Tests::Tox) => {
            found.check_from("python", CheckKind::Test, manager.run("tox -e py"), because);
            needs.push("tox");
        }
        Some(Tests::Module(module, package)) => {
            found.check_from("python", CheckKind::Test, manager.run(&module), because);
            needs.extend(package);
        }
        None => {}
    }
    // Tools with their own environments install the project there.
    let apart = matches!(needs.first(), Some(&"hatch" | &"tox"));
    match manager {
        Manager::Pip if apart => found.setup(format!("python3 -m pip install {}", needs.join(" "))),
        Manager::Pip => {
            needs.retain(|package| !is_installed(files, package));
            let what = pip_install(files).into_iter();
            let what: Vec<String> = what.chain(needs.iter().map(|&it| it.to_owned())).collect();
            if !what.is_empty() {
                found.setup(format!("python3 -m pip install {}", what.join(" ")));
            }
        }
        _ => install.into_iter().for_each(|command| found.setup(command)),
    }
    if uses_ruff(files) {
        if is_installed(files, "ruff") {
            found.check("python", CheckKind::Lint, manager.tool("ruff check"))
        } else {
            found.leave_out("ruff check: nothing in the project installs ruff")
        }
    }
    if manager == Manager::Pip && !found.setup.is_empty() {
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

/// The command with the programs of that environment.
pub(super) fn in_venv(command: &str) -> String {
    format!(". .venv/bin/activate && {command}")
}

/// A call of `tox` for all its environments, of which many need other versions of Python or have other business, as
/// a call for the tests with the Python that is there.
pub(super) fn of_one_environment(command: &str) -> String {
    let line = CommandLine::read(command);
    let names_one = |program: Program<'_>| {
        let options = ["-e", "--env", "-f", "-m", "-l", "--list"];
        let mut options = options.iter();
        options.any(|option| {
            program
                .arguments
                .iter()
                .any(|word| word.starts_with(option))
        })
    };
    let tox = line
        .commands()
        .filter_map(Simple::program)
        .find(|program| program.name() == "tox");
    let has_variable = line
        .commands()
        .any(|it| it.assignments.iter().any(|(name, _)| name == "TOXENV"));
    if has_variable || tox.is_none_or(names_one) {
        return command.to_owned();
    }
    let mut words: Vec<&str> = command.split(' ').collect();
    if let Some(at) = words
        .iter()
        .rposition(|word| *word == "tox" || word.ends_with("/tox"))
    {
        words.insert(at + 1, "-e py");
    }
    words.join(" ")
}

/// How the tests are run, and the reason for this choice. Hatch and tox's commands take precedence, then pytest
/// if a file indicates it, then the imports of the test files.
fn tests(files: &Listing, manager: Manager) -> Option<(Tests, String)> {
    let module = |module: &str, package| Tests::Module(module.to_owned(), package);
    if files.line_starts("pyproject.toml", "[tool.hatch.envs") && manager == Manager::Pip {
        return Some((
            Tests::Hatch,
            "pyproject.toml has environments of Hatch".into(),
        ));
    }
    if let Some(told) = tox_commands(files) {
        let because = "the commands of tox.ini".to_owned();
        return Some(match told.as_slice() {
            [one] if one.starts_with("pytest") || one.contains("-m pytest") => {
                (module("pytest", Some("pytest")), because)
            }
            [one] if is_plain_unittest(one) => {
                let at = one.find("unittest").unwrap_or(0);
                (module(&one[at..], None), because)
            }
            _ => (Tests::Tox, because),
        });
    }
    if let Some(sign) = pytest_sign(files) {
        return Some((
            module("pytest", Some("pytest")),
            format!("{sign} names pytest"),
        ));
    }
    if files.line_starts("tox.ini", "[tox]") {
        return Some((Tests::Tox, "tox.ini".into()));
    }
    of_test_files(files)
}

/// The commands of tox's main environment, one per line, or `None` without tox.
fn tox_commands(files: &Listing) -> Option<Vec<String>> {
    let lines = files.read("tox.ini").lines();
    let section: Vec<&str> = lines
        .skip_while(|line| line.trim() != "[testenv]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .collect();
    let at = section.iter().position(|line| {
        line.split_once('=')
            .is_some_and(|(key, _)| key.trim() == "commands")
    })?;
    let first = section[at].split_once('=').map_or("", |(_, rest)| rest);
    let rest = section[at + 1..]
        .iter()
        .take_while(|line| line.starts_with([' ', '\t']));
    let told = std::iter::once(first).chain(rest.copied()).map(str::trim);
    Some(
        told.filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(str::to_owned)
            .collect(),
    )
}

/// Whether a command calls unittest without tox substitutions.
fn is_plain_unittest(command: &str) -> bool {
    command.contains("-m unittest") && !command.contains(['{', '}', '&', ';', '|'])
}

/// The framework of the test files: unittest if one imports it and none imports pytest.
fn of_test_files(files: &Listing) -> Option<(Tests, String)> {
    let directory = TEST_DIRECTORIES.into_iter().find(|name| files.has(name));
    let start = directory.map_or(String::new(), |name| format!("{name}/"));
    let is_test = |name: &&str| {
        let name = name.strip_prefix(start.as_str());
        name.is_some_and(|name| !name.contains('/') && is_python_test(name))
    };
    let tests: Vec<&str> = files.below(&start).filter(is_test).collect();
    let imports = |name: &&str, module: &str| {
        let is_import = |line: &str| {
            let line = line.trim_start();
            line.starts_with(&format!("import {module}"))
                || line.starts_with(&format!("from {module}"))
        };
        files.read(name).lines().any(is_import)
    };
    let because = tests.first().map(|name| (*name).to_owned());
    let for_pytest = tests.iter().any(|name| imports(name, "pytest"));
    let for_unittest = tests.iter().any(|name| imports(name, "unittest"));
    if for_pytest || (!for_unittest && !tests.is_empty()) {
        let because = format!("{} is a test for pytest", because.unwrap_or_default());
        return Some((Tests::Module("pytest".into(), Some("pytest")), because));
    }
    let module = match directory {
        None if tests.is_empty() => return None,
        None => "unittest".to_owned(),
        Some(name) if tests.is_empty() || files.has(&format!("{name}/__init__.py")) => {
            format!("unittest discover -s {name} -t .")
        }
        Some(name) => format!("unittest discover -s {name}"),
    };
    let because = match (because, directory) {
        (Some(file), _) => format!("{file} imports unittest"),
        (None, directory) => format!("the directory {}", directory.unwrap_or_default()),
    };
    Some((Tests::Module(module, None), because))
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
            Self::Pip => Vec::new(),
        }
    }

    /// The command that runs a Python module in the project's environment.
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

/// All dependencies of the project and the project itself, as arguments of `pip install`.
fn pip_install(files: &Listing) -> Option<String> {
    let mut what: Vec<String> = ["requirements.txt", "requirements-dev.txt"]
        .into_iter()
        .filter(|name| files.has(name))
        .map(|name| format!("-r {name}"))
        .collect();
    what.extend(group(files).map(|group| format!("--group {group}")));
    if files.has("setup.py") || files.line_starts("pyproject.toml", "[project]") {
        what.push(match extra(files) {
            Some(extra) => format!("-e '.[{extra}]'"),
            None => "-e .".to_owned(),
        });
    }
    (!what.is_empty()).then(|| what.join(" "))
}

/// Whether the project installs a package: its name is quoted or at the start of a line, so that a table of
/// its settings does not count. For pip, only the installed extra counts.
fn is_installed(files: &Listing, package: &str) -> bool {
    let begins = |text: &str| {
        let text = text.trim_start().trim_start_matches(['"', '\'']);
        let rest = text.strip_prefix(package);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    };
    let listed = ["requirements.txt", "requirements-dev.txt", "Pipfile"];
    if listed
        .iter()
        .any(|name| files.read(name).lines().any(begins))
    {
        return true;
    }
    let text = files.read("pyproject.toml");
    if Manager::of(files) != Manager::Pip {
        return text.split([',', '[', '\n']).any(begins);
    }
    let list = |text: &str, key: &str| -> String {
        let start = |line: &&str| {
            line.split_once('=')
                .is_some_and(|(name, _)| name.trim() == key)
        };
        let lines: Vec<&str> = text.lines().skip_while(|line| !start(line)).collect();
        let rest = lines.join("\n");
        rest.split(']').next().unwrap_or_default().to_owned()
    };
    let extras = text
        .split("[project.optional-dependencies]")
        .nth(1)
        .unwrap_or("");
    let chosen = extra(files).map_or(String::new(), |extra| list(extras, extra));
    let groups = text.split("[dependency-groups]").nth(1).unwrap_or("");
    let grouped = group(files).map_or(String::new(), |group| list(groups, group));
    let own = list(text.split("[project]").nth(1).unwrap_or(""), "dependencies");
    [own, chosen, grouped]
        .iter()
        .any(|list| list.split([',', '[', '\n']).any(begins))
}

/// The extra with the test dependencies, by its usual names.
fn extra(files: &Listing) -> Option<&'static str> {
    test_key(files, "[project.optional-dependencies]")
}

/// The group of dependencies for the tests, by its usual names.
fn group(files: &Listing) -> Option<&'static str> {
    test_key(files, "[dependency-groups]")
}

fn test_key(files: &Listing, table: &str) -> Option<&'static str> {
    let keys: Vec<&str> = files
        .read("pyproject.toml")
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != table)
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| Some(line.split_once('=')?.0.trim()))
        .collect();
    ["test", "tests", "testing", "dev"]
        .into_iter()
        .find(|name| keys.contains(name))
}

/// The file which shows that the tests use pytest.
fn pytest_sign(files: &Listing) -> Option<&'static str> {
    let mut named = "pytest.ini .pytest.ini pytest.toml conftest.py".split(' ');
    let mut others =
        "pyproject.toml setup.cfg setup.py requirements.txt requirements-dev.txt Pipfile"
            .split(' ');
    named
        .find(|name| files.has(name))
        .or_else(|| others.find(|name| files.read(name).contains("pytest")))
}

fn uses_ruff(files: &Listing) -> bool {
    files.has_any(&["ruff.toml", ".ruff.toml"]) || files.line_starts("pyproject.toml", "[tool.ruff")
}
