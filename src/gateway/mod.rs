//! The server on the loopback interface that stands between agents and their models. Sprag keeps the keys of
//! the providers; an agent gets the address of this server and a token that is good for nothing else. Requests
//! are forwarded to the provider that the token stands for, with the key put in; responses pass through as they
//! come, and what they cost is counted before the agent sees it.

mod account;
mod allow;
mod answer;
mod body;
#[cfg(target_os = "linux")]
mod bridge;
mod connections;
mod forward;
mod proxy;
mod server;
mod shared;

pub use account::{Account, SpendLimits, TurnCost};
pub use allow::AllowList;
pub use answer::REFUSAL;
pub use server::Gateway;

#[cfg(test)]
mod tests;
