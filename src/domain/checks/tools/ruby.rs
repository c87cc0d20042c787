//! minitest, test-unit and RSpec, and Ruby files that cannot load.

use super::shape::Below;
use super::{Tool, ToolKind, shape};

/// minitest and test-unit. A failed assertion of minitest has its location after the test's name; an error has it in the
/// frames below, and Ruby shows the source of some between empty lines above the frames. The names of specifications are
/// texts.
pub(super) const MINITEST: Tool = Tool {
    name: "minitest",
    kind: ToolKind::Tests,
    signs: &[
        r"^\s*(?:\d+\) )?(?:Failure|Error):\n\S.*#test_.+:$",
        r"^(?:Failure|Error): \S.*\([A-Z][\w:]*\)(?:: .*)?\n\S+:\d+:in ",
        r"^\d+ (?:runs|tests), \d+ assertions, ",
    ],
    above: r"^\s*(?:\d+\) )?(?:(?:Failure|Error)|(?<ignored>[A-Z]\w+)):$",
    lines: &[r"^(?<test>\S.*?#test_.*?)(?: \[(?<path>[^\[\]]+):(?<line>\d+)\])?:$"],
    below: Some(Below {
        until: r"^\s*(?:\d+\) )?(?:Failure|Error|Skipped):$|^\d+ (?:runs|tests), ",
        stop: r"^$",
        frame: r"^\s*(?<path>\S+?):(?<line>\d+):in .+$",
        ..Below::NOTHING
    }),
    read: |output, sink| shape::read(&TEST_UNIT, output, sink),
    summary: &[
        r"^(?<total>\d+) (?:runs|tests), \d+ assertions, (?<failed>\d+) failures, (?<errors>\d+) errors(?:, (?<skipped>\d+) (?:skips|pendings))?",
    ],
    headers: &[
        r"\S.*\#test_.+:$",
        r"(?:Failure|Error):\ \S.*\([A-Z][\w:]*\)(?::\ .*)?$",
    ],
    around: Some((
        r"^# Running:$",
        r"^[0-9]+ (?:runs|tests), [0-9]+ assertions",
    )),
    ..Tool::NOTHING
};

/// test-unit. A failure is between two rules: the test, its frames, the source, and what was expected.
const TEST_UNIT: Tool = Tool {
    name: "minitest",
    kind: ToolKind::Tests,
    lines: &[r"^(?:Failure|Error): (?<test>\S.*\([A-Z][\w:]*\))(?:: (?<text>.*))?$"],
    below: Some(Below {
        until: r"^=====",
        frame: r"^(?<path>\S+?):(?<line>\d+):in .+$",
        noise: r"^\s+(?:=> )?\s*\d+: ",
        ..Below::NOTHING
    }),
    ..Tool::NOTHING
};

/// RSpec. The list below the failures has the commands that rerun each one. A file that could not be loaded is named as
/// there.
pub(super) const RSPEC: Tool = Tool {
    name: "RSpec",
    kind: ToolKind::Tests,
    signs: &[r"^\d+ examples?, \d+ failures?", r"^rspec \S+ # "],
    above: r"^(?:(?<ignored>Pending): \(|(?:Failures|Failed examples):$)",
    lines: &[
        r"^An error occurred while loading (?<test>(?<path>\S+?))\.?(?: - Did you mean\?)?$",
        r"^  \d+\) (?<test>.+)$",
        r"^rspec (?:\S+:\d+|\S+\[[\d:]+\]) # (?<listed>.+)$",
    ],
    below: Some(Below {
        until: r"^An error occurred while loading |^Finished in |^  \d+\) ",
        frame: r"^\s*# (?<path>\S+?):(?<line>\d+)(?::in .*)?$",
        // The files of the run.
        noise: r"^\s+rspec \S",
        ..Below::NOTHING
    }),
    summary: &[
        r"^(?<total>\d+) examples?, (?<failed>\d+) failures?(?:, (?<skipped>\d+) pending)?(?:, (?<outside>\d+) errors? occurred outside of examples)?$",
    ],
    advice: &[(
        r"cannot load such file -- (?<name>[\w/-]+)",
        "Ruby cannot load `$name`. Add the gem to the Gemfile and run `bundle install`, or correct the path.",
    )],
    ..Tool::NOTHING
};
