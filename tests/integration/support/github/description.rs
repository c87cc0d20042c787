//! GitHub's own description of its API: which endpoints there are, and what requests and answers
//! must look like.

use boon::{Compiler, SchemaIndex, Schemas, ValidationError};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

const TEXT: &str = include_str!("../../../github-api/github.json");
const URN: &str = "urn:github-api";

/// The description.
pub struct Description {
    endpoints: Vec<Endpoint>,
    schemas: Value,
    compiled: Schemas,
    /// The compiled form of each schema of an endpoint, by its text.
    indexes: HashMap<String, SchemaIndex>,
}

/// A method of a path.
pub struct Endpoint {
    /// As `GET /repos/{owner}/{repo}`.
    pub name: String,
    segments: Vec<String>,
    parameters: Vec<Parameter>,
    body: Value,
    body_required: bool,
    answers: Map<String, Value>,
}

struct Parameter {
    name: String,
    place: String,
    required: bool,
    schema: Value,
}

/// The parameters of a path or query, decoded.
pub type Parameters = BTreeMap<String, String>;

impl Description {
    /// The description, read once.
    pub fn get() -> &'static Self {
        static READ: OnceLock<Description> = OnceLock::new();
        READ.get_or_init(Self::read)
    }

    fn read() -> Self {
        let text: Value = serde_json::from_str(TEXT).unwrap();
        let endpoints = text["endpoints"].as_object().unwrap();
        let mut endpoints: Vec<Endpoint> = endpoints
            .iter()
            .map(|(name, value)| Endpoint::read(name, value))
            .collect();
        // A literal segment beats a parameter: `/issues/comments/1` is no issue.
        // Of two with as many parameters the longer one is tried first, as a ref takes all the rest.
        endpoints.sort_by_key(|endpoint| {
            let parameters = endpoint.parameters_of("path").count();
            (parameters, Reverse(endpoint.segments.len()))
        });
        let own: Vec<&Value> = endpoints.iter().flat_map(Endpoint::schemas).collect();
        let schemas = json!({ "schemas": text["schemas"], "own": own });
        let mut compiler = Compiler::new();
        compiler.add_resource(URN, schemas.clone()).unwrap();
        let mut compiled = Schemas::new();
        let mut indexes = HashMap::new();
        for (number, schema) in own.iter().enumerate() {
            let place = format!("{URN}#/own/{number}");
            let index = compiler.compile(&place, &mut compiled).unwrap();
            indexes.insert(schema.to_string(), index);
        }
        Self {
            endpoints,
            schemas,
            compiled,
            indexes,
        }
    }

    /// The endpoint of a request and its path parameters.
    pub fn endpoint(&self, method: &str, path: &str) -> Option<(&Endpoint, Parameters)> {
        let mut endpoints = self.endpoints.iter();
        endpoints.find_map(|endpoint| Some((endpoint, endpoint.matched(method, path)?)))
    }

    /// What is wrong with a query's parameters.
    pub fn query_faults(&self, endpoint: &Endpoint, query: &Parameters) -> Vec<String> {
        let mut faults = Vec::new();
        for (name, value) in query {
            let mut declared = endpoint.parameters_of("query");
            match declared.find(|parameter| parameter.name == *name) {
                None => faults.push(format!("query: {name} is no parameter of this endpoint")),
                Some(Parameter { schema, .. }) => {
                    let value = typed(value, schema);
                    let wrong = self.faults(schema, &value).into_iter();
                    faults.extend(wrong.map(|wrong| format!("query: {name}: {wrong}")));
                }
            }
        }
        let mut declared = endpoint.parameters_of("query");
        if let Some(missing) =
            declared.find(|parameter| parameter.required && !query.contains_key(&parameter.name))
        {
            faults.push(format!("query: {} is missing", missing.name));
        }
        faults
    }

    /// What is wrong with the path parameters.
    pub fn path_faults(&self, endpoint: &Endpoint, path: &Parameters) -> Vec<String> {
        let faults = endpoint.parameters_of("path").flat_map(|parameter| {
            let value = typed(&path[&parameter.name], &parameter.schema);
            self.faults(&parameter.schema, &value)
        });
        faults.collect()
    }

    /// What GitHub would refuse a body for.
    pub fn body_faults(&self, endpoint: &Endpoint, body: Option<&Value>) -> Vec<String> {
        match body {
            None if endpoint.body_required => vec!["a body is required".to_owned()],
            Some(body) if !endpoint.body.is_null() => self.faults(&endpoint.body, body),
            _ => Vec::new(),
        }
    }

    /// The fields of a body that the endpoint does not know.
    pub fn unknown_in_body(&self, endpoint: &Endpoint, body: &Value) -> Vec<String> {
        if endpoint.body.is_null() {
            return vec!["this endpoint takes no body".to_owned()];
        }
        self.unknown(&endpoint.body, body, "")
    }

    /// What is wrong with an answer.
    pub fn answer_faults(&self, endpoint: &Endpoint, status: u16, body: &Value) -> Vec<String> {
        match endpoint.answers.get(&status.to_string()) {
            // Every endpoint may refuse; the description does not name each way.
            None if status >= 400 => Vec::new(),
            None => vec![format!("{status} is no status of this endpoint")],
            Some(Value::Null) => Vec::new(),
            // GitHub's refusals say their status, which the description leaves out.
            Some(schema) if status >= 400 => self.faults(schema, body),
            Some(schema) => {
                let mut faults = self.faults(schema, body);
                faults.extend(self.unknown(schema, body, ""));
                faults
            }
        }
    }

    /// The answer with everything that the description requires and the model has no opinion on.
    pub fn complete(&self, endpoint: &Endpoint, status: u16, body: Value) -> Value {
        match endpoint.answers.get(&status.to_string()) {
            Some(schema) if !schema.is_null() => self.completed(schema, Some(body)),
            _ => body,
        }
    }

    fn faults(&self, schema: &Value, value: &Value) -> Vec<String> {
        let index = self.indexes[&schema.to_string()];
        match self.compiled.validate(value, index) {
            Ok(()) => Vec::new(),
            Err(error) => innermost(&error),
        }
    }

    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        while let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.strip_prefix(&format!("{URN}#")).unwrap();
            schema = self.schemas.pointer(pointer).unwrap();
        }
        schema
    }

    /// The schema itself and all it is made of, resolved.
    fn parts<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        let mut parts = vec![self.resolved(schema)];
        let mut next = 0;
        while let Some(part) = parts.get(next).copied() {
            for key in ["allOf", "anyOf", "oneOf"] {
                let inner = part[key].as_array().into_iter().flatten();
                parts.extend(inner.map(|schema| self.resolved(schema)));
            }
            next += 1;
        }
        parts
    }

    fn unknown(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let parts = self.parts(schema);
        if let Value::Array(values) = value {
            let items: Option<&Value> = parts.iter().find_map(|part| part.get("items"));
            let unknown = values.iter().enumerate().filter_map(|(index, value)| {
                Some(self.unknown(items?, value, &format!("{at}/{index}")))
            });
            return unknown.flatten().collect();
        }
        let open = |part: &&Value| part["additionalProperties"].is_object();
        let (Value::Object(fields), false) = (value, parts.iter().any(open)) else {
            return Vec::new();
        };
        // Alternatives can declare one field differently.
        let mut known: BTreeMap<&String, Vec<&Value>> = BTreeMap::new();
        let declared = parts
            .iter()
            .filter_map(|part| part["properties"].as_object());
        for (name, schema) in declared.flatten() {
            known.entry(name).or_default().push(schema);
        }
        // A schema that names no field holds anything.
        if known.is_empty() {
            return Vec::new();
        }
        let unknown = fields
            .iter()
            .flat_map(|(name, value)| match known.get(name) {
                Some(schemas) => {
                    let at = format!("{at}/{name}");
                    let unknown = schemas
                        .iter()
                        .map(|schema| self.unknown(schema, value, &at));
                    unknown.min_by_key(Vec::len).unwrap_or_default()
                }
                None => vec![format!("unknown field {at}/{name}")],
            });
        unknown.collect()
    }

    fn completed(&self, schema: &Value, given: Option<Value>) -> Value {
        let schema = self.resolved(schema);
        let shapes = ["anyOf", "oneOf"]
            .iter()
            .find_map(|key| schema[key].as_array());
        if let Some(shapes) = shapes {
            return self.completed_shape(shapes, given);
        }
        match given {
            Some(Value::Object(fields)) => self.completed_object(schema, fields),
            Some(Value::Array(values)) if schema["items"].is_object() => values
                .into_iter()
                .map(|value| self.completed(&schema["items"], Some(value)))
                .collect(),
            Some(value) => value,
            None => self.made_up(schema),
        }
    }

    fn completed_shape(&self, shapes: &[Value], given: Option<Value>) -> Value {
        let null = |shape: &&Value| self.resolved(shape)["type"] == "null";
        match given {
            None if shapes.iter().any(|shape| null(&shape)) => Value::Null,
            None => self.completed(&shapes[0], None),
            Some(value @ Value::Object(_)) => {
                let mut objects = shapes.iter().filter(|shape| {
                    let parts = self.parts(shape);
                    parts.iter().any(|part| part["properties"].is_object())
                });
                match objects.next() {
                    Some(shape) => self.completed(shape, Some(value)),
                    None => value,
                }
            }
            Some(value) => value,
        }
    }

    fn completed_object(&self, schema: &Value, mut fields: Map<String, Value>) -> Value {
        let mut required = BTreeSet::new();
        let mut known = BTreeMap::new();
        let mut all = vec![schema];
        let inner = schema["allOf"].as_array().into_iter().flatten();
        all.extend(inner.map(|schema| self.resolved(schema)));
        for part in all {
            let names = part["required"].as_array().into_iter().flatten();
            required.extend(names.filter_map(Value::as_str));
            known.extend(part["properties"].as_object().into_iter().flatten());
        }
        for (name, schema) in known {
            let given = fields.get_mut(name).map(Value::take);
            if given.is_some() || required.contains(name.as_str()) {
                fields.insert(name.clone(), self.completed(schema, given));
            }
        }
        Value::Object(fields)
    }

    fn made_up(&self, schema: &Value) -> Value {
        if let Some(first) = schema["enum"].as_array().and_then(|all| all.last()) {
            return first.clone();
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.clone(),
            one => vec![one.clone()],
        };
        if types.contains(&json!("null")) {
            return Value::Null;
        }
        match (types[0].as_str(), schema["format"].as_str()) {
            (Some("string"), Some("uri")) => json!("https://github.invalid/"),
            (Some("string"), Some("date-time")) => json!("2026-01-01T00:00:00Z"),
            (Some("string"), _) => json!(""),
            (Some("integer" | "number"), _) => json!(1),
            (Some("boolean"), _) => json!(false),
            (Some("array"), _) => json!([]),
            _ => self.completed_object(schema, Map::new()),
        }
    }
}

