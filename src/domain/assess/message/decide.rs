//! Classifies a message from its cues and their positions.

use super::MessageClass;
use super::cues as cue;
use super::normalise::{Kind, Normalised, Sentence};
use std::cell::OnceCell;

/// What a sentence says, as its cues show.
#[derive(Clone, Copy)]
enum Mark {
    Courtesy,
    Requests,
    Question,
    Blocked,
    Satisfied,
    SatisfiedStrong,
    Done,
    Looked,
    Speaks,
    Intent,
    PlanName,
    Advice,
    ErrorNotice,
    ErrorShape,
    Narrative,
}

/// A sentence and its marks, which are evaluated on demand: most cues are never needed, and an unused pattern
/// is never compiled.
struct MarkedSentence {
    sentence: Sentence,
    marks: [OnceCell<bool>; Mark::Narrative as usize + 1],
}

impl MarkedSentence {
    fn new(sentence: Sentence) -> Self {
        Self {
            sentence,
            marks: Default::default(),
        }
    }

    fn is(&self, mark: Mark) -> bool {
        let text = &*self.sentence.text;
        let is_not = |mark| !self.is(mark);
        *self.marks[mark as usize].get_or_init(|| match mark {
            Mark::Courtesy => cue::COURTESY.is_match(text) && !cue::COURTESY_NOT.is_match(text),
            Mark::Question => {
                cue::QUESTION.is_match(text)
                    && is_not(Mark::Courtesy)
                    && !cue::QUOTED.is_match(text)
            }
            Mark::Requests => {
                let is_listed = self.sentence.kind == Kind::Item && !cue::PLEASE.is_match(text);
                cue::ASK.is_match(text) && !is_listed && is_not(Mark::Courtesy)
            }
            Mark::Satisfied => cue::SATISFIED.is_match(text) && !cue::SATISFIED_NOT.is_match(text),
            Mark::SatisfiedStrong => {
                self.is(Mark::Satisfied) && cue::SATISFIED_STRONG.is_match(text)
            }
            Mark::Done => {
                (self.sentence.ticked || cue::DONE.is_match(text) || claims(text))
                    && !cue::DONE_NOT.is_match(text)
                    && is_not(Mark::Question)
            }
            Mark::Speaks => {
                cue::INTENT.is_match(text)
                    || self.sentence.kind == Kind::Prose
                        && cue::INTENT_ING.is_match(text)
                        && !cue::INTENT_ING_NOT.is_match(text)
            }
            Mark::Intent => {
                (self.is(Mark::Speaks) || cue::INTENT_WEAK.is_match(text))
                    && !cue::INTENT_NOT.is_match(text)
                    && is_not(Mark::Question)
                    && is_not(Mark::Courtesy)
                    && (self.is(Mark::Speaks) || is_not(Mark::Satisfied))
            }
            Mark::Blocked => cue::BLOCKED.is_match(text) && !cue::BLOCKED_NOT.is_match(text),
            Mark::Looked => cue::LOOKED.is_match(text),
            Mark::PlanName => cue::PLAN_NAME.is_match(text),
            Mark::Advice => cue::ADVICE.is_match(text),
            Mark::ErrorNotice => cue::ERROR_NOTICE.is_match(text),
            Mark::ErrorShape => cue::ERROR_SHAPE.is_match(text),
            Mark::Narrative => cue::NARRATIVE.is_match(text),
        })
    }

    /// Whether it claims a change in the first person or without a subject.
    fn is_own_work(&self) -> bool {
        self.is(Mark::Done) && cue::OWN_WORK.is_match(&self.sentence.text)
    }

    /// Whether it claims a change in the first person.
    fn is_first_person_work(&self) -> bool {
        self.is(Mark::Done) && cue::FIRST_PERSON.is_match(&self.sentence.text)
    }

