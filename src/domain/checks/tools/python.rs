//! Python tracebacks.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "python",
    kind: ToolKind::Code,
    signs: &[r#"^\s*File ".+?", line \d+"#],
    read: |output, sink| tracebacks(output.lines, sink),
    hint,
    ..Tool::NOTHING
};

pub(super) static FRAME: Pattern = Pattern::new(r#"^\s*File "(.+?)", line (\d+)(?:, in .+)?$"#);
pub(super) static EXCEPTION: Pattern = Pattern::new(
    r"^((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Warning|Failure|Iteration))(?:: (.*))?$",
);

/// Whether the line says that a file cannot be parsed. Every test that imports the file fails for this one reason.
pub(super) fn is_syntax_error(line: &str) -> bool {
    static ERROR: Pattern = Pattern::new(r"^(?:SyntaxError|IndentationError|TabError): ");
    ERROR.is_match(line)
}

/// Adds the locations of tracebacks, each at the last frame inside the project.
pub(super) fn tracebacks(lines: &[&str], sink: &mut Sink<'_>) {
    let mut last: Option<(usize, Location<'_>)> = None;
    for (at, line) in lines.iter().enumerate() {
        if line
            .trim_start()
            .starts_with("Traceback (most recent call last):")
        {
            last = None;
        } else if let Some(found) = FRAME.captures(line) {
            let place = Location::new(group(&found, 1), group(&found, 2));
            if last.is_none() || sink.relative(place.path).is_some() {
                last = Some((at, place));
            }
        } else if EXCEPTION.is_match(line)
            && let Some((at, place)) = last.take()
        {
            sink.error(at, place, line);
        }
    }
}

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(r"ModuleNotFoundError: No module named '([\w.]+)'");
    let found = MISSING.captures(line)?;
    let module = group(&found, 1);
    let package = module.split('.').next().unwrap_or(module);
    Some(format!(
        "The Python module `{module}` is missing. If it is a dependency, add it to the project's requirements and `pip install {package}` (the package may have another name); if it is the project's own, create it or correct the import."
    ))
}
