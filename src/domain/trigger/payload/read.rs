//! Reads the fields of an untrusted JSON object.

use super::super::{head, refname};
use super::MAX_TEXT_BYTES;
use serde_json::Value;

/// The maximum length of names, logins, refs and times, in bytes: git's longest ref is slightly below 4,096.
const MAX_NAME_BYTES: usize = 4_096;

/// The maximum number of list entries that are read.
const MAX_LIST: usize = 200;

/// An object in a payload, with its path.
pub(super) struct Fields<'a> {
    event: &'a str,
    path: String,
    value: &'a Value,
}

impl<'a> Fields<'a> {
    pub fn root(event: &'a str, value: &'a Value) -> Self {
        Self {
            event,
            path: String::new(),
            value,
        }
    }

    fn given(&self, name: &str) -> Option<&'a Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    pub fn has(&self, name: &str) -> bool {
        self.given(name).is_some()
    }

    fn at(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    fn invalid(&self, name: &str, expected: &str) -> String {
        let (event, field) = (self.event, self.at(name));
        format!("the {event} event's {field} is not {expected}")
    }

    /// The value, or an error that it is missing.
    pub fn need<T>(&self, value: Option<T>, name: &str) -> Result<T, String> {
        value.ok_or_else(|| format!("the {} event has no {}", self.event, self.at(name)))
    }

    /// An object.
    pub fn child(&self, name: &str) -> Result<Option<Self>, String> {
        match self.given(name) {
            None => Ok(None),
            Some(value) if value.is_object() => Ok(Some(Self {
                event: self.event,
                path: self.at(name),
                value,
            })),
            Some(_) => Err(self.invalid(name, "an object")),
        }
    }

    /// The objects of a list; a missing list is empty.
    pub fn list(&self, name: &str) -> Result<Vec<Self>, String> {
        let Some(value) = self.given(name) else {
            return Ok(Vec::new());
        };
        let items = value
            .as_array()
            .ok_or_else(|| self.invalid(name, "a list"))?;
        let fields = |value: &'a Value| Self {
            event: self.event,
            path: self.at(name),
            value,
        };
        Ok(items.iter().take(MAX_LIST).map(fields).collect())
    }

    /// A short text that is used in full or not at all.
    pub fn name(&self, name: &str) -> Result<Option<String>, String> {
        let Some(value) = self.given(name) else {
            return Ok(None);
        };
        match value.as_str() {
            Some(text) if text.len() <= MAX_NAME_BYTES => Ok(Some(text.to_owned())),
            Some(_) => Err(self.invalid(name, "a short text")),
            None => Err(self.invalid(name, "a text")),
        }
    }

    /// A field of an object that may be missing.
    pub fn name_in(&self, child: &str, name: &str) -> Result<Option<String>, String> {
        match self.child(child)? {
            Some(child) => child.name(name),
            None => Ok(None),
        }
    }

    /// A text, cut to its maximum length; empty if it is missing.
    pub fn text(&self, name: &str) -> Result<String, String> {
        match self.given(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(head(text, MAX_TEXT_BYTES).to_owned()),
            Some(_) => Err(self.invalid(name, "a text")),
        }
    }

    /// The text of an input; `None` if it is blank or not a text.
    pub fn input(&self, name: &str) -> Option<String> {
        let text = self.given(name)?.as_str()?.trim();
        (!text.is_empty()).then(|| head(text, MAX_TEXT_BYTES).to_owned())
    }

    /// A non-negative number.
    pub fn id(&self, name: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.given(name) else {
            return Ok(None);
        };
        let id = value.as_u64();
        id.map(Some)
            .ok_or_else(|| self.invalid(name, "a whole number"))
    }

    /// A commit id.
    pub fn commit(&self, name: &str) -> Result<String, String> {
        let id = self.need(self.name(name)?, name)?;
        if refname::is_commit_id(&id) {
            Ok(id)
        } else {
            Err(self.invalid(name, "a commit's id"))
        }
    }

    /// Whether the field is present and true.
    pub fn truth(&self, name: &str) -> bool {
        self.given(name)
            .and_then(Value::as_bool)
            .unwrap_or_default()
    }
}
