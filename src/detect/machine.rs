//! The workflow steps that install on a runner what the checks need.

use super::{Found, Listing, rows};
use crate::domain::command_line::{CommandLine, Simple};
use crate::domain::text::has_word;
use std::collections::BTreeMap;

/// A row of [`ACTIONS`].
type ActionRow = (
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static str,
    Option<&'static str>,
);

/// The actions that install a language: its name, the action at a commit, the files with the version, the
/// default version, and an input that keeps the job from writing a cache that other workflows read.
const ACTIONS: [ActionRow; 3] = [
    (
        "python",
        "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
        &[".python-version"],
        "3.x",
        None,
    ),
    (
        "node",
        "actions/setup-node@820762786026740c76f36085b0efc47a31fe5020 # v7.0.0",
        &[".nvmrc", ".node-version"],
        "lts/*",
        Some("package-manager-cache: false"),
    ),
    (
        "go",
        "actions/setup-go@b7ad1dad31e06c5925ef5d2fc7ad053ef454303e # v7.0.0",
        &["go.mod"],
        "stable",
        Some("cache: false"),
    ),
];

/// Actions that install a language or a tool. Their steps are copied from the project's own CI, because no
/// default suits every project.
const COPIED: &str = "actions/setup-dotnet actions/setup-java arduino/setup-task astral-sh/setup-uv denoland/setup-deno
    erlef/setup-beam extractions/setup-just go-task/setup-task goto-bus-stop/setup-zig haskell-actions/setup
    jdx/mise-action mlugg/setup-zig ocaml/setup-ocaml oven-sh/setup-bun pnpm/action-setup ruby/setup-ruby
    shivammathur/setup-php swift-actions/setup-swift taiki-e/install-action";

/// Programs that a runner does not have: their names, the actions that may have installed each, the name of the
/// step that installs it otherwise, and its command.
const PROGRAMS: &str = "\
uv uvx | astral-sh/setup-uv | Install uv | pipx install uv
poetry |  | Install Poetry | pipx install poetry
pdm |  | Install PDM | pipx install pdm
hatch |  | Install Hatch | pipx install hatch
pnpm | pnpm/action-setup | Install pnpm | corepack enable
yarn |  | Install Yarn | corepack enable
bun bunx | oven-sh/setup-bun | Install Bun | npm install --global bun
deno | denoland/setup-deno | Install Deno | npm install --global deno
mix elixir | erlef/setup-beam | Install Elixir | sudo apt-get update && sudo apt-get install --yes elixir && mix local.hex --force && mix local.rebar --force
just | extractions/setup-just | Install just | pipx install rust-just
task | arduino/setup-task go-task/setup-task | Install Task | npm install --global @go-task/cli
meson |  | Install Meson | pipx install meson && pipx install ninja";

/// The version of a language that the project's CI uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// The literal version.
    pub number: Option<String>,
    /// The file with the version.
    pub file: Option<String>,
}

/// The step of a known action, as lines of YAML, or `None` if the action is unknown or an input depends on
/// the run. Inputs that keep a cache are left out: other workflows read it.
pub(super) fn setup_action(uses: &str, inputs: &[(&str, Option<String>)]) -> Option<String> {
    let action = uses.split('@').next().unwrap_or(uses);
    if !has_word(COPIED, action) || uses.contains(|c: char| c.is_whitespace() || c == '"') {
        return None;
    }
    let mut text = format!("- uses: {uses}");
    let mut is_first = true;
    for (name, value) in inputs {
        if name.split('-').any(|word| word.starts_with("cache")) {
            continue;
        }
        if std::mem::take(&mut is_first) {
            text += "\n  with:";
        }
        let value = serde_json::Value::from(value.as_deref()?.trim_end());
        text += &format!("\n    {name}: {value}");
    }
    Some(text)
}

/// What the workflows of the project, the proposed commands and the manifests say about the machine.
pub(super) struct Needs<'a> {
    /// The languages of the manifests.
    pub languages: &'a [&'a str],
    /// The versions of languages in the project's CI.
    pub versions: &'a BTreeMap<String, Version>,
    /// Steps with an action in the project's CI.
    pub actions: &'a [Found<String>],
    /// Commands in the project's CI that install something.
    pub machine: &'a [Found<String>],
    /// The proposed setup commands and checks.
    pub commands: &'a [&'a str],
}

