//! The texts for GitHub: their wording, their limits, and that foreign content in them has no effect.

use super::foreign_text::{alive, hostile};
use crate::domain::agent::Usage;
use crate::domain::check_run::CheckOutput;
use crate::domain::event::TurnProgress;
use crate::domain::review::{Finding, ReviewVerdict};
use crate::domain::summary::ReviewSummary;
use crate::report::markdown::*;
use crate::report::samples;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

#[test]
fn comments_read_well() {
    for (name, summary, around) in samples::github_runs() {
        insta::assert_snapshot!(format!("comment_{name}"), comment(&summary, &around));
    }
}

#[test]
fn check_runs_read_well() {
    for (name, summary, around) in samples::github_runs() {
        let check = check_run(&summary, &around);
        insta::assert_snapshot!(format!("check_run_{name}"), told(&check));
    }
}

#[test]
fn a_live_check_run_and_its_comment_tell_how_far_the_turn_is() {
    let mut summary = samples::live();
    summary.turn = Some(Box::new(TurnProgress {
        elapsed_ms: 185_000,
        last_tool: Some("shell cargo test".into()),
        changed_files: Some(2),
        usage: Usage {
            tokens_in: Some(70),
            tokens_out: Some(5),
            ..Usage::default()
        },
    }));
    let around = samples::context();
    for text in [
        check_run(&summary, &around).summary,
        comment(&summary, &around),
    ] {
        let told = "still working after 3m 05s: last: shell cargo test · 2 files changed · 70 in / 5 out tokens";
        assert!(text.contains(told), "{text}");
    }
}

fn told(check: &CheckOutput) -> String {
    let CheckOutput {
        title,
        summary,
        text,
        conclusion,
    } = check;
    format!("{title}\n{conclusion:?}\n\n{summary}\n=====\n\n{text}\n")
}

#[test]
fn pull_requests_read_well() {
    for (name, summary, around) in samples::github_runs() {
        if matches!(name, "success" | "partial" | "unverified") {
            let (title, body) = pull_request(&summary, &around);
            insta::assert_snapshot!(format!("pull_request_{name}"), format!("{title}\n\n{body}"));
        }
    }
}

#[test]
fn answers_read_well() {
    let around = samples::context();
    let why = "@mallory has no write access to this repository";
    let fix = "somebody with write access can repeat the comment";
    insta::assert_snapshot!("refusal", refusal_comment(why, Some(fix), &around));
    insta::assert_snapshot!("help", help_comment(&around));
    insta::assert_snapshot!("status", status_comment(Some(&samples::live()), &around));
    insta::assert_snapshot!("status_of_nothing", status_comment(None, &around));
}

#[test]
fn the_hidden_line_is_first_in_a_comment_and_last_in_a_pull_request() {
    let (summary, mut around) = (samples::success(), samples::context());
    let marker = "<!-- sprag:state v=1 run=01H-run -->";
    assert!(comment(&summary, &around).starts_with(&format!("{marker}\n## ")));
    assert!(
        pull_request(&summary, &around)
            .1
            .ends_with(&format!("\n\n{marker}\n"))
    );
    for bad in ["<!-- a --> b", "<!-- a --> <!-- b -->", "text", "<!-->-->"] {
        around.state_line = Some(bad.to_owned());
        assert!(comment(&summary, &around).starts_with("## "), "{bad}");
    }
}

#[test]
fn a_check_run_that_another_one_goes_on_from_points_there() {
    let around = ReportContext {
        superseded_by: Some("https://github.com/example/reports/runs/78".into()),
        ..samples::context()
    };
    let check = check_run(&samples::success(), &around);
    assert!(
        check
            .summary
            .contains("](https://github.com/example/reports/runs/78)")
    );
}

#[test]
fn addresses_cannot_leave_their_link() {
    let summary = samples::success();
    let around = ReportContext {
        check_url: Some("https://e.invalid/a b)(x)[y]\"<img>`|&copy;".into()),
        artifact_url: Some("javascript:alert(1)".into()),
        ..ReportContext::default()
    };
    let text = comment(&summary, &around);
    assert!(
        text.contains(
            "[Check run](https://e.invalid/a%20b%29%28x%29%5By%5D%22%3Cimg%3E%60%7C&amp;copy;)"
        ),
        "{text}"
    );
    assert!(!text.contains("javascript"));
}

