//! Facts about the connections to the outside. No connection is made.

use crate::context::Context;
use crate::doctor::{Network, Problem, Route};
use crate::github::actions_environment;
use crate::http::{self, Fault};
use hyper::Uri;

/// Determines the routes to GitHub and to the model's server, if there is one.
pub(crate) fn gather(context: &Context, model: Option<&str>) -> Network {
    let network = actions_environment::network(context);
    let api = context
        .var("GITHUB_API_URL")
        .filter(|_| context.in_actions());
    let servers = [model, Some(api.unwrap_or("https://api.github.com"))];
    let mut routes = Vec::new();
    for server in servers.into_iter().flatten() {
        let Ok(uri) = server.parse::<Uri>() else {
            continue;
        };
        let host = uri.host().unwrap_or_default().to_owned();
        let route = network.via(&uri).map(|via| match via {
            None => Route::Direct,
            Some(via) => Route::Proxy {
                proxy: via.proxy,
                variable: via.variable.to_owned(),
            },
        });
        routes.push((host, route.map_err(|fault| trouble(&fault, "a proxy"))));
    }
    Network {
        routes,
        certificates: certificates(&network),
    }
}

fn certificates(network: &http::Network) -> Result<String, Problem> {
    let trusted = network
        .trusted()
        .map_err(|fault| trouble(&fault, "a file of certificates"))?;
    let whose = match trusted.variables.as_slice() {
        [] => "this machine".to_owned(),
        named => named.join(" and "),
    };
    let (built_in, added) = (trusted.built_in, trusted.added);
    Ok(format!("{built_in} built-in roots and {added} of {whose}"))
}

fn trouble(fault: &Fault, what: &str) -> Problem {
    Problem {
        message: fault.to_string(),
        hints: vec![format!("set it to {what} that can be used, or unset it")],
    }
}
