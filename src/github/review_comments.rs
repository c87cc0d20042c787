//! Posts the findings of a review-only run as one review on the pull request: comments with suggested changes
//! on the lines that its diff shows, and the rest in the review's text. Findings of an earlier run are not
//! posted again, and the thread of a finding that no longer exists is resolved.

use crate::domain::outcome::Reason;
use crate::domain::patch_lines::PatchLines;
use crate::domain::review::{self, Finding, MAX_FINDINGS};
use crate::domain::summary::{RunSummary, TaskSummary};
use crate::domain::text::fence_around;
use crate::domain::trigger::run_name::RunName;
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::api::{
    Error, ErrorKind, Identity, NewLineComment, NewReview, Repo, ReviewComment,
};
use crate::github::delivery::resolve;
use crate::github::request::RunRequest;
use crate::report::markdown::escaped;
use crate::report::text::{count, short_line};
use crate::secrets::redact::MASK;
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of characters of a finding.
const WORDS: usize = 1_000;

/// Maximum number of comments of one review. GitHub's page is slow with more.
const MAX_COMMENTS: usize = 50;

/// The reviewed state of the pull request: its head, and the lines that its diff shows.
#[derive(Debug)]
pub struct Reviewed<'a> {
    /// The reviewed commit.
    pub head: &'a str,
    /// The diff between the pull request and its base, as git formats it.
    pub patch: &'a [u8],
}

/// Posts new findings, and resolves the threads of findings that no longer exist. Returns what failed.
pub async fn post(
    actions: &ActionsEnvironment,
    request: &RunRequest,
    summary: &RunSummary,
    reviewed: Reviewed<'_>,
    patience: Duration,
) -> Vec<String> {
    let Some(number) = request.number.filter(|_| request.is_pull) else {
        return Vec::new();
    };
    if patience.is_zero() {
        return vec!["the findings are not posted as a review: the run was stopped".to_owned()];
    }
    let asked = async {
        let repo = actions.repo()?.within(patience);
        let identity = repo.identity().await?;
        let told = PostedReviews::read(&repo, number, &identity).await?;
        let lines = PatchLines::read(&String::from_utf8_lossy(reviewed.patch));
        let name = &request.context.place.name;
        let found = Found::new(name, summary, &lines, &told);
        let gone = found.gone(&told, reviewed.head);
        let mut unresolved = None;
        if !gone.is_empty() {
            unresolved = resolve(&repo, number, &gone).await.err();
        }
        let Some(new) = found.review(reviewed.head) else {
            return Ok(unresolved);
        };
        let marker = found.marker();
        let posted = repo.create_review(number, &marker, &new, &identity).await;
        match posted {
            // The diff on GitHub may differ from git's. Then the lines are only mentioned.
            Err(error) if error.kind == ErrorKind::Invalid(422) && !new.comments.is_empty() => {
                let new = found.without_lines(new);
                let again = repo.create_review(number, &marker, &new, &identity);
                again.await?;
            }
            posted => drop(posted?),
        }
        Ok::<_, Error>(unresolved)
    };
    match asked.await {
        Ok(None) => Vec::new(),
        Ok(Some(why)) => vec![format!("outdated comments could not be resolved: {why}")],
        Err(error) => vec![format!("the findings are not posted as a review: {error}")],
    }
}

/// What Sprag has posted on the pull request before.
#[derive(Debug, Default)]
struct PostedReviews {
    /// Texts of its reviews and comments.
    texts: Vec<String>,
    /// Lines that already have a comment by Sprag.
    lines: BTreeSet<(String, u32)>,
    /// Sprag's comments whose thread has no comments by others.
    threads: Vec<ReviewComment>,
}

impl PostedReviews {
    async fn read(repo: &Repo, number: u64, identity: &Identity) -> Result<Self, Error> {
        let mut told = Self::default();
        for review in repo.reviews(number).await? {
            if identity.is(review.author.as_ref()) {
                told.texts.extend(review.body);
            }
        }
        let mut answered = BTreeSet::new();
        for comment in repo.line_comments(number).await? {
            let is_own = identity.is(comment.author.as_ref());
            match (is_own, comment.in_reply_to_id) {
                (false, Some(first)) => drop(answered.insert(first)),
                (true, None) => {
                    let line = comment.line.map(|line| (comment.path.clone(), line));
                    told.lines.extend(line);
                    told.texts.push(comment.body.clone());
                    told.threads.push(comment);
                }
                _ => {}
            }
        }
        told.threads.retain(|thread| !answered.contains(&thread.id));
        Ok(told)
    }

    fn has(&self, marker: &str) -> bool {
        self.texts.iter().any(|text| text.contains(marker))
    }
}

