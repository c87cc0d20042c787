//! The flags of the settings, made from the table. A value stays a text until it is read by the same code
//! that reads files and variables, so that an invalid value has the same message everywhere.

use crate::domain::settings::{self, Form, Group, Key, KeyDefault, Scope, Settings};
use crate::domain::text::has_word;
use crate::error::{Error, Result};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;

/// The settings on a command line, as texts by key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SettingFlags {
    given: BTreeMap<String, Vec<String>>,
    /// For a resumed run, its original settings. They apply where no newer one is given.
    #[serde(skip)]
    pub earlier: Option<Box<Self>>,
}

impl SettingFlags {
    /// Adds further flags. A list gets one item for each occurrence of its flag.
    #[must_use]
    pub fn and<'a>(mut self, given: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        for (key, text) in given {
            self.given.entry(key.to_owned()).or_default().push(text);
        }
        self
    }

    /// Whether the command line sets this key.
    pub fn has(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// The settings with parsed values.
    ///
    /// # Errors
    /// An invalid value, named by its flag.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        for (key, texts) in &self.given {
            let flag = format!("--{}", settings::flag_name(key));
            if texts.iter().any(|text| text.trim().is_empty()) {
                return Err(Error::usage(format!("{flag} has an empty value"))
                    .hint("give it a value, or leave the flag out"));
            }
            let set = settings.set_from_flag(key, texts);
            set.map_err(|why| super::unreadable(key, &flag, &why))?;
        }
        match &self.earlier {
            Some(earlier) => Ok(settings.or(earlier.settings()?.without(Scope::Process))),
            None => Ok(settings),
        }
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        settings::keys().iter().fold(command, add)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = BTreeMap::new();
        for key in settings::keys() {
            let texts = match key.form {
                Form::Truth => truth(matches, &key).into_iter().collect(),
                _ => texts(matches, key.name),
            };
            if !texts.is_empty() {
                given.insert(key.name.to_owned(), texts);
            }
        }
        let earlier = None;
        Ok(Self { given, earlier })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The values of a flag, or none for a flag that the command does not have.
fn texts(matches: &ArgMatches, id: &str) -> Vec<String> {
    let given = matches.try_get_many::<String>(id).ok().flatten();
    given.into_iter().flatten().cloned().collect()
}

fn truth(matches: &ArgMatches, key: &Key) -> Option<String> {
    let is_given = |id: &str| matches!(matches.try_get_one::<bool>(id), Ok(Some(true)));
    let is_set = is_given(key.name);
    (is_set || is_given(&negative(key))).then(|| is_set.to_string())
}

/// Adds the flag of a row.
fn add(command: Command, key: &Key) -> Command {
    let heading = key.group.heading();
    let arg = Arg::new(key.name)
        .long(key.flag())
        .help(help(key))
        .help_heading(heading)
        // The settings about who may start a run belong in workflows and are rarely given by hand.
        .hide_short_help(key.group == Group::Triggers);
    if key.form == Form::Truth {
        let no = Arg::new(negative(key))
            .long(format!("no-{}", key.flag()))
            .help(format!("The opposite of --{}", key.flag()))
            .help_heading(heading)
            .action(ArgAction::SetTrue)
            .overrides_with(key.name)
            .hide(key.default == KeyDefault::Value("`false`".to_owned()))
            .hide_short_help(key.group == Group::Triggers);
        let yes = arg.action(ArgAction::SetTrue).overrides_with(negative(key));
        return command.arg(yes).arg(no);
    }
    let is_list = matches!(key.form, Form::Lines | Form::Arguments);
    let arg = arg
        .value_name(key.value_name)
        .value_parser(AnyText(key.choices.clone()))
        .allow_negative_numbers(key.form == Form::Word)
        .allow_hyphen_values(key.form == Form::Arguments)
        .action(if is_list {
            ArgAction::Append
        } else {
            ArgAction::Set
        });
    if settings::REPEATED.iter().any(|(_, many)| *many == key.name) {
        command.arg(arg.visible_alias(key.input()))
    } else {
        command.arg(arg)
    }
}

fn negative(key: &Key) -> String {
    format!("no_{}", key.name)
}

fn help(key: &Key) -> String {
    let mut help = key.help.trim_end_matches('.').to_owned();
    if matches!(key.form, Form::Lines | Form::Arguments) {
        help += "; may be repeated";
    }
    if let Some((least, most)) = key.range {
        help += &format!(" [{least} to {most}]");
    }
    let default = key.default.text();
    if !matches!(default, "none" | "`false`") {
        help += &format!(" [default: {}]", default.replace('`', ""));
    }
    help
}

/// Accepts any text, and shows the words that are valid.
#[derive(Clone)]
struct AnyText(Vec<&'static str>);

impl TypedValueParser for AnyText {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        match self.0.as_slice() {
            [] => None,
            words => Some(Box::new(words.iter().map(PossibleValue::new))),
        }
    }
}

/// The settings for which commands have flags that take only some.
const SELECTED: [&str; 3] = [
    "events color",
    "pull_request report",
    "verify verify_timeout verify_env flaky_reruns deadline sandbox sandbox_write keep_going \
     protected_paths push pull_request commit_via dispatch_workflows report name status_comment \
     events color run_dir",
];

/// The selection of `sprag demo`.
pub const DEMO: usize = 0;
/// The selection of `sprag publish`.
pub const PUBLISH: usize = 1;
/// The selection of `sprag integrate`.
pub const INTEGRATE: usize = 2;

/// The flags of a selection of settings.
#[derive(Debug, Clone, Default)]
pub struct FlagsOf<const SELECTION: usize>(pub SettingFlags);

impl<const SELECTION: usize> Args for FlagsOf<SELECTION> {
    fn augment_args(command: Command) -> Command {
        let keys = settings::keys();
        let chosen = keys
            .iter()
            .filter(|key| has_word(SELECTED[SELECTION], key.name));
        chosen.fold(command, add)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const SELECTION: usize> FromArgMatches for FlagsOf<SELECTION> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        SettingFlags::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}
