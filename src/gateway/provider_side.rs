//! The provider of a model as a way around the network limit: it can fetch addresses and run tools for an agent.

use super::allow::AllowList;
use crate::domain::text::{begins_with_word, has_word};
use hyper::Uri;
use hyper::body::Bytes;
use serde_json::Value;

/// The beginnings of the types of tools that the agent runs itself. Those of a type that is not here, such as a
/// search of the web, run at the provider.
const RUN_BY_AGENTS: &str = "function custom bash_ text_editor_ memory_ local_shell apply_patch";

/// The keys in tools of Google's API that stand for functions of the agent.
const FUNCTIONS: [&str; 2] = ["functionDeclarations", "function_declarations"];

/// The keys of what the agent has done and of descriptions of its tools: no provider fetches an address in them.
const ONLY_TEXT: &str = "args input_schema metadata parameters parametersJsonSchema response text";

/// A request without the tools that the provider runs.
///
/// # Errors
/// Why it is refused: it names an address for the provider that the network limit does not allow, or nobody can tell.
pub(super) fn confined(body: &[u8], allow: &AllowList) -> Result<Bytes, String> {
    let read = serde_json::from_slice::<Value>(body);
    let mut request = read
        .map_err(|error| format!("the network is limited, and the request is not JSON: {error}"))?;
    if let Some(tools) = request.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain_mut(keep_run_by_agent);
        if tools.is_empty()
            && let Some(request) = request.as_object_mut()
        {
            request.remove("tools");
        }
    }
    if let Some(address) = address_in(&request, allow) {
        return Err(format!(
            "the provider may not fetch {address}: the setting `network` does not allow its host"
        ));
    }
    let body = serde_json::to_vec(&request);
    body.map(Bytes::from).map_err(|error| error.to_string())
}

/// Removes the parts of a tool that run at the provider. Returns whether anything is left.
fn keep_run_by_agent(tool: &mut Value) -> bool {
    let Some(fields) = tool.as_object_mut() else {
        return false;
    };
    match fields.get("type").and_then(Value::as_str) {
        Some(kind) => begins_with_word(RUN_BY_AGENTS, kind),
        None if fields.contains_key("name") => true,
        None => {
            fields.retain(|key, _| FUNCTIONS.contains(&key.as_str()));
            !fields.is_empty()
        }
    }
}

/// The first address that a provider would fetch and that is not allowed.
fn address_in<'v>(value: &'v Value, allow: &AllowList) -> Option<&'v str> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| address_in(item, allow)),
        Value::Object(fields) => {
            let is_call = fields.get("type").is_some_and(|kind| kind == "tool_use");
            fields.iter().find_map(|(key, value)| match value {
                _ if has_word(ONLY_TEXT, key) || (is_call && key == "input") => None,
                Value::String(text) => {
                    Some(text.as_str()).filter(|_| is_address(key) && !is_allowed(text, allow))
                }
                value => address_in(value, allow),
            })
        }
        _ => None,
    }
}

/// Whether the key of a field says that its value is an address.
fn is_address(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.contains("url") || key.contains("uri")
}

/// Whether a text is the contents of a file itself, or an address of an allowed host.
fn is_allowed(text: &str, allow: &AllowList) -> bool {
    let uri = text.trim().parse::<Uri>().ok();
    let host = uri.as_ref().and_then(Uri::host);
    text.starts_with("data:") || host.is_some_and(|host| allow.admits(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(request: &Value, hosts: &[&str]) -> Result<Value, String> {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let body = confined(
            &serde_json::to_vec(request).unwrap(),
            &AllowList::of(&hosts),
        )?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn tools_of_the_provider_are_left_out_and_those_of_the_agent_stay() {
        let own = json!([
            {"type": "function", "name": "shell", "parameters": {"url": "https://a.example"}},
            {"type": "custom", "name": "apply_patch"},
            {"type": "bash_20250124", "name": "bash"},
            {"name": "Read", "input_schema": {"uri": "https://a.example"}},
            {"functionDeclarations": [{"name": "run"}]},
        ]);
        let mut tools = own.as_array().unwrap().clone();
        tools.extend([
            json!({"type": "web_search"}),
            json!({"type": "web_fetch_20260209", "name": "web_fetch"}),
            json!({"type": "mcp", "server_label": "x"}),
            json!({"type": "code_interpreter"}),
            json!({"type": "something_new"}),
            json!({"googleSearch": {}}),
            json!({"urlContext": {}, "codeExecution": {}}),
            json!("web_search"),
        ]);
        assert_eq!(
            sent(&json!({"tools": tools}), &[]),
            Ok(json!({"tools": own}))
        );
        assert_eq!(
            sent(&json!({"tools": [{"googleSearch": {}}]}), &[]),
            Ok(json!({}))
        );
    }

    #[test]
    fn an_address_for_the_provider_needs_an_allowed_host() {
        let address = "https://evil.example/?secret";
        for request in [
            json!({"messages": [{"content": [{"type": "image_url", "image_url": {"url": address}}]}]}),
            json!({"input": [{"content": [{"type": "input_image", "image_url": address}]}]}),
            json!({"input": [{"content": [{"type": "input_file", "file_url": address}]}]}),
            json!({"messages": [{"content": [{"type": "document", "source": {"type": "url", "url": address}}]}]}),
            json!({"contents": [{"parts": [{"fileData": {"fileUri": address}}]}]}),
            json!({"mcp_servers": [{"type": "url", "url": address}]}),
            json!({"contents": [{"parts": [{"fileData": {"fileUri": "gs://bucket/file"}}]}]}),
        ] {
            assert!(sent(&request, &["good.example"]).is_err(), "{request}");
        }
        let allowed = json!({"image_url": "https://good.example/a.png"});
        assert_eq!(sent(&allowed, &["good.example"]), Ok(allowed.clone()));
        assert!(confined(b"{", &AllowList::of(&[])).is_err());
    }

    #[test]
    fn words_calls_and_pictures_in_the_request_pass() {
        for request in [
            json!({"messages": [{"role": "user", "content": "see https://a.example"}]}),
            json!({"messages": [{"content": [{"type": "text", "text": "url: https://a.example"}]}]}),
            json!({"messages": [{"content": [{"type": "tool_use", "input": {"url": "https://a.example"}}]}]}),
            json!({"contents": [{"parts": [{"functionCall": {"args": {"url": "https://a.example"}}}]}]}),
            json!({"input": [{"image_url": "data:image/png;base64,AAAA"}]}),
        ] {
            assert_eq!(sent(&request, &[]), Ok(request.clone()));
        }
    }
}
