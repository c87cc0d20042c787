use super::*;

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        id: "c1".into(),
        name: name.into(),
        arguments: Arguments::Given(arguments),
    }
}

fn of(name: &str, arguments: Value) -> Result<ToolRequest, String> {
    ToolRequest::of(&call(name, arguments))
}

#[test]
fn every_declared_tool_can_be_called_with_what_it_declares() {
    for tool in all() {
        let declared = tool.schema["properties"].as_object().unwrap();
        let arguments = declared.iter().map(|(name, argument)| {
            let value = match argument["type"].as_str().unwrap() {
                "string" => json!("x"),
                "integer" => json!(3),
                "boolean" => json!(true),
                _ => json!([{"text": "a", "state": "done"}]),
            };
            (name.clone(), value)
        });
        let arguments = Value::Object(arguments.collect());
        let request = of(&tool.name, arguments).unwrap();
        assert_eq!(request.name(), tool.name);
    }
}

#[test]
fn a_tool_is_declared_by_the_schema_of_its_arguments() {
    let read = all().next().unwrap();
    assert_eq!(
        read.schema,
        json!({
            "type": "object",
            "properties": {
                "path": {
                    "type": "string",
                    "description": "path from the root of the repository",
                },
                "start": {"type": "integer", "description": "first line, from 1"},
                "end": {"type": "integer", "description": "last line"},
            },
            "required": ["path"],
        })
    );
}

#[test]
fn what_the_model_reads_about_the_tools_is_complete() {
    let of_tool = |tool: &Tool| {
        let required = &tool.schema["required"];
        format!("{} {required}: {}", tool.name, tool.about)
    };
    insta::assert_snapshot!(all().map(of_tool).collect::<Vec<_>>().join("\n"), @r#"
    read_file ["path"]: Reads a file of the repository, with line numbers.
    list_files []: Lists the files of a directory and below, without ignored ones.
    search ["pattern"]: Searches the files for a regular expression, without ignored ones.
    edit_file ["path","search","replace"]: Replaces text in a file. The text searched for must occur exactly once; copy it from the file as it is, without line numbers.
    write_file ["path","content"]: Writes a whole file, new or in place of the old one.
    delete_file ["path"]: Deletes a file.
    move_file ["from","to"]: Moves or renames a file.
    run_command ["command"]: Runs a shell command in the root of the repository and shows its output.
    update_plan ["items"]: Registers the plan, or says what became of its items. An item begins with the files it is about: `src/a.rs, src/b.rs: add the parser`.
    finish ["summary"]: Ends the work. Call it when every item is done.
    "#);
}

#[test]
fn numbers_may_be_text_and_more_may_be_given_than_is_asked_for() {
    let arguments = json!({"path": "a", "start": "7", "end": 9.0, "why": "because"});
    assert_eq!(
        of("read_file", arguments),
        Ok(ToolRequest::ReadFile {
            path: "a".into(),
            start: Some(7),
            end: Some(9)
        })
    );
}

#[test]
fn other_agents_words_for_a_plan_are_understood() {
    let arguments = json!({"items": [
        {"step": "a", "status": "completed"},
        {"content": "b", "status": "in_progress"},
        {"text": "c"},
    ]});
    let item = |text: &str, state| PlanItem {
        text: text.into(),
        state,
    };
    assert_eq!(
        of("update_plan", arguments),
        Ok(ToolRequest::UpdatePlan {
            items: vec![
                item("a", ItemState::Done),
                item("b", ItemState::InProgress),
                item("c", ItemState::Pending),
            ],
            replace: false,
        })
    );
}

#[test]
fn what_is_wrong_with_a_call_is_said_to_the_model() {
    let wrong = [
        of("edit_file", json!({"path": "a", "search": "b"})),
        of("read_file", json!({"path": "a", "start": "soon"})),
        of("read_file", json!(["a"])),
        of("write", json!({})),
        ToolRequest::of(&ToolCall {
            arguments: Arguments::from_json("{\"path\": "),
            ..call("read_file", Value::Null)
        }),
    ];
    insta::assert_snapshot!(
        wrong.map(|it| it.unwrap_err()).join("\n"),
        @r#"
    missing field `replace`
    a line number or a count must be a whole number
    the arguments are not a JSON object
    there is no tool `write`; the tools are read_file, list_files, search, edit_file, write_file, delete_file, move_file, run_command, update_plan, finish
    the arguments are not valid JSON: EOF while parsing a value at line 1 column 9
    "#
    );
}

#[test]
fn other_agents_names_of_arguments_are_understood() {
    let edit = json!({"file_path": "a", "old_string": "b", "new_string": "c"});
    let own = json!({"path": "a", "search": "b", "replace": "c"});
    assert_eq!(of("edit_file", edit), of("edit_file", own));
    let write = json!({"filePath": "a", "contents": "b"});
    let own = json!({"path": "a", "content": "b"});
    assert_eq!(of("write_file", write), of("write_file", own));
    let cmd = of("run_command", json!({"cmd": "ls"}));
    assert_eq!(cmd, of("run_command", json!({"command": "ls"})));
}

#[test]
fn no_arguments_are_an_empty_object() {
    for arguments in [Arguments::from_json(" "), Arguments::Given(Value::Null)] {
        let call = ToolCall {
            arguments,
            ..call("list_files", Value::Null)
        };
        assert_eq!(
            ToolRequest::of(&call),
            Ok(ToolRequest::ListFiles { path: None })
        );
    }
}
