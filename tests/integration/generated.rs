//! Documents and parts of them that are made from the tables of settings, flags, inputs and outputs.
//! They are compared with what the tables say; `SPRAG_REGENERATE=1` writes them anew.

mod inputs;
mod layout;
pub mod outputs;

use crate::action_file::{ROOT, yaml};
use inputs::{Input, of_run};
use outputs::OUTPUTS;
use sprag::agents::{self, CLIS};
use sprag::domain::plan::schema;
use sprag::domain::settings::{Form, Key, KeyDefault, Scope, keys};
use sprag::report::wire;
use std::fs;
use std::path::Path;

/// Inputs that the steps of `action.yml` read themselves.
pub const OF_THE_STEPS: &[&str] = &[
    "install-agent",
    "publish",
    "matrix",
    "shards",
    "integrate",
    "binary",
];

/// Outputs that a step tells that ends before Sprag begins.
pub const OF_EVERY_STEP: &[&str] = &["status", "reason", "summary"];

const END: &str = "End of the generated part.";

#[test]
fn generated_documents_are_what_the_tables_say() {
    let inputs = (
        "Generated from the tables: settings and flags.",
        input_list(),
    );
    let handed_on = ("Generated from the tables: the same inputs.", hand_on());
    let outputs = |of_steps| ("Generated from the tables: outputs.", output_list(of_steps));
    let with = |path: &str, parts: &[(&str, String)]| {
        let text = fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
        let filled = parts
            .iter()
            .fold(text, |text, (begin, part)| filled(&text, begin, part));
        (path.to_owned(), filled)
    };
    let agents = ("Generated from the table of agents.", agents_table());
    let layout = (
        "Generated from the layout of a run directory.",
        layout::table(),
    );
    let documents = [
        // What the settings know of the agents goes into the documents that follow only once it is compiled.
        (
            "src/domain/settings/agents.rs".to_owned(),
            settings_of_agents(),
        ),
        // The step that installs an agent runs before there is a program to ask.
        ("action/agents.txt".to_owned(), packages()),
        with("ARCHITECTURE.md", &[layout]),
        with("docs/agents.md", &[agents]),
        with("action.yml", &[inputs.clone(), outputs(true), handed_on]),
        with("docker/action.yml", &[inputs, outputs(false)]),
        ("docs/reference.md".to_owned(), reference()),
        ("schemas/plan.schema.json".to_owned(), json(&schema::plan())),
        (
            "schemas/config.schema.json".to_owned(),
            json(&schema::config()),
        ),
        (
            "schemas/event.schema.json".to_owned(),
            json(&wire::schema()),
        ),
        (
            "schemas/summary.schema.json".to_owned(),
            json(&wire::summary_schema()),
        ),
        ("schemas/catalog.json".to_owned(), json(&catalog())),
    ];
    let mut stale = Vec::new();
    for (path, expected) in documents {
        let place = Path::new(ROOT).join(&path);
        if fs::read_to_string(&place).ok().as_ref() == Some(&expected) {
            continue;
        }
        match std::env::var_os("SPRAG_REGENERATE") {
            Some(_) => fs::write(&place, expected).unwrap(),
            None => stale.push(path),
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} are not what the tables say: SPRAG_REGENERATE=1 cargo test --test integration generated \
         (twice where an agent is new)"
    );
}

