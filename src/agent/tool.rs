//! The tools of the built-in agent: their descriptions for the model, and its calls as values.

use crate::plan_text::ItemState;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

/// A tool as the model sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
}

/// A parameter of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// Whether a call without it is an error.
    pub required: bool,
    /// Its description.
    pub about: &'static str,
    /// The names that it has in other agents' tools, which models have seen more often.
    pub other_names: &'static [&'static str],
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Number,
    /// A boolean.
    Flag,
    /// The items of a plan.
    Items,
}

const fn required(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter {
        name,
        kind,
        required: true,
        about,
        other_names: &[],
    }
}

const fn optional(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter {
        required: false,
        ..required(name, kind, about)
    }
}

impl Parameter {
    const fn or(self, other_names: &'static [&'static str]) -> Self {
        Self {
            other_names,
            ..self
        }
    }
}

/// A file of the repository.
const FILE: Parameter = required("path", Kind::Text, "path from the root of the repository").or(&[
    "file_path",
    "filePath",
    "filename",
    "file",
]);

const DIRECTORY: &[&str] = &["dir", "directory"];

/// The tools that access the work tree, in the order in which the model sees them.
const WORK_TOOLS: &[Tool] = &[
    Tool {
        name: "read_file",
        about: "Reads a file of the repository, with line numbers.",
        parameters: &[
            FILE,
            optional("start", Kind::Number, "first line, from 1").or(&["start_line"]),
            optional("end", Kind::Number, "last line").or(&["end_line"]),
        ],
    },
    Tool {
        name: "list_files",
        about: "Lists the files of a directory and below, without ignored ones.",
        parameters: &[
            optional("path", Kind::Text, "the directory; the root if left out").or(DIRECTORY),
        ],
    },
    Tool {
        name: "search",
        about: "Searches the files for a regular expression, without ignored ones.",
        parameters: &[
            required("pattern", Kind::Text, "the regular expression").or(&["query", "regex"]),
            optional("path", Kind::Text, "the file or directory to search").or(DIRECTORY),
        ],
    },
    Tool {
        name: "edit_file",
        about: "Replaces text in a file. The text searched for must occur exactly once; copy it \
                from the file as it is, without line numbers.",
        parameters: &[
            FILE,
            required("search", Kind::Text, "the text to be replaced").or(&[
                "old_string",
                "oldString",
                "old_str",
                "old_text",
            ]),
            required("replace", Kind::Text, "the text to put in its place").or(&[
                "new_string",
                "newString",
                "new_str",
                "new_text",
            ]),
        ],
    },
    Tool {
        name: "write_file",
        about: "Writes a whole file, new or in place of the old one.",
        parameters: &[
            FILE,
            required("content", Kind::Text, "the whole content").or(&[
                "contents",
                "file_text",
                "text",
            ]),
        ],
    },
    Tool {
        name: "delete_file",
        about: "Deletes a file.",
        parameters: &[FILE],
    },
    Tool {
        name: "move_file",
        about: "Moves or renames a file.",
        parameters: &[
            required("from", Kind::Text, "where it is"),
            required("to", Kind::Text, "where it shall be"),
        ],
    },
    Tool {
        name: "run_command",
        about: "Runs a shell command in the root of the repository and shows its output.",
        parameters: &[
            required("command", Kind::Text, "the command").or(&["cmd"]),
            optional(
                "timeout_seconds",
                Kind::Number,
                "after how long it is ended",
            ),
        ],
    },
];

/// The tools for plans and final messages, which can also be fenced blocks.
const PLAN_TOOLS: &[Tool] = &[
    Tool {
        name: "update_plan",
        about: "Registers the plan, or says what became of its items. An item begins with the \
                files it is about: `src/a.rs, src/b.rs: add the parser`.",
        parameters: &[
            required(
                "items",
                Kind::Items,
                "the items that are new or have changed",
            ),
            optional("replace", Kind::Flag, "whether this is a whole new plan"),
        ],
    },
    Tool {
        name: "finish",
        about: "Ends the work. Call it when every item is done.",
        parameters: &[required(
            "summary",
            Kind::Text,
            "the final message, with the suggested commit message",
        )
        .or(&["message", "result"])],
    },
];

impl Tool {
    /// The JSON schema of its arguments.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.to_owned(), parameter.schema()))
            .collect();
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.name)
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

impl Parameter {
    /// Gives an argument with another name the parameter's own.
    fn rename(&self, arguments: &mut Map<String, Value>) -> Result<(), String> {
        for other in self.other_names {
            if let Some(value) = arguments.remove(*other)
                && arguments.insert(self.name.to_owned(), value).is_some()
            {
                return Err(format!("duplicate field `{}`", self.name));
            }
        }
        Ok(())
    }

    fn schema(&self) -> Value {
        let about = self.about;
        match self.kind {
            Kind::Text => json!({"type": "string", "description": about}),
            Kind::Number => json!({"type": "integer", "description": about}),
            Kind::Flag => json!({"type": "boolean", "description": about}),
            Kind::Items => json!({
                "type": "array",
                "description": about,
                "items": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string"},
                        "state": {
                            "type": "string",
                            "enum": [
                                "pending", "in_progress", "done", "blocked", "superseded",
                                "already_satisfied",
                            ],
                        },
                    },
                    "required": ["text", "state"],
                },
            }),
        }
    }
}

/// Every tool.
pub fn all() -> impl Iterator<Item = &'static Tool> {
    WORK_TOOLS.iter().chain(PLAN_TOOLS)
}

/// A call as the model made it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolCall {
    /// The provider's id of the call, to pair it with its result. It need not be unique.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
}

/// The arguments of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A value that is not validated yet.
    Given(Value),
    /// Arguments that could not be parsed, with the reason.
    Unreadable(String),
}

