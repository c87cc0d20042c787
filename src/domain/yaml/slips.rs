//! Slips of the pen that YAML accepts.

use super::{Node, Style, Value};
use crate::text_error::Fault;

/// The keys of commands. Those of a check are `run`, or the check itself.
const COMMANDS: &[&str] = &["agent_command", "run", "setup", "verify"];

/// The keys of other texts in words.
const TEXTS: &[&str] = &["acceptance", "description", "goal", "title"];

/// Texts and commands that end before a ` #`, because YAML reads the rest as a comment. A comment that is set
/// apart by more than one blank is meant as one.
///
/// # Errors
/// A command that begins with a typographic quote, which is a part of the command.
pub fn slips(text: &str, root: &Node) -> Result<Vec<Fault>, Fault> {
    let mut found = Vec::new();
    look(text, root, "", &mut found)?;
    Ok(found)
}

fn look(text: &str, node: &Node, key: &str, found: &mut Vec<Fault>) -> Result<(), Fault> {
    match &node.value {
        Value::List { items } => {
            let mut items = items.iter();
            items.try_for_each(|item| look(text, item, key, found))
        }
        Value::Map { entries, .. } => {
            let mut entries = entries.iter().filter(|entry| !entry.merged);
            entries.try_for_each(|entry| look(text, &entry.value, &entry.key, found))
        }
        Value::Scalar {
            text: value,
            style: Style::Plain,
        } if node.own => {
            let is_command = COMMANDS.contains(&key);
            if is_command && value.starts_with(['“', '”', '„', '‘', '’', '«']) {
                let message = format!(
                    "{key} begins with a typographic quote, which is no quote in YAML: write \" or '"
                );
                return Err(Fault::new(node.at, message));
            }
            let after = text[node.span.end..].lines().next().unwrap_or_default();
            let is_cut = after.starts_with(" #")
                || (after.starts_with('#') && text[..node.span.end].ends_with(' '));
            if is_cut && (is_command || TEXTS.contains(&key)) {
                let message = format!(
                    "YAML reads `{}` as a comment, so {key} ends before it: put the text in quotes to keep it, or two blanks before the comment",
                    after.trim()
                );
                found.push(Fault::new(node.at, message));
            }
            Ok(())
        }
        Value::Scalar { .. } => Ok(()),
    }
}
