//! How filters are confined.

use crate::sandbox::Policy;
use std::ffi::OsString;

/// How the programs are confined that git starts.
#[derive(Debug, Clone, Default)]
pub struct FilterSandbox {
    /// What git and all filters may do; `None` if they are not confined.
    pub policy: Option<Policy>,
    /// Variables that filters get besides those of git: the addresses of proxies.
    pub variables: Vec<(OsString, OsString)>,
}
