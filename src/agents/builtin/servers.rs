//! The tools of MCP servers that the built-in agent has in a turn.

use super::bounded;
use crate::mcp::{Connection, shown};
use crate::process::HeadTail;
use futures_util::future::join_all;
use serde_json::Value;
use sprag_agent::host::Outcome;
use sprag_agent::tool::{SERVED, Tool};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest name of a tool that every provider accepts.
const MAX_NAME: usize = 64;

/// The open sessions with the servers of a turn.
#[derive(Default)]
pub struct Servers<'a> {
    /// The tools as the model sees them.
    pub tools: Vec<Tool>,
    /// The server of each tool, and the tool's name there.
    places: BTreeMap<String, (&'a Connection, String)>,
}

impl<'a> Servers<'a> {
    /// Opens the sessions. `warn` gets what a person must know of servers that cannot be used.
    pub async fn open(connections: &'a [Connection], mut warn: impl FnMut(String)) -> Self {
        let mut servers = Self::default();
        let lists = join_all(connections.iter().map(Connection::tools)).await;
        for (connection, tools) in connections.iter().zip(lists) {
            match tools {
                Ok(tools) => tools
                    .iter()
                    .for_each(|tool| servers.declare(connection, tool)),
                Err(why) => warn(not_used(&connection.name, &why)),
            }
        }
        servers
    }

    /// Declares a tool, unless another one has its name.
    fn declare(&mut self, connection: &'a Connection, tool: &Value) {
        let Some(there) = tool["name"].as_str() else {
            return;
        };
        let whole = format!("{SERVED}{}__{there}", connection.name);
        let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let allowed = whole.chars().map(|c| if may_be(c) { c } else { '_' });
        let name: String = allowed.take(MAX_NAME).collect();
        if self.places.contains_key(&name) {
            return;
        }
        self.tools.push(Tool {
            name: name.clone(),
            about: tool["description"].as_str().unwrap_or(there).to_owned(),
            schema: tool["inputSchema"].clone(),
        });
        self.places.insert(name, (connection, there.to_owned()));
    }

    /// Calls a tool. The result is for the model.
    pub async fn call(&self, name: &str, arguments: &str, limit: Duration) -> Outcome {
        let Some((connection, tool)) = self.places.get(name) else {
            let names: Vec<&str> = self.places.keys().map(String::as_str).collect();
            let names = names.join(", ");
            return Err(format!(
                "no server has a tool `{name}`; the tools are {names}"
            ));
        };
        let arguments = serde_json::from_str(arguments).unwrap_or_default();
        let result = connection.call(tool, &arguments, limit).await?;
        let text = text(&result);
        if result["isError"] == true {
            Err(text)
        } else {
            Ok(text)
        }
    }
}

/// The warning about a server whose tools the agent does not get.
pub fn not_used(server: &str, why: &str) -> String {
    format!(
        "the agent works without the MCP server {server}: {}",
        shown(why)
    )
}

/// The text of a tool's result, within bounds.
fn text(result: &Value) -> String {
    let mut kept = HeadTail::new(super::OUTPUT_HEAD, super::OUTPUT_TAIL);
    for part in result["content"].as_array().into_iter().flatten() {
        let text = part["text"].as_str().or(part["resource"]["text"].as_str());
        let kind = part["type"].as_str().unwrap_or("part");
        let left_out = || format!("[{kind} left out]");
        let text = text.map_or_else(left_out, str::to_owned);
        kept.push(format!("{text}\n").as_bytes());
    }
    let output = bounded(kept);
    if output.is_empty() {
        return result["structuredContent"].to_string();
    }
    output
}
