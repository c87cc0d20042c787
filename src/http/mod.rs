//! How connections leave this machine: directly or through a proxy, and which certificates they trust.
//! The clients for models and for GitHub's API both connect through [`Connector`].
//!
//! The caller provides the variables. Nothing is read, and no certificate is loaded, before the first
//! connection over https.

mod client;
mod connect;
mod roots;

#[cfg(test)]
mod tests;

pub use client::{BoundedBody, Client, TransportError};
pub use connect::{Connector, ServerConnection};
pub use connect::{ProxyInUse, is_loopback};
pub use roots::Trusted;

use crate::domain::wait::jittered_ms;
use connect::Rules;
use hyper::Uri;
use hyper::header::HeaderValue;
use roots::Roots;
use std::error::Error as StdError;
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A wait of `wait_ms` milliseconds with jitter before a request is repeated, at most `longest`.
pub fn jittered(wait_ms: u64, longest: Duration) -> Duration {
    let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(jittered_ms(wait_ms, random(), longest))
}

/// A random number from 0 to 1.
pub fn random() -> f64 {
    let (random, _) = uuid::Uuid::new_v4().as_u64_pair();
    random as f64 / u64::MAX as f64
}

/// A misconfiguration that prevents connections, so that retrying is useless. The message says what to
/// do, and contains no password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub(crate) String);

/// How to connect to other hosts. Clones share the certificates once they are loaded.
#[derive(Clone)]
pub struct Network {
    rules: Arc<Rules>,
    roots: Arc<Roots>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Network(..)")
    }
}

impl Network {
    /// Reads the variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lower case first
    /// as in curl, `SSL_CERT_FILE` and `SSL_CERT_DIR`. An unusable variable is reported by the first
    /// connection that needs it.
    pub fn of(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let var = |name: &str| var(name).filter(|value| !value.is_empty());
        Self {
            rules: Arc::new(Rules::of(&var)),
            roots: Arc::new(Roots::of(&var)),
        }
    }

    /// No proxy, and the root certificates of this machine.
    pub fn direct() -> Self {
        Self::of(|_| None)
    }

    /// The proxy for an address; `None` for a direct connection.
    ///
    /// # Errors
    /// When the proxy that is set for it cannot be used.
    pub fn via(&self, to: &Uri) -> Result<Option<ProxyInUse>, Fault> {
        Ok(self.rules.proxy_for(to)?.map(|chosen| chosen.via))
    }

    /// The proxy's login for a request over plain http. A tunnel needs none in the request.
    pub fn proxy_authorization(&self, to: &Uri) -> Option<HeaderValue> {
        let is_plain = to.scheme_str() == Some("http");
        let chosen = self.rules.proxy_for(to).ok()?.filter(|_| is_plain)?;
        chosen.intercept.basic_auth().cloned()
    }

    /// The message if the proxy for an address rejects the login that it got (407).
    pub fn refused_login(&self, to: &Uri) -> Option<Fault> {
        let via = self.via(to).ok()??;
        Some(Fault(connect::refused_login(&via)))
    }

    /// The trusted certificates. They are loaded once.
    ///
    /// # Errors
    /// When the certificates that a variable names cannot be read.
    pub fn trusted(&self) -> Result<Trusted, Fault> {
        self.roots.load().map(|loaded| loaded.trusted.clone())
    }
}

/// A connection error with its causes on one line, and whether it is a [`Fault`].
pub fn describe_error(error: &(dyn StdError + 'static)) -> (String, bool) {
    let (mut text, mut fault) = (String::new(), None);
    let mut next = Some(error);
    while let Some(error) = next {
        fault = fault.or_else(|| fault_of(error));
        // `io::Error::source` skips the error that it wraps.
        let wrapped = error.downcast_ref::<std::io::Error>();
        let wrapped = wrapped.and_then(std::io::Error::get_ref);
        let wrapped = wrapped.map(|wrapped| wrapped as &(dyn StdError + 'static));
        next = wrapped.or_else(|| error.source());
        // The client's own prefix ("client error (Connect)") is of no use to a person.
        if error.is::<hyper_util::client::legacy::Error>() && error.source().is_some() {
            continue;
        }
        // Wrapping errors repeat the message of the wrapped one.
        let words = error.to_string();
        if text.is_empty() {
            text = words;
        } else if !words.is_empty() && !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
    }
    match fault {
        None => (text, false),
        Some(fault) if text.ends_with(&fault.0) => (fault.0, true),
        Some(fault) => (format!("{}: {text}", fault.0), true),
    }
}

fn fault_of(error: &(dyn StdError + 'static)) -> Option<Fault> {
    use rustls::CertificateError as C;
    if let Some(fault) = error.downcast_ref::<Fault>() {
        return Some(fault.clone());
    }
    let rustls::Error::InvalidCertificate(why) = error.downcast_ref::<rustls::Error>()? else {
        return None;
    };
    Some(Fault(match why {
        C::UnknownIssuer => format!(
            "the server's certificate is not signed by a trusted authority; if your own proxy or \
             server signed it, name a file with its root certificate in {}",
            roots::FILE
        ),
        _ => "the server's certificate cannot be accepted".to_owned(),
    }))
}