    /// Whether a change is claimed before the obstacle is named: "I removed it, but couldn't run …".
    fn claims_before_block(&self) -> bool {
        let text = self.sentence.text.as_str();
        let obstacle = cue::BLOCKED.find(text).map_or(0, |found| found.start());
        let before = text.get(..obstacle).unwrap_or_default();
        cue::OWN_WORK.is_match(before) || claims(before)
    }
}

/// Whether the text claims that a change was made.
fn claims(text: &str) -> bool {
    let mut claims = cue::CLAIMED.find_iter(text);
    claims.any(|claim| !cue::CLAIMED_NOT.is_match(claim.as_str()))
}

/// A message with marked sentences.
pub(super) struct Marked {
    all: Vec<MarkedSentence>,
    status: Vec<(String, String)>,
    /// Whether the message ends with a code block.
    ends_in_code: bool,
    has_code: bool,
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

/// Some of the sentences of a message.
type Sentences<'m> = Vec<&'m MarkedSentence>;

/// A class with the sentences that decided it; `None` leaves the decision to the next stage.
type Verdict<'m> = Option<(MessageClass, Sentences<'m>)>;

/// Those of the sentences with one of these marks.
fn with<'m>(
    sentences: impl IntoIterator<Item = &'m MarkedSentence>,
    marks: &[Mark],
) -> Sentences<'m> {
    let sentences = sentences.into_iter();
    sentences
        .filter(|s| marks.iter().any(|mark| s.is(*mark)))
        .collect()
}

impl Marked {
    pub(super) fn new(normal: Normalised) -> Self {
        let is_code = |s: &Sentence| s.kind == Kind::Code;
        let ends_in_code = normal.sentences.last().is_some_and(is_code);
        let has_code = normal.sentences.iter().any(is_code);
        let spoken = normal.sentences.into_iter().filter(|s| !is_code(s));
        Self {
            all: spoken.map(MarkedSentence::new).collect(),
            status: normal.status,
            ends_in_code,
            has_code,
            edits: normal.edits,
        }
    }

    /// The class, and the sentences that decided it.
    pub(super) fn decide(&self) -> (MessageClass, Vec<&str>) {
        let found = self
            .error()
            .or_else(|| self.blocked_by_status())
            .or_else(|| self.asking())
            .or_else(|| self.blocked())
            .or_else(|| self.satisfied())
            .or_else(|| self.intent())
            .or_else(|| self.done())
            .or_else(|| self.plan());
        let (class, deciding) = found.unwrap_or((MessageClass::Other, Vec::new()));
        let shown = deciding.into_iter().map(|s| &*s.sentence.shown);
        (class, shown.collect())
    }

    /// Whether a sentence says that something was done.
    pub(super) fn says_done(&self) -> bool {
        self.any(Mark::Done)
    }

    /// Whether the message is an error. No other class is asked for, so that few cues are compiled.
    pub(super) fn is_error(&self) -> bool {
        self.error().is_some()
    }

    /// The first sentences.
    fn head(&self) -> &[MarkedSentence] {
        &self.all[..self.all.len().min(HEAD)]
    }

    /// The last sentences. A closing list counts as one sentence, together with the line that introduces it.
    fn tail(&self) -> impl Iterator<Item = &MarkedSentence> {
        let items = self.closing_items();
        let (spoken, listed) = self.all.split_at(self.all.len() - items);
        let (lead, last) = if items == 0 { (TAIL, 0) } else { (LEAD, TAIL) };
        let end = |of: &'_ [MarkedSentence], number: usize| of.len().saturating_sub(number);
        let lead = &spoken[end(spoken, lead)..];
        lead.iter().chain(&listed[end(listed, last)..])
    }

    /// The number of items in the list that ends the message.
    fn closing_items(&self) -> usize {
        let items = self.all.iter().rev();
        items.take_while(|s| s.sentence.kind == Kind::Item).count()
    }

    fn any(&self, mark: Mark) -> bool {
        self.all.iter().any(|s| s.is(mark))
    }

    fn short(&self) -> bool {
        self.all.len() <= SHORT && !self.has_code
    }

