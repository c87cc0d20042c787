//! Reads typed values from a tree. Each error names the key and what was expected.

use super::{Entry, Node, Style, Value};
use crate::suggest::did_you_mean;
use crate::text_error::Fault;

/// The error "`key` must be `expected`, got …" at the value's position.
pub fn unexpected(key: &str, expected: &str, node: &Node) -> Fault {
    let message = format!("{key} must be {expected}, got {}", node.described());
    Fault::new(node.at, message)
}

/// Any scalar as it is written: `3` and `true` are text too.
///
/// # Errors
/// A list, a mapping, or null.
pub fn text(key: &str, node: &Node) -> Result<String, Fault> {
    let text = node.text().map(str::to_owned);
    text.ok_or_else(|| unexpected(key, "text", node))
}

/// Text that is not blank, trimmed.
///
/// # Errors
/// Any other value.
pub fn words(key: &str, node: &Node) -> Result<String, Fault> {
    let text = text(key, node)?;
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(unexpected(key, "text that is not empty", node));
    }
    Ok(trimmed.to_owned())
}

/// `true` or `false`.
///
/// # Errors
/// Any other value, including `yes` and `on`.
pub fn truth(key: &str, node: &Node) -> Result<bool, Fault> {
    match plain(node) {
        Some("true" | "True" | "TRUE") => Ok(true),
        Some("false" | "False" | "FALSE") => Ok(false),
        _ => Err(unexpected(key, "true or false", node)),
    }
}

/// A whole number in a range.
///
/// # Errors
/// Any other value: a fraction, a quoted number, a number out of range.
pub fn whole(key: &str, node: &Node, min: u64, max: u64) -> Result<u64, Fault> {
    let number = plain(node)
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse::<u64>().ok())
        .filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| unexpected(key, &whole_expected(min, max), node))
}

/// A description of the values that [`whole`] accepts.
pub fn whole_expected(min: u64, max: u64) -> String {
    if max == u64::MAX {
        format!("a whole number of at least {min}")
    } else {
        format!("a whole number from {min} to {max}")
    }
}

/// The items of a list; a single scalar is a list of one item, and null is an empty list.
///
/// # Errors
/// A mapping.
pub fn items<'a>(key: &str, expected: &str, node: &'a Node) -> Result<Vec<&'a Node>, Fault> {
    match &node.value {
        Value::List { items } => Ok(items.iter().collect()),
        Value::Scalar { .. } if node.is_null() => Ok(Vec::new()),
        Value::Scalar { .. } => Ok(vec![node]),
        Value::Map { .. } => Err(unexpected(key, expected, node)),
    }
}

/// A list of texts that are not blank, or a single such text.
///
/// # Errors
/// Any other value.
pub fn texts(key: &str, node: &Node) -> Result<Vec<String>, Fault> {
    let items = items(key, "a list of texts", node)?.into_iter();
    let text = |item| words(&format!("each item of {key}"), item);
    items.map(text).collect()
}

/// The entries of a mapping; null is an empty mapping.
///
/// # Errors
/// A scalar or a list.
pub fn entries<'a>(key: &str, expected: &str, node: &'a Node) -> Result<&'a [Entry], Fault> {
    match &node.value {
        Value::Map { entries, .. } => Ok(entries),
        _ if node.is_null() => Ok(&[]),
        _ => Err(unexpected(key, expected, node)),
    }
}

/// The text of a plain scalar.
pub fn plain(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Scalar {
            text,
            style: Style::Plain,
        } => Some(text),
        _ => None,
    }
}

/// The error for a part of a mapping that is none of the known ones.
pub fn unknown_part(key: &str, entry: &Entry, known: &[&'static str]) -> Fault {
    let suggestion = did_you_mean(&entry.key, known.iter().copied());
    let message = format!(
        "{key} has no part `{}`, only {}{suggestion}",
        entry.key,
        known.join(", ")
    );
    Fault::new(entry.key_at, message)
}
