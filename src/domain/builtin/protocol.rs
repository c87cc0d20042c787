//! Tool calls as text, for models that cannot call tools.
//!
//! ````text
//! ```SPRAG_TOOL edit_file
//! path: src/a.rs
//! search <<END
//! old text
//! END
//! replace <<END
//! new text
//! END
//! ```
//! ````
//!
//! A value follows its name, or is between `<<END` and a line that is just `END` (any word will do), where
//! nothing needs escaping. A value in double quotes is read as JSON. The content of a file ends with a line
//! end; other long values do not.

use super::context::Message;
use super::fence::{BlockKind, long_value, scan};
use super::tool::{Arguments, Kind, Tool, ToolCall, kind_of};
use crate::text::add_paragraph;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A response split into text and calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// The response without its tool blocks, plan blocks included.
    pub text: String,
    /// Its tool calls in order, with ids numbered from 1.
    pub calls: Vec<ToolCall>,
}

/// Extracts the tool calls from a response. `cut` says that the response reached its length limit: then a
/// block without an end is not trusted.
pub fn read(text: &str, cut: bool) -> Parts {
    let scan = scan(text);
    let mut calls = Vec::new();
    for block in &scan.blocks {
        let BlockKind::Tool(name) = &block.kind else {
            continue;
        };
        let arguments = match read_arguments(name, &block.body) {
            Ok(_) if cut && !block.closed => {
                Arguments::Unreadable("the block was cut off before its end".into())
            }
            Ok(arguments) => Arguments::Given(Value::Object(arguments)),
            Err(why) => Arguments::Unreadable(why),
        };
        calls.push(ToolCall {
            id: (calls.len() + 1).to_string(),
            name: name.clone(),
            arguments,
        });
    }
    Parts {
        text: scan.without_tools,
        calls,
    }
}

/// A call as a block. [`read`] returns the arguments of the tools that access the work tree unchanged, with
/// numbers as text.
pub fn format_call(call: &ToolCall) -> String {
    let mut body = String::new();
    match &call.arguments {
        Arguments::Given(Value::Object(arguments)) => {
            for (name, value) in arguments {
                let text = match value {
                    Value::String(text) => text.clone(),
                    Value::Null => continue,
                    other => other.to_string(),
                };
                body.push_str(&format_value(&call.name, name, &text));
            }
        }
        Arguments::Given(_) => {}
        Arguments::Unreadable(why) => {
            let _ = writeln!(body, "error: {}", Value::from(why.as_str()));
        }
    }
    let fence = fence_for(&body);
    format!("{fence}SPRAG_TOOL {}\n{body}{fence}", call.name)
}

/// The result of a call, as text in the next message.
fn format_result(id: &str, name: &str, ok: bool, output: &str) -> String {
    let fence = fence_for(output);
    let word = if ok { "ok" } else { "error" };
    let end = if output.is_empty() || output.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{fence}SPRAG_RESULT {id} {name} {word}\n{output}{end}{fence}")
}

/// The description of a tool for the model.
pub fn describe(tool: &Tool) -> String {
    let mut text = format!("{}: {}\n", tool.name, tool.about);
    for parameter in tool.parameters {
        let optional = if parameter.required { "" } else { ", optional" };
        let _ = writeln!(text, "  {}{optional}: {}", parameter.name, parameter.about);
    }
    text
}

/// The messages for a model without tool calling: calls and results become text of the adjacent messages.
/// After the system prompt, the roles alternate, because many model templates reject anything else:
/// consecutive messages of the same role are merged.
pub fn as_text(messages: &[&Message]) -> Vec<Message> {
    let mut told: Vec<Message> = Vec::new();
    let mut after_result = false;
    for message in messages {
        let is_result = matches!(message, Message::ToolResult { .. });
        let message = worded(message);
        match (told.last_mut(), &message) {
            (
                Some(Message::Task { text } | Message::Note { text }),
                Message::Task { text: more } | Message::Note { text: more },
            ) => {
                if after_result && is_result {
                    text.push('\n');
                    text.push_str(more);
                } else {
                    add_paragraph(text, more);
                }
            }
            (Some(Message::Assistant { text, .. }), Message::Assistant { text: more, .. }) => {
                add_paragraph(text, more)
            }
            _ => told.push(message),
        }
        after_result = is_result;
    }
    told
}

