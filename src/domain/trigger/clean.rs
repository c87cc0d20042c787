//! Removes the parts of a text that people cannot see, so that the agent does not read them either.

use crate::text::{is_invisible, without_ranges};
use pulldown_cmark::{Event, Options, Parser};
use std::ops::Range;

/// The maximum number of passes. A removal may join the two ends of another comment; after the last pass,
/// remaining comment openings are broken up instead.
const PASSES: usize = 8;

/// `text` without what GitHub does not show: HTML comments, link definitions used as comments, invisible
/// characters, and characters that change the text direction. Line ends become `\n`.
pub fn clean(text: &str) -> String {
    let mut text = visible(text);
    for _ in 0..PASSES {
        let Some(shorter) = without_hidden(&text) else {
            return text;
        };
        text = shorter;
    }
    text.replace("<!--", "<! --")
}

/// `text` cleaned and on one line of at most `limit` characters: for titles, logins and names.
pub fn clean_line(text: &str, limit: usize) -> String {
    crate::text::one_line(&visible(super::head(text, 8 * 1024)), limit)
}

/// The text without invisible characters, with `\n` line ends.
pub(super) fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|&c| !is_hidden(c)).collect()
}

fn is_hidden(c: char) -> bool {
    is_invisible(c) || (c.is_control() && c != '\n' && c != '\t')
}

/// The text without its hidden parts; `None` if it has none.
fn without_hidden(text: &str) -> Option<String> {
    if !text.contains("<!") && !text.contains("<?") && !text.contains("]:") {
        return None;
    }
    let mut hidden = Vec::new();
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES);
    let definitions = parser.reference_definitions().iter();
    let is_comment = |dest: &str| dest.is_empty() || dest == "#";
    hidden.extend(
        definitions
            .filter(|(_, link)| is_comment(&link.dest))
            .map(|(_, link)| link.span.clone()),
    );
    // The parser reports an HTML block line by line, so a comment may span several events.
    let mut block: Option<Range<usize>> = None;
    for (event, range) in parser.into_offset_iter() {
        match event {
            Event::Start(pulldown_cmark::Tag::HtmlBlock) => block = Some(range),
            Event::End(pulldown_cmark::TagEnd::HtmlBlock) => {
                if let Some(block) = block.take() {
                    hidden_html(text, block, &mut hidden);
                }
            }
            Event::InlineHtml(_) => hidden_html(text, range, &mut hidden),
            _ => {}
        }
    }
    hidden.sort_by_key(|range| range.start);
    (!hidden.is_empty()).then(|| without_ranges(text, 0, &hidden))
}

/// Finds comments, declarations and processing instructions in a range of HTML.
fn hidden_html(text: &str, stretch: Range<usize>, hidden: &mut Vec<Range<usize>>) {
    const KINDS: [(&str, &str); 4] = [
        ("<!--", "-->"),
        ("<![CDATA[", "]]>"),
        ("<!", ">"),
        ("<?", "?>"),
    ];
    let mut from = stretch.start;
    while let Some(html) = text.get(from..stretch.end) {
        // A single search for all kinds, so that each byte is examined once.
        let Some(begins) = html.find('<') else {
            return;
        };
        let rest = html.get(begins..).unwrap_or_default();
        let Some((open, close)) = KINDS.into_iter().find(|(open, _)| rest.starts_with(open)) else {
            from += begins + 1;
            continue;
        };
        // `<!-->` and `<!--->` are complete comments.
        let skip = if open == "<!--" { 2 } else { open.len() };
        let inner = rest.get(skip..).unwrap_or_default();
        let length = inner
            .find(close)
            .map_or(rest.len(), |at| skip + at + close.len());
        hidden.push(from + begins..from + begins + length);
        from += begins + length.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_line, is_invisible};
    use proptest::prelude::*;

    #[test]
    fn what_github_hides_is_gone() {
        for (raw, expected) in [
            ("a <!-- b --> c", "a  c"),
            ("<!-- a\n\nb -->\nc", "\nc"),
            ("<!-- never ends\n\nb", ""),
            (
                "a\u{200b}b\u{202e}c\u{e0041}\u{feff}d\u{ad}\u{2800}",
                "abcd",
            ),
            ("<\u{200b}!-- x -->y", "y"),
            ("[//]: # (do evil)\n\ntext", "\n\ntext"),
            ("<?x?>\na", "\na"),
            ("a\r\nb\rc\u{7}", "a\nb\nc"),
            ("`<!-- code -->`", "`<!-- code -->`"),
            (
                "```html\n<!-- shown -->\n```\n",
                "```html\n<!-- shown -->\n```\n",
            ),
            ("1 < 2 <! 3", "1 < 2 <! 3"),
            ("ä \u{2764}\u{fe0f}", "ä \u{2764}\u{fe0f}"),
        ] {
            assert_eq!(clean(raw), expected, "{raw:?}");
        }
        assert!(!clean("a <!-<!-- x -->- hidden --> b").contains("hidden -->"));
        assert_eq!(clean_line("a\n b\u{202e}", 10), "a b");
    }

    proptest! {
        #[test]
        fn nothing_invisible_is_left(raw in "(<!--|-->|\\[//\\]: # \\(|\\)|<\\?|\u{200b}|\u{e0041}|`|\n|[a-z> ])*") {
            let once = clean(&raw);
            prop_assert!(!once.contains(is_invisible));
        }

        #[test]
        fn no_text_is_too_strange(raw in any::<String>()) {
            let once = clean(&raw);
            prop_assert!(!once.contains(is_invisible));
            prop_assert!(!once.contains('\r'));
        }
    }
}
