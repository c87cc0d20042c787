//! pytest, unittest and Python tracebacks.

use crate::checks::diagnostic::{Place, Sink, Tool};
use crate::pattern::{Pattern, group};

static SECTION: Pattern = Pattern::new(r"^_{3,} (?:ERROR (?:collecting|at \w+ of) )?(.+?) _{3,}$");
static RULE: Pattern = Pattern::new(r"^={3,}(?: .* )?=*$");
static RAISED: Pattern = Pattern::new(r"^(\S[^:]*\.py):(\d+): (.*)$");
static EXPLAINED: Pattern = Pattern::new(r"^E(?:   ?|\t)(.*)$");
static SHORT: Pattern = Pattern::new(r"^(?:FAILED|ERROR) ([^\s:]+\.py)((?:::.+?)?)(?: - (.+))?$");
static FRAME: Pattern = Pattern::new(r#"^\s*File "(.+?)", line (\d+)(?:, in .+)?$"#);
static EXCEPTION: Pattern = Pattern::new(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Iteration))(?:: (.*))?$",
);

pub(in crate::checks) fn parse(lines: &[&str], sink: &mut Sink<'_>) {
    let before = sink.found.len();
    sections(lines, sink);
    tracebacks(lines, sink);
    if sink.found.len() == before {
        short_summary(lines, sink);
    }
}

/// One failure of pytest as far as it has been read.
#[derive(Default)]
struct Failure<'a> {
    name: &'a str,
    explained: Vec<&'a str>,
    place: Option<(usize, Place<'a>)>,
    exception: &'a str,
}

impl<'a> Failure<'a> {
    /// A later frame wins, unless it lies outside of the project.
    fn frame(&mut self, at: usize, place: Place<'a>, exception: &'a str, sink: &Sink<'_>) {
        if self.place.is_none() || sink.relative(place.path).is_some() {
            self.place = Some((at, place));
        }
        if !exception.is_empty() && !exception.starts_with("in ") {
            self.exception = exception;
        }
    }

    fn finish(self, sink: &mut Sink<'_>) {
        let Some((at, place)) = self.place else {
            return;
        };
        let text = if self.explained.is_empty() {
            self.exception.to_owned()
        } else {
            self.explained.join("\n")
        };
        if !text.is_empty() {
            sink.error(at, place, &format!("{}: {text}", self.name), Tool::Python);
        }
    }
}

fn sections(lines: &[&str], sink: &mut Sink<'_>) {
    let mut current: Option<Failure<'_>> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some(found) = SECTION.captures(line) {
            if let Some(done) = current.take() {
                done.finish(sink);
            }
            current = Some(Failure {
                name: group(&found, 1),
                ..Failure::default()
            });
        } else if RULE.is_match(line) {
            if let Some(done) = current.take() {
                done.finish(sink);
            }
        } else if let Some(failure) = &mut current {
            if let Some(found) = EXPLAINED.captures(line) {
                failure.explained.push(group(&found, 1).trim());
            } else if let Some(found) = RAISED.captures(line) {
                let place = Place {
                    path: group(&found, 1),
                    line: group(&found, 2),
                    column: "",
                };
                failure.frame(at, place, group(&found, 3).trim(), sink);
            }
        }
    }
    if let Some(done) = current {
        done.finish(sink);
    }
}

fn tracebacks(lines: &[&str], sink: &mut Sink<'_>) {
    let mut last: Option<(usize, Place<'_>)> = None;
    for (at, line) in lines.iter().enumerate() {
        if line
            .trim_start()
            .starts_with("Traceback (most recent call last):")
        {
            last = None;
        } else if let Some(found) = FRAME.captures(line) {
            let place = Place {
                path: group(&found, 1),
                line: group(&found, 2),
                column: "",
            };
            if last.is_none() || sink.relative(place.path).is_some() {
                last = Some((at, place));
            }
        } else if EXCEPTION.is_match(line)
            && let Some((at, place)) = last.take()
        {
            sink.error(at, place, line, Tool::Python);
        }
    }
}

/// What `pytest --tb=no` leaves: the file and the message, without a line.
fn short_summary(lines: &[&str], sink: &mut Sink<'_>) {
    for (at, line) in lines.iter().enumerate() {
        let Some(found) = SHORT.captures(line) else {
            continue;
        };
        let place = Place {
            path: group(&found, 1),
            ..Place::default()
        };
        let name = group(&found, 2).trim_start_matches("::");
        let message = group(&found, 3);
        let message = if message.is_empty() {
            "failed"
        } else {
            message
        };
        let whole = if name.is_empty() {
            message.to_owned()
        } else {
            format!("{name}: {message}")
        };
        sink.error(at, place, &whole, Tool::Python);
    }
}
