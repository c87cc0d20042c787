//! JSON Schemas of plan and configuration files, for editors and for `sprag schema`.
//!
//! They describe Sprag's own keys, generated from the table that the readers use. Constraints across the
//! whole plan (ids, dependencies) are not included.

use super::{MAX_ID_LENGTH, Priority, TaskKind, TaskStatus};
use crate::mcp;
use crate::settings::kind::{Choice, Kind, text_schema, texts_schema};
use crate::settings::{Key, KeyDefault, Scope, keys};
use serde_json::{Map, Value as Json, json};

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The address of the file of a schema, which is also its id.
pub fn address(name: &str) -> String {
    format!("https://raw.githubusercontent.com/sprag-ci/sprag/main/schemas/{name}.schema.json")
}

/// Keys that are not settings, with their schemas. The comment above each is its description.
macro_rules! keys {
    (
        $(#[doc = $of:literal])+ $names:ident, $schemas:ident:
        $($(#[doc = $help:literal])+ $name:literal = $schema:expr;)*
    ) => {
        $(#[doc = $of])+
        pub(crate) const $names: &[&str] = &[$($name),*];

        fn $schemas() -> Map<String, Json> {
            Map::from_iter([$((
                $name.to_owned(),
                described($schema, concat!($($help),+).trim_ascii()),
            )),*])
        }
    };
}

keys! {
    /// The keys of a plan.
    PLAN_KEYS, plan_keys:
    /// The location of this schema.
    "$schema" = json!({"type": "string"});
    /// The plan's own id; other plans of a queue may depend on it.
    "id" = text();
    /// The plan's title. Default: the file's name.
    "title" = text_schema();
    /// The purpose of the plan, in a sentence. The agent gets it with every task.
    "goal" = text();
    /// The purpose of the plan, in full. The agent gets it with every task.
    "details" = text();
    /// Commands that run once before the first turn.
    "setup" = texts_schema();
    /// The plan's priority in a queue. Default: medium.
    "priority" = Choice::<Priority>::kind().schema();
    /// Plans of a queue whose work the base branch must have first: ids, or file names without extension.
    "depends_on" = texts_schema();
    /// The tasks, done in this order unless `depends_on` changes it.
    "tasks" = json!({"type": "array", "minItems": 1, "items": task()});
}

keys! {
    /// The keys of the configuration file.
    CONFIG_KEYS, config_keys:
    /// The location of this schema.
    "$schema" = json!({"type": "string"});
    /// Commands that run once before the first turn, before those of the plan.
    "setup" = texts_schema();
    /// MCP servers for the agents, by name. `env` and `headers` name variables and never have values.
    "mcp" = mcp::schema();
}

keys! {
    /// The keys of a task.
    TASK_KEYS, task_keys:
    /// Unique in the plan. Default: t1, t2 … by position.
    "id" = json!({"anyOf": [{"type": "string", "pattern": id_pattern()}, {"type": "integer", "minimum": 0}]});
    /// The task in one line.
    "title" = text_schema();
    /// The task in full.
    "description" = text();
    /// The acceptance criteria.
    "acceptance" = texts_schema();
    /// Ids of tasks that must be done first.
    "depends_on" = texts_schema();
    /// The directory below the work tree in which the agent and the checks of the task work. Default: that of the run.
    "directory" = text_schema();
    /// `check` for a task that only checks: it is done without a change if the checks pass. Default: by its words.
    "kind" = Choice::<TaskKind>::kind().schema();
    /// The status of the task. Sprag updates it.
    "status" = Choice::<TaskStatus>::kind().schema();
    /// The number of attempts. Sprag updates it.
    "attempts" = json!({"type": "integer", "minimum": 0, "maximum": u32::MAX});
    /// When the task was done. Sprag updates it.
    "completed_at" = text();
}

fn id_pattern() -> String {
    format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{}}}$", MAX_ID_LENGTH - 1)
}

/// The JSON Schema of a plan in YAML or JSON.
pub fn plan() -> Json {
    let mut properties = plan_keys();
    add_settings(&mut properties, |_| true);
    json!({
        "$schema": DRAFT,
        "$id": address("plan"),
        "title": "Sprag plan",
        "description": "The work for an agent, task by task.",
        "type": "object",
        "properties": properties,
        "required": ["tasks"],
        "additionalProperties": false,
    })
}

/// The JSON Schema of `.sprag/config.yaml`.
pub fn config() -> Json {
    let mut properties = config_keys();
    add_settings(&mut properties, |_| true);
    json!({
        "$schema": DRAFT,
        "$id": address("config"),
        "title": "Sprag configuration",
        "description": "Settings for every run in this repository. Plans, tasks, variables and flags override them.",
        "type": ["object", "null"],
        "properties": properties,
        "additionalProperties": false,
    })
}

fn task() -> Json {
    let mut properties = task_keys();
    add_settings(&mut properties, |key| key.scope == Scope::Task);
    let given = |key: &str| {
        let properties = Map::from_iter([(key.to_owned(), text())]);
        json!({"required": [key], "properties": properties})
    };
    json!({
        "type": "object",
        "properties": properties,
        "anyOf": [given("title"), given("description")],
        "additionalProperties": false,
    })
}

fn add_settings(properties: &mut Map<String, Json>, wanted: impl Fn(&Key) -> bool) {
    for key in keys().into_iter().filter(wanted) {
        let help = format!("{} Default: {}.", key.help, key.default.text());
        let mut schema = described((key.schema)(), &help);
        if let (Some(default), Some(fields)) = (default(&key), schema.as_object_mut()) {
            fields.insert("default".to_owned(), default);
        }
        properties.insert(key.name.to_owned(), schema);
    }
}

/// The default of a setting, if it is one word or number.
fn default(key: &Key) -> Option<Json> {
    let KeyDefault::Value(words) = &key.default else {
        return None;
    };
    let word = words.trim_matches('`');
    let is_one = !word.contains(['`', ' ', ',']) && word != "none";
    let json = || serde_json::from_str(word).unwrap_or_else(|_| Json::from(word));
    is_one.then(json)
}

/// A schema with a description that also accepts `null`, meaning "not given".
fn described(schema: Json, help: &str) -> Json {
    json!({"description": help, "anyOf": [schema, {"type": "null"}]})
}

fn text() -> Json {
    json!({"type": ["string", "number", "boolean"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config_file;
    use crate::output_schema::OutputSchema;

    fn compiled(schema: &Json) -> OutputSchema {
        OutputSchema::parse(&schema.to_string()).expect("a schema")
    }

    fn accepts(schema: &OutputSchema, yaml: &str) -> bool {
        let value: Json = serde_saphyr::from_str(yaml).expect(yaml);
        schema.judge(value).is_ok()
    }

    #[test]
    fn schema_and_reader_agree() {
        let schema = compiled(&plan());
        for settings in [
            "model: m",
            "model: [m]",
            "model: 3",
            "model: ''",
            "model: ' '",
            "agent_args: [a, 3]",
            "agent_args: a",
            "agent_args: {a: b}",
            "verify: [make, {run: x, kind: test, timeout: 5m}]",
            "verify: make",
            "verify: {run: x}",
            "verify: [{name: x}]",
            "verify: [{run: x, kind: unit}]",
            "verify: [[x]]",
            "verify: []",
            "verify: ''",
            "verify: [{run: ''}]",
            "verify: [{run: x, name: ''}]",
            "verify: [{run: x, junit: 'out/*.xml', problem_matcher: .github/m.json}]",
            "verify_timeout: 90s",
            "verify_timeout: 1h30m",
            "verify_timeout: 45",
            "verify_timeout: '45'",
            "verify_timeout: 1.5",
            "verify_timeout: soon",
            "verify_timeout: ''",
            "max_retries: 0",
            "max_retries: 10",
            "max_retries: 11",
            "max_retries: -1",
            "max_retries: 1.5",
            "max_retries: '3'",
            "max_retries:",
            "identical_failures: 1",
            "max_tokens: 0",
            "max_tokens: 5000000000",
            "max_cost_usd: 0.5",
            "max_cost_usd: 0",
            "push: true",
            "push: maybe",
            "report: github",
            "report: mail",
            "agent_env: [A_B]",
            "agent_env: [A-B]",
            "progress: {ignore: [a]}",
            "progress: {other: a}",
            "agent: codex",
            "agent: gemini",
            "agent: aider",
            "verfy: [make]",
            "roles: {reviewer: {model: m}}",
            "verify: [{run: x, knd: test}]",
            "priority: high",
            "priority: urgent",
            "setup: make",
            "setup: {a: b}",
            "tasks: []",
            "title: ''",
            "setup: ['']",
            "tasks: [{}]",
            "tasks: [{title: ''}]",
            "tasks: [{title: x, acceptance: ['']}]",
            "tasks: [{title: }]",
            "tasks: [x]",
            "tasks: [{title: x, status: done, attempts: 2, completed_at: y}]",
            "tasks: [{title: x, status: finished}]",
            "tasks: [{description: x, id: 3}]",
            "tasks: [{title: x, id: .a}]",
            "tasks: [{title: x, attempts: -1}]",
            "tasks: [{title: x, verfy: [make]}]",
            "tasks: [{title: x, deadline: 1h}]",
            "tasks: [{title: x, review: true}]",
        ] {
            let text = if settings.starts_with("tasks") {
                settings.to_owned()
            } else {
                format!("{settings}\ntasks: [{{title: x}}]\n")
            };
            let is_read = crate::plan::parse("p.yaml", text.as_bytes()).is_ok();
            assert_eq!(accepts(&schema, &text), is_read, "{text}");
        }
    }

    #[test]
    fn an_unknown_key_is_marked_in_editors() {
        let (plan, config) = (compiled(&plan()), compiled(&config()));
        assert!(!accepts(&plan, "titel: x\ntasks: [{title: x}]"));
        assert!(!accepts(&plan, "tasks: [{title: x, deadline: 1h}]"));
        assert!(accepts(&config, "setup: make\nmax_retries: 2\n"));
        assert!(!accepts(&config, "tasks: []"));
        assert!(config_file::parse("c.yaml", b"setup: make\nmax_retries: 2\n").is_ok());
    }
}
