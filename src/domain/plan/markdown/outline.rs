//! The headings, the checkboxes and the acceptance criteria of a Markdown text, found in one walk. A Markdown parser
//! recognises code fences, quotes and HTML.

use super::headings::{Section, is_acceptance};
use crate::pattern::Pattern;
use crate::plan::kind::only_commits;
use crate::text::{has_word, without_ranges};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::iter::successors;
use std::ops::Range;

/// The structure of a text, with offsets from the start of the file.
#[derive(Debug, Default)]
pub(in crate::plan) struct Outline {
    pub headings: Vec<Heading>,
    pub items: Vec<Item>,
    /// The parts that do not belong to the description of a task.
    cuts: Vec<Cut>,
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
    /// The subject of its section.
    pub section: Section,
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
}

/// A checkbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct Mark {
    /// The `[ ]`.
    pub span: Range<usize>,
    pub checked: bool,
    /// Whether it is neither `[ ]` nor `[x]`.
    pub is_other: bool,
    /// Whether it is `[ ]*`, as Kiro marks what need not be done.
    pub is_optional: bool,
}

/// A list or section of acceptance criteria, or a step that only commits.
#[derive(Debug)]
struct Cut {
    span: Range<usize>,
    criteria: Vec<String>,
    is_commit: bool,
}

