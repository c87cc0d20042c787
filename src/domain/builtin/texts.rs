//! All texts of the built-in agent for its model.

use super::ledger::{Applied, Ledger};
use super::protocol;
use super::session::{FormatError, LoopKind, Note, Slice, Suppressed};
use super::tool::WORK_TOOLS;

/// The answer to a `finish` call.
pub const NOTED: &str = "noted";

/// The result of a call that was not carried out.
pub const NOT_RUN: &str = "not run: the session ended before this call";

/// The system prompt. Without `native_tools` it describes the text protocol.
pub fn system(native_tools: bool) -> String {
    let mut text = String::from(
        "You are a coding agent that works on its own in a checked-out repository. Nobody reads along, nobody answers \
         questions or grants permission. What counts is what you change in the files.\n\n\
         How to work:\n\
         - Look at what you need, then edit. Read a file before you edit it. Make the smallest change that does the task well.\n\
         - Do several things in one response where they do not depend on each other.\n\
         - Check your work with the project's own build or tests where that is quick.\n\
         - Do not commit, do not push, do not change git's configuration: the executor does that.\n\n",
    );
    text.push_str(if native_tools {
        PLAN_BY_CALL
    } else {
        PLAN_BY_TEXT
    });
    if !native_tools {
        text.push_str(TOOLS_BY_TEXT);
        for tool in WORK_TOOLS {
            text.push_str(&protocol::describe(tool));
        }
    }
    text
}

const PLAN_BY_CALL: &str = "\
Keep a plan:
- Register it with `update_plan` as soon as you know the steps, one item for each, beginning with the files that it changes: \
`src/a.rs, src/b.rs: add the parser`.
- An item whose files were all changed is done by itself. Set others to `done` when they are. An item whose files need no \
change is set to `already_satisfied`, one that cannot be done to `blocked`.
- When nothing is left, call `finish` with the final message (FINAL, in the messages you get). If the task cannot be done, begin that message with `FAILED: <why>`. \
If everything that it asks for was there before, begin it with `ALREADY_SATISFIED: <why>`.
";

const PLAN_BY_TEXT: &str = "\
Keep a plan, in fenced blocks of your response:
```SPRAG_PLAN
- [ ] src/a.rs, src/b.rs: add the parser
```
registers it, as soon as you know the steps; each item begins with the files that it changes.
```SPRAG_PLAN_UPDATE
- [x] src/a.rs, src/b.rs: add the parser
```
says what became of its items: `[x]` done, `[=]` its files need no change, `[!]` cannot be done. An item whose files were all \
changed is done by itself.
```SPRAG_FINAL
the final message
```
ends the work, when nothing is left. If the task cannot be done, begin that message with `FAILED: <why>`. If everything that it \
asks for was there before, begin it with `ALREADY_SATISFIED: <why>`.
";

const TOOLS_BY_TEXT: &str = "
Call tools with fenced blocks too, as many in one response as you like; the results come with the next message. A long value \
stands between `<<END` and a line that is just END, and nothing in it has to be escaped:
```SPRAG_TOOL edit_file
path: src/a.rs
search <<END
    old text
END
replace <<END
    new text
END
```
The tools:
";

/// A message of the session to the model.
pub fn note(note: &Note) -> String {
    match note {
        Note::FinalSuppressed {
            why,
            remaining,
            next,
        } => suppressed(*why, *remaining, next.as_deref()),
        Note::FormatError { why } => format_error(*why).to_owned(),
        Note::SliceEnded { file, changed } => slice_ended(file, *changed),
        Note::LoopWarning { kind, strong } => loop_warning(*kind, *strong),
        Note::Forced { next } => forced(next.as_deref()),
        Note::GoOn { next } => go_on(next.as_deref()),
        Note::Repair { open } => repair(open),
    }
}

fn suppressed(why: Suppressed, remaining: usize, next: Option<&str>) -> String {
    let next = next.unwrap_or("none");
    match why {
        Suppressed::EditFailed => format!(
            "FINAL is not accepted yet: an edit of the same response failed. remaining={remaining} next={next}\n\
             Look at its result, put it right, then send FINAL again."
        ),
        Suppressed::ItemsLeft if remaining == 1 => format!(
            "FINAL is not accepted yet: remaining=1 next={next}\n\
             Make the change that this item asks for. If no change is needed, send exactly this:\n{}",
            closure(next)
        ),
        Suppressed::ItemsLeft => format!(
            "FINAL is not accepted yet: remaining={remaining} next={next}\n\
             Go on with that item, or mark the items that are done, need no change, or cannot be done."
        ),
        Suppressed::NothingChanged => "FINAL is not accepted yet: nothing was changed and no item is satisfied.\n\
             Make the change that the task asks for. If none is needed, begin the final message with \
             `ALREADY_SATISFIED: <why>`; if it cannot be made, with `FAILED: <why>`."
            .to_owned(),
    }
}

