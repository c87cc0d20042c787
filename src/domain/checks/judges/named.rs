//! What the command lines of checks name: the programs of the work tree that they run, directly, by a recipe or by a
//! script of a package, and the directories in which they run.

mod configured;

use super::imports::importers;
use super::makefile::{OTHER_GOALS, recipes_of};
use super::start::Start;
use crate::checks::tests_changed::is_test;
use crate::command_line::{After, CommandLine, Simple, entered};
use crate::pattern::Pattern;
use crate::text::{file_ending, file_name, has_word};
use globset::Glob;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What the command lines of a set of checks name.
#[derive(Debug, Default)]
pub struct Named {
    /// Programs and scripts of the work tree that the checks run, and the files that options give to programs.
    pub programs: BTreeSet<String>,
    /// Directories below the top of the work tree in which commands run.
    pub directories: BTreeSet<String>,
    /// The words of all commands, among them the names of the programs.
    pub words: BTreeSet<String>,
    /// Whether a command runs a test runner that reports a result whenever its tests end.
    pub runs_tests: bool,
    /// What make would make if it did not exist.
    pub goals: BTreeSet<String>,
    /// Whether a command asks git if anything differs from the last commit.
    asks_if_changed: bool,
    /// Whether a command works on what git says that differs from the last commit.
    takes_changes: bool,
    /// Directories and files that test runners get.
    tests: BTreeSet<String>,
    /// Globs of texts with examples that a test runner tries.
    examples: BTreeSet<String>,
}

/// Programs that run the file after them.
static INTERPRETER: Pattern = Pattern::new(
    r"^(?:\.|source|(?:ba|da|k|z)?sh|python[\d.]*|pypy\d?|node|nodejs|ruby|perl|php|lua|deno|bun|tsx|ts-node|Rscript|julia|pwsh|run)$",
);

/// Programs that run the file after their option `-f`.
const FILTERS: &str = "awk gawk jq mawk sed";

/// Test runners that report a result whenever their tests end.
const REPORTING: &str = "bats jest mocha phpunit py.test pytest rspec vitest";

/// Words of a command that installs or finds what it names.
const INSTALLING: &str = "add echo i install printf require sync type which -v -V";

/// Programs that judge their input.
const JUDGES: &str = "cmp comm diff egrep fgrep grep";

/// Commands that judge the output of others which their words name.
const COMPARING: &str = "[ [[ case cmp comm diff test";

/// Options whose value is a directory that the program enters.
const ENTERING: &str = "-C --directory --prefix --workspace -w";

/// Programs that run the scripts of packages.
const OF_PACKAGES: &str = "npm npx pnpm yarn bun turbo lerna nx run-s run-p npm-run-all";

/// Linters and compilers, whose arguments are no tests.
static JUDGING: Pattern = Pattern::new(
    r"^(?:eslint|mypy|pyright|ruff|flake8|pylint|tsc|prettier|biome|(?:g|c)?cc|[gc]\+\+|clang(?:\+\+)?|rubocop|shellcheck)$",
);

