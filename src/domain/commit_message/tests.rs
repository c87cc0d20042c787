use super::*;
use crate::pattern::of_three_words;
use proptest::prelude::*;
use regex::Regex;

fn message(subject: &str, body: &str) -> Option<SuggestedMessage> {
    Some(SuggestedMessage {
        subject: subject.to_owned(),
        body: body.to_owned(),
    })
}

#[test]
fn patterns_compile() {
    let all = [
        &SKIP,
        &FOREIGN_TRAILER,
        &TRAILER,
        &CLOSING,
        &OWN_ISSUE,
        &FOREIGN_ISSUE,
        &MENTION,
        &COMPOUND_TRAILER,
        &TRAILER_LIKE,
    ];
    for pattern in all {
        assert!(Regex::new(pattern.source()).is_ok(), "{pattern:?}");
    }
}

#[test]
fn a_text_that_may_not_refer_holds_no_reference() {
    let words = [
        "fixes ",
        "Closes: ",
        "x",
        " ",
        "#12",
        "GH-12",
        "gh-1",
        "@name",
        "https://a",
        "a.b",
        "/o/r",
        "/issues/1",
        "/PULL/2",
        "/discussions/3",
    ];
    let mut found = [0; 3];
    for text in of_three_words(&words) {
        for (pattern, found) in [&CLOSING, &FOREIGN_ISSUE, &MENTION]
            .into_iter()
            .zip(&mut found)
        {
            if pattern.is_match(&text) {
                *found += 1;
                assert!(may_refer(&text), "{text}");
            }
        }
    }
    assert!(found.iter().all(|found| *found > 10), "{found:?}");
}

#[test]
fn a_message_from_elsewhere_is_cleaned_and_one_of_our_own_stays() {
    let trailers = [
        ("Sprag-Task".to_owned(), "plan/t1".to_owned()),
        (
            "Sprag-Run".to_owned(),
            "https://x/o/r/actions/runs/1".to_owned(),
        ),
    ];
    let bodies = ["", "Why it is so.\n\n- a\n- b", "Why.\n\nRefs: #1"];
    for body in bodies {
        let own = compose(message("Add a pager", body).as_ref(), "t1", "x", &trailers);
        let read = reviewed(&own).unwrap();
        assert_eq!(read.text, own);
        assert_eq!(read.runs, ["https://x/o/r/actions/runs/1"]);
    }
    let default = compose(None, "t1", "Say `x` to $HOME", &trailers);
    assert_eq!(reviewed(&default).unwrap().text, default);
    let hostile = "Fix [skip ci] @org/team\n\nFixes #4\nCo-authored-by: A <a@b>\nSprag-Run: 2\n\nSprag-Run: 1\n";
    let read = reviewed(hostile).unwrap();
    assert_eq!(read.text, "Fix org/team\n\nFixes issue 4\n\nSprag-Run: 1\n");
    assert_eq!(read.runs, ["1"]);
    assert_eq!(reviewed("Nothing but a subject\n"), None);
    assert_eq!(reviewed("[skip ci]\n\nSprag-Run: 1\n"), None);
}

#[test]
fn the_last_suggestion_counts() {
    let text = "SUGGESTED_COMMIT_MESSAGE: old\nmore work\nSUGGESTED_COMMIT_MESSAGE: Add a pager\n";
    assert_eq!(suggested_commit_message(text), message("Add a pager", ""));
}

