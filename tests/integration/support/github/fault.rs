//! Faults that a test plans: which requests meet one, and what becomes of them.

use super::super::http::Response;
use std::time::Duration;

/// A fault that waits for its requests.
#[derive(Debug, Clone)]
pub struct Fault {
    method: String,
    path: String,
    /// Matching requests that pass before it strikes.
    skip: u32,
    /// How often it strikes.
    times: u32,
    trouble: Trouble,
}

/// What becomes of a request that meets a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It is not performed and gets this answer.
    Answer(Response),
    /// It is performed; the connection closes without an answer.
    Lost,
    /// It is not performed and gets no answer for as long as the client waits.
    Hang,
    /// It is performed; the answer's body comes byte by byte with a pause after each.
    Drip(Duration),
    /// It is performed; the connection closes in the middle of the answer's body.
    Torn,
    /// It is not performed; the connection closes at once.
    Down,
}

impl Fault {
    /// Strikes every request of this method to paths of this pattern. `*` stands for any method,
    /// for any segment of a path, and as `**` for any end of it.
    pub fn every(method: &str, path: &str, trouble: Trouble) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            skip: 0,
            times: u32::MAX,
            trouble,
        }
    }

    /// Strikes the next `times` matching requests.
    pub fn next(times: u32, method: &str, path: &str, trouble: Trouble) -> Self {
        let every = Self::every(method, path, trouble);
        Self { times, ..every }
    }

    /// Strikes the nth matching request from now, from 1.
    pub fn nth(n: u32, method: &str, path: &str, trouble: Trouble) -> Self {
        let once = Self::next(1, method, path, trouble);
        Self {
            skip: n - 1,
            ..once
        }
    }

    /// What becomes of this request, if the fault strikes it.
    pub(super) fn strikes(&mut self, method: &str, path: &str) -> Option<Trouble> {
        let of_method = self.method == "*" || self.method == method;
        if !of_method || self.times == 0 || !matches(&self.path, path) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.times != u32::MAX {
            self.times -= 1;
        }
        Some(self.trouble.clone())
    }
}

impl Trouble {
    /// Refused with this status and GitHub's usual body for `message`.
    pub fn status(status: u16, message: &str) -> Self {
        let body = serde_json::json!({
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
            "status": status.to_string(),
        });
        Self::Answer(Response {
            status,
            headers: vec![(
                "content-type".to_owned(),
                "application/json; charset=utf-8".to_owned(),
            )],
            body: body.to_string().into_bytes(),
        })
    }

    /// The token is unknown.
    pub fn unauthorized() -> Self {
        Self::status(401, "Bad credentials")
    }

    /// The token lacks a permission.
    pub fn forbidden() -> Self {
        Self::status(403, super::auth::NOT_ACCESSIBLE)
    }

    /// A secondary rate limit with this status (403 or 429), over after so many seconds.
    pub fn secondary(status: u16, retry_after: u64) -> Self {
        let message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
        Self::status(status, message).with("retry-after", &retry_after.to_string())
    }

    /// The primary rate limit, over at `reset` (seconds of the Unix epoch).
    pub fn rate_limit(status: u16, reset: u64) -> Self {
        Self::status(status, "API rate limit exceeded for installation.")
            .with("x-ratelimit-remaining", "0")
            .with("x-ratelimit-reset", &reset.to_string())
    }

    /// The page of a gateway that did not get through; it is no JSON.
    pub fn bad_gateway() -> Self {
        Self::Answer(Response {
            status: 502,
            headers: vec![("content-type".to_owned(), "text/html".to_owned())],
            body: b"<html><body><h1>502 Bad Gateway</h1></body></html>".to_vec(),
        })
    }

    /// The same with one more header; only for an answer.
    pub fn with(self, name: &str, value: &str) -> Self {
        let Self::Answer(mut response) = self else {
            panic!("{self:?} has no headers");
        };
        response.headers.push((name.to_owned(), value.to_owned()));
        Self::Answer(response)
    }
}

/// Whether a path is of this pattern.
fn matches(pattern: &str, path: &str) -> bool {
    let mut path = path.split('/');
    for segment in pattern.split('/') {
        match (segment, path.next()) {
            ("**", _) => return true,
            ("*", Some(_)) => {}
            (literal, Some(given)) if literal == given => {}
            _ => return false,
        }
    }
    path.next().is_none()
}
