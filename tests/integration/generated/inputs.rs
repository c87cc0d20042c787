//! The inputs of the action that are not settings.

use clap::{Arg, ArgAction, Args as _};
use sprag::settings::args::{RunArgs, SettingFlags};
use sprag::settings::inputs::{DIRECTORY, TOKEN};

/// An input that is not a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its description.
    pub help: String,
    /// Its flag as typed. The token has none, so that it never appears in a list of processes.
    pub flag: Option<String>,
}

/// Every input that is not a setting, in the order of the documentation: the flags of `sprag run`, and the
/// token.
pub fn of_run() -> Vec<Input> {
    let settings = SettingFlags::augment_args(clap::Command::new("settings"));
    let is_setting = |arg: &Arg| {
        settings
            .get_arguments()
            .any(|known| known.get_id() == arg.get_id())
    };
    let command = RunArgs::augment_args(clap::Command::new("run"));
    let flags = command.get_arguments().filter(|arg| !is_setting(arg));
    let mut inputs: Vec<Input> = flags.filter_map(of_flag).collect();
    inputs.push(Input {
        name: DIRECTORY.to_owned(),
        help: "Directory in which the agent, the checks and setup commands work; other paths are relative to it.".to_owned(),
        flag: Some("-C".to_owned()),
    });
    inputs.push(Input {
        name: TOKEN.to_owned(),
        help: "Token for Sprag's API calls, pushes and reports; the agent and the checks do not get it. Default: the job's token.".to_owned(),
        flag: None,
    });
    inputs
}

fn of_flag(arg: &Arg) -> Option<Input> {
    let name = arg.get_long()?.to_owned();
    let help = arg.get_help()?.to_string();
    let help = match arg.get_action() {
        ArgAction::SetTrue | ArgAction::Count => format!("{help} (true or false)."),
        ArgAction::Append => format!("{}.", help.replace("may be repeated", "one per line")),
        _ => format!("{help}."),
    };
    Some(Input {
        flag: Some(format!("--{name}")),
        name,
        help,
    })
}
