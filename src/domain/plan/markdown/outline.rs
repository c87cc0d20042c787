//! The headings and checkboxes of a Markdown text. A Markdown parser recognises code fences, quotes and HTML.

use super::headings::{APART, informs, is_acceptance, is_criteria_heading, is_one_of};
use crate::text::has_word;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::ops::Range;

/// Headings and checkboxes of a text, with offsets from the start of the file.
#[derive(Debug, Default)]
pub(in crate::plan) struct Outline {
    pub headings: Vec<Heading>,
    pub items: Vec<Item>,
    /// The offsets of lines that look like a checkbox and are none.
    pub unread: Vec<usize>,
}

/// A heading outside of lists and quotes.
#[derive(Debug)]
pub(in crate::plan) struct Heading {
    pub level: u8,
    /// The heading of the section that it is in.
    pub parent: Option<usize>,
    /// The text without a checkbox and decoration.
    pub text: String,
    /// Whether its decoration says that it is done.
    pub says_done: bool,
    pub span: Range<usize>,
    /// The checkbox that shows its state.
    pub mark: Option<Mark>,
}

/// A list item with a checkbox, outside of quotes.
#[derive(Debug)]
pub(in crate::plan) struct Item {
    pub span: Range<usize>,
    pub mark: Mark,
    /// The last heading above it.
    pub heading: Option<usize>,
    /// Whether it is in another list item.
    pub is_nested: bool,
    /// Whether it is below another box that has a text.
    pub is_step: bool,
    /// Whether it is an acceptance criterion.
    pub is_criterion: bool,
    /// Whether it is under a heading that announces tasks.
    pub is_under_tasks: bool,
    /// Whether it is under a heading of what the plan leaves for later or for others.
    pub is_apart: bool,
}

/// A checkbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct Mark {
    /// The `[ ]`.
    pub span: Range<usize>,
    pub checked: bool,
    /// Whether it is neither `[ ]` nor `[x]`.
    pub is_other: bool,
}

impl Mark {
    /// Whether it may be a short name, such as `[UI]`.
    fn is_tag(&self, text: &str) -> bool {
        let is_short = self.is_other && self.span.len() < "[wip]".len();
        is_short && text[self.span.clone()].contains(char::is_alphanumeric)
    }

    fn shifted(mut self, base: usize) -> Self {
        self.span = self.span.start + base..self.span.end + base;
        self
    }
}

/// Words in brackets that are the state of a task that is not done.
const OPEN_WORDS: &str = "blocked pending skip skipped todo wip";

/// The checkbox at this offset: brackets around nothing, one or two signs, or the word of a state.
fn mark_at(text: &str, at: usize) -> Option<Mark> {
    let inner = text.get(at..)?.strip_prefix('[')?;
    let (length, _) = inner.char_indices().take(12).find(|(_, c)| *c == ']')?;
    let (sign, after) = (&inner[..length], &inner[length + 1..]);
    let end = text.len() - after.len();
    // Kiro marks optional tasks as `[ ]*`.
    let next = after.strip_prefix('*').unwrap_or(after);
    let sign = sign.trim_matches([' ', '\t', '\u{fe0f}']).to_lowercase();
    let checked = has_word("x ✓ ✔ ✅ ☑ done complete completed", &sign);
    // A number is a reference or a footnote.
    let is_short = sign.chars().count() <= 2
        && !sign.contains(|c: char| c.is_numeric() || "[^#@\n".contains(c));
    let is_apart = next.is_empty()
        || next.starts_with(char::is_whitespace)
        || (sign.is_empty() || sign == "x") && !next.starts_with(['(', '[', ':']);
    (is_apart && (checked || is_short || has_word(OPEN_WORDS, &sign))).then_some(Mark {
        span: at..end,
        checked,
        is_other: !checked && !sign.is_empty(),
    })
}

/// Signs that decorate a heading.
fn is_decoration(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{200d}' | '~')
}

/// The text without the signs around it, and whether they or its last word say that it is done.
fn undecorated(text: &str) -> (&str, bool) {
    let bare = text.trim_matches(|c| c == ' ' || is_decoration(c));
    let is_sign = text.len() > bare.len() && text.contains(['✅', '✔', '☑']);
    let lower = bare.to_ascii_lowercase();
    let mut words = ["(done)", "(complete)", "(completed)"].iter();
    let word = words.find(|word| lower.ends_with(**word));
    let end = bare.len() - word.map_or(0, |word| word.len());
    (
        bare[..end].trim_end(),
        word.is_some() || is_sign || is_struck(text),
    )
}

