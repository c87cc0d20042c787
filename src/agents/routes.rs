//! Puts an agent behind the model gateway: finds the variables that hold a provider's key, and makes the
//! agent use the gateway instead.

use super::gateway::{PROVIDERS, Provider, Route};
use super::spec::{CliSpec, VariableKind};
use super::{Agent, CliAgent};
use hyper::Uri;
use sprag_agent::access::Secret;
use std::ffi::OsString;

/// The configuration of an agent that may be put behind the gateway.
pub struct GatewayCandidate<'a> {
    /// The environment that the agent would get.
    pub env: &'a [(OsString, OsString)],
    /// The environment of the run, which may name the job's own server.
    pub job: &'a [(OsString, OsString)],
    /// The user's arguments.
    pub args: &'a [String],
    /// The contents of the agent's own configuration files.
    pub configuration: &'a [String],
}

impl GatewayCandidate<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        value(self.env, name)
    }

    fn has_word(&self, word: &str) -> bool {
        let mut texts = self.args.iter().chain(self.configuration);
        texts.any(|text| text.contains(word))
    }
}

/// The keys of an agent that can stay with Sprag: for a known CLI those of one provider, for a command those
/// in the variables that it was given.
///
/// # Errors
/// Why the agent cannot be put behind the gateway, as a fragment.
pub fn routes(agent: &Agent, around: &GatewayCandidate<'_>) -> Result<Vec<Route>, String> {
    match agent {
        Agent::Builtin(_) => Ok(Vec::new()),
        Agent::Cli(CliAgent::Known(spec)) => route_of(spec, around).map(|route| vec![route]),
        // It is unknown whether the program uses a configured URL.
        Agent::Cli(CliAgent::Acp { .. }) => {
            Err("an ACP agent cannot be put behind the gateway".into())
        }
        Agent::Cli(CliAgent::Command { .. }) => {
            let routes = PROVIDERS.iter().map(|provider| route(provider, around));
            let routes: Vec<Route> = routes.flatten().collect::<Result<_, _>>()?;
            if routes.is_empty() {
                Err("agent_env has no key of a provider that the gateway supports".into())
            } else {
                Ok(routes)
            }
        }
    }
}

/// The value of a variable that is set and not blank.
fn value<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e str> {
    let mut named = env.iter().filter(|(known, _)| known == name);
    let value = named.next()?.1.to_str()?.trim();
    (!value.is_empty()).then_some(value)
}

fn route_of(spec: &CliSpec, around: &GatewayCandidate<'_>) -> Result<Route, String> {
    let behind = spec
        .gateway
        .ok_or_else(|| format!("{} has no setting for the address of its model", spec.name))?;
    let route = route(behind.provider, around).ok_or_else(|| {
        let keys: Vec<&str> = behind.provider.keys.iter().map(|(name, _)| *name).collect();
        format!("{} is not set", keys.join(" or "))
    })??;
    // A login with a header or a cloud cannot be replaced by a key.
    let is_set = |name: &str| around.value(name).is_some();
    let mut passed = spec.variables_to_pass(is_set);
    let other = passed.find(|it| matches!(it.kind, VariableKind::Secret | VariableKind::Cloud));
    if let Some(other) = other {
        return Err(format!("{} is set", other.name));
    }
    let mut elsewhere = behind.elsewhere.split_whitespace();
    match elsewhere.find(|word| around.has_word(word)) {
        Some(word) => Err(format!(
            "`{word}` in its arguments or its own configuration selects another provider"
        )),
        None => Ok(route),
    }
}

/// The keys that are set for a provider, or `None` if there are none.
fn route(
    provider: &'static Provider,
    around: &GatewayCandidate<'_>,
) -> Option<Result<Route, String>> {
    let keys = provider.keys.iter().filter_map(|(name, header)| {
        let key = around.value(name)?;
        Some((*name, *header, Secret::of(key.to_owned())))
    });
    let keys: Vec<_> = keys.collect();
    if keys.is_empty() {
        return None;
    }
    let mut bases = provider.bases.iter();
    let set = bases.find_map(|name| Some((name, value(around.job, name)?)));
    let base = set.map_or(provider.base, |(_, base)| base);
    let uri = base.parse::<Uri>().ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some()
            && uri.query().is_none()
    });
    if uri.is_none() {
        let name = set.map_or("", |(name, _)| name);
        return Some(Err(format!("{name} is not an http or https URL")));
    }
    Some(Ok(Route {
        provider,
        upstream: base.trim_end_matches('/').to_owned(),
        keys,
    }))
}

/// Sets the variables and arguments of an agent that uses the gateway at `address` with `token`. Afterwards
/// no variable contains a key of the route, whatever the variable's name.
pub fn take_over(
    route: &Route,
    agent: &CliAgent,
    address: &str,
    token: &str,
    env: &mut Vec<(OsString, OsString)>,
) -> Vec<String> {
    let base = format!("{address}{}", route.provider.prefix);
    let keys = || route.keys.iter().map(|(_, _, key)| key.reveal());
    env.retain(|(name, _)| !route.provider.bases.iter().any(|base| name == base));
    if let CliAgent::Known(spec) = agent {
        // Other keys have no use behind the gateway.
        env.retain(|(name, _)| {
            let of_spec = spec.variables().find(|it| name == it.name);
            let is_key = of_spec.is_some_and(|it| it.kind == VariableKind::Key);
            !is_key || route.keys.iter().any(|(own, _, _)| name == own)
        });
    }
    for (_, value) in env.iter_mut() {
        let text = value.to_string_lossy();
        if keys().any(|key| text.contains(key)) {
            let without = keys().fold(text.into_owned(), |text, key| text.replace(key, token));
            *value = without.into();
        }
    }
    for name in route.provider.bases {
        env.push((name.into(), base.clone().into()));
    }
    match agent {
        CliAgent::Known(CliSpec {
            gateway: Some(behind),
            ..
        }) => (behind.args)(&base),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
