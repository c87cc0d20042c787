//! MCP servers in the JSON form that several agents share.

use super::turn::TurnRequest;
use crate::domain::mcp::{Header, McpKind, McpServer};
use serde_json::{Value, json};

/// How an agent writes servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Claude Code: `${NAME}` is a variable.
    Claude,
    /// Gemini CLI and its fork: `$NAME` is a variable.
    Gemini,
    /// opencode: `{env:NAME}` is a variable.
    Opencode,
}

impl Form {
    fn variable(self, name: &str) -> String {
        match self {
            Self::Claude => format!("${{{name}}}"),
            Self::Gemini => format!("${name}"),
            Self::Opencode => format!("{{env:{name}}}"),
        }
    }

    fn server(self, server: &McpServer) -> Value {
        match &server.kind {
            McpKind::Command { command, args, env } => {
                let pair = |name: &String| (name.clone(), self.variable(name));
                let env: Value = env.iter().map(pair).collect();
                match self {
                    Self::Claude => json!({ "command": command, "args": args, "env": env }),
                    Self::Gemini => {
                        json!({ "command": command, "args": args, "env": env, "trust": true })
                    }
                    Self::Opencode => {
                        let line: Vec<&String> = std::iter::once(command).chain(args).collect();
                        json!({ "type": "local", "command": line, "environment": env })
                    }
                }
            }
            McpKind::Url { url, headers } => {
                let pair = |it: &Header| (it.name.clone(), self.variable(&it.variable));
                let headers: Value = headers.iter().map(pair).collect();
                match self {
                    Self::Claude => json!({ "type": "http", "url": url, "headers": headers }),
                    Self::Gemini => json!({ "httpUrl": url, "headers": headers, "trust": true }),
                    Self::Opencode => json!({ "type": "remote", "url": url, "headers": headers }),
                }
            }
        }
    }

    /// The servers by their names.
    pub(super) fn servers(self, servers: &[McpServer]) -> Value {
        let named = |server: &McpServer| (server.name.clone(), self.server(server));
        servers.iter().map(named).collect()
    }
}

/// The servers of a session of the Agent Client Protocol, which takes values and not the names of variables. Those that
/// are reached by HTTP are only for an agent that can reach them.
pub(super) fn of_session(request: &TurnRequest<'_>) -> Vec<Value> {
    let pair = |name: &str, variable: &str| {
        let value = request.base_env_value(variable)?.to_str()?;
        Some(json!({ "name": name, "value": value }))
    };
    let one = |server: &McpServer| match &server.kind {
        McpKind::Command { command, args, env } => {
            let env: Vec<Value> = env.iter().filter_map(|name| pair(name, name)).collect();
            json!({ "name": server.name, "command": command, "args": args, "env": env })
        }
        McpKind::Url { url, headers } => {
            let headers = headers.iter();
            let headers: Vec<Value> = headers
                .filter_map(|header| pair(&header.name, &header.variable))
                .collect();
            json!({ "type": "http", "name": server.name, "url": url, "headers": headers })
        }
    };
    request.mcp.iter().map(one).collect()
}