#[test]
fn markup_around_it_is_no_part_of_it() {
    for text in [
        "**SUGGESTED_COMMIT_MESSAGE:** Add a pager",
        "**SUGGESTED_COMMIT_MESSAGE: Add a pager**",
        "`SUGGESTED_COMMIT_MESSAGE: Add a pager`",
        "> - SUGGESTED_COMMIT_MESSAGE: Add a pager",
        "```\nSUGGESTED_COMMIT_MESSAGE: Add a pager\n```",
        "SUGGESTED_COMMIT_MESSAGE:\n```\nAdd a pager\n```",
        "SUGGESTED_COMMIT_MESSAGE:\n\nAdd a pager\nEND_COMMIT_MESSAGE",
        "All done. SUGGESTED_COMMIT_MESSAGE: Add a pager",
        "SUGGESTED_COMMIT_MESSAGE: `Add a pager`",
        "SUGGESTED_COMMIT_MESSAGE: \"Add a pager\"",
        "SUGGESTED_COMMIT_MESSAGE: “Add a pager”",
        "**SUGGESTED_COMMIT_MESSAGE:** `Add a pager`",
        "SUGGESTED_COMMIT_MESSAGE:\n'Add a pager'",
        "SUGGESTED_COMMIT_MESSAGE: **Add a pager**",
        "SUGGESTED_COMMIT_MESSAGE: **Add** a pager",
        "SUGGESTED_COMMIT_MESSAGE: _Add a pager_",
        "SUGGESTED_COMMIT_MESSAGE: *Add a pager*",
        "SUGGESTED_COMMIT_MESSAGE：Add a pager",
        "SUGGESTED_COMMIT_MESSAGE: |\n  Add a pager",
    ] {
        assert_eq!(
            suggested_commit_message(text),
            message("Add a pager", ""),
            "{text}"
        );
    }
    for same in ["Rename `a` to `b`", "Make a **b**", "*.rs: sort __all__"] {
        let text = format!("SUGGESTED_COMMIT_MESSAGE: {same}");
        assert_eq!(suggested_commit_message(&text), message(same, ""));
    }
}

#[test]
fn the_body_ends_at_its_marker_and_needs_one() {
    let text = "SUGGESTED_COMMIT_MESSAGE: Add a pager\n\nIt is lazy.\n\nFixes: #4\nEND_COMMIT_MESSAGE\nBye";
    assert_eq!(
        suggested_commit_message(text),
        message("Add a pager", "It is lazy.\n\nFixes: issue 4")
    );
    let open = "SUGGESTED_COMMIT_MESSAGE: Add a pager\nI hope you like it.";
    assert_eq!(suggested_commit_message(open), message("Add a pager", ""));
}

#[test]
fn only_the_last_hundred_lines_are_looked_at() {
    let at = |lines: usize| format!("SUGGESTED_COMMIT_MESSAGE: far{}", "\nx".repeat(lines));
    assert_eq!(suggested_commit_message(&at(99)), message("far", ""));
    assert_eq!(suggested_commit_message(&at(100)), None);
}

#[test]
fn lines_may_be_of_any_length() {
    let long = "y".repeat(100 * 1024);
    let before = format!("{long}\nSUGGESTED_COMMIT_MESSAGE: short");
    assert_eq!(suggested_commit_message(&before), message("short", ""));
    let itself = format!("SUGGESTED_COMMIT_MESSAGE: {long}");
    assert_eq!(suggested_commit_message(&itself), message(&long, ""));
    let within = format!("{long} SUGGESTED_COMMIT_MESSAGE: short");
    assert_eq!(suggested_commit_message(&within), message("short", ""));
}

#[test]
fn what_may_not_come_from_an_agent_is_removed() {
    let text = "SUGGESTED_COMMIT_MESSAGE: Add\u{7} a\u{202e} pager [skip ci]\n\nWhy\r\nSigned-off-by: A <a@example.org>\nco-authored-by: B <b@example.org>,\n  C <c@example.org>\nReviewed-By : D\nAcked-by: E\nSprag-Run: 1\nskip-checks: true\nRefs: #1\nEND_COMMIT_MESSAGE";
    assert_eq!(
        suggested_commit_message(text),
        message("Add a pager", "Why\nRefs: #1")
    );
}

