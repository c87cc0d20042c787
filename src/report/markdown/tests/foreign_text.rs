use super::*;

pub(super) fn hostile() -> impl Strategy<Value = String> {
    let fragments = prop_oneof![
        Just("```"),
        Just("`"),
        Just("~~~"),
        Just("</details>"),
        Just("<details>"),
        Just("\n"),
        Just("\r"),
        Just("@org/team"),
        Just("#1"),
        Just("fixes #2"),
        Just("/merge"),
        Just("|"),
        Just("<img src=x>"),
        Just("![i](https://e.invalid)"),
        Just("\u{202e}"),
        Just("\u{200b}"),
        Just("\u{e0041}"),
        Just("é"),
        Just("🦀"),
        Just(" "),
        Just("\\"),
        Just("<!--"),
        Just("$"),
        Just("text of some length"),
        Just("@user"),
        Just("GH-3"),
        Just("owner/repo#4"),
        Just("https://e.invalid/x"),
        Just("www.e.invalid"),
        Just("a@e.invalid"),
        Just("[a](https://e.invalid)"),
        Just("<https://e.invalid>"),
        Just("<!-- sprag:state -->"),
        Just("\u{1b}[31m"),
        Just("\0"),
        Just("<sub>"),
        Just("-->"),
        Just("*"),
        Just("_"),
    ];
    proptest::collection::vec(fragments, 0..30).prop_map(|parts| parts.concat())
}

/// The parts of a report that a Markdown parser finds to be neither text nor Sprag's own HTML.
pub(super) fn alive(report: &str) -> Vec<String> {
    let mut found = Vec::new();
    for event in Parser::new_ext(
        report,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH,
    ) {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => {
                let inner = html
                    .replace("<summary><b>", "")
                    .replace("</b>", "")
                    .replace("</summary>", "");
                if !matches!(html.trim(), "<details>" | "</details>") && inner.contains('<') {
                    found.push(html.to_string());
                }
            }
            Event::Start(tag @ (Tag::Link { .. } | Tag::Image { .. } | Tag::Strikethrough)) => {
                found.push(format!("{tag:?}"));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn every_report_parses_as_it_is_meant() {
    assert_eq!(alive("<b>x</b> [a](b) ![c](d) ~~e~~").len(), 4);
    for (name, summary) in samples::all() {
        assert_eq!(alive(&report(&summary)), Vec::<String>::new(), "{name}");
    }
}

proptest! {
    #[test]
    fn nothing_foreign_comes_alive(text in hostile()) {
        let inline = inline(&text, 10_000);
        let dead = !inline.contains(['<', '>', '\n', '\r', '\u{202e}', '\u{200b}']);
        prop_assert!(dead, "{}", inline);
        for live in ["@org", "#1", "#2", "://"] {
            prop_assert!(!inline.contains(live), "{inline}");
        }
        prop_assert!(!inline.starts_with('/'));
        // Every character with a special meaning is escaped.
        let bare = inline.replace("\\\\", "").replace("\\`", "").replace("\\|", "").replace("\\[", "").replace("\\]", "").replace("\\$", "").replace("\\~", "");
        prop_assert!(!bare.contains(['`', '|', '[', ']', '$', '~']), "{inline}");
    }

    #[test]
    fn every_budget_holds_and_what_remains_is_whole(
        text in hostile(),
        budget in 0usize..6_000,
    ) {
        let mut summary = samples::partial();
        for task in &mut summary.tasks {
            task.title.clone_from(&text);
            task.id.push_str(&text);
            task.message.clone_from(&text);
            task.failed_report = samples::blocked().tasks[0].failed_report.clone().map(|mut failed| {
                failed.problems = Some(text.clone());
                failed
            });
            for check in &mut task.checks {
                check.name.clone_from(&text);
                check.excerpt = Some(text.clone());
            }
            for turn in &mut task.turns {
                turn.indicators = vec![text.clone()];
            }
        }
        summary.warnings.push(text);
        let whole = report(&summary);
        prop_assert!(fit::is_whole(&whole), "{}", whole);
        prop_assert_eq!(alive(&whole), Vec::<String>::new());
        let cut = step_summary(&summary, budget);
        prop_assert!(cut.len() <= budget);
        prop_assert!(fit::is_whole(&cut), "{}", cut);
        prop_assert_eq!(alive(&cut), Vec::<String>::new());
    }
}

#[test]
fn no_text_of_a_summary_and_no_report_of_it_keeps_a_secret() {
    const CANARY: &str = "c4nary/+_\"<&>%-Zz9~ü";
    let redactor = Redactor::new([CANARY]);
    let summary = samples::every_text(&format!("x {CANARY} y"));
    let clean = redactor.redacted(&summary).unwrap();
    let around = samples::context();
    let check = check_run(&clean, &around);
    for text in [
        serde_json::to_string(&clean).unwrap(),
        comment(&clean, &around),
        check.title + &check.summary + &check.text,
    ] {
        assert!(text.contains(MASK) && !text.contains("c4nary"), "{text}");
    }
    // Redaction after rendering hides nothing except what was cut.
    let late = comment(&summary, &around);
    let late = redactor.redact(&late).into_owned();
    for form in [CANARY, &inline(CANARY, 1_000)] {
        assert!(!late.contains(form), "{late}");
    }
}
