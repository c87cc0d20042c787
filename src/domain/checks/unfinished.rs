//! Recognises a test runner that ended before its tests: code under test may exit the whole process, and then
//! an exit code of 0 proves nothing.

use super::tools::TABLE;
use crate::command_line::{CommandLine, Simple};
use crate::pattern::Pattern;
use crate::text;
use regex::RegexSet;
use std::ops::Range;
use std::sync::LazyLock;

/// Whether a check's complete `output` shows tests that started and did not end, or lacks the line that the
/// test runner always prints at its end. `run` is its command for `sh -e -c`, which exited with 0.
pub(super) fn is_unfinished(run: &str, output: &str) -> bool {
    static RAN: Pattern = Pattern::new(r"(?m)^Ran [0-9]+ tests? in [0-9.]+s$");
    let plain = text::plain(output);
    if !plain.trim().is_empty() && has_open_run(&plain) {
        return true;
    }
    let is_help = |word: &String| word == "-h" || word == "--help";
    let is_unittest = |command: &Simple| {
        let program = command.program().filter(|it| it.word == "unittest");
        program.is_some_and(|it| !it.arguments.iter().any(is_help))
    };
    // Redirected output is not visible here.
    !run.contains('>')
        && CommandLine::read(run).commands().any(is_unittest)
        && !RAN.is_match(&plain)
}

/// Whether a line stands before or after the tests of a run of some tool, or ends what Python's unittest prints.
pub fn is_around_tests(line: &str) -> bool {
    static AROUND: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
        let all = TABLE
            .iter()
            .flat_map(|tool| [tool.around, tool.encloses])
            .flatten()
            .flat_map(|(before, after)| [before, after]);
        RegexSet::new(all.chain([UNITTEST_END])).ok()
    });
    AROUND.as_ref().is_some_and(|set| set.is_match(line))
}

/// The result that follows the number of tests.
const UNITTEST_END: &str = r"^(?:OK|FAILED)(?: \(.*\))?$";

/// Whether a run of tests has no end. A run within a complete run of another tool needs none: that tool, which
/// started it, says how all its tests ended.
fn has_open_run(output: &str) -> bool {
    static RUNNERS: LazyLock<Vec<Runner>> = LazyLock::new(|| {
        let rows = TABLE.iter().flat_map(|tool| {
            let must_end = tool.around.map(|lines| (lines, true));
            [must_end, tool.encloses.map(|lines| (lines, false))]
        });
        rows.flatten()
            .map(|((before, after), must_end)| Runner {
                before: Pattern::of_lines(before),
                after: Pattern::of_lines(after),
                must_end,
            })
            .collect()
    });
    let runs: Vec<Runs> = RUNNERS.iter().map(|runner| runner.runs(output)).collect();
    let is_enclosed = |at: &usize, own: usize| {
        let others = runs.iter().enumerate().filter(|(index, _)| *index != own);
        let mut whole = others.flat_map(|(_, (whole, _))| whole);
        whole.any(|run| run.contains(at))
    };
    let each = RUNNERS.iter().zip(&runs).enumerate();
    let mut must_end = each.filter(|(_, (runner, _))| runner.must_end);
    must_end.any(|(own, (_, (_, open)))| open.iter().any(|at| !is_enclosed(at, own)))
}

/// The lines around the tests of every run of one tool.
struct Runner {
    before: Pattern,
    after: Pattern,
    must_end: bool,
}

/// The complete runs of one tool in an output, by the positions of their lines, and the starts of the others. These
/// count only if there are more starts than ends.
type Runs = (Vec<Range<usize>>, Vec<usize>);