/// The findings to post.
struct Found<'a> {
    name: &'a RunName,
    summary: &'a RunSummary,
    /// Findings on lines that the diff shows.
    on_lines: Vec<&'a Finding>,
    elsewhere: Vec<&'a Finding>,
    told: usize,
}

impl<'a> Found<'a> {
    fn new(
        name: &'a RunName,
        summary: &'a RunSummary,
        lines: &PatchLines,
        told: &PostedReviews,
    ) -> Self {
        let mut found = Self {
            name,
            summary,
            on_lines: Vec::new(),
            elsewhere: Vec::new(),
            told: 0,
        };
        for finding in found.all() {
            let last = last_line(finding);
            let is_shown = lines.show(&finding.path, finding.line, last);
            let is_commented = is_shown && told.lines.contains(&(finding.path.clone(), last));
            if is_commented || told.has(&found.finding_marker(finding)) {
                found.told += 1;
            } else if is_shown && found.on_lines.len() < MAX_COMMENTS {
                found.on_lines.push(finding);
            } else {
                found.elsewhere.push(finding);
            }
        }
        found
    }

    fn all(&self) -> impl Iterator<Item = &'a Finding> + use<'a> {
        let tasks = self.summary.tasks.iter();
        tasks.flat_map(|task| review::open(&task.findings))
    }

    /// The first comments of the threads with this run name whose findings a review of a later commit no
    /// longer has. An incomplete review or another review of the same commit resolves nothing.
    fn gone(&self, told: &PostedReviews, head: &str) -> Vec<u64> {
        let is_whole = |task: &TaskSummary| {
            let gave_verdict = task.reviews.last().is_some_and(|last| !last.incomplete);
            let open = review::open(&task.findings).count();
            match task.reason {
                Some(Reason::Acceptable) => gave_verdict,
                // Some findings of a longer list may be missing.
                Some(Reason::ReviewFindings) => gave_verdict && (1..MAX_FINDINGS).contains(&open),
                _ => false,
            }
        };
        if !self.summary.tasks.iter().all(is_whole) {
            return Vec::new();
        }
        let markers: Vec<String> = self.all().map(|it| self.finding_marker(it)).collect();
        let own = self.name.start_of_finding_markers();
        let is_gone = |thread: &&ReviewComment| {
            let is_here = |finding: &Finding| {
                finding.path == thread.path && Some(last_line(finding)) == thread.line
            };
            let commit = thread.original_commit_id.as_deref();
            thread.body.starts_with(&own)
                && commit.is_some_and(|commit| commit != head)
                && !markers.iter().any(|marker| thread.body.contains(marker))
                && !self.all().any(is_here)
        };
        let gone = told.threads.iter().filter(is_gone);
        gone.map(|thread| thread.id).collect()
    }

    fn marker(&self) -> String {
        self.name.review_marker(&self.summary.facts.run_id)
    }

    /// Findings with the same text in the same file are the same, whatever their line.
    fn finding_marker(&self, finding: &Finding) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [finding.path.as_str(), finding.text.as_str()] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let digest = hasher.finalize().to_hex();
        self.name.finding_marker(&digest[..32])
    }

    /// The review to post, or `None` if there is nothing new.
    fn review(&self, head: &str) -> Option<NewReview> {
        if self.on_lines.is_empty() && self.elsewhere.is_empty() {
            return None;
        }
        let comments = self.on_lines.iter().map(|finding| self.comment(finding));
        Some(NewReview {
            commit_id: head.to_owned(),
            body: self.text(&self.elsewhere),
            event: "COMMENT",
            comments: comments.collect(),
        })
    }

    /// The same review without comments on lines.
    fn without_lines(&self, review: NewReview) -> NewReview {
        NewReview {
            body: self.text(&[self.on_lines.as_slice(), &self.elsewhere].concat()),
            comments: Vec::new(),
            ..review
        }
    }

    fn text(&self, listed: &[&Finding]) -> String {
        let new = self.on_lines.len() + self.elsewhere.len();
        let before = match self.told {
            0 => String::new(),
            told => format!(", besides {told} of before"),
        };
        let (name, new) = (escaped(self.name.as_str()), count(new as u64, "thing"));
        let mut text = format!("{}\n{name} found {new}{before}.", self.marker());
        if !listed.is_empty() {
            text += "\n";
        }
        for finding in listed {
            let (marker, place) = (self.finding_marker(finding), escaped(&place(finding)));
            let words = escaped(&short_line(&finding.text, WORDS));
            text += &format!("\n{marker}\n- {place}: {words}");
        }
        text
    }

    fn comment(&self, finding: &Finding) -> NewLineComment {
        let last = last_line(finding);
        let first = (last != finding.line).then_some(finding.line);
        let words = escaped(&short_line(&finding.text, WORDS));
        let mut body = format!("{}\n{words}", self.finding_marker(finding));
        // A text with a redacted secret is not a valid suggestion.
        let suggestion = finding.suggestion.as_deref();
        if let Some(text) = suggestion.filter(|text| !text.contains(MASK)) {
            body += &suggested(text);
        }
        NewLineComment {
            path: finding.path.clone(),
            line: last,
            side: "RIGHT",
            start_line: first,
            start_side: first.map(|_| "RIGHT"),
            body,
        }
    }
}