/// A message with its calls and results as text.
fn worded(message: &Message) -> Message {
    match message {
        Message::Assistant { text, calls } => {
            let blocks = calls.iter().map(format_call);
            let said = std::iter::once(text.trim_end().to_owned()).chain(blocks);
            let said: Vec<String> = said.filter(|part| !part.is_empty()).collect();
            Message::Assistant {
                text: said.join("\n"),
                calls: Vec::new(),
            }
        }
        Message::ToolResult {
            id,
            name,
            ok,
            output,
        } => Message::Note {
            text: format_result(id, name, *ok, output),
        },
        other => other.clone(),
    }
}

fn read_arguments(tool: &str, body: &str) -> Result<Map<String, Value>, String> {
    if tool.is_empty() {
        return Err("the name of the tool is missing behind SPRAG_TOOL".into());
    }
    let mut arguments = Map::new();
    let mut lines = body.lines();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            continue;
        }
        let (name, value) = match long_value(line) {
            Some((name, mark)) => {
                let mut value: Vec<&str> = Vec::new();
                loop {
                    match lines.next() {
                        Some(line) if line.trim_end() == mark => break,
                        Some(line) => value.push(line),
                        None => {
                            return Err(format!(
                                "the value of `{name}` has no end: a line with just {mark} is missing"
                            ));
                        }
                    }
                }
                (name, long_text(tool, name, &value))
            }
            None => short_value(line)?,
        };
        if arguments.insert(name.to_owned(), value.into()).is_some() {
            return Err(format!("`{name}` is given twice"));
        }
    }
    Ok(arguments)
}

fn long_text(tool: &str, name: &str, lines: &[&str]) -> String {
    let mut text = lines.join("\n");
    if kind_of(tool, name) == Some(Kind::Lines) && !lines.is_empty() {
        text.push('\n');
    }
    text
}

fn short_value(line: &str) -> Result<(&str, String), String> {
    let wrong = || {
        format!(
            "`{}` is neither `name: value` nor `name <<END`",
            crate::text::one_line(line, 80)
        )
    };
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(wrong());
    }
    let quoted = value.starts_with('"');
    let json = quoted.then(|| serde_json::from_str::<String>(value).ok());
    Ok((name, json.flatten().unwrap_or_else(|| value.to_owned())))
}

fn format_value(tool: &str, name: &str, value: &str) -> String {
    let json = || format!("{name}: {}\n", Value::from(value));
    let odd = value.contains(|c: char| c.is_control() && c != '\n' && c != '\t');
    if odd || value.is_empty() || value.starts_with('"') {
        return json();
    }
    if !value.contains('\n')
        && value.trim() == value
        && long_value(&format!("{name}: {value}")).is_none()
    {
        return format!("{name}: {value}\n");
    }
    let body = match kind_of(tool, name) {
        Some(Kind::Lines) => value.strip_suffix('\n'),
        _ => Some(value),
    };
    let Some(body) = body else { return json() };
    let mark = unused_mark(body);
    format!("{name} <<{mark}\n{body}\n{mark}\n")
}

/// A word that is not a line of `body`.
fn unused_mark(body: &str) -> String {
    let mut mark = "END".to_owned();
    while body.lines().any(|line| line.trim_end() == mark) {
        mark.push('_');
    }
    mark
}

