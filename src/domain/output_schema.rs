//! The JSON value that the last task of a run must return, and the JSON Schema that it must fit.

use crate::text::{fenced_blocks, one_line};
use boon::{CompileError, Compiler, SchemaIndex, Schemas, UrlLoader, ValidationError};
use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The maximum size of a value in bytes, so that it fits into a job's output.
pub const MAX_BYTES: usize = 100_000;

/// The maximum number of faults of a value that are reported.
const FAULTS: usize = 5;
const MAX_FAULT: usize = 300;

/// The address of the schema while it is compiled. Nothing is fetched from it.
const ADDRESS: &str = "https://sprag.invalid/output-schema.json";

/// A JSON Schema that validates values.
#[derive(Clone)]
pub struct OutputSchema {
    schema: Value,
    validator: Arc<Validator>,
}

/// A compiled schema.
struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
}

/// Refuses other documents than the schema itself.
struct NoOther;

impl UrlLoader for NoOther {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("{url} is another document, and nothing is fetched").into())
    }
}

/// The value in a final message, or in one line why there is none that fits the schema.
pub type StructuredOutput = Result<Value, String>;

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutputSchema").field(&self.schema).finish()
    }
}

impl OutputSchema {
    /// Reads a JSON Schema.
    ///
    /// # Errors
    /// When the text is not JSON, or the JSON is not a schema: the position and the problem. A schema that
    /// refers to another document is rejected, because nothing is fetched.
    pub fn parse(text: &str) -> Result<Self, String> {
        let schema: Value =
            serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        if !schema.is_object() {
            return Err("it must be a JSON object, such as {\"type\": \"object\"}".to_owned());
        }
        let validator = compiled(&schema)?;
        Ok(Self {
            schema,
            validator: Arc::new(validator),
        })
    }

    /// The schema's text for an agent.
    pub fn text(&self) -> String {
        format!("{:#}", self.schema)
    }

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Reads the value in a final message: the last fenced block marked as JSON, otherwise the whole message.
    pub fn read(&self, message: &str) -> StructuredOutput {
        let block = last_json_block(message);
        let text = block.as_deref().unwrap_or(message).trim();
        if text.is_empty() {
            return Err("there is no final message".to_owned());
        }
        match serde_json::from_str(text) {
            Ok(value) => self.judge(value),
            Err(error) if block.is_some() => Err(format!(
                "the last block that is marked as JSON is not JSON: {error}"
            )),
            Err(_) => Err("the final message has no block that is marked as JSON".to_owned()),
        }
    }

    /// Validates a value against the schema.
    pub fn judge(&self, value: Value) -> StructuredOutput {
        let size = value.to_string().len();
        if size > MAX_BYTES {
            return Err(format!(
                "the value has {size} bytes, and at most {MAX_BYTES} are allowed"
            ));
        }
        let Validator { schemas, index } = &*self.validator;
        let Err(error) = schemas.validate(&value, *index) else {
            return Ok(value);
        };
        let mut shown = faults(&error);
        if shown.len() > FAULTS {
            shown.truncate(FAULTS);
            shown.push("and more".to_owned());
        }
        Err(shown.join("; "))
    }

    /// Whether every object in the schema requires all of its properties and allows no others: APIs that
    /// constrain a model to a schema accept only such schemas.
    pub fn is_strict(&self) -> bool {
        is_strict(&self.schema)
    }
}

fn compiled(schema: &Value) -> Result<Validator, String> {
    let mut compiler = Compiler::new();
    compiler.use_loader(Box::new(NoOther));
    let mut schemas = Schemas::new();
    let added = compiler.add_resource(ADDRESS, schema.clone());
    added.map_err(refusal)?;
    let index = compiler.compile(ADDRESS, &mut schemas).map_err(refusal)?;
    Ok(Validator { schemas, index })
}

fn refusal(error: CompileError) -> String {
    match error {
        CompileError::ValidationError { src, .. } => {
            format!("it is not a JSON Schema: {}", faults(&src).join("; "))
        }
        error => {
            let why = format!("{error:#}").replace(ADDRESS, "the schema");
            format!("it cannot be used: {}", one_line(&why, MAX_FAULT))
        }
    }
}

/// The innermost faults with their positions in the document, at most one more than are reported.
fn faults(error: &ValidationError<'_, '_>) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![error];
    while let Some(error) = open.pop() {
        open.extend(error.causes.iter().rev());
        if !error.causes.is_empty() {
            continue;
        }
        let place = error.instance_location.to_string();
        let place = if place.is_empty() {
            "at its top".to_owned()
        } else {
            format!("at {place}")
        };
        found.push(one_line(&format!("{place}: {}", error.kind), MAX_FAULT));
        if found.len() > FAULTS {
            break;
        }
    }
    found
}

