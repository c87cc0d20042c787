//! The part of a file that decides what a check does, and how to restore that part.

use super::rust_tests::rust_tests;
use crate::pattern::Pattern;
use crate::text::has_word;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The part of a file that decides what a check does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// A JSON object except for these keys, which are paths joined by dots; `*` stands for any key. Of one before a
    /// final `@`, only what comes from elsewhere is excepted.
    Json(&'static str),
    /// Like [`Part::Json`], for TOML. A key before a final `+` is excepted only if its text is raised, and one after
    /// `!` is not excepted, although one above it is.
    Toml(&'static str),
    /// The sections of an INI file, except those with one of these names or with such a name followed by a
    /// dot or a colon. One after `!` is not excepted.
    Ini(&'static str),
    /// A `go.mod` except for its requirements and a raised version of the language.
    GoMod,
    /// The lines of a file except those that a pattern matches. If others differ, the whole file counts.
    Lines(&'static Pattern),
    /// The tests of a Rust source file, and its modules and functions that are compiled only for tests.
    RustTests,
}

/// A file whose deciding part is restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// The old file.
    Old,
    /// The new file with the deciding part of the old one.
    Mixed(String),
}

impl Part {
    /// The content of a file that decides nothing.
    pub const fn empty(self) -> &'static str {
        match self {
            Self::Json(_) => "{}",
            _ => "",
        }
    }

    /// The file with this part restored; `None` if the part is the same in both. A file that does not parse
    /// counts as a whole.
    pub fn restored(self, old: &str, new: &str) -> Option<Restored> {
        if old == new {
            return None;
        }
        match self.mixed(old, new) {
            Some(mixed) => mixed.map(Restored::Mixed),
            None => Some(Restored::Old),
        }
    }

    /// The new file with this part of the old one, `Some(None)` if it is the same in both, and `None` if they cannot be
    /// mixed.
    fn mixed(self, old: &str, new: &str) -> Option<Option<String>> {
        Some(match self {
            Self::Whole => return None,
            Self::Json(free) => {
                let read = |text| serde_json::from_str::<Value>(text).ok();
                let [old, new] = [read(old)?, read(new)?];
                old.as_object().zip(new.as_object())?;
                let mixed = mix_values(&old, &new, free);
                let mixed = mixed.map(|mixed| serde_json::to_string_pretty(&mixed));
                mixed.transpose().ok()?
            }
            Self::Toml(free) => {
                let read = |text| ::toml::from_str(text).ok();
                let mixed = mix_values(&read(old)?, &read(new)?, free);
                mixed
                    .map(|mixed| ::toml::to_string(&mixed))
                    .transpose()
                    .ok()?
            }
            Self::Ini(free) => mix_sections(&ini(old), &ini(new), |name| {
                let first = name.split(['.', ':']).next().unwrap_or_default();
                let is_held = has_word(free, &format!("!{name}"));
                !is_held && (has_word(free, name) || has_word(free, first))
            }),
            Self::GoMod => {
                let (old, new) = (go_mod(old), go_mod(new));
                let versions = go_version(&old).zip(go_version(&new));
                let is_raised = versions.is_some_and(|(old, new)| old < new);
                let is_free = |name: &str| name == "require" || (name == "go" && is_raised);
                mix_sections(&old, &new, is_free)
            }
            Self::Lines(free) => {
                let held = |text| {
                    let lines = str::lines(text).map(str::trim);
                    lines.filter(|line| !line.is_empty() && !free.is_match(line))
                };
                return held(old).eq(held(new)).then_some(None);
            }
            Self::RustTests => rust_tests(old, new),
        })
    }
}

/// The old value with the free keys as in the new one; `None` if nothing else differs.
fn mix_values(old: &Value, new: &Value, free: &str) -> Option<Value> {
    let mut mixed = old.clone();
    for path in free.split_whitespace() {
        let (from, path) = match path.strip_prefix('!') {
            Some(path) => (old, path),
            None => (new, path),
        };
        let keys: Vec<&str> = path.split('.').collect();
        take_over(&mut mixed, Some(from), &keys);
    }
    hold_sources(&mut mixed, old, false);
    (!same(&mixed, new)).then_some(mixed)
}

/// Restores dependencies that came from elsewhere and are taken from the work tree now: what a test needs to judge
/// would be written by whoever it judges.
fn hold_sources(mixed: &mut Value, old: &Value, are_dependencies: bool) {
    let (Some(mixed), Some(old)) = (mixed.as_object_mut(), old.as_object()) else {
        return;
    };
    for (key, value) in mixed {
        let Some(was) = old.get(key) else { continue };
        if are_dependencies && is_local(value) && !is_local(was) {
            *value = was.clone();
        } else if !are_dependencies {
            hold_sources(value, was, key.ends_with("ependencies"));
        }
    }
}

/// Whether a dependency is a directory or file of the work tree.
fn is_local(dependency: &Value) -> bool {
    let local = ["file:", "link:", "portal:", "./", "../"];
    match dependency.as_str() {
        Some(text) => local.iter().any(|start| text.starts_with(start)),
        None => dependency.get("path").is_some(),
    }
}

/// An empty table equals a missing one.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let none = Value::Object(Map::new());
            let mut keys = one.keys().chain(other.keys());
            keys.all(|key| {
                same(
                    one.get(key).unwrap_or(&none),
                    other.get(key).unwrap_or(&none),
                )
            })
        }
        (one, other) => one == other,
    }
}

