//! The tests inside a Rust source file: modules and functions that are compiled only for tests, at any depth.

use crate::pattern::Pattern;
use std::ops::Range;

/// The attributes of an item, and its beginning up to its body.
static ITEM: Pattern = Pattern::new(
    r"(?x)((?:\#\[(?:[^\[\]]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*\]\s*)+)
        (?:pub(?:\([^)]*\))?\s+)?(?:(?:async|const|unsafe)\s+)*
        (mod\s|fn\s|impl\b|const\s|static\s)\s*(\w+|<)(?:[^\[\]{;]|\[(?:[^\[\]]|\[[^\[\]]*\])*\])*([{;])",
);

/// An attribute of a test, or of what is compiled for tests.
static OF_TEST: Pattern = Pattern::new(
    r"\#\[\s*(?:cfg\((?:[^\]]*[(,\s])?test\s*[,)]|(?:\w+::)*(?:test|rstest|test_case|test_log|quickcheck|wasm_bindgen_test)\b)",
);

/// What is compiled for everything but tests.
static NOT_OF_TEST: Pattern = Pattern::new(r"\bnot\(\s*test\s*\)");

/// The beginning of a module with a body.
static MODULE: Pattern = Pattern::new(r"\bmod\s+(\w+)\s*(\{)");

/// A module or function of tests.
struct Item {
    /// The modules around it, its kind and its name.
    key: (Vec<String>, String, String),
    range: Range<usize>,
}

/// The new source with the old one's tests; `None` if they are the same in both.
pub fn rust_tests(old: &str, new: &str) -> Option<String> {
    let gated = new;
    let new = &*without_new_gates(old, new);
    let (before, after) = (items(old), items(new));
    let mut is_taken = vec![false; after.len()];
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    // An item of the same name elsewhere stands for one whose place is gone.
    let mut places: Vec<Option<usize>> = vec![None; before.len()];
    let same_text =
        |item: &Item, other: &Item| old.get(item.range.clone()) == new.get(other.range.clone());
    for (is_exact, is_same) in [(true, false), (false, true), (false, false)] {
        for (item, place) in before
            .iter()
            .zip(&mut places)
            .filter(|(_, at)| at.is_none())
        {
            let fits = |other: &Item| {
                if is_exact {
                    other.key == item.key
                } else {
                    (&other.key.1, &other.key.2) == (&item.key.1, &item.key.2)
                }
            };
            let found = (0..after.len()).find(|at| {
                let other = &after[*at];
                !is_taken[*at] && fits(other) && (!is_same || same_text(item, other))
            });
            if let Some(at) = found {
                is_taken[at] = true;
                *place = found;
            }
        }
    }
    for (item, place) in before.iter().zip(places) {
        let text = old.get(item.range.clone()).unwrap_or_default();
        match place.map(|at| after[at].range.clone()) {
            Some(range) if new.get(range.clone()) == Some(text) => {}
            Some(range) => edits.push((range, text.to_owned())),
            None => {
                let end = end_of_module(new, &item.key.0);
                edits.push((end..end, format!("\n{text}\n")));
            }
        }
    }
    if edits.is_empty() && gated == new {
        return None;
    }
    let mut mixed = new.to_owned();
    // From the end, so that earlier ranges stay valid.
    edits.sort_by_key(|(range, _)| range.start);
    for (range, text) in edits.into_iter().rev() {
        mixed.replace_range(range, &text);
    }
    Some(mixed)
}

/// The tests of a source, in the order of the text. What is in another one belongs to that one.
fn items(text: &str) -> Vec<Item> {
    let code = code_of(text);
    let modules = modules(&code);
    let mut found: Vec<Item> = Vec::new();
    for captures in ITEM.captures_iter(&code) {
        let Some(all) = captures.get(0) else { continue };
        let is_inside = found
            .last()
            .is_some_and(|last| all.start() < last.range.end);
        if is_inside || !OF_TEST.is_match(&NOT_OF_TEST.replace_all(&captures[1], "")) {
            continue;
        }
        let end = match &captures[4] {
            ";" => all.end(),
            _ => end_of_block(&code, all.end()),
        };
        let around = modules
            .iter()
            .filter(|(_, range)| range.contains(&all.start()))
            .map(|(name, _)| name.clone())
            .collect();
        found.push(Item {
            key: (
                around,
                captures[2].trim().to_owned(),
                captures[3].to_owned(),
            ),
            range: all.start()..end,
        });
    }
    found
}

/// The modules with a body: the name and the range of each body.
fn modules(code: &str) -> Vec<(String, Range<usize>)> {
    let found = MODULE.captures_iter(code).filter_map(|found| {
        let start = found.get(2)?.end();
        Some((found[1].to_owned(), start..end_of_block(code, start)))
    });
    found.collect()
}

/// The place of the closing brace of a nested module, or the end of the text if there is no such module.
fn end_of_module(text: &str, path: &[String]) -> usize {
    let code = code_of(text);
    let mut within = 0..code.len();
    let modules = modules(&code);
    for name in path {
        let inside = modules.iter().find(|(other, range)| {
            other == name && within.contains(&range.start) && range.end <= within.end
        });
        match inside {
            Some((_, range)) => within = range.start..range.end.saturating_sub(1),
            None => return text.len(),
        }
    }
    within.end
}

/// The end of a block, after its closing brace. `start` is behind its opening brace.
fn end_of_block(code: &str, start: usize) -> usize {
    let mut depth = 1_usize;
    let rest = code.bytes().enumerate().skip(start);
    for (at, byte) in rest {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    code.len()
}

/// The source with spaces in the place of comments, strings and characters, so that all positions stay.
fn code_of(text: &str) -> String {
    static NO_CODE: Pattern = Pattern::new(
        r#"(?xs) //[^\n]* | /\* | \bb?r"[^"]*" | \bb?r\#".*?"\# | \bb?r\#\#".*?"\#\# | \bb?r\#\#\#+".*?"\#\#\#+
            | "(?:[^"\\]|\\.)*" | '(?:[^'\\\n]|\\[^\n][^'\n]*)'"#,
    );
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(found) = NO_CODE.find_at(text, at) {
        let end = match part(found.clone()) {
            "/*" => end_of_comment(text, found.start),
            _ => found.end,
        };
        code.push_str(part(at..found.start));
        let blank = part(found.start..end).bytes();
        code.extend(blank.map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        at = end;
    }
    code.push_str(part(at..text.len()));
    code
}

/// The end of a comment that begins at `start` and may contain others.
fn end_of_comment(text: &str, start: usize) -> usize {
    static EDGE: Pattern = Pattern::new(r"/\*|\*/");
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(edge) = EDGE.find_at(text, at) {
        at = edge.end;
        match text.get(edge) {
            Some("/*") => depth += 1,
            _ => depth -= 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The text without conditions that the old text does not have and that exclude a module or the whole file
/// from a test build, and without new macros in the place of those that tests use.
fn without_new_gates(old: &str, new: &str) -> String {
    static GATES: [Pattern; 4] = [
        Pattern::new(r"(?m)^[ \t]*#!\[cfg\([^\n]*\)\][ \t]*\n"),
        Pattern::new(r"(?m)^[ \t]*#!\[cfg_attr\([^\n]*\bcfg\([^\n]*\)\][ \t]*\n"),
        // The macro gets another name, so that the tests use that of the standard library.
        Pattern::new(r"(?P<kept>\bmacro_rules!\s+)(?:debug_)?assert"),
        Pattern::new(
            r"(?m)^[ \t]*#\[cfg\(not\(test\)\)\][ \t]*\n(?<kept>[ \t]*(?:pub(?:\([a-z ]+\))? )?mod )",
        ),
    ];
    let mut text = new.to_owned();
    for gate in &GATES {
        if gate.captures_iter(&text).count() > gate.captures_iter(old).count() {
            let kept = |found: &regex::Captures<'_>| {
                found
                    .name("kept")
                    .map_or(String::new(), |kept| kept.as_str().to_owned())
            };
            text = gate.replace_all(&text, kept).into_owned();
        }
    }
    text
}
