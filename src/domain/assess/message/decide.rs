//! Classifies a message from its cues and their positions.

use super::MessageClass;
use super::cues as cue;
use super::normalise::{Kind, Normalised, Sentence};
use std::cell::OnceCell;

/// A sentence and its cues, which are evaluated on demand: most cues are never needed, and an unused pattern
/// is never compiled.
struct MarkedSentence {
    sentence: Sentence,
    found: Found,
}

/// One cached result per cue.
#[derive(Default)]
struct Found {
    courtesy: OnceCell<bool>,
    requests: OnceCell<bool>,
    question: OnceCell<bool>,
    blocked: OnceCell<bool>,
    satisfied: OnceCell<bool>,
    satisfied_strong: OnceCell<bool>,
    done: OnceCell<bool>,
    looked: OnceCell<bool>,
    speaks: OnceCell<bool>,
    intent: OnceCell<bool>,
    plan_name: OnceCell<bool>,
    advice: OnceCell<bool>,
    error_notice: OnceCell<bool>,
    error_shape: OnceCell<bool>,
    narrative: OnceCell<bool>,
}

impl MarkedSentence {
    fn new(sentence: Sentence) -> Self {
        Self {
            sentence,
            found: Found::default(),
        }
    }

    fn text(&self) -> &str {
        &self.sentence.text
    }

    fn once(&self, cell: &OnceCell<bool>, holds: impl FnOnce(&str) -> bool) -> bool {
        *cell.get_or_init(|| holds(self.text()))
    }

    fn courtesy(&self) -> bool {
        self.once(&self.found.courtesy, |text| {
            cue::COURTESY.is_match(text) && !cue::COURTESY_NOT.is_match(text)
        })
    }

    fn question(&self) -> bool {
        self.once(&self.found.question, |text| {
            cue::QUESTION.is_match(text) && !self.courtesy() && !cue::QUOTED.is_match(text)
        })
    }

    fn requests(&self) -> bool {
        let listed = |text: &str| self.sentence.kind == Kind::Item && !cue::PLEASE.is_match(text);
        self.once(&self.found.requests, |text| {
            cue::ASK.is_match(text) && !listed(text) && !self.courtesy()
        })
    }

    fn satisfied(&self) -> bool {
        self.once(&self.found.satisfied, |text| {
            cue::SATISFIED.is_match(text) && !cue::SATISFIED_NOT.is_match(text)
        })
    }

    fn satisfied_strong(&self) -> bool {
        self.once(&self.found.satisfied_strong, |text| {
            self.satisfied() && cue::SATISFIED_STRONG.is_match(text)
        })
    }

    fn done(&self) -> bool {
        self.once(&self.found.done, |text| {
            (self.sentence.ticked || cue::DONE.is_match(text) || claims(text))
                && !cue::DONE_NOT.is_match(text)
                && !self.question()
        })
    }

    fn speaks(&self) -> bool {
        self.once(&self.found.speaks, |text| {
            cue::INTENT.is_match(text)
                || self.sentence.kind == Kind::Prose
                    && cue::INTENT_ING.is_match(text)
                    && !cue::INTENT_ING_NOT.is_match(text)
        })
    }

    fn intent(&self) -> bool {
        self.once(&self.found.intent, |text| {
            (self.speaks() || cue::INTENT_WEAK.is_match(text))
                && !cue::INTENT_NOT.is_match(text)
                && !self.question()
                && !self.courtesy()
                && (self.speaks() || !self.satisfied())
        })
    }

    fn intent_weak(&self) -> bool {
        self.intent() && !self.speaks()
    }

    fn blocked(&self) -> bool {
        self.once(&self.found.blocked, |text| {
            cue::BLOCKED.is_match(text) && !cue::BLOCKED_NOT.is_match(text)
        })
    }

    fn looked(&self) -> bool {
        self.once(&self.found.looked, |text| cue::LOOKED.is_match(text))
    }

    fn plan_name(&self) -> bool {
        self.once(&self.found.plan_name, |text| cue::PLAN_NAME.is_match(text))
    }

    fn advice(&self) -> bool {
        self.once(&self.found.advice, |text| cue::ADVICE.is_match(text))
    }

    fn error_notice(&self) -> bool {
        let cell = &self.found.error_notice;
        self.once(cell, |text| cue::ERROR_NOTICE.is_match(text))
    }

    fn error_shape(&self) -> bool {
        let cell = &self.found.error_shape;
        self.once(cell, |text| cue::ERROR_SHAPE.is_match(text))
    }

