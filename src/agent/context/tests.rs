use super::*;
use proptest::prelude::*;
use serde_json::json;

fn result(output: impl Into<String>) -> Message {
    Message::ToolResult {
        id: "c".into(),
        name: "read_file".into(),
        ok: true,
        output: output.into(),
    }
}

fn wrote(name: &str, content: &str) -> Message {
    Message::Assistant {
        text: "```SPRAG_PLAN\n- [ ] a\n```".into(),
        calls: vec![ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: Arguments::Given(json!({"path": "a", "content": content})),
        }],
    }
}

/// A budget with exactly this much room.
impl Default for Budget {
    /// A lower bound for most models, without declared tools.
    fn default() -> Self {
        Self {
            window_tokens: 128_000,
            response_tokens: 16_000,
            declared_tokens: 0,
        }
    }
}

fn room(tokens: usize) -> Budget {
    Budget {
        window_tokens: tokens + tokens / 9,
        response_tokens: 0,
        declared_tokens: 0,
    }
}

fn context(budget: Budget, messages: &[Message]) -> Context {
    let mut context = Context::new(budget);
    for message in messages {
        context.push(message.clone());
    }
    context
}

fn size(messages: &[Message]) -> usize {
    messages.iter().map(message_size).sum()
}

/// The messages that are sent with a room of this many tokens.
fn fitted(messages: &[Message], tokens: usize) -> Vec<Message> {
    let mut context = context(room(tokens), messages);
    context.prepare();
    sent(&context)
}

fn sent(context: &Context) -> Vec<Message> {
    let sent = context.request().into_iter();
    sent.cloned().collect()
}

#[test]
fn the_oldest_outputs_go_first_and_the_rest_stays() {
    let long = "x y ".repeat(400);
    let messages = [
        Message::System { text: long.clone() },
        Message::Task { text: long.clone() },
        wrote("write_file", &long),
        result(long.clone()),
        wrote("update_plan", &long),
        result(long.clone()),
        result("short"),
        result(long.clone()),
    ];
    let fitted = fitted(&messages, size(&messages) - 200);
    let expected = [
        messages[0].clone(),
        messages[1].clone(),
        wrote("write_file", "(1600 bytes left out to save space)"),
        result("(1600 bytes of output left out to save space; call the tool again if needed)"),
        messages[4].clone(),
        messages[5].clone(),
        messages[6].clone(),
        messages[7].clone(),
    ];
    assert_eq!(fitted, expected);
}

#[test]
fn the_room_is_the_window_without_response_declarations_and_a_tenth() {
    let budget = Budget {
        window_tokens: 12_000,
        response_tokens: 2_000,
        declared_tokens: 700,
    };
    assert_eq!(Context::new(budget).room(), 8_300);
    let none = Budget {
        window_tokens: 1,
        response_tokens: 2,
        declared_tokens: 3,
    };
    assert_eq!(Context::new(none).room(), 0);
}

#[test]
fn what_was_too_long_has_a_quarter_less_the_next_time_wherever_the_budget_is() {
    let output = "some words of it ".repeat(60);
    let messages = vec![result(output); 40];
    let mut context = context(room(1_000_000), &messages);
    context.prepare();
    let mut sizes = vec![size(&sent(&context))];
    for _ in 0..3 {
        context.refused();
        context.prepare();
        sizes.push(size(&sent(&context)));
        let [.., before, now] = sizes[..] else {
            panic!()
        };
        assert!(now * 4 <= before * 3, "{sizes:?}");
        assert!(now * 2 >= before, "{sizes:?}");
    }
    assert_eq!(context.afresh().room(), context.room());
}

#[test]
fn a_provider_that_counts_more_than_was_estimated_is_given_less() {
    let messages = vec![result("some words of it ".repeat(60)); 40];
    let mut context = context(room(20_000), &messages);
    context.prepare();
    let asked = u64::try_from(context.asked).unwrap();
    let roomy = context.room();
    context.counted(asked / 2);
    assert_eq!(context.room(), roomy);
    context.counted(asked * 5 / 4);
    assert_eq!(context.room(), roomy * 8 / 10);
    context.counted(asked);
    assert_eq!(context.room(), roomy * 8 / 10, "what was learned stays");
    context.counted(u64::MAX);
    assert_eq!(context.room(), roomy / 2);
}

#[test]
fn a_short_request_says_nothing_of_the_vocabulary() {
    let mut context = context(room(20_000), &[result("a few words")]);
    context.prepare();
    context.counted(4_000);
    assert_eq!(context.room(), 20_000);
}

