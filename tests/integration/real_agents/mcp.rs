//! MCP servers that the configuration declares, with a real server and the real agents.

use super::{Agent, Claude, Codex, Gemini, GeminiAcp, Opencode, OpencodeAcp, Qwen, Small, text};
use crate::support::mcp;
use crate::support::model_api::{Recorded, Step};
use serde_json::json;

const SERVER: &str = include_str!("../../fixtures/mcp-server.py");
const CONFIG: &str =
    "mcp:\n  colours: { command: python3, args: [colours.py], env: [COLOUR_KEY] }\n";

/// The requests of an agent that takes these steps, in a project that declares the server.
fn requests(agent: Agent, steps: impl IntoIterator<Item = Step>) -> Option<Vec<Recorded>> {
    requests_with(agent, steps, CONFIG)
}

fn requests_with(
    agent: Agent,
    steps: impl IntoIterator<Item = Step>,
    config: &str,
) -> Option<Vec<Recorded>> {
    let mut small = Small::new(agent, steps)?;
    small.project.write("colours.py", SERVER);
    small.project.write(".sprag/config.yaml", config);
    small.project.commit_all("server");
    small.project.env("COLOUR_KEY", "of-the-server-0001");
    small.project.env("COLOUR_AUTH", mcp::KEY);
    let run = match agent {
        OpencodeAcp | GeminiAcp => {
            let mut plan = agent.settings();
            plan["tasks"] = json!([{ "id": "fix", "title": "Fix a.txt" }]);
            plan["verify"] = json!("grep -q fixed a.txt");
            small.project.write("plan.yaml", &plan.to_string());
            small.project.commit_all("plan");
            small.run(&[])
        }
        _ => small.run(&[]),
    };
    run.expect(0);
    Some(small.api.model_requests())
}

fn fixes() -> [Step; 2] {
    [
        Step::Shell("echo fixed > a.txt".into()),
        text("SUGGESTED_COMMIT_MESSAGE: Fix it"),
    ]
}

/// The agent's model calls the tool, and its answer comes back with what the named variable holds.
fn calls_the_tool(agent: Agent) {
    let call = Step::Calls("I ask.".into(), vec![("mcp__colours__colour", json!({}))]);
    let Some(requests) = requests(agent, [call].into_iter().chain(fixes())) else {
        return;
    };
    let second = requests[1].body.to_string();
    assert!(second.contains("azure of-the-server-0001"), "{second}");
}

fn offers_the_tool(agent: Agent) {
    if let Some(requests) = requests(agent, fixes()) {
        assert_offered(&requests);
    }
}

/// The requests with a server that is reached by HTTP and wants a header.
fn requests_with_address(agent: Agent) -> Option<Vec<Recorded>> {
    let server = mcp::start(true);
    let config = format!(
        "mcp:\n  colours: {{ url: '{}/mcp', headers: {{ Authorization: COLOUR_AUTH }} }}\n",
        server.url()
    );
    requests_with(agent, fixes(), &config)
}

fn offers_the_tool_of_an_address(agent: Agent) {
    if let Some(requests) = requests_with_address(agent) {
        assert_offered(&requests);
    }
}

fn assert_offered(requests: &[Recorded]) {
    let is_offered = |request: &Recorded| request.body.to_string().contains("Says the colour");
    assert!(requests.iter().any(is_offered), "{}", requests[0].body);
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn codex_is_given_a_server() {
    // Its model searches for the tools of a server by the name of their namespace.
    let Some(requests) = requests(Codex, fixes()) else {
        return;
    };
    let first = requests[0].body.to_string();
    assert!(first.contains("mcp__colours"), "{first}");
}

#[test]
fn claude_calls_a_tool_of_a_server() {
    calls_the_tool(Claude);
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn gemini_is_given_a_server() {
    offers_the_tool(Gemini);
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn opencode_is_given_a_server() {
    offers_the_tool(Opencode);
}

#[test]
fn qwen_is_given_a_server() {
    offers_the_tool(Qwen);
}

#[test]
fn an_agent_of_the_client_protocol_is_given_a_server() {
    offers_the_tool(OpencodeAcp);
}

#[test]
fn codex_is_given_a_server_at_an_address() {
    if let Some(requests) = requests_with_address(Codex) {
        let first = requests[0].body.to_string();
        assert!(first.contains("mcp__colours"), "{first}");
    }
}

#[test]
fn claude_is_given_a_server_at_an_address() {
    offers_the_tool_of_an_address(Claude);
}

#[test]
fn gemini_is_given_a_server_at_an_address() {
    offers_the_tool_of_an_address(Gemini);
}

#[test]
fn opencode_is_given_a_server_at_an_address() {
    offers_the_tool_of_an_address(Opencode);
}

#[test]
fn qwen_is_given_a_server_at_an_address() {
    offers_the_tool_of_an_address(Qwen);
}

#[test]
fn an_agent_of_the_client_protocol_is_given_a_server_at_an_address() {
    offers_the_tool_of_an_address(OpencodeAcp);
}
