//! The parts of a Markdown text's structure that plans use. A Markdown parser recognises code fences, quotes
//! and HTML.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Headings and top-level checkboxes of a text, with offsets from the start of the file.
#[derive(Debug, Default)]
pub(in crate::plan) struct Outline {
    pub headings: Vec<Heading>,
    /// Top-level checkboxes, except acceptance criteria.
    pub items: Vec<Item>,
}

/// A heading outside of lists and quotes.
#[derive(Debug)]
pub(in crate::plan) struct Heading {
    pub level: u8,
    pub text: String,
    pub span: Range<usize>,
}

/// A list item with a checkbox.
#[derive(Debug)]
pub(in crate::plan) struct Item {
    pub span: Range<usize>,
    /// The `[ ]`.
    pub mark: Range<usize>,
    pub checked: bool,
}

impl Outline {
    /// The outline of `body`, which starts at offset `base` of the file.
    pub fn of(body: &str, base: usize) -> Self {
        let shifted = |range: Range<usize>| range.start + base..range.end + base;
        let mut outline = Self::default();
        let mut depth = 0_usize;
        let mut item = 0..0;
        let mut open_heading: Option<(u8, String)> = None;
        let mut paragraph = String::new();
        let mut criteria_level = None;
        let mut criteria_follow = false;
        for (event, range) in Parser::new_ext(body, options()).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { level, .. }) if depth == 0 => {
                    open_heading = Some((level_of(level), String::new()));
                }
                Event::End(TagEnd::Heading(_)) if depth == 0 => {
                    let Some((level, text)) = open_heading.take() else {
                        continue;
                    };
                    if criteria_level.is_none_or(|criteria| level <= criteria) {
                        criteria_level = is_acceptance(&text).then_some(level);
                    }
                    criteria_follow = false;
                    outline.headings.push(Heading {
                        level,
                        text: text.trim().to_owned(),
                        span: shifted(range),
                    });
                }
                Event::Start(Tag::Paragraph) if depth == 0 => paragraph.clear(),
                Event::End(TagEnd::Paragraph) if depth == 0 => {
                    criteria_follow = is_acceptance(&paragraph);
                }
                Event::Start(Tag::List(_) | Tag::BlockQuote(_)) => depth += 1,
                Event::End(TagEnd::List(_) | TagEnd::BlockQuote(_)) => {
                    depth = depth.saturating_sub(1);
                    criteria_follow &= depth > 0;
                }
                Event::Start(Tag::Item) if depth == 1 => item = range,
                Event::TaskListMarker(checked)
                    if depth == 1 && criteria_level.is_none() && !criteria_follow =>
                {
                    outline.items.push(Item {
                        span: shifted(item.clone()),
                        mark: shifted(range),
                        checked,
                    });
                }
                Event::Text(text) | Event::Code(text) => match &mut open_heading {
                    Some((_, heading)) => heading.push_str(&text),
                    None => paragraph.push_str(&text),
                },
                _ => {}
            }
        }
        outline
    }
}

pub(super) fn options() -> Options {
    Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES
}

pub(super) fn level_of(level: HeadingLevel) -> u8 {
    level as u8
}

/// Whether a heading, a line or an item announces acceptance criteria.
pub(super) fn is_acceptance(text: &str) -> bool {
    let words = text.trim().trim_end_matches(':').trim().to_lowercase();
    matches!(
        words.as_str(),
        "acceptance" | "acceptance criteria" | "acceptance tests"
    )
}

/// Extracts the acceptance criteria from a text: the items of the list after a line or an item "Acceptance",
/// or of all lists under a heading of that name. The remaining text is tidied.
pub(in crate::plan) fn split_acceptance(text: &str) -> (String, Vec<String>) {
    let mut taker = OutlineReader::default();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        taker.take(text, &event, range);
    }
    taker.end_section(text.len());
    let mut rest = String::with_capacity(text.len());
    let mut from = 0;
    for range in taker.removed {
        if range.start >= from {
            rest.push_str(&text[from..range.start]);
            from = range.end;
        }
    }
    rest.push_str(&text[from..]);
    (tidy(&rest), taker.criteria)
}

