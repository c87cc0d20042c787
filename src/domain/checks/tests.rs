//! Tests of the interpretation of outputs, by tool and by question.

mod counts;
mod diagnostics;
mod excerpts;
mod failures;
mod matchers;
mod reports;
mod tools;

const FAILED: super::verdict::CheckOutcome = super::verdict::CheckOutcome::Failed { exit: 1 };
