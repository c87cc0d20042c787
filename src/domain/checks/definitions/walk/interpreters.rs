//! Follows the scripts and modules that interpreters run.

use super::super::{Entry, fits, joined, parent};
use super::{Place, Walk};

impl Walk<'_> {
    /// Follows what an interpreter runs.
    pub(super) fn interpreter(&mut self, name: &str, rest: &[String], place: &Place) {
        let tests = rest.iter().any(|word| word == "--test" || word == "test");
        if ["node", "nodejs", "bun", "deno"].contains(&name) && tests {
            self.found.runs_tests = true;
            self.runner(name, rest, place);
        }
        let is_python = fits("python*", name) || fits("pypy*", name);
        let mut words = rest.iter();
        let mut before = Vec::new();
        while let Some(word) = words.next() {
            let joined_module = word
                .strip_prefix("-m")
                .filter(|it| is_python && !it.is_empty());
            if word == "-m" || word == "-c" || joined_module.is_some() {
                let next = || words.next().map(String::as_str).filter(|_| word == "-m");
                let module = joined_module.or_else(next);
                self.found.module_dirs.insert(place.dir.clone());
                if let Some(module) = module {
                    self.module(module, place);
                }
                if module == Some("doctest") {
                    let texts = words.filter(|word| !word.ends_with(".py")).cloned();
                    self.runner("doctest", &texts.collect::<Vec<_>>(), place);
                }
                return;
            }
            before.push(word.clone());
            if !word.starts_with('-')
                && let Some(path) = self.program_file(is_python, word, place)
            {
                if fits("python*", name) {
                    self.modules_of_script(&path, place);
                }
                self.script(path, place);
                break;
            }
        }
        self.option_files(name, &before, place);
    }

    /// The file that an interpreter runs for a name: of a directory, its main module.
    fn program_file(&mut self, is_python: bool, word: &str, place: &Place) -> Option<String> {
        let found = self.resolve(place, word);
        let word = word.trim_end_matches('/');
        match found {
            Some((path, Entry::File { .. })) => Some(path),
            Some((_, Entry::Directory)) if is_python => {
                let main = self.resolve(place, &format!("{word}/__main__.py"));
                main.map(|(path, _)| path)
            }
            _ if is_python || word.starts_with('/') => None,
            _ => self.module_at(&place.dir, word),
        }
    }

    /// Records the directories from which a script of Python loads modules first: its own, and the one in which
    /// it runs if it adds to the list.
    fn modules_of_script(&mut self, path: &str, place: &Place) {
        self.found.module_dirs.insert(parent(path).to_owned());
        let text = self.start.read(path).unwrap_or_default();
        if text.contains("sys.path") {
            self.found.module_dirs.insert(place.dir.clone());
        }
    }

    /// Records a Python module that is run, if it belongs to the work tree.
    fn module(&mut self, module: &str, place: &Place) {
        let path = module.replace('.', "/");
        let ends = [".py", "/__main__.py", "/__init__.py"];
        let mut missing = Vec::new();
        for path in ends.map(|end| format!("{path}{end}")) {
            match self.resolve(place, &path) {
                Some((path, Entry::File { .. })) => self.script(path, place),
                _ => missing.push(joined(&place.dir, &path)),
            }
        }
        if missing.len() == ends.len() {
            self.outside(module, &[], place);
            self.found.shadows.extend(missing);
        } else {
            // Python prefers a package to a module.
            self.found.optional.extend(missing);
        }
    }
}
