//! Determines which values of the environment are secrets.

use crate::secrets::detect::Detector;
use crate::secrets::redact::Redactor;
use std::ffi::OsString;

/// Suffixes of the names of variables whose values are secrets; without the underscore they are names
/// themselves. Action inputs are variables too.
const ENDS: &str =
    "_TOKEN _API_KEY _SECRET _PASSWORD _PASSPHRASE _PRIVATE_KEY _ACCESS_KEY _AUTH _AUTHORIZATION";

/// Redacts the values of all secret variables of the environment.
pub fn redactor(environment: &[(OsString, OsString)]) -> Redactor {
    redactor_of(environment, &[])
}

/// Redacts these values, and those of the variables that are declared as credentials, whatever their names are.
pub fn redactor_of(environment: &[(OsString, OsString)], declared: &[&str]) -> Redactor {
    Redactor::new(secrets(environment, declared).map(|(_, value)| value))
}

/// Detects the same values in files. `None` if there are none.
pub fn detector(environment: &[(OsString, OsString)], declared: &[&str]) -> Option<Detector> {
    let detector = Detector::new(secrets(environment, declared));
    (!detector.is_idle()).then_some(detector)
}

/// Whether the name of a variable says that its whole value is a secret.
pub fn holds_secret(name: &str) -> bool {
    let plain = name.to_ascii_uppercase().replace('-', "_");
    ENDS.split(' ')
        .any(|end| plain.ends_with(end) || end.strip_prefix('_') == Some(plain.as_str()))
}

/// The secrets of the environment with the names of their variables.
fn secrets<'e>(
    environment: &'e [(OsString, OsString)],
    declared: &[&str],
) -> impl Iterator<Item = (&'e str, &'e str)> {
    let texts = environment
        .iter()
        .filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    texts.flat_map(move |(name, value)| {
        let plain = name.to_ascii_uppercase().replace('-', "_");
        let values: Vec<&str> = if holds_secret(name) || declared.contains(&name) {
            vec![value]
        } else if plain.ends_with("_PROXY") {
            password(value).into_iter().collect()
        } else if plain.starts_with("OTEL_") && plain.ends_with("_HEADERS") {
            header_values(value).collect()
        } else {
            Vec::new()
        };
        values.into_iter().map(move |value| (name, value))
    })
}

/// The header values for a telemetry collector, `name=value` separated by commas, each without its
/// authentication scheme.
fn header_values(headers: &str) -> impl Iterator<Item = &str> {
    let values = headers.split(',').filter_map(|pair| pair.split_once('='));
    values.map(|(_, value)| {
        let without = |value: &'_ str, blank: &str| value.rfind(blank).map(|at| at + blank.len());
        let at = without(value, "%20").max(without(value, " "));
        value[at.unwrap_or_default()..].trim()
    })
}

/// The password in a URL.
fn password(address: &str) -> Option<&str> {
    let after = address
        .split_once("://")
        .map_or(address, |(_, after)| after);
    let authority = after.split('/').next().unwrap_or_default();
    let (login, _) = authority.rsplit_once('@')?;
    login.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_headers_for_a_collector_are_secrets() {
        let value = "api-key=abcdefgh,Authorization=Basic%20aWpr bG1u, x-team=infra";
        let environment = [("OTEL_EXPORTER_OTLP_TRACES_HEADERS".into(), value.into())];
        let found: Vec<&str> = secrets(&environment, &["SERVER"])
            .map(|(_, value)| value)
            .collect();
        assert_eq!(found, ["abcdefgh", "bG1u", "infra"]);
    }

    #[test]
    fn the_password_of_a_proxy_is_a_secret() {
        for (address, expected) in [
            ("http://anna:pass-word@p:3128/", Some("pass-word")),
            ("anna:pass-word@p", Some("pass-word")),
            ("http://anna:pass@word@p", Some("pass@word")),
            ("http://anna@p:3128", None),
            ("http://p:3128/a:b@c", None),
            ("", None),
        ] {
            assert_eq!(password(address), expected, "{address}");
        }
    }

    #[test]
    fn the_token_of_a_step_is_a_secret_by_every_name_that_it_has() {
        for (name, is_secret) in [
            ("GITHUB_TOKEN", true),
            ("INPUT_GITHUB-TOKEN", true),
            ("INPUT_GITHUB_TOKEN", true),
            ("openai_api_key", true),
            ("https_proxy", true),
            ("TOKEN", true),
            ("Password", true),
            ("GPG_PASSPHRASE", true),
            ("ISSUES_AUTHORIZATION", true),
            ("SERVER", true),
            ("TOKENS", false),
            ("_", false),
            ("PATH", false),
        ] {
            let value = "http://a:canary-1234@p";
            let environment = [(name.into(), value.into())];
            let found = secrets(&environment, &["SERVER"]).next().is_some();
            assert_eq!(found, is_secret, "{name}");
        }
    }
}
