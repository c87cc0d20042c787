//! The secrets of this process, for the texts that leave it.

use crate::context::Context;
use crate::secrets::detect::Detector;
use crate::secrets::redact::Redactor;
use crate::secrets::{FindSecrets, Redact};
use crate::settings::inputs;
use std::sync::Arc;

/// Ends of the names of variables whose values are secrets.
const ENDS: [&str; 6] = [
    "_TOKEN",
    "_API_KEY",
    "_SECRET",
    "_PASSWORD",
    "_PRIVATE_KEY",
    "_ACCESS_KEY",
];

/// Takes the values out of texts that the environment has under the name of a secret, the step's
/// token among them.
pub fn redactor(context: &Context) -> Redactor {
    Redactor::new(secrets(context).map(|(_, value)| value))
}

/// Finds the same values in files, if there are any.
pub fn find_secrets(context: &Context) -> Option<FindSecrets> {
    let detector = Detector::new(secrets(context));
    if detector.is_idle() {
        return None;
    }
    Some(Arc::new(move |from| {
        let seen = detector.find(from)?.into_iter();
        Ok(seen.map(|seen| (seen.name, seen.form)).collect())
    }))
}

/// The secrets of this process with the names of their variables.
fn secrets(context: &Context) -> impl Iterator<Item = (&str, &str)> {
    let named = context.env.iter().filter_map(|(name, value)| {
        let name = name.to_str()?;
        let plain = name.to_ascii_uppercase().replace('-', "_");
        let is_secret = ENDS.iter().any(|end| plain.ends_with(end));
        is_secret.then_some((name, value.to_str()?))
    });
    let logins = context.env.iter().filter_map(|(name, value)| {
        let name = name.to_str()?;
        let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
        is_proxy.then_some((name, password(value.to_str()?)?))
    });
    let token = inputs::token(context).map(|token| ("GITHUB_TOKEN", token));
    named.chain(logins).chain(token)
}

/// The password in an address.
fn password(address: &str) -> Option<&str> {
    let after = address
        .split_once("://")
        .map_or(address, |(_, after)| after);
    let authority = after.split('/').next().unwrap_or_default();
    let (login, _) = authority.rsplit_once('@')?;
    login.split_once(':').map(|(_, password)| password)
}

/// The same as a function.
pub fn redact(context: &Context) -> Redact {
    let redactor = redactor(context);
    Arc::new(move |text| redactor.redact(text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