#[test]
fn declarations_take_about_what_they_hold() {
    let text: usize = tool::all().map(|it| it.schema.to_string().len()).sum();
    let tokens = declared_tokens(&[]);
    assert!(tokens * 6 > text && tokens * 2 < text, "{tokens} {text}");
}

#[test]
fn outputs_of_one_response_share_half_of_the_room_and_keep_both_ends() {
    let lines: Vec<String> = (0..2_000).map(|n| format!("line number {n}")).collect();
    let text = lines.join("\n");
    let mut context = Context::new(room(4_000));
    context.push_results(vec![
        result(text.clone()),
        result(text.clone()),
        result(text),
    ]);
    context.prepare();
    assert_eq!(context.size(), size(&sent(&context)));
    let outputs: Vec<String> = sent(&context)
        .into_iter()
        .map(|message| match message {
            Message::ToolResult { output, .. } => output,
            other => panic!("{other:?}"),
        })
        .collect();
    let sizes: Vec<usize> = outputs.iter().map(|output| estimate(output)).collect();
    assert!(sizes[0] <= 1_000 && sizes[0] > 800, "{sizes:?}");
    assert!(sizes[1] <= 1_000 && sizes[1] > 800, "{sizes:?}");
    assert!(
        sizes[2] <= 2_000 - sizes[0] - sizes[1] + MIN_OUTPUT_TOKENS,
        "{sizes:?}"
    );
    let output = &outputs[0];
    assert!(
        output.starts_with("line number 0\nline number 1\n"),
        "{output}"
    );
    assert!(output.ends_with("\nline number 1999"), "{output}");
    let notice = output.lines().find(|line| line.starts_with('[')).unwrap();
    assert!(notice.ends_with("bytes left out here to save space; ask for less at a time]"));
}

#[test]
fn one_long_line_is_cut_between_characters() {
    let text = "größer ".repeat(3_000);
    let (cut, tokens) = within(&text, 300);
    assert!(estimate(&cut) <= 300 && cut.len() > 200, "{cut}");
    assert!(
        cut.starts_with("größer") && cut.ends_with("größer "),
        "{cut}"
    );
    assert_eq!(tokens, estimate(&cut));
    assert_eq!(within("short", 300), ("short".into(), estimate("short")));
}

fn message() -> impl Strategy<Value = Message> {
    let text = |max: usize| (0..max).prop_map(|len| "é1 ".repeat(len / 4));
    prop_oneof![
        text(50).prop_map(|text| Message::Note { text }),
        text(900).prop_map(result),
        text(300).prop_map(result),
        text(900).prop_map(|text| wrote("write_file", &text)),
        text(200).prop_map(|text| wrote("update_plan", &text)),
    ]
}

fn conversation() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..40).prop_map(|rest| {
        let task = Message::Task {
            text: "t".repeat(300),
        };
        std::iter::once(task).chain(rest).collect()
    })
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::System { .. } => "system",
        Message::Task { .. } => "task",
        Message::Assistant { .. } => "assistant",
        Message::ToolResult { .. } => "result",
        Message::Note { .. } => "note",
    }
}

proptest! {
    #[test]
    fn the_budget_holds_unless_only_what_must_stay_is_left(
        messages in conversation(),
        tokens in 9usize..20_000,
    ) {
        let left = fitted(&messages, tokens);
        let shortened = |message: &Message| shorten(message).unwrap_or_else(|| message.clone());
        let shortest: Vec<Message> = messages.iter().map(shortened).collect();
        prop_assert!(size(&left) <= tokens || left == shortest);
        let roles = |list: &[Message]| list.iter().map(role).collect::<Vec<_>>();
        prop_assert_eq!(roles(&left), roles(&messages));
        for (old, new) in messages.iter().zip(&left) {
            prop_assert!(new == old || *new == shortened(old));
            if matches!(role(old), "task" | "note" | "system") {
                prop_assert_eq!(old, new);
            }
        }
        if size(&messages) <= tokens {
            prop_assert_eq!(&left, &messages);
        }
    }

    #[test]
    fn the_beginning_stays_for_many_steps(messages in conversation(), tokens in 2_000usize..8_000) {
        let mut context = Context::new(room(tokens));
        let mut last: Vec<Message> = Vec::new();
        let mut changes = 0;
        for message in &messages {
            context.push(message.clone());
            context.prepare();
            let next = sent(&context);
            if next[..last.len()] != last[..] {
                changes += 1;
            }
            last = next;
        }
        let bites = size(&messages).saturating_sub(tokens).div_ceil(tokens / 4);
        prop_assert!(changes <= bites + 1, "{changes} changes for {bites} bites");
    }
}
