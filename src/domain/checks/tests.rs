//! What outputs mean, tool by tool and for each question.

mod counts;
mod diagnostics;
mod failures;
mod matchers;
mod reports;
mod tools;
