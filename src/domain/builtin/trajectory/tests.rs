use super::*;
use crate::builtin::session::{
    Limits, ModelRequest, Observation, OpenCall, Response, Slice, SliceEnded, Step, ToolResult,
};
use crate::builtin::tool::{Arguments, ToolCall, ToolRequest};
use crate::output_schema::OutputSchema;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn header(slice: Option<&str>) -> Line {
    Line::Session(Box::new(Header {
        v: VERSION,
        sprag: "0.1.0".into(),
        provider: "openai".into(),
        model: "m".into(),
        turn: TurnName {
            task: "fix".into(),
            attempt: 1,
            turn: 2,
            purpose: "nudge".into(),
        },
        slice: slice.map(str::to_owned),
        limits: Limits {
            cost_usd: Some(0.1),
            ..Limits::default()
        },
        budget: Budget {
            window_tokens: 10,
            response_tokens: 2,
            declared_tokens: 0,
        },
        messages: vec![
            Message::System { text: "s".into() },
            Message::Task { text: "t".into() },
        ],
    }))
}

fn intent(intent: Step) -> Line {
    Line::Intent {
        intent,
        request: None,
    }
}

fn ask() -> Line {
    Line::Intent {
        intent: Step::AskModel(ModelRequest::default()),
        request: Some(Request::of(&[&Arc::new(Message::Note {
            text: "n".into(),
        })])),
    }
}

fn observed(observation: Observation) -> Line {
    Line::Observed { observation }
}

fn said(text: &str) -> Line {
    observed(Observation::ModelResponded(Response {
        text: text.into(),
        ..Response::default()
    }))
}

fn end() -> Line {
    intent(Step::End {
        exit: SessionExit::Submitted,
    })
}

fn slice() -> Line {
    intent(Step::FixSlice(Slice {
        file: "a.rs".into(),
        items: Vec::new(),
        limits: Limits::default(),
    }))
}

fn sliced() -> Line {
    observed(Observation::SliceEnded(SliceEnded {
        file: "a.rs".into(),
        ..SliceEnded::default()
    }))
}

fn apply(count: usize) -> Line {
    let call = OpenCall {
        id: "c".into(),
        request: ToolRequest::ListFiles { path: None },
    };
    intent(Step::ApplyTools {
        calls: vec![call; count],
    })
}

fn applied(count: usize) -> Line {
    observed(Observation::ToolsApplied {
        results: vec![ToolResult::default(); count],
        elapsed_ms: 1,
        inspected: None,
    })
}

fn text(lines: &[Line]) -> String {
    let lines = lines
        .iter()
        .map(|line| serde_json::to_string(line).unwrap());
    lines.map(|line| line + "\n").collect()
}

fn read_text(text: &str) -> Result<Recording, Unreadable> {
    read(text.as_bytes())
}

fn session() -> Vec<Line> {
    vec![
        header(None),
        ask(),
        said("one"),
        apply(2),
        applied(2),
        ask(),
        said("two"),
        end(),
    ]
}

fn with_slice() -> Vec<Line> {
    let inner = [header(Some("a.rs")), ask(), said("inner"), end()];
    let mut lines = vec![header(None), ask(), said("outer"), slice()];
    lines.extend(inner);
    lines.extend([sliced(), ask(), said("last"), end()]);
    lines
}

