//! What the words of a heading say about its section.

use super::label::of_heading;
use crate::text::has_word;

/// Headings whose sections inform about a plan and are not tasks.
const ABOUT: &str = "\
    about|approach|architecture|assumptions|background|constraints|context|current state|dependencies|\
    description|execution handoff|file structure|files|global constraints|glossary|goal|goals|introduction|\
    links|motivation|notes|objective|objectives|overview|problem|problem statement|references|requirements|\
    resources|risks|scope|self-review|summary|table of contents|tech stack|technical details|timeline";

/// Headings of sections that inform, and that may hold tasks by their state.
const STATES: &str = "completed|done|progress|status";

/// Headings of what a plan leaves for later or for others. Boxes below them are not tasks either.
const APART: &str = "\
    deferred|future|future work|non-goals|non goals|open questions|out of scope|prerequisites|questions|\
    rollback|rollback plan";

/// Headings of lists that are for checking the result if they close a plan.
const CLOSING: &str = "\
    checklist|final check|final checklist|final checks|final verification|manual verification|validation|\
    verification|verification checklist";

/// Headings whose numbered headings are tasks, and below which a story has its boxes.
const TASKS: &str = "\
    implementation plan|implementation steps|implementation tasks|steps|task breakdown|task list|tasks|todo";

/// The subject of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Section {
    Criteria,
    Apart,
    State,
    About,
    Closing,
    Tasks,
    Other,
}

impl Section {
    /// The subject by a heading, which may have a number before it and a remark in brackets behind it.
    pub fn of(heading: &str) -> Self {
        if is_criteria_heading(heading) {
            return Self::Criteria;
        }
        let is_number = |c: char| c.is_ascii_digit() || ".) ".contains(c);
        let name = heading.split(" (").next().unwrap_or_default();
        let name = name.trim_start_matches(is_number).trim_end_matches(':');
        let name = name.trim().to_lowercase();
        let lists = [
            (Self::Apart, APART),
            (Self::State, STATES),
            (Self::About, ABOUT),
            (Self::Closing, CLOSING),
            (Self::Tasks, TASKS),
        ];
        let mut lists = lists.into_iter();
        let found = lists.find(|(_, names)| names.split('|').any(|known| known == name));
        found.map_or(Self::Other, |(section, _)| section)
    }

    /// Whether it informs about the plan or its result.
    pub fn informs(self) -> bool {
        matches!(
            self,
            Self::Criteria | Self::Apart | Self::State | Self::About
        )
    }
}

/// Lines that announce acceptance criteria.
const ACCEPTANCE: &str = "\
    acceptance|acceptance criteria|acceptance tests|definition of done|done when|exit criteria|success criteria";

/// What the heading of a list of criteria has.
const CRITERIA: &str = "\
    acceptance criteria|acceptance check|completion criteria|success criteria|definition of done|exit criteria";

/// First words of a heading that asks for something about criteria.
const WORK_VERBS: &str = "add check confirm create define document ensure fix implement meet test update validate verify write";

/// Whether a heading announces acceptance criteria, and is not itself a task about them.
fn is_criteria_heading(text: &str) -> bool {
    let words = text.to_lowercase();
    let first = words.split(' ').next().unwrap_or_default();
    let is_work = of_heading(text).is_some() || has_word(WORK_VERBS, first);
    !is_work && (is_acceptance(text) || CRITERIA.split('|').any(|name| words.contains(name)))
}

/// Whether a line or an item announces acceptance criteria.
pub(super) fn is_acceptance(text: &str) -> bool {
    let words = text.trim().trim_end_matches(':').trim().to_lowercase();
    ACCEPTANCE.split('|').any(|name| name == words)
}