/// How programs in other languages than the shell ask git whether anything has changed.
static ASKS_GIT: Pattern = Pattern::new(r#"\bgit['",\s]+status\b"#);

/// How they ask for the changes.
static TAKES_FROM_GIT: Pattern = Pattern::new(r#"\bgit['",\s]+(?:diff|log|merge-base)\b"#);

/// Options whose value configures the program.
static CONFIGURES: Pattern = Pattern::new(
    r"^(?:-[cfpr]|--?(?:config\S*|file|import|include|library|patch|plugin|preset|project|require|rcfile|rules\w*|schema|settings|setup\w*|sp|test-name-pattern))$",
);

/// Words of a path that say that it checks, whoever runs it.
static CHECKS: Pattern = Pattern::new(
    r"(?i)(?:^|[^a-z0-9])(?:acceptance|assert(?:ions)?|checks?|ci|conformance|e2e|gate|gradlew|harness|helpers?|integration|judge|lint|mvnw|qa|regression|scripts?|smoke|specs?|suite|test(?:s|ing)?|tools|validate|verify)(?:[^a-z0-9]|$)",
);

/// Stems of files that start the work itself.
static ENTRY_POINT: Pattern = Pattern::new(r"(?:^|/)(?:__main__|cli|index|main|server)\.\w+$");

/// Files that start the directory that an interpreter gets.
const STARTS: [&str; 3] = ["__main__.py", "index.js", "index.ts"];

/// Directories in which the work lies, whatever gets them.
static PRODUCT: Pattern = Pattern::new(r"(?:^|/)(?:app|lib|src|packages|crates|cmd|internal|pkg)$");

/// The greatest depth to which scripts that name scripts are followed.
const MAX_DEPTH: u32 = 5;

impl Named {
    /// What these command lines name.
    pub fn of<'c>(commands: impl IntoIterator<Item = &'c str>, start: &dyn Start) -> Self {
        let mut walk = Walk {
            start,
            found: Self::default(),
            seen: BTreeSet::new(),
        };
        for command in commands {
            walk.shell(command, "", &Place::default());
        }
        walk.configured();
        if walk.found.words.contains("cargo") {
            walk.dev_dependencies();
        }
        walk.found
    }

    /// Whether a path is a test because a runner gets it, or a directory around it.
    pub fn is_test(&self, path: &str) -> bool {
        let mut around = Path::new(path).ancestors().filter_map(Path::to_str);
        around.any(|path| self.tests.contains(path))
    }

    /// Whether a test runner tries the examples in a text.
    pub fn is_example(&self, path: &str) -> bool {
        let mut globs = self.examples.iter().filter_map(|glob| Glob::new(glob).ok());
        globs.any(|glob| glob.compile_matcher().is_match(path))
    }

    /// Whether the checks run a file, or a package around it.
    pub fn runs(&self, path: &str) -> bool {
        let mut around = Path::new(path).ancestors().filter_map(Path::to_str);
        around.any(|path| self.programs.contains(path))
    }

    /// Whether the checks must see the work as the last commit: they only ask whether anything differs from it.
    pub fn needs_commit(&self) -> bool {
        self.asks_if_changed && !self.takes_changes
    }

    /// Whether a linter leaves out what git ignores.
    pub fn obeys_gitignore(&self) -> bool {
        const LINTERS: &str = "biome black oxlint prettier ruff typos";
        self.words.iter().any(|word| has_word(LINTERS, word))
    }

    /// Whether a program in a virtual environment of the work tree comes before those of the machine.
    pub fn uses_environment(&self) -> bool {
        const PROGRAMS: &str = "hatch nox pdm pipenv poetry tox uv";
        let mut words = self.words.iter();
        words.any(|word| word.contains("venv") || has_word(PROGRAMS, word))
    }
}

/// Where a command is.
#[derive(Debug, Clone, Default)]
struct Place {
    depth: u32,
    /// Whether a script of the work tree runs it: then only what says that it checks does.
    in_script: bool,
    /// The directory of that script.
    script_dir: String,
    /// Whether another command judges what the commands print: `x | grep y`, `[ "$(x)" = y ]`.
    is_judged: bool,
}

struct Walk<'s> {
    start: &'s dyn Start,
    found: Named,
    seen: BTreeSet<(String, String)>,
}

