//! Rules that GitHub states in words, or enforces, and its description leaves out.

use super::super::http::Request;
use super::description::Parameters;
use serde_json::Value;

/// Most bytes of a check run's summary, and of its text.
pub const SUMMARY_BYTES: usize = 65_535;
/// Most bytes of an annotation's message, and of its details.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Most characters of an annotation's title.
const TITLE_CHARS: usize = 255;
/// Most characters of a comment, an issue or a pull request.
const BODY_CHARS: usize = 65_536;

/// What is wrong with the headers of a request.
pub fn header_faults(request: &Request) -> Vec<String> {
    let mut faults = Vec::new();
    if request.header("user-agent").unwrap_or_default().is_empty() {
        faults.push("user-agent: GitHub refuses requests without one".to_owned());
    }
    if let Some(authorization) = request.header("authorization") {
        let words: Vec<&str> = authorization.split(' ').collect();
        if !matches!(words[..], ["Bearer" | "bearer" | "token", token] if !token.is_empty()) {
            faults.push("authorization: neither `Bearer TOKEN` nor `token TOKEN`".to_owned());
        }
    }
    if let Some(version) = request.header("x-github-api-version") {
        let pattern: String = version
            .chars()
            .map(|c| if c.is_ascii_digit() { '9' } else { c })
            .collect();
        if pattern != "9999-99-99" {
            faults.push(format!("x-github-api-version: {version:?} is no date"));
        }
    }
    if let Some(accept) = request.header("accept") {
        let known = ["*/*", "application/json", "application/vnd.github"];
        if !known.iter().any(|known| accept.contains(known)) {
            faults.push(format!(
                "accept: {accept:?} is no form that GitHub answers in"
            ));
        }
    }
    if !request.body.is_empty()
        && !request
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("application/json"))
    {
        faults.push("content-type: a body is JSON and says so".to_owned());
    }
    faults
}

/// What is wrong with a query beside what the description says.
pub fn query_faults(query: &Parameters) -> Vec<String> {
    let per_page = query.get("per_page").and_then(|text| text.parse().ok());
    let page = query.get("page").and_then(|text| text.parse().ok());
    let mut faults = Vec::new();
    if per_page.is_some_and(|number: i64| !(1..=100).contains(&number)) {
        faults.push("query: per_page is from 1 to 100".to_owned());
    }
    if page.is_some_and(|number: i64| number < 1) {
        faults.push("query: page is from 1".to_owned());
    }
    faults
}

/// What GitHub refuses a body for beside what the description says.
pub fn body_faults(endpoint: &str, body: &Value) -> Vec<String> {
    let (method, path) = endpoint.split_once(' ').unwrap_or_default();
    let mut faults = Vec::new();
    if path.contains("/check-runs") {
        faults.extend(check_run_faults(body));
    }
    let sha = match path.rsplit('/').next() {
        Some("check-runs") => body.get("head_sha"),
        _ if path.contains("/git/refs") => body.get("sha"),
        _ => None,
    };
    if sha.is_some_and(|sha| !sha.as_str().is_some_and(is_sha)) {
        faults.push("a commit is named by the 40 lower-case digits of its SHA".to_owned());
    }
    if method == "POST" && path.ends_with("/git/refs") {
        let name = body["ref"].as_str().unwrap_or_default();
        if !name.starts_with("refs/") || name.split('/').filter(|part| !part.is_empty()).count() < 3
        {
            faults.push("ref: starts with refs/ and has two slashes at least".to_owned());
        }
    }
    faults.extend(text_faults(path, body));
    if path.ends_with("/reviews") {
        faults.extend(review_faults(body));
    }
    faults
}

fn is_sha(text: &str) -> bool {
    let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == 40 && text.bytes().all(digit)
}

fn check_run_faults(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let concluded = body["conclusion"].is_string();
    let completed = body["status"] == "completed" || body["completed_at"].is_string();
    if completed && !concluded {
        faults.push("conclusion: needed when the check run is completed".to_owned());
    }
    if concluded && body["status"].is_string() && body["status"] != "completed" {
        faults.push("status: a conclusion completes the check run".to_owned());
    }
    if body["name"].as_str().is_some_and(str::is_empty) {
        faults.push("name: is empty".to_owned());
    }
    let output = &body["output"];
    for name in ["summary", "text"] {
        if output[name]
            .as_str()
            .is_some_and(|text| text.len() > SUMMARY_BYTES)
        {
            faults.push(format!("output.{name}: more than {SUMMARY_BYTES} bytes"));
        }
    }
    if chars(&output["title"]) > TITLE_CHARS {
        faults.push(format!("output.title: more than {TITLE_CHARS} characters"));
    }
    let annotations = output["annotations"].as_array().into_iter().flatten();
    for (index, annotation) in annotations.enumerate() {
        let wrong = annotation_faults(annotation).into_iter();
        faults.extend(wrong.map(|wrong| format!("output.annotations[{index}]: {wrong}")));
    }
    faults
}

fn annotation_faults(annotation: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let line = |name: &str| annotation[name].as_i64().unwrap_or(1);
    let (start, end) = (line("start_line"), line("end_line"));
    if start < 1 || end < start {
        faults.push(format!("lines {start} to {end}"));
    }
    let has = |name: &str| annotation[name].is_i64();
    if start != end && (has("start_column") || has("end_column")) {
        faults.push("columns are for one line only".to_owned());
    }
    if has("start_column") && has("end_column") && line("end_column") < line("start_column") {
        faults.push("the columns end before they start".to_owned());
    }
    if chars(&annotation["title"]) > TITLE_CHARS {
        faults.push(format!("title: more than {TITLE_CHARS} characters"));
    }
    for name in ["message", "raw_details"] {
        if annotation[name]
            .as_str()
            .is_some_and(|text| text.len() > MESSAGE_BYTES)
        {
            faults.push(format!("{name}: more than {MESSAGE_BYTES} bytes"));
        }
    }
    let path = annotation["path"].as_str().unwrap_or_default();
    if path.starts_with('/') || path.split('/').any(|part| part == "." || part == "..") {
        faults.push(format!(
            "path: {path:?} is not relative to the repository's root"
        ));
    }
    faults
}

fn text_faults(path: &str, body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    if chars(&body["body"]) > BODY_CHARS {
        faults.push(format!("body: more than {BODY_CHARS} characters"));
    }
    let comment = path.ends_with("/comments") || path.ends_with("/comments/{comment_id}");
    if comment
        && body["body"]
            .as_str()
            .is_some_and(|text| text.trim().is_empty())
    {
        faults.push("body: cannot be blank".to_owned());
    }
    faults
}

fn review_faults(body: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let worded = body["body"].as_str().is_some_and(|text| !text.is_empty());
    if (body["event"] == "COMMENT" || body["event"] == "REQUEST_CHANGES") && !worded {
        faults.push("body: a comment and a request for changes have words".to_owned());
    }
    for comment in body["comments"].as_array().into_iter().flatten() {
        if comment["line"].is_null() && comment["position"].is_null() {
            faults.push("comments: each has a line".to_owned());
        }
    }
    faults
}

fn chars(value: &Value) -> usize {
    value.as_str().map_or(0, |text| text.chars().count())
}