#[test]
fn large_runs_fit_every_limit_and_point_to_the_rest() {
    let emoji = format!("{}\n", "🦀👩‍👩‍👧 `x` </details>".repeat(10)).repeat(12);
    let mut summary = samples::every_text(&emoji);
    summary.tasks = vec![summary.tasks[1].clone(); 40];
    summary.todo = vec![summary.todo[0].clone(); 30];
    let around = ReportContext {
        notes: vec![emoji.clone(); 50],
        ..samples::context()
    };
    let check = check_run(&summary, &around);
    for (text, limit) in [
        (&check.summary, CHECK_RUN_BYTES),
        (&check.text, CHECK_RUN_BYTES),
        (&comment(&summary, &around), 65_536),
        (&pull_request(&summary, &around).1, 65_536),
        (&status_comment(Some(&summary), &around), 65_536),
    ] {
        assert!(text.len() <= limit && fit::is_whole(text), "{text}");
    }
    assert!(check.title.len() <= 255);
    assert!(check.text.ends_with("artifacts/3).*"), "{}", check.text);
}

#[test]
fn what_reviews_came_to_and_found_is_told_with_what_is_open_first() {
    let mut summary = samples::partial();
    let finding = |line, resolved| Finding {
        end_line: None,
        suggestion: None,
        path: "src/csv.rs".into(),
        line,
        text: "a field is not quoted".into(),
        round: 1,
        resolved,
    };
    summary.tasks[1].findings = vec![finding(3, true), finding(9, false)];
    summary.tasks[1].reviews = vec![ReviewSummary {
        round: 2,
        of: 6,
        verdict: ReviewVerdict::NeedsFixes,
        incomplete: false,
        open: 1,
    }];
    let around = samples::context();
    let page = crate::report::html::report(&summary, &Vec::new());
    for text in [
        step_summary(&summary, STEP_SUMMARY_BYTES),
        comment(&summary, &around),
        check_run(&summary, &around).text,
        page,
    ] {
        let text = text.replace('\\', "");
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(
            text.contains("review 2 of at most 6: NEEDS_FIXES"),
            "{text}"
        );
        assert!(at("open since review 1") < at("resolved"), "{text}");
    }
}

#[test]
fn a_timeline_is_left_out_where_it_would_not_be_readable() {
    assert!(mermaid::timeline(&samples::success()).contains("section t1 Serve #47;report#46;csv"));
    assert_eq!(mermaid::timeline(&samples::blocked()), "");
    let mut summary = samples::success();
    summary.tasks = vec![summary.tasks[0].clone(); 41];
    assert_eq!(mermaid::timeline(&summary), "");
    let mut summary = samples::success();
    summary.tasks[0].turns[0].elapsed_ms = u64::MAX;
    assert_eq!(mermaid::timeline(&summary), "");
}

/// The references and mentions that GitHub would find in the text according to a parser, without code.
fn references(markdown: &str) -> Vec<String> {
    let pattern = Regex::new(
        r"(?i)(?:^|[^\w`])@[a-z0-9]|#[0-9]|\bgh-[0-9]|(?:https?|ftp)://|\bwww\.|[\w.+-]@[\w-]+\.",
    )
    .unwrap();
    let (mut text, mut in_code) = (String::new(), false);
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_GFM) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_code = true,
            Event::End(TagEnd::CodeBlock) => in_code = false,
            Event::Text(words) if !in_code => text.push_str(&words),
            Event::Html(html) if !html.starts_with("<!--") => {
                // The parser leaves entities in HTML unchanged.
                text.push_str(&html.replace("&#", "\u{200b}"));
            }
            Event::Code(_) | Event::SoftBreak | Event::HardBreak => text.push('\n'),
            Event::End(TagEnd::Paragraph | TagEnd::TableCell | TagEnd::Item) => text.push('\n'),
            _ => {}
        }
    }
    let found = pattern.find_iter(&text);
    found.map(|found| found.as_str().to_owned()).collect()
}

