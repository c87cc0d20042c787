//! Where GitHub is, and how long and how often it is asked.

use secrecy::SecretString;
use std::time::Duration;

/// Where GitHub is, and with what right.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The root of the REST API, as in `GITHUB_API_URL`: `https://api.github.com` or
    /// `https://HOST/api/v3`. Plain http only on a loopback address.
    pub api_url: String,
    /// The token, sent to that address and nowhere else.
    pub token: SecretString,
    /// How long and how often.
    pub limits: Limits,
}

/// How long and how often to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// For one request, from connecting to the last byte of the answer.
    pub request: Duration,
    /// The longest single wait for GitHub; what would take longer is given up at once.
    pub longest_wait: Duration,
    /// The wait before the first repetition after a fault; it doubles from there.
    pub first_wait: Duration,
    /// How often a request is sent at most.
    pub attempts: u32,
    /// From one write to the next; GitHub advises a second.
    pub spacing: Duration,
}

impl Default for Limits {
    /// 10 s a request, 60 s a wait, 4 attempts, 1 s between writes and before the first repetition.
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
