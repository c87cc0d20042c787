//! The kinds of values that settings have: how each is read, and its JSON Schema.

use super::{Progress, RoleSettings};
use crate::duration;
use crate::suggest::did_you_mean;
use crate::text_error::Fault;
use crate::yaml::{Node, read};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::time::Duration;

/// How the value is written where there is no YAML: in a variable, a flag, an action input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One word or number.
    Word,
    /// Text, taken as it is.
    Text,
    /// One item a line.
    Lines,
    /// YAML.
    Tree,
}

/// A kind of value.
pub trait Kind {
    /// What it is read as.
    type Out;
    /// How it is written outside of YAML.
    fn shape(&self) -> Shape;
    /// JSON Schema of what `read` accepts.
    fn schema(&self) -> Json;
    /// Reads a value that is not null.
    ///
    /// # Errors
    /// A value of another type or out of range, naming the key and what was expected.
    fn read(&self, key: &str, node: &Node) -> Result<Self::Out, Fault>;
}

/// Text that is not blank.
pub struct Text;

impl Kind for Text {
    type Out = String;
    fn shape(&self) -> Shape {
        Shape::Text
    }
    fn schema(&self) -> Json {
        text_schema()
    }
    fn read(&self, key: &str, node: &Node) -> Result<String, Fault> {
        read::words(key, node)
    }
}

/// `true` or `false`.
pub struct Truth;

impl Kind for Truth {
    type Out = bool;
    fn shape(&self) -> Shape {
        Shape::Word
    }
    fn schema(&self) -> Json {
        json!({"type": "boolean"})
    }
    fn read(&self, key: &str, node: &Node) -> Result<bool, Fault> {
        read::truth(key, node)
    }
}

/// A whole number within bounds.
pub struct Whole<T> {
    min: u64,
    max: u64,
    out: PhantomData<T>,
}

impl<T> Whole<T> {
    /// From `min` to `max`, both included.
    pub const fn new(min: u64, max: u64) -> Self {
        Self {
            min,
            max,
            out: PhantomData,
        }
    }
}

impl<T: TryFrom<u64>> Kind for Whole<T> {
    type Out = T;
    fn shape(&self) -> Shape {
        Shape::Word
    }
    fn schema(&self) -> Json {
        if self.max == u64::MAX {
            json!({"type": "integer", "minimum": self.min})
        } else {
            json!({"type": "integer", "minimum": self.min, "maximum": self.max})
        }
    }
    fn read(&self, key: &str, node: &Node) -> Result<T, Fault> {
        let number = read::whole(key, node, self.min, self.max)?;
        T::try_from(number)
            .map_err(|_| read::unexpected(key, &read::whole_expected(self.min, self.max), node))
    }
}

/// An amount of US dollars above zero.
pub struct Money;

