//! The tools of the built-in agent: their descriptions for the model, and its calls as values.

use crate::plan_text::ItemState;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// How the names of the tools of MCP servers begin: `mcp__SERVER__TOOL`, as other agents name them.
pub const SERVED: &str = "mcp__";

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub about: String,
    /// The JSON schema of its arguments.
    pub schema: Value,
}

impl Tool {
    /// The tool's own name of an argument that a model may know from another agent's.
    fn own(&self, name: String) -> String {
        let properties = &self.schema["properties"];
        let mut known = ALIASES.lines().map(str::split_whitespace);
        let own = known.find_map(|mut names| {
            let own = names.next().filter(|own| !properties[own].is_null())?;
            names.any(|alias| alias == name).then_some(own)
        });
        match own {
            Some(own) if properties[&name].is_null() => own.to_owned(),
            _ => name,
        }
    }
}

/// The agent's own tools, in the order in which the model sees them.
pub fn all<'a>() -> impl Iterator<Item = &'a Tool> {
    TOOLS.iter()
}

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let requests = SchemaGenerator::default().into_root_schema_for::<ToolRequest>();
    let variants = requests.get("oneOf").and_then(Value::as_array);
    variants.into_iter().flatten().map(declared).collect()
});

/// The tool of one variant of [`ToolRequest`]. Only what every provider understands is declared of its arguments.
fn declared(variant: &Value) -> Tool {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let mut properties = Map::new();
    let mut required = Vec::new();
    let arguments = variant["properties"]["arguments"]["properties"].as_object();
    for (name, argument) in arguments.into_iter().flatten() {
        // A type that also allows `null` is that of an argument that can be left out.
        let kind = match &argument["type"] {
            Value::Array(kinds) => kinds.first().cloned().unwrap_or_default(),
            kind => {
                required.push(name);
                kind.clone()
            }
        };
        let mut property = json!({"type": kind, "description": text(&argument["description"])});
        if let Some(items) = argument.get("items") {
            property["items"] = items.clone();
        }
        properties.insert(name.clone(), property);
    }
    Tool {
        name: text(&variant["properties"]["tool"]["const"]),
        about: text(&variant["description"]),
        schema: json!({"type": "object", "properties": properties, "required": required}),
    }
}

/// The schema of the items of a plan.
fn plan_items(_: &mut SchemaGenerator) -> Schema {
    let states = [
        "pending",
        "in_progress",
        "done",
        "blocked",
        "superseded",
        "already_satisfied",
    ];
    let text = json!({"type": "string"});
    let state = json!({"type": "string", "enum": states});
    let properties = json!({"text": text, "state": state});
    let required = ["text", "state"];
    let item = json!({"type": "object", "properties": properties, "required": required});
    json_schema!({"type": "array", "items": item})
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

/// The names of arguments in other agents' tools, which models have seen more often, each line after the own name.
const ALIASES: &str = "
    path file_path filePath filename file dir directory
    start start_line
    end end_line
    pattern query regex
    search old_string oldString old_str old_text
    replace new_string newString new_str new_text
    content contents file_text text
    command cmd
    summary message result";

/// A call that can be carried out. The model reads the comments on the variants and on their fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "tool", content = "arguments", rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ToolRequest {
    /// Reads a file of the repository, with line numbers.
    ReadFile {
        /// path from the root of the repository
        path: String,
        /// first line, from 1
        #[serde(default, deserialize_with = "number")]
        start: Option<u64>,
        /// last line
        #[serde(default, deserialize_with = "number")]
        end: Option<u64>,
    },
    /// Lists the files of a directory and below, without ignored ones.
    ListFiles {
        /// the directory; the root if left out
        #[serde(default)]
        path: Option<String>,
    },
    /// Searches the files for a regular expression, without ignored ones.
    Search {
        /// the regular expression
        pattern: String,
        /// the file or directory to search
        #[serde(default)]
        path: Option<String>,
    },
    /// Replaces text in a file. The text searched for must occur exactly once; copy it from the file as it is, without
    /// line numbers.
    EditFile {
        /// path from the root of the repository
        path: String,
        /// the text to be replaced
        search: String,
        /// the text to put in its place
        replace: String,
    },
    /// Writes a whole file, new or in place of the old one.
    WriteFile {
        /// path from the root of the repository
        path: String,
        /// the whole content
        content: String,
    },
    /// Deletes a file.
    DeleteFile {
        /// path from the root of the repository
        path: String,
    },
    /// Moves or renames a file.
    MoveFile {
        /// where it is
        from: String,
        /// where it shall be
        to: String,
    },
    /// Runs a shell command in the root of the repository and shows its output.
    RunCommand {
        /// the command
        command: String,
        /// after how long it is ended
        #[serde(default, deserialize_with = "number")]
        timeout_seconds: Option<u64>,
    },
    /// Registers the plan, or says what became of its items. An item begins with the files it is about:
    /// `src/a.rs, src/b.rs: add the parser`.
    UpdatePlan {
        /// the items that are new or have changed
        #[schemars(schema_with = "plan_items")]
        items: Vec<PlanItem>,
        /// whether this is a whole new plan
        #[serde(default)]
        #[schemars(with = "Option<bool>")]
        replace: bool,
    },
    /// Ends the work. Call it when every item is done.
    Finish {
        /// the final message, with the suggested commit message
        #[serde(default)]
        summary: String,
    },
    /// A tool of an MCP server, which is not one of the agent's own.
    #[serde(skip_deserializing)]
    Served {
        /// its name for the model
        name: String,
        /// its arguments, in JSON
        arguments: String,
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
        if call.name.starts_with(SERVED) {
            return Ok(Self::Served {
                name: call.name.clone(),
                arguments: arguments.to_string(),
            });
        }
        let Some(tool) = all().find(|tool| tool.name == call.name) else {
            let names: Vec<&str> = all().map(|tool| tool.name.as_str()).collect();
            return Err(format!(
                "there is no tool `{}`; the tools are {}",
                call.name,
                names.join(", ")
            ));
        };
        let Value::Object(arguments) = arguments else {
            return Err("the arguments are not a JSON object".into());
        };
        let arguments = arguments.into_iter();
        let arguments: Map<String, Value> = arguments
            .map(|(name, value)| (tool.own(name), value))
            .collect();
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
            Self::RunCommand { .. }
            | Self::Served { .. }
            | Self::UpdatePlan { .. }
            | Self::Finish { .. } => {}
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

    /// Whether it runs a program, which may change any file.
    pub fn is_command(&self) -> bool {
        matches!(self, Self::RunCommand { .. } | Self::Served { .. })
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
            Self::Served { arguments, .. } => arguments.clone(),
            Self::UpdatePlan { .. } | Self::Finish { .. } => String::new(),
        }
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Served { name, .. } => name,
            own => own.into(),
        }
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
