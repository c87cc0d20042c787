//! Texts of agents, reviewers and programs, and what is taken out of them.

use super::{first_and_rest, text};
use sprag::domain::commit_message as message;
use sprag::domain::patch_lines::{PatchLines, numbered};
use sprag::domain::review::read_review;
use sprag::process::{Line, LineSplitter, clean_text};
use sprag::report::actions_log::{neutral, neutral_json};
use sprag::secrets::detect::Detector;
use sprag::secrets::redact::Redactor;
use sprag::secrets::redact_stream::Redacting;
use std::io::Write as _;
use std::sync::Arc;

pub(super) fn commit_message(data: &[u8]) {
    let text = text(data);
    let plain = message::without_references(&text);
    assert_eq!(message::without_references(&plain), plain);
    let trailers = [("Sprag-Task".to_owned(), "t1".to_owned())];
    let suggested = [
        message::suggested_commit_message(&text),
        message::suggested_by_commit(&text),
        None,
    ];
    for suggested in &suggested {
        let whole = message::compose(suggested.as_ref(), "t1", &text, &trailers);
        let (before, own) = whole.split_at(whole.len() - "Sprag-Task: t1\n".len());
        assert_eq!(own, "Sprag-Task: t1\n");
        assert!(!before.lines().any(is_own_trailer), "{whole}");
        assert!(!whole.starts_with(char::is_whitespace), "{whole:?}");
        let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!whole.contains(odd), "{whole:?}");
        let lower = whole.to_lowercase();
        assert!(
            !["[skip ci]", "[ci skip]", "[no ci]"]
                .iter()
                .any(|skip| lower.contains(skip)),
            "{whole:?}"
        );
        if let Some(suggested) = suggested {
            assert!(!suggested.subject.trim().is_empty());
            assert!(!suggested.subject.contains('\n'));
            let once = message::reviewed(&whole).expect("an own message is read");
            assert_eq!(once.text, whole);
        }
    }
    let _ = message::reviewed(&text);
}

/// Whether git takes a line for one of the trailers that only Sprag writes.
fn is_own_trailer(line: &str) -> bool {
    let key = line.split_once(':').map(|(key, _)| key.trim_end());
    let name = key.and_then(|key| key.strip_prefix("Sprag-"));
    name.is_some_and(|name| {
        name.bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    })
}

pub(super) fn patch_lines(data: &[u8]) {
    let text = text(data);
    let lines = PatchLines::read(&text);
    let _ = lines.show("a", 1, u32::MAX);
    assert_eq!(numbered(&text).count(), text.lines().count());
}

pub(super) fn review(data: &[u8]) {
    let review = read_review(&text(data), "/w");
    assert!(review.remarks.len() <= 100);
    for remark in &review.remarks {
        assert!(!remark.text.contains('\n'), "{remark:?}");
        assert!(
            remark.end_line.is_none_or(|end| end >= remark.line),
            "{remark:?}"
        );
    }
}

/// The first line is a secret, the rest stands around it.
pub(super) fn redaction(data: &[u8]) {
    let text = text(data);
    let (secret, rest) = first_and_rest(&text);
    let secret = secret.trim();
    // Shorter ones are told and not looked for; one that is made of the mask's own stars cannot be hidden by it.
    if secret.len() < 12 || secret.contains('*') {
        return;
    }
    let (before, after) = first_and_rest(rest);
    let told = format!("{before}{secret}{after}\n{secret}{secret}\n");
    let redactor = Arc::new(Redactor::new([secret]));
    let clean = redactor.redact(&told);
    assert!(!clean.contains(secret), "{clean:?}");
    assert_eq!(
        redactor.redact(&clean),
        clean,
        "nothing is left for a second look"
    );
    let mut stream = Redacting::new(Vec::new(), Arc::clone(&redactor));
    told.as_bytes()
        .chunks(3)
        .for_each(|chunk| stream.write_all(chunk).expect("memory takes it"));
    let written = stream.finish().expect("memory takes it");
    assert!(!String::from_utf8_lossy(&written).contains(secret));
    let mut value = serde_json::json!({ "a": [told, { (told.clone()): 1 }] });
    redactor.redact_json(&mut value);
    assert!(!format!("{value:?}").contains(secret));
    let detector = Detector::new([("TOKEN", secret)]);
    let found = detector.find(told.as_bytes());
    assert!(!found.is_empty(), "{told:?}");
}

pub(super) fn terminal(data: &[u8]) {
    let clean = clean_text(data);
    let odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!clean.contains(odd), "{clean:?}");
    let read = |chunk: usize| {
        let mut read = Vec::new();
        let mut lines = LineSplitter::new(64);
        let mut take = |line: Line<'_>| read.push(format!("{line:?}"));
        data.chunks(chunk)
            .for_each(|chunk| lines.push(chunk, &mut take));
        lines.finish(&mut take);
        read
    };
    assert_eq!(read(data.len().max(1)), read(3));
}

/// In what Sprag prints a runner finds no command.
pub(super) fn workflow_log(data: &[u8]) {
    let text = text(data);
    for line in text.split(['\n', '\r']) {
        let safe = neutral(line);
        assert!(!is_command(&safe), "{line:?} is printed as {safe:?}");
        assert_eq!(neutral(&safe), safe);
    }
    let json = serde_json::json!({ "text": text }).to_string();
    let safe = neutral_json(json.clone());
    assert!(!is_command(&safe), "{safe}");
    let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).expect("it is JSON");
    assert_eq!(read(&safe), read(&json));
}

/// As the runner decides: `::` after blanks, or `##[` anywhere.
fn is_command(line: &str) -> bool {
    line.trim_start().starts_with("::") || line.contains("##[")
}
