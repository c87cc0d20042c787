//! The MCP servers that the configuration declares: `sprag doctor`, and the built-in agent.

use crate::builtin::{broken, calls, finish, played, write_fixed};
use crate::support::project::Project;
use crate::support::{has, mcp};
use serde_json::json;

/// A server that says its key in the name of its tool.
const SERVER: &str = r#"while read -r line; do case "$line" in
*'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}';;
*'"tools/list"'*) echo noise; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"colour"},{"name":"of_'"$COLOUR_API_KEY"'"}]}}';;
*'"tools/call"'*) echo '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'; read -r no; echo "$no" >&2
  echo '{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"azure"},{"type":"image"}]}}';;
esac; done
"#;
const TRY: &[&str] = &["doctor", "--try", "--agent-command", "true"];

#[test]
fn doctor_names_variables_that_are_not_set_and_starts_servers_only_in_a_trial() {
    let config = "mcp:\n  colours: { command: sh, args: [colours.sh], env: [COLOUR_API_KEY] }\n  broken: { command: sh, args: [-c, 'touch started; echo no such colour >&2; exit 3'] }\n";
    let mut project = Project::new(&[(".sprag/config.yaml", config), ("colours.sh", SERVER)]);
    let shown = project.sprag(&["doctor"]).stdout;
    let told = "colours needs COLOUR_API_KEY, which is not set";
    assert!(shown.contains(told), "{shown}");
    assert!(!project.repo().join("started").exists());

    let shown = project.sprag(TRY).expect(1).stdout;
    assert!(shown.contains("COLOUR_API_KEY is not set"), "{shown}");

    project.env("COLOUR_API_KEY", "of-the-server-0001");
    let shown = project.sprag(TRY).expect(1).stdout;
    for told in [
        "colours: `sprag doctor --try` lists its tools",
        "MCP server colours: asked for its tools\n    colour, of_",
        "it ended (code 3): no such colour",
        "fix these first: MCP server broken\n",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    assert!(!shown.contains("of-the-server"), "{shown}");
}

#[test]
fn a_trial_asks_servers_at_an_address_with_their_headers() {
    for streams in [false, true] {
        let server = mcp::start(streams);
        let config = format!(
            "mcp:\n  issues:\n    url: {}/mcp\n    headers: {{ Authorization: ISSUES_KEY }}\n",
            server.url()
        );
        let mut project = Project::new(&[(".sprag/config.yaml", &config)]);
        project.env("ISSUES_KEY", mcp::KEY);
        let shown = project.sprag(TRY).expect(0).stdout;
        assert!(shown.contains("tools\n    colour\n"), "{shown}");

        project.env("ISSUES_KEY", "Bearer of-another-0002");
        let shown = project.sprag(TRY).expect(1).stdout;
        assert!(shown.contains("it answers with HTTP 401"), "{shown}");
        server.shut_down();
        let shown = project.sprag(TRY).expect(1).stdout;
        assert!(shown.contains("failed: "), "{shown}");
        assert!(!shown.contains("of-another"), "{shown}");
    }
}

#[test]
fn the_built_in_agent_calls_the_tools_of_servers() {
    let server = mcp::start(true);
    let config = format!(
        "mcp:\n  colours: {{ command: sh, args: [colours.sh], env: [COLOUR_API_KEY] }}\n  issues:\n    url: {}/mcp\n    headers: {{ Authorization: ISSUES_KEY }}\n  broken: {{ command: 'false' }}\n",
        server.url()
    );
    let mut project = broken();
    project.write(".sprag/config.yaml", &config);
    project.write("colours.sh", SERVER);
    project.commit_all("servers");
    project.env("COLOUR_API_KEY", "blue");
    project.env("ISSUES_KEY", mcp::KEY);
    let (run, requests) = played(
        &mut project,
        vec![
            calls(
                "",
                vec![
                    ("mcp__colours__colour", json!({})),
                    ("mcp__issues__colour", json!({"of": "sky"})),
                    ("mcp__issues__none", json!({})),
                    (
                        "run_command",
                        json!({"command": "echo key:$COLOUR_API_KEY."}),
                    ),
                ],
            ),
            write_fixed(),
            finish(),
        ],
    );
    let run = run.expect(0);
    let declared = requests[0].body["tools"].to_string();
    for tool in [
        "mcp__colours__colour",
        "mcp__colours__of_blue",
        "mcp__issues__colour",
    ] {
        has(&declared, tool);
    }
    let results = requests[1].body["messages"].to_string();
    for result in [
        "azure\\n[image left out]",
        "no server has a tool `mcp__issues__none`",
        "key:.",
    ] {
        has(&results, result);
    }
    has(
        &run.summary["warnings"].to_string(),
        "the agent works without the MCP server broken: it ended (code 1)",
    );
}
