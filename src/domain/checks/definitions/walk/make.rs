//! Follows makefiles and justfiles.

use super::super::{Entry, joined, shell};
use super::{Place, Walk};

/// An option of make, and the value that is joined to it.
fn option_of_make(word: &str) -> (&str, Option<&str>) {
    if let Some((option, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return (option, Some(value));
    }
    match word.split_at_checked(2) {
        Some((option @ ("-C" | "-f"), value)) if !value.is_empty() => (option, Some(value)),
        _ => (word, None),
    }
}

impl Walk<'_> {
    /// Follows the recipes of the targets that a command names.
    pub(super) fn make(&mut self, rest: &[String], place: &Place) {
        let (mut dir, mut file, mut goals) = (place.dir.clone(), None, Vec::new());
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            let (option, joined_value) = option_of_make(word);
            let mut value = || {
                joined_value
                    .map(str::to_owned)
                    .or_else(|| words.next().cloned())
            };
            match option {
                "-C" | "--directory" => {
                    if let Some((found, _)) = value().and_then(|to| self.resolve(place, &to)) {
                        dir = found;
                    }
                }
                "-f" | "--file" | "--makefile" | "--justfile" => file = value(),
                "-j" | "-l" | "-o" | "-W" => {
                    let _ = words
                        .next()
                        .filter(|next| next.parse::<u32>().is_err())
                        .map(|goal| goals.push(goal.as_str()));
                }
                word if word.starts_with('-') || word.contains('=') => {}
                goal => goals.push(goal),
            }
        }
        let names = [
            "GNUmakefile",
            "makefile",
            "Makefile",
            "justfile",
            "Justfile",
            ".justfile",
        ];
        let named = file
            .as_deref()
            .into_iter()
            .chain(names.into_iter().filter(|_| file.is_none()));
        self.enters(&dir);
        let here = place.below(dir.clone(), dir);
        for name in named {
            if let Some((path, Entry::File { .. })) = self.resolve(&here, name) {
                let text = self.with_included(&path, &here, 0);
                let is_makefile = !path.to_lowercase().ends_with("justfile");
                for target in shell::file_targets(&text).iter().filter(|_| is_makefile) {
                    let target = joined(&here.dir, target);
                    // A directory may be new.
                    if matches!(self.start.entry(&target), None | Some(Entry::Directory)) {
                        self.found.goals.insert(target);
                    }
                }
                let recipes = shell::recipes(&text, &goals).replace("$$", "$");
                if text.contains(".ONESHELL") || recipes.contains("#!") {
                    self.shell(&recipes, &here)
                } else {
                    // A shell of its own runs each line.
                    recipes.lines().for_each(|line| self.shell(line, &here))
                }
                return;
            }
        }
    }
}
