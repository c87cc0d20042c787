//! Parses JSON into a limited number of values of limited size. A value can take several times the memory of
//! its text (`[0,0,0…`), so a limit of the text's length alone would not be enough.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// Maximum number of values of a line. Real lines have some hundreds.
const MAX_VALUES: usize = 50_000;

/// The longest string that is kept completely, in bytes. Of a longer one, this many bytes are kept, half from
/// its start and half from its end.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Parses a text as a value, or returns `None` if it is not JSON. What exceeds the limits is left out.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut json = serde_json::Deserializer::from_str(text);
    let left = Cell::new(MAX_VALUES);
    let value = Bounded { left: &left }.deserialize(&mut json).ok()?;
    json.end().ok()?;
    Some(value)
}

#[derive(Clone, Copy)]
struct Bounded<'a> {
    left: &'a Cell<usize>,
}

impl Bounded<'_> {
    fn is_full(self) -> bool {
        self.left.get() == 0
    }
}

impl<'de> DeserializeSeed<'de> for Bounded<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Value, D::Error> {
        self.left.set(self.left.get().saturating_sub(1));
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Bounded<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(shortened(value)))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while !self.is_full() {
            match list.next_element_seed(self)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Array(values)),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while !self.is_full() {
            match object.next_key::<String>()? {
                Some(name) => {
                    fields.insert(shortened(&name), object.next_value_seed(self)?);
                }
                None => return Ok(Value::Object(fields)),
            }
        }
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Object(fields))
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_TEXT_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_TEXT_BYTES / 2);
    let cut = tail - head;
    format!(
        "{}\n[… {cut} bytes cut …]\n{}",
        &text[..head],
        &text[tail..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_is_within_the_bounds_is_read_as_it_is() {
        let text = r#"{"a":[1,-2,0.5,true,null,"\u00e9"],"b":{"c":"x"},"a":2}"#;
        assert_eq!(read(text), serde_json::from_str(text).ok());
        assert_eq!(read("{} x"), None);
        assert_eq!(read("{\"a\":"), None);
    }

    #[test]
    fn values_beyond_the_bound_are_left_out_and_what_came_before_is_kept() {
        let zeros = "0,".repeat(4 * MAX_VALUES);
        let text = format!(r#"{{"type":"x","list":[{zeros}0],"more":{{"a":1}}}}"#);
        let value = read(&text).unwrap();
        assert_eq!(value["type"], "x");
        let kept = value["list"].as_array().unwrap().len();
        assert_eq!((kept, value.get("more")), (MAX_VALUES - 3, None));
        let broken = format!(r#"{{"list":[{zeros}0}}"#);
        assert_eq!(read(&broken), None);
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let long = format!("FAILED: x\n{}\nlast", "é".repeat(MAX_TEXT_BYTES));
        let value = read(&json!({ "text": long }).to_string()).unwrap();
        let text = value["text"].as_str().unwrap();
        assert!(text.starts_with("FAILED: x\n") && text.ends_with("\nlast"));
        assert!(text.len() <= MAX_TEXT_BYTES + 64, "{}", text.len());
        let cut = long.len() - (text.len() - "\n[…  bytes cut …]\n".len() - 7);
        assert!(
            text.contains(&format!("\n[… {cut} bytes cut …]\n")),
            "{cut}"
        );
    }

    proptest! {
        #[test]
        fn any_text_reads_as_serde_json_reads_it(text in "[\\[\\]{}\",:0-9a-e\\\\ .-]{0,40}") {
            prop_assert_eq!(read(&text), serde_json::from_str(&text).ok());
        }
    }
}