impl Runner {
    fn runs(&self, output: &str) -> Runs {
        let at = |pattern: &Pattern| -> Vec<usize> {
            let found = pattern.captures_iter(output);
            found
                .filter_map(|found| Some(found.get(0)?.start()))
                .collect()
        };
        let (starts, ends) = (at(&self.before), at(&self.after));
        let mut lines: Vec<(usize, bool)> = starts.iter().map(|at| (*at, true)).collect();
        lines.extend(ends.iter().map(|at| (*at, false)));
        lines.sort_unstable();
        let (mut whole, mut open) = (Vec::new(), Vec::new());
        for (at, is_start) in lines {
            if is_start {
                open.push(at)
            } else {
                whole.extend(open.pop().map(|start| start..at))
            }
        }
        open.retain(|_| starts.len() > ends.len());
        (whole, open)
    }
}

#[cfg(test)]
mod tests {
    use super::is_unfinished;

    #[test]
    fn tests_that_were_begun_have_to_end() {
        let whole = [
            "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
            "===== test session starts =====\ncollected 1 item\n\na.py .  [100%]\n\n===== 1 passed in 0.01s =====\n",
            "===== test session starts =====\ncollected 0 items\n===== no tests ran in 0.00s =====\n",
            "[==========] Running 1 test from 1 test suite.\n[==========] 1 test from 1 test suite ran. (0 ms total)\n",
            "TAP version 13\nok 1 - a\n1..1\n",
            "PHPUnit 10.5.1 by Sebastian Bergmann and contributors.\n\n.\n\nTime: 00:00.004, Memory: 8.00 MB\n\nOK (1 test, 1 assertion)\n",
            "# Running:\n\n.\n\nFinished in 0.001s\n\n1 runs, 1 assertions, 0 failures, 0 errors, 0 skips\n",
            "Running ExUnit with seed: 0, max_cases: 4\n\n.\nFinished in 0.01 seconds\n1 test, 0 failures\n",
            "Found 1 test(s).\n.\nRan 1 test in 0.001s\n\nOK\n",
            "Test Suite 'All tests' started at 2026-01-01 00:00:00.000\nTest Suite 'All tests' passed at 2026-01-01 00:00:00.001.\n",
        ];
        for output in whole {
            assert!(!is_unfinished("make test", output), "{output}");
            let first = output.lines().next().unwrap_or_default();
            assert!(
                is_unfinished("make test", &format!("{first}\n.")),
                "{first}"
            );
            assert!(
                is_unfinished("make test", &format!("{output}{first}\n")),
                "{first}"
            );
        }
    }

    #[test]
    fn tests_inside_a_complete_run_of_another_tool_need_no_end_of_their_own() {
        let vitest = " RUN  v4.1.2 /a\n";
        let tap = "TAP version 13\n# Subtest: a\nok 1 - a\n";
        let end = "\n Test Files  2 passed (2)\n      Tests  23 passed (23)\n";
        let inside = format!("{vitest}{tap}{end}");
        assert!(!is_unfinished("make test", &inside), "{inside}");
        for open in [
            tap.to_owned(),
            format!("{vitest}{tap}"),
            format!("{vitest}{end}{tap}"),
            format!("{tap}{vitest}{end}"),
            format!("{inside}{tap}"),
            format!("===== test session starts =====\n{tap}"),
        ] {
            assert!(is_unfinished("make test", &open), "{open}");
        }
        let pytest =
            format!("===== test session starts =====\n{tap}===== 1 passed in 0.01s =====\n");
        assert!(!is_unfinished("make test", &pytest), "{pytest}");
    }

    #[test]
    fn unittest_says_at_its_end_how_many_tests_it_ran() {
        let run = "cd a && CI=1 python3 -m unittest discover -s t";
        assert!(is_unfinished(run, "."));
        assert!(is_unfinished(run, ""));
        assert!(!is_unfinished(run, "Ran 1 test in 0.1s\n\nOK\n"));
        for run in [
            "python3 -m unittest -h",
            "python3 -m unittest 2> log",
            "python3 -m other",
            "echo unittest",
        ] {
            assert!(!is_unfinished(run, ""), "{run}");
        }
    }
}