/// The blocks that close the last item without a change.
fn closure(item: &str) -> String {
    format!("```SPRAG_PLAN_UPDATE\n- [x] {item}\n```\n```SPRAG_FINAL\n<your final message>\n```")
}

fn format_error(why: FormatError) -> &'static str {
    match why {
        FormatError::NoAction => {
            "Nothing in your response could be carried out: it has no tool call and no plan or FINAL block. \
             Go on with a tool call now, or end the work with FINAL."
        }
        FormatError::CutOff => {
            "Your response was cut off at its length limit before it did anything. Take a smaller step, with less text."
        }
        FormatError::BadCalls => {
            "None of your tool calls could be read. Their results say why; make them again."
        }
    }
}

fn slice_ended(file: &str, changed: bool) -> String {
    if changed {
        format!(
            "Your edits of {file} kept failing, so it was edited in a session of its own. Read it before you go on."
        )
    } else {
        format!(
            "Your edits of {file} kept failing, and a session of its own did not change it either. \
             Its items are marked as blocked; go on with the rest."
        )
    }
}

fn loop_warning(kind: LoopKind, strong: bool) -> String {
    let seen = match kind {
        LoopKind::IdenticalCalls => {
            "You have made exactly the same tool calls several times in a row"
        }
        LoopKind::Cycle => "You are repeating the same few tool calls in turn",
        LoopKind::Reasoning => {
            "You have written nearly the same several times in a row, and nothing changed"
        }
    };
    if strong {
        format!(
            "{seen}. You have been warned of it: the next time, the session ends. Edit a file, mark an item, or send FINAL."
        )
    } else {
        format!("{seen}. Do something else.")
    }
}

fn forced(next: Option<&str>) -> String {
    match next {
        Some(next) => format!(
            "There has been no progress for some time. Enough has been read. Your next response must edit a file.\n\
             Next item: {next}\n\
             If it needs no change or cannot be done, mark it so; then take the next one."
        ),
        None => "There has been no progress for some time. Your next response must edit a file, or, if the work is done, \
             send FINAL."
            .to_owned(),
    }
}

fn go_on(next: Option<&str>) -> String {
    match next {
        Some(next) => format!("Noted. Go on with a tool call. Next item: {next}"),
        None => "Noted. If the work is done, send FINAL; else go on with a tool call.".to_owned(),
    }
}

fn repair(open: &[String]) -> String {
    let mut text = String::from(
        "The work has come to a standstill. This is the last message: exactly one more response of yours is taken, with all of \
         its tool calls and blocks.\n",
    );
    if open.is_empty() {
        text.push_str(
            "Nothing is left in the plan. Make what changes are missing, and send FINAL.",
        );
        return text;
    }
    text.push_str(
        "In it, for each of these items change its files, or check it off if that is not needed; then send FINAL. New items are not taken.\n",
    );
    for item in open {
        text.push_str(&format!("- [ ] {item}\n"));
    }
    text.truncate(text.trim_end().len());
    text
}

/// The answer to an `update_plan` call.
pub fn plan_answer(ledger: &Ledger, applied: &Applied) -> String {
    let mut text = format!(
        "finished={} remaining={} next={}",
        ledger.finished(),
        ledger.remaining(),
        ledger.next().map_or("none", |item| item.text.as_str())
    );
    if applied.refused > 0 {
        text.push_str(&format!(" refused={} (no new items now)", applied.refused));
    }
    if applied.ignored > 0 {
        text.push_str(&format!(
            " ignored={} (no such item in the plan, or the plan is full)",
            applied.ignored
        ));
    }
    text
}

