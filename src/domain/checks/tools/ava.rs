//! AVA's own reporter.

use super::{Tool, ToolKind, javascript};
use crate::checks::diagnostic::{Location, Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "AVA",
    kind: ToolKind::Tests,
    signs: &[r"^  ✘ \[fail\]: ", r"^  \d+ tests? (?:passed|failed)$"],
    read,
    // Where tests failed, the number of those that passed is not printed.
    summary: &[
        r"^  (?<passed>\d+) tests? passed(?<failed>)$",
        r"^  (?<failed>\d+) tests? failed$",
    ],
    headers: &[r"\ \ ✘\ \[fail\]:\ "],
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^  ✘ \[fail\]: (.+)$");
static PLACE: Pattern = Pattern::new(r"^  ([^\s:]+\.[cm]?[jt]sx?):(\d+)$");
static SOURCE: Pattern = Pattern::new(r"^ +\d+: ");

/// The list of the tests is above; below the first rule is one block a failure. The list has the message behind the
/// name, and the block begins with the name alone.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    let lines = output.lines;
    let failed: Vec<&str> = FAILED
        .in_lines(lines)
        .map(|(_, found)| found.get(1).map_or("", |name| name.as_str()))
        .collect();
    let is_name = |line: &str| {
        let name = line
            .strip_prefix("  ")
            .filter(|name| !name.starts_with(' '));
        name.is_some_and(|name| {
            let rest = failed.iter().filter_map(|whole| whole.strip_prefix(name));
            !name.is_empty()
                && rest
                    .clone()
                    .any(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    };
    let starts: Vec<usize> = (1..lines.len())
        .filter(|at| lines[at - 1].trim().is_empty() && is_name(lines[*at]))
        .collect();
    for (number, at) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(lines.len());
        let block = &lines[*at..end];
        let place = PLACE.in_lines(block).map(|(_, found)| found).next();
        let message: Vec<&str> = block
            .iter()
            .skip(1)
            .take_while(|line| **line != "  ─")
            .filter(|line| !SOURCE.is_match(line) && !PLACE.is_match(line))
            .map(|line| line.trim())
            .filter(|line| !line.is_empty() && !line.starts_with(['›', '─']))
            .take_while(|line| !line.starts_with("at "))
            .collect();
        let test = lines[*at].trim();
        let location = match &place {
            Some(found) => Location::new(group(found, 1), group(found, 2)),
            None => sink
                .own_frame(block, &javascript::FRAME)
                .unwrap_or_default(),
        };
        sink.failing(*at, location, test, &message.join("\n"))
            .lines(*at..end);
    }
}
