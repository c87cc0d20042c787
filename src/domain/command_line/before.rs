//! The words that stand before a command.

use super::{CommandLine, Simple, entered, is_assignment, split};
use crate::text::{file_name, has_word};
use std::collections::BTreeSet;

/// A program that runs the program in its arguments.
struct Before {
    name: &'static str,
    /// The subcommands that do so, with `|` between them; empty if it always does.
    subcommands: &'static str,
    /// Options that are followed by a value.
    valued: &'static str,
    /// The number of arguments between the options and the program.
    skipped: usize,
    /// Whether it finds the program in another place than PATH, as package managers do.
    is_elsewhere: bool,
}

const fn on_path(name: &'static str, valued: &'static str, skipped: usize) -> Before {
    Before {
        name,
        subcommands: "",
        valued,
        skipped,
        is_elsewhere: false,
    }
}

const fn elsewhere(name: &'static str, subcommands: &'static str, valued: &'static str) -> Before {
    Before {
        name,
        subcommands,
        valued,
        skipped: 0,
        is_elsewhere: true,
    }
}

const UV: &str =
    "--group --only-group --no-group --extra --with --with-requirements --with-editable --from
    --package --python -p --directory --project --index --index-url --env-file";

const TABLE: &[Before] = &[
    on_path("env", "-C --chdir -u --unset -S", 0),
    on_path("timeout", "-k --kill-after -s --signal", 1),
    on_path("nice", "-n --adjustment", 0),
    on_path("ionice", "-c -n -p", 0),
    on_path("nohup", "", 0),
    on_path("setsid", "", 0),
    on_path("stdbuf", "-i -o -e", 0),
    on_path("time", "-f --format -o --output", 0),
    on_path("sudo", "-u --user -g --group -C -h -p", 0),
    on_path("doas", "-u -C", 0),
    on_path("exec", "-a", 0),
    on_path("command", "", 0),
    on_path("xvfb-run", "-s -n -e -f -p -w", 0),
    on_path("xargs", "-n -P -I -L -d -a -s -E", 0),
    on_path("flock", "-w -E -c", 1),
    on_path("cross-env", "", 0),
    on_path("retry", "-t -d", 0),
    elsewhere("npx", "", "-p --package -w --workspace"),
    elsewhere("pnpx", "", "-p --package"),
    elsewhere("bunx", "", "-p --package"),
    elsewhere("uvx", "", UV),
    elsewhere("uv", "run|tool run", UV),
    elsewhere("poetry", "run", "-C --directory -P --project"),
    elsewhere("pdm", "run", "-p --project --venv"),
    elsewhere("pipenv", "run", ""),
    elsewhere("rye", "run", ""),
    elsewhere("pixi", "run", "-e --environment"),
    elsewhere("pipx", "run", "--spec --python"),
    elsewhere("bundle", "exec", "--gemfile"),
    elsewhere("npm", "exec|x", "-w --workspace --prefix -C -p --package"),
    elsewhere("pnpm", "exec|dlx", "-C --dir -F --filter"),
    elsewhere("yarn", "exec|dlx", "--cwd"),
    elsewhere("bun", "x", "--cwd"),
    elsewhere(
        "coverage",
        "run",
        "--source --omit --include --rcfile --data-file",
    ),
    elsewhere("python", "-m", "-W -X"),
    elsewhere("mise", "exec|x", ""),
];

/// Options by which such a program changes to a directory first.
const CHANGES_TO: &str = "-C --chdir --cwd --dir --directory --prefix";

impl CommandLine {
    /// The one directory below the root from which all programs of the text name files. cargo names them from the
    /// root of its workspace, wherever it runs.
    pub fn only_directory(&self) -> Option<String> {
        const OF_THE_SHELL: &[&str] = &[
            ".", ":", "cd", "echo", "export", "popd", "pushd", "set", "source", "unset",
        ];
        let mut all = BTreeSet::new();
        for command in self.commands().filter(|command| !command.is_substitution) {
            let Some(program) = command.program() else {
                continue;
            };
            let here = command
                .directory
                .as_deref()
                .filter(|_| program.word != "cargo");
            if !OF_THE_SHELL.contains(&program.word) {
                all.insert(directory_of(here, program.arguments));
            }
        }
        let only = all.pop_first().flatten();
        only.filter(|directory| all.is_empty() && !directory.is_empty())
    }
}

/// The directory in which a program works that is started in `here`: the one that its own option names, if any.
fn directory_of(here: Option<&str>, arguments: &[String]) -> Option<String> {
    let mut pairs = arguments.windows(2);
    let option = pairs.find(|pair| has_word(CHANGES_TO, &pair[0]));
    match option {
        Some(pair) => entered(here, &pair[1]),
        None => here.map(str::to_owned),
    }
}

/// Finds the program behind the words before it, and notes what those set.
pub(super) fn strip(command: &mut Simple) {
    let mut at = 0;
    let mut is_started = false;
    while let Some((row, subcommand)) = row(&command.words[at..]) {
        let Some(next) = behind(command, row, at + 1, subcommand) else {
            break;
        };
        if row.is_elsewhere && !is_started {
            command.started = at;
            is_started = true;
        }
        at = next;
    }
    command.program = at;
    if !is_started {
        command.started = at;
    }
}

/// The row of the first word, and its subcommand.
fn row(words: &[String]) -> Option<(&'static Before, &'static str)> {
    let (first, rest) = words.split_first()?;
    let name = file_name(first);
    let name = if name.starts_with("python") {
        "python"
    } else {
        name
    };
    let row = TABLE.iter().find(|row| row.name == name)?;
    if row.subcommands.is_empty() {
        return Some((row, ""));
    }
    // Options may come before the subcommand: `npm --prefix web exec`.
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        let is_subcommand = |subcommand: &&str| {
            let parts = subcommand.split(' ');
            parts.zip(&rest[at..]).all(|(part, word)| part == word)
        };
        if let Some(subcommand) = row.subcommands.split('|').find(is_subcommand) {
            return Some((row, subcommand));
        }
        if !word.starts_with('-') {
            return None;
        }
        at += if has_word(row.valued, word) { 2 } else { 1 };
    }
    None
}

/// The position of the program behind the options, assignments and arguments of such a program.
fn behind(command: &mut Simple, row: &Before, from: usize, subcommand: &str) -> Option<usize> {
    let mut at = from;
    let mut subcommand = subcommand
        .split(' ')
        .filter(|part| !part.is_empty())
        .peekable();
    let mut skipped = row.skipped;
    let mut after_dashes = false;
    while let Some(word) = command.words.get(at).cloned() {
        let attached = word.strip_prefix("--").and(word.split_once('='));
        let option = attached.map_or(word.as_str(), |(option, _)| option);
        if subcommand.next_if(|part| *part == word).is_some() {
        } else if !after_dashes && word == "--" {
            after_dashes = true;
        } else if !after_dashes && word.starts_with('-') && word.len() > 1 {
            let is_valued = has_word(row.valued, option) && attached.is_none();
            let next = command.words.get(at + 1).map(String::as_str);
            let value = attached.map(|(_, value)| value).or(next);
            if has_word(CHANGES_TO, option) && has_word(row.valued, option) {
                let here = command.directory.as_deref();
                command.directory = value.and_then(|to| entered(here, to));
            }
            at += usize::from(is_valued);
        } else if is_assignment(&word) {
            command.assignments.extend(split(word));
        } else if skipped > 0 {
            skipped -= 1;
        } else {
            return Some(at);
        }
        at += 1;
    }
    None
}