impl Kind for Money {
    type Out = f64;
    fn shape(&self) -> Shape {
        Shape::Word
    }
    fn schema(&self) -> Json {
        json!({"type": "number", "exclusiveMinimum": 0})
    }
    fn read(&self, key: &str, node: &Node) -> Result<f64, Fault> {
        read::plain(node)
            .filter(|text| text.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
            .and_then(|text| text.parse::<f64>().ok())
            .filter(|amount| amount.is_finite() && *amount > 0.0)
            .ok_or_else(|| read::unexpected(key, "a number above 0, in US dollars", node))
    }
}

/// A duration above zero.
pub struct Time;

impl Kind for Time {
    type Out = Duration;
    fn shape(&self) -> Shape {
        Shape::Word
    }
    fn schema(&self) -> Json {
        json!({"anyOf": [
            {"type": "string", "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+(m|min))?([0-9]+s)?([0-9]+ms)?$", "minLength": 1},
            {"type": "string", "pattern": "^[0-9]+$"},
            {"type": "integer", "minimum": 1},
        ]})
    }
    fn read(&self, key: &str, node: &Node) -> Result<Duration, Fault> {
        let Some(text) = node.text() else {
            return Err(read::unexpected(key, duration::EXPECTED, node));
        };
        let time = duration::parse(text.trim())
            .map_err(|message| Fault::new(node.at, format!("{key} {message}")))?;
        if time.is_zero() {
            return Err(read::unexpected(key, "longer than 0s", node));
        }
        Ok(time)
    }
}

/// Texts that are not blank; one need not be a list.
pub struct Texts;

impl Kind for Texts {
    type Out = Vec<String>;
    fn shape(&self) -> Shape {
        Shape::Lines
    }
    fn schema(&self) -> Json {
        texts_schema()
    }
    fn read(&self, key: &str, node: &Node) -> Result<Vec<String>, Fault> {
        read::texts(key, node)
    }
}

/// Globs of paths in the repository.
pub struct Globs;

impl Kind for Globs {
    type Out = Vec<String>;
    fn shape(&self) -> Shape {
        Shape::Lines
    }
    fn schema(&self) -> Json {
        texts_schema()
    }
    fn read(&self, key: &str, node: &Node) -> Result<Vec<String>, Fault> {
        globs(key, node)
    }
}

/// Names of environment variables.
pub struct Variables;

impl Kind for Variables {
    type Out = Vec<String>;
    fn shape(&self) -> Shape {
        Shape::Lines
    }
    fn schema(&self) -> Json {
        let name = json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"});
        json!({"anyOf": [name.clone(), {"type": "array", "items": name}]})
    }
    fn read(&self, key: &str, node: &Node) -> Result<Vec<String>, Fault> {
        let expected = "a list of names of environment variables";
        let items = read::items(key, expected, node)?;
        items
            .into_iter()
            .map(|item| match item.text() {
                Some(name) if is_variable_name(name) => Ok(name.to_owned()),
                _ => Err(read::unexpected(key, expected, item)),
            })
            .collect()
    }
}

/// `progress`.
pub struct ProgressKind;

impl Kind for ProgressKind {
    type Out = Progress;
    fn shape(&self) -> Shape {
        Shape::Tree
    }
    fn schema(&self) -> Json {
        json!({"type": "object", "properties": {"ignore": texts_schema()}, "additionalProperties": false})
    }
    fn read(&self, key: &str, node: &Node) -> Result<Progress, Fault> {
        let expected = "a mapping with the key `ignore`";
        let mut progress = Progress::default();
        for entry in read::entries(key, expected, node)? {
            match entry.key.as_str() {
                "ignore" => progress.ignore = globs("progress.ignore", &entry.value)?,
                other => return Err(unknown_part(key, other, &["ignore"], entry.key_at)),
            }
        }
        Ok(progress)
    }
}

/// `roles`.
pub struct Roles;

const ROLES: &[&str] = &["implementer", "tester", "reviewer", "fixer"];
const ROLE_KEYS: &[&str] = &["agent", "agent_command", "agent_args", "model"];

impl Kind for Roles {
    type Out = BTreeMap<String, RoleSettings>;
    fn shape(&self) -> Shape {
        Shape::Tree
    }
    fn schema(&self) -> Json {
        let role = json!({"type": "object", "additionalProperties": false, "properties": {
            "agent": text_schema(), "agent_command": text_schema(),
            "agent_args": texts_schema(), "model": text_schema(),
        }});
        let roles: serde_json::Map<_, _> = ROLES
            .iter()
            .map(|&name| (name.to_owned(), role.clone()))
            .collect();
        json!({"type": "object", "additionalProperties": false, "properties": roles})
    }
    fn read(&self, key: &str, node: &Node) -> Result<Self::Out, Fault> {
        let mut roles = BTreeMap::new();
        for entry in read::entries(key, "a mapping of roles", node)? {
            if !ROLES.contains(&entry.key.as_str()) {
                return Err(unknown_part(key, &entry.key, ROLES, entry.key_at));
            }
            roles.insert(entry.key.clone(), role(&entry.key, &entry.value)?);
        }
        Ok(roles)
    }
}

fn role(name: &str, node: &Node) -> Result<RoleSettings, Fault> {
    let key = format!("roles.{name}");
    let mut role = RoleSettings::default();
    for entry in read::entries(&key, "a mapping such as { model: … }", node)? {
        let part = format!("{key}.{}", entry.key);
        match super::canonical_name(&entry.key) {
            "agent" => role.agent = Some(read::words(&part, &entry.value)?),
            "agent_command" => role.agent_command = Some(read::words(&part, &entry.value)?),
            "agent_args" => role.agent_args = Some(read::texts(&part, &entry.value)?),
            "model" => role.model = Some(read::words(&part, &entry.value)?),
            other => return Err(unknown_part(&key, other, ROLE_KEYS, entry.key_at)),
        }
    }
    Ok(role)
}

/// A closed set of words.
pub trait Words: Sized + Copy + 'static {
    /// Each word with its value.
    const WORDS: &'static [(&'static str, Self)];
}

/// One of a closed set of words.
pub struct Choice<T>(PhantomData<T>);

impl<T> Choice<T> {
    /// One of the words of `T`.
    pub const fn kind() -> Self {
        Self(PhantomData)
    }
}

impl<T: Words> Kind for Choice<T> {
    type Out = T;
    fn shape(&self) -> Shape {
        Shape::Word
    }
    fn schema(&self) -> Json {
        let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json!({"enum": words})
    }
    fn read(&self, key: &str, node: &Node) -> Result<T, Fault> {
        let words = || T::WORDS.iter().map(|(word, _)| *word);
        let given = node.text().unwrap_or_default();
        if let Some((_, value)) = T::WORDS.iter().find(|(word, _)| *word == given) {
            return Ok(*value);
        }
        let expected = format!("one of {}", words().collect::<Vec<_>>().join(", "));
        let mut fault = read::unexpected(key, &expected, node);
        fault.message.push_str(&did_you_mean(given, words()));
        Err(fault)
    }
}

fn globs(key: &str, node: &Node) -> Result<Vec<String>, Fault> {
    let items = read::items(key, "a list of globs", node)?;
    let mut globs = Vec::with_capacity(items.len());
    for item in items {
        let glob = read::words(&format!("each item of {key}"), item)?;
        if let Err(error) = globset::Glob::new(&glob) {
            let message = format!("{key} must be a list of globs, but {}", error.kind());
            return Err(Fault::new(item.at, message));
        }
        globs.push(glob);
    }
    Ok(globs)
}

fn unknown_part(
    key: &str,
    given: &str,
    known: &[&'static str],
    at: crate::text_error::Position,
) -> Fault {
    let suggestion = did_you_mean(given, known.iter().copied());
    let message = format!(
        "{key} has no part `{given}`, only {}{suggestion}",
        known.join(", ")
    );
    Fault::new(at, message)
}

fn is_variable_name(name: &str) -> bool {
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && name.starts_with(|c: char| !c.is_ascii_digit())
}

pub(super) fn text_schema() -> Json {
    json!({"type": ["string", "number", "boolean"]})
}

pub(crate) fn texts_schema() -> Json {
    let text = text_schema();
    json!({"anyOf": [text, {"type": "array", "items": text}]})
}