impl Endpoint {
    fn read(name: &str, value: &Value) -> Self {
        let parameters = value["parameters"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            name: name.to_owned(),
            segments: name
                .split(' ')
                .flat_map(|part| part.split('/'))
                .map(str::to_owned)
                .collect(),
            parameters: parameters
                .iter()
                .map(|parameter| Parameter {
                    name: text(&parameter["name"]),
                    place: text(&parameter["in"]),
                    required: parameter["required"] == true,
                    schema: parameter["schema"].clone(),
                })
                .collect(),
            body: value["body"].clone(),
            body_required: value["body_required"] == true,
            answers: value["answers"].as_object().unwrap().clone(),
        }
    }

    /// Every schema of the endpoint.
    fn schemas(&self) -> impl Iterator<Item = &Value> {
        let parameters = self.parameters.iter().map(|parameter| &parameter.schema);
        let all = parameters.chain([&self.body]).chain(self.answers.values());
        all.filter(|schema| !schema.is_null())
    }

    fn parameters_of(&self, place: &'static str) -> impl Iterator<Item = &Parameter> {
        let parameters = self.parameters.iter();
        parameters.filter(move |parameter| parameter.place == place)
    }

    fn matched(&self, method: &str, path: &str) -> Option<Parameters> {
        let mut given = std::iter::once(method).chain(path.split('/'));
        let mut matched = Parameters::new();
        let mut segments = self.segments.iter().peekable();
        while let Some(segment) = segments.next() {
            let mut value = given.next()?.to_owned();
            let Some(name) = segment
                .strip_prefix('{')
                .and_then(|name| name.strip_suffix('}'))
            else {
                if *segment != value {
                    return None;
                }
                continue;
            };
            // The name of a ref holds slashes.
            if name == "ref" && segments.peek().is_none() {
                for more in given.by_ref() {
                    value += "/";
                    value += more;
                }
            }
            if value.is_empty() {
                return None;
            }
            matched.insert(name.to_owned(), decoded(&value));
        }
        given.next().is_none().then_some(matched)
    }
}

/// The parameters of a query.
pub fn query_of(query: &str) -> Parameters {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.replace('+', " ");
        (decoded(name), decoded(&value))
    };
    pairs.map(pair).collect()
}

/// Text without its percent encoding.
pub fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text)
        .decode_utf8_lossy()
        .into_owned()
}

/// What is wrong with a value, without what only follows from that.
fn innermost(error: &ValidationError<'_, '_>) -> Vec<String> {
    if !error.causes.is_empty() {
        return error.causes.iter().flat_map(innermost).collect();
    }
    let line = format!("{}: {}", error.instance_location, error.kind);
    vec![line.chars().take(300).collect()]
}

/// A parameter's text as the type that its schema wants, where it can be read as that.
fn typed(text: &str, schema: &Value) -> Value {
    let as_json = serde_json::from_str(text).ok();
    match schema["type"].as_str() {
        Some("integer" | "number" | "boolean") => as_json.unwrap_or_else(|| json!(text)),
        _ => json!(text),
    }
}
