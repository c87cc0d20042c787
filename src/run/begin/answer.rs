//! The answer to the question with which a task of an earlier process or run ended.

use crate::cli::RunArgs;
use crate::domain::answer::Answered;
use crate::domain::outcome::Reason;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::run::begin::beginning::Ready;
use crate::run::state::answer::TaskAnswer;
use crate::run::state::layout::RunFile;

/// Gives a task the answer of the command line or of a comment, after those that it got before.
///
/// # Errors
/// When the command line answers a run without a question.
pub(crate) fn give_answer(args: &RunArgs, ready: &mut Ready) -> Result<()> {
    let request = ready.request.as_mut();
    let of_comment = request.and_then(|request| request.answer.take());
    let new = args.answer.clone().or(of_comment).map(|answer| Answered {
        question: String::new(),
        answer,
    });
    let place = ready.beginning.place();
    let before = place.and_then(|place| place.run_dir.read_json::<TaskAnswer>(RunFile::Answer));
    let summary = ready.beginning.earlier().map(|earlier| &earlier.summary);
    let given = match (new, summary.and_then(open_question)) {
        (None, _) => before,
        (Some(_), None) if args.answer.is_some() => {
            let message = "the run has no open question, so that there is nothing to answer";
            return Err(Error::config(message).hint("resume it without --answer"));
        }
        (Some(new), None) => {
            let first = ready.prepared.tasks.first();
            first.map(|(task, _)| TaskAnswer {
                task: task.id.to_string(),
                text: new.section(),
                is_new: true,
            })
        }
        (Some(mut new), Some((task, question))) => {
            new.question = question;
            let before = before.filter(|before| before.task == task);
            let texts = before.map(|before| before.text).into_iter();
            let texts: Vec<String> = texts.chain([new.section()]).collect();
            Some(TaskAnswer {
                task,
                text: texts.join("\n\n"),
                is_new: true,
            })
        }
    };
    let Some(given) = given else { return Ok(()) };
    for (task, _) in &mut ready.prepared.tasks {
        if task.id.as_str() == given.task {
            task.description = format!("{}\n\n{}", task.description, given.text);
        }
    }
    ready.prepared.answer = Some(given);
    Ok(())
}

/// The task of a run that waits for an answer, and its question.
fn open_question(summary: &RunSummary) -> Option<(String, String)> {
    let asks = |reason| reason == Some(Reason::NeedsAnswer);
    let task = summary.tasks.iter().rfind(|task| asks(task.reason))?;
    Some((task.id.clone(), task.question()?.to_owned()))
}
