//! Typed values out of a tree, each refusal naming the key and what was expected.

use super::{Entry, Node, Style, Value};
use crate::text_error::Fault;

/// "`key` must be `expected`, got …" at the value's place.
pub fn unexpected(key: &str, expected: &str, node: &Node) -> Fault {
    let message = format!("{key} must be {expected}, got {}", node.described());
    Fault::new(node.at, message)
}

/// Any scalar, as it is written: `3` and `true` are text too.
///
/// # Errors
/// A list, a mapping, or nothing.
pub fn text(key: &str, node: &Node) -> Result<String, Fault> {
    node.text()
        .map(str::to_owned)
        .ok_or_else(|| unexpected(key, "text", node))
}

/// Text that is not blank, without the blanks around it.
///
/// # Errors
/// Anything else.
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
/// Anything else, `yes` and `on` included.
pub fn truth(key: &str, node: &Node) -> Result<bool, Fault> {
    match plain(node) {
        Some("true" | "True" | "TRUE") => Ok(true),
        Some("false" | "False" | "FALSE") => Ok(false),
        _ => Err(unexpected(key, "true or false", node)),
    }
}

/// A whole number within bounds.
///
/// # Errors
/// Anything else: a fraction, a number in quotes, one out of bounds.
pub fn whole(key: &str, node: &Node, min: u64, max: u64) -> Result<u64, Fault> {
    let number = plain(node)
        .filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|text| text.parse::<u64>().ok())
        .filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| unexpected(key, &whole_expected(min, max), node))
}

/// What [`whole`] accepts, in words.
pub fn whole_expected(min: u64, max: u64) -> String {
    if max == u64::MAX {
        format!("a whole number of at least {min}")
    } else {
        format!("a whole number from {min} to {max}")
    }
}

/// The items of a list; a single scalar is a list of one, nothing is an empty one.
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

/// A list of texts that are not blank; a single one need not be a list.
///
/// # Errors
/// Anything else.
pub fn texts(key: &str, node: &Node) -> Result<Vec<String>, Fault> {
    items(key, "a list of texts", node)?
        .into_iter()
        .map(|item| words(&format!("each item of {key}"), item))
        .collect()
}

/// The entries of a mapping; nothing is an empty one.
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
