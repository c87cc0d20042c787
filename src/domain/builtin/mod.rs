//! The decisions of the built-in agent: pure, so that all of them can be tested without a model.
//!
//! A session with a model is a history of intents and observations. [`session::Session::apply`] computes its state,
//! [`session::decide()`] returns the next step, and [`session::Session`] keeps both together with the
//! transcript, so that the loop with the side effects only carries out steps. The other modules are the parts
//! of these two: the plan [`ledger`], the [`tool`]s, the [`fence`]d blocks, the [`texts`] that the model reads,
//! the budget of its [`context`] in [`tokens`], and the errors of its API.

pub mod context;
pub mod fence;
pub mod ledger;
pub mod model_error;
pub mod plan_text;
pub mod session;
pub mod texts;
pub mod tokens;
pub mod tool;
pub mod transcript;
mod words;
