//! What the built-in agent decides: pure, so that its whole judgement runs without a model.

pub mod context;
pub mod fence;
pub mod model_error;
pub mod protocol;
pub mod tool;
