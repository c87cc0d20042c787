//! Sprag's built-in agent: a session with a model, its plan, its tools and its limits.
//!
//! A session with a model is a history of intents and observations. [`session::Session::observe`] computes its state,
//! and [`session::decide()`] returns the next step. The loop in [`turn`] carries out the steps, with the tools on
//! the work tree; everything else does no I/O. The program around it is a [`host::Host`] and a
//! [`model::Transport`].
//!
//! | part | who needs it |
//! |---|---|
//! | [`access`], [`model`] | whoever names a model or sets a key; [`model::Transport`] is the connection |
//! | [`model::Meter`] | the gateway, which counts what other agents spend |
//! | [`options`] | `--agent-arg` |
//! | [`tool`], `tools`, `edit` | the model: what it can do in the work tree |
//! | [`fence`], [`plan_text`], [`ledger`] | the checklist of check run and comment, and the decision when work is complete |
//! | [`context`], [`tokens`] | long sessions: what fits into a window, and stays in a provider's cache |
//! | [`session`] | limits, stalls, repairs and the end of a session |
//! | [`model_error`] | what is waited for, shortened, or told to a person |
//! | [`turn`], `events` | the house, which speaks to it as to any agent |
//! | [`texts`] | everything that the model reads besides the task |
//! | [`transcript`] | whoever looks for the cause of a bad turn |

pub mod access;
pub mod context;
#[cfg(test)]
#[path = "../domain/attempt/explore/digest.rs"]
mod digest;
mod edit;
mod events;
pub mod fence;
pub mod host;
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
mod tools;
pub mod transcript;
pub mod turn;
mod words;

pub use models::Price;
