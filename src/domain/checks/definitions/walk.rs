//! Follows the names in command lines through scripts, recipes and the scripts of a `package.json`.

use super::families::FAMILIES;
use super::shell::{self, Variables};
use super::table::{
    BEFORE_A_COMMAND, COMMAND_RUNNERS, ENVIRONMENTS, Family, INSTALLED, INTERPRETERS,
    PACKAGE_MANAGERS, PRODUCT_DIRECTORIES, REPORTING, RUNNERS, SCRIPT_RUNNERS, SHELLS, TEXT_TOOLS,
    USUAL_DIRECTORIES,
};
use super::{Definitions, Entry, Start, base, fits, joined, parent};
use crate::command_line::is_assignment;
use places::{Level, MAX_PLACES, distinct};
use std::collections::BTreeSet;
use words::{
    READERS, extension, has_expectations, installs, is_command_option, is_entry_point,
    is_expectation, is_limit, only_parses, option_configures, says_that_it_checks,
};

mod interpreters;
mod loaded;
mod make;
mod outside;
mod packages;
mod places;
mod settings;
mod task_files;
mod words;

/// The maximum depth to which scripts that name scripts are followed.
const MAX_DEPTH: u32 = 8;

/// The maximum number of links in a path.
const MAX_LINKS: u32 = 40;

/// Commands that print no place in a file.
const SILENT: &[&str] = &[
    ":", "[", "cp", "export", "mkdir", "mv", "rm", "set", "test", "touch", "true",
];

/// The definitions of these command lines.
pub(super) fn definitions<'a>(
    commands: impl IntoIterator<Item = &'a str>,
    start: &dyn Start,
) -> Definitions {
    let mut walk = Walk {
        start,
        found: Definitions::default(),
        configurations: BTreeSet::new(),
        seen: BTreeSet::new(),
        functions: BTreeSet::new(),
    };
    for command in commands {
        walk.shell(command, &Place::default());
    }
    walk.read_test_settings();
    walk.read_configurations();
    let functions = walk.functions;
    walk.found.programs.retain(|name| !functions.contains(name));
    walk.found
}

/// The families of a program, by their place in the table.
fn families_of(name: &str) -> impl Iterator<Item = usize> {
    let runs = |family: &Family| family.programs.iter().any(|program| fits(program, name));
    let all = FAMILIES.iter().enumerate();
    all.filter(move |(_, family)| runs(family))
        .map(|(at, _)| at)
}

/// The directory to which a command changes, empty if it is not said, and whether a word before it says that it may not
/// run: `then cd a`.
fn directory_entered(words: &[String]) -> Option<(&str, bool)> {
    let is_before = |word: &&String| BEFORE_A_COMMAND.contains(&word.as_str());
    let before = words.iter().take_while(is_before).count();
    let (command, rest) = words.get(before..)?.split_first()?;
    let is_change = ["cd", "popd", "pushd"].contains(&command.as_str());
    is_change.then(|| (rest.first().map_or("", String::as_str), before > 0))
}

/// Whether no other command depends on this one.
fn is_harmless(words: &[String]) -> bool {
    const HARMLESS: &[&str] = &[":", "echo", "export", "mkdir", "printf", "set", "shopt"];
    words
        .first()
        .is_some_and(|first| HARMLESS.contains(&first.as_str()))
        || words.iter().all(|word| is_assignment(word))
}

/// The directory in which a command runs, and the directory of the script that contains it.
#[derive(Debug, Clone, Default)]
struct Place {
    dir: String,
    script_dir: String,
    depth: u32,
    /// Whether a script of the work tree runs this command.
    in_script: bool,
    /// Whether another command judges what this command prints.
    is_judged: bool,
}

impl Place {
    fn below(&self, dir: String, script_dir: String) -> Self {
        Self {
            dir,
            script_dir,
            depth: self.depth + 1,
            in_script: self.in_script,
            is_judged: false,
        }
    }

