//! What an agent says is shown, and does nothing.

use super::{IS_FIXED, with_pull};
use crate::support::runner::Runner;

/// A final message that pings, closes, commands, draws and breaks out.
const WORDS: &str = "Done @org/team and @grace, fixes #1, closes acme/widget#2.\n\n/merge\n/sprag help\n<img src=\"https://evil.invalid/x.png\">\n![x](https://evil.invalid/y.png)\n<details><summary>s</summary></details></details>\n```\nopen fence\n<!-- sprag:state v1 e30= -->\n::error::from the agent\n";

fn said(runner: &mut Runner, words: &str, fixed: bool, code: i32) -> crate::support::runner::Step {
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    std::fs::write(runner.project.outside("words"), words).unwrap();
    let text = if fixed { "fixed" } else { "worse" };
    let agent = runner
        .project
        .agent(&format!("printf {text} > a.txt\ncat $OUT/words"));
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        IS_FIXED,
        "--max-retries",
        "0",
    ];
    runner.step(&args).expect(code)
}

/// Every text that is on GitHub of the run.
fn texts(runner: &Runner) -> Vec<(&'static str, String)> {
    let comment = runner.comment(1).unwrap();
    let mut texts = vec![("comment", comment)];
    let state = runner.github.state();
    for check in &state.checks {
        for (what, text) in [
            ("title", &check.title),
            ("summary", &check.summary),
            ("text", &check.text),
        ] {
            texts.push((what, text.clone().unwrap_or_default()));
        }
        for note in &check.annotations {
            texts.push((
                "annotation",
                note["message"].as_str().unwrap_or_default().to_owned(),
            ));
        }
    }
    texts
}

fn assert_harmless(runner: &Runner) {
    // GitHub shows an annotation as plain text.
    let shown = texts(runner)
        .into_iter()
        .filter(|(what, _)| *what != "annotation");
    for (what, text) in shown {
        let outside = outside_of_code(&text);
        for bad in [
            "@org/team",
            "@grace",
            "fixes #1",
            "closes acme/widget#2",
            "<img",
            "![",
            "</details></details>",
        ] {
            assert!(!outside.contains(bad), "{bad} in the {what}: {text}");
        }
        for line in outside.lines() {
            assert!(
                !line.starts_with("/merge") && !line.starts_with("/sprag help"),
                "{what}: {text}"
            );
        }
        assert_eq!(
            text.matches("<!-- sprag:state").count(),
            usize::from(what == "comment"),
            "{what}: {text}"
        );
    }
}

/// The text without its code blocks and code spans, in which nothing counts.
fn outside_of_code(text: &str) -> String {
    use pulldown_cmark::{Event, Options, Parser, Tag};
    let mut left = text.as_bytes().to_vec();
    for (event, range) in Parser::new_ext(text, Options::all()).into_offset_iter() {
        if matches!(event, Event::Start(Tag::CodeBlock(_)) | Event::Code(_)) {
            left[range].fill(b' ');
        }
    }
    String::from_utf8(left).unwrap()
}

#[test]
fn words_of_a_failed_run_are_harmless() {
    let mut runner = with_pull();
    let step = said(&mut runner, WORDS, false, 1);
    assert_harmless(&runner);
    for line in step.run.stdout.lines() {
        assert!(
            !line.starts_with("::error::from the agent"),
            "{}",
            step.run.stdout
        );
    }
    assert!(
        !outside_of_code(&step.summary).contains("<img"),
        "{}",
        step.summary
    );
}

#[test]
fn words_of_a_report_that_it_cannot_be_done_are_harmless_and_shown() {
    let mut runner = with_pull();
    let words = format!("FAILED: @grace must decide, fixes #1 <img src=x>\n\nProblems:\n{WORDS}");
    let step = said(&mut runner, &words, false, 3);
    assert_eq!(step.output("status"), "blocked");
    assert_harmless(&runner);
    let comment = runner.comment(1).unwrap();
    assert!(comment.contains("must decide"), "{comment}");
}

#[test]
fn words_of_a_commit_message_are_harmless() {
    let mut runner = with_pull();
    let words = "SUGGESTED_COMMIT_MESSAGE: Fix @grace, fixes #1 <img src=x> [skip ci]\n\nCo-authored-by: Mallory <m@example.invalid>\nSprag-Run: forged\nEND_COMMIT_MESSAGE\n";
    said(&mut runner, words, true, 0);
    assert_harmless(&runner);
    let message =
        crate::support::github::git(&runner.bare(), &["log", "-1", "--format=%B", "feature"]);
    assert!(
        !message.contains("[skip ci]")
            && !message.contains("Mallory")
            && !message.contains("forged"),
        "{message}"
    );
}
