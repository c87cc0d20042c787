//! The kinds of setting values: how each is read, and its JSON Schema.

use crate::duration;
use crate::pattern::Pattern;
use crate::suggest::did_you_mean;
use crate::text_error::Fault;
use crate::yaml::{Node, read};
use serde_json::{Value as Json, json};
use std::marker::PhantomData;
use std::time::Duration;

/// How a value is written outside YAML: in a flag, an action input or a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `true` or `false`.
    Truth,
    /// One word or number.
    Word,
    /// Text, used unchanged.
    Text,
    /// A list with one item per line; a flag is repeated.
    Lines,
    /// A list with one item per line; a flag is repeated, and each of its values is one unchanged item.
    Arguments,
    /// YAML.
    Tree,
}

/// A kind of value.
pub trait Kind {
    /// The type of the parsed value.
    type Out;
    /// How the value is written outside YAML, if that is the same for all of the kind.
    const FORM: Form = Form::Word;
    /// The placeholder for its value, in capitals, if that is the same for all of the kind.
    const NAME: &'static str = "YAML";
    /// How the value is written outside YAML.
    fn form(&self) -> Form {
        Self::FORM
    }
    /// JSON Schema of what `read` accepts.
    fn schema(&self) -> Json;
    /// The placeholder for its value, in capitals.
    fn value_name(&self) -> &'static str {
        Self::NAME
    }
    /// The accepted words, if these are a closed set.
    fn choices(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// The minimum and maximum, if there are any.
    fn range(&self) -> Option<(u64, u64)> {
        None
    }
    /// A value in its written form, for people.
    fn words(&self, value: &Self::Out) -> String;
    /// Reads a value that is not null.
    ///
    /// # Errors
    /// A value of the wrong type or out of range; the message names the key and what was expected.
    fn read(&self, key: &str, node: &Node) -> Result<Self::Out, Fault>;
}

/// Text that is not blank, with its placeholder.
pub struct Text {
    item: &'static str,
    rule: fn(&str) -> Result<(), String>,
}

impl Text {
    /// Any such text.
    pub const fn named(item: &'static str) -> Self {
        Self::that(item, |_| Ok(()))
    }

    /// Text that the rule accepts; otherwise it says why not, after the name of the key.
    pub const fn that(item: &'static str, rule: fn(&str) -> Result<(), String>) -> Self {
        Self { item, rule }
    }
}

impl Kind for Text {
    type Out = String;
    const FORM: Form = Form::Text;
    fn schema(&self) -> Json {
        text_schema()
    }
    fn value_name(&self) -> &'static str {
        self.item
    }
    fn words(&self, value: &String) -> String {
        literal(value)
    }
    fn read(&self, key: &str, node: &Node) -> Result<String, Fault> {
        let given = read::words(key, node)?;
        (self.rule)(&given).map_err(|why| Fault::new(node.at, format!("{key} {why}")))?;
        Ok(given)
    }
}

/// Requires that a template has no placeholders but these.
pub(super) fn has_only(template: &str, known: &[&str]) -> Result<(), String> {
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        if !known.contains(&name) {
            let nearest = did_you_mean(name, known.iter().copied());
            return Err(format!("has no placeholder `{{{name}}}`{nearest}"));
        }
        rest = behind;
    }
    Ok(())
}

/// One of a closed set of words that has no type of its own.
pub struct OneOf(pub &'static [&'static str]);

impl Kind for OneOf {
    type Out = String;
    const NAME: &'static str = "NAME";
    fn schema(&self) -> Json {
        json!({"enum": self.0})
    }
    fn choices(&self) -> Vec<&'static str> {
        self.0.to_vec()
    }
    fn words(&self, value: &String) -> String {
        literal(value)
    }
    fn read(&self, key: &str, node: &Node) -> Result<String, Fault> {
        let given = node.text().map(str::trim).unwrap_or_default();
        if self.0.contains(&given) {
            Ok(given.to_owned())
        } else {
            Err(not_one_of(key, self.0, node))
        }
    }
}

/// `true` or `false`.
pub struct Truth;

impl Kind for Truth {
    type Out = bool;
    const FORM: Form = Form::Truth;
    const NAME: &'static str = "BOOL";
    fn schema(&self) -> Json {
        json!({"type": "boolean"})
    }
    fn words(&self, value: &bool) -> String {
        literal(&value.to_string())
    }
    fn read(&self, key: &str, node: &Node) -> Result<bool, Fault> {
        read::truth(key, node)
    }
}

/// A whole number in a range.
pub struct Whole<T> {
    min: u64,
    max: u64,
    out: PhantomData<T>,
}

impl<T> Whole<T> {
    /// A range from `min` to `max`, both included.
    pub const fn new(min: u64, max: u64) -> Self {
        Self {
            min,
            max,
            out: PhantomData,
        }
    }
}

