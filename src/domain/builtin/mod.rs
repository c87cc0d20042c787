//! The decisions of the built-in agent: pure, so that all of them can be tested without a model.
//!
//! A session with a model is a history of intents and observations. [`session::Session::apply`] computes its state,
//! [`session::decide()`] returns the next step, and [`session::Session`] keeps both together with the
//! transcript, so that the loop with the side effects only carries out steps. The other modules are the parts
//! of these two: the plan [`ledger`], the [`tool`]s, the [`fence`]d blocks and the text [`protocol`], the
//! [`texts`] that the model reads, the budget of its [`context`] in [`tokens`], and the errors of its API.
//! The record of a session is a [`trajectory`], on which [`replay`] repeats the decisions.

pub mod context;
pub mod fence;
pub mod ledger;
pub mod model_error;
pub mod plan_text;
pub mod protocol;
pub mod replay;
pub mod session;
pub mod texts;
pub mod tokens;
pub mod tool;
pub mod trajectory;
mod words;
