use super::*;
use proptest::prelude::*;

/// Every message of the table with its class.
fn cases() -> Vec<(MessageClass, String)> {
    let mut cases = Vec::new();
    let mut class = MessageClass::Other;
    for line in include_str!("cases.txt").lines() {
        if let Some(name) = line.strip_prefix("== ") {
            class = serde_json::from_value(name.into()).unwrap();
        } else if !line.is_empty() && !line.starts_with(";; ") {
            cases.push((class, line.replace("\\n", "\n")));
        }
    }
    cases
}

#[test]
fn messages_are_read_as_a_reader_reads_them() {
    let cases = cases();
    assert!(cases.len() > 400);
    let wrong: Vec<_> = cases
        .iter()
        .map(|(class, text)| (class, read_message(text, false), text))
        .filter(|(class, reading, _)| **class != reading.class)
        .map(|(class, reading, text)| {
            format!(
                "{class:?}, not {:?} by {:?}: {text}",
                reading.class, reading.indicators
            )
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_pattern_compiles() {
    let broken: Vec<_> = cues::all()
        .into_iter()
        .filter(|(_, p)| !p.compiles())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(broken, Vec::<&str>::new());
}

fn failed(text: &str) -> Option<FailedReport> {
    read_message(text, false).failed
}

#[test]
fn a_failed_report_is_told_apart_into_its_sections() {
    let text = "FAILED: two requirements contradict each other\n\n## Requirements\n- answer JSON\n\n\
                **Problems:**\nThe client sends XML.\nIt cannot change.\n\n\
                Possible solutions: ask the owner\n- or drop the client\n";
    assert_eq!(
        failed(text),
        Some(FailedReport {
            summary: "two requirements contradict each other".to_owned(),
            requirements: Some("- answer JSON".to_owned()),
            problems: Some("The client sends XML.\nIt cannot change.".to_owned()),
            solutions: Some("ask the owner\n- or drop the client".to_owned()),
        })
    );
}

#[test]
fn headings_of_sections_have_many_forms() {
    for form in [
        "Problems:",
        "problems:",
        "**Problems**",
        "**Problems:**",
        "**Problems**:",
        "# Problems",
        "### Problems:",
        "2. Problems:",
        "Problem:",
        "__Problems__:",
    ] {
        let report = failed(&format!("FAILED: x\nintro\n{form}\nbody"));
        let problems = report.and_then(|r| r.problems);
        assert_eq!(problems.as_deref(), Some("body"), "{form}");
    }
    for form in [
        "## Possible Solutions",
        "Potential solutions:",
        "**Solution:**",
        "Solutions:",
    ] {
        let report = failed(&format!("FAILED: x\n{form}\nbody"));
        assert_eq!(
            report.and_then(|r| r.solutions).as_deref(),
            Some("body"),
            "{form}"
        );
    }
}

#[test]
fn problems_fall_back_to_the_rest_of_the_text() {
    let report = |summary: &str, problems: Option<&str>| {
        Some(FailedReport {
            summary: summary.to_owned(),
            requirements: None,
            problems: problems.map(str::to_owned),
            solutions: None,
        })
    };
    assert_eq!(
        failed("FAILED: x\n\nNo key.\nProblems are many."),
        report("x", Some("No key.\nProblems are many."))
    );
    assert_eq!(
        failed("\n \nFAILED:\nNo key."),
        report("No key.", Some("No key."))
    );
    assert_eq!(failed("FAILED: x"), report("x", None));
}

#[test]
fn only_the_form_at_the_beginning_is_a_failed_report() {
    for text in [
        "FAILED tests/test_x.py::test_y - assert 1 == 2",
        "Failed: x",
        "failed: x",
        "The run ended.\nFAILED: x",
        "FAILEDX: y",
        "**FAILED tests** x",
        "```\nran\nFAILED: x\n```",
    ] {
        let reading = read_message(text, false);
        assert_ne!(reading.class, MessageClass::FailedReport, "{text}");
        assert_eq!(reading.failed, None, "{text}");
    }
    for text in [
        "FAILED: x",
        "**FAILED**: x",
        "**FAILED:** x",
        "**FAILED: x**",
        "## FAILED: x",
        "`FAILED: x`",
        "```\nFAILED: x\n```",
        "~~~text\nFAILED: x\n~~~\n",
    ] {
        let read = failed(text).map(|report| (report.summary, report.problems));
        assert_eq!(read, Some(("x".to_owned(), None)), "{text}");
    }
}

#[test]
fn a_cut_beginning_hides_the_forms() {
    for text in ["FAILED: no key", "ALREADY_SATISFIED: x"] {
        let reading = read_message(text, true);
        assert_eq!(
            (reading.failed, reading.satisfied_why),
            (None, None),
            "{text}"
        );
        assert_ne!(reading.class, MessageClass::FailedReport, "{text}");
    }
}

#[test]
fn the_reason_of_already_satisfied_is_kept() {
    let why = |text: &str| {
        let reading = read_message(text, false);
        (reading.class, reading.satisfied_why)
    };
    let expected = (
        MessageClass::AlreadySatisfied,
        Some("it is there".to_owned()),
    );
    for text in [
        "ALREADY_SATISFIED: it is there",
        "**ALREADY_SATISFIED:** it is there",
        "**ALREADY_SATISFIED**: it is there",
        "\n\nALREADY_SATISFIED:\n\nit is there\n",
        "`ALREADY_SATISFIED: it is there`",
    ] {
        assert_eq!(why(text), expected, "{text}");
    }
    assert_eq!(
        why("ALREADY_SATISFIED:"),
        (MessageClass::AlreadySatisfied, None)
    );
    assert_eq!(
        why("Done. ALREADY_SATISFIED: no"),
        (MessageClass::ClaimsDone, None)
    );
}

#[test]
fn no_text_is_empty() {
    for text in ["", " ", "\n\t\r\n", "\u{a0}\u{3000}"] {
        assert_eq!(
            read_message(text, false),
            Reading {
                class: MessageClass::Empty,
                indicators: vec![],
                failed: None,
                satisfied_why: None
            }
        );
    }
}

#[test]
fn indicators_quote_the_deciding_sentences() {
    let text = "The cache is cold.\n\nI’ll warm it at **start**. Then I'll measure `load()`.";
    assert_eq!(
        read_message(text, false).indicators,
        ["I'll warm it at start.", "Then I'll measure x."]
    );
    let plan = "**Plan**\n\n- read\n- write";
    assert_eq!(read_message(plan, false).indicators, ["Plan"]);
    let long = format!("I'll {}é", "é".repeat(500));
    let shown = read_message(&long, false).indicators;
    assert_eq!(
        shown.iter().map(|s| s.chars().count()).collect::<Vec<_>>(),
        [MAX_INDICATOR_CHARS]
    );
}

#[test]
fn what_stands_in_code_decides_nothing() {
    let text = "The loader reads the file.\n\n```text\nI'll fix it now. Should I? FAILED: x\n```\n";
    assert_eq!(read_message(text, false).class, MessageClass::Other);
}

#[test]
fn an_edit_that_a_tool_applies_claims_the_work() {
    let edit = |marks: [&str; 3]| {
        let [from, to, end] = marks;
        format!("The limit:\n\n```rust\n{from}\nlet a = 1;\n{to}\nlet a = 2;\n{end}\n```\n")
    };
    let class = |text: &str| read_message(text, false).class;
    let applied = edit(["<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"]);
    assert_eq!(class(&applied), MessageClass::ClaimsDone);
    let conflict = edit(["<<<<<<< HEAD", "=======", ">>>>>>> main"]);
    assert_eq!(class(&conflict), MessageClass::Other);
}

#[test]
fn text_that_breaks_off_with_a_colon_announces_in_any_language() {
    let class = |text: &str| read_message(text, false).class;
    let text = "Tässä tarvitaan vielä yksi muutos tiedostoon:";
    assert_eq!(class(text), MessageClass::PlanningOnly);
    assert_eq!(
        class(&format!("{text}\n\n```\nx\n```\n")),
        MessageClass::Other
    );
    assert_eq!(class(&format!("{text}\n- x\n- y\n")), MessageClass::Other);
    assert_eq!(class(&format!("## {text}")), MessageClass::Other);
}

#[test]
fn the_end_of_a_long_message_is_read() {
    let filler = "The table lists one value per row and column. ".repeat(30_000);
    let text = format!("{filler}\n\nI'll implement the loader now.");
    assert_eq!(read_message(&text, false).class, MessageClass::PlanningOnly);
    assert_eq!(read_message(&filler, false).class, MessageClass::Other);
}

#[test]
fn classes_have_stable_names() {
    let name = |class| serde_json::to_string(&class).unwrap();
    assert_eq!(name(MessageClass::PlanningOnly), "\"planning_only\"");
    assert_eq!(name(MessageClass::FailedReport), "\"failed_report\"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read_within_the_limits(text in "(?s).{0,400}", cut: bool) {
        let reading = read_message(&text, cut);
        prop_assert!(reading.indicators.len() <= MAX_INDICATORS);
        prop_assert!(reading.indicators.iter().all(|i| i.chars().count() <= MAX_INDICATOR_CHARS));
        prop_assert_eq!(reading.class == MessageClass::Empty, text.trim().is_empty());
        prop_assert_eq!(reading.class == MessageClass::FailedReport, reading.failed.is_some());
    }

    #[test]
    fn pieces_of_messages_are_read_within_the_limits(
        pieces in proptest::collection::vec(
            (proptest::sample::select(cases()), 0usize..400, 0usize..3),
            0..6,
        ),
        cut: bool,
    ) {
        let glue = ["\n", "\n```\n", " **| "];
        let text: String = pieces
            .iter()
            .map(|((_, text), chars, at)| {
                format!("{}{}", text.chars().take(*chars).collect::<String>(), glue[*at])
            })
            .collect();
        let reading = read_message(&text, cut);
        prop_assert!(reading.indicators.len() <= MAX_INDICATORS);
        prop_assert!(reading.indicators.iter().all(|i| i.chars().count() <= MAX_INDICATOR_CHARS));
    }

    #[test]
    fn a_cut_beginning_is_never_a_failed_report(rest in "(?s).{0,200}", blank in "\\s{0,5}") {
        let text = format!("{blank}FAILED: {rest}");
        prop_assert_eq!(read_message(&text, false).class, MessageClass::FailedReport);
        let reading = read_message(&text, true);
        prop_assert_ne!(reading.class, MessageClass::FailedReport);
        prop_assert_eq!(reading.failed, None);
    }
}
