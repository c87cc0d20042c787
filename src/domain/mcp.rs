//! MCP servers that the configuration declares for every agent.

use crate::pattern::Pattern;
use crate::text::has_word;
use crate::text_error::Fault;
use crate::yaml::{Node, read};
use serde_json::{Value as Json, json};

/// The longest name of a server.
const MAX_NAME: usize = 40;

/// A server. Its secrets are named by the variables that hold them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How agents reach it.
    pub kind: McpKind,
}

/// How agents reach a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpKind {
    /// A program that the agent starts and that speaks on its standard input and output.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// The variables that it gets.
        env: Vec<String>,
    },
    /// A server that is reached by HTTP.
    Url {
        /// Its address.
        url: String,
        /// Headers, each with the variable that holds its value.
        headers: Vec<Header>,
    },
}

/// A header of every request to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Its name.
    pub name: String,
    /// The variable that holds its whole value.
    pub variable: String,
}

impl McpServer {
    /// The variables that the agent passes on to it.
    pub fn variables(&self) -> Vec<&str> {
        match &self.kind {
            McpKind::Command { env, .. } => env.iter().map(String::as_str).collect(),
            McpKind::Url { headers, .. } => {
                headers.iter().map(|header| &*header.variable).collect()
            }
        }
    }
}

/// Variables that are passed on to servers and hold no credential.
const ORDINARY: &str =
    "HOME LANG LC_ALL LOGNAME NODE_ENV NODE_PATH PATH PWD PYTHONPATH SHELL TERM TMPDIR TZ USER";

/// The variables that servers are given as credentials, whatever their names are.
pub fn credentials(servers: &[McpServer]) -> Vec<&str> {
    let all = servers.iter().flat_map(McpServer::variables);
    all.filter(|name| !has_word(ORDINARY, name)).collect()
}

/// Reads `mcp`: a mapping of names to servers.
///
/// # Errors
/// The first invalid part.
pub(crate) fn read_servers(node: &Node) -> Result<Vec<McpServer>, Fault> {
    let expected = "a mapping of names to servers";
    let mut servers = Vec::new();
    for entry in read::entries("mcp", expected, node)? {
        let name = &entry.key;
        let may_be = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(may_be) {
            let message = format!(
                "the name of an MCP server has 1 to {MAX_NAME} letters, digits, `_` and `-`, got `{name}`"
            );
            return Err(Fault::new(entry.key_at, message));
        }
        servers.push(McpServer {
            name: name.clone(),
            kind: server(&format!("mcp.{name}"), &entry.value)?,
        });
    }
    Ok(servers)
}

fn server(key: &str, node: &Node) -> Result<McpKind, Fault> {
    let expected = "a mapping with command, args and env, or with url and headers";
    let entries = read::entries(key, expected, node)?;
    let is_url = node.get("url").is_some();
    let known: &[&'static str] = if is_url {
        &["url", "headers"]
    } else {
        &["command", "args", "env"]
    };
    if let Some(other) = entries.iter().find(|entry| !known.contains(&&*entry.key)) {
        return Err(read::unknown_part(key, other, known));
    }
    let part = |name: &str| format!("{key}.{name}");
    let list = |name: &str| {
        let value = node.get(name);
        value.map_or(Ok(Vec::new()), |value| read::texts(&part(name), value))
    };
    if let Some(url) = node.get("url") {
        let address = read::words(&part("url"), url)?;
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return Err(read::unexpected(&part("url"), "an http or https URL", url));
        }
        let key = part("headers");
        let expected = "a mapping of headers to variables";
        let given = node
            .get("headers")
            .map(|headers| read::entries(&key, expected, headers));
        let mut headers = Vec::new();
        for header in given.transpose()?.unwrap_or_default() {
            let variable = read::words(&key, &header.value)?;
            variable_name(&key, &variable, &header.value)?;
            let name = header.key.clone();
            headers.push(Header { name, variable });
        }
        return Ok(McpKind::Url {
            url: address,
            headers,
        });
    }
    let Some(command) = node.get("command") else {
        return Err(read::unexpected(key, expected, node));
    };
    let env = list("env")?;
    for name in &env {
        variable_name(&part("env"), name, node.get("env").unwrap_or(node))?;
    }
    Ok(McpKind::Command {
        command: read::words(&part("command"), command)?,
        args: list("args")?,
        env,
    })
}