impl<T: TryFrom<u64> + std::fmt::Display> Kind for Whole<T> {
    type Out = T;
    const NAME: &'static str = "N";
    fn schema(&self) -> Json {
        if self.max == u64::MAX {
            json!({"type": "integer", "minimum": self.min})
        } else {
            json!({"type": "integer", "minimum": self.min, "maximum": self.max})
        }
    }
    fn range(&self) -> Option<(u64, u64)> {
        (self.max != u64::MAX).then_some((self.min, self.max))
    }
    fn words(&self, value: &T) -> String {
        literal(&value.to_string())
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
    const NAME: &'static str = "USD";
    fn schema(&self) -> Json {
        json!({"type": "number", "exclusiveMinimum": 0})
    }
    fn words(&self, value: &f64) -> String {
        literal(&value.to_string())
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
    const NAME: &'static str = "DURATION";
    fn schema(&self) -> Json {
        json!({"anyOf": [
            {"type": "string", "pattern": duration::NOTATION.source(), "minLength": 1},
            {"type": "string", "pattern": "^[0-9]+$"},
            {"type": "integer", "minimum": 1},
        ]})
    }
    fn words(&self, value: &Duration) -> String {
        literal(&duration::format(*value))
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

/// A list of texts; a single text need not be a list.
pub struct Texts {
    item: &'static str,
    form: Form,
    expected: &'static str,
    pattern: Option<&'static Pattern>,
    rule: fn(&str) -> Result<(), String>,
}

impl Texts {
    /// Any texts, each with this placeholder.
    pub const fn named(item: &'static str) -> Self {
        Self {
            item,
            form: Form::Lines,
            expected: "a list of texts",
            pattern: None,
            rule: |_| Ok(()),
        }
    }

    /// Texts that are used unchanged, each given by a flag.
    pub const fn arguments(item: &'static str) -> Self {
        Self {
            form: Form::Arguments,
            ..Self::named(item)
        }
    }

    const fn matching(
        item: &'static str,
        expected: &'static str,
        pattern: &'static Pattern,
    ) -> Self {
        Self {
            expected,
            pattern: Some(pattern),
            ..Self::named(item)
        }
    }
}

/// Globs of paths in the repository.
pub const GLOBS: Texts = Texts {
    expected: "a list of globs",
    rule: |text| {
        let glob = globset::Glob::new(text);
        glob.map(drop).map_err(|error| error.kind().to_string())
    },
    ..Texts::named("GLOB")
};

/// Paths outside of the repository: absolute, or below the home directory.
pub const PLACES: Texts = Texts::matching(
    "PATH",
    "a list of absolute paths, or of paths that begin with `~/`",
    &PLACE,
);

static PLACE: Pattern = Pattern::new("^(/|~$|~/)");

/// Names of environment variables.
pub const VARIABLES: Texts = Texts::matching(
    "NAME",
    "a list of names of environment variables",
    &VARIABLE,
);

static VARIABLE: Pattern = Pattern::new("^[A-Za-z_][A-Za-z0-9_]*$");

impl Kind for Texts {
    type Out = Vec<String>;
    fn form(&self) -> Form {
        self.form
    }
    fn schema(&self) -> Json {
        let text = self.pattern.map_or_else(
            text_schema,
            |pattern| json!({"type": "string", "pattern": pattern.source()}),
        );
        json!({"anyOf": [text, {"type": "array", "items": text}]})
    }
    fn value_name(&self) -> &'static str {
        self.item
    }
    fn words(&self, value: &Vec<String>) -> String {
        literals(value)
    }
    fn read(&self, key: &str, node: &Node) -> Result<Vec<String>, Fault> {
        let read = |item: &Node| {
            let text = read::words(&format!("each item of {key}"), item)?;
            if self.pattern.is_some_and(|pattern| !pattern.is_match(&text)) {
                return Err(read::unexpected(key, self.expected, item));
            }
            (self.rule)(&text).map_err(|why| {
                let message = format!("{key} must be {}, but {why}", self.expected);
                Fault::new(item.at, message)
            })?;
            Ok(text)
        };
        let items = read::items(key, self.expected, node)?;
        items.into_iter().map(read).collect()
    }
}

/// The setting `progress`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Globs of paths whose changes do not count.
    pub ignore: Vec<String>,
}

/// The kind of [`Progress`].
pub struct ProgressKind;

impl Kind for ProgressKind {
    type Out = Progress;
    const FORM: Form = Form::Tree;
    fn schema(&self) -> Json {
        json!({"type": "object", "properties": {"ignore": texts_schema()}, "additionalProperties": false})
    }
    fn words(&self, value: &Progress) -> String {
        literals(&value.ignore)
    }
    fn read(&self, key: &str, node: &Node) -> Result<Progress, Fault> {
        let expected = "a mapping with the key `ignore`";
        let mut progress = Progress::default();
        for entry in read::entries(key, expected, node)? {
            if entry.key != "ignore" {
                return Err(read::unknown_part(key, entry, &["ignore"]));
            }
            progress.ignore = GLOBS.read("progress.ignore", &entry.value)?;
        }
        Ok(progress)
    }
}

/// The setting `network`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// The hosts that may be reached.
    pub allow: Vec<String>,
}

/// The kind of [`Network`].
pub struct NetworkKind;

/// The word that allows no host.
const NO_HOST: &str = "deny";

impl Kind for NetworkKind {
    type Out = Network;
    const FORM: Form = Form::Lines;
    const NAME: &'static str = "HOST";
    fn schema(&self) -> Json {
        let allow = json!({"type": "object", "properties": {"allow": texts_schema()}, "required": ["allow"], "additionalProperties": false});
        json!({"anyOf": [texts_schema(), allow]})
    }
    fn words(&self, value: &Network) -> String {
        literals(&value.allow)
    }
    fn read(&self, key: &str, node: &Node) -> Result<Network, Fault> {
        let expected = "a list of hosts, `deny`, or a mapping with the key `allow`";
        let Ok(entries) = read::entries(key, expected, node) else {
            return hosts(key, node);
        };
        if let Some(other) = entries.iter().find(|entry| entry.key != "allow") {
            return Err(read::unknown_part(key, other, &["allow"]));
        }
        let allow = entries.first();
        let allow = allow.ok_or_else(|| read::unexpected(key, expected, node))?;
        hosts("network.allow", &allow.value)
    }
}

fn hosts(key: &str, node: &Node) -> Result<Network, Fault> {
    let expected = "a list of names or addresses of hosts without a port, such as example.com, *.example.com or 192.0.2.1";
    let items = read::items(key, expected, node)?;
    let mut allow = Vec::with_capacity(items.len());
    for item in &items {
        let host = read::words(&format!("each item of {key}"), item)?;
        match host.as_str() {
            NO_HOST if items.len() == 1 => {}
            text if is_host(text) => allow.push(host),
            _ => return Err(read::unexpected(key, expected, item)),
        }
    }
    Ok(Network { allow })
}

/// Whether a text is a host name, a host name after `*.`, or an address.
fn is_host(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    let bare = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_v6 = |text: &str| {
        let of_address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
        text.matches(':').count() > 1 && text.chars().all(of_address)
    };
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let is_name = !name.is_empty() && name.chars().all(of_name) && !name.starts_with('.');
    is_name || is_v6(bare.unwrap_or(name))
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

impl<T: Words + PartialEq> Kind for Choice<T> {
    type Out = T;
    const NAME: &'static str = "WORD";
    fn schema(&self) -> Json {
        json!({"enum": self.choices()})
    }
    fn choices(&self) -> Vec<&'static str> {
        T::WORDS.iter().map(|(word, _)| *word).collect()
    }
    fn words(&self, value: &T) -> String {
        let named = T::WORDS.iter().find(|(_, known)| known == value);
        literal(named.map_or("", |(word, _)| word))
    }
    fn read(&self, key: &str, node: &Node) -> Result<T, Fault> {
        let given = node.text().unwrap_or_default();
        match T::WORDS.iter().find(|(word, _)| *word == given) {
            Some((_, value)) => Ok(*value),
            None => Err(not_one_of(key, &self.choices(), node)),
        }
    }
}

fn not_one_of(key: &str, words: &[&'static str], node: &Node) -> Fault {
    let expected = format!("one of {}", words.join(", "));
    let mut fault = read::unexpected(key, &expected, node);
    let given = node.text().unwrap_or_default();
    let nearest = did_you_mean(given, words.iter().copied());
    fault.message.push_str(&nearest);
    fault
}

/// A value in the markup of the documentation.
pub(super) fn literal(value: &str) -> String {
    format!("`{value}`")
}

fn literals(values: &[String]) -> String {
    listed(values.iter().map(|value| literal(value)))
}

/// A list of values in their written form.
pub(super) fn listed(values: impl Iterator<Item = String>) -> String {
    let values: Vec<String> = values.collect();
    if values.is_empty() {
        return "none".to_owned();
    }
    values.join(", ")
}

/// Text that is not blank.
pub(crate) fn text_schema() -> Json {
    json!({"type": ["string", "number", "boolean"], "pattern": "\\S"})
}

pub(crate) fn texts_schema() -> Json {
    let text = text_schema();
    json!({"anyOf": [text, {"type": "array", "items": text}]})
}
