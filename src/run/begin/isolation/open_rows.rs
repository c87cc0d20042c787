//! What a machine leaves within the reach of children although the settings ask for less.

use super::Form;
use crate::domain::sandbox::Level;
use crate::sandbox::keeps_signals;

/// What is open at the first level.
const ALL_OPEN: &str = "agents and checks may write, signal and connect wherever their user may";

/// What is open without mounts for the child.
const CACHES_OPEN: &str = "agents can change caches and temporary files that checks use";
const SOCKETS_OPEN: &str = "agents can use the sockets of docker, ssh-agent and the session";

/// What is open before Linux 6.12.
const SIGNALS_OPEN: &str = "agents and checks can end Sprag and its runner";

/// What this form leaves open, one sentence each.
pub(super) fn open_rows(form: Form, are_caches_open: bool) -> Vec<String> {
    let mut open = Vec::new();
    match form {
        Form::Strict(Level::Off | Level::Privileges) => return vec![ALL_OPEN.to_owned()],
        Form::Open { hides: false } => open.push(SOCKETS_OPEN),
        Form::Strict(_) | Form::Open { .. } => {}
    }
    open.extend(are_caches_open.then_some(CACHES_OPEN));
    let is_apart = form.level() >= Level::Namespaces;
    open.extend((!is_apart && !keeps_signals()).then_some(SIGNALS_OPEN));
    open.into_iter().map(str::to_owned).collect()
}
