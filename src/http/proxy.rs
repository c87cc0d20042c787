//! Selects the proxy, if any, for an address.

use super::Fault;
use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::ffi::OsString;
use std::net::IpAddr;

/// The proxy in use, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyInUse {
    /// Such as `http://proxy.example.com:3128`, without user and password.
    pub proxy: String,
    /// The variable that names it.
    pub variable: &'static str,
    /// Whether the connection to the proxy itself is encrypted.
    pub is_https: bool,
}

/// The proxy selected for an address.
#[derive(Debug, Clone)]
pub(super) struct ProxyRoute {
    pub(super) intercept: Intercept,
    pub(super) via: ProxyInUse,
}

/// The configured proxies, and the hosts that bypass them.
#[derive(Debug)]
pub(super) struct Rules {
    http: Setting,
    https: Setting,
    matcher: Matcher,
}

/// A proxy setting, with the variable that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setting {
    None,
    Usable(&'static str),
    Unusable(&'static str),
}

/// Replaces an unusable proxy, so that hosts which need no proxy are still reached.
const PLACEHOLDER: &str = "http://unusable.invalid";

impl Rules {
    pub(super) fn of(var: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let (https, https_value) = read(var, &["https_proxy", "HTTPS_PROXY"]);
        let (http, http_value) = read(var, &["http_proxy", "HTTP_PROXY"]);
        let none_for = ["no_proxy", "NO_PROXY"]
            .iter()
            .find_map(|name| var(name))
            .map(|value| value.to_string_lossy().into_owned());
        let matcher = Matcher::builder()
            .http(http_value)
            .https(https_value)
            .no(exceptions(none_for.as_deref().unwrap_or_default()))
            .build();
        Self {
            http,
            https,
            matcher,
        }
    }

    /// The proxy for an address. Requests to this machine never use one, because a proxy elsewhere would
    /// look for them on its own machine.
    pub(super) fn proxy_for(&self, to: &Uri) -> Result<Option<ProxyRoute>, Fault> {
        if to.host().is_none_or(is_loopback) {
            return Ok(None);
        }
        let Some(intercept) = self.matcher.intercept(to) else {
            return Ok(None);
        };
        let setting = match to.scheme_str() {
            Some("https") => self.https,
            _ => self.http,
        };
        match setting {
            Setting::None => Ok(None),
            Setting::Unusable(variable) => Err(Fault(format!(
                "{variable} is not the address of an http or https proxy, such as \
                 http://proxy.example.com:3128 or http://user:password@proxy.example.com:3128, \
                 with %40 for an @ in the password"
            ))),
            Setting::Usable(variable) => Ok(Some(ProxyRoute {
                via: ProxyInUse {
                    proxy: intercept.uri().to_string().trim_end_matches('/').to_owned(),
                    variable,
                    is_https: intercept.uri().scheme_str() == Some("https"),
                },
                intercept,
            })),
        }
    }
}

/// The first of these variables that is set, else the one for all schemes.
fn read(var: &dyn Fn(&str) -> Option<OsString>, names: &[&'static str; 2]) -> (Setting, String) {
    let all = ["all_proxy", "ALL_PROXY"];
    let mut names = names.iter().chain(&all);
    let Some((name, value)) = names.find_map(|name| Some((*name, var(name)?))) else {
        return (Setting::None, String::new());
    };
    let value = value.to_str().unwrap_or_default().trim().to_owned();
    if is_usable(&value) {
        (Setting::Usable(name), value)
    } else {
        (Setting::Unusable(name), PLACEHOLDER.to_owned())
    }
}

/// Whether it names a host with http, with https or without a scheme, which means http.
fn is_usable(value: &str) -> bool {
    let Ok(address) = value.parse::<Uri>() else {
        return false;
    };
    let has_host = address.host().is_some_and(|host| !host.is_empty());
    // With a second `@`, the end of the password is ambiguous.
    let is_plain = value.matches('@').count() < 2;
    has_host && is_plain && matches!(address.scheme_str(), None | Some("http" | "https"))
}

/// `NO_PROXY` in the matcher's format. As in curl, blanks may separate entries, and `*.example.com`
/// means `.example.com`.
fn exceptions(value: &str) -> String {
    let entries = value
        .split([',', ' ', '\t'])
        .filter(|entry| !entry.is_empty())
        .map(|entry| match entry.strip_prefix('*') {
            Some(domain) if domain.starts_with('.') => domain,
            _ => entry,
        });
    entries.collect::<Vec<_>>().join(",")
}

/// Whether a host is this machine, by name or address.
pub fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}
