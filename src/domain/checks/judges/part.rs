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
        let mixed = match self {
            Self::Whole => return Some(Restored::Old),
            Self::Json(free) => json(old).zip(json(new)).map(|(old, new)| {
                let write = |value: &Value| serde_json::to_string_pretty(value).ok();
                mix_values(&old, &new, free).map(|mixed| write(&mixed))
            }),
            Self::Toml(free) => toml(old).zip(toml(new)).map(|(old, new)| {
                let write = |value: &Value| ::toml::to_string(value).ok();
                mix_values(&old, &new, free).map(|mixed| write(&mixed))
            }),
            Self::Ini(free) => {
                let is_free = |name: &str| {
                    let first = name.split(['.', ':']).next();
                    let is_held = has_word(free, &format!("!{name}"));
                    let is_named = has_word(free, name);
                    !is_held && (is_named || first.is_some_and(|first| has_word(free, first)))
                };
                Some(mix_sections(&ini(old), &ini(new), is_free).map(Some))
            }
            Self::GoMod => {
                let (old, new) = (go_mod(old), go_mod(new));
                let versions = go_version(&old).zip(go_version(&new));
                let is_raised = versions.is_some_and(|(old, new)| old < new);
                let is_free = |name: &str| name == "require" || (name == "go" && is_raised);
                Some(mix_sections(&old, &new, is_free).map(Some))
            }
            Self::Lines(free) => {
                let held = |text: &str| -> Vec<String> {
                    let lines = text.lines().map(str::trim);
                    let lines = lines.filter(|line| !line.is_empty() && !free.is_match(line));
                    lines.map(str::to_owned).collect()
                };
                (held(old) == held(new)).then_some(None)
            }
            Self::RustTests => Some(rust_tests(old, new).map(Some)),
        };
        match mixed {
            Some(None) => None,
            Some(Some(Some(text))) => Some(Restored::Mixed(text)),
            Some(Some(None)) | None => Some(Restored::Old),
        }
    }
}

fn json(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    value.is_object().then_some(value)
}

fn toml(text: &str) -> Option<Value> {
    ::toml::from_str(text).ok()
}

/// The old value with the free keys as in the new one; `None` if nothing else differs.
fn mix_values(old: &Value, new: &Value, free: &str) -> Option<Value> {
    let mut mixed = old.clone();
    for path in free.split_whitespace() {
        match path.strip_prefix('!') {
            Some(path) => take_over(&mut mixed, Some(old), &keys_of(path)),
            None => take_over(&mut mixed, Some(new), &keys_of(path)),
        }
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

fn keys_of(path: &str) -> Vec<&str> {
    path.split('.').collect()
}

/// An empty table equals a missing one.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let none = Value::Object(Map::new());
            keys.into_iter().all(|key| {
                let of = |map: &Map<String, Value>| map.get(key).cloned();
                match (of(one), of(other)) {
                    (Some(one), Some(other)) => same(&one, &other),
                    (Some(only), None) | (None, Some(only)) => only == none,
                    (None, None) => true,
                }
            })
        }
        (one, other) => one == other,
    }
}

fn take_over(into: &mut Value, from: Option<&Value>, keys: &[&str]) {
    let (Some(map), Some((key, rest))) = (into.as_object_mut(), keys.split_first()) else {
        return;
    };
    if let Some(key) = key.strip_suffix('@') {
        return take_over_foreign(map, from, key);
    }
    let raised = key.strip_suffix('+');
    if let Some(key) = raised
        && map.get(key).and_then(Value::as_str) >= from.and_then(|it| it.get(key)?.as_str())
    {
        return;
    }
    let names: BTreeSet<String> = match raised.unwrap_or(key) {
        "*" => {
            let new = from
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(Map::keys)
                .cloned();
            let held = with_all_it_names(map, "default");
            held.iter().for_each(|name| hold_feature(map, from, name));
            let all = map.keys().cloned().chain(new);
            all.filter(|name| !held.contains(name)).collect()
        }
        name => BTreeSet::from([name.to_owned()]),
    };
    for name in names {
        let new = from.and_then(|from| from.get(&name));
        if !rest.is_empty() {
            if new.is_some_and(Value::is_object) && !map.contains_key(&name) {
                map.insert(name.clone(), Value::Object(Map::new()));
            }
            if let Some(inner) = map.get_mut(&name) {
                take_over(inner, new, rest);
            }
            continue;
        }
        match new {
            Some(new) => {
                map.insert(name, new.clone());
            }
            None => {
                map.remove(&name);
            }
        }
    }
}

/// Takes over the imports from elsewhere. What is taken from the work tree could stand in for what judges it.
fn take_over_foreign(map: &mut Map<String, Value>, from: Option<&Value>, key: &str) {
    let imports = |value: Option<&Value>| {
        let all = value.and_then(Value::as_object);
        all.cloned().unwrap_or_default()
    };
    let new = imports(from.and_then(|from| from.get(key)));
    let mut mixed = imports(map.get(key));
    mixed.retain(|name, was| is_local(was) || new.get(name).is_some_and(is_local));
    let foreign = new.into_iter().filter(|(_, value)| !is_local(value));
    mixed.extend(foreign);
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
fn hold_feature(map: &mut Map<String, Value>, from: Option<&Value>, name: &str) {
    let Some(old) = map.get_mut(name).and_then(Value::as_array_mut) else {
        return;
    };
    let is_of_dependency = |word: &Value| {
        word.as_str()
            .is_some_and(|word| word.starts_with("dep:") || word.contains('/'))
    };
    let new = from
        .and_then(|it| it.get(name)?.as_array())
        .into_iter()
        .flatten();
    let mut mixed: Vec<Value> = new
        .filter(|word| is_of_dependency(word) || old.contains(word))
        .cloned()
        .collect();
    old.retain(|word| !is_of_dependency(word) && !mixed.contains(word));
    mixed.append(old);
    *old = mixed;
}

type Sections = Vec<(String, String)>;

fn mix_sections(old: &Sections, new: &Sections, is_free: impl Fn(&str) -> bool) -> Option<String> {
    let decide = |sections: &Sections| -> BTreeMap<String, String> {
        let mut all: BTreeMap<String, String> = BTreeMap::new();
        for (name, text) in sections.iter().filter(|(name, _)| !is_free(name)) {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            let lines: Vec<&str> = lines.filter(|line| !line.starts_with(['#', ';'])).collect();
            all.entry(name.clone())
                .or_default()
                .push_str(&lines.join("\n"));
        }
        all.retain(|_, text| !text.is_empty());
        all
    };
    if decide(old) == decide(new) {
        return None;
    }
    let kept = old.iter().filter(|(name, _)| !is_free(name));
    let taken = new.iter().filter(|(name, _)| is_free(name));
    Some(kept.chain(taken).map(|(_, text)| text.as_str()).collect())
}

/// The sections of an INI file with their headers; the text above the first header has no name.
fn ini(text: &str) -> Sections {
    let mut sections: Sections = vec![(String::new(), String::new())];
    for line in text.lines() {
        let name = line.strip_prefix('[').and_then(|line| line.split_once(']'));
        if let Some((name, _)) = name {
            sections.push((name.trim().to_owned(), String::new()));
        }
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
