//! Removes the parts of a text that people cannot see, so that the agent does not read them either.

use crate::pattern::Pattern;
use crate::text::{is_invisible, without_ranges};
use pulldown_cmark::{Event, Options, Parser, Tag};
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
    let parser = Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES);
    let definitions = parser.reference_definitions().iter();
    let comments = definitions.filter(|(_, link)| matches!(&*link.dest, "" | "#"));
    let mut hidden: Vec<Range<usize>> = comments.map(|(_, link)| link.span.clone()).collect();
    for (event, range) in parser.into_offset_iter() {
        // A comment may span several lines of a block of HTML.
        if matches!(event, Event::Start(Tag::HtmlBlock) | Event::InlineHtml(_)) {
            hidden_html(text, &range, &mut hidden);
        }
    }
    hidden.sort_by_key(|range| range.start);
    (!hidden.is_empty()).then(|| without_ranges(text, 0, &hidden))
}

/// Comments, declarations and processing instructions. `<!-->` and `<!--->` are complete comments.
static HIDDEN: Pattern = Pattern::new(
    r"(?s)<!--(?:-?>|.*?(?:-->|$))|<!\[CDATA\[.*?(?:\]\]>|$)|<!.*?(?:>|$)|<\?.*?(?:\?>|$)",
);

/// Finds what is hidden in a range of HTML.
fn hidden_html(text: &str, html: &Range<usize>, hidden: &mut Vec<Range<usize>>) {
    let found = HIDDEN.captures_iter(&text[html.clone()]);
    let ranges = found.filter_map(|found| Some(found.get(0)?.range()));
    hidden.extend(ranges.map(|range| html.start + range.start..html.start + range.end));
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
