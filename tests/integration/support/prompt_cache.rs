//! What a provider can take from its cache of a request: what it has in common with an earlier one, from its beginning on.

use super::model_api::Recorded;
use serde_json::Value;

/// The part of the earlier request that is a byte prefix of the later one: 1 is all of it.
pub fn share(earlier: &Recorded, later: &Recorded) -> f64 {
    let (earlier, later) = (prompt(earlier), prompt(later));
    let same = earlier
        .bytes()
        .zip(later.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    same as f64 / earlier.len() as f64
}

/// Says what was counted, for a person who asks the test to print it.
#[expect(clippy::print_stdout, reason = "PERFORMANCE.md says how to see it")]
pub fn print_share(what: &str, share: f64) {
    println!("{what}: {:.2} % of the request before", share * 100.0);
}

/// Tools and system prompt of a request, which stand in front of every message.
pub fn front(request: &Recorded) -> String {
    let mut text = String::new();
    for field in [
        "tools",
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
    ] {
        add(&mut text, &request.body[field]);
    }
    // In chat completions the system prompt is the first message.
    let first = &request.body["messages"][0];
    if first["role"] == "system" {
        add(&mut text, first);
    }
    text
}

/// All that a request tells the model, in the order in which providers read it. What ends a text is left out, since a text
/// that goes on is the same so far; so are marks for the cache, which are not told to the model.
fn prompt(request: &Recorded) -> String {
    let mut text = front(request);
    for field in ["messages", "input", "contents"] {
        let messages = request.body[field].as_array().into_iter().flatten();
        for message in messages.filter(|message| message["role"] != "system") {
            add(&mut text, message);
        }
    }
    text
}

fn add(text: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::String(string) => {
            text.push('\n');
            text.push_str(string);
        }
        Value::Array(values) => values.iter().for_each(|value| add(text, value)),
        Value::Object(fields) => {
            // The role first: the results of calls and a text after them are one message of one role.
            let role = fields
                .get("role")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if !text.ends_with(role) {
                text.push_str(role);
            }
            for (name, value) in fields.iter().filter(|(name, _)| *name != "cache_control") {
                if name != "role" {
                    add(text, value);
                }
            }
        }
        other => text.push_str(&other.to_string()),
    }
}
