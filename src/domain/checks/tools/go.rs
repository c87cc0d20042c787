//! go build, go vet and go test.

use crate::checks::diagnostic::{Place, Sink, Tool};
use crate::pattern::{Pattern, group};

static COMPILED: Pattern =
    Pattern::new(r"^(?:vet: )?((?:[A-Za-z]:)?[^\s:]+\.go):(\d+):(\d+): (.+)$");
static LOGGED: Pattern = Pattern::new(r"^\s+([^\s:]+\.go):(\d+): (.*)$");
static FAILED: Pattern = Pattern::new(r"^\s*--- FAIL: (\S+)");
static RUN: Pattern = Pattern::new(r"^=== (?:RUN|CONT|NAME)\s+(\S+)");
static PANIC: Pattern = Pattern::new(r"^panic: (.+)$");
static FRAME: Pattern = Pattern::new(r"^\t(\S+\.go):(\d+)(?: \+0x[0-9a-f]+)?$");
static FAIL: Pattern = Pattern::new(r"^(?:FAIL\b|\s*--- FAIL: )");

pub(in crate::checks) fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    let tests = lines.iter().any(|line| FAIL.is_match(line));
    let mut test = String::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = COMPILED.captures(line) {
            let place = Place {
                path: group(&found, 1),
                line: group(&found, 2),
                column: group(&found, 3),
            };
            sink.error(at, place, group(&found, 4), Tool::Go);
        } else if !tests {
            continue;
        } else if let Some(found) = FAILED.captures(line).or_else(|| RUN.captures(line)) {
            test = group(&found, 1).to_owned();
        } else if let Some(found) = LOGGED.captures(line) {
            logged(lines, at, &found, &test, sink);
        } else if let Some(found) = PANIC.captures(line) {
            panicked(lines, at, group(&found, 1), sink);
        }
    }
}

fn logged(lines: &[&str], at: usize, found: &regex::Captures<'_>, test: &str, sink: &mut Sink<'_>) {
    if test.is_empty() {
        return;
    }
    let place = Place {
        path: group(found, 1),
        line: group(found, 2),
        column: "",
    };
    let mut message = format!("{test}: {}", group(found, 3));
    let deeper = lines
        .iter()
        .skip(at + 1)
        .take_while(|line| line.starts_with("        "))
        .take(8);
    for more in deeper.filter(|more| !LOGGED.is_match(more)) {
        message.push('\n');
        message.push_str(more.trim());
    }
    sink.error(at, place, &message, Tool::Go);
}

fn panicked(lines: &[&str], at: usize, message: &str, sink: &mut Sink<'_>) {
    let frames = lines.iter().enumerate().skip(at + 1).take(60);
    let own = frames
        .filter_map(|(at, line)| FRAME.captures(line).map(|found| (at, found)))
        .find(|(_, found)| sink.relative(group(found, 1)).is_some());
    let Some((at, found)) = own else { return };
    let place = Place {
        path: group(&found, 1),
        line: group(&found, 2),
        column: "",
    };
    sink.error(at, place, &format!("panic: {message}"), Tool::Go);
}
