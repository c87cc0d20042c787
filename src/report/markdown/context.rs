//! The context of the texts on GitHub beyond the run itself: URLs, and who asked.

use super::escape::code;
use crate::domain::continuation::Continuation;
use crate::domain::trigger::place::Place;
use crate::report::{sentence, text};
use serde::{Deserialize, Serialize};

/// The context of the texts on GitHub. All fields are optional: what is missing is not mentioned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportContext {
    /// The repository and the workflow run.
    pub place: Place,
    /// The URL of the check run.
    pub check_url: Option<String>,
    /// The URL of the comment.
    pub comment_url: Option<String>,
    /// The URL of the artifact with the run directory.
    pub artifact_url: Option<String>,
    /// The start of a comment that Sprag obeys, such as `/sprag`, or `None` if Sprag obeys no comments.
    pub trigger_phrase: Option<String>,
    /// The commit that the request was for: the first check run belongs to it, and links to the plan use it.
    pub head: Option<String>,
    /// Whether nothing may be written to the repository, as in a run for a fork.
    pub report_only: bool,
    /// The URL of the check run that has the full report instead of this one.
    pub superseded_by: Option<String>,
    /// The hidden line with the state, as an HTML comment.
    pub state_line: Option<String>,
    /// The login of the person who asked for the run.
    pub asked_by: Option<String>,
    /// The workflows that were started for the pushed commits.
    pub dispatched: Vec<String>,
    /// Whether GitHub starts no workflow for the push, because the job's token made it.
    pub ci_will_not_start: bool,
    /// Whether the checks ran in a job that the agent could access, so that their result is only that job's
    /// claim. The check run is then neutral.
    pub verified_elsewhere: bool,
    /// Whether the check run is neutral if a review-only run has findings, because a person decides.
    #[serde(default)]
    pub neutral_findings: bool,
    /// Whether the run only merges the base branch.
    #[serde(default)]
    pub merges_base: bool,
    /// Further notes for the user, one line each.
    pub notes: Vec<String>,
}

impl ReportContext {
    /// How a person continues the run.
    pub fn continuation(&self) -> Continuation {
        Continuation::Job {
            phrase: self.trigger_phrase.clone(),
            merges_base: self.merges_base,
        }
    }

    /// The hidden line, if it is exactly one HTML comment.
    pub(super) fn marker(&self) -> Option<String> {
        let line = text::line(self.state_line.as_deref()?);
        let inner = line.strip_prefix("<!--")?.strip_suffix("-->")?;
        (!inner.contains("--") && !inner.contains('>')).then_some(line)
    }

    /// A commit as a link, or as code if it has no URL.
    pub(super) fn commit(&self, id: &str) -> String {
        let shown = code(&sentence::short_id(id), 12);
        let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit());
        match self.repository_url().filter(|_| is_id) {
            Some(base) => link(&shown, &format!("{base}/commit/{id}")),
            None => shown,
        }
    }

    /// A branch as a link, or as code if it has no URL.
    pub(super) fn branch(&self, name: &str) -> String {
        let shown = code(name, 120);
        match self.repository_url() {
            Some(base) => link(&shown, &format!("{base}/tree/{}", path_of_url(name))),
            None => shown,
        }
    }

    /// `shown` as a link to a line of the plan if the plan is in the repository.
    pub(super) fn plan_line(&self, shown: &str, path: Option<&str>, line: Option<u32>) -> String {
        let address = || {
            let path = path.filter(|path| !path.starts_with(['/', '.']))?;
            let base = self.repository_url()?;
            let commit = self.head.as_deref()?;
            let path = path_of_url(path);
            Some(format!("{base}/blob/{commit}/{path}?plain=1#L{}", line?))
        };
        address().map_or_else(|| shown.to_owned(), |url| link(shown, &url))
    }

    fn repository_url(&self) -> Option<String> {
        let (server, repository) = (&self.place.server_url, &self.place.repository);
        let there = !server.is_empty() && !repository.is_empty();
        there.then(|| format!("{}/{repository}", server.trim_end_matches('/')))
    }
}

/// `shown`, which must be Markdown, as a link, or without one if `url` is not a web address.
pub(super) fn link(shown: &str, url: &str) -> String {
    match web_address(url) {
        Some(url) => format!("[{shown}]({url})"),
        None => shown.to_owned(),
    }
}

/// A URL without characters that would end a link.
fn web_address(url: &str) -> Option<String> {
    let url = url.trim();
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    let kept = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&*+,;=%".contains(c);
    is_web.then(|| encoded(url, kept).replace('&', "&amp;"))
}

fn path_of_url(path: &str) -> String {
    encoded(path, |c| c.is_ascii_alphanumeric() || "-._~/".contains(c))
}

fn encoded(text: &str, kept: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if kept(c) {
            out.push(c)
        } else {
            let bytes = c.to_string().into_bytes();
            out.extend(bytes.iter().map(|byte| format!("%{byte:02X}")));
        }
    }
    out
}
