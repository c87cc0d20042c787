//! bats in its human-readable format; its other format is TAP.

use super::shape::{Below, NEVER};
use super::tap::BATS_PLACES;
use super::{Tool, ToolKind};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "bats",
    kind: ToolKind::Tests,
    signs: &[r"^\s+\((?:in test file|from function) .+, line \d+[,)]"],
    lines: &[r"^(?:   .*\d+/\d+)? ✗ (?<test>.+?)(?: in \d+m?s)?$"],
    below: Some(Below {
        // The next line, or the next test, whose progress line was printed above its name.
        until: r"^ {0,2}(?:[^ ]|$)|\d+/\d+ (?:✓|✗|-) ",
        frame: BATS_PLACES,
        noise: NEVER,
    }),
    needs: BATS_PLACES,
    summary: &[
        r"^(?<total>\d+) tests?, (?<failed>\d+) failures?(?:, (?<skipped>\d+) skipped)?(?: in .*)?$",
    ],
    ..Tool::NOTHING
};