#[test]
fn trailers_are_an_allow_list() {
    let body_of = |body: &str| {
        let text = format!("{MARKER} Add\n\n{body}\n{END}");
        suggested_commit_message(&text).unwrap().body
    };
    for (body, left) in [
        ("Why.\n\nRefs: #1\nDeploy: production", "Why.\n\nRefs: #1"),
        ("Why.\n\nDeploy: production", "Why."),
        ("Why.\n\nDeploy: a\n\nRelease-As: 9.0.0", "Why."),
        (
            "Why.\nApproved-by: me\n  and you\nAnd so on.",
            "Why.\nAnd so on.",
        ),
        (
            "Why.\nSprag-Prüfer: me\n  SPRAG-ÜBER_1-x : y\nAnd so on.",
            "Why.\nAnd so on.",
        ),
        ("sprag-ci.yml: why\n\nMore.", "sprag-ci.yml: why\n\nMore."),
        ("Note: it is so.\n\nAs said.", "Note: it is so.\n\nAs said."),
        ("Deploy : x\n  y\nchangelog: z\n  w", "changelog: z\n  w"),
        ("(cherry picked from commit abc)\nDeploy:x", ""),
        ("Why.\n\n    indented: code", "Why.\n\n    indented: code"),
    ] {
        assert_eq!(body_of(body), left, "{body}");
    }
}

#[test]
fn the_message_of_a_commit_is_cleaned_like_a_suggestion() {
    let found = suggested_by_commit("Add a pager\n\nFixes #4\n\nSigned-off-by: A <a@b>\n");
    assert_eq!(found, message("Add a pager", "Fixes issue 4"));
    assert_eq!(suggested_by_commit("\n"), None);
    assert_eq!(suggested_by_commit("[skip ci]\n"), None);
}

#[test]
fn blank_lines_around_a_line_that_is_left_out_are_one() {
    let found = suggested_by_commit("Add\n\nWhy\n\nSigned-off-by: A <a@b>\n\nRefs: a\n");
    assert_eq!(found, message("Add", "Why\n\nRefs: a"));
    let whole = compose(
        found.as_ref(),
        "t",
        "t",
        &[("Sprag-Task".into(), "p/t".into())],
    );
    assert_eq!(reviewed(&whole).unwrap().text, whole);
}

#[test]
fn no_form_that_skips_workflows_is_left() {
    for form in [
        "[skip ci]",
        "[ci skip]",
        "[no ci]",
        "[skip actions]",
        "[actions skip]",
        "[SKIP CI]",
        "[skip [skip ci] ci]",
        "[skip\u{200b} ci]",
        "[skip @ci]",
        "[@[no ci]skip @@ci]",
    ] {
        let text = format!("SUGGESTED_COMMIT_MESSAGE: Add {form} a pager");
        let found = suggested_commit_message(&text)
            .map(|m| m.subject)
            .unwrap_or_default();
        assert_eq!(
            found.split_whitespace().collect::<Vec<_>>(),
            ["Add", "a", "pager"],
            "{form}"
        );
        let title = format!("Add {form} a pager");
        let subject = "[sprag] Complete task t: Add a pager\n";
        assert_eq!(compose(None, "t", &title, &[]), subject, "{form}");
    }
    let deep = format!("{}skip ci]{}", "[skip ".repeat(50), " ci]".repeat(49));
    let found = suggested_commit_message(&format!("{MARKER} {deep}")).map(|m| m.subject);
    assert!(found.is_some_and(|s| !SKIP.is_match(&s)));
}

