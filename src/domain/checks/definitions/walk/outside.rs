//! Follows programs that are not in the work tree, by the name under which they look for their configuration.

use super::super::table::{BUILDERS, EXECUTORS, SHELLS, USUAL_PROGRAMS};
use super::{Place, SILENT, Walk, families_of};

/// Commands of a program that make the work, so that what configures them is the work too.
const MAKING: &[&str] = &[
    "build", "bundle", "compile", "deploy", "export", "generate", "package", "plan", "publish",
    "serve", "validate",
];

/// Words between a program and the other one that it runs.
const BEFORE_A_PROGRAM: &[&str] = &["dlx", "exec", "run", "tool", "x"];

impl Walk<'_> {
    /// Records the name of a program that judges the work, and the files that options of one without a row in the table
    /// name.
    pub(super) fn outside(&mut self, program: &str, rest: &[String], place: &Place) {
        if EXECUTORS.contains(&program) {
            let is_before =
                |word: &&String| word.starts_with('-') || BEFORE_A_PROGRAM.contains(&word.as_str());
            let before = rest.iter().take_while(is_before).count();
            if let Some((program, rest)) = rest.get(before..).and_then(<[String]>::split_first) {
                self.outside(program, rest, place);
            }
            return;
        }
        let known = [BUILDERS, SHELLS, SILENT, USUAL_PROGRAMS];
        let verb = rest.iter().find(|word| !word.starts_with('-'));
        let makes = verb.is_some_and(|verb| MAKING.contains(&verb.as_str()));
        if program.contains('/') || makes || known.iter().any(|names| names.contains(&program)) {
            return;
        }
        if families_of(program).next().is_none() {
            self.option_files(program, rest, place);
        }
        self.found.programs.insert(program.to_owned());
    }
}