fn last_line(finding: &Finding) -> u32 {
    let last = finding.end_line.unwrap_or(finding.line);
    last.max(finding.line)
}

fn place(finding: &Finding) -> String {
    match finding.end_line {
        Some(last) => format!("{}:{}-{last}", finding.path, finding.line),
        None => format!("{}:{}", finding.path, finding.line),
    }
}

/// A block that GitHub offers to commit. Nothing in the text can close its fence.
fn suggested(text: &str) -> String {
    let fence = fence_around(text);
    let end = if text.is_empty() { "" } else { "\n" };
    format!("\n\n{fence}suggestion\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, (line, end_line): (u32, Option<u32>), text: &str) -> Finding {
        Finding {
            path: path.to_owned(),
            line,
            end_line,
            text: text.to_owned(),
            suggestion: None,
            round: 1,
            resolved: false,
        }
    }

    fn summary(findings: Vec<Finding>) -> RunSummary {
        let mut summary = crate::report::samples::partial();
        summary.tasks.truncate(1);
        summary.tasks[0].findings = findings;
        summary
    }

    const PATCH: &str = "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1,3 @@\n one\n+two\n+three\n";

    #[test]
    fn lines_of_the_diff_get_comments_and_the_rest_is_in_the_text() {
        let mut suggests = finding("a.rs", (2, Some(3)), "call `@team`: <b>bad</b>");
        suggests.suggestion = Some("```\nfour".to_owned());
        let mut masked = finding("a.rs", (1, None), "no secrets");
        masked.suggestion = Some("token = ***".to_owned());
        let summary = summary(vec![
            suggests,
            masked,
            finding("b.rs", (9, None), "missing"),
        ]);
        let (name, lines) = (RunName::chosen("x"), PatchLines::read(PATCH));
        let found = Found::new(&name, &summary, &lines, &PostedReviews::default());
        let review = found.review("head").unwrap();
        assert_eq!(review.comments.len(), 2);
        let first = &review.comments[0];
        assert_eq!((first.start_line, first.line), (Some(2), 3));
        assert!(
            first.body.ends_with("\n\n````suggestion\n```\nfour\n````"),
            "{}",
            first.body
        );
        assert!(!first.body.contains("<b>"), "{}", first.body);
        assert!(
            !review.comments[1].body.contains("suggestion"),
            "a secret was masked in it"
        );
        assert!(review.body.contains("b.rs:9"), "{}", review.body);
        assert!(!review.body.contains("a.rs:2"), "{}", review.body);
        let listed = found.without_lines(review);
        assert!(
            listed.comments.is_empty() && listed.body.contains("a.rs:2-3"),
            "{}",
            listed.body
        );
    }

    #[test]
    fn what_was_told_before_is_not_told_again() {
        let summary = summary(vec![
            finding("a.rs", (2, None), "same words"),
            finding("a.rs", (3, None), "other words"),
            finding("b.rs", (9, None), "missing"),
        ]);
        let (name, lines) = (RunName::chosen("x"), PatchLines::read(PATCH));
        let first = Found::new(&name, &summary, &lines, &PostedReviews::default());
        let mut told = PostedReviews::default();
        told.texts
            .push(first.comment(&summary.tasks[0].findings[0]).body);
        told.lines.insert(("a.rs".to_owned(), 3));
        told.texts
            .push(first.text(&[&summary.tasks[0].findings[2]]));
        assert!(
            Found::new(&name, &summary, &lines, &told)
                .review("head")
                .is_none()
        );
        let other = RunName::chosen("y");
        let again = Found::new(&other, &summary, &lines, &told)
            .review("head")
            .unwrap();
        assert_eq!(again.comments.len(), 1, "another name tells by itself");
        assert!(
            again.body.contains("found 2 things, besides 1 of before"),
            "{}",
            again.body
        );
    }

    #[test]
    fn the_text_of_a_posted_review_starts_nothing() {
        let summary = summary(vec![finding("a.rs", (2, None), "x")]);
        let (name, lines) = (RunName::default(), PatchLines::default());
        let found = Found::new(&name, &summary, &lines, &PostedReviews::default());
        let body = found.review("head").unwrap().body;
        assert!(crate::domain::trigger::marker::is_marked(&body), "{body}");
    }
}
