//! What the texts on GitHub need beyond the run itself: where things are, and who asked.

use super::escape::code;
use crate::report::{sentence, text};

/// Where a text stands and what it can point to. Nothing is required: what is not there is not
/// mentioned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings<'a> {
    /// `https://github.com`, without a slash at the end.
    pub server_url: &'a str,
    /// `owner/name`.
    pub repository: &'a str,
    /// The workflow run.
    pub run_url: Option<&'a str>,
    /// The check run.
    pub check_url: Option<&'a str>,
    /// The comment.
    pub comment_url: Option<&'a str>,
    /// The artifact with the run directory.
    pub artifact_url: Option<&'a str>,
    /// What a comment begins with that Sprag obeys, such as `/sprag`; `None` where nobody can
    /// comment.
    pub trigger_phrase: Option<&'a str>,
    /// The commit whose plan file the tasks' lines are links to.
    pub plan_commit: Option<&'a str>,
    /// Nothing may be written, as in a run for a fork.
    pub report_only: bool,
    /// The check run that has the full report instead of this one.
    pub superseded_by: Option<&'a str>,
    /// The hidden line with the state, an HTML comment.
    pub state_line: Option<&'a str>,
    /// Login of whoever asked for the run.
    pub asked_by: Option<&'a str>,
    /// Workflows that were started for the pushed commits.
    pub dispatched: Vec<String>,
    /// GitHub starts no workflow for the push, because it was made with the job's token.
    pub ci_will_not_start: bool,
    /// What else a person should know, one line each.
    pub notes: Vec<String>,
}

impl Surroundings<'_> {
    /// The hidden line, when it is one HTML comment and nothing else.
    pub(super) fn marker(&self) -> Option<String> {
        let line = text::line(self.state_line?);
        let inner = line.strip_prefix("<!--")?.strip_suffix("-->")?;
        (!inner.contains("--") && !inner.contains('>')).then_some(line)
    }

    /// A commit as a link to it; as code where it has no address.
    pub(super) fn commit(&self, id: &str) -> String {
        let shown = code(&sentence::short_id(id), 12);
        let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_hexdigit());
        match self.repository_url().filter(|_| is_id) {
            Some(base) => link(&shown, &format!("{base}/commit/{id}")),
            None => shown,
        }
    }

    /// A branch as a link to it; as code where it has no address.
    pub(super) fn branch(&self, name: &str) -> String {
        let shown = code(name, 120);
        match self.repository_url() {
            Some(base) => link(&shown, &format!("{base}/tree/{}", path_of_url(name))),
            None => shown,
        }
    }

    /// `shown` as a link to a line of the plan, where it lies in the repository.
    pub(super) fn plan_line(&self, shown: &str, path: Option<&str>, line: Option<u32>) -> String {
        let address = || {
            let path = path.filter(|path| !path.starts_with(['/', '.']))?;
            let base = self.repository_url()?;
            let commit = self.plan_commit?;
            let path = path_of_url(path);
            Some(format!("{base}/blob/{commit}/{path}?plain=1#L{}", line?))
        };
        address().map_or_else(|| shown.to_owned(), |url| link(shown, &url))
    }

    fn repository_url(&self) -> Option<String> {
        let there = !self.server_url.is_empty() && !self.repository.is_empty();
        let server = self.server_url.trim_end_matches('/');
        there.then(|| format!("{server}/{}", self.repository))
    }
}

/// `shown`, which is Markdown already, as a link; without one where `url` is not of the web.
pub(super) fn link(shown: &str, url: &str) -> String {
    match web_address(url) {
        Some(url) => format!("[{shown}]({url})"),
        None => shown.to_owned(),
    }
}

/// An address in which nothing ends a link.
pub(super) fn web_address(url: &str) -> Option<String> {
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
        match kept(c) {
            true => out.push(c),
            false => {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    out.push_str(&format!("%{byte:02X}"));
                }
            }
        }
    }
    out
}