fn is_strict(schema: &Value) -> bool {
    let Value::Object(keys) = schema else {
        return true;
    };
    let properties = keys.get("properties").and_then(Value::as_object);
    let is_object = properties.is_some() || keys.get("type").is_some_and(|it| it == "object");
    let required = keys.get("required").and_then(Value::as_array);
    let is_required = |name: &String| {
        required.is_some_and(|required| required.iter().any(|it| it == name.as_str()))
    };
    let is_closed = || {
        keys.get("additionalProperties") == Some(&Value::Bool(false))
            && properties.is_none_or(|all| all.keys().all(is_required))
    };
    (!is_object || is_closed())
        && keys.values().all(|value| match value {
            Value::Array(items) => items.iter().all(is_strict),
            Value::Object(_) => is_strict(value),
            _ => true,
        })
        && properties.is_none_or(|all| all.values().all(is_strict))
}

/// The last block that is marked as JSON.
fn last_json_block(message: &str) -> Option<String> {
    let mut blocks = fenced_blocks(message).into_iter();
    let json = blocks.rfind(|(language, _)| language == "json");
    json.map(|(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> OutputSchema {
        let text = r#"{"type": "object", "properties": {"ok": {"type": "boolean"}, "n": {"type": "integer"}}, "required": ["ok"]}"#;
        OutputSchema::parse(text).unwrap()
    }

    fn why(message: &str) -> String {
        match schema().read(message) {
            Err(why) => why,
            Ok(value) => panic!("{value} fits"),
        }
    }

    #[test]
    fn the_last_block_that_is_marked_as_json_counts() {
        let message = "Done.\n\n```json\n{\"ok\": false}\n```\n\n```sh\ntrue\n```\n\n```JSON title\n{\"ok\": true, \"n\": 2}\n```\n\nSUGGESTED_COMMIT_MESSAGE: Do it\n";
        let value = json!({"ok": true, "n": 2});
        assert_eq!(schema().read(message), Ok(value));
    }

    #[test]
    fn a_message_that_is_nothing_but_json_counts() {
        let value = json!({"ok": true});
        let read = schema().read(" {\"ok\": true}\n");
        assert_eq!(read.as_ref(), Ok(&value));
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        assert!(why("Done.").contains("no block that is marked as JSON"));
        assert!(why("").contains("no final message"));
        assert!(why("```json\n{\"ok\": tru}\n```").contains("not JSON"));
        let both = why("```json\n{\"ok\": 1, \"n\": \"x\"}\n```");
        assert!(
            both.contains("at /ok: ") && both.contains("at /n: "),
            "{both}"
        );
        assert!(why("{}").contains("at its top: "), "{}", why("{}"));
        let large = format!("{{\"ok\": true, \"x\": \"{}\"}}", "x".repeat(MAX_BYTES));
        assert!(why(&large).contains("bytes"));
    }

    #[test]
    fn what_is_no_schema_is_refused_with_its_place() {
        let refused = |text: &str| OutputSchema::parse(text).unwrap_err();
        assert!(refused("{\n  \"type\": }").contains("line 2"));
        assert!(refused("[]").contains("JSON object"));
        let wrong = refused(r#"{"properties": {"a": {"type": "strin"}}}"#);
        assert!(wrong.contains("at /properties/a/type: "), "{wrong}");
        let elsewhere = refused(r#"{"$ref": "https://example.invalid/schema.json"}"#);
        assert!(elsewhere.contains("example.invalid"), "{elsewhere}");
        assert!(elsewhere.contains("nothing is fetched"), "{elsewhere}");
        let around = refused(r#"{"properties": {"a": {"pattern": "^(?=x)y"}}}"#);
        assert!(around.contains("at /properties/a/pattern: "), "{around}");
    }

    #[test]
    fn a_strict_schema_names_every_property_and_allows_no_other() {
        let strict = |text: &str| OutputSchema::parse(text).unwrap().is_strict();
        assert!(!schema().is_strict());
        let inner = r#"{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}"#;
        assert!(strict(inner));
        assert!(strict(&format!(r#"{{"type": "array", "items": {inner}}}"#)));
        assert!(!strict(r#"{"type": "array", "items": {"type": "object"}}"#));
        let open = r#"{"type": "object", "properties": {"a": {"type": "object"}}, "required": ["a"], "additionalProperties": false}"#;
        assert!(!strict(open));
    }
}
