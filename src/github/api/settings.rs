//! The address of GitHub, and the limits of requests.

use secrecy::SecretString;
use std::time::Duration;

/// The address of GitHub, and the token.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The root of the REST API, as in `GITHUB_API_URL`: `https://api.github.com` or
    /// `https://HOST/api/v3`. Plain http only on a loopback address.
    pub api_url: String,
    /// The address of the pages, as in `GITHUB_SERVER_URL`.
    pub server_url: String,
    /// The token, which is sent only to these two.
    pub token: SecretString,
    /// The limits of requests.
    pub limits: Limits,
}

/// Limits of time and attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The time for one request, from connecting to the last byte of the response.
    pub request: Duration,
    /// The longest single wait for GitHub. A longer one is given up at once.
    pub longest_wait: Duration,
    /// The wait before the first retry after a fault. It doubles with each retry.
    pub first_wait: Duration,
    /// Maximum number of times that a request is sent.
    pub attempts: u32,
    /// The pause between two writes. GitHub advises one second.
    pub spacing: Duration,
}

impl Default for Limits {
    /// 10 s per request, 60 s per wait, 4 attempts, 1 s between writes and before the first retry.
    fn default() -> Self {
        Self {
            request: Duration::from_secs(10),
            longest_wait: Duration::from_secs(60),
            first_wait: Duration::from_secs(1),
            attempts: 4,
            spacing: Duration::from_secs(1),
        }
    }
}
