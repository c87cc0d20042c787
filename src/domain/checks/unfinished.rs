//! Recognises a test runner that ended before its tests: code under test may exit the whole process, and then
//! an exit code of 0 proves nothing.

use super::definitions::commands;
use super::tools::TABLE;
use crate::pattern::Pattern;
use crate::text;
use std::sync::LazyLock;

/// Whether a check's complete `output` shows tests that started and did not end, or lacks the line that the
/// test runner always prints at its end. `run` is its command for `sh -e -c`, which exited with 0.
pub(super) fn is_unfinished(run: &str, output: &str) -> bool {
    static AROUND: LazyLock<Vec<RunFrame>> = LazyLock::new(|| {
        let rows = TABLE.iter().filter_map(|tool| tool.around);
        rows.map(|(before, after)| RunFrame {
            before: Pattern::of_lines(before),
            after: Pattern::of_lines(after),
        })
        .collect()
    });
    static RAN: Pattern = Pattern::new(r"(?m)^Ran [0-9]+ tests? in [0-9.]+s$");
    let plain = text::plain(output);
    if !plain.trim().is_empty() && AROUND.iter().any(|around| around.is_open(&plain)) {
        return true;
    }
    // Redirected output is not visible here.
    if run.contains('>') {
        return false;
    }
    let is_unittest = |words: &Vec<String>| {
        let is_python = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or_default();
            name.starts_with("python")
        };
        let mut words = words.iter().skip_while(|word| !is_python(word));
        let mut words = words.by_ref().skip_while(|word| *word != "-m").skip(1);
        words.next().is_some_and(|module| module == "unittest")
            && !words.any(|word| word == "-h" || word == "--help")
    };
    commands(run).iter().any(is_unittest) && !RAN.is_match(&plain)
}

/// The lines around the tests of every run of one tool.
struct RunFrame {
    before: Pattern,
    after: Pattern,
}

impl RunFrame {
    /// Whether more runs started than ended.
    fn is_open(&self, output: &str) -> bool {
        let started = self.before.count(output);
        started > 0 && started > self.after.count(output)
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
