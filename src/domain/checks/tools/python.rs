//! Python tracebacks.

use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Location, Sink};
use crate::pattern::Pattern;

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "python",
    kind: ToolKind::Code,
    signs: &[r#"^\s*File ".+?", line \d+"#],
    read: |output, sink| tracebacks(output.lines, sink),
    advice: &[(
        r"ModuleNotFoundError: No module named '(?<module>(?<package>\w+)[\w.]*)'",
        "The Python module `$module` is missing. If it is a dependency, add it to the project's requirements and `pip install $package` (the package may have another name); if it is the project's own, create it or correct the import.",
    )],
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

/// The place of a traceback in these lines, by the index of its line, and the exception with what is below it. The place
/// is the last frame inside the project.
pub(super) fn traceback<'t>(
    lines: &[&'t str],
    sink: &Sink<'_>,
) -> Option<(usize, Location<'t>, Vec<&'t str>)> {
    let frames: Vec<_> = FRAME.in_lines(lines).collect();
    let places = frames.iter().map(|(at, found)| (*at, Location::of(found)));
    let own = places
        .clone()
        .rfind(|(_, place)| sink.relative(place.path).is_some());
    let (at, place) = own.or_else(|| places.clone().next())?;
    let below = lines.get(frames.last()?.0 + 1..).unwrap_or_default().iter();
    let said = below.copied().skip_while(|line| !EXCEPTION.is_match(line));
    Some((at, place, said.collect()))
}

/// Adds the locations of tracebacks.
pub(super) fn tracebacks(lines: &[&str], sink: &mut Sink<'_>) {
    let mut from = 0;
    for (at, line) in lines.iter().enumerate() {
        let begins = line
            .trim_start()
            .starts_with("Traceback (most recent call last):");
        if !begins && !EXCEPTION.is_match(line) {
            continue;
        }
        let block = lines.get(from..at).unwrap_or_default();
        if let Some((placed, place, _)) = traceback(block, sink).filter(|_| !begins) {
            sink.error(from + placed, place, line);
        }
        from = at;
    }
}
