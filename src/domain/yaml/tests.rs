use super::*;
use proptest::prelude::*;

fn at(line: usize, column: usize) -> Position {
    Position { line, column }
}

fn fault(text: &str) -> (Position, String) {
    let fault = parse(text).expect_err("the text must be refused");
    (fault.at, fault.message)
}

fn root(text: &str) -> Node {
    parse(text).expect("valid").expect("a value")
}

/// Collects the source of every scalar value, to check that spans are exact.
fn slices<'a>(text: &'a str, node: &Node, found: &mut Vec<&'a str>) {
    match &node.value {
        Value::Scalar { .. } => found.push(&text[node.span.clone()]),
        Value::List { items } => items.iter().for_each(|item| slices(text, item, found)),
        Value::Map { entries, .. } => {
            for entry in entries {
                found.push(&text[entry.key_span.clone()]);
                slices(text, &entry.value, found);
            }
        }
    }
}

#[test]
fn spans_are_exact_in_every_style() {
    let text =
        "a: x y # c\r\n\"b\": 'it''s'\nüé: {k: [1, \"2\"], m: z}\nl:\n- p\n- q: r  \nlast: end";
    let mut found = Vec::new();
    slices(text, &root(text), &mut found);
    assert_eq!(
        found,
        [
            "a", "x y", "\"b\"", "'it''s'", "üé", "k", "1", "\"2\"", "m", "z", "l", "p", "q", "r",
            "last", "end"
        ]
    );
}

#[test]
fn flow_collections_span_their_brackets() {
    let text = "a: {k: [1, 2]}\n";
    let root = root(text);
    let map = root.get("a").expect("a");
    assert_eq!(&text[map.span.clone()], "{k: [1, 2]}");
    assert_eq!(&text[map.get("k").expect("k").span.clone()], "[1, 2]");
}

#[test]
fn places_count_lines_and_characters_from_one() {
    let root = root("a: 1\nüü: [x,\n   y]\n");
    assert_eq!(root.entries()[1].key_at, at(2, 1));
    let items = root.entries()[1].value.items();
    assert_eq!((items[0].at, items[1].at), (at(2, 6), at(3, 4)));
}

#[test]
fn anchors_aliases_and_merges_are_resolved_and_not_own() {
    let root = root("base: &b {x: 1, y: 2}\nuse: *b\nmore:\n  <<: *b\n  y: 3\nplain: {z: 1}\n");
    assert_eq!(
        root.get("use")
            .and_then(|n| n.get("x"))
            .and_then(Node::text),
        Some("1")
    );
    let more = root.get("more").expect("more");
    let seen: Vec<_> = more
        .entries()
        .iter()
        .map(|e| (e.key.as_str(), e.value.text(), e.merged))
        .collect();
    assert_eq!(seen, [("y", Some("3"), false), ("x", Some("1"), true)]);
    let own: Vec<_> = root.entries().iter().map(|e| e.value.own).collect();
    assert_eq!(own, [false, false, true, true]);
}

#[test]
fn nothing_is_told_from_text() {
    let root = root("a:\nb: ~\nc: null\nd: ''\ne: 'null'\n");
    let nulls: Vec<_> = root.entries().iter().map(|e| e.value.is_null()).collect();
    assert_eq!(nulls, [true, true, true, false, false]);
    assert_eq!(parse("# only a comment\n"), Ok(None));
    assert_eq!(parse(""), Ok(None));
}

#[test]
fn what_is_not_a_document_of_ours_is_refused_at_its_place() {
    for (text, place, message) in [
        (
            "a: 1\n\tb: 2\n",
            at(2, 1),
            "a tab cannot indent YAML: use spaces",
        ),
        (
            "a:\n  b: 1\n \tc: 2\n",
            at(3, 2),
            "a tab cannot indent YAML: use spaces",
        ),
        (
            "a: 1\n---\nb: 2\n",
            at(2, 1),
            "a second document begins here, but a file holds one (remove the `---` line)",
        ),
        (
            "a: 1\nb: 2\na: 3\n",
            at(3, 1),
            "`a` is given twice, first on line 1",
        ),
        (
            "? [x]\n: 1\n",
            at(1, 3),
            "a key must be a word, not a list or a mapping",
        ),
        (
            "a: !env X\n",
            at(1, 4),
            "the tag `!env` has no meaning here: remove it",
        ),
    ] {
        assert_eq!(fault(text), (place, message.to_owned()), "{text:?}");
    }
}

#[test]
fn a_syntax_error_has_its_line() {
    let (place, message) = fault("title: x\ntasks: [a, b\nmore: {\n");
    assert!(place.line >= 2, "{place:?}");
    assert!(message.starts_with("not valid YAML: "), "{message}");
}

#[test]
fn a_frequent_syntax_error_names_its_remedy() {
    let quotes = "put a text that contains a colon and a space in quotes";
    let indent = "indent what belongs together alike";
    for (text, place, remedy) in [
        ("title: Fix: the date\n", at(1, 11), quotes),
        ("a: 1\n  b: 2\n", at(2, 4), quotes),
        ("a:\n  - b: 1\n   c: 2\n", at(3, 4), indent),
    ] {
        let (found, message) = fault(text);
        assert_eq!(found, place, "{message}");
        assert!(message.contains(remedy), "{message}");
    }
}

#[test]
fn aliases_cannot_multiply() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        bomb.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            [alias.as_str(); 9].join(", ")
        ));
    }
    assert_eq!(
        fault(&bomb).1,
        "too many values, aliases counted as often as they are used"
    );
}

#[test]
fn nesting_is_bounded_however_it_is_reached() {
    let mut chain = "a0: &a0 [x]\n".to_owned();
    for level in 1..100 {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert_eq!(fault(&chain).1, "values nest deeper than 64 levels");
    let flow = format!("a: {}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(fault(&flow).0.line, 1);
    let block: String = (0..200).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(parse(&block).is_err());
}

#[test]
fn json_is_read_with_its_own_errors_and_places() {
    let text = "{\n\t\"a\": \"x\\ty\\ud83d\\ude00\\/\",\n\t\"b\": [1, null]\n}\n";
    let root = parse_json(text).expect("valid").expect("a value");
    assert_eq!(root.get("a").and_then(Node::text), Some("x\ty😀/"));
    assert_eq!(
        &text[root.entry("b").expect("b").value.items()[0].span.clone()],
        "1"
    );
    let fault = parse_json("{\"a\": 1,}").expect_err("a trailing comma");
    assert_eq!(fault.at, at(1, 9));
    assert_eq!(fault.message, "not valid JSON: key must be a string");
    assert!(parse_json("a: 1").is_err());
}

#[test]
fn a_value_is_described_by_how_it_is_written() {
    let root = root("a: -1\nb: \"x\"\nc: [1]\nd: {e: 1}\nf:\n");
    let described: Vec<_> = root.entries().iter().map(|e| e.value.described()).collect();
    assert_eq!(described, ["-1", "\"x\"", "a list", "a mapping", "nothing"]);
}

proptest! {
    #[test]
    fn no_text_panics_and_every_span_lies_in_it(text in "[-a-c:,\\[\\]{}&*#'\"|>!?% \t\r\n0é]{0,60}") {
        if let Ok(Some(node)) = parse(&text) {
            let mut open = vec![&node];
            while let Some(node) = open.pop() {
                prop_assert!(text.get(node.span.clone()).is_some());
                open.extend(node.items());
                open.extend(node.entries().iter().map(|entry| &entry.value));
            }
        }
    }
}
