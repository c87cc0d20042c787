//! Messages of JSON-RPC 2.0, which agents and MCP servers speak.

use serde_json::{Value, json};

/// The code of the error that a method is unknown.
const UNKNOWN_METHOD: i64 = -32601;

/// A request, which has an answer.
pub fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A message without an answer.
pub fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// The answer to a request.
pub fn response(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The answer to a request for something that Sprag does not offer.
pub fn refusal(id: &Value, method: &str) -> Value {
    let error = json!({ "code": UNKNOWN_METHOD, "message": format!("there is no {method} here") });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

/// How Sprag introduces itself.
pub fn client_info() -> Value {
    json!({ "name": "sprag", "version": env!("CARGO_PKG_VERSION") })
}
