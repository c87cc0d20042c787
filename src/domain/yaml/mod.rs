//! YAML as a tree in which every node knows its place in the text.
//!
//! Plans, configuration files and the front matter of Markdown all come through here, JSON too
//! (it is YAML once its tabs are blanks). The places serve error messages and edits that leave
//! the rest of a text as it is. Sizes are bounded: aliases cannot multiply a small text into a
//! large tree.

mod build;
pub mod read;

use super::text_error::{Fault, Position};
use std::ops::Range;

/// How many nodes a tree may have, those that aliases repeat included.
pub const MAX_NODES: usize = 600_000;

/// How deep nodes may nest.
pub const MAX_DEPTH: usize = 64;

/// One value in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where the value begins.
    pub at: Position,
    /// The bytes of the text that the value takes up. For collections in block style the end is
    /// not precise.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
    /// Whether the value is written at its place, in one piece: not through an alias, with
    /// neither anchor nor tag, so that an edit at `span` changes this node alone.
    pub own: bool,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A single value.
    Scalar {
        /// The text after escapes and folding.
        text: String,
        /// How it is written.
        style: Style,
    },
    /// A sequence.
    List {
        /// The items in order.
        items: Vec<Node>,
    },
    /// A mapping with scalar keys, each once.
    Map {
        /// The entries in order; merged ones (`<<`) come last.
        entries: Vec<Entry>,
        /// Whether it is written as `{ … }`.
        flow: bool,
    },
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: may be a number, a truth value or nothing at all.
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
    /// Where the key begins.
    pub key_at: Position,
    /// The bytes of the key.
    pub key_span: Range<usize>,
    /// The value.
    pub value: Node,
    /// Whether the entry comes from a merged mapping (`<<: *base`).
    pub merged: bool,
}

impl Node {
    /// A plain scalar that stands for itself, as if a file held nothing else.
    pub fn plain(text: &str) -> Self {
        Self::scalar(text, Style::Plain)
    }

    /// A quoted scalar that stands for itself.
    pub fn quoted(text: &str) -> Self {
        Self::scalar(text, Style::Quoted)
    }

    /// A list of quoted scalars that stands for itself.
    pub fn list<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let items = texts.into_iter().map(Self::quoted).collect();
        Self {
            at: Position::START,
            span: 0..0,
            value: Value::List { items },
            own: true,
        }
    }

    fn scalar(text: &str, style: Style) -> Self {
        Self {
            at: Position::START,
            span: 0..text.len(),
            value: Value::Scalar {
                text: text.to_owned(),
                style,
            },
            own: true,
        }
    }

    /// Whether it is nothing: an empty value, `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, style: Style::Plain }
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map { entries, .. } => entries,
            _ => &[],
        }
    }

    /// The items of a sequence; none for anything else.
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

    /// What the node is, for messages that say what was found instead: `-1`, `"x"`, `a list`.
    pub fn described(&self) -> String {
        match &self.value {
            _ if self.is_null() => "nothing".to_owned(),
            Value::Scalar { text, style } => {
                let line = text.lines().next().unwrap_or_default();
                let mut shown: String = line.chars().take(40).collect();
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

/// Reads a text that holds one YAML document. `None` when it holds no value at all.
///
/// # Errors
/// The first thing that is not YAML, a second document, a key given twice or one that is not a
/// scalar, a tag that is not of YAML's core schema, or a tree beyond [`MAX_NODES`] or
/// [`MAX_DEPTH`].
pub fn parse(text: &str) -> Result<Option<Node>, Fault> {
    build::build(text)
}

/// Reads a JSON text. Places are those of the text as given.
///
/// # Errors
/// What `serde_json` finds wrong, and what [`parse`] refuses.
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
    // In valid JSON a tab can only stand between tokens, where YAML wants blanks.
    build::build(&text.replace('\t', " "))
}

#[cfg(test)]
mod tests;
