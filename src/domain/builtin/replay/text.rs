//! The human-readable account.

use super::{Account, Difference, Replay, SessionEvent, StepAccount, excerpt};
use crate::builtin::session::{LoopKind, ModelRequest, Note, Step, Suppressed, Telemetry};
use crate::builtin::trajectory::Ending;
use crate::duration;
use crate::text::{cap_chars, grouped};
use std::fmt::Write as _;
use std::time::Duration;

/// The maximum length of a step as JSON, in characters.
const MAX_STEP_CHARS: usize = 400;

impl Replay {
    /// The account, followed by whether the decisions are the same.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let count = self.sessions.len();
        for (index, session) in self.sessions.iter().enumerate() {
            let _ = writeln!(
                text,
                "Session {} of {count}: {}\n",
                index + 1,
                title(session)
            );
            push_account(session, "", &mut text);
            text.push('\n');
        }
        self.push_verdict(&mut text);
        text
    }

    fn push_verdict(&self, text: &mut String) {
        let decisions = many(self.decisions, "decision");
        let sessions = many(self.sessions.len(), "session");
        if self.same {
            let _ = writeln!(text, "{decisions} in {sessions}, all as they were recorded");
            return;
        }
        let _ = writeln!(
            text,
            "{} of {decisions} in {sessions} differ from what was recorded:",
            self.differences.len()
        );
        for difference in &self.differences {
            push_difference(difference, text);
        }
    }
}

fn push_difference(it: &Difference, text: &mut String) {
    let (then, now) = both(&it.then, &it.now);
    let slice = it
        .slice
        .as_ref()
        .map_or_else(String::new, |file| format!(", on {} alone", excerpt(file)));
    let _ = writeln!(
        text,
        "  session {}{slice}, step {} (line {})\n    then: {then}\n    now:  {now}",
        it.session, it.step, it.line
    );
}

fn title(it: &Account) -> String {
    let turn = &it.turn;
    format!(
        "task {}, attempt {}, turn {} ({}); {} by {}; Sprag {}",
        excerpt(&turn.task),
        turn.attempt,
        turn.turn,
        excerpt(&turn.purpose),
        excerpt(&it.model),
        excerpt(&it.provider),
        excerpt(&it.sprag)
    )
}

fn push_account(it: &Account, indent: &str, text: &mut String) {
    for step in &it.steps {
        push_step(step, indent, text);
    }
    let mut last = Vec::new();
    match it.ending {
        Ending::Ended => {}
        Ending::Open => last.push("the record stops here: the session was cut off".to_owned()),
        Ending::Torn { line } => {
            last.push(format!(
                "the record stops here: line {line} was cut off in its middle"
            ));
        }
        Ending::LeftOut { line, bytes } => last.push(format!(
            "the record stops here: {} bytes were left out at line {line}",
            grouped(usize::try_from(bytes).unwrap_or(usize::MAX))
        )),
    }
    last.extend(it.telemetry.as_ref().map(numbers));
    if !it.system_prompt_same {
        last.push("the system prompt of this version is another one".into());
    }
    if !it.requests_changed.is_empty() {
        last.push(format!(
            "{} of {} would read differently now, from step {} on: texts or the budget of the context have changed",
            it.requests_changed.len(),
            many(it.requests, "request"),
            it.requests_changed.first().copied().unwrap_or_default()
        ));
    }
    for line in last {
        let _ = writeln!(text, "{indent}      {line}");
    }
}

fn push_step(step: &StepAccount, indent: &str, text: &mut String) {
    let mut number = format!("{:>4}", step.step);
    for happened in &step.happened {
        for line in lines(happened) {
            let _ = writeln!(text, "{indent}{number}  {line}");
            number = "    ".to_owned();
        }
        if let SessionEvent::Slice {
            account: Some(account),
            ..
        } = happened
        {
            push_account(account, &format!("{indent}      "), text);
        }
    }
}

fn lines(happened: &SessionEvent) -> Vec<String> {
    match happened {
        SessionEvent::Told { notes } => notes
            .iter()
            .map(|note| format!("told: {}", noted(note)))
            .collect(),
        SessionEvent::Said { text } if text.is_empty() => Vec::new(),
        SessionEvent::Said { text } => vec![format!("said: {text}")],
        SessionEvent::Called {
            tool,
            about,
            ok,
            result,
        } => vec![called(tool, about, *ok, result)],
        SessionEvent::Plan {
            items,
            finished,
            next,
        } => {
            let next = next.as_ref();
            let next = next.map_or_else(String::new, |next| format!("; next: {next}"));
            vec![format!("plan: {finished} of {items} finished{next}")]
        }
        SessionEvent::Failed { error } => vec![format!("the model's API failed: {error}")],
        SessionEvent::Waited { ms } => vec![format!("waited {}", time(*ms))],
        SessionEvent::Slice { file, changed, .. } => {
            let changed = match changed {
                Some(true) => ", which changed it",
                Some(false) => ", which did not change it",
                None => "",
            };
            vec![format!("a session on {} alone{changed}", excerpt(file))]
        }
        SessionEvent::Cancelled => vec!["cancelled".into()],
        SessionEvent::Ended { exit } => vec![format!("ended: {}", word(exit))],
        SessionEvent::Differs { then, now } => vec![
            format!("DIFFERS, then: {then}"),
            format!("         now:  {now}"),
        ],
    }
}