/// A fence that is longer than any inside `body`.
fn fence_for(body: &str) -> String {
    let runs = body.split(|c| c != '`').map(str::len).max();
    "`".repeat(runs.unwrap_or_default().saturating_add(1).max(3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::tool::ToolRequest;
    use proptest::prelude::*;
    use serde_json::json;

    fn calls(text: &str) -> Vec<Result<ToolRequest, String>> {
        read(text, false)
            .calls
            .iter()
            .map(ToolRequest::of)
            .collect()
    }

    #[test]
    fn a_call_is_read_from_its_block() {
        let text = "I look.\n```SPRAG_TOOL read_file\npath: src/a.rs\nstart: 3\n```\nThen:\n\
                    ```SPRAG_TOOL edit_file\npath: src/a.rs\nsearch <<END\n  a: \"b\"\n```\nEND\n\
                    replace: <<'EOF'\n\n  c\nEOF\n```\n```SPRAG_PLAN_UPDATE\n- [x] src/a.rs\n```";
        assert_eq!(
            calls(text),
            [
                Ok(ToolRequest::ReadFile {
                    path: "src/a.rs".into(),
                    start: Some(3),
                    end: None
                }),
                Ok(ToolRequest::EditFile {
                    path: "src/a.rs".into(),
                    search: "  a: \"b\"\n```".into(),
                    replace: "\n  c".into(),
                }),
            ]
        );
        assert_eq!(
            read(text, false).text,
            "I look.\nThen:\n```SPRAG_PLAN_UPDATE\n- [x] src/a.rs\n```\n"
        );
    }

    #[test]
    fn the_content_of_a_file_ends_with_a_line_end() {
        let write = |body: &str| calls(&format!("```SPRAG_TOOL write_file\npath: a\n{body}\n```"));
        let request = |content: &str| {
            vec![Ok(ToolRequest::WriteFile {
                path: "a".into(),
                content: content.into(),
            })]
        };
        assert_eq!(write("content <<END\nx\ny\nEND"), request("x\ny\n"));
        assert_eq!(write("content <<END\nEND"), request(""));
        assert_eq!(write(r#"content: "x\ny""#), request("x\ny"));
    }

    #[test]
    fn a_value_that_looks_like_a_block_is_a_value() {
        let text = "```SPRAG_TOOL search\npattern: ~~~SPRAG_FINAL\n```";
        let search = ToolRequest::Search {
            pattern: "~~~SPRAG_FINAL".into(),
            path: None,
        };
        assert_eq!(calls(text), [Ok(search)]);
    }

    #[test]
    fn what_cannot_be_read_is_no_call() {
        let texts = [
            "```SPRAG_TOOL\npath: a\n```",
            "```SPRAG_TOOL write_file\npath: a\ncontent <<END\nx\n```",
            "```SPRAG_TOOL read_file\nthe file a\n```",
            "```SPRAG_TOOL read_file\nsee here: a\n```",
            "```SPRAG_TOOL read_file\npath: a\npath: b\n```",
        ];
        let why = texts.map(|text| match &read(text, false).calls[..] {
            [
                ToolCall {
                    arguments: Arguments::Unreadable(why),
                    ..
                },
            ] => why.clone(),
            other => panic!("{other:?}"),
        });
        insta::assert_snapshot!(why.join("\n"), @r#"
        the name of the tool is missing behind SPRAG_TOOL
        the value of `content` has no end: a line with just END is missing
        `the file a` is neither `name: value` nor `name <<END`
        `see here: a` is neither `name: value` nor `name <<END`
        `path` is given twice
        "#);
    }

    #[test]
    fn an_open_block_counts_unless_the_response_was_cut_off() {
        let text = "```SPRAG_TOOL run_command\ncommand: rm -r target";
        let run = ToolRequest::RunCommand {
            command: "rm -r target".into(),
            timeout_seconds: None,
        };
        assert_eq!(calls(text), [Ok(run)]);
        let cut = &read(text, true).calls[0];
        assert!(
            matches!(&cut.arguments, Arguments::Unreadable(_)),
            "{cut:?}"
        );
    }

    #[test]
    fn messages_become_text_with_the_results_of_a_response_together() {
        let call = |id: &str| ToolCall {
            id: id.into(),
            name: "read_file".into(),
            arguments: Arguments::Given(json!({"path": "a", "start": 2, "end": null})),
        };
        let result = |id: &str, ok, output: &str| Message::ToolResult {
            id: id.into(),
            name: "read_file".into(),
            ok,
            output: output.into(),
        };
        let messages = [
            Message::Task { text: "do".into() },
            Message::Assistant {
                text: "I look.\n".into(),
                calls: vec![call("1"), call("2")],
            },
            result("1", true, "x\n"),
            result("2", false, "```"),
            Message::Note {
                text: "go on".into(),
            },
        ];
        let shown: Vec<String> = as_text(&messages.iter().collect::<Vec<_>>())
            .iter()
            .map(|message| format!("{message:?}").replace("\\n", "\n"))
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        Task { text: "do" }
        Assistant { text: "I look.
        ```SPRAG_TOOL read_file
        path: a
        start: 2
        ```
        ```SPRAG_TOOL read_file
        path: a
        start: 2
        ```", calls: [] }
        Note { text: "```SPRAG_RESULT 1 read_file ok
        x
        ```
        ````SPRAG_RESULT 2 read_file error
        ```
        ````

        go on" }
        "#);
    }

    fn value() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z :<\"`#\\\\]{0,12}",
            "(END|```|<<END|\"|  a|é|\r|\t|~~~SPRAG_FINAL|\n){0,6}",
            any::<String>(),
        ]
    }

    fn message() -> impl Strategy<Value = Message> {
        let text = || "[a-z]{0,3}\n?";
        let call = |name: String| ToolCall {
            id: "1".into(),
            name,
            arguments: Arguments::Given(json!({"path": "a"})),
        };
        prop_oneof![
            text().prop_map(|text| Message::Task { text }),
            text().prop_map(|text| Message::Note { text }),
            (
                text(),
                proptest::collection::vec("[a-z]{1,3}".prop_map(call), 0..3)
            )
                .prop_map(|(text, calls)| Message::Assistant { text, calls }),
            (text(), any::<bool>()).prop_map(|(output, ok)| Message::ToolResult {
                id: "1".into(),
                name: "search".into(),
                ok,
                output,
            }),
        ]
    }

    /// The role of a message, and its text.
    fn role_and_text(message: &Message) -> (&'static str, &str) {
        match message {
            Message::System { text } => ("system", text),
            Message::Task { text } | Message::Note { text } => ("user", text),
            Message::Assistant { text, calls } if calls.is_empty() => ("assistant", text),
            other => panic!("{other:?} is no text"),
        }
    }

    proptest! {
        #[test]
        fn roles_take_turns_and_the_next_request_begins_with_the_last(
            rest in proptest::collection::vec(message(), 0..12)
        ) {
            let system = Message::System { text: "system".into() };
            let messages: Vec<&Message> = std::iter::once(&system).chain(&rest).collect();
            let mut last = as_text(&messages[..1]);
            for count in 2..=messages.len() {
                let next = as_text(&messages[..count]);
                let told: Vec<_> = next.iter().map(role_and_text).collect();
                for pair in told.windows(2) {
                    prop_assert_ne!(pair[0].0, pair[1].0);
                }
                // All messages except the newest stay the same, and the newest is continued.
                let (newest, before) = last.split_last().unwrap();
                prop_assert_eq!(before, &next[..before.len()]);
                let (newest, now) = (role_and_text(newest), told[before.len()]);
                prop_assert_eq!(newest.0, now.0);
                prop_assert!(now.1.starts_with(newest.1));
                last = next;
            }
        }

        #[test]
        fn calls_come_back_as_they_were(path in value(), search in value(), content in value()) {
            let edit = json!({"path": path, "search": search, "replace": content});
            let write = json!({"path": path, "content": content});
            let sent: Vec<ToolCall> = [("edit_file", edit), ("write_file", write)]
                .into_iter()
                .zip(1..)
                .map(|((name, arguments), id)| ToolCall {
                    id: format!("{id}"),
                    name: name.into(),
                    arguments: Arguments::Given(arguments),
                })
                .collect();
            let text: Vec<String> = sent.iter().map(format_call).collect();
            let parts = read(&format!("one\n{}\nend", text.join("\n")), true);
            prop_assert_eq!(parts, Parts { text: "one\nend\n".into(), calls: sent });
        }

        #[test]
        fn no_text_breaks_the_reader(text in "(```|SPRAG_TOOL |a|: |<<|END|\n|\"){0,40}", cut: bool) {
            for call in read(&text, cut).calls {
                prop_assert_eq!(&call.id, &call.id.trim().to_owned());
                prop_assert_eq!(read(&format_call(&call), cut).calls.len(), 1);
            }
        }
    }
}