    fn status_is(&self, key: &str, value: &str) -> bool {
        let mut status = self.status.iter();
        status.any(|(k, v)| k == key && v.contains(value))
    }

    fn error(&self) -> Verdict<'_> {
        if self.any(Mark::Narrative) {
            return None;
        }
        let shape = with(self.head(), &[Mark::ErrorShape]);
        let notice = with(self.head(), &[Mark::ErrorNotice]);
        let plain = || !self.any(Mark::Done) && !self.any(Mark::Intent);
        let says_more = |s: &MarkedSentence| s.is(Mark::Done) && !s.is(Mark::ErrorNotice);
        let is = !shape.is_empty() && (!notice.is_empty() || plain())
            || !notice.is_empty() && self.short() && !self.all.iter().any(says_more);
        is.then(|| (MessageClass::Error, [notice, shape].concat()))
    }

    fn asking(&self) -> Verdict<'_> {
        let asks = [Mark::Requests, Mark::Question];
        let tail = with(self.tail(), &asks);
        let head = with(self.head(), &[Mark::Requests]);
        let short = with(self.all.iter().filter(|_| self.short()), &asks);
        let late = self.all.len().saturating_sub(LATE);
        let mut direct = with(&self.all[late..], &[Mark::Question]);
        direct.retain(|s| cue::DIRECT_QUESTION.is_match(&s.sentence.text));
        let opening = !head.is_empty() && !self.reports_work();
        let is = !tail.is_empty() || opening || !short.is_empty() || !direct.is_empty();
        is.then(|| {
            let deciding = [tail, head, short, direct].concat();
            (MessageClass::AwaitingInput, deciding)
        })
    }

    /// A status block that says "blocked", together with such a sentence at the beginning, outweighs a
    /// request that accompanies them.
    fn blocked_by_status(&self) -> Verdict<'_> {
        let is_status = self.status_is("status", "blocked");
        let head = with(self.head().iter().filter(|_| is_status), &[Mark::Blocked]);
        (!head.is_empty()).then_some((MessageClass::ReportsBlocked, head))
    }

    fn blocked(&self) -> Verdict<'_> {
        let head = with(self.head(), &[Mark::Blocked]);
        let tail = with(self.tail(), &[Mark::Blocked]);
        let status = self.status_is("status", "blocked");
        if !status && head.is_empty() && tail.is_empty() {
            return None;
        }
        let headline = |s: &MarkedSentence| {
            (s.is(Mark::Done) || s.is(Mark::SatisfiedStrong))
                && (!s.is(Mark::Blocked) || s.claims_before_block())
        };
        let at = |is: &dyn Fn(&MarkedSentence) -> bool| self.head().iter().position(is);
        let blocked_at = at(&|s| s.is(Mark::Blocked));
        let done_first = at(&headline).is_some_and(|done| blocked_at.is_none_or(|at| done <= at));
        if self.announces_last() || (!status && (self.reports_work() || done_first)) {
            return None;
        }
        Some((MessageClass::ReportsBlocked, [head, tail].concat()))
    }

    fn satisfied(&self) -> Verdict<'_> {
        let mut ends = with(self.head(), &[Mark::Satisfied]);
        ends.extend(with(self.tail(), &[Mark::Satisfied]));
        let mut strong = with(&self.all, &[Mark::SatisfiedStrong]);
        strong.retain(|s| s.sentence.kind != Kind::Item);
        let idle = self.status_says_idle();
        if self.announces_last() || self.only_advises() {
            return None;
        }
        if self.all.iter().any(MarkedSentence::is_first_person_work) {
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

    fn intent(&self) -> Verdict<'_> {
        if !self.announces_last() || self.ends_in_code {
            return None;
        }
        let mut said = with(self.tail(), &[Mark::Intent]);
        let ends_open = |s: &MarkedSentence| {
            s.is(Mark::Intent)
                && [":", "：", "..."]
                    .iter()
                    .any(|end| s.sentence.text.ends_with(end))
        };
        let cut_short = self.all.last().is_some_and(ends_open) || self.breaks_off();
        let all_are = |cue: &cue::Cue| said.iter().all(|s| cue.is_match(&s.sentence.text));
        let wraps_up = !cut_short && all_are(&cue::WRAP_UP);
        let later = !cut_short
            && !said.is_empty()
            && all_are(&cue::LATER)
            && self.head().iter().any(|s| s.is(Mark::Done));
        if later || self.reports_work() && (wraps_up || self.status_is("status", "complete")) {
            return None;
        }
        if said.is_empty() {
            said.extend(self.all.last());
        }
        Some((MessageClass::PlanningOnly, said))
    }

    fn done(&self) -> Verdict<'_> {
        let all = with(&self.all, &[Mark::Done]);
        if self.edits {
            return Some((MessageClass::ClaimsDone, all));
        }
        if self.only_looked() || self.only_advises() {
            return None;
        }
        let mut ends = with(self.head(), &[Mark::Done]);
        ends.extend(with(self.tail(), &[Mark::Done]));
        let is = !ends.is_empty() || all.len() >= 3 || self.status_is("status", "complete");
        is.then(|| (MessageClass::ClaimsDone, [ends, all].concat()))
    }

    /// Whether the headline is a review or an analysis and no change is claimed.
    fn only_looked(&self) -> bool {
        let looked = |s: Option<&MarkedSentence>| s.is_some_and(|s| s.is(Mark::Looked));
        let is_own = self.all.iter().any(MarkedSentence::is_own_work);
        looked(self.all.first()) && (!is_own || looked(self.all.last()))
    }

    /// Whether the message shows code for a person to apply.
    fn only_advises(&self) -> bool {
        self.has_code
            && self.any(Mark::Advice)
            && !self.all.iter().any(MarkedSentence::is_first_person_work)
            && !self.all.first().is_some_and(|s| s.is(Mark::Done))
            && !self.status_is("status", "complete")
    }

    fn plan(&self) -> Verdict<'_> {
        let named = with(self.head(), &[Mark::PlanName]);
        let place = if self.short() {
            &self.all[..]
        } else {
            self.head()
        };
        let said = with(place, &[Mark::Intent]);
        let is = !self.has_code && (!named.is_empty() || !said.is_empty());
        is.then(|| (MessageClass::PlanningOnly, [named, said].concat()))
    }

    /// Whether the message reports work in its headline or at length.
    fn reports_work(&self) -> bool {
        let own = |of: &[MarkedSentence]| of.iter().filter(|s| s.is_own_work()).count();
        own(self.head()) > 0 || own(&self.all) >= 2 || with(&self.all, &[Mark::Done]).len() >= 4
    }

    /// Whether prose ends with a colon and nothing follows, as if a tool call was meant to follow.
    fn breaks_off(&self) -> bool {
        let is_open = |s: &MarkedSentence| {
            s.sentence.kind == Kind::Prose
                && s.sentence.text.ends_with(':')
                && !s.is(Mark::Blocked)
                && !cue::POINTS.is_match(&s.sentence.text)
        };
        self.all.last().is_some_and(is_open) && !self.ends_in_code && self.status.is_empty()
    }

    /// Whether the message ends with an announcement.
    fn announces_last(&self) -> bool {
        let outlook =
            self.has_code || self.any(Mark::Advice) || self.head().iter().any(|s| s.is(Mark::Done));
        // An announcement without a subject may also be an outlook.
        let announces = |s: &MarkedSentence| s.is(Mark::Intent) && (s.is(Mark::Speaks) || !outlook);
        let (spoken, listed) = self.all.split_at(self.all.len() - self.closing_items());
        let lead = spoken.last().filter(|_| !listed.is_empty());
        self.all.last().is_some_and(announces) || lead.is_some_and(announces) || self.breaks_off()
    }
}
