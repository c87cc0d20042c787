//! Lenient reading of an agent's JSON: a field of an unexpected type counts as absent, so that one such field
//! does not lose the rest of its line. The size of the result is limited, however long the line is and
//! whatever it contains.

mod bounded;

use serde_json::Value;

/// Maximum length of a line that is read although it is not UTF-8: the replacement of invalid bytes can make
/// it three times as long.
const MAX_LOSSY_BYTES: usize = 2 << 20;

/// The JSON object on a line, if there is one.
pub(super) fn object(line: &[u8]) -> Option<Value> {
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let value = match std::str::from_utf8(line) {
        Ok(text) => bounded::read(text)?,
        Err(_) if line.len() > MAX_LOSSY_BYTES => return None,
        Err(_) => bounded::read(&String::from_utf8_lossy(line))?,
    };
    Value::is_object(&value).then_some(value)
}

/// The string at a JSON pointer.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The string at a JSON pointer, or an empty one.
pub(super) fn string(value: &Value, pointer: &str) -> String {
    text(value, pointer).unwrap_or_default().to_owned()
}

/// The array at a JSON pointer, or an empty one.
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

/// The number at a JSON pointer as an exit code.
pub(super) fn exit_code(value: &Value, pointer: &str) -> Option<i32> {
    value.pointer(pointer)?.as_i64()?.try_into().ok()
}

/// The HTTP status at a JSON pointer.
pub(super) fn status(value: &Value, pointer: &str) -> Option<u16> {
    count(value, pointer)?.try_into().ok()
}

/// The boolean at a JSON pointer, or false.
pub(super) fn flag(value: &Value, pointer: &str) -> bool {
    value
        .pointer(pointer)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}
