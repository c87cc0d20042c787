//! Panics of Rust tests and programs, in the form of Rust 1.73 and later and in the one before.

use crate::checks::diagnostic::{Place, Sink, Tool};
use crate::pattern::{Pattern, group};

static NEW: Pattern =
    Pattern::new(r"^\s*thread '(.*?)' (?:\(\d+\) )?panicked at (.+?):(\d+):(\d+):$");
static OLD: Pattern = Pattern::new(r"^\s*thread '(.*?)' (?:\(\d+\) )?panicked at '(.*)$");
static OLD_END: Pattern = Pattern::new(r"^(.*)', ([^',]+?):(\d+):(\d+)$");
static END: Pattern = Pattern::new(
    r"^\s*(?:stack backtrace:|note: |---- .+ ----$|failures:|test .+ \.\.\. |test result: |thread '.*panicked at )",
);

const MESSAGE_LINES: usize = 30;

pub(in crate::checks) fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = NEW.captures(line) {
            let place = Place {
                path: group(&found, 2),
                line: group(&found, 3),
                column: group(&found, 4),
            };
            let message = message_below(lines, at + 1);
            sink.error(
                at,
                place,
                &named(group(&found, 1), &message),
                Tool::RustPanic,
            );
        } else if let Some(found) = OLD.captures(line) {
            old(lines, at, group(&found, 1), group(&found, 2), sink);
        }
    }
}

fn message_below(lines: &[&str], from: usize) -> String {
    let mut message = Vec::new();
    for line in lines.iter().skip(from).take(MESSAGE_LINES) {
        if END.is_match(line) || line.trim().is_empty() {
            break;
        }
        message.push(*line);
    }
    message.join("\n")
}

fn old(lines: &[&str], at: usize, test: &str, first: &str, sink: &mut Sink<'_>) {
    let mut message = String::new();
    let rest = lines.iter().skip(at + 1).copied();
    for line in std::iter::once(first).chain(rest).take(MESSAGE_LINES) {
        if let Some(found) = OLD_END.captures(line) {
            message.push_str(group(&found, 1));
            let place = Place {
                path: group(&found, 2),
                line: group(&found, 3),
                column: group(&found, 4),
            };
            sink.error(at, place, &named(test, &message), Tool::RustPanic);
            return;
        }
        message.push_str(line);
        message.push('\n');
    }
}

fn named(test: &str, message: &str) -> String {
    let message = if message.trim().is_empty() {
        "panicked"
    } else {
        message.trim()
    };
    if matches!(test, "main" | "<unnamed>" | "") {
        message.to_owned()
    } else {
        format!("{test}: {message}")
    }
}