impl Arguments {
    /// The arguments of a tool call from JSON text, as most APIs return them. An empty text means no
    /// arguments.
    pub fn from_json(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Given(json!({}));
        }
        match serde_json::from_str(text) {
            Ok(value) => Self::Given(value),
            Err(error) => Self::Unreadable(format!("the arguments are not valid JSON: {error}")),
        }
    }
}

/// A call that can be carried out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "tool", content = "arguments", rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ToolRequest {
    /// Read a file.
    ReadFile {
        /// The file.
        path: String,
        /// First line, from 1.
        #[serde(default, deserialize_with = "number")]
        start: Option<u64>,
        /// Last line.
        #[serde(default, deserialize_with = "number")]
        end: Option<u64>,
    },
    /// List files.
    ListFiles {
        /// The directory; the root if `None`.
        #[serde(default)]
        path: Option<String>,
    },
    /// Search in files.
    Search {
        /// A regular expression.
        pattern: String,
        /// The file or directory; the root if `None`.
        #[serde(default)]
        path: Option<String>,
    },
    /// Replace text that occurs once.
    EditFile {
        /// The file.
        path: String,
        /// The text to replace.
        search: String,
        /// The replacement.
        replace: String,
    },
    /// Write a whole file.
    WriteFile {
        /// The file.
        path: String,
        /// Its complete content.
        content: String,
    },
    /// Delete a file.
    DeleteFile {
        /// The file.
        path: String,
    },
    /// Move a file.
    MoveFile {
        /// The old path.
        from: String,
        /// The new path.
        to: String,
    },
    /// Run a shell command.
    RunCommand {
        /// The command.
        command: String,
        /// The time limit in seconds.
        #[serde(default, deserialize_with = "number")]
        timeout_seconds: Option<u64>,
    },
    /// Change the plan.
    UpdatePlan {
        /// The items that are new or have changed.
        items: Vec<PlanItem>,
        /// Whether this is a whole new plan.
        #[serde(default)]
        replace: bool,
    },
    /// End the work.
    Finish {
        /// The final message.
        #[serde(default)]
        summary: String,
    },
}

/// One item of an `update_plan` call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlanItem {
    /// The text of the item.
    #[serde(alias = "step", alias = "content", alias = "title")]
    pub text: String,
    /// The state of the item.
    #[serde(default, alias = "status")]
    pub state: ItemState,
}

impl ToolRequest {
    /// The call as a request, otherwise the error for the model.
    pub fn of(call: &ToolCall) -> Result<Self, String> {
        let arguments = match &call.arguments {
            Arguments::Unreadable(why) => return Err(why.clone()),
            Arguments::Given(Value::Null) => json!({}),
            Arguments::Given(value) => value.clone(),
        };
        let Some(tool) = all().find(|tool| tool.name == call.name) else {
            let names: Vec<&str> = all().map(|tool| tool.name).collect();
            return Err(format!(
                "there is no tool `{}`; the tools are {}",
                call.name,
                names.join(", ")
            ));
        };
        let Value::Object(mut arguments) = arguments else {
            return Err("the arguments are not a JSON object".into());
        };
        for parameter in tool.parameters {
            parameter.rename(&mut arguments)?;
        }
        let tagged = json!({"tool": tool.name, "arguments": arguments});
        serde_json::from_value(tagged).map_err(|error| error.to_string())
    }

    /// The same call with `change` applied to every path.
    #[must_use]
    pub fn with_paths(mut self, change: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::ReadFile { path, .. }
            | Self::EditFile { path, .. }
            | Self::WriteFile { path, .. }
            | Self::DeleteFile { path } => *path = change(path),
            Self::ListFiles { path } | Self::Search { path, .. } => {
                *path = path.as_deref().map(change);
            }
            Self::MoveFile { from, to } => (*from, *to) = (change(from), change(to)),
            Self::RunCommand { .. } | Self::UpdatePlan { .. } | Self::Finish { .. } => {}
        }
        self
    }

    /// Whether the call only reads.
    pub fn is_read_only(&self) -> bool {
        matches!(
            self,
            Self::ReadFile { .. } | Self::ListFiles { .. } | Self::Search { .. }
        )
    }

    /// Whether it runs a command, which may change any file.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::RunCommand { .. })
    }

    /// The file that it edits or writes, for counting failed edits.
    pub fn edits(&self) -> Option<&str> {
        match self {
            Self::EditFile { path, .. } | Self::WriteFile { path, .. } => Some(path),
            _ => None,
        }
    }

    /// The subject of the call for people: a path, a command.
    pub fn about(&self) -> String {
        match self {
            Self::ReadFile { path, .. }
            | Self::EditFile { path, .. }
            | Self::WriteFile { path, .. }
            | Self::DeleteFile { path } => path.clone(),
            Self::ListFiles { path } => path.clone().unwrap_or_else(|| ".".into()),
            Self::Search { pattern, path } => match path {
                Some(path) => format!("{pattern} in {path}"),
                None => pattern.clone(),
            },
            Self::MoveFile { from, to } => format!("{from} to {to}"),
            Self::RunCommand { command, .. } => command.clone(),
            Self::UpdatePlan { .. } | Self::Finish { .. } => String::new(),
        }
    }

    /// The tool's name.
    pub fn name(&self) -> &'static str {
        self.into()
    }
}

/// A whole number, also as text or as `12.0`, because models are imprecise about number formats.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let whole = |number: f64| (number >= 0.0 && number.fract() == 0.0).then_some(number as u64);
    let read = match Value::deserialize(from)? {
        Value::Null => return Ok(None),
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) if text.trim().is_empty() => return Ok(None),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let wrong = || serde::de::Error::custom("a line number or a count must be a whole number");
    read.map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests;
