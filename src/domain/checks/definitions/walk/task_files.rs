//! Follows the scripts that the files of task runners name.

use super::super::families::{GULPFILES, RAKEFILES, TASKFILES};
use super::super::table::SHELLS;
use super::super::{Entry, base, parent, shell};
use super::words::{extension, is_limit, says_that_it_checks, says_that_it_tests};
use super::{Place, Walk};

/// Task runners, and the files in which they find the commands that they run.
const TASK_FILES: &[(&[&str], &[&str])] = &[
    (
        &["cmake", "ctest"],
        &[
            "CMakeLists.txt",
            "tests/CMakeLists.txt",
            "test/CMakeLists.txt",
        ],
    ),
    (&["composer"], &["composer.json"]),
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (&["doit"], &["dodo.py"]),
    (&["go-task", "task"], TASKFILES),
    (
        &["gradle", "gradlew"],
        &["build.gradle", "build.gradle.kts"],
    ),
    (&["grunt"], &["Gruntfile.js", "Gruntfile.cjs"]),
    (&["gulp"], GULPFILES),
    (
        &["hatch", "pdm", "poe", "taskipy"],
        &["pyproject.toml", "hatch.toml"],
    ),
    (&["inv", "invoke"], &["tasks.py"]),
    (
        &["lefthook"],
        &["lefthook.yml", "lefthook.yaml", ".lefthook.yml"],
    ),
    (&["mage"], &["magefile.go"]),
    (
        &["meson", "ninja"],
        &["meson.build", "tests/meson.build", "test/meson.build"],
    ),
    (&["mise"], &["mise.toml", ".mise.toml"]),
    (&["mvn", "mvnw"], &["pom.xml"]),
    (&["nox"], &["noxfile.py"]),
    (&["pre-commit"], &[".pre-commit-config.yaml"]),
    (&["rake"], RAKEFILES),
    (
        &["tox"],
        &["tox.ini", "tox.toml", "setup.cfg", "pyproject.toml"],
    ),
];

/// Task runners that only check. The scripts of the others may also build the work.
const CHECKING: &[&str] = &["lefthook", "nox", "pre-commit", "tox"];

/// Endings of scripts.
const SCRIPTS: &[&str] = &[
    "cjs", "js", "lua", "mjs", "php", "pl", "ps1", "py", "rb", "ts",
];

impl Walk<'_> {
    /// Follows what the files of a task runner name.
    pub(super) fn task_files(&mut self, program: &str, place: &Place) {
        let rows = TASK_FILES.iter().filter(|(of, _)| of.contains(&program));
        for name in rows.flat_map(|(_, files)| *files) {
            if let Some((path, Entry::File { .. })) = self.resolve(place, name) {
                self.task_file(&path, place, CHECKING.contains(&program));
            }
        }
    }

    /// Records what a file of tasks names and what says that it checks.
    fn task_file(&mut self, path: &str, place: &Place, only_checks: bool) {
        let text = self.start.read(path).unwrap_or_default();
        let is_new = self.seen.insert((path.to_owned(), true, String::new()));
        if !is_new {
            return;
        }
        let here = place
            .below(parent(path).to_owned(), parent(path).to_owned())
            .in_script();
        let mut before = "";
        for word in shell::words(&text).map(|word| word.trim_start_matches('/')) {
            let is_run = SHELLS.contains(&std::mem::replace(&mut before, word));
            if base(word).len() > 2 {
                self.family_of(base(word));
            }
            let ending = extension(word);
            let is_script = is_run || SCRIPTS.contains(&ending) || SHELLS.contains(&ending);
            let Some((path, Entry::File { executable })) = self.resolve(&here, word) else {
                continue;
            };
            let is_check = if only_checks {
                says_that_it_checks(&path)
            } else {
                says_that_it_tests(&path)
            };
            if is_limit(word) {
                self.found.named.insert(path);
            } else if is_check && (is_script || (executable && word.contains('/'))) {
                self.script(path, &here);
            }
        }
    }
}
