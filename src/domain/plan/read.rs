//! A plan with the text that it was read from.

use super::source::Source;
use super::{Plan, PlanError, plan_of, text_of};
use crate::text_error::{Fault, Parsed};

/// A plan with its text, which can be edited without being read again.
pub struct Opened<'a> {
    pub(super) name: &'a str,
    /// The byte order mark of the text, or nothing.
    pub(super) mark: &'a str,
    pub(super) source: Source<'a>,
    pub(super) plan: Plan,
}

/// Reads a plan like [`super::parse`], and keeps its text.
///
/// # Errors
/// As for [`super::parse`].
pub fn open<'a>(name: &'a str, bytes: &'a [u8]) -> Result<Parsed<Opened<'a>>, PlanError> {
    let text = text_of(name, bytes)?;
    let mark = std::str::from_utf8(&bytes[..bytes.len() - text.len()]).unwrap_or_default();
    let mut warnings = Vec::new();
    let opened = Opened::with_warnings(name, text, &mut warnings);
    let opened = opened.map_err(|fault| fault.in_file(name))?;
    warnings.sort_by_key(|warning: &Fault| warning.at);
    let warnings = warnings.into_iter().map(|fault| fault.in_file(name));
    Ok(Parsed {
        value: Opened { mark, ..opened },
        warnings: warnings.collect(),
    })
}

impl<'a> Opened<'a> {
    /// Reads a text without a byte order mark.
    pub(super) fn read(name: &'a str, text: &'a str) -> Result<Self, Fault> {
        Self::with_warnings(name, text, &mut Vec::new())
    }

    fn with_warnings(
        name: &'a str,
        text: &'a str,
        warnings: &mut Vec<Fault>,
    ) -> Result<Self, Fault> {
        let source = Source::open(name, text)?;
        let plan = plan_of(name, &source, warnings)?;
        Ok(Self {
            name,
            mark: "",
            source,
            plan,
        })
    }

    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan without its text.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}
