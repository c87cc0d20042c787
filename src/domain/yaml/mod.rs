//! YAML as a tree in which every node has its position in the text.
//!
//! Plans, configuration files and the front matter of Markdown are all read here, and so is JSON, which is
//! YAML once its tabs are replaced by spaces. The positions serve error messages and edits that leave the
//! rest of a text unchanged. Sizes are limited: aliases cannot expand a small text into a large tree.

mod build;
pub mod read;
mod slips;

pub use slips::slips;

use super::text_error::{Fault, Position};
use std::ops::Range;

/// The maximum number of nodes in a tree, including those that aliases repeat.
pub const MAX_NODES: usize = 600_000;

/// The maximum nesting depth of nodes.
pub const MAX_DEPTH: usize = 64;

/// A value in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The start of the value.
    pub at: Position,
    /// The byte range of the value. For block collections, its end is not exact.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
    /// Whether the value is written in one piece at its own place (no alias, anchor or tag), so that an edit
    /// at `span` changes only this node.
    pub own: bool,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A single value.
    Scalar {
        /// The text, with escapes and folding resolved.
        text: String,
        /// The notation of the scalar.
        style: Style,
    },
    /// A sequence.
    List {
        /// The items in order.
        items: Vec<Node>,
    },
    /// A mapping with scalar keys, each once.
    Map {
        /// The entries in order; merged entries (`<<`) come last.
        entries: Vec<Entry>,
        /// Whether it is written as `{ … }`.
        flow: bool,
    },
}

/// The notation of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: possibly a number, a boolean or null.
    Plain,
    /// In quotes: always text.
    Quoted,
    /// As a `|` or `>` block: always text.
    Block,
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// The start of the key.
    pub key_at: Position,
    /// The byte range of the key.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
    /// Whether the entry comes from a merged mapping (`<<: *base`).
    pub merged: bool,
}

impl Node {
    /// A value outside any text, as if it were the only content of a file.
    fn outside(value: Value) -> Self {
        Self {
            at: Position::START,
            span: 0..0,
            value,
            own: true,
        }
    }

    /// A plain scalar outside any text.
    pub fn plain(text: &str) -> Self {
        let (text, style) = (text.to_owned(), Style::Plain);
        Self::outside(Value::Scalar { text, style })
    }

    /// A quoted scalar outside any text.
    pub fn quoted(text: &str) -> Self {
        let (text, style) = (text.to_owned(), Style::Quoted);
        Self::outside(Value::Scalar { text, style })
    }

    /// A list of quoted scalars outside any text.
    pub fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let items = texts.into_iter().map(Self::quoted).collect();
        Self::outside(Value::List { items })
    }

    /// Whether it is null: an empty value, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, style: Style::Plain }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The entries of a mapping; empty for any other value.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map { entries, .. } => entries,
            _ => &[],
        }
    }

    /// The items of a sequence; empty for any other value.
    pub fn items(&self) -> &[Self] {
        match &self.value {
            Value::List { items } => items,
            _ => &[],
        }
    }

    /// The entry of a key in a mapping.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// The value of a key in a mapping, unless it is null.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let value = &self.entry(key)?.value;
        (!value.is_null()).then_some(value)
    }

    /// The text of a scalar that is not null.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// A description of the node for messages about unexpected values: `-1`, `"x"`, `a list`.
    pub fn described(&self) -> String {
        match &self.value {
            _ if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, style } => {
                let line = text.lines().next().unwrap_or_default();
                let mut shown: String = if is_like_a_secret(line) {
                    "***".to_owned()
                } else {
                    line.chars().take(40).collect()
                };
                if shown.len() < text.len() {
                    shown.push('…');
                }
                match style {
                    Style::Plain => shown,
                    Style::Quoted | Style::Block => format!("\"{shown}\""),
                }
            }
            Value::List { .. } => "a list".to_owned(),
            Value::Map { .. } => "a mapping".to_owned(),
        }
    }
}

/// Whether a text has a word that may be a secret: the messages about a file end up in logs that others read.
fn is_like_a_secret(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let words = text.split(|c| !is_part(c));
    words.filter(|word| word.len() >= 20).any(|word| {
        let has = |kind: fn(&char) -> bool| word.chars().any(|c| kind(&c));
        has(char::is_ascii_digit) && has(char::is_ascii_alphabetic)
    })
}

/// Reads a text with one YAML document. `None` if the document has no value.
///
/// # Errors
/// The first text that is not YAML, a second document, a key that is given twice or is not a scalar, a tag
/// outside YAML's core schema, or a tree beyond [`MAX_NODES`] or [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Option<Node>, Fault> {
    build::build(text)
}

/// Reads a JSON text. Positions refer to the original text.
///
/// # Errors
/// The errors of `serde_json` and of [`parse`].
pub fn parse_json(text: &str) -> Result<Option<Node>, Fault> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full);
        let at = Position {
            line: error.line().max(1),
            column: error.column().max(1),
        };
        return Err(Fault::new(at, format!("not valid JSON: {message}")));
    }
    // In valid JSON, a tab can only stand between tokens, where YAML requires spaces.
    build::build(&text.replace('\t', " "))
}

#[cfg(test)]
mod tests;