/// Refuses a value in the place of the variable that holds it.
fn variable_name(key: &str, name: &str, node: &Node) -> Result<(), Fault> {
    if VARIABLE.is_match(name) {
        return Ok(());
    }
    let expected = "the name of a variable, never a value";
    Err(Fault::new(node.at, format!("{key} must be {expected}")))
}

/// The schema of `mcp`.
pub(crate) fn schema() -> Json {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let names =
        json!({ "type": "array", "items": { "type": "string", "pattern": VARIABLE.source() } });
    json!({
        "type": "object",
        "propertyNames": { "pattern": format!("^[A-Za-z0-9_-]{{1,{MAX_NAME}}}$") },
        "additionalProperties": { "oneOf": [
            {
                "type": "object",
                "properties": { "command": { "type": "string" }, "args": texts, "env": names },
                "required": ["command"],
                "additionalProperties": false,
            },
            {
                "type": "object",
                "properties": {
                    "url": { "type": "string", "pattern": "^https?://" },
                    "headers": { "type": "object", "additionalProperties": { "type": "string", "pattern": VARIABLE.source() } },
                },
                "required": ["url"],
                "additionalProperties": false,
            },
        ] },
    })
}

static VARIABLE: Pattern = Pattern::new("^[A-Za-z_][A-Za-z0-9_]*$");

#[cfg(test)]
mod tests {
    use super::{Header, McpKind, McpServer};
    use crate::config_file::parse;

    #[test]
    fn servers_are_read_and_name_their_variables() {
        let text = b"mcp:\n  docs: { command: npx, args: [-y, docs], env: [DOCS_TOKEN] }\n  web:\n    url: https://mcp.invalid/mcp\n    headers: { Authorization: WEB_AUTH }\n";
        let servers = parse("c.yaml", text).expect("valid").mcp;
        let expected = McpServer {
            name: "docs".into(),
            kind: McpKind::Command {
                command: "npx".into(),
                args: vec!["-y".into(), "docs".into()],
                env: vec!["DOCS_TOKEN".into()],
            },
        };
        assert_eq!(servers[0], expected);
        let expected = McpKind::Url {
            url: "https://mcp.invalid/mcp".into(),
            headers: vec![Header {
                name: "Authorization".into(),
                variable: "WEB_AUTH".into(),
            }],
        };
        assert_eq!(servers[1].kind, expected);
        assert_eq!(servers[1].variables(), ["WEB_AUTH"]);
        assert_eq!(super::credentials(&servers), ["DOCS_TOKEN", "WEB_AUTH"]);
    }

    #[test]
    fn mistakes_are_errors_that_repeat_no_value() {
        for (text, expected) in [
            ("mcp: [a]", "mcp must be a mapping of names to servers"),
            (
                "mcp: { 'a b': { command: x } }",
                "the name of an MCP server has 1 to 40",
            ),
            (
                "mcp: { a: {} }",
                "mcp.a must be a mapping with command, args and env",
            ),
            (
                "mcp: { a: { command: x, url: 'https://b' } }",
                "mcp.a has no part `command`, only url, headers",
            ),
            (
                "mcp: { a: { url: ftp://b } }",
                "mcp.a.url must be an http or https URL",
            ),
            (
                "mcp: { a: { command: x, env: [KEY=s3cret] } }",
                "mcp.a.env must be the name of a variable, never a value",
            ),
            (
                "mcp: { a: { url: 'https://b', headers: { x: Bearer s3cret } } }",
                "mcp.a.headers must be the name of a variable, never a value",
            ),
        ] {
            let error = parse("c.yaml", text.as_bytes())
                .expect_err(text)
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
