//! Output that another program has passed on: with a time or a name before each line, or in events of JSON.

use crate::pattern::{Pattern, group};
use crate::text;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The fewest lines with the same name before them that show that a program adds it.
const RECURRENT: usize = 3;

/// The first lines of an output, one of which has what a program adds to each.
const FIRST: usize = 50;

/// `output` as the tools in it printed it: without the times and names that another program has put before most of
/// its lines, and with the texts of Go's events instead of the events. Lines of one name come one after another,
/// and the names in their order, since programs that run at the same time take turns.
pub fn unwrapped(output: &str) -> Cow<'_, str> {
    let plain = text::plain(output);
    let without = without_times(&plain);
    let of_one = one_by_one(without.as_deref().unwrap_or(&plain));
    let inner = of_one.as_deref().or(without.as_deref()).unwrap_or(&plain);
    match go_events(inner).or(of_one).or(without) {
        Some(inner) => Cow::Owned(inner),
        None => Cow::Borrowed(output),
    }
}

/// The lines without the times before them, if all but a few have one.
fn without_times(plain: &str) -> Option<String> {
    static TIME: Pattern = Pattern::only_if(
        r"(?x)^\[?(?:
            \d{4}-\d{2}-\d{2}[T\ ]\d{2}:\d{2}:\d{2}(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?
          | \d{2}:\d{2}:\d{2}(?:[.,]\d+)?
          | [A-Z][a-z]{2}\ [\ \d]\d\ \d{2}:\d{2}:\d{2}
        )\]?(?:\ |$)",
        |line| line.starts_with(|c: char| c.is_ascii_digit() || c == '[' || c.is_ascii_uppercase()),
    );
    if !plain.lines().take(FIRST).any(|line| TIME.is_match(line)) {
        return None;
    }
    let all = || plain.lines().filter(|line| !line.trim().is_empty());
    let timed = all().filter(|line| TIME.is_match(line)).count();
    let is_timed = timed >= RECURRENT && timed * 10 >= all().count() * 9;
    is_timed.then(|| {
        let lines = plain.lines().map(|line| TIME.replace_all(line, ""));
        lines.flat_map(|line| [line, Cow::Borrowed("\n")]).collect()
    })
}

/// The lines without the names before them, if most lines have one that recurs, sorted by name.
fn one_by_one(plain: &str) -> Option<String> {
    static NAMED: Pattern = Pattern::only_if(
        // Of turbo, pnpm, docker compose, concurrently and `ctest -V`.
        r"(?x)^(?:
            (@?[\w.-]+(?:/[\w.-]+)*:[a-z][\w.-]*(?::[a-z][\w.-]*)*):(?:\ |$)
          | (@?[\w./-]+\ [a-z][\w:.-]*)(?::(?:\ |$)|\$\ )
          | ([A-Za-z][\w.-]*)\ +\|(?:\ |$)
          | (\[\d+\])(?:\ |$)
          | (\d+):(?:\ |$)
        )",
        |line| {
            line.contains(": ")
                || line.ends_with([':', '|'])
                || line.contains("| ")
                || line.starts_with('[')
        },
    );
    if !plain.lines().take(FIRST).any(|line| NAMED.is_match(line)) {
        return None;
    }
    let name = |line: &str| -> Option<(String, usize)> {
        let found = NAMED.captures(line)?;
        let name = (1..=5).map(|index| group(&found, index)).collect();
        Some((name, group(&found, 0).len()))
    };
    let all = || plain.lines().filter(|line| !line.trim().is_empty());
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    for (name, _) in all().filter_map(name) {
        *lines.entry(name).or_default() += 1;
    }
    lines.retain(|_, number| *number >= RECURRENT);
    if lines.is_empty() || lines.values().sum::<usize>() * 2 < all().count() {
        return None;
    }
    let mut sorted: BTreeMap<String, String> = BTreeMap::new();
    for line in plain.lines() {
        let named = name(line).filter(|(name, _)| lines.contains_key(name));
        let (name, start) = named.unwrap_or_default();
        let text = sorted.entry(name).or_default();
        text.push_str(&line[start..]);
        text.push('\n');
    }
    Some(sorted.into_values().collect())
}