/// Whether all of a text is struck out.
pub(super) fn is_struck(text: &str) -> bool {
    let text = text.trim();
    text.len() > 4 && text.starts_with("~~") && text.ends_with("~~")
}

/// The checkbox of the list item at this offset.
fn mark_of_item(text: &str, at: usize) -> Option<Mark> {
    let item = text.get(at..)?;
    let rest = item.trim_start_matches(' ');
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let signs: &[char] = if digits > 0 {
        &['.', ')']
    } else {
        &['-', '*', '+']
    };
    let rest = rest.get(digits..)?.strip_prefix(signs)?;
    let bare = rest.trim_start_matches([' ', '\t']);
    // More blanks begin indented code.
    let is_text = (1..=4).contains(&(rest.len() - bare.len()));
    is_text.then(|| mark_at(text, text.len() - bare.len()))?
}

/// The checkbox at the beginning or the end of a heading's line, with its range in `line`.
fn mark_of_heading(line: &str) -> Option<Mark> {
    let line = line.trim_end().trim_end_matches('#').trim_end();
    let is_before = |c: char| c.is_ascii_digit() || "#.) *".contains(c) || is_decoration(c);
    let begins = line.find(|c: char| !is_before(c));
    let ends = line.rfind('[').filter(|at| *at > 0);
    let found = begins.and_then(|at| mark_at(line, at));
    found
        .or_else(|| mark_at(line, ends?).filter(|mark| mark.span.end == line.len()))
        .filter(|mark| !mark.is_tag(line))
}

impl Outline {
    /// The outline of `body`, which starts at offset `base` of the file.
    pub fn of(body: &str, base: usize) -> Self {
        let mut walk = Walk {
            body,
            base,
            ..Walk::default()
        };
        for (event, range) in Parser::new_ext(body, options()).into_offset_iter() {
            walk.take(&event, range);
        }
        walk.outline
    }
}

#[derive(Default)]
struct Walk<'a> {
    body: &'a str,
    base: usize,
    outline: Outline,
    quotes: usize,
    /// For each open list, whether its items are acceptance criteria.
    lists: Vec<bool>,
    /// For each open item, whether it has a box and a text.
    items: Vec<bool>,
    /// The headings of the sections around the current place, with their subjects.
    sections: Vec<(usize, Section)>,
    /// The text of the last heading, paragraph or item.
    block: String,
}

