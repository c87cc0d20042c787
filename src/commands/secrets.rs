//! The secrets of this process, for the texts that leave it.

use super::hub;
use crate::context::Context;
use crate::report::redact::Redactor;

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
    let named = context.env.iter().filter_map(|(name, value)| {
        let name = name.to_str()?.to_ascii_uppercase().replace('-', "_");
        ENDS.iter()
            .any(|end| name.ends_with(end))
            .then(|| value.to_str())?
    });
    Redactor::new(named.chain(hub::token(context)))
}
