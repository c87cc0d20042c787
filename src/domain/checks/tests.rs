//! Tests of the interpretation of outputs, by tool and by question.

mod counts;
mod diagnostics;
mod failures;
mod matchers;
mod reports;
mod tools;
