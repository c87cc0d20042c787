//! What the built-in agent decides: pure, so that its whole judgement runs without a model.
//!
//! A session with a model is a history of intents and observations. [`session::fold`] makes the
//! state of it, [`session::decide()`] names the next step, and [`session::Session`] keeps both
//! together with the transcript, so that the loop that talks to the world only carries steps out.
//! The other modules are what these two are made of: the plan [`ledger`], the [`tool`]s, the
//! [`fence`]d blocks and the text [`protocol`], the [`texts`] that the model reads, the budget of its
//! [`context`] in [`tokens`], and the errors of its API. What was done is kept as a [`trajectory`], on which
//! [`replay`] makes the same decisions once more.

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