#[derive(Default)]
struct OutlineReader {
    criteria: Vec<String>,
    removed: Vec<Range<usize>>,
    /// The level and start offset of a section under such a heading.
    section: Option<(u8, usize)>,
    /// The start offset of the line or item that announces the list of criteria.
    announced: Option<usize>,
    /// The depth of lists within the list of criteria; 0 outside it.
    in_list: usize,
    list_start: usize,
    block: String,
    block_start: usize,
    item_begins: bool,
}

impl OutlineReader {
    fn take(&mut self, source: &str, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::List(_)) if self.in_list > 0 => self.in_list += 1,
            Event::End(TagEnd::List(_)) if self.in_list > 0 => {
                self.in_list -= 1;
                if self.in_list == 0 && self.section.is_none() {
                    self.removed.push(self.list_start..range.end);
                }
            }
            Event::Start(Tag::Item) if self.in_list == 1 => {
                let text = criterion(&source[range]);
                self.criteria
                    .extend(Some(text).filter(|text| !text.is_empty()));
            }
            _ if self.in_list > 0 => {}
            Event::Start(Tag::List(_)) => self.start_list(),
            Event::Start(Tag::Heading { level, .. }) => {
                let level = level_of(*level);
                if self.section.is_some_and(|(section, _)| level <= section) {
                    self.end_section(range.start);
                }
                self.start_block(range.start);
            }
            Event::End(TagEnd::Heading(level)) => {
                if self.section.is_none() && is_acceptance(&self.block) {
                    self.section = Some((level_of(*level), self.block_start));
                }
                self.block.clear();
            }
            Event::Start(Tag::Item) => {
                self.start_block(range.start);
                self.item_begins = true;
            }
            // The first paragraph of an item starts at its bullet.
            Event::Start(Tag::Paragraph) if self.item_begins => self.item_begins = false,
            Event::Start(Tag::Paragraph | Tag::CodeBlock(_) | Tag::BlockQuote(_)) => {
                self.start_block(range.start);
            }
            Event::End(TagEnd::Paragraph) => {
                self.announced = is_acceptance(&self.block).then_some(self.block_start);
                self.block.clear();
            }
            Event::Text(text) | Event::Code(text) => self.block.push_str(text),
            Event::SoftBreak | Event::HardBreak => self.block.push('\n'),
            _ => {}
        }
    }

    fn start_block(&mut self, start: usize) {
        self.block.clear();
        self.block_start = start;
        self.item_begins = false;
        self.announced = None;
    }

    fn start_list(&mut self) {
        if is_acceptance(&self.block) {
            self.announced = Some(self.block_start);
        }
        self.block.clear();
        if let Some(start) = self.announced.take() {
            (self.in_list, self.list_start) = (1, start);
        } else if self.section.is_some() {
            self.in_list = 1;
        }
    }

    fn end_section(&mut self, end: usize) {
        if let Some((_, start)) = self.section.take() {
            self.removed.push(start..end);
        }
    }
}

/// A list item's text without its bullet and checkbox.
fn criterion(item: &str) -> String {
    let text = item.trim_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let text = text[digits..]
        .trim_start_matches(['-', '*', '+', '.', ')'])
        .trim_start();
    let unchecked = ["[ ]", "[x]", "[X]"]
        .iter()
        .find_map(|mark| text.strip_prefix(mark));
    tidy(&dedent_rest(unchecked.unwrap_or(text).trim_start()))
}

/// Removes the indentation that all lines after the first share; the first line stays as it is.
pub(in crate::plan) fn dedent_rest(text: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    format!("{first}\n{}", dedent(rest))
}

/// Removes the indentation that all lines share.
pub(in crate::plan) fn dedent(text: &str) -> String {
    let blank = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    let shared = lines().map(blank).min().unwrap_or(0);
    let cut = |line: &str| line.get(shared..).unwrap_or_default().to_owned();
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

/// The text without surrounding blank lines, with `\n` line ends and never two blank lines in a row.
pub(in crate::plan) fn tidy(text: &str) -> String {
    let mut tidied = String::with_capacity(text.len());
    let mut blanks = 0;
    for line in text.lines() {
        let line = line.trim_end();
        if line.is_empty() {
            blanks += 1;
            continue;
        }
        if !tidied.is_empty() {
            tidied.push_str(if blanks > 0 { "\n\n" } else { "\n" });
        }
        blanks = 0;
        tidied.push_str(line);
    }
    tidied
}