    fn in_script(mut self) -> Self {
        self.in_script = true;
        self
    }
}

struct Walk<'a> {
    start: &'a dyn Start,
    found: Definitions,
    /// Configuration files that options name.
    configurations: BTreeSet<String>,
    /// Texts already followed, with their directory and whether a script runs them.
    seen: BTreeSet<(String, bool, String)>,
    /// Names of functions of the shell, which are no programs.
    functions: BTreeSet<String>,
}

impl Walk<'_> {
    fn shell(&mut self, text: &str, place: &Place) {
        if place.depth > MAX_DEPTH
            || !self
                .seen
                .insert((place.dir.clone(), place.in_script, text.to_owned()))
        {
            return;
        }
        self.functions.extend(shell::functions(text));
        let mut level = Level::at(vec![place.clone()]);
        // Those of the subshells around a command.
        let mut outside: Vec<Level> = Vec::new();
        let mut variables = Variables::default();
        for command in shell::simple_commands(text) {
            for _ in 0..command.ended {
                level = outside.pop().unwrap_or(level);
            }
            for _ in 0..command.begun {
                let inner = Level::at(level.places.clone());
                outside.push(std::mem::replace(&mut level, inner));
            }
            variables.set_by(&self.with_directories(&command.words, place));
            let mut all = variables.expanded(&command.words);
            all.truncate((MAX_PLACES / level.places.len().max(1)).max(1));
            self.simple(&all, command.is_judged, &mut level);
        }
    }

    /// Follows a command, with each value of its variables.
    fn simple(&mut self, all: &[Vec<String>], is_judged: bool, level: &mut Level) {
        let mut entered = Vec::new();
        let (mut changes, mut is_known) = (false, true);
        for here in &mut level.places {
            here.is_judged = is_judged;
            for words in all {
                let Some((dir, may_not_run)) = directory_entered(words) else {
                    self.command(words, here);
                    continue;
                };
                changes = true;
                is_known &= !may_not_run;
                let dir = match self.resolve(here, dir) {
                    Some((dir, Entry::Directory)) => dir,
                    // That of the script is the usual one: `cd "$(dirname "$0")"`.
                    _ => {
                        is_known = false;
                        here.script_dir.clone()
                    }
                };
                entered.push(Place {
                    dir,
                    ..here.clone()
                });
            }
        }
        level.is_at_start &= changes || all.iter().all(|words| is_harmless(words));
        if changes {
            let is_certain = level.is_at_start && is_known;
            entered.extend(level.places.drain(..).filter(|_| !is_certain));
            level.places = distinct(entered);
            if !is_certain {
                level.may_be_back();
            }
        }
    }

    fn command(&mut self, words: &[String], place: &Place) {
        if !words
            .first()
            .is_some_and(|word| SILENT.contains(&base(word)))
        {
            self.enters(&place.dir);
        }
        let ran_tests = self.found.runs_tests;
        self.follow(words, place);
        self.found.runs_tests = ran_tests || (self.found.runs_tests && !installs(words));
    }

    fn follow(&mut self, words: &[String], place: &Place) {
        let mut is_program = true;
        let is_read = words.iter().any(|word| READERS.contains(&base(word)));
        self.found.sets_path |= words.iter().any(|word| word.starts_with("PATH="));
        self.found.runs_environment |= words.iter().any(|word| word.contains("venv"));
        for (at, word) in words.iter().enumerate() {
            self.installed(place, word);
            let rest = words.get(at + 1..).unwrap_or_default();
            let name = base(word);
            let of_command = is_program;
            let is_prefix = BEFORE_A_COMMAND.contains(&name)
                || word.starts_with('-')
                || word
                    .chars()
                    .all(|c| c.is_ascii_digit() || "smhd.".contains(c))
                || is_assignment(word);
            is_program = is_program && is_prefix;
            if of_command && (word == "." || word == "source") {
                self.sourced(place, rest.first());
                continue;
            }
            if of_command && word.contains(char::is_whitespace) {
                self.shell(
                    word,
                    &place.below(place.dir.clone(), place.script_dir.clone()),
                );
                continue;
            }
            let known = self.program(name, rest, place);
            if of_command && !is_prefix {
                self.outside(word, rest, place);
            }
            match self.resolve(place, word) {
                Some((path, Entry::File { executable }))
                    if (of_command && (word.contains('/') || known))
                        || (executable && word.contains('/')) =>
                {
                    self.script(path, place);
                }
                Some((path, Entry::File { .. })) if is_read && is_expectation(word) => {
                    self.found.named.insert(path);
                }
                Some((path, Entry::Directory)) if is_read && has_expectations(&path) => {
                    self.found.tests.insert(path);
                }
                _ => {}
            }
        }
    }

    /// Records the programs that a package manager installed under this name, here or in a parent directory.
    /// They take precedence over the machine's programs when scripts of a package run or a virtual
    /// environment is active.
    fn installed(&mut self, place: &Place, word: &str) {
        if word.contains('/') || !word.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return;
        }
        let mut dir = place.dir.as_str();
        loop {
            for programs in INSTALLED {
                let path = format!("{programs}/{word}");
                if let Some((path, Entry::File { .. })) = self.resolve_from(dir, &path) {
                    self.found.installed.insert(path);
                }
            }
            if dir.is_empty() {
                return;
            }
            dir = parent(dir);
        }
    }

    /// Follows the known effects of a program's arguments; returns `false` for an unknown program.
    fn program(&mut self, name: &str, rest: &[String], place: &Place) -> bool {
        let known = self.family_of(name);
        self.found.runs_tests |= REPORTING.contains(&name);
        self.found.runs_environment |= ENVIRONMENTS.contains(&name);
        if only_parses(name, rest) {
            return true;
        }
        if SHELLS.contains(&name) {
            match rest.iter().position(|word| is_command_option(word)) {
                Some(at) => {
                    if let Some(text) = rest.get(at + 1) {
                        self.shell(text, &place.below(place.dir.clone(), place.dir.clone()));
                    }
                }
                None => self.script_of_shell(rest, place),
            }
        } else if PACKAGE_MANAGERS.contains(&name) {
            self.package_scripts(rest, place);
        } else if SCRIPT_RUNNERS.contains(&name) {
            for word in rest {
                let script = word
                    .trim_start_matches("npm:")
                    .trim_start_matches("npm run ");
                self.package_script(script, &place.dir, place);
            }
        } else if ["lerna", "nx", "turbo"].contains(&name) {
            self.scripts_of_workspace(rest, place);
        } else if ["make", "gmake", "bmake", "just"].contains(&name) {
            self.make(rest, place);
        }
        let texts = rest
            .iter()
            .filter(|word| word.contains(char::is_whitespace));
        for text in texts.filter(|_| COMMAND_RUNNERS.contains(&name)) {
            let here = place.below(place.dir.clone(), place.script_dir.clone());
            self.shell(text, &here);
        }
        self.task_files(name, place);
        if INTERPRETERS.iter().any(|pattern| fits(pattern, name)) {
            self.interpreter(name, rest, place);
        } else if known && !RUNNERS.contains(&name) {
            self.option_files(name, rest, place);
        }
        if RUNNERS.contains(&name) {
            self.runner(name, rest, place);
        }
        for (_, dir) in USUAL_DIRECTORIES.iter().filter(|(of, _)| *of == name) {
            self.found.tests.insert(joined(&place.dir, dir));
        }
        known || SHELLS.contains(&name)
    }

    fn family_of(&mut self, name: &str) -> bool {
        let found: Vec<usize> = families_of(name).collect();
        self.found.families.extend(&found);
        !found.is_empty()
    }

    /// Records the files that options of a program name. The options of another program that it runs are not its
    /// own.
    fn option_files(&mut self, program: &str, rest: &[String], place: &Place) {
        let is_unknown = families_of(program).next().is_none();
        let mut after_option = false;
        let mut configures = false;
        let mut option = "";
        for word in rest {
            let is_file = after_option && word.contains('.');
            if !is_file && families_of(base(word)).next().is_some() {
                return;
            }
            if word.starts_with('-') {
                option = word.split('=').next().unwrap_or_default();
            }
            configures = if after_option && !word.starts_with('-') {
                configures
            } else {
                word == "-c" || word.starts_with("--config")
            };
            let value = match word.strip_prefix('-') {
                Some(option) => option.split_once('=').map(|(_, value)| value),
                None if word.starts_with('@') => word.get(1..),
                None => after_option.then_some(word.as_str()),
            };
            // What is joined to an option is its value, and a file of options is no work.
            let is_value =
                word.starts_with(['-', '@']) && !is_unknown && !TEXT_TOOLS.contains(&program);
            after_option = word.starts_with('-');
            if let Some(value) =
                value.filter(|_| is_value || option_configures(program, option, is_unknown))
                && let Some((path, Entry::File { .. })) = self.resolve(place, value)
            {
                if configures {
                    self.configurations.insert(path.clone());
                }
                self.found.named.insert(path);
            } else if let Some(value) = value.filter(|_| option.ends_with("if-exists")) {
                self.may_exist(place, value);
            }
        }
    }

    /// Records the script that a shell runs. Of a pattern, all files are tests that fit and say that they check.
    fn script_of_shell(&mut self, rest: &[String], place: &Place) {
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-o" | "-O" | "+o" | "+O" => {
                    words.next();
                }
                word if word.starts_with(['-', '+']) => {}
                pattern if pattern.contains('*') => {
                    let path = joined(&place.dir, pattern.trim_start_matches("./"));
                    if says_that_it_checks(&path) {
                        self.found.test_paths.insert(path);
                    }
                    return;
                }
                _ => return self.script_at(place, Some(word)),
            }
        }
    }

    /// Records the arguments of a test runner: files and directories of tests, and configuration.
    fn runner(&mut self, name: &str, rest: &[String], place: &Place) {
        self.option_files(name, rest, place);
        self.texts_of_doctest(&rest.join(" "));
        for word in rest {
            let word = word
                .split_once('=')
                .filter(|_| word.starts_with('-'))
                .map_or(word.as_str(), |it| it.1)
                .split("::")
                .next()
                .unwrap_or_default();
            // Of a pattern, the directory that it searches.
            let plain = word.split(['*', '?', '[', '{']).next().unwrap_or_default();
            let word = if plain.len() == word.len() {
                word
            } else {
                parent(plain)
            };
            match self.resolve(place, word) {
                Some((path, Entry::Directory)) if !PRODUCT_DIRECTORIES.contains(&base(&path)) => {
                    self.found.tests.insert(path);
                }
                Some((path, Entry::File { .. })) => {
                    self.found.tests.insert(path);
                }
                _ => {}
            }
        }
    }

    /// Records a settings file, whose name starts with a dot and which affects every script that sources it.
    fn sourced(&mut self, place: &Place, word: Option<&String>) {
        match word.and_then(|word| self.resolve(place, word)) {
            Some((path, Entry::File { .. })) if base(&path).starts_with('.') => {
                self.found.named.insert(path);
            }
            Some(_) => self.script_at(place, word),
            None => self.may_exist(place, word.map_or("", String::as_str)),
        }
    }

    /// Records a file that is read if it exists, and that may be added.
    fn may_exist(&mut self, place: &Place, word: &str) {
        let word = word.trim_start_matches("./");
        if !word.is_empty()
            && !word.contains('$')
            && !word.starts_with(['/', '~', '-'])
            && !word.starts_with("..")
        {
            self.found.optional.insert(joined(&place.dir, word));
        }
    }

    fn script_at(&mut self, place: &Place, word: Option<&String>) {
        if let Some((path, Entry::File { .. })) = word.and_then(|word| self.resolve(place, word)) {
            self.script_in(path, place, true);
        }
    }

    fn script(&mut self, path: String, place: &Place) {
        self.script_in(path, place, false);
    }

    /// Records a script and what it runs.
    fn script_in(&mut self, path: String, place: &Place, is_shell: bool) {
        let is_work = place.in_script || place.is_judged || is_entry_point(&path);
        if is_work && !says_that_it_checks(&path) {
            return;
        }
        let is_new = self.found.named.insert(path.clone());
        if !is_new || place.depth > MAX_DEPTH {
            return;
        }
        let Some(text) = self.start.read(&path) else {
            return;
        };
        let first = text.lines().next().unwrap_or_default();
        let interpreter = first.strip_prefix("#!").unwrap_or_default();
        let of_shell = |word: &str| SHELLS.contains(&base(word));
        let ending = extension(&path);
        let here = place
            .below(place.dir.clone(), parent(&path).to_owned())
            .in_script();
        let is_shell =
            is_shell || interpreter.split_whitespace().any(of_shell) || SHELLS.contains(&ending);
        if is_shell {
            self.shell(&text, &here);
            return;
        }
        for word in interpreter.split_whitespace() {
            self.family_of(base(word));
        }
        let is_javascript = ["js", "cjs", "mjs", "ts"].contains(&ending);
        for word in shell::words(&text) {
            let name = base(word);
            if name.len() > 2 {
                self.family_of(name);
            }
            let extension = extension(name);
            if is_limit(word) {
                if let Some((path, Entry::File { .. })) = self.resolve(&here, word) {
                    self.found.named.insert(path);
                }
                continue;
            }
            if !word.contains('/') {
                continue;
            }
            if let Some((path, Entry::File { executable })) = self.resolve(&here, word)
                && (executable || SHELLS.contains(&extension))
            {
                self.script(path, &here);
            } else if is_javascript {
                self.module_of_checks(&here, word);
            }
        }
        self.loaded_by(&text, ending, &here);
    }

    /// The entry of the work tree that a word of a command names. Links on the way are recorded too.
    fn resolve(&mut self, place: &Place, word: &str) -> Option<(String, Entry)> {
        // A path after a variable is resolved at its most likely location.
        let word = match word.rfind(['$', '}', ')']) {
            Some(at) => word.get(at..)?.split_once('/')?.1,
            None => word,
        };
        let dirs = [&place.dir, &place.script_dir, &String::new()];
        if word.starts_with(['/', '~', '-']) || word.is_empty() {
            return None;
        }
        dirs.into_iter()
            .find_map(|dir| self.resolve_from(dir, word))
    }

    fn resolve_from(&mut self, dir: &str, word: &str) -> Option<(String, Entry)> {
        let mut todo: Vec<String> = [dir, word]
            .join("/")
            .split('/')
            .rev()
            .map(str::to_owned)
            .collect();
        let (mut path, mut entry) = (String::new(), Entry::Directory);
        let (mut links, mut passed) = (0, Vec::new());
        while let Some(name) = todo.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    if path.is_empty() {
                        return None;
                    }
                    path = parent(&path).to_owned();
                    entry = Entry::Directory;
                    continue;
                }
                _ => {}
            }
            let next = joined(&path, &name);
            match self.start.entry(&next)? {
                Entry::Link(target) => {
                    links += 1;
                    passed.push(next);
                    if links > MAX_LINKS {
                        return None;
                    }
                    if target.starts_with('/') {
                        self.found.named.extend(passed);
                        return None;
                    }
                    todo.extend(target.split('/').rev().map(str::to_owned));
                }
                found => {
                    path = next;
                    entry = found;
                }
            }
        }
        self.found.named.extend(passed);
        Some((path, entry))
    }
}