    fn narrative(&self) -> bool {
        self.once(&self.found.narrative, |text| cue::NARRATIVE.is_match(text))
    }
}

/// Whether the text claims that a change was made.
fn claims(text: &str) -> bool {
    cue::CLAIMED
        .find_iter(text)
        .any(|claim| !cue::CLAIMED_NOT.is_match(claim.as_str()))
}

impl MarkedSentence {
    /// Whether a change is claimed before the obstacle is named: "I removed it, but couldn't run …".
    fn claims_before_block(&self) -> bool {
        let text = self.sentence.text.as_str();
        let obstacle = cue::BLOCKED.find(text).map_or(0, |found| found.start());
        let before = text.get(..obstacle).unwrap_or_default();
        cue::OWN_WORK.is_match(before) || claims(before)
    }

    /// Whether the sentence introduces something that does not follow.
    fn shown_ends_open(&self) -> bool {
        self.sentence.text.ends_with([':', '：']) || self.sentence.text.ends_with("...")
    }
}

/// A message with marked sentences, and the regions that count.
pub(super) struct Marked {
    all: Vec<MarkedSentence>,
    status: Vec<(String, String)>,
    /// Indexes of the first sentences.
    head: Vec<usize>,
    /// Indexes of the last sentences, including the one that introduces a closing list.
    tail: Vec<usize>,
    /// Whether the message ends with a code block.
    ends_in_code: bool,
    code_blocks: usize,
    edits: bool,
}

/// Number of sentences at the beginning that count.
const HEAD: usize = 3;

/// Number of sentences at the end that count.
const TAIL: usize = 3;

/// Number of sentences before a closing list that count, including the one that introduces it.
const LEAD: usize = 2;

/// Number of sentences at the end in which a question to the user counts.
const LATE: usize = 8;

/// Maximum number of sentences of a short message, in which every sentence counts.
const SHORT: usize = 5;

/// A class with the indexes of the sentences that decided it; `None` leaves the decision to the next stage.
type Verdict = Option<(MessageClass, Vec<usize>)>;

impl Marked {
    pub(super) fn new(normal: Normalised) -> Self {
        let code_blocks = normal
            .sentences
            .iter()
            .filter(|s| s.kind == Kind::Code)
            .count();
        let ends_in_code = normal
            .sentences
            .last()
            .is_some_and(|s| s.kind == Kind::Code);
        let spoken = normal
            .sentences
            .into_iter()
            .filter(|s| s.kind != Kind::Code);
        let all: Vec<_> = spoken.map(MarkedSentence::new).collect();
        let head = (0..all.len().min(HEAD)).collect();
        let tail = tail_of(&all);
        Self {
            all,
            status: normal.status,
            head,
            tail,
            ends_in_code,
            code_blocks,
            edits: normal.edits,
        }
    }

    /// The class, and the sentences that decided it.
    pub(super) fn decide(&self) -> (MessageClass, Vec<&str>) {
        let stages: [fn(&Self) -> Verdict; 8] = [
            Self::error,
            Self::blocked_by_status,
            Self::asking,
            Self::blocked,
            Self::satisfied,
            Self::intent,
            Self::done,
            Self::plan,
        ];
        let found = stages.iter().find_map(|stage| stage(self));
        let (class, at) = found.unwrap_or((MessageClass::Other, Vec::new()));
        (
            class,
            at.into_iter()
                .filter_map(|i| self.all.get(i))
                .map(shown)
                .collect(),
        )
    }

    fn at(&self, place: &[usize], cue: impl Fn(&MarkedSentence) -> bool) -> Vec<usize> {
        place
            .iter()
            .copied()
            .filter(|&i| self.all.get(i).is_some_and(&cue))
            .collect()
    }

    fn anywhere(&self, cue: impl Fn(&MarkedSentence) -> bool) -> Vec<usize> {
        (0..self.all.len())
            .filter(|&i| self.all.get(i).is_some_and(&cue))
            .collect()
    }

    /// Whether a sentence says that something was done.
    pub fn says_done(&self) -> bool {
        self.all.iter().any(MarkedSentence::done)
    }

    fn short(&self) -> bool {
        self.all.len() <= SHORT && self.code_blocks == 0
    }

    fn status_is(&self, key: &str, value: &str) -> bool {
        self.status
            .iter()
            .any(|(k, v)| k == key && v.contains(value))
    }

    /// Whether the message is an error. No other class is asked for, so that few cues are compiled.
    pub(super) fn is_error(&self) -> bool {
        self.error().is_some()
    }

