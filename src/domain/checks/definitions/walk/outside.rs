//! Follows programs that are not in the work tree, by the name under which they look for their configuration.

use super::super::joined;
use super::super::table::{BUILDERS, EXECUTORS, PACKAGE_MANAGERS, SHELLS, USUAL_PROGRAMS};
use super::{Place, SILENT, Walk, families_of};

/// Commands of a program that make the work, so that what configures them is the work too.
const MAKING: &[&str] = &[
    "build", "bundle", "compile", "deploy", "export", "generate", "package", "plan", "publish",
    "serve", "validate",
];

/// Words between a program and the other one that it runs.
const BEFORE_A_PROGRAM: &[&str] = &["dlx", "exec", "run", "tool", "x"];

/// Words of a shell and programs that nothing configures.
const UNCONFIGURED: &[&str] = &[
    "basename", "break", "case", "cd", "date", "dirname", "done", "echo", "esac", "exit", "false",
    "fi", "for", "function", "kill", "ln", "local", "ls", "pwd", "read", "return", "select",
    "shift", "sleep", "tee", "type", "unset", "wait", "which", "}",
];

/// Commands that cargo has itself.
const OF_CARGO: &[&str] = &[
    "b", "bench", "build", "c", "check", "clean", "clippy", "d", "doc", "fetch", "fix", "fmt",
    "metadata", "package", "publish", "r", "run", "rustc", "rustdoc", "t", "test", "tree",
    "update", "vendor",
];

/// Where the sources of a program are, if it is the work itself.
const SOURCES: &[&str] = &[
    "bin/{}",
    "cmd/{}",
    "cmd/{}.go",
    "lib/{}",
    "src/bin/{}.rs",
    "src/{}",
    "{}.py",
    "{}/__init__.py",
    "{}/__main__.py",
];

impl Walk<'_> {
    /// Records the name of a program that judges the work, and the files that options of one without a row in the table
    /// name.
    pub(super) fn outside(&mut self, program: &str, rest: &[String], place: &Place) {
        if EXECUTORS.contains(&program) {
            let is_before =
                |word: &&String| word.starts_with('-') || BEFORE_A_PROGRAM.contains(&word.as_str());
            let before = rest.iter().take_while(is_before).count();
            let runs = |word: &String| ["exec", "x"].contains(&word.as_str());
            let is_script = match program {
                "npm" => !rest.iter().take(before).any(runs),
                _ if PACKAGE_MANAGERS.contains(&program) => rest
                    .get(before)
                    .is_some_and(|word| self.is_package_script(word, &place.dir)),
                _ => false,
            };
            // It is followed with its package.
            if is_script {
                return;
            }
            if let Some((program, rest)) = rest.get(before..).and_then(<[String]>::split_first) {
                self.outside(program, rest, place);
            }
            return;
        }
        // A subcommand of cargo is a program of its own: `cargo deny check`.
        if program == "cargo" {
            let mut words = rest.iter().filter(|word| !word.starts_with(['-', '+']));
            let command = words.next().filter(|it| !OF_CARGO.contains(&it.as_str()));
            self.found.programs.extend(command.cloned());
        }
        let known = [BUILDERS, SHELLS, SILENT, UNCONFIGURED, USUAL_PROGRAMS];
        let verb = rest.iter().find(|word| !word.starts_with('-'));
        let makes = verb.is_some_and(|verb| MAKING.contains(&verb.as_str()));
        let is_known = known.iter().any(|names| names.contains(&program));
        if program.contains('/') || makes || is_known || self.is_of_work(program, place) {
            return;
        }
        if families_of(program).next().is_none() {
            self.option_files(program, rest, place);
        }
        self.found.programs.insert(program.to_owned());
    }

    /// Whether a program or module is built from the work tree, so that its configuration is the work too.
    fn is_of_work(&self, program: &str, place: &Place) -> bool {
        let names = [program.to_owned(), program.replace('-', "_")];
        names.iter().any(|name| {
            let mut sources = SOURCES.iter().map(|source| source.replace("{}", name));
            sources.any(|source| {
                let is_there = |dir: &str| self.start.entry(&joined(dir, &source)).is_some();
                is_there("") || is_there(&place.dir)
            })
        })
    }
}