/// The task of a session on a single file. `task` is the outer session's task.
pub fn slice_task(slice: &Slice, task: &str) -> String {
    let file = &slice.file;
    let mut text = format!(
        "Several edits of `{file}` have failed: the text searched for was not in it exactly once. Your only task is to make \
         the change in this one file.\n\
         1. Read `{file}` as it is now.\n\
         2. Edit it with text copied exactly from what you read, or write the whole file anew.\n\
         3. Send FINAL. Do not touch other files.\n"
    );
    if !slice.items.is_empty() {
        text.push_str("\nWhat is to be done in it:\n");
        for item in &slice.items {
            text.push_str(&format!("- {item}\n"));
        }
    }
    text.push_str("\nThe task that it is part of:\n");
    text.push_str(task);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::session::Limits;

    #[test]
    fn the_system_prompt_with_tools() {
        insta::assert_snapshot!(system(true), @r#"
        You are a coding agent that works on its own in a checked-out repository. Nobody reads along, nobody answers questions or grants permission. What counts is what you change in the files.

        How to work:
        - Look at what you need, then edit. Read a file before you edit it. Make the smallest change that does the task well.
        - Do several things in one response where they do not depend on each other.
        - Check your work with the project's own build or tests where that is quick.
        - Do not commit, do not push, do not change git's configuration: the executor does that.

        Keep a plan:
        - Register it with `update_plan` as soon as you know the steps, one item for each, beginning with the files that it changes: `src/a.rs, src/b.rs: add the parser`.
        - An item whose files were all changed is done by itself. Set others to `done` when they are. An item whose files need no change is set to `already_satisfied`, one that cannot be done to `blocked`.
        - When nothing is left, call `finish` with the final message (FINAL, in the messages you get). If the task cannot be done, begin that message with `FAILED: <why>`. If everything that it asks for was there before, begin it with `ALREADY_SATISFIED: <why>`.
        "#);
    }

    #[test]
    fn the_system_prompt_with_text() {
        insta::assert_snapshot!(system(false), @r#"
        You are a coding agent that works on its own in a checked-out repository. Nobody reads along, nobody answers questions or grants permission. What counts is what you change in the files.

        How to work:
        - Look at what you need, then edit. Read a file before you edit it. Make the smallest change that does the task well.
        - Do several things in one response where they do not depend on each other.
        - Check your work with the project's own build or tests where that is quick.
        - Do not commit, do not push, do not change git's configuration: the executor does that.

        Keep a plan, in fenced blocks of your response:
        ```SPRAG_PLAN
        - [ ] src/a.rs, src/b.rs: add the parser
        ```
        registers it, as soon as you know the steps; each item begins with the files that it changes.
        ```SPRAG_PLAN_UPDATE
        - [x] src/a.rs, src/b.rs: add the parser
        ```
        says what became of its items: `[x]` done, `[=]` its files need no change, `[!]` cannot be done. An item whose files were all changed is done by itself.
        ```SPRAG_FINAL
        the final message
        ```
        ends the work, when nothing is left. If the task cannot be done, begin that message with `FAILED: <why>`. If everything that it asks for was there before, begin it with `ALREADY_SATISFIED: <why>`.

        Call tools with fenced blocks too, as many in one response as you like; the results come with the next message. A long value stands between `<<END` and a line that is just END, and nothing in it has to be escaped:
        ```SPRAG_TOOL edit_file
        path: src/a.rs
        search <<END
            old text
        END
        replace <<END
            new text
        END
        ```
        The tools:
        read_file: Reads a file of the repository, with line numbers.
          path: path from the root of the repository
          start, optional: first line, from 1
          end, optional: last line
        list_files: Lists the files of a directory and below, without ignored ones.
          path, optional: the directory; the root if left out
        search: Searches the files for a regular expression, without ignored ones.
          pattern: the regular expression
          path, optional: the file or directory to search
        edit_file: Replaces text in a file. The text searched for must occur exactly once; copy it from the file as it is, without line numbers.
          path: path from the root of the repository
          search: the text to be replaced
          replace: the text to put in its place
        write_file: Writes a whole file, new or in place of the old one.
          path: path from the root of the repository
          content: the whole content
        delete_file: Deletes a file.
          path: path from the root of the repository
        move_file: Moves or renames a file.
          from: where it is
          to: where it shall be
        run_command: Runs a shell command in the root of the repository and shows its output.
          command: the command
          timeout_seconds, optional: after how long it is ended
        "#);
    }

    #[test]
    fn every_note_to_the_model() {
        let suppressed = |why, remaining, next: Option<&str>| Note::FinalSuppressed {
            why,
            remaining,
            next: next.map(str::to_owned),
        };
        let warning = |kind, strong| Note::LoopWarning { kind, strong };
        let item = || Some("src/a.rs: add the parser");
        let notes = [
            suppressed(Suppressed::ItemsLeft, 3, item()),
            suppressed(Suppressed::ItemsLeft, 1, item()),
            suppressed(Suppressed::NothingChanged, 0, None),
            suppressed(Suppressed::EditFailed, 2, item()),
            Note::FormatError {
                why: FormatError::NoAction,
            },
            Note::FormatError {
                why: FormatError::CutOff,
            },
            Note::FormatError {
                why: FormatError::BadCalls,
            },
            Note::SliceEnded {
                file: "src/a.rs".into(),
                changed: true,
            },
            Note::SliceEnded {
                file: "src/a.rs".into(),
                changed: false,
            },
            warning(LoopKind::IdenticalCalls, false),
            warning(LoopKind::Cycle, false),
            warning(LoopKind::Reasoning, true),
            Note::Forced {
                next: item().map(str::to_owned),
            },
            Note::Forced { next: None },
            Note::Repair {
                open: vec!["src/a.rs: add the parser".into(), "write the docs".into()],
            },
            Note::Repair { open: Vec::new() },
        ];
        insta::assert_snapshot!(notes.iter().map(note).collect::<Vec<_>>().join("\n---\n"), @r#"
        FINAL is not accepted yet: remaining=3 next=src/a.rs: add the parser
        Go on with that item, or mark the items that are done, need no change, or cannot be done.
        ---
        FINAL is not accepted yet: remaining=1 next=src/a.rs: add the parser
        Make the change that this item asks for. If no change is needed, send exactly this:
        ```SPRAG_PLAN_UPDATE
        - [x] src/a.rs: add the parser
        ```
        ```SPRAG_FINAL
        <your final message>
        ```
        ---
        FINAL is not accepted yet: nothing was changed and no item is satisfied.
        Make the change that the task asks for. If none is needed, begin the final message with `ALREADY_SATISFIED: <why>`; if it cannot be made, with `FAILED: <why>`.
        ---
        FINAL is not accepted yet: an edit of the same response failed. remaining=2 next=src/a.rs: add the parser
        Look at its result, put it right, then send FINAL again.
        ---
        Nothing in your response could be carried out: it has no tool call and no plan or FINAL block. Go on with a tool call now, or end the work with FINAL.
        ---
        Your response was cut off at its length limit before it did anything. Take a smaller step, with less text.
        ---
        None of your tool calls could be read. Their results say why; make them again.
        ---
        Your edits of src/a.rs kept failing, so it was edited in a session of its own. Read it before you go on.
        ---
        Your edits of src/a.rs kept failing, and a session of its own did not change it either. Its items are marked as blocked; go on with the rest.
        ---
        You have made exactly the same tool calls several times in a row. Do something else.
        ---
        You are repeating the same few tool calls in turn. Do something else.
        ---
        You have written nearly the same several times in a row, and nothing changed. You have been warned of it: the next time, the session ends. Edit a file, mark an item, or send FINAL.
        ---
        There has been no progress for some time. Enough has been read. Your next response must edit a file.
        Next item: src/a.rs: add the parser
        If it needs no change or cannot be done, mark it so; then take the next one.
        ---
        There has been no progress for some time. Your next response must edit a file, or, if the work is done, send FINAL.
        ---
        The work has come to a standstill. This is the last message: exactly one more response of yours is taken, with all of its tool calls and blocks.
        In it, for each of these items change its files, or check it off if that is not needed; then send FINAL. New items are not taken.
        - [ ] src/a.rs: add the parser
        - [ ] write the docs
        ---
        The work has come to a standstill. This is the last message: exactly one more response of yours is taken, with all of its tool calls and blocks.
        Nothing is left in the plan. Make what changes are missing, and send FINAL.
        "#);
    }

    #[test]
    fn the_answers_to_a_plan() {
        let nothing = plan_answer(&Ledger::default(), &Applied::default());
        let refused = plan_answer(
            &Ledger::default(),
            &Applied {
                refused: 1,
                ignored: 2,
                ..Applied::default()
            },
        );
        insta::assert_snapshot!([nothing, refused].join("\n"), @r#"
        finished=0 remaining=0 next=none
        finished=0 remaining=0 next=none refused=1 (no new items now) ignored=2 (no such item in the plan, or the plan is full)
        "#);
    }

    #[test]
    fn the_task_of_a_session_on_one_file() {
        let slice = Slice {
            file: "src/a.rs".into(),
            items: vec!["src/a.rs: add the parser".into()],
            limits: Limits::default(),
        };
        insta::assert_snapshot!(slice_task(&slice, "Add a parser."), @r#"
        Several edits of `src/a.rs` have failed: the text searched for was not in it exactly once. Your only task is to make the change in this one file.
        1. Read `src/a.rs` as it is now.
        2. Edit it with text copied exactly from what you read, or write the whole file anew.
        3. Send FINAL. Do not touch other files.

        What is to be done in it:
        - src/a.rs: add the parser

        The task that it is part of:
        Add a parser.
        "#);
    }
}