    fn error(&self) -> Verdict {
        if self.all.iter().any(|s| s.narrative()) {
            return None;
        }
        let shape = self.at(&self.head, |s| s.error_shape());
        let notice = self.at(&self.head, |s| s.error_notice());
        let plain = || self.all.iter().all(|s| !s.done() && !s.intent());
        let is = (!shape.is_empty() && (!notice.is_empty() || plain()))
            || (!notice.is_empty()
                && self.short()
                && self.all.iter().all(|s| !s.done() || s.error_notice()));
        is.then(|| (MessageClass::Error, [notice, shape].concat()))
    }

    fn asking(&self) -> Verdict {
        let tail = self.at(&self.tail, |s| s.requests() || s.question());
        let head = self.at(&self.head, |s| s.requests());
        let short = if self.short() {
            self.anywhere(|s| s.requests() || s.question())
        } else {
            Vec::new()
        };
        let opening = !head.is_empty() && !self.reports_work();
        let late: Vec<usize> = (self.all.len().saturating_sub(LATE)..self.all.len()).collect();
        let direct = self.at(&late, |s| {
            s.question() && cue::DIRECT_QUESTION.is_match(&s.sentence.text)
        });
        let is = !tail.is_empty() || opening || !short.is_empty() || !direct.is_empty();
        is.then(|| {
            (
                MessageClass::AwaitingInput,
                [tail, head, short, direct].concat(),
            )
        })
    }

    /// A status block that says "blocked", together with such a sentence at the beginning, outweighs a
    /// request that accompanies them.
    fn blocked_by_status(&self) -> Verdict {
        if !self.status_is("status", "blocked") {
            return None;
        }
        let head = self.at(&self.head, |s| s.blocked());
        (!head.is_empty()).then_some((MessageClass::ReportsBlocked, head))
    }

    fn blocked(&self) -> Verdict {
        let head = self.at(&self.head, |s| s.blocked());
        let tail = self.at(&self.tail, |s| s.blocked());
        let status = self.status_is("status", "blocked");
        if !status && head.is_empty() && tail.is_empty() {
            return None;
        }
        let headline = |s: &MarkedSentence| {
            (s.done() || s.satisfied_strong()) && (!s.blocked() || s.claims_before_block())
        };
        let done_at = self.at(&self.head, headline).first().copied();
        let done_first = done_at.is_some_and(|done| head.first().is_none_or(|&at| done <= at));
        if self.announces_last() || (!status && (self.reports_work() || done_first)) {
            return None;
        }
        Some((MessageClass::ReportsBlocked, [head, tail].concat()))
    }

    fn satisfied(&self) -> Verdict {
        let ends = [
            self.at(&self.head, |s| s.satisfied()),
            self.at(&self.tail, |s| s.satisfied()),
        ]
        .concat();
        let strong = self.anywhere(|s| s.satisfied_strong() && s.sentence.kind != Kind::Item);
        let idle = self.status_says_idle();
        if self.announces_last() || self.only_advises() {
            return None;
        }
        if self.first_person_work() > 0 {
            return idle.then_some((MessageClass::AlreadySatisfied, ends));
        }
        let is = idle || !strong.is_empty() || (!ends.is_empty() && !self.reports_work());
        is.then(|| (MessageClass::AlreadySatisfied, [ends, strong].concat()))
    }

    /// Whether a status block says that the work is complete and that this turn did nothing.
    fn status_says_idle(&self) -> bool {
        let counts = |key: &str| self.status.iter().any(|(k, v)| k == key && v == "0");
        self.status_is("status", "complete")
            && counts("files_modified")
            && (counts("tasks_completed_this_loop") || self.status_is("exit_signal", "true"))
    }

    fn intent(&self) -> Verdict {
        if !self.announces_last() || self.ends_in_code {
            return None;
        }
        let said = self.at(&self.tail, |s| s.intent());
        let cut_short = self
            .all
            .last()
            .is_some_and(|s| s.intent() && s.shown_ends_open())
            || self.breaks_off();
        let wraps_up = !cut_short
            && said
                .iter()
                .filter_map(|&i| self.all.get(i))
                .all(|s| cue::WRAP_UP.is_match(&s.sentence.text));
        let later = !cut_short
            && !said.is_empty()
            && said
                .iter()
                .filter_map(|&i| self.all.get(i))
                .all(|s| cue::LATER.is_match(&s.sentence.text))
            && !self.at(&self.head, |s| s.done()).is_empty();
        if later || self.reports_work() && (wraps_up || self.status_is("status", "complete")) {
            return None;
        }
        let last = self.all.len().saturating_sub(1);
        let said = if said.is_empty() { vec![last] } else { said };
        Some((MessageClass::PlanningOnly, said))
    }