fn json(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// The entries for SchemaStore, from which editors know the schema of a file by its name.
fn catalog() -> serde_json::Value {
    let entry = |name: &str, title: &str, files: &[&str]| {
        serde_json::json!({
            "name": title,
            "description": format!("{title}: https://github.com/sprag-ci/sprag"),
            "fileMatch": files,
            "url": schema::address(name),
        })
    };
    serde_json::json!({ "schemas": [
        entry("config", "Sprag configuration", &["**/.sprag/config.yaml"]),
        entry("plan", "Sprag plan", &["**/.sprag/plans/*.yaml", "**/.sprag/plans/*.json"]),
    ]})
}

/// What the crate of the settings knows of the agents, which it cannot read from their table.
fn settings_of_agents() -> String {
    let lines = |values: &mut dyn Iterator<Item = &str>| -> String {
        values
            .map(|value| format!("    {},\n", quoted(value)))
            .collect()
    };
    let others = [agents::BUILTIN, agents::ACP, agents::COMMAND];
    let clis = agents::names().filter(|name| !others.contains(name));
    let names = ["auto", agents::BUILTIN].into_iter().chain(clis);
    let names = lines(&mut names.chain([agents::ACP, agents::COMMAND]));
    let files = lines(&mut agents::configuration());
    format!(
        "\
//! The agents that settings can name, and the files that configure them.
//!
//! Generated from the table of agents: `SPRAG_REGENERATE=1 cargo test --test integration generated`.

/// The agents that can be named.
#[rustfmt::skip]
pub const AGENTS: &[&str] = &[
{names}];

/// Globs of the files of a repository that configure an agent.
#[rustfmt::skip]
pub const AGENT_FILES: &[&str] = &[
{files}];
"
    )
}

fn packages() -> String {
    let lines = agents::packages().map(|it| format!("{} {}\n", it.name, it.npm));
    lines.collect()
}

/// The rows of `docs/agents.md` for the agents that are programs of their own.
fn agents_table() -> String {
    let row = |spec: &&agents::CliSpec| {
        let keys: Vec<String> = spec.keys.iter().map(|key| format!("`{key}`")).collect();
        format!(
            "| `{}` | {} | `{}@{}` | {}, or a login in `~/{}` |\n",
            spec.name,
            spec.about,
            spec.package.name,
            spec.tested,
            keys.join(", "),
            spec.login.directory
        )
    };
    let head = "| `--agent` | command | `install-agent` | key or login |\n|---|---|---|---|\n";
    head.to_owned() + &CLIS.iter().map(row).collect::<String>()
}

/// A text with this part between the line that has `begin` and the next line that ends such a part.
fn filled(text: &str, begin: &str, part: &str) -> String {
    let begin = text
        .find(begin)
        .unwrap_or_else(|| panic!("no line {begin:?}"));
    let from = begin + text[begin..].find('\n').unwrap() + 1;
    let end = from + text[from..].find(END).unwrap();
    let to = text[..end].rfind('\n').unwrap() + 1;
    format!("{}{part}{}", &text[..from], &text[to..])
}

/// Every input that the program reads, with its description.
pub fn inputs() -> Vec<(String, String)> {
    let of_run = of_run().into_iter().map(|input| (input.name, input.help));
    let settings = keys().into_iter().map(|key| (key.input(), described(&key)));
    of_run.chain(settings).collect()
}

/// A setting where it is an input: what it means, how it is written, and what holds without it.
fn described(key: &Key) -> String {
    let form = match key.form {
        Form::Truth => " true or false.",
        Form::Lines | Form::Arguments => " One per line.",
        Form::Tree => " As YAML.",
        Form::Word | Form::Text => "",
    };
    let text = format!("{}{form}", meaning(key));
    let default = key.default.text().replace('`', "");
    format!("{text} Default: {default}.")
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

fn input_list() -> String {
    let entry = |(name, help): (String, String)| {
        // The program has the defaults; one here would go before plan and configuration file. It
        // cannot have the job's token.
        let default = match name.as_str() {
            "github-token" => "    default: ${{ github.token }}\n",
            _ => "",
        };
        let help = quoted(&help);
        format!("  {name}:\n    description: {help}\n    required: false\n{default}")
    };
    inputs().into_iter().map(entry).collect()
}

fn hand_on() -> String {
    let line = |(name, _): (String, String)| {
        let variable = name.to_uppercase().replace('-', "_");
        format!("        INPUT_{variable}: ${{{{ inputs.{name} }}}}\n")
    };
    inputs().into_iter().map(line).collect()
}

fn output_list(of_steps: bool) -> String {
    let entry = |(name, help): &(&str, &str)| {
        let or_else = if OF_EVERY_STEP.contains(name) {
            format!(" || steps.install.outputs.{name}")
        } else {
            String::new()
        };
        let value = if of_steps {
            format!("    value: ${{{{ steps.sprag.outputs.{name}{or_else} }}}}\n")
        } else {
            String::new()
        };
        format!("  {name}:\n    description: {}\n{value}", quoted(help))
    };
    OUTPUTS.iter().map(entry).collect()
}

fn reference() -> String {
    let mut text = "\
<!-- Generated from the tables of settings, flags, inputs and outputs. CONTRIBUTING.md says how. -->
# Reference

- [The work](#the-work)
- [Settings](#settings)
- [Inputs of the action only](#inputs-of-the-action-only)
- [Outputs of the action](#outputs-of-the-action)
- [Variables for reaching a model](#variables-for-reaching-a-model)

## The work

Flags of `sprag run` that are not settings, and their action inputs. At most one of `--plan`, `--prompt`,
`--prompt-file`, `--issue`, `--queue` and `--event` can be used; without any of them, the event decides in a GitHub Actions job.
`sprag run 'TEXT'` is `sprag run --prompt 'TEXT'`. If the command line names the work, these inputs are ignored.

| flag | action input | meaning |
|---|---|---|
"
    .to_owned();
    for Input { name, help, flag } in of_run() {
        let flag = flag.map_or_else(String::new, |flag| format!("`{flag}`"));
        text += &format!("| {flag} | `{name}` | {} |\n", cell(&help));
    }
    text += "
## Settings

Each setting has one name everywhere: the key `max_retries` of a plan, a task or the configuration file is the flag `--max-retries`,
the action input `max-retries` and the variable `SPRAG_MAX_RETRIES`. If several sources set it, the first of these wins: flag, action input,
variable, task, plan, configuration file, default. A flag for a list is repeated; an input or a variable has one item per line. A
boolean also has a flag `--no-…`. Durations are written as `90s`, `10m`, `1h30m`, or a number of seconds.
";
    let mut group = None;
    for key in keys() {
        if group != Some(key.group) {
            group = Some(key.group);
            let heading = key.group.heading();
            text += &format!(
                "\n### {heading}\n\n| key | flag | meaning | default | on a task |\n|---|---|---|---|---|\n"
            );
        }
        text += &row(&key);
    }
    text += "
## Inputs of the action only

The steps of `action.yml` read these inputs; the container action does not have them.

| input | meaning |
|---|---|
";
    let action = yaml("action.yml");
    for name in OF_THE_STEPS {
        let help = action["inputs"][name]["description"].as_str().unwrap();
        text += &format!("| `{name}` | {} |\n", cell(help));
    }
    text += "\n## Outputs of the action\n\n| output | meaning |\n|---|---|\n";
    for (name, help) in OUTPUTS {
        text += &format!("| `{name}` | {} |\n", cell(help));
    }
    text += "
## Variables for reaching a model

The built-in agent reads these variables; [builtin-agent.md](builtin-agent.md) lists them by provider.

";
    let mut names: Vec<&str> = sprag_agent::access::variables().collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        text += &format!("- `{name}`\n");
    }
    text
}

fn row(key: &Key) -> String {
    let flag = match (key.form, &key.default) {
        (Form::Truth, KeyDefault::Value(text)) if text == "`true`" => {
            format!("--no-{}", key.flag())
        }
        (Form::Truth, _) => format!("--{}", key.flag()),
        _ => format!("--{} {}", key.flag(), key.value_name),
    };
    let on_a_task = match key.scope {
        Scope::Task => "yes",
        _ => "no",
    };
    let (name, default) = (key.name, key.default.text());
    format!(
        "| `{name}` | `{}` | {} | {default} | {on_a_task} |\n",
        cell(&flag),
        cell(&meaning(key))
    )
}

/// What a setting means and what it may be.
fn meaning(key: &Key) -> String {
    let mut text = key.help.to_owned();
    if !key.choices.is_empty() {
        let words: Vec<String> = key.choices.iter().map(|word| format!("`{word}`")).collect();
        text += &format!(" One of {}.", words.join(", "));
    }
    if let Some((least, most)) = key.range {
        text += &format!(" {least} to {most}.");
    }
    text
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