/// The text of a task, taken apart.
#[derive(Debug, Default)]
pub(in crate::plan) struct Described {
    pub description: String,
    pub acceptance: Vec<String>,
    /// The number of steps that only commit.
    pub commits: usize,
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
        is_optional: after.starts_with("* "),
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

/// A list item that looks as if it had a box.
static NEAR: Pattern = Pattern::new(r"^[-*+ ]+(?:\[[0-9]+\](?:[^(]|$)|\([ x]\))");

/// The beginning of a list item.
static BULLET: Pattern = Pattern::new(r"^\s*(?:[-*+]|[0-9]+[.)])");

/// The checkbox of the list item at this offset.
fn mark_of_item(text: &str, at: usize) -> Option<Mark> {
    let item = text.get(at..)?;
    let rest = &item[BULLET.find_at(item, 0)?.end..];
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

    /// The first heading of the first level.
    pub fn headline(&self) -> Option<&Heading> {
        self.headings.iter().find(|heading| heading.level == 1)
    }

    /// A heading and those of the sections that it is in, the innermost first.
    pub fn sections(&self, heading: Option<usize>) -> impl Iterator<Item = &Heading> {
        let places = successors(heading, |place| self.headings[*place].parent);
        places.map(|place| &self.headings[place])
    }

    /// Whether a place below a heading is in a section with this subject.
    pub fn is_within(&self, heading: Option<usize>, subject: Section) -> bool {
        self.sections(heading).any(|above| above.section == subject)
    }

    /// Takes the text in a range apart. `removed` are parts that were read already.
    pub fn describe(
        &self,
        text: &str,
        range: Range<usize>,
        mut removed: Vec<Range<usize>>,
    ) -> Described {
        let mut told = Described::default();
        let first = self
            .cuts
            .partition_point(|cut| cut.span.start < range.start);
        let cuts = self.cuts[first..].iter();
        for cut in cuts.take_while(|cut| cut.span.start < range.end) {
            if removed.iter().any(|read| read.contains(&cut.span.start)) {
                continue;
            }
            // The indentation of the next line may count as a part of a list.
            let blanks = [' ', '\t'];
            let end = cut.span.end.min(range.end);
            let before = text[range.start..cut.span.start].trim_end_matches(blanks);
            let read = text[cut.span.start..end].trim_end_matches(blanks);
            removed.push(range.start + before.len()..cut.span.start + read.len());
            told.acceptance.extend_from_slice(&cut.criteria);
            told.commits += usize::from(cut.is_commit);
        }
        removed.sort_by_key(|part| part.start);
        told.description = tidy(&dedent(&without_ranges(
            &text[..range.end],
            range.start,
            &removed,
        )));
        told
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
    /// The item whose own line has not ended yet.
    item: Option<Range<usize>>,
    /// The text of the last heading, paragraph or item, and where it starts.
    block: String,
    block_start: usize,
    /// The level of the section of criteria that is open, and its place among the cuts.
    criteria: Option<(u8, usize)>,
    is_after_commit: bool,
}

impl Walk<'_> {
    fn take(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::BlockQuote(_)) => self.quotes += 1,
            Event::End(TagEnd::BlockQuote(_)) => self.quotes = self.quotes.saturating_sub(1),
            Event::Start(Tag::List(_)) => self.list(&range),
            Event::End(TagEnd::List(_)) => {
                self.lists.pop();
                self.block.clear();
            }
            Event::Start(Tag::Item) => self.item(range),
            Event::End(TagEnd::Item) => {
                self.end_line(None);
                self.items.pop();
            }
            Event::Start(Tag::Heading { .. }) => self.start_block(range.start),
            Event::Start(Tag::Paragraph) => {
                // The first paragraph of an item starts at its bullet.
                if self.item.is_none() {
                    self.start_block(range.start);
                }
                self.line(range.start);
            }
            Event::End(TagEnd::Paragraph) => self.end_line(Some(range)),
            Event::End(TagEnd::Heading(level)) => {
                self.end_line(Some(range.clone()));
                if self.is_outside() {
                    self.heading(*level as u8, range);
                }
            }
            Event::Start(Tag::CodeBlock(_)) => {
                let code = self.body[range.clone()].lines().nth(1);
                let is_git = code.is_some_and(|code| code.trim_start().starts_with("git "));
                if self.is_after_commit && is_git {
                    self.cut(range, false);
                }
                self.is_after_commit = false;
            }
            Event::Text(text) | Event::Code(text) => self.block.push_str(text),
            Event::SoftBreak | Event::HardBreak => {
                self.block.push(' ');
                self.line(range.end);
            }
            _ => {}
        }
    }

    fn start_block(&mut self, start: usize) {
        self.block.clear();
        self.block_start = start;
    }

    fn last_heading(&self) -> Option<usize> {
        self.outline.headings.len().checked_sub(1)
    }

    fn is_within(&self, subject: Section) -> bool {
        self.outline.is_within(self.last_heading(), subject)
    }

    fn is_outside(&self) -> bool {
        self.lists.is_empty() && self.quotes == 0
    }

    fn cut(&mut self, span: Range<usize>, is_commit: bool) {
        self.outline.cuts.push(Cut {
            span: span.start + self.base..span.end + self.base,
            criteria: Vec::new(),
            is_commit,
        });
    }

    /// Ends the line of an item, or else this paragraph or heading.
    fn end_line(&mut self, range: Option<Range<usize>>) {
        let Some(range) = self.item.take().or(range) else {
            return;
        };
        let is_criterion = self.criteria.is_some() || self.lists.last() == Some(&true);
        self.is_after_commit = !is_criterion && only_commits(&self.block);
        if self.is_after_commit {
            self.cut(range, true);
        }
    }

    /// Notes a line that looks like a list item with a box, and that Markdown reads as a part of a paragraph.
    fn line(&mut self, start: usize) {
        let line = self.body[start..].trim_start_matches(' ');
        let rest = line.strip_prefix(['-', '*', '+']).unwrap_or_default();
        if self.quotes == 0 && mark_at(rest, 0).is_some() {
            self.outline.unread.push(start + self.base);
        }
    }

    fn list(&mut self, range: &Range<usize>) {
        self.end_line(None);
        let is_within = self.criteria.is_some() || self.lists.last() == Some(&true);
        let is_announced = is_acceptance(&self.block);
        if is_announced && !is_within {
            self.cut(self.block_start..range.end, false);
        }
        self.lists.push(is_within || is_announced);
        self.block.clear();
    }

    fn heading(&mut self, level: u8, range: Range<usize>) {
        let block = std::mem::take(&mut self.block);
        let (text, says_done) = undecorated(&block);
        let span = range.start + self.base..range.end + self.base;
        if let Some((_, cut)) = self.criteria.take_if(|(above, _)| level <= *above) {
            self.outline.cuts[cut].span.end = span.start;
        }
        let headings = &self.outline.headings;
        let mut sections = successors(self.last_heading(), |above| headings[*above].parent);
        let parent = sections.find(|above| headings[*above].level < level);
        let without = mark_of_heading(text).map(|mark| {
            let (before, after) = (&text[..mark.span.start], &text[mark.span.end..]);
            format!("{}{}", before.trim_start(), after.trim_start())
        });
        let text = undecorated(without.as_deref().unwrap_or(text)).0.to_owned();
        // The title of the plan is above all sections.
        let section = if level == 1 && headings.is_empty() {
            Section::Other
        } else {
            Section::of(&text)
        };
        if section == Section::Criteria && self.criteria.is_none() {
            self.criteria = Some((level, self.outline.cuts.len()));
            self.cut(range.start..self.body.len(), false);
        }
        let line = self.body[range.clone()].lines().next().unwrap_or_default();
        self.outline.headings.push(Heading {
            level,
            parent,
            text,
            section,
            says_done,
            mark: mark_of_heading(line).map(|mark| mark.shifted(span.start)),
            span,
        });
    }

    fn item(&mut self, range: Range<usize>) {
        self.start_block(range.start);
        self.is_after_commit = false;
        self.item = Some(range.clone());
        let is_criterion = self.lists.last() == Some(&true);
        let is_part = self.lists.iter().rev().nth(1) == Some(&true);
        if is_criterion
            && !is_part
            && let Some(cut) = self.outline.cuts.last_mut()
        {
            let text = criterion(&self.body[range.clone()]);
            cut.criteria
                .extend(Some(text).filter(|text| !text.is_empty()));
        }
        let has_text = self.boxed_item(range, is_criterion);
        self.items.push(has_text);
    }

    /// Notes the checkbox of an item, and returns whether it has one with a text.
    fn boxed_item(&mut self, range: Range<usize>, is_criterion: bool) -> bool {
        let informs = self.is_within(Section::About) || self.is_within(Section::State);
        // The legend of a list explains its marks.
        let mark = mark_of_item(self.body, range.start)
            .filter(|mark| self.quotes == 0 && !(informs && mark.is_tag(self.body)));
        let Some(mark) = mark else {
            let line = self.body[range.start..].lines().next().unwrap_or_default();
            let is_aside = informs || self.quotes > 0 || self.is_within(Section::Apart);
            if NEAR.is_match(line) && !is_aside {
                self.outline.unread.push(range.start + self.base);
            }
            return false;
        };
        let line = self.body[mark.span.end..].lines().next();
        let has_text = line.is_some_and(|line| !line.trim().is_empty());
        self.outline.items.push(Item {
            span: range.start + self.base..range.end + self.base,
            mark: mark.shifted(self.base),
            heading: self.last_heading(),
            is_nested: !self.items.is_empty(),
            is_step: self.items.contains(&true),
            is_criterion,
        });
        has_text
    }
}

fn options() -> Options {
    Options::ENABLE_TASKLISTS | Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES
}

/// A list item's text without its bullet and checkbox.
fn criterion(item: &str) -> String {
    let bullet = BULLET.find_at(item, 0).map_or(0, |bullet| bullet.end);
    let text = item[bullet..].trim_start();
    let mark = mark_at(text, 0).filter(|mark| !mark.is_tag(text));
    let text = mark
        .map_or(text, |mark| &text[mark.span.end..])
        .trim_start();
    // The first line stands behind the bullet, so only the others have an indentation.
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    tidy(&format!("{first}\n{}", dedent(rest)))
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