    fn done(&self) -> Verdict {
        let head = self.at(&self.head, |s| s.done());
        let tail = self.at(&self.tail, |s| s.done());
        let all = self.anywhere(|s| s.done());
        if self.edits {
            return Some((MessageClass::ClaimsDone, all));
        }
        if self.only_looked() || self.only_advises() {
            return None;
        }
        let is = !head.is_empty() || !tail.is_empty() || all.len() >= 3;
        let is = is || self.status_is("status", "complete");
        is.then(|| (MessageClass::ClaimsDone, [head, tail, all].concat()))
    }

    /// Whether the headline is a review or an analysis and no change is claimed.
    fn only_looked(&self) -> bool {
        let headline = self.all.first().is_some_and(|s| s.looked());
        headline && (self.own_work() == 0 || self.all.last().is_some_and(|s| s.looked()))
    }

    /// Whether the message shows code for a person to apply.
    fn only_advises(&self) -> bool {
        self.code_blocks > 0
            && self.all.iter().any(|s| s.advice())
            && self.first_person_work() == 0
            && !self.all.first().is_some_and(|s| s.done())
            && !self.status_is("status", "complete")
    }

    fn plan(&self) -> Verdict {
        if self.code_blocks > 0 {
            return None;
        }
        let named = self.at(&self.head, |s| s.plan_name());
        let said = if self.short() {
            self.anywhere(|s| s.intent())
        } else {
            self.at(&self.head, |s| s.intent())
        };
        let is = !named.is_empty() || !said.is_empty();
        is.then(|| (MessageClass::PlanningOnly, [named, said].concat()))
    }

    /// The number of sentences in which the agent claims a change in the first person or without a subject.
    fn own_work(&self) -> usize {
        self.anywhere(|s| s.done() && cue::OWN_WORK.is_match(&s.sentence.text))
            .len()
    }

    /// The number of sentences in which the agent claims a change in the first person.
    fn first_person_work(&self) -> usize {
        self.anywhere(|s| s.done() && cue::FIRST_PERSON.is_match(&s.sentence.text))
            .len()
    }

    /// Whether the message reports work in its headline or at length.
    fn reports_work(&self) -> bool {
        let headline = self.at(&self.head, |s| {
            s.done() && cue::OWN_WORK.is_match(&s.sentence.text)
        });
        !headline.is_empty() || self.own_work() >= 2 || self.anywhere(|s| s.done()).len() >= 4
    }

    /// Whether prose ends with a colon and nothing follows, as if a tool call was meant to follow.
    fn breaks_off(&self) -> bool {
        let last = self.all.last();
        last.is_some_and(|s| {
            s.sentence.kind == Kind::Prose
                && s.sentence.text.ends_with(':')
                && !s.blocked()
                && !cue::POINTS.is_match(&s.sentence.text)
        }) && !self.ends_in_code
            && self.status.is_empty()
    }

    /// Whether the message ends with an announcement.
    fn announces_last(&self) -> bool {
        let outlook = self.code_blocks > 0
            || self.all.iter().any(|s| s.advice())
            || !self.at(&self.head, |s| s.done()).is_empty();
        let is = |i: Option<&usize>| {
            let sentence = i.and_then(|&i| self.all.get(i));
            sentence.is_some_and(|s| s.intent() && !(s.intent_weak() && outlook))
        };
        let items = closing_items(&self.all);
        let lead = (self.all.len() - items).checked_sub(1);
        is(self.tail.last()) || (items > 0 && is(lead.as_ref())) || self.breaks_off()
    }
}

fn shown(sentence: &MarkedSentence) -> &str {
    &sentence.sentence.shown
}

/// The last sentences. A closing list counts as one sentence, together with the line that introduces it.
fn tail_of(all: &[MarkedSentence]) -> Vec<usize> {
    let items = closing_items(all);
    let before = all.len() - items;
    if items == 0 {
        return (all.len().saturating_sub(TAIL)..all.len()).collect();
    }
    let lead = before.saturating_sub(LEAD)..before;
    lead.chain(all.len().saturating_sub(items.min(TAIL))..all.len())
        .collect()
}

/// The number of items in the list that ends the message.
fn closing_items(all: &[MarkedSentence]) -> usize {
    let items = all.iter().rev();
    items.take_while(|s| s.sentence.kind == Kind::Item).count()
}
