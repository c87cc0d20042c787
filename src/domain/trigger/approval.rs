//! A plan in Sprag's comment, and the code with which somebody approves exactly this plan on exactly this base.

use crate::continuation::Continuation;
use crate::outcome::Reason;
use crate::summary::RunSummary;
use crate::text::{fence_around, fenced_blocks};

/// The line before the plan in a comment.
const MARKER: &str = "<!-- sprag:plan -->";

/// The number of characters of a code. With 128 bits, nobody finds another plan or a pair of plans with one code.
const CODE_CHARS: usize = 32;

/// The code that approves a plan on a commit.
pub fn code(plan: &str, base: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(base.as_bytes());
    hasher.update(b"\n");
    hasher.update(plan.trim().as_bytes());
    let mut code = hasher.finalize().to_hex().to_string();
    code.truncate(CODE_CHARS);
    code
}

/// A plan that a run has drafted for a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPlan<'a> {
    /// The text of the plan.
    pub plan: &'a str,
    /// The comment that approves it.
    pub command: String,
}

/// The plan that a run has only drafted, if it can be approved in the thread.
pub fn plan_to_approve(summary: &RunSummary) -> Option<ShownPlan<'_>> {
    let Continuation::Job {
        phrase: Some(phrase),
        ..
    } = &summary.facts.continuation
    else {
        return None;
    };
    let mut tasks = summary.tasks.iter();
    let drafted = tasks.find(|task| task.reason == Some(Reason::Drafted))?;
    let plan = drafted.work.answer.as_deref()?;
    let code = code(plan, summary.facts.base.as_deref()?);
    Some(ShownPlan {
        plan,
        command: format!("{phrase} approve {code}"),
    })
}

/// Whether a word has the form of a code.
pub(super) fn is_code(word: &str) -> bool {
    word.len() == CODE_CHARS && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A plan as part of a comment, from which [`plan_in`] reads the same text.
pub fn shown(plan: &str) -> String {
    let fence = fence_around(plan);
    format!("{MARKER}\n\n{fence}yaml\n{}\n{fence}", plan.trim())
}

/// The plan in the body of a comment.
pub fn plan_in(body: &str) -> Option<String> {
    let (_, rest) = body.split_once(MARKER)?;
    let (_, plan) = fenced_blocks(rest).into_iter().next()?;
    Some(plan.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{code, is_code, plan_in, shown};
    use proptest::prelude::*;

    const PLAN: &str = "title: Export\ntasks:\n  - id: a\n    title: 'Say ```hello```'";

    #[test]
    fn the_plan_of_a_comment_is_the_one_that_was_shown() {
        let body = format!(
            "<!-- state -->\n## Sprag\n\n> x\n\n{}\n\n---\n",
            shown(PLAN)
        );
        assert_eq!(plan_in(&body).as_deref(), Some(PLAN));
        assert_eq!(plan_in("```yaml\ntitle: x\n```"), None);
        assert_eq!(
            plan_in(&shown(PLAN).replace("yaml", "")).as_deref(),
            Some(PLAN)
        );
        assert_eq!(plan_in("<!-- sprag:plan -->\n\ntext"), None);
    }

    #[test]
    fn a_code_depends_on_the_plan_and_on_its_base() {
        let approved = code(PLAN, "c0ffee");
        assert!(is_code(&approved) && !is_code("approve") && !is_code("the pull request"));
        assert_eq!(approved, code(&format!("\n{PLAN}\n"), "c0ffee"));
        assert_ne!(approved, code(PLAN, "c0ffef"));
        assert_ne!(approved, code(&PLAN.replace("hello", "hallo"), "c0ffee"));
    }

    proptest! {
        #[test]
        fn every_plan_comes_back(plan in "([a-z:`~ \n-]|\\PC){0,200}") {
            let plan = plan.trim();
            prop_assume!(!plan.is_empty() && !plan.contains('\0'));
            let read = plan_in(&shown(plan));
            prop_assert_eq!(read.as_deref(), Some(plan));
        }
    }
}
