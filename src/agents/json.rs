//! Lenient reading of an agent's JSON: a field of another type than expected is absent, so that
//! one surprising field does not lose the rest of its line. What it makes of a line is bounded,
//! however long the line is and whatever it is made of.

mod bounded;

use serde_json::Value;

/// The longest line that is read although it is not UTF-8: replacing what is not can make it three
/// times as long.
const LONGEST_LOSSY: usize = 2 << 20;

/// The JSON object on a line of bytes, if that is what it is.
pub(super) fn object(line: &[u8]) -> Option<Value> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let value = match std::str::from_utf8(line) {
        Ok(text) => bounded::read(text)?,
        Err(_) if line.len() > LONGEST_LOSSY => return None,
        Err(_) => bounded::read(&String::from_utf8_lossy(line))?,
    };
    Value::is_object(&value).then_some(value)
}

/// The string at a JSON pointer.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The string at a JSON pointer, empty if there is none.
pub(super) fn string(value: &Value, pointer: &str) -> String {
    text(value, pointer).unwrap_or_default().to_owned()
}

/// The array at a JSON pointer, empty if there is none.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The count at a JSON pointer.
pub(super) fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}

/// The whole number at a JSON pointer, where it is an exit code.
pub(super) fn exit_code(value: &Value, pointer: &str) -> Option<i32> {
    value.pointer(pointer)?.as_i64()?.try_into().ok()
}

/// The HTTP status at a JSON pointer.
pub(super) fn status(value: &Value, pointer: &str) -> Option<u16> {
    count(value, pointer)?.try_into().ok()
}

/// The truth at a JSON pointer, false if there is none.
pub(super) fn flag(value: &Value, pointer: &str) -> bool {
    value
        .pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}
