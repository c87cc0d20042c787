//! RSpec, and Ruby files that cannot load.

use super::shape::Below;
use super::{Tool, ToolKind};
use crate::checks::diagnostic::{Output, Sink, joined};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "RSpec",
    kind: ToolKind::Tests,
    signs: &[r"^\d+ examples?, \d+ failures?", r"^rspec \S+ # "],
    // A file that could not be loaded is named as RSpec names it elsewhere.
    lines: &[r"^An error occurred while loading (?<test>(?<path>\S+?))\.?(?: - Did you mean\?)?$"],
    below: Some(Below {
        until: r"^An error occurred while loading |^Finished in ",
        frame: r"^# (?<path>\S+?):(?<line>\d+)(?::in .*)?$",
        // The files of the run.
        noise: r"^\s+rspec \S",
    }),
    read,
    summary: &[
        r"^(?<total>\d+) examples?, (?<failed>\d+) failures?(?:, (?<skipped>\d+) pending)?(?:, (?<outside>\d+) errors? occurred outside of examples)?$",
    ],
    hint,
    ..Tool::NOTHING
};

static LISTED: Pattern = Pattern::new(r"^rspec (\S+:\d+|\S+\[[\d:]+\]) # (.+)$");

const REACH: usize = 60;

/// Reads the failures, and the list below them of the commands that rerun each one.
fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    static HEADER: Pattern = Pattern::new(r"^  \d+\) (.+)$");
    let lines = output.lines;
    let listed = lines.iter().filter_map(|line| LISTED.captures(line));
    let listed: Vec<(&str, &str)> = listed.map(|it| (group(&it, 1), group(&it, 2))).collect();
    for (name, title) in &listed {
        sink.titled_test(name, title);
    }
    let start = lines.iter().position(|line| *line == "Failures:");
    let Some(start) = start else { return };
    for (at, line) in lines.iter().enumerate().skip(start + 1) {
        let Some(found) = HEADER.captures(line) else {
            continue;
        };
        let title = group(&found, 1);
        let name = listed.iter().find(|(_, listed)| *listed == title);
        if name.is_none() {
            sink.test(title);
        }
        failure(lines, at, title, name.map_or(title, |(name, _)| name), sink);
    }
}

/// Reads the expectation and the first frame inside the project.
fn failure(lines: &[&str], header: usize, title: &str, name: &str, sink: &mut Sink<'_>) {
    static FRAME: Pattern = Pattern::new(r"^\s+# (\S+?):(\d+)(?::in .*)?$");
    let below = lines.iter().skip(header + 1).take(REACH);
    let below: Vec<&str> = below
        .take_while(|line| line.is_empty() || line.starts_with("     "))
        .copied()
        .collect();
    let place = sink.own_frame(&below, &FRAME);
    let said = below.iter().take_while(|line| !FRAME.is_match(line));
    let said = joined(said.filter(|line| !line.trim().is_empty()));
    sink.failure(header, place.unwrap_or_default(), title, &said)
        .about(name)
        .lines(header..header + 1 + below.len());
}

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(r"cannot load such file -- ([\w/-]+)");
    let found = MISSING.captures(line)?;
    let name = group(&found, 1);
    Some(format!(
        "Ruby cannot load `{name}`. Add the gem to the Gemfile and run `bundle install`, or correct the path."
    ))
}