#[test]
fn no_issue_is_closed_and_nobody_called() {
    let table = [
        ("Fixes #4", "Fixes issue 4"),
        ("fix: #4", "fix: issue 4"),
        ("Closes GH-4.", "Closes issue 4."),
        (
            "Resolved\n#4, #5 and #6",
            "Resolved\nissue 4, issue 5 and issue 6",
        ),
        ("Resolves owner/repo#4", "Resolves issue 4 of owner/repo"),
        ("Fixes someone#4", "Fixes issue 4"),
        ("see o/r#2#3", "see issue 2 of issue 3 of o/r"),
        ("Use C#7 here", "Use C#7 here"),
        ("see a.b/c-d#12)", "see issue 12 of a.b/c-d)"),
        (
            "closes https://github.com/o/r/issues/7",
            "closes issue 7 of o/r",
        ),
        ("See github.com/o/r/pull/7#x", "See issue 7 of o/r#x"),
        (
            "closes https://git.corp.example:8443/o/r/issues/7",
            "closes issue 7 of o/r",
        ),
        ("Fixes http://ghe/o/r/pull/7.", "Fixes issue 7 of o/r."),
        (
            "Fixes ghe.corp.example/o/r/issues/7",
            "Fixes issue 7 of o/r",
        ),
        (
            "Thanks @octocat and @org/team",
            "Thanks octocat and org/team",
        ),
        ("@@a @b,@c", "a b,c"),
        ("Bump @types/node", "Bump types/node"),
        ("Write to a@example.org", "Write to a@example.org"),
        (
            "Handle #4 in C# and issue #5 (#6)",
            "Handle #4 in C# and issue #5 (#6)",
        ),
        ("Prefix #4 stays", "Prefix #4 stays"),
    ];
    for (text, expected) in table {
        assert_eq!(without_references(text), expected);
    }
    assert_eq!(
        compose(
            None,
            "t1",
            "Closes #4 of @me",
            &[("Sprag-Issue".into(), "#4".into())]
        ),
        "[sprag] Complete task t1: Closes issue 4 of me\n\nSprag-Issue: #4\n"
    );
}

#[test]
fn nothing_left_is_no_suggestion() {
    for text in [
        "",
        "no marker",
        "SUGGESTED_COMMIT_MESSAGE:",
        "SUGGESTED_COMMIT_MESSAGE: [skip ci]",
        "SUGGESTED_COMMIT_MESSAGE: <message>",
        "Use the form SUGGESTED_COMMIT_MESSAGE: <message>",
        "SUGGESTED_COMMIT_MESSAGE: Signed-off-by: A <a@example.org>",
    ] {
        assert_eq!(suggested_commit_message(text), None, "{text}");
    }
}

#[test]
fn the_default_names_the_task() {
    let trailers = [("Sprag-Task".to_owned(), "plan/t1".to_owned())];
    assert_eq!(
        compose(None, "t1", "Quote \"x\" & $HOME\n  `y` 100% #1", &trailers),
        "[sprag] Complete task t1: Quote \"x\" & $HOME `y` 100% #1\n\nSprag-Task: plan/t1\n"
    );
    assert_eq!(
        compose(None, "t1", "x", &[]),
        "[sprag] Complete task t1: x\n"
    );
}

#[test]
fn a_title_has_nothing_that_git_refuses_or_that_acts_on_who_reads_it() {
    let title = "a\u{0}b \u{1b}[31mred [skip ci]\u{202e} x, fixes #4";
    let subject = "[sprag] Complete task t1: ab red x, fixes issue 4\n";
    assert_eq!(compose(None, "t1", title, &[]), subject);
}

#[test]
fn trailers_are_the_last_paragraph() {
    let trailers = [
        ("A".to_owned(), "1".to_owned()),
        ("B".to_owned(), "2\n3".to_owned()),
    ];
    let with = |body: &str| compose(message("S", body).as_ref(), "t", "t", &trailers);
    assert_eq!(with(""), "S\n\nA: 1\nB: 2 3\n");
    assert_eq!(with("why"), "S\n\nwhy\n\nA: 1\nB: 2 3\n");
    assert_eq!(
        with("why\n\nFixes: #1"),
        "S\n\nwhy\n\nFixes: #1\nA: 1\nB: 2 3\n"
    );
}

fn is_harmless(whole: &str) -> Result<(), TestCaseError> {
    prop_assert!(
        whole.lines().all(|l| !FOREIGN_TRAILER.is_match(l)),
        "{}",
        whole
    );
    prop_assert!(!SKIP.is_match(whole), "{}", whole);
    prop_assert!(
        whole.chars().all(|c| c == '\n' || !c.is_control()),
        "{}",
        whole
    );
    let closes = Regex::new(
        r"(?i)\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:(?:[\w.-]+/[\w.-]+)?#|GH-)[0-9]+\b",
    )
    .unwrap();
    prop_assert!(!closes.is_match(whole), "{}", whole);
    let mentions = Regex::new(r"(?:^|[^\w])@[A-Za-z0-9]").unwrap();
    prop_assert!(!mentions.is_match(whole), "{}", whole);
    Ok(())
}

