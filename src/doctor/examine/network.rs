//! The connections to the outside: proxies and certificates.

use crate::doctor::facts::{Network, Problem, Route};
use crate::doctor::finding::Finding;

pub(super) fn findings(network: &Network) -> Vec<Finding> {
    vec![proxy(network), certificates(network)]
}

fn proxy(network: &Network) -> Finding {
    const CHECK: &str = "proxy";
    let mut troubles = network
        .routes
        .iter()
        .filter_map(|(_, route)| route.as_ref().err());
    if let Some(Problem { message, hints }) = troubles.next() {
        return Finding::fail(CHECK, message, hints.join("\n"));
    }
    let words = network.routes.iter().filter_map(|(host, route)| {
        let route = match route.as_ref().ok()? {
            Route::Direct => "directly".to_owned(),
            Route::Proxy { proxy, variable } => format!("through {proxy} ({variable})"),
        };
        Some(format!("{host} {route}"))
    });
    let words: Vec<String> = words.collect();
    let is_used = |(_, route): &(String, Result<Route, Problem>)| *route != Ok(Route::Direct);
    if network.routes.iter().any(is_used) {
        Finding::ok(CHECK, words.join("; "))
    } else {
        Finding::ok(CHECK, "none is used")
    }
}

fn certificates(network: &Network) -> Finding {
    const CHECK: &str = "certificates";
    match &network.certificates {
        Ok(words) => Finding::ok(CHECK, words),
        Err(Problem { message, hints }) => Finding::fail(CHECK, message, hints.join("\n")),
    }
}
