//! The user's own configuration, for every repository on this machine.

use super::{DEFAULT_FILE, located, read_file};
use crate::context::Context;
use crate::domain::config_file;
use crate::domain::settings::Settings;
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// Its settings; a job has none. It chooses the agent and the colours. What decides about work is the repository's own.
///
/// # Errors
/// When it cannot be read, is invalid, or sets anything else.
pub(super) fn settings(context: &Context) -> Result<Settings> {
    let home = || Some(Path::new(context.var_os("HOME")?).join(".config"));
    let place = context.var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let path = place
        .or_else(home)
        .map(|place| place.join("sprag/config.yaml"));
    let Some(path) = path.filter(|path| !context.in_actions() && path.is_file()) else {
        return Ok(Settings::default());
    };
    let name = path.display().to_string();
    let bytes = read_file(&path, "configuration file")?;
    let file = config_file::parse(&name, &bytes).map_err(located)?;
    let taken = Settings {
        agent: file.settings.agent.clone(),
        agent_command: file.settings.agent_command.clone(),
        agent_args: file.settings.agent_args.clone(),
        model: file.settings.model.clone(),
        color: file.settings.color,
        ..Settings::default()
    };
    if taken != file.settings || !file.setup.is_empty() || !file.mcp.is_empty() {
        let why = "may have only `agent`, `agent_command`, `agent_args`, `model` and `color`";
        let error = Error::config(format!("{name} {why}"));
        return Err(error.hint(format!("move the rest to {DEFAULT_FILE}")));
    }
    Ok(taken)
}
