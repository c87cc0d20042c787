//! Replaces a text that must occur exactly once.

use sprag_domain::text::{cap_chars, one_line};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Maximum number of lines of a file and of the search text that are compared to find the nearest place.
const MAX_LINES: usize = 20_000;
const MAX_CANDIDATES: usize = 200;
/// Number of lines that are shown of the nearest place.
const SHOWN: usize = 30;

/// Returns `text` with `search` replaced.
///
/// # Errors
/// A message for the model, if `search` does not occur exactly once.
pub fn replaced(path: &str, text: &str, search: &str, replace: &str) -> Result<String, String> {
    if search.is_empty() {
        return Err("the text searched for is empty; use write_file to write a whole file".into());
    }
    if search == replace {
        return Err("the text searched for and its replacement are the same".into());
    }
    // Files with Windows line ends are shown, and so searched, without them.
    let (search, replace) = if !search.contains('\r') && is_windows(text, search) {
        (
            search.replace('\n', "\r\n"),
            replace.replace("\r\n", "\n").replace('\n', "\r\n"),
        )
    } else {
        (search.to_owned(), replace.to_owned())
    };
    match text.matches(&search).count() {
        0 => Err(missed(path, text, &search)),
        1 => Ok(text.replacen(&search, &replace, 1)),
        _ => {
            let places = text.match_indices(&search).take(10);
            let lines = places.map(|(at, _)| 1 + text[..at].matches('\n').count());
            let lines: Vec<String> = lines.map(|line| line.to_string()).collect();
            Err(format!(
                "the text searched for occurs more than once in {path}, at lines {}; add lines around it \
                 until it is there only once",
                lines.join(", ")
            ))
        }
    }
}

/// Whether lines end with `\r\n` at the place of the search text. In a file with mixed line ends, those of
/// the place itself decide.
fn is_windows(text: &str, search: &str) -> bool {
    let (windows, all) = (text.matches("\r\n").count(), text.matches('\n').count());
    if windows == 0 || windows == all {
        return windows > 0;
    }
    if search.contains('\n') {
        return !text.contains(search);
    }
    let Some((before, rest)) = text.split_once(search) else {
        return true;
    };
    // The last line may have no line end; then that of the line before it counts.
    match rest.split_once('\n') {
        Some((line, _)) => line.ends_with('\r'),
        None => before
            .rsplit_once('\n')
            .is_some_and(|(lines, _)| lines.ends_with('\r')),
    }
}

fn missed(path: &str, text: &str, search: &str) -> String {
    let lines: Vec<&str> = text.lines().take(MAX_LINES).collect();
    let wanted: Vec<&str> = search.lines().take(MAX_CANDIDATES).collect();
    let Some(start) = nearest(&lines, &wanted) else {
        return format!(
            "the text searched for is not in {path}, nor is anything like it; read it again"
        );
    };
    let shown = lines
        .iter()
        .enumerate()
        .skip(start)
        .take(wanted.len().min(SHOWN));
    let mut message = format!(
        "the text searched for is not in {path}. The nearest to it, as it is there (line numbers are not part of it):\n"
    );
    for (number, line) in shown {
        message.push_str(&format!("{:>6}\t{}\n", number + 1, cap_chars(line, 400)));
    }
    message
}

/// The start of the lines that are most similar to the wanted ones: most equal lines without surrounding
/// white space, otherwise the line that is most similar to the longest wanted one.
fn nearest(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let wanted: Vec<&str> = wanted.iter().map(|line| line.trim()).collect();
    let mut shared: HashMap<usize, u32> = HashMap::new();
    for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
        // Very short lines occur everywhere.
        let tells = line.chars().filter(|c| c.is_alphanumeric()).count() > 2;
        let wanted = wanted.iter().enumerate();
        for (offset, _) in wanted.filter(|(_, wanted)| tells && **wanted == line) {
            *shared.entry(at.saturating_sub(offset)).or_default() += 1;
        }
    }
    let best = shared
        .into_iter()
        .max_by_key(|(at, count)| (*count, Reverse(*at)));
    best.map(|(at, _)| at)
        .or_else(|| most_alike(lines, &wanted))
}