impl Walk<'_> {
    /// Follows the commands of a text that runs in a directory. Each may also run where one before it went.
    fn shell(&mut self, text: &str, dir: &str, place: &Place) {
        if place.depth > MAX_DEPTH || !self.seen.insert((dir.to_owned(), text.to_owned())) {
            return;
        }
        let mut dirs = vec![dir.to_owned()];
        self.found.asks_if_changed |= ASKS_GIT.is_match(text);
        let line = CommandLine::read(text);
        if line.not_understood.contains("a here-document") {
            // A shell may get it.
            self.shell(&text.replace("<<", " "), dir, place);
        }
        let commands: Vec<&Simple> = line.commands().collect();
        for (at, command) in commands.iter().enumerate() {
            if let [first, _, of, values @ ..] = &command.words[..]
                && (first == "for" && of == "in")
            {
                // A loop over directories enters each of them.
                dirs.extend(
                    values
                        .iter()
                        .flat_map(|word| self.directories_at(dir, word)),
                );
            }
            let after = &commands[at + 1..];
            self.git(command, after, dir);
            let place = Place {
                is_judged: place.is_judged || is_judged(command, after),
                ..place.clone()
            };
            self.command(command, &mut dirs, &place);
        }
    }

    /// Notes what a command asks git about changes.
    fn git(&mut self, command: &Simple, after: &[&Simple], dir: &str) {
        let Some(program) = command.program().filter(|program| program.name() == "git") else {
            return;
        };
        let words = program.arguments.iter();
        let has = |list: &str| words.clone().any(|word| has_word(list, word));
        // Other revisions than HEAD may have its tree, too.
        const KNOWN: &str = "diff diff-index diff-tree log HEAD @ .";
        let is_other = |word: &String| {
            let path = entered(Some(dir), word).unwrap_or_default();
            let is_path = self.start.is_file(&path) || self.start.is_directory(&path);
            !(word.starts_with('-') || has_word(KNOWN, word) || is_path)
        };
        let named = words
            .clone()
            .skip_while(|word| word.starts_with('-') || word.contains('='));
        let mut named = named.take_while(|word| *word != "--");
        let compares = has("diff diff-index diff-tree log");
        let is_taken = piped(after).any(|other| other.has_before("xargs"));
        let to_head = has("HEAD @ --cached --staged diff-index");
        let decides = has("--quiet --exit-code --shortstat");
        let is_stash = has("stash") && has("create");
        self.found.asks_if_changed |=
            has("status --dirty") || is_stash || compares && to_head && decides;
        self.found.takes_changes |=
            compares && (named.any(is_other) || to_head && !decides) || is_taken;
    }

    fn command(&mut self, command: &Simple, dirs: &mut Vec<String>, place: &Place) {
        let own = command.assignments.iter().skip(command.exported);
        let mut words: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        words.extend(command.words.iter().chain(&command.files).cloned());
        let program = command.program();
        let behind = program.map_or(0, |it| it.arguments.len()) + command.files.len();
        let has = |list: &str| words.iter().any(|word| has_word(list, word));
        let runs = |list: &str| words.iter().any(|word| has_word(list, file_name(word)));
        let judges = words.iter().any(|word| JUDGING.is_match(file_name(word)));
        let reports = runs(REPORTING) || has("--test");
        let starts = reports || runs("unittest prove nose2 behave");
        let is_runner = starts && !has(INSTALLING) && !judges;
        let only_parses = has("-n -en --check -l py_compile");
        let runs_package = has("cargo") && has("run") && !place.is_judged;
        self.found.runs_tests |= is_runner && reports;
        let (mut before, mut option) = ("", "");
        for (at, word) in words.iter().enumerate() {
            if word.contains(char::is_whitespace) {
                let inner = Place {
                    depth: place.depth + 1,
                    is_judged: place.is_judged || compares(command),
                    ..place.clone()
                };
                for dir in dirs.clone() {
                    self.shell(word, &dir, &inner);
                }
                continue;
            }
            self.found.words.insert(word.clone());
            if let Some(glob) = word.strip_prefix("--doctest-glob=") {
                self.found.examples.insert(format!("**/{glob}"));
            }
            if word.starts_with('-') && !word.contains('=') {
                option = word;
                // `make -Cweb`, `perl -MGate`
                if let Some(dir) = word.strip_prefix("-C").filter(|dir| !dir.is_empty()) {
                    dirs.extend(self.directories_at(&dirs[0].clone(), dir));
                } else if let Some(module) = word.strip_prefix("-M") {
                    self.files_named(&format!("{}.pm", module.replace("::", "/")));
                }
                continue;
            }
            let value = word.rsplit('=').next().unwrap_or_default();
            let own = word.split_once('=').map_or(option, |(name, _)| name);
            let enters = has_word("cd pushd", before) || has_word(ENTERING, own);
            let is_script = own == "-f" && has_word(FILTERS, file_name(before));
            let is_module = option == "-m";
            let loads = INTERPRETER.is_match(file_name(before)) && !only_parses;
            let is_behind = at + behind < words.len() || is_script;
            let configures = CONFIGURES.is_match(own) && !is_script;
            let used = Use {
                runs: is_behind && !only_parses || loads || is_module,
                loads: loads || is_module,
                configures: configures && !(own == "-c" && judges) && !place.in_script,
                is_runner,
            };
            match own {
                "-p" | "--package" if runs_package => self.package(value),
                "--bin" if runs_package => self.files_named(&format!("src/bin/{value}.rs")),
                _ => {}
            }
            for dir in dirs.clone() {
                if enters {
                    dirs.extend(self.directories_at(&dir, value));
                }
                self.word(value, &dir, place, used);
                self.recipes(file_name(word), &words, &dir, place);
            }
            if before == "doctest" {
                self.found.examples.insert(value.to_owned());
            }
            (before, option) = (word, "");
        }
        dirs.dedup();
        dirs.truncate(64);
        let below = dirs.iter().filter(|dir| !dir.is_empty());
        self.found.directories.extend(below.cloned());
    }

    /// Notes the package of a workspace that cargo runs, if its name says that it checks.
    fn package(&mut self, name: &str) {
        let manifests = self.start.paths().iter();
        let manifests = manifests.filter(|path| path.ends_with("/Cargo.toml"));
        let named = format!("name = \"{name}\"");
        let package = manifests.filter(|path| {
            CHECKS.is_match(name) && self.start.read(path).is_some_and(|it| it.contains(&named))
        });
        let directories = package.map(|path| parent(path).to_owned());
        self.found.programs.extend(directories);
    }

    /// Notes the files at the end of whose path this is, if it says that they check.
    fn files_named(&mut self, end: &str) {
        let files = self.start.paths().iter().filter(|path| {
            let before = path.strip_suffix(end).filter(|_| CHECKS.is_match(end));
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        });
        self.found.programs.extend(files.cloned());
    }

    /// Notes the files that a word stands for.
    fn word(&mut self, word: &str, dir: &str, place: &Place, used: Use) {
        let word = match word.rfind(['$', '}', ')']) {
            // A path after a variable is resolved at its most likely place.
            Some(at) => word[at..].split_once('/').map_or("", |(_, rest)| rest),
            None => word,
        };
        if word.is_empty() || word.starts_with(['-', '/', '~']) {
            return;
        }
        for dir in [dir, &place.script_dir, ""] {
            let Some(path) = entered(Some(dir), word) else {
                continue;
            };
            let said = path.replace('.', "/");
            let mut candidates = vec![path.clone()];
            if used.loads || used.configures {
                candidates.extend(modules(&path));
            }
            if used.loads {
                candidates.extend(STARTS.map(|start| format!("{said}/{start}")));
            }
            candidates.retain(|path| self.start.is_file(path));
            for path in candidates {
                let is_program = used.runs || word.contains('/') && self.is_program(&path);
                let is_entry = ENTRY_POINT.is_match(&path)
                    // What starts a directory is the work if others import from there.
                    && (!self.start.is_directory(&said) || importers(&path, self.start).next().is_some());
                let is_work = place.in_script || place.is_judged || is_entry;
                let counts = is_program && (!is_work || CHECKS.is_match(&path));
                if counts || used.configures {
                    self.script(&path, dir, place);
                } else if used.is_runner && !PRODUCT.is_match(parent(&path)) {
                    self.found.tests.insert(path);
                }
            }
            let searched = path.split(['*', '?', '[', '{']).next().unwrap_or_default();
            let searched = searched.trim_end_matches('/');
            let is_product = searched.is_empty() || PRODUCT.is_match(searched);
            if used.is_runner && !is_product && self.start.is_directory(searched) {
                self.found.tests.insert(searched.to_owned());
            }
        }
    }

    /// Notes a script, and what it runs that says that it checks.
    fn script(&mut self, path: &str, dir: &str, place: &Place) {
        if !self.found.programs.insert(path.to_owned()) || place.depth > MAX_DEPTH {
            return;
        }
        let Some(text) = self.start.read(path) else {
            return;
        };
        let inner = Place {
            depth: place.depth + 1,
            in_script: true,
            script_dir: parent(path).to_owned(),
            is_judged: false,
        };
        let first = text.lines().next().unwrap_or_default();
        let is_shell = first.starts_with("#!") && first.contains("sh");
        if is_shell || ["", "sh", "bash", "zsh"].contains(&file_ending(path)) {
            self.shell(&text, dir, &inner);
            return;
        }
        self.found.asks_if_changed |= ASKS_GIT.is_match(&text);
        self.found.takes_changes |= TAKES_FROM_GIT.is_match(&text);
        let words = text.split(|c: char| !(c.is_alphanumeric() || "./_-@".contains(c)));
        for word in words.filter(|word| word.contains(['/', '.'])) {
            for dir in [dir, &inner.script_dir, ""] {
                let path = entered(Some(dir), word);
                let is_check = |path: &String| CHECKS.is_match(path) && !is_test(path);
                if let Some(path) = path.filter(|path| self.start.is_file(path) && is_check(path)) {
                    self.script(&path, dir, &inner);
                }
            }
        }
    }

    /// Follows the recipes of make and its like, and the scripts of packages.
    fn recipes(&mut self, program: &str, words: &[String], dir: &str, place: &Place) {
        let inner = Place {
            depth: place.depth + 1,
            ..place.clone()
        };
        if has_word("make gmake bmake just", program) {
            for name in "GNUmakefile makefile Makefile justfile Justfile".split(' ') {
                let path = entered(Some(dir), name).filter(|path| self.start.is_file(path));
                if let Some(text) = path.and_then(|path| self.start.read(&path)) {
                    let (recipes, goals) = recipes_of(&text, words);
                    let goals = goals.iter().filter_map(|goal| entered(Some(dir), goal));
                    self.found.goals.extend(goals);
                    self.shell(&recipes, dir, &inner);
                }
            }
        } else if has_word(OF_PACKAGES, program) {
            let is_of_all = words.iter().any(|word| {
                let option = word.split('=').next().unwrap_or_default();
                has_word("--workspaces -ws -w --workspace -r --recursive", option)
                    || has_word("turbo lerna nx", file_name(word))
            });
            let all = self.start.paths().iter().filter(|path| {
                is_of_all && file_name(path) == "package.json" && !path.contains("node_modules/")
            });
            let own = entered(Some(dir), "package.json").into_iter();
            let manifests: Vec<String> = own.chain(all.take(64).cloned()).collect();
            for path in manifests {
                let json = self.start.read(&path).unwrap_or_default();
                let json: Value = serde_json::from_str(&json).unwrap_or_default();
                for (name, script) in json["scripts"].as_object().into_iter().flatten() {
                    let is_named = words.contains(name) || !OTHER_GOALS.is_match(name);
                    if let Some(script) = script.as_str().filter(|_| is_named) {
                        self.shell(script, parent(&path), &inner);
                    }
                }
            }
        }
    }

    /// The directories that a word stands for, which may have a `*` for one name.
    fn directories_at(&self, dir: &str, word: &str) -> Vec<String> {
        let Some(path) = entered(Some(dir), word.trim_end_matches('/')) else {
            return Vec::new();
        };
        match path.split_once('*') {
            None if self.start.is_directory(&path) => vec![path],
            Some((before, "")) => {
                let paths = self.start.paths().iter();
                let below = paths.filter_map(|path| path.strip_prefix(before)?.split_once('/'));
                let names: BTreeSet<&str> = below.map(|(name, _)| name).collect();
                let names = names.into_iter().take(64);
                names.map(|name| format!("{before}{name}")).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a file says how to run it.
    fn is_program(&self, path: &str) -> bool {
        let text = self.start.read(path);
        text.is_some_and(|text| text.starts_with("#!"))
    }
}

/// How a command uses a word.
#[derive(Debug, Clone, Copy)]
struct Use {
    runs: bool,
    /// Whether an interpreter gets the word, so that it may be a module, a directory or without an ending.
    loads: bool,
    configures: bool,
    is_runner: bool,
}

/// The files that a word without an ending stands for, where it is a module or the name of a script.
fn modules(path: &str) -> impl Iterator<Item = String> {
    let endings = "cjs js mjs php pl py rb sh ts".split(' ');
    let named = endings.map(move |ending| format!("{path}.{ending}"));
    named.chain([format!("{}.py", path.replace('.', "/"))])
}

/// Whether another command judges what this one prints; `after` are those that follow.
fn is_judged(command: &Simple, after: &[&Simple]) -> bool {
    let around = after.iter().find(|other| !other.is_substitution);
    let around = around.filter(|_| command.is_substitution);
    let judges = |other: &Simple| {
        let program = other.program();
        program.is_some_and(|program| has_word(JUDGES, program.word))
    };
    around.is_some_and(|other| compares(other)) || piped(after).any(judges)
}

/// The first of these commands, as far as each gets the output of the one before it.
fn piped<'c>(after: &'c [&Simple]) -> impl Iterator<Item = &'c Simple> {
    let after = after.iter().copied();
    after.take_while(|other| other.after == After::Pipe)
}

/// Whether a command judges the output of others which its words name, or keeps it in a variable.
fn compares(command: &Simple) -> bool {
    let program = command.program();
    program.is_none_or(|program| has_word(COMPARING, program.word))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}