/// What `go test -json` has put into events, by package, below the other lines; if most lines are events.
fn go_events(plain: &str) -> Option<String> {
    let mut others = String::new();
    let mut packages: BTreeMap<String, String> = BTreeMap::new();
    let (mut events, mut rest) = (0, 0);
    for line in plain.lines() {
        let event = line.starts_with('{').then(|| serde_json::from_str(line));
        let event: Option<Value> = event.and_then(Result::ok);
        let text = |key: &str| event.as_ref().and_then(|event| event.get(key)?.as_str());
        let Some(action) = text("Action") else {
            rest += usize::from(!line.trim().is_empty());
            others.push_str(line);
            others.push('\n');
            continue;
        };
        events += 1;
        if let (true, Some(output)) = (action.ends_with("output"), text("Output")) {
            let package = text("Package").or_else(|| text("ImportPath"));
            let package = packages.entry(package.unwrap_or_default().to_owned());
            package.or_default().push_str(output);
        }
    }
    let all = [others].into_iter().chain(packages.into_values());
    (events > rest).then(|| all.collect())
}

#[cfg(test)]
mod tests {
    use super::unwrapped;
    use crate::checks::diagnostic::WorkTree;
    use crate::checks::reading::{parse, read};
    use crate::text;
    use proptest::prelude::*;

    const RUN: &str = "==== FAILURES ====\n____ test_a ____\n\n>   assert 0\nE   assert 0\n\ntests/test_a.py:2: AssertionError\n==== short test summary info ====\nFAILED tests/test_a.py::test_a - assert 0\n";

    fn each_line(with: impl Fn(usize, &str) -> String) -> String {
        let lines = RUN.lines().enumerate();
        lines.map(|(at, line)| with(at, line) + "\n").collect()
    }

    #[test]
    fn what_another_program_puts_before_each_line_is_no_part_of_it() {
        let time = |at: usize| format!("06:12:{:02}", at + 10);
        let wrapped = [
            each_line(|at, line| format!("2026-11-26T{}.1234567Z {line}", time(at))),
            each_line(|at, line| format!("[{}] {line}", time(at)).trim_end().to_owned()),
            each_line(|at, line| format!("Nov 26 {} \u{1b}[31m{line}\u{1b}[0m\r", time(at))),
            each_line(|_, line| format!("@me/web:test: {line}")),
            each_line(|_, line| format!("packages/web test: {line}")),
            each_line(|_, line| format!("web-1  | {line}").trim_end().to_owned()),
            each_line(|_, line| format!("[0] {line}")),
            each_line(|at, line| format!("{} web:test: {line}", time(at))),
            format!(
                "• Running test in 2 packages\n{}",
                each_line(|_, line| format!("web:test: {line}"))
            ),
        ];
        for output in wrapped {
            assert_eq!(parse(&unwrapped(&output)), parse(RUN), "{output}");
            assert_eq!(parse(RUN).len(), 1);
        }
    }

    #[test]
    fn outputs_that_take_turns_are_read_one_after_another() {
        let (mut a, mut b) = (RUN.lines(), RUN.lines());
        let mut both = String::new();
        while let (Some(one), Some(other)) = (a.next(), b.next()) {
            both.push_str(&format!("web:test: {one}\napi:test: {other}\n"));
        }
        assert_eq!(unwrapped(&both), [RUN, RUN].concat());
    }

    #[test]
    fn the_texts_of_events_are_what_go_printed() {
        let event = |package: &str, output: &str| {
            let output = output.replace('\n', "\\n");
            format!("{{\"Action\":\"output\",\"Package\":\"{package}\",\"Output\":\"{output}\"}}\n")
        };
        let output = [
            event("m/b", "=== RUN   TestB\n"),
            event("m/a", "    a_test.go:3: "),
            event("m/b", "--- FAIL: TestB (0.00s)\n"),
            "{\"Action\":\"fail\",\"Package\":\"m/b\"}\nwarning\n".to_owned(),
            event("m/a", "got 1\n"),
        ];
        assert_eq!(
            unwrapped(&output.concat()),
            "warning\n    a_test.go:3: got 1\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\n"
        );
    }

    #[test]
    fn other_output_stays_as_it_is() {
        for output in [
            RUN,
            "",
            "12:00:01 a\nb\nc\nd\n",
            "error: a\nerror: b\nerror: c\n",
            "src/a.rs:1: x\nsrc/b.rs:2: x\nsrc/c.rs:3: x\n",
            " 1 | fn main() {\n 2 | }\n",
            "{\"Action\": 1}\n{}\n{\n",
            "[INFO] a\n[INFO] b\n[ERROR] c\n",
        ] {
            assert_eq!(unwrapped(output), output);
        }
    }

    proptest! {
        #[test]
        fn any_output_can_be_unwrapped(lines in prop::collection::vec(r"(12:00:01 |a:b: |\[0\] |\{.Action.:.output.\})?[ -~é]{0,6}", 0..12)) {
            let output = lines.join("\n");
            let inner = unwrapped(&output);
            prop_assert!(inner.len() <= output.len() + 1);
            read(&text::plain(&inner), &[], &WorkTree::at("/work"));
        }
    }
}
