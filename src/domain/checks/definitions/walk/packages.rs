//! Follows the scripts of a `package.json`, also those of the packages of a workspace.

use super::super::{Entry, joined, parent};
use super::{Place, Walk};
use crate::pattern::Pattern;
use std::collections::BTreeSet;

/// A pattern for the packages of a workspace in a YAML list.
static LISTED: Pattern = Pattern::of_lines(r#"^\s*-\s*["']?([^"'#!\s]+)"#);

impl Walk<'_> {
    /// Follows the script that a package manager runs, in one package or in those of the workspace.
    pub(super) fn package_scripts(&mut self, rest: &[String], place: &Place) {
        let mut dir = place.dir.clone();
        let mut words = Vec::new();
        let mut is_of_all = false;
        let mut all = rest.iter();
        while let Some(word) = all.next() {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            match option {
                "--prefix" | "-C" | "--dir" | "--cwd" | "-w" | "--workspace" => {
                    let value = if value.is_empty() {
                        all.next().map_or("", String::as_str)
                    } else {
                        value
                    };
                    match self.resolve(place, value) {
                        Some((found, _)) => dir = found,
                        // The name of a package, or no value.
                        None => {
                            is_of_all = true;
                            words.push(value);
                        }
                    }
                }
                "--filter" | "-F" => {
                    is_of_all = true;
                    let _ = value.is_empty().then(|| all.next());
                }
                "--workspaces" | "-ws" | "-r" | "--recursive" => is_of_all = true,
                _ if word.starts_with('-') => {}
                _ => words.push(word.as_str()),
            }
        }
        if let ["workspaces" | "workspace" | "ws", ..] = words.as_slice() {
            words.remove(0);
            is_of_all = true;
        }
        if is_of_all {
            return self.scripts_in_workspace(&words, place);
        }
        let script = match words.as_slice() {
            ["run" | "run-script" | "rum" | "urn", script, ..] => script,
            ["t" | "tst", ..] => "test",
            ["exec" | "x" | "dlx" | "ci" | "install" | "i" | "add", ..] | [] => return,
            [script, ..] => script,
        };
        self.enters(&dir);
        self.package_script(script, &dir, place);
    }

    /// Follows the scripts of these names in every package of the workspace. Other words name no script.
    fn scripts_in_workspace(&mut self, words: &[&str], place: &Place) {
        let packages = self.packages(place);
        for word in words {
            let script = match *word {
                "t" | "tst" => "test",
                word => word,
            };
            for dir in &packages {
                self.enters(dir);
                self.package_script(script, dir, place);
            }
        }
    }

    /// Follows the scripts that a runner of the packages of a workspace names.
    pub(super) fn scripts_of_workspace(&mut self, rest: &[String], place: &Place) {
        let words = rest.iter().map(|word| word.trim_start_matches("--target="));
        let words: Vec<&str> = words.filter(|word| !word.starts_with('-')).collect();
        self.scripts_in_workspace(&words, place);
    }

    /// The directories of the packages of the workspace, and its own.
    pub(super) fn packages(&self, place: &Place) -> BTreeSet<String> {
        let read = |name: &str| {
            self.start
                .read(&joined(&place.dir, name))
                .unwrap_or_default()
        };
        let listed = |name: &str, keys: &[&str]| -> Vec<String> {
            let json: serde_json::Value = serde_json::from_str(&read(name)).unwrap_or_default();
            let lists = keys.iter().filter_map(|key| json.pointer(key)?.as_array());
            let words = lists
                .flatten()
                .filter_map(|word| Some(word.as_str()?.to_owned()));
            words.collect()
        };
        let mut patterns = listed("package.json", &["/workspaces", "/workspaces/packages"]);
        patterns.extend(listed("lerna.json", &["/packages"]));
        let of_pnpm = read("pnpm-workspace.yaml");
        patterns.extend(
            LISTED
                .captures_iter(&of_pnpm)
                .map(|found| found[1].to_owned()),
        );
        let found = patterns
            .iter()
            .flat_map(|pattern| self.directories(&place.dir, pattern));
        found.chain([place.dir.clone()]).collect()
    }

    pub(super) fn package_script(&mut self, script: &str, dir: &str, place: &Place) {
        let Some((dir, scripts)) = self.scripts_above(dir) else {
            return;
        };
        for name in [
            format!("pre{script}"),
            script.to_owned(),
            format!("post{script}"),
        ] {
            if let Some(text) = scripts[&name].as_str() {
                self.shell(text, &place.below(dir.clone(), dir.clone()));
            }
        }
    }

    /// Whether a package manager finds a script of this name.
    pub(super) fn is_package_script(&mut self, script: &str, dir: &str) -> bool {
        let found = self.scripts_above(dir);
        found.is_some_and(|(_, scripts)| scripts[script].is_string())
    }

    /// The scripts of the package to which a directory belongs, and the directory of that.
    fn scripts_above(&mut self, dir: &str) -> Option<(String, serde_json::Value)> {
        let mut dir = dir;
        loop {
            let path = joined(dir, "package.json");
            if let Some((path, Entry::File { .. })) = self.resolve_from("", &path) {
                let text = self.start.read(&path).unwrap_or_default();
                let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
                return Some((dir.to_owned(), json["scripts"].clone()));
            }
            if dir.is_empty() {
                return None;
            }
            dir = parent(dir);
        }
    }
}
