//! Sprag's built-in agent: its decisions and the formats of the models that it asks. It does no I/O.
//!
//! A session with a model is a history of intents and observations. [`session::Session::apply`] computes its state,
//! [`session::decide()`] returns the next step, and [`session::Session`] keeps both together with the
//! messages, so that the loop of the house (`agents::builtin`) only carries out steps.
//!
//! | part | who needs it |
//! |---|---|
//! | [`access`], [`model`] | whoever names a model or sets a key; [`model::Transport`] is the connection |
//! | [`model::Meter`] | the gateway, which counts what other agents spend |
//! | [`options`] | `--agent-arg` |
//! | [`tool`], [`edit`] | the model: what it can do in the work tree |
//! | [`fence`], [`plan_text`], [`ledger`] | the checklist of check run and comment, and the decision when work is complete |
//! | [`context`], [`tokens`] | long sessions: what fits into a window, and stays in a provider's cache |
//! | [`session`] | limits, stalls, repairs and the end of a session |
//! | [`model_error`] | what is waited for, shortened, or told to a person |
//! | [`texts`] | everything that the model reads besides the task |
//! | [`transcript`] | whoever looks for the cause of a bad turn |

pub mod access;
pub mod context;
#[cfg(test)]
#[path = "../domain/digest.rs"]
mod digest;
pub mod edit;
pub mod fence;
pub mod ledger;
pub mod model;
pub mod model_error;
mod models;
pub mod options;
pub mod plan_text;
pub mod session;
pub mod texts;
pub mod tokens;
pub mod tool;
pub mod transcript;
mod words;

pub use models::Price;