impl Walk<'_> {
    fn take(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::BlockQuote(_)) => self.quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => self.quotes = self.quotes.saturating_sub(1),
            Event::Start(Tag::List(_)) => {
                let within = self.lists.last().copied().unwrap_or(false);
                self.lists.push(within || is_acceptance(&self.block));
                self.block.clear();
            }
            Event::End(TagEnd::List(_)) => {
                self.lists.pop();
                self.block.clear();
            }
            Event::Start(Tag::Item) => {
                self.block.clear();
                let has_text = self.item(range);
                self.items.push(has_text);
            }
            Event::End(TagEnd::Item) => {
                self.items.pop();
            }
            Event::Start(Tag::Heading { .. }) => self.block.clear(),
            Event::Start(Tag::Paragraph) => {
                self.block.clear();
                self.line(range.start);
            }
            Event::SoftBreak => self.line(range.end),
            Event::End(TagEnd::Heading(level)) if self.is_outside() => {
                self.heading(level_of(*level), range);
            }
            Event::Text(text) | Event::Code(text) => self.block.push_str(text),
            _ => {}
        }
    }

    fn is_within(&self, kind: Section) -> bool {
        self.sections.iter().any(|(_, section)| *section == kind)
    }

    fn is_outside(&self) -> bool {
        self.lists.is_empty() && self.quotes == 0
    }

    /// Notes a line that looks like a list item with a box, and that Markdown reads as a part of a paragraph.
    fn line(&mut self, start: usize) {
        let line = self.body[start..].trim_start_matches(' ');
        let rest = line.strip_prefix(['-', '*', '+']).unwrap_or_default();
        if self.quotes == 0 && mark_at(rest, 0).is_some() {
            self.outline.unread.push(start + self.base);
        }
    }

    fn heading(&mut self, level: u8, range: Range<usize>) {
        let block = std::mem::take(&mut self.block);
        let (text, says_done) = undecorated(&block);
        let headings = &self.outline.headings;
        self.sections
            .retain(|(above, _)| headings[*above].level < level);
        let parent = self.sections.last().map(|(above, _)| *above);
        // The title of the plan is above all sections.
        if level > 1 || !headings.is_empty() {
            self.sections.push((headings.len(), Section::of(text)));
        }
        let without = mark_of_heading(text).map(|mark| {
            let (before, after) = (&text[..mark.span.start], &text[mark.span.end..]);
            format!("{}{}", before.trim_start(), after.trim_start())
        });
        let line = self.body[range.clone()].lines().next().unwrap_or_default();
        self.outline.headings.push(Heading {
            level,
            parent,
            text: undecorated(without.as_deref().unwrap_or(text)).0.to_owned(),
            says_done,
            mark: mark_of_heading(line).map(|mark| mark.shifted(range.start + self.base)),
            span: range.start + self.base..range.end + self.base,
        });
    }

    /// Notes the checkbox of an item, and returns whether it has one with a text.
    fn item(&mut self, range: Range<usize>) -> bool {
        let informs = self.is_within(Section::About);
        // The legend of a list explains its marks.
        let mark = mark_of_item(self.body, range.start)
            .filter(|mark| self.quotes == 0 && !(informs && mark.is_tag(self.body)));
        let Some(mark) = mark else {
            let line = self.body[range.start..].lines().next().unwrap_or_default();
            let line = line.trim_start_matches(['-', '*', '+', ' ']);
            let bracket = line.strip_prefix('[').and_then(|line| line.split_once(']'));
            let is_number =
                |(sign, rest): (&str, &str)| sign.parse::<u32>().is_ok() && !rest.starts_with('(');
            let is_near = bracket.is_some_and(is_number)
                || ["( )", "(x)"].iter().any(|sign| line.starts_with(sign));
            let is_aside = informs || self.quotes > 0 || self.is_within(Section::Apart);
            if is_near && !is_aside {
                self.outline.unread.push(range.start + self.base);
            }
            return false;
        };
        let line = self.body[mark.span.end..].lines().next();
        let has_text = line.is_some_and(|line| !line.trim().is_empty());
        let is_criterion = self.is_within(Section::Criteria) || self.lists.last() == Some(&true);
        self.outline.items.push(Item {
            span: range.start + self.base..range.end + self.base,
            mark: mark.shifted(self.base),
            heading: self.outline.headings.len().checked_sub(1),
            is_nested: !self.items.is_empty(),
            is_step: self.items.contains(&true),
            is_criterion,
            is_under_tasks: self.is_within(Section::Tasks),
            is_apart: self.is_within(Section::Apart),
        });
        has_text
    }
}

/// The subject of a section.
#[derive(Clone, Copy, PartialEq)]
enum Section {
    Tasks,
    Criteria,
    /// What the plan leaves for later or for others.
    Apart,
    About,
    Other,
}

impl Section {
    fn of(heading: &str) -> Self {
        let words = heading.to_lowercase();
        let mut parts = words.split(|c: char| !c.is_alphanumeric());
        if is_criteria_heading(heading) {
            Self::Criteria
        } else if is_one_of(APART, heading) {
            Self::Apart
        } else if informs(heading) {
            Self::About
        } else if parts.any(|part| matches!(part, "task" | "tasks"))
            || words.contains("implementation plan")
        {
            Self::Tasks
        } else {
            Self::Other
        }
    }
}

pub(super) fn options() -> Options {
    Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES
}

pub(super) fn level_of(level: HeadingLevel) -> u8 {
    level as u8
}

/// Extracts the acceptance criteria from a text: the items of the list after a line or an item "Acceptance",
/// or of all lists under a heading of that name. The remaining text is tidied.
pub(in crate::plan) fn split_acceptance(text: &str) -> (String, Vec<String>) {
    let mut taker = OutlineReader::default();
    for (event, range) in Parser::new_ext(text, options()).into_offset_iter() {
        taker.take(text, &event, range);
    }
    taker.end_section(text.len());
    let rest = without_ranges(text, 0, taker.removed);
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
                if self.section.is_none() && is_criteria_heading(&self.block) {
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
    let mark = mark_at(text, 0).filter(|mark| !mark.is_tag(text));
    let text = mark.map_or(text, |mark| &text[mark.span.end..]);
    tidy(&dedent_rest(text.trim_start()))
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

/// The text from an offset on without these ranges, which are in order.
pub(super) fn without_ranges(text: &str, mut from: usize, removed: Vec<Range<usize>>) -> String {
    let mut rest = String::with_capacity(text.len());
    for range in removed {
        if range.start >= from {
            rest.push_str(&text[from..range.start]);
            from = range.end;
        }
    }
    rest.push_str(&text[from..]);
    rest
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
