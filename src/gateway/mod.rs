//! The server on the loopback interface between agents and their models. Sprag keeps the keys of the
//! providers. An agent gets the address of this server and a token that is useless elsewhere. Requests
//! are forwarded with the key to the provider that the token stands for. Responses are streamed through,
//! and their cost is counted before the agent gets them.

mod account;
mod allow;
mod answer;
mod body;
#[cfg(target_os = "linux")]
mod bridge;
mod forward;
mod provider_side;
mod proxy;
mod server;
mod shared;

pub use account::{Account, SpendLimits, TurnCost};
pub use allow::AllowList;
pub use answer::REFUSAL;
pub use server::Gateway;

#[cfg(test)]
mod tests;
