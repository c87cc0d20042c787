//! What the built-in agent decides: pure, so that its whole judgement runs without a model.

pub mod model_error;