fn take_over(into: &mut Value, from: Option<&Value>, keys: &[&str]) {
    let (Some(map), Some((key, rest))) = (into.as_object_mut(), keys.split_first()) else {
        return;
    };
    let from = from.and_then(Value::as_object);
    let new = |name: &str| from.and_then(|from| from.get(name));
    if let Some(key) = key.strip_suffix('@') {
        return take_over_foreign(map, new(key), key);
    }
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let names: BTreeSet<String> = match (key.strip_suffix('+'), *key) {
        (Some(key), _) if text(map.get(key)) >= text(new(key)) => return,
        (Some(key), _) => BTreeSet::from([key.to_owned()]),
        (None, "*") => {
            let held = with_all_it_names(map, "default");
            held.iter()
                .for_each(|name| hold_feature(map, new(name), name));
            let all = map.keys().chain(from.into_iter().flat_map(Map::keys));
            all.filter(|name| !held.contains(*name)).cloned().collect()
        }
        (None, key) => BTreeSet::from([key.to_owned()]),
    };
    for name in names {
        let new = new(&name);
        if !rest.is_empty() {
            if new.is_some_and(Value::is_object) && !map.contains_key(&name) {
                map.insert(name.clone(), Value::Object(Map::new()));
            }
            if let Some(inner) = map.get_mut(&name) {
                take_over(inner, new, rest);
            }
        } else if let Some(new) = new {
            map.insert(name, new.clone());
        } else {
            map.remove(&name);
        }
    }
}

/// Takes over the imports from elsewhere. What is taken from the work tree could stand in for what judges it.
fn take_over_foreign(map: &mut Map<String, Value>, new: Option<&Value>, key: &str) {
    let imports = |value: Option<&Value>| {
        let all = value.and_then(Value::as_object);
        all.cloned().unwrap_or_default()
    };
    let (mut mixed, new) = (imports(map.get(key)), imports(new));
    mixed.retain(|name, was| is_local(was) || new.get(name).is_some_and(is_local));
    mixed.extend(new.into_iter().filter(|(_, value)| !is_local(value)));
    map.insert(key.to_owned(), Value::Object(mixed));
}

/// A key, and those that lists under it name. Of the features of a crate, `default` and these are on unless something
/// else is specified.
fn with_all_it_names(map: &Map<String, Value>, key: &str) -> BTreeSet<String> {
    let (mut todo, mut found) = (vec![key], BTreeSet::new());
    while let Some(key) = todo.pop() {
        if found.insert(key.to_owned()) {
            let named = map.get(key).and_then(Value::as_array).into_iter().flatten();
            todo.extend(named.filter_map(Value::as_str));
        }
    }
    found
}

/// Restores the other features that a feature turns on. What it turns on of dependencies is as free as these.
fn hold_feature(map: &mut Map<String, Value>, new: Option<&Value>, name: &str) {
    let Some(old) = map.get_mut(name).and_then(Value::as_array_mut) else {
        return;
    };
    let is_of_dependency = |word: &Value| {
        let word = word.as_str();
        word.is_some_and(|word| word.starts_with("dep:") || word.contains('/'))
    };
    let new = new.and_then(Value::as_array).into_iter().flatten();
    let is_free = |word: &&Value| is_of_dependency(word) || old.contains(word);
    let mut mixed: Vec<Value> = new.filter(is_free).cloned().collect();
    old.retain(|word| !is_of_dependency(word) && !mixed.contains(word));
    mixed.append(old);
    *old = mixed;
}

type Sections = Vec<(String, String)>;

fn mix_sections(old: &Sections, new: &Sections, is_free: impl Fn(&str) -> bool) -> Option<String> {
    let decide = |sections: &Sections| -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (name, text) in sections.iter().filter(|(name, _)| !is_free(name)) {
            let lines = text.lines().map(str::trim);
            let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
            let text = all.entry(name.clone()).or_default();
            text.push_str(&lines.collect::<Vec<_>>().join("\n"));
        }
        all.retain(|_, text| !text.is_empty());
        all
    };
    let kept = old.iter().filter(|(name, _)| !is_free(name));
    let taken = new.iter().filter(|(name, _)| is_free(name));
    let mixed = kept.chain(taken).map(|(_, text)| text.as_str());
    (decide(old) != decide(new)).then(|| mixed.collect())
}

/// The sections of an INI file with their headers; the text above the first header has no name.
fn ini(text: &str) -> Sections {
    let mut sections: Sections = vec![(String::new(), String::new())];
    for line in text.lines() {
        let name = line.strip_prefix('[').and_then(|line| line.split_once(']'));
        sections.extend(name.map(|(name, _)| (name.trim().to_owned(), String::new())));
        if let Some((_, section)) = sections.last_mut() {
            section.push_str(line);
            section.push('\n');
        }
    }
    sections
}

/// The version of the language that a `go.mod` demands, of the form `1.22` or `1.22.3`; `None` without one that can be
/// compared. A lower version gives the same tests another meaning.
fn go_version(sections: &Sections) -> Option<Vec<u32>> {
    let mut found = sections.iter().filter(|(name, _)| name == "go");
    let (_, line) = found.next().filter(|_| found.next().is_none())?;
    let version = line.trim().strip_prefix("go")?.trim();
    version
        .split('.')
        .map(|number| number.parse().ok())
        .collect()
}

/// The directives of a `go.mod`; a block counts as one.
fn go_mod(text: &str) -> Sections {
    let mut sections = Sections::new();
    let mut is_open = false;
    for line in text.lines() {
        let line_text = line.split("//").next().unwrap_or_default().trim();
        match sections.last_mut().filter(|_| is_open) {
            Some((_, block)) => {
                block.push_str(line_text);
                block.push('\n');
                is_open = line_text != ")";
            }
            None => {
                let word = line_text.split([' ', '\t', '(']).next().unwrap_or_default();
                if !word.is_empty() {
                    sections.push((word.to_owned(), format!("{line_text}\n")));
                    is_open = line_text.ends_with('(');
                }
            }
        }
    }
    sections
}

#[cfg(test)]
mod tests;