fn most_alike(lines: &[&str], wanted: &[&str]) -> Option<usize> {
    let (offset, longest) = wanted
        .iter()
        .enumerate()
        .max_by_key(|(_, line)| line.len())?;
    let likeness = |line: &str| {
        let (line, longest) = (one_line(line, 200), one_line(longest, 200));
        (strsim::sorensen_dice(&line, &longest) * 1_000.0) as u32
    };
    let scored = lines.iter().enumerate();
    let scored = scored.map(|(at, line)| (likeness(line), Reverse(at)));
    let (score, Reverse(at)) = scored.max()?;
    (score >= 500).then(|| at.saturating_sub(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn one() {\n    let total = add(1, 2);\n}\n\nfn two() {\n    let total = add(3, 4);\n}\n";

    fn edit(search: &str, replace: &str) -> Result<String, String> {
        replaced("a.rs", TEXT, search, replace)
    }

    #[test]
    fn text_that_is_there_once_is_replaced() {
        let expected = TEXT.replace("add(1, 2)", "3");
        assert_eq!(edit("add(1, 2)", "3"), Ok(expected));
        assert_eq!(
            replaced("a", "x\r\ny\r\n", "x\ny", "x\nz"),
            Ok("x\r\nz\r\n".into())
        );
    }

    #[test]
    fn lines_end_as_those_of_the_file_do() {
        let edit =
            |text: &str, search: &str, replace: &str| replaced("a", text, search, replace).unwrap();
        // The search text without a line end, with one at its start, and with one at its end.
        assert_eq!(edit("x\r\ny\r\n", "y", "1\n2\r\n3"), "x\r\n1\r\n2\r\n3\r\n");
        assert_eq!(edit("x\r\ny\r\n", "\ny", "\n1\n2"), "x\r\n1\r\n2\r\n");
        assert_eq!(edit("x\r\ny\r\n", "y\n", "1\n2\n"), "x\r\n1\r\n2\r\n");
        assert_eq!(edit("x\ny\n", "y", "1\n2"), "x\n1\n2\n");
        // A search text with explicit line ends determines those of the replacement.
        assert_eq!(edit("x\r\ny\r\n", "x\r\n", "x\n"), "x\ny\r\n");
    }

    #[test]
    fn in_a_file_with_both_kinds_of_line_ends_those_of_the_place_count() {
        let edit = |search: &str, replace: &str| {
            replaced("a", "w\r\nv\r\nx\ny\nz", search, replace).unwrap()
        };
        assert_eq!(edit("v", "1\n2"), "w\r\n1\r\n2\r\nx\ny\nz");
        assert_eq!(edit("w\nv", "1\n2"), "1\r\n2\r\nx\ny\nz");
        assert_eq!(edit("x", "1\n2"), "w\r\nv\r\n1\n2\ny\nz");
        assert_eq!(edit("x\ny", "1\n2"), "w\r\nv\r\n1\n2\nz");
        assert_eq!(edit("z", "1\n2"), "w\r\nv\r\nx\ny\n1\n2");
        assert_eq!(
            replaced("a", "x\ny\r\nz", "z", "1\n2").unwrap(),
            "x\ny\r\n1\r\n2"
        );
    }

    #[test]
    fn text_that_is_there_twice_is_told_by_its_lines() {
        let why = edit("let total", "let sum").unwrap_err();
        assert!(why.contains("lines 2, 6"), "{why}");
    }

    #[test]
    fn a_miss_shows_the_nearest_text() {
        let why = edit("fn two() {\n\tlet total = add(3, 4);\n}", "x").unwrap_err();
        let expected = "     5\tfn two() {\n     6\t    let total = add(3, 4);\n     7\t}\n";
        assert!(why.ends_with(expected), "{why}");
        let why = edit("let total = add(3, 5);", "x").unwrap_err();
        assert!(why.contains("let total = add("), "{why}");
        let why = edit("nothing of this kind at all", "x").unwrap_err();
        assert!(why.contains("nor is anything like it"), "{why}");
    }

    #[test]
    fn what_would_do_nothing_is_refused() {
        assert!(edit("", "x").unwrap_err().contains("empty"));
        assert!(edit("fn one", "fn one").unwrap_err().contains("the same"));
    }
}
