//! All texts of the built-in agent for its model.

use super::ledger::{Applied, Ledger};
use super::session::{FormatError, LoopKind, Note, Slice, Suppressed};

/// The answer to a `finish` call.
pub const NOTED: &str = "noted";

/// The system prompt.
pub const SYSTEM: &str = "\
You are a coding agent that works on its own in a checked-out repository. Nobody reads along, nobody answers \
questions or grants permission. What counts is what you change in the files.

How to work:
- Look at what you need, then edit. Read a file before you edit it. Make the smallest change that does the task well.
- Do several things in one response where they do not depend on each other.
- Check your work with the project's own build or tests where that is quick.
- Do not commit, do not push, do not change git's configuration: the executor does that.

Keep a plan:
- Register it with `update_plan` as soon as you know the steps, one item for each, beginning with the files that it changes: \
`src/a.rs, src/b.rs: add the parser`.
- An item whose files were all changed is done by itself. Set others to `done` when they are. An item whose files need no \
change is set to `already_satisfied`, one that cannot be done to `blocked`.
- When nothing is left, call `finish` with the final message (FINAL, in the messages you get). If the task cannot be done, begin that message with `FAILED: <why>`. \
If everything that it asks for was there before, begin it with `ALREADY_SATISFIED: <why>`.
";

/// A message of the session to the model.
pub fn note(note: &Note) -> String {
    match note {
        Note::FinalSuppressed {
            why,
            remaining,
            next,
            unchanged,
        } => suppressed(*why, *remaining, next.as_deref(), *unchanged),
        Note::FormatError { why } => format_error(*why).to_owned(),
        Note::SliceEnded { file, changed } => slice_ended(file, *changed),
        Note::LoopWarning { kind, strong } => loop_warning(*kind, *strong),
        Note::Forced { next } => forced(next.as_deref()),
        Note::GoOn { next } => go_on(next.as_deref()),
        Note::Repair { open, unchanged } => repair(open, *unchanged),
    }
}

fn suppressed(why: Suppressed, remaining: usize, next: Option<&str>, unchanged: bool) -> String {
    let next = next.unwrap_or("none");
    match why {
        Suppressed::EditFailed => format!(
            "FINAL is not accepted yet: an edit of the same response failed. remaining={remaining} next={next}\n\
             Look at its result, put it right, then send FINAL again."
        ),
        Suppressed::ItemsLeft if remaining == 1 => format!(
            "FINAL is not accepted yet: remaining=1 next={next}\n\
             Make the change that this item asks for. If no change is needed, send exactly this:\n{}",
            closure(next, unchanged)
        ),
        Suppressed::ItemsLeft => format!(
            "FINAL is not accepted yet: remaining={remaining} next={next}\n\
             Go on with that item, or mark the items that are done, need no change, or cannot be done.{}",
            if unchanged { NOTHING_NEEDED } else { "" }
        ),
        Suppressed::NothingChanged => "FINAL is not accepted yet: nothing was changed and no item is satisfied.\n\
             Make the change that the task asks for. If none is needed, begin the final message with \
             `ALREADY_SATISFIED: <why>`; if it cannot be made, with `FAILED: <why>`."
            .to_owned(),
    }
}

/// How to end a session in which nothing had to be changed.
const NOTHING_NEEDED: &str =
    " If none of them needs a change, begin FINAL with `ALREADY_SATISFIED: <why>`.";

/// The blocks that close the last item without a change.
fn closure(item: &str, unchanged: bool) -> String {
    let message = if unchanged {
        "ALREADY_SATISFIED: <why nothing needs to be changed>"
    } else {
        "<your final message>"
    };
    format!("```SPRAG_PLAN_UPDATE\n- [x] {item}\n```\n```SPRAG_FINAL\n{message}\n```")
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
    let then = if strong {
        "You have been warned of it: the next time, the session ends. Edit a file, mark an item, or send FINAL."
    } else {
        "Do something else."
    };
    format!("{seen}. {then}")
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

fn repair(open: &[String], unchanged: bool) -> String {
    let mut text = String::from(
        "The work has come to a standstill. This is the last message: exactly one more response of yours is taken, with all of \
         its tool calls and blocks.\n",
    );
    if open.is_empty() {
        text.push_str("No item is left to do. Make what changes are missing, and send FINAL.");
        if unchanged {
            text.push_str(" If none is missing, begin it with `ALREADY_SATISFIED: <why>`.");
        }
        return text;
    }
    text.push_str(
        "In it, for each of these items change its files, or check it off if that is not needed; then send FINAL. New items are not taken.",
    );
    if unchanged {
        text.push_str(NOTHING_NEEDED);
    }
    text.push('\n');
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
    use crate::session::Limits;

    #[test]
    fn the_system_prompt() {
        insta::assert_snapshot!(SYSTEM, @r#"
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
    fn every_note_to_the_model() {
        let suppressed = |why, remaining, next: Option<&str>| Note::FinalSuppressed {
            why,
            remaining,
            next: next.map(str::to_owned),
            unchanged: false,
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
                unchanged: false,
            },
            Note::Repair {
                open: Vec::new(),
                unchanged: false,
            },
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
        No item is left to do. Make what changes are missing, and send FINAL.
        "#);
    }

    #[test]
    fn where_nothing_was_changed_the_words_for_that_are_asked_for() {
        let suppressed = |remaining| Note::FinalSuppressed {
            why: Suppressed::ItemsLeft,
            remaining,
            next: Some("src/a.rs: add the parser".into()),
            unchanged: true,
        };
        let repair = |open: &[&str]| Note::Repair {
            open: open.iter().map(ToString::to_string).collect(),
            unchanged: true,
        };
        let notes = [suppressed(1), suppressed(2), repair(&["a"]), repair(&[])];
        for said in notes.iter().map(note) {
            assert!(said.contains("ALREADY_SATISFIED: <why"), "{said}");
        }
    }

    #[test]
    fn the_answers_to_a_plan() {
        let nothing = plan_answer(&Ledger::default(), &Applied::default());
        let refused = plan_answer(
            &Ledger::default(),
            &Applied {
                refused: 1,
                ignored: 2,
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