/// The steps, each as lines of YAML without indentation.
pub(super) fn steps(files: &Listing, needs: &Needs<'_>) -> Vec<String> {
    let mut steps = Vec::new();
    for (language, action, version_files, otherwise, cache) in ACTIONS {
        if !needs.languages.contains(&language) && !needs.versions.contains_key(language) {
            continue;
        }
        let of_ci = needs.versions.get(language);
        let file = version_files.iter().find(|name| files.has(name));
        let file = file.copied().or(of_ci.and_then(|it| it.file.as_deref()));
        let number = of_ci.and_then(|it| it.number.as_deref());
        let version = match file {
            Some(file) => format!("{language}-version-file: {}", plain_or_quoted(file)),
            None => {
                let number = serde_json::Value::from(number.unwrap_or(otherwise));
                format!("{language}-version: {number}")
            }
        };
        let cache = cache.map_or(String::new(), |line| format!("\n    {line}"));
        steps.push(format!("- uses: {action}\n  with:\n    {version}{cache}"));
    }
    if needs.languages.contains(&"rust") {
        let run = if files.has_any(&["rust-toolchain.toml", "rust-toolchain"]) {
            "rustup toolchain install"
        } else {
            "rustup toolchain install stable --profile minimal --component rustfmt,clippy"
        };
        steps.push(step("Install Rust", run));
    }
    let is_used = |found: &&Found<String>| {
        let Some(program) = installed_program(&found.what) else {
            return true;
        };
        let call = program
            .strip_prefix("cargo-")
            .map_or_else(|| program.to_owned(), |name| format!("cargo {name}"));
        needs.commands.iter().any(|command| command.contains(&call))
    };
    for found in needs.actions.iter().filter(is_used) {
        steps.push(format!("# {}\n{}", found.from, found.what));
    }
    let installed = |action: &str| {
        let prefix = format!("- uses: {action}@");
        let mut found = needs.actions.iter();
        found.any(|it| it.what.starts_with(&prefix))
    };
    for [names, actions, title, run] in rows::<4>(PROGRAMS) {
        let is_called = needs.commands.iter().any(|command| calls(command, names));
        let has_setup = needs.commands.iter().any(|it| installs(it, names));
        if is_called && !actions.split_whitespace().any(installed) && !has_setup {
            steps.push(step(title, run));
        }
    }
    for found in needs.machine.iter().filter(is_used) {
        let run = as_root(&found.what);
        if rows::<4>(PROGRAMS).all(|[_, _, _, own]| own != run) {
            let run = serde_json::Value::from(run);
            steps.push(format!("# {}\n- run: {run}", found.from));
        }
    }
    steps
}

/// The program that Cargo or the action `install-action` installs. Many belong to steps that are not proposed.
fn installed_program(what: &str) -> Option<&str> {
    let by_action = what
        .contains("taiki-e/install-action@")
        .then(|| what.split_once("tool: \""))
        .flatten();
    if let Some((_, rest)) = by_action {
        return rest.split(['"', '@', ',']).next();
    }
    let arguments = what.strip_prefix("cargo install ")?;
    arguments
        .split_whitespace()
        .find(|word| !word.starts_with('-'))
}

/// Whether a command calls one of the programs.
fn calls(command: &str, names: &str) -> bool {
    let line = CommandLine::read(command);
    let mut programs = line.commands().filter_map(Simple::started);
    programs.any(|program| has_word(names, program.name()))
}

/// Whether a setup command installs one of the programs itself.
fn installs(command: &str, names: &str) -> bool {
    let mut words = command.split_whitespace();
    let is_installer = words.any(|word| word == "install");
    is_installer
        && words.any(|word| {
            let end = word.find(|c: char| "=<>~!@[".contains(c));
            has_word(names, &word[..end.unwrap_or(word.len())])
        })
}

/// A command of a package manager with the rights that a runner's user lacks.
fn as_root(command: &str) -> String {
    match command.split_whitespace().next() {
        Some("apt" | "apt-get") => format!("sudo {command}"),
        _ => command.to_owned(),
    }
}

/// A path as a YAML scalar.
fn plain_or_quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        serde_json::Value::from(path).to_string()
    }
}

fn step(name: &str, run: &str) -> String {
    format!("- name: {name}\n  run: {run}")
}
