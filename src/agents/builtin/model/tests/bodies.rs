//! A body that is written over the last one is the same as one that is written whole.

use super::*;
use proptest::prelude::*;

/// A change to a conversation between two requests.
#[derive(Debug, Clone)]
enum Change {
    /// A response with calls of these ids, and whether it has parts that are sent back.
    Reply(String, Vec<u8>, bool),
    Result(u8, bool, String),
    Note(String),
    /// This many messages at the beginning are shortened.
    Shorten(usize),
    /// A session on one file begins, or it ends.
    Nest,
    DropReasoning,
    DropEncryption,
    DropTools,
}

fn change() -> impl Strategy<Value = Change> {
    let text = || "[ -~\n\té\u{1}]{0,12}";
    let calls = prop::collection::vec(0_u8..12, 0..3);
    prop_oneof![
        5 => (text(), calls, any::<bool>()).prop_map(|(text, calls, kept)| Change::Reply(text, calls, kept)),
        5 => (0_u8..12, any::<bool>(), text()).prop_map(|(id, ok, text)| Change::Result(id, ok, text)),
        3 => text().prop_map(Change::Note),
        1 => (0_usize..8).prop_map(Change::Shorten),
        1 => Just(Change::Nest),
        1 => Just(Change::DropReasoning),
        1 => Just(Change::DropEncryption),
        1 => Just(Change::DropTools),
    ]
}

fn conversation() -> Vec<Arc<Message>> {
    let system = Message::System { text: "s".into() };
    shared([system, Message::Task { text: "t".into() }])
}

fn reply(wire: WireFormat, text: &str, ids: &[u8], is_kept: bool) -> Reply {
    let calls = ids.iter().map(|id| ToolCall {
        id: id.to_string(),
        name: "read_file".into(),
        arguments: Arguments::Given(json!({"path": text})),
    });
    let field = match wire {
        WireFormat::Chat => "reasoning_content",
        _ => "data",
    };
    Reply {
        text: text.into(),
        calls: calls.collect(),
        signatures: vec![is_kept.then(|| text.to_owned()); ids.len()],
        thoughts: if is_kept {
            vec![json!({"type": "redacted_thinking", (field): text.repeat(20)})]
        } else {
            Vec::new()
        },
        ..Reply::default()
    }
}

fn shortened(message: &Message) -> Message {
    match message.clone() {
        Message::ToolResult { id, name, ok, .. } => Message::ToolResult {
            id,
            name,
            ok,
            output: "cut".into(),
        },
        other => other,
    }
}

/// The body of the next request, and the same without the last one.
fn both_bodies(model: &mut Model, messages: &[Arc<Message>]) -> [String; 2] {
    let messages: Vec<&Arc<Message>> = messages.iter().collect();
    let mut text = || String::from_utf8(model.write_body(&messages).unwrap().into()).unwrap();
    let over_the_last = text();
    let last = std::mem::take(&mut model.body);
    let mut text = || String::from_utf8(model.write_body(&messages).unwrap().into()).unwrap();
    let whole = text();
    model.body = last;
    [over_the_last, whole]
}

fn model(name: &str) -> Model {
    let access = Access {
        // Little reasoning is kept, so that some is dropped.
        window_tokens: 2_000,
        ..access(name)
    };
    let network = Network::direct();
    Model::new(
        &access,
        &Options::default(),
        &network,
        Duration::from_secs(1),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_body_does_not_depend_on_the_last_one(
        name in prop::sample::select(MODELS),
        changes in prop::collection::vec(change(), 1..30),
    ) {
        let mut model = model(name);
        let (mut messages, mut other) = (conversation(), conversation());
        for change in changes {
            match change {
                Change::Reply(text, ids, is_kept) => {
                    let mut reply = reply(model.access.wire, &text, &ids, is_kept);
                    model.keep_reasoning(&mut reply);
                    let Reply { text, calls, .. } = reply;
                    messages.push(Arc::new(Message::Assistant { text, calls }));
                }
                Change::Result(id, ok, output) => messages.push(Arc::new(Message::ToolResult {
                    id: id.to_string(),
                    name: "read_file".into(),
                    ok,
                    output,
                })),
                Change::Note(text) => messages.push(Arc::new(Message::Note { text })),
                Change::Shorten(count) => messages
                    .iter_mut()
                    .take(count)
                    .for_each(|message| *message = Arc::new(shortened(message))),
                Change::Nest => std::mem::swap(&mut messages, &mut other),
                Change::DropReasoning => model.drop_reasoning(),
                Change::DropEncryption => model.encrypted = false,
                Change::DropTools => model.tools = None,
            }
            let [over_the_last, whole] = both_bodies(&mut model, &messages);
            prop_assert_eq!(&over_the_last, &whole);
            prop_assert!(serde_json::from_str::<Value>(&whole).is_ok(), "{}", whole);
        }
    }
}

/// Where the bytes of the last body were replaced, only what is written again is readable.
#[test]
fn what_has_not_changed_is_not_written_again() {
    for name in MODELS {
        let mut model = model(name);
        let mut messages = conversation();
        for number in 0..5_u8 {
            let mut reply = reply(model.access.wire, "said", &[number], false);
            model.keep_reasoning(&mut reply);
            let Reply { text, calls, .. } = reply;
            messages.push(Arc::new(Message::Assistant { text, calls }));
            messages.push(Arc::new(Message::ToolResult {
                id: number.to_string(),
                name: "read_file".into(),
                ok: true,
                output: "printed".into(),
            }));
            let sent: Vec<&Arc<Message>> = messages.iter().collect();
            let body = model.write_body(&sent).unwrap();
            let text = String::from_utf8(body.to_vec()).unwrap();
            drop(body);
            let known = text.matches("printed").count();
            // The mark of the newest message moves in the format of Anthropic.
            let is_marked = model.access.wire == WireFormat::Messages;
            let again = usize::from(is_marked && number > 0);
            assert_eq!(known, 1 + again, "{name}: {text}");
            model.body.replace("printed", "PRINTED");
        }
    }
}