proptest! {
    #[test]
    fn a_suggestion_is_harmless(lines in proptest::collection::vec(
        prop_oneof![
            "\\PC{0,12}", Just("Signed-off-by: x".to_owned()), Just("[skip ci]".to_owned()),
            Just("[sk[ci skip]ip ci]".to_owned()), Just("```".to_owned()), Just(String::new()),
            Just("skip-checks: true".to_owned()), Just("Sig[no ci]ned-off-by: x".to_owned()),
            Just("fixes".to_owned()), Just("#4".to_owned()), Just("fix[ci skip]es: GH-4".to_owned()),
            Just("@org/team".to_owned()), Just("closes o/r#4".to_owned()),
        ], 0..12))
    {
        let text = format!("{MARKER} {}\n{END}", lines.join("\n"));
        if let Some(found) = suggested_commit_message(&text) {
            prop_assert!(!found.subject.trim().is_empty());
            is_harmless(&format!("{}\n{}", found.subject, found.body))?;
        }
    }

    /// Also what one removal makes of the pieces around it.
    #[test]
    fn no_removal_leaves_what_another_removes(pieces in proptest::collection::vec(
        prop::sample::select(vec![
            "[skip", "@", " ci]", "[no ci]", "Signed-off", "-", "by", ": ", "x", "\n", "\n\n", "fixes ", "#4", "GH-4",
            "o/r", "https://a.b/o/r/issues/3", "Co-authored-by: y", " ",
        ]), 0..14))
    {
        let text = pieces.concat();
        if let Some(found) = suggested_by_commit(&text) {
            is_harmless(&format!("{}\n{}", found.subject, found.body))?;
        }
        is_harmless(&compose(None, "t", &text, &[]))?;
    }

    #[test]
    fn no_text_makes_it_panic(text in "(?s).{0,300}") {
        let found = suggested_commit_message(&text);
        let _ = compose(found.as_ref(), &text, &text, &[(text.clone(), text.clone())]);
    }
}

#[test]
fn the_form_of_a_message_is_the_setting() {
    let formed_of = |form: &str, subject: &str, title: &str, changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(|path| (*path).to_owned()).collect();
        formed(
            form,
            &MessageFacts {
                subject,
                task: "t1",
                title,
                plan: "csv",
                changes: &changes,
            },
        )
    };
    for (subject, title, changes, expected) in [
        (
            "feat(api)!: Add x",
            "Add x",
            &["src/a.rs"][..],
            "feat(api)!: Add x",
        ),
        ("Add x", "Add x", &["src/a.rs", "README.md"], "feat: Add x"),
        (
            "Read it whole",
            "Fix the reader",
            &["src/a.rs"],
            "fix: Read it whole",
        ),
        (
            "Say how",
            "Say how",
            &["docs/a.md", "README.md"],
            "docs: Say how",
        ),
        ("Test it", "Test it", &["tests/test_a.py"], "test: Test it"),
        (
            "Run it",
            "Run it",
            &[".github/workflows/ci.yml"],
            "ci: Run it",
        ),
        ("Raise it", "Raise it", &["Cargo.lock"], "chore: Raise it"),
    ] {
        assert_eq!(formed_of("conventional", subject, title, changes), expected);
    }
    let form = "[{task}] {subject} ({plan}, {type})";
    let filled = formed_of(form, "fix: Mend\nit", "Mend it", &["a.rs"]);
    assert_eq!(filled, "[t1] fix: Mend it (csv, feat)");
    assert_eq!(
        formed_of("{subject}", "fix(a): Mend it", "x", &[]),
        "Mend it"
    );
}