/// Links to places that the context does not name, images, and HTML that is not Sprag's own.
fn foreign(markdown: &str) -> Vec<String> {
    let own = |found: &String| {
        let is_marker = Some(found.trim()) == samples::context().state_line.as_deref();
        let is_own_html = matches!(found.trim(), "<sub>" | "</sub>");
        is_marker
            || is_own_html
            || (found.starts_with("Link") && found.contains("https://github.com/example/reports"))
    };
    alive(markdown)
        .into_iter()
        .filter(|found| !own(found))
        .collect()
}

fn dead(text: &str, running: bool) -> Result<(), TestCaseError> {
    let mut summary = samples::every_text(text);
    if running {
        summary.status = None;
    }
    let around = ReportContext {
        notes: vec![text.to_owned()],
        dispatched: vec![text.to_owned()],
        asked_by: Some(text.to_owned()),
        ..samples::context()
    };
    let check = check_run(&summary, &around);
    for written in [
        check.summary,
        check.text,
        comment(&summary, &around),
        pull_request(&summary, &around).1,
        refusal_comment(text, Some(text), &around),
        status_comment(Some(&summary), &around),
    ] {
        prop_assert_eq!(foreign(&written), Vec::<String>::new(), "{}", written);
        prop_assert_eq!(references(&written), Vec::<String>::new(), "{}", written);
        prop_assert!(fit::is_whole(&written), "{}", written);
        let hidden = written.contains(['\u{202e}', '\u{1b}', '\0']);
        prop_assert!(!hidden);
        let first_words = written.lines().map(|line| line.split_whitespace().next());
        let commands = first_words.filter(|word| *word == Some("/merge"));
        prop_assert_eq!(commands.count(), 0);
    }
    prop_assert!(!check.title.contains('\n') && check.title.len() <= 255);
    Ok(())
}

#[test]
fn the_search_for_what_is_alive_finds_it() {
    let text = "ask @org/team, fixes #1 and GH-2 at https://e.invalid or `@x #3`";
    assert_eq!(references(text), [" @o", "#1", "GH-2", "https://"]);
    assert_eq!(
        foreign("<img src=x> [a](https://e.invalid) <sub>x</sub>").len(),
        2
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_foreign_comes_alive_on_github(text in hostile(), running in any::<bool>()) {
        dead(&text, running)?;
    }
}

/// Writes every text to the directory in `SPRAG_SAMPLES`, for `scripts/render-samples`.
#[test]
#[ignore = "writes files for a person to look at"]
#[expect(
    clippy::disallowed_methods,
    reason = "the directory is given by whoever runs this alone"
)]
fn write_samples() {
    let dir = std::path::PathBuf::from(std::env::var_os("SPRAG_SAMPLES").unwrap());
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    for (name, summary, around) in samples::github_runs() {
        let check = check_run(&summary, &around);
        let whole = format!(
            "# {}\n\n{}\n\n---\n\n{}\n",
            check.title, check.summary, check.text
        );
        write(&format!("check-{name}.md"), &whole);
        write(&format!("comment-{name}.md"), &comment(&summary, &around));
        let (title, body) = pull_request(&summary, &around);
        write(
            &format!("pull-request-{name}.md"),
            &format!("# {title}\n\n{body}"),
        );
    }
    let diff = crate::report::html::Source {
        kind: crate::report::html::SourceKind::Diff,
        name: "patches/t2.patch".into(),
        text: "@@ -1,2 +1,2 @@\n fn quote() {\n-    field\n+    escaped(field)\n".into(),
        cut: false,
    };
    let page = crate::report::html::report(&samples::partial(), &vec![diff]);
    write("report-partial.html", &page);
    let around = samples::context();
    let why = "@mallory has no write access to this repository";
    let fix = "somebody with write access can repeat the comment";
    write(
        "comment-refused.md",
        &refusal_comment(why, Some(fix), &around),
    );
    write("comment-help.md", &help_comment(&around));
    let titles = [
        "end",
        "%% x",
        "1. a; b: c",
        "\"q\" #quot; `b` <b> style x:#y;",
    ];
    let mut odd = samples::success();
    odd.tasks = vec![odd.tasks[0].clone(); 4];
    for (task, title) in odd.tasks.iter_mut().zip(titles) {
        task.title = title.into();
        task.id = title.into();
    }
    write("check-odd.md", &check_run(&odd, &around).summary);
}