/// The structure of a recording: the endings of the sessions, and the responses of each.
fn shape(recording: &Recording) -> Vec<(Ending, Vec<String>)> {
    let sessions = recording.sessions.iter();
    sessions
        .map(|session| {
            let responses = session.responses().into_iter();
            (
                session.ending,
                responses.map(|it| it.text.clone()).collect(),
            )
        })
        .collect()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn sessions_are_read_one_after_the_other_with_those_inside_of_them() {
    let lines = [session(), with_slice()].concat();
    let recording = read_text(&text(&lines)).unwrap();
    assert_eq!(
        shape(&recording),
        [
            (Ending::Ended, texts(&["one", "two"])),
            (Ending::Ended, texts(&["outer", "inner", "last"])),
        ]
    );
    assert_eq!(recording.sessions[1].line, 9);
    assert_eq!(recording.sessions[1].exit(), Some(SessionExit::Submitted));
    let inner = recording.sessions[1]
        .entries
        .iter()
        .find_map(|it| it.inner.as_ref())
        .unwrap();
    assert_eq!((inner.line, inner.ending), (13, Ending::Ended));
    assert_eq!(inner.header.slice.as_deref(), Some("a.rs"));
    let request = recording.sessions[0].entries[0].request.clone();
    assert_eq!(request.unwrap().blake3.len(), 64);
}

#[test]
fn a_header_is_on_one_line_that_says_what_it_is() {
    let line = serde_json::to_string(&header(None)).unwrap();
    assert!(
        line.starts_with(r#"{"record":"session","v":1,"sprag":"0.1.0","provider":"openai","#),
        "{line}"
    );
    assert!(
        line.contains(r#""task":"fix","attempt":1,"turn":2,"purpose":"nudge","limits""#),
        "{line}"
    );
}

#[test]
fn what_a_crash_or_a_cap_leaves_is_read_as_far_as_it_goes() {
    let whole = text(&session());
    let torn = whole.trim_end().strip_suffix("}}").unwrap();
    let recording = read_text(torn).unwrap();
    assert_eq!(
        shape(&recording),
        [(Ending::Torn { line: 8 }, texts(&["one", "two"]))]
    );
    assert_eq!(recording.sessions[0].exit(), None);

    let unfinished = text(&session()[..5]);
    assert_eq!(
        shape(&read_text(&unfinished).unwrap()),
        [(Ending::Open, texts(&["one"]))]
    );
    // The start of the next session shows that the previous one was cut off.
    let followed = unfinished.clone() + &whole;
    let endings = shape(&read_text(&followed).unwrap());
    assert_eq!(endings[0].0, Ending::Open);
    assert_eq!(endings[1].0, Ending::Ended);

    let notice = "[sprag: 1234 bytes left out here]\n";
    let left_out = Ending::LeftOut {
        line: 6,
        bytes: 1234,
    };
    for half_a_line in ["", "{\"record\":\"inte\n"] {
        let capped = format!("{unfinished}{half_a_line}{notice}{}", text(&session()[5..]));
        let recording = read_text(&capped).unwrap();
        let expected = match half_a_line {
            "" => left_out,
            _ => Ending::LeftOut {
                line: 7,
                bytes: 1234,
            },
        };
        assert_eq!(shape(&recording), [(expected, texts(&["one"]))]);
    }
    let two = format!("{unfinished}{notice}{}{whole}", text(&session()[5..]));
    assert_eq!(
        shape(&read_text(&two).unwrap()),
        [
            (left_out, texts(&["one"])),
            (Ending::Ended, texts(&["one", "two"]))
        ]
    );
}

#[test]
fn what_cannot_be_read_is_said_with_its_line() {
    let joined = |lines: &[Line]| text(lines);
    let newer = text(&session()).replacen("\"v\":1", "\"v\":2", 1);
    let nameless = text(&session()).replacen("\"v\":1,", "", 1);
    let cases: Vec<(String, usize, &str, &str)> = vec![
        (
            String::new(),
            1,
            "nothing was recorded",
            "the header of a session",
        ),
        (
            "\n\n".into(),
            2,
            "nothing was recorded",
            "the header of a session",
        ),
        (
            "garbage\n".into(),
            1,
            "this is not a line of JSON",
            "the header of a session",
        ),
        (
            "gar".into(),
            1,
            "this is not a line of JSON",
            "the header of a session",
        ),
        ("\u{0}\n".into(), 1, "this is not a line of JSON", "header"),
        (
            "[{\"role\":\"system\"}]\n".into(),
            1,
            "a list, as transcripts of versions",
            "header",
        ),
        (
            "{\"event\":\"run.started\"}\n".into(),
            1,
            "this is not a header",
            "header",
        ),
        (newer, 1, "version 2 of the format", "version 1"),
        (nameless, 1, "a header without a version", "version 1"),
        (
            "{\"record\":\"session\",\"v\":1}\n".into(),
            1,
            "this is not a record of version 1 (missing field",
            "header",
        ),
        (
            joined(&[header(None), said("x")]),
            2,
            "the observation `model_responded`",
            "the next step",
        ),
        (
            joined(&[header(None), ask(), applied(1)]),
            3,
            "the observation `tools_applied`",
            "what came of the step `ask_model`",
        ),
        (
            joined(&[header(None), apply(1), applied(2)]),
            3,
            "the observation `tools_applied`",
            "what came of the step `apply_tools`",
        ),
        (
            joined(&[header(None), ask(), ask()]),
            3,
            "the step `ask_model`",
            "what came of the step `ask_model`",
        ),
        (
            joined(&[header(None), end(), ask()]),
            3,
            "the step `ask_model`",
            "the header of a session",
        ),
        (
            joined(&[header(None), ask(), header(Some("a.rs"))]),
            3,
            "a session on a.rs alone begins",
            "what came of the step `ask_model`",
        ),
        (
            joined(&[header(None), slice(), header(Some("b.rs"))]),
            3,
            "a session on b.rs alone begins",
            "the header of the session on a.rs",
        ),
        (
            format!("{}{{\"record\":\"x\"}}\n", joined(&[header(None)])),
            2,
            "this is not a record of version 1 (unknown variant",
            "the next step",
        ),
    ];
    for (text, line, found, expected) in cases {
        let error = read_text(&text).unwrap_err();
        assert_eq!(error.line, line, "{error} in {text}");
        assert!(error.found.contains(found), "{error} in {text}");
        assert!(error.expected.contains(expected), "{error} in {text}");
    }
}

#[test]
fn the_schema_takes_every_line() {
    let schema = OutputSchema::parse(&schema().to_string()).unwrap();
    for line in [session(), with_slice()].concat() {
        let value = serde_json::to_value(&line).unwrap();
        let judged = schema.judge(value);
        assert!(judged.value().is_some(), "{judged:?}");
    }
    let too_little = schema.judge(serde_json::json!({"record": "session"}));
    assert!(too_little.value().is_none());
}

#[test]
fn what_was_added_since_the_last_request_is_enough_to_describe_the_next() {
    let budget = Budget {
        window_tokens: 6_000,
        response_tokens: 100,
        declared_tokens: 0,
    };
    let mut session = Session::new(Limits::default(), budget, "s".into(), "t".into());
    let mut digest = RequestDigest::default();
    let mut shortened = BTreeSet::new();
    for number in 0..60 {
        match session.next_step() {
            Step::AskModel(_) => {
                let whole = Request::of(&session.request());
                // A request that failed is made again.
                assert_eq!(
                    [digest.of(&session), digest.of(&session)],
                    [whole.clone(), whole]
                );
                shortened.insert(session.shortened());
                session.observe(Observation::ModelResponded(calls_a_command(number)));
            }
            Step::ApplyTools { .. } => session.observe(Observation::ToolsApplied {
                results: vec![ToolResult {
                    ok: true,
                    output: "a \"line\"\n".repeat(100),
                    changed: vec![format!("{number}")],
                    ..ToolResult::default()
                }],
                elapsed_ms: 0,
                inspected: None,
            }),
            step => panic!("{step:?}"),
        }
    }
    assert!(shortened.len() > 3, "{shortened:?}");
}

fn calls_a_command(number: u32) -> Response {
    Response {
        calls: vec![ToolCall {
            id: number.to_string(),
            name: "run_command".into(),
            arguments: Arguments::Given(serde_json::json!({"command": format!("c {number}")})),
        }],
        ..Response::default()
    }
}

proptest! {
    #[test]
    fn wherever_it_is_cut_it_is_read_up_to_there(cut in 0_usize..4_000) {
        let whole = text(&with_slice());
        let cut = cut.min(whole.len());
        let first = whole.find('\n').unwrap();
        match read(&whole.as_bytes()[..cut]) {
            Ok(recording) => {
                prop_assert!(cut >= first);
                let all = read_text(&whole).unwrap();
                let (part, all) = (&recording.sessions[0], &all.sessions[0]);
                prop_assert!(part.entries.len() <= all.entries.len());
                let same = part.entries.iter().zip(&all.entries);
                for (one, other) in same {
                    prop_assert_eq!(&one.record, &other.record);
                }
                let ended = part.ending == Ending::Ended;
                prop_assert_eq!(ended, part.entries.len() == all.entries.len());
            }
            Err(error) => prop_assert!(cut < first, "{error}"),
        }
    }

    #[test]
    fn no_bytes_make_it_give_up_otherwise_than_with_an_error(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        at in 0_usize..2_000,
    ) {
        let mut whole = text(&with_slice()).into_bytes();
        let at = at.min(whole.len());
        whole.splice(at..at, bytes);
        let _ = read(&whole);
    }
}
