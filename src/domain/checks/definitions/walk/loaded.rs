//! Follows what a script of Python, Ruby, PHP or Perl loads.

use super::super::{Entry, is_at_or_below};
use super::{Place, Walk};
use crate::pattern::Pattern;

static IMPORT: Pattern =
    Pattern::of_lines(r"^\s*(?:from\s+(\.*[\w.]*)\s+import\s+([^#\n]+)|import\s+([^#\n]+))");

static REQUIRE: Pattern = Pattern::new(
    r#"\b(?:do|include|include_once|load|require|require_once|require_relative)\b[\s(]*(?:__DIR__\s*\.\s*)?["']([^"'\n]+)["']"#,
);

impl Walk<'_> {
    /// Records the modules that a script loads from its own directory. Those of other directories are mostly the work.
    pub(super) fn loaded_by(&mut self, text: &str, ending: &str, here: &Place) {
        let names = match ending {
            "py" => imported(text),
            "php" | "pl" | "rb" => {
                let names = REQUIRE.captures_iter(text);
                names.map(|found| found[1].to_owned()).collect()
            }
            _ => return,
        };
        if here.script_dir.is_empty() {
            return;
        }
        let ends = ["", &format!(".{ending}"), &format!("/__init__.{ending}")];
        for name in names {
            let name = name.trim_start_matches(['.', '/']);
            let found = ends.iter().find_map(|end| {
                let path = format!("{name}{end}");
                let places = [here.script_dir.as_str(), ""];
                let mut found = places.iter().map(|dir| self.resolve_from(dir, &path));
                found.find_map(|found| match found? {
                    (path, Entry::File { .. }) => Some(path),
                    _ => None,
                })
            });
            if let Some(path) = found.filter(|path| is_at_or_below(&here.script_dir, path)) {
                self.script(path, here);
            }
        }
    }
}

/// The modules of Python that a text imports, as paths without an ending.
fn imported(text: &str) -> Vec<String> {
    let group = |found: &regex::Captures<'_>, at: usize| {
        found
            .get(at)
            .map_or(String::new(), |it| it.as_str().to_owned())
    };
    let names = |list: &str| -> Vec<String> {
        let names = list
            .trim_matches(['(', ')', ' '])
            .split(',')
            .filter_map(|name| name.split_whitespace().next());
        names.map(|name| name.replace('.', "/")).collect()
    };
    let all = IMPORT.captures_iter(text);
    all.flat_map(|found| {
        let from = group(&found, 1).trim_start_matches('.').replace('.', "/");
        let of_package = names(&group(&found, 2))
            .into_iter()
            .map(|name| format!("{from}/{name}"));
        let mut modules: Vec<String> = of_package.collect();
        modules.push(from);
        modules.extend(names(&group(&found, 3)));
        modules.retain(|module| !module.is_empty());
        modules
    })
    .collect()
}
