//! A text and its parsed plan.

use super::source::Source;
use super::{Plan, plan_of};
use crate::text_error::Fault;

/// A text and its parsed plan.
pub(super) struct Read<'a> {
    pub source: Source<'a>,
    pub plan: Plan,
}

impl<'a> Read<'a> {
    pub fn new(name: &str, text: &'a str) -> Result<Self, Fault> {
        Self::with_warnings(name, text, &mut Vec::new())
    }

    pub fn with_warnings(
        name: &str,
        text: &'a str,
        warnings: &mut Vec<Fault>,
    ) -> Result<Self, Fault> {
        let source = Source::open(name, text)?;
        let plan = plan_of(name, &source, warnings)?;
        Ok(Self { source, plan })
    }
}
