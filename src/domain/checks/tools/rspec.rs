//! RSpec, and Ruby files that cannot be loaded.

use super::{Tool, ToolKind};
use crate::checks::counts::{Counts, Tally, optional_number};
use crate::checks::diagnostic::{Output, Sink};
use crate::pattern::{Pattern, group};

/// See [`Tool`].
pub(super) const TOOL: Tool = Tool {
    name: "RSpec",
    kind: ToolKind::Tests,
    signs: &[r"^\d+ examples?, \d+ failures?", r"^rspec \S+ # "],
    read,
    counts,
    hint,
    ..Tool::NOTHING
};

static FAILED: Pattern = Pattern::new(r"^rspec (\S+:\d+|\S+\[[\d:]+\]) # .+$");

fn read(output: Output<'_>, sink: &mut Sink<'_>) {
    for line in output.lines {
        if let Some(found) = FAILED.captures(line) {
            sink.test(group(&found, 1));
        }
    }
}

fn counts(lines: &[&str]) -> Option<Counts> {
    static SUMMARY: Pattern = Pattern::new(
        r"^(\d+) examples?, (\d+) failures?(?:, (\d+) pending)?(?:, (\d+) errors? occurred outside of examples)?$",
    );
    let mut tally = Tally::default();
    for line in lines {
        let Some(found) = SUMMARY.captures(line) else {
            continue;
        };
        let [total, failed, pending, errors] =
            [1, 2, 3, 4].map(|index| optional_number(group(&found, index)));
        let passed = total
            .zip(failed)
            .zip(pending)
            .and_then(|((total, failed), pending)| total.checked_sub(failed)?.checked_sub(pending));
        tally.add(
            passed,
            failed.zip(errors).and_then(|(f, e)| f.checked_add(e)),
        );
    }
    tally.finish()
}

fn hint(line: &str) -> Option<String> {
    static MISSING: Pattern = Pattern::new(r"cannot load such file -- ([\w/-]+)");
    let found = MISSING.captures(line)?;
    let name = group(&found, 1);
    Some(format!(
        "Ruby cannot load `{name}`. Add the gem to the Gemfile and run `bundle install`, or correct the path."
    ))
}
