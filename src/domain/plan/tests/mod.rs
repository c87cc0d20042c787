//! Tests of reading, of patching, and of comparing two plans.

mod formats;
mod order;
mod patching;
mod reading;
mod written;

use super::*;
use std::collections::HashSet;

pub(super) fn plan(name: &str, text: &str) -> Plan {
    match parse(name, text.as_bytes()) {
        Ok(parsed) => parsed.value,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// The text with the state of one task set.
pub(super) fn set_status(
    name: &str,
    text: &str,
    task: &TaskId,
    update: &StatusUpdate,
) -> Result<String, PlanError> {
    set_statuses(name, text, &[(task, update)])
}

/// The text with the marks of `before`, or as it is.
pub(super) fn marked_as(name: &str, text: &str, before: &str, except: &HashSet<&TaskId>) -> String {
    let opened = open(name, text.as_bytes()).ok();
    let marked = opened.and_then(|opened| opened.value.with_marks_of(before, except));
    marked.unwrap_or_else(|| text.to_owned())
}

pub(super) fn error(name: &str, text: &str) -> String {
    let error = parse(name, text.as_bytes()).expect_err(text);
    error.to_string()
}

pub(super) fn warnings(name: &str, text: &str) -> Vec<String> {
    let parsed = parse(name, text.as_bytes()).expect(text);
    parsed.warnings.iter().map(ToString::to_string).collect()
}

pub(super) fn id(text: &str) -> TaskId {
    TaskId::new(text).expect("an id")
}

pub(super) fn bare_task(name: &str, title: &str, line: usize) -> Task {
    Task {
        line,
        ..Task::new(id(name), title)
    }
}

pub(super) fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|&text| text.to_owned()).collect()
}
