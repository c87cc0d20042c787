//! The connections to the outside. No connection is made.

use crate::agents::Agent;
use crate::context::Context;
use crate::doctor::configuration::Configured;
use crate::doctor::finding::Finding;
use crate::github::actions_environment;
use crate::http::{Fault, ProxyInUse, Trusted};
use hyper::Uri;

/// A host, and the proxy on the way to it.
pub(super) type Route = (String, Result<Option<ProxyInUse>, Fault>);

pub(super) fn findings(context: &Context, configured: Option<&Configured>) -> Vec<Finding> {
    let network = actions_environment::network(context);
    let model = match configured.map(|configured| &configured.task.agent) {
        Some(Agent::Builtin(builtin)) => Some(builtin.access.base.as_str()),
        _ => None,
    };
    let api = context
        .var("GITHUB_API_URL")
        .filter(|_| context.in_actions());
    let servers = [model, Some(api.unwrap_or("https://api.github.com"))];
    let routes: Vec<Route> = servers
        .into_iter()
        .flatten()
        .filter_map(|server| {
            let uri: Uri = server.parse().ok()?;
            Some((uri.host().unwrap_or_default().to_owned(), network.via(&uri)))
        })
        .collect();
    vec![proxy(&routes), certificates(network.trusted())]
}

pub(super) fn proxy(routes: &[Route]) -> Finding {
    const CHECK: &str = "proxy";
    let mut words = Vec::new();
    let mut is_used = false;
    for (host, proxy) in routes {
        match proxy {
            Err(fault) => return unusable(CHECK, fault, "a proxy"),
            Ok(None) => words.push(format!("{host} directly")),
            Ok(Some(ProxyInUse {
                proxy, variable, ..
            })) => {
                is_used = true;
                words.push(format!("{host} through {proxy} ({variable})"));
            }
        }
    }
    if is_used {
        Finding::ok(CHECK, words.join("; "))
    } else {
        Finding::ok(CHECK, "none is used")
    }
}

pub(super) fn certificates(trusted: Result<Trusted, Fault>) -> Finding {
    const CHECK: &str = "certificates";
    let Trusted {
        built_in,
        added,
        variables,
    } = match trusted {
        Ok(trusted) => trusted,
        Err(fault) => return unusable(CHECK, &fault, "a file of certificates"),
    };
    let source = match variables.as_slice() {
        [] => "this machine".to_owned(),
        named => named.join(" and "),
    };
    Finding::ok(
        CHECK,
        format!("{built_in} built-in roots and {added} of {source}"),
    )
}

fn unusable(check: &'static str, fault: &Fault, what: &str) -> Finding {
    let remedy = format!("set it to {what} that can be used, or unset it");
    Finding::fail(check, fault.to_string(), remedy)
}