fn called(tool: &str, about: &str, ok: Option<bool>, result: &str) -> String {
    let mark = match ok {
        Some(true) => "ok    ",
        Some(false) => "not ok",
        None => "open  ",
    };
    let mut line = format!("{mark}  {tool}");
    for (before, part) in [(" ", about), (": ", result)] {
        if !part.is_empty() {
            line.push_str(before);
            line.push_str(part);
        }
    }
    line
}

/// A short description of a note.
fn noted(note: &Note) -> String {
    let next = |next: &Option<String>| match next {
        Some(next) => format!(", next: {}", excerpt(next)),
        None => String::new(),
    };
    match note {
        Note::FinalSuppressed {
            why,
            remaining,
            next: item,
        } => {
            let why = match why {
                Suppressed::ItemsLeft => format!("{} left", many(*remaining, "item")),
                Suppressed::NothingChanged => "nothing was changed".into(),
                Suppressed::EditFailed => "an edit failed".into(),
            };
            format!("FINAL is held back, {why}{}", next(item))
        }
        Note::FormatError { why } => format!("nothing could be carried out ({})", word(why)),
        Note::SliceEnded { file, changed } => {
            let changed = if *changed { "changed" } else { "not changed" };
            format!("the session on {} ended, {changed}", excerpt(file))
        }
        Note::LoopWarning { kind, strong } => {
            let kind = match kind {
                LoopKind::IdenticalCalls => "the same calls again",
                LoopKind::Cycle => "calls in a cycle",
                LoopKind::Reasoning => "the same thoughts again",
            };
            let strong = if *strong { ", last warning" } else { "" };
            format!("loop, {kind}{strong}")
        }
        Note::Forced { next: item } => format!("forced mode, an edit is demanded{}", next(item)),
        Note::GoOn { next: item } => format!("go on{}", next(item)),
        Note::Repair { open } => format!(
            "repair message, one more response is taken; {} open",
            many(open.len(), "item")
        ),
    }
}

/// Descriptions of two steps that distinguish them.
pub(super) fn both(then: &Step, now: &Step) -> (String, String) {
    let (told_then, told_now) = (step(then), step(now));
    if told_then == told_now {
        (json(then), json(now))
    } else {
        (told_then, told_now)
    }
}

fn json(step: &Step) -> String {
    let json = serde_json::to_string(step).unwrap_or_default();
    cap_chars(&json, MAX_STEP_CHARS).into_owned()
}

fn step(step: &Step) -> String {
    match step {
        Step::AskModel(ModelRequest {
            notes, refusals, ..
        }) => {
            let mut text = String::from("ask the model");
            if *refusals > 0 {
                let _ = write!(text, " with less, {refusals} times refused");
            }
            for note in notes {
                let _ = write!(text, "; {}", noted(note));
            }
            text
        }
        Step::ApplyTools { calls } => {
            let calls = calls.iter().map(|call| {
                let about = call.request.about();
                format!("{} {}", call.request.name(), excerpt(&about))
                    .trim_end()
                    .to_owned()
            });
            let calls: Vec<String> = calls.collect();
            let text = format!("carry out {}", calls.join(", "));
            cap_chars(&text, MAX_STEP_CHARS).into_owned()
        }
        Step::FixSlice(slice) => format!("a session on {} alone", excerpt(&slice.file)),
        Step::Wait { ms } => format!("wait {}", time(*ms)),
        Step::End { exit } => format!("end the session: {}", word(exit)),
    }
}

/// The statistics of a session, without those that are 0.
fn numbers(it: &Telemetry) -> String {
    let mut parts = vec![format!("{}, {}", word(&it.exit), word(&it.completion_kind))];
    if it.plan_items > 0 {
        parts.push(format!("plan {} of {}", it.plan_finished, it.plan_items));
    }
    let counts = [
        (it.plan_update_count, "plan update"),
        (it.tool_calls, "tool call"),
        (it.read_only_steps, "read-only step"),
        (it.final_suppressed, "FINAL held back"),
        (it.forced_mode_steps, "forced step"),
        (it.repair_turns, "repair message"),
        (it.fix_slice_count, "session on one file"),
        (it.stagnation_score_max, "stagnation point"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        parts.push(many(usize::try_from(count).unwrap_or(usize::MAX), what));
    }
    if let Some(tokens) = it.tokens {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        parts.push(many(tokens, "token"));
    }
    parts.join("; ")
}

/// The word for a value in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn many(count: usize, what: &str) -> String {
    let number = grouped(count);
    match (count, what) {
        (1, _) => format!("{number} {what}"),
        (_, "session on one file") => format!("{number} sessions on one file"),
        (_, "FINAL held back") => format!("{number} FINALs held back"),
        _ => format!("{number} {what}s"),
    }
}

fn time(ms: u64) -> String {
    duration::format(Duration::from_millis(ms))
}
