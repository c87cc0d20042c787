//! What a run is for, and where its plan comes from.

use crate::cli::RunArgs;
use crate::context::Context;
use crate::domain::continuation::Continuation;
use crate::domain::plan::{self, TaskKind};
use crate::domain::text::{first_line, one_line};
use crate::domain::trigger::refname;
use crate::error::{Error, Result};
use crate::github::actions_environment::event;
use crate::github::lookup::one_task;
use crate::github::request::RunRequest;
use crate::run::begin::reviewed_change::ReviewedChange;
use crate::settings;
use std::cell::RefCell;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The source of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// A prompt.
    Prompt(String),
    /// The text of a plan without a file, such as one from an issue.
    Text(String),
    /// A file with known content, for a resumed run: an interrupted turn may have changed the file in
    /// the work tree.
    Known {
        /// The file's resolved path.
        path: PathBuf,
        /// The plan's content.
        content: Vec<u8>,
    },
}

/// The work of a run.
#[derive(Debug, Clone, Default)]
pub enum Work {
    /// The tasks of a plan.
    #[default]
    Tasks,
    /// A review of this change.
    Review(ReviewedChange),
    /// The work of other jobs on the plan: their run directories and branches.
    Integration(Vec<String>),
    /// A plan to draft.
    Draft(DraftRequest),
}

impl Work {
    /// The work of these jobs, or the tasks of the plan if there are none.
    pub fn of_shards(shards: &[String]) -> Self {
        match shards {
            [] => Self::Tasks,
            shards => Self::Integration(shards.to_vec()),
        }
    }

    /// Whether an agent works. An integration has no cost, and the other jobs already keep the work.
    pub fn has_agent(&self) -> bool {
        !matches!(self, Self::Integration(_))
    }

    /// The change to review, if the run only reviews.
    pub fn reviewed(&self) -> Option<&ReviewedChange> {
        match self {
            Self::Review(change) => Some(change),
            _ => None,
        }
    }

    /// Whether the run drafts a plan.
    pub fn is_draft(&self) -> bool {
        matches!(self, Self::Draft(_))
    }

    /// How a person continues the run.
    pub(crate) fn continuation(
        &self,
        in_actions: bool,
        request: Option<&RunRequest>,
    ) -> Continuation {
        match self {
            Self::Draft(draft) if !draft.only_shown => Continuation::Anew,
            _ if in_actions => request.map_or(Continuation::BY_WORKFLOW, |request| {
                request.context.continuation()
            }),
            // Somebody who has fixed the findings has moved HEAD, and a resumed run reviews the same change.
            Self::Draft(_) | Self::Review(_) => Continuation::Anew,
            Self::Tasks | Self::Integration(_) => Continuation::Here,
        }
    }
}

/// A plan to draft, instead of a plan to run.
#[derive(Debug, Clone, Default)]
pub struct DraftRequest {
    /// The text to plan from.
    pub request: String,
    /// The absolute path of the new file; `None` to name it after the plan.
    pub output: Option<PathBuf>,
    /// Whether it is only shown, and not written to a file.
    pub only_shown: bool,
    /// Whether it is committed, for a pull request.
    pub commits: bool,
    /// The written plan, once there is one.
    pub written: Rc<RefCell<Option<Written>>>,
}

/// A plan that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Its path, relative to the work tree if it lies there.
    pub path: String,
    /// The title of the plan.
    pub title: String,
    /// The number of its tasks.
    pub tasks: usize,
}

/// The plan of the drafting run: one task, whose work is to draft a plan.
pub(crate) fn plan_of_draft(about: &str, text: &str) -> String {
    let plan = serde_json::json!({
        "title": one_line(&format!("Plan for {about}"), 100),
        "tasks": [{ "id": "plan", "title": "Draft a plan", "description": text }],
    });
    plan.to_string()
}

/// The hint that lists the possible sources of a run.
const CHOICES: &str = "give exactly one of a prompt in quotes, --plan FILE, --prompt-file FILE|-, --issue N, --queue DIR, --event";

/// The work that is named.
pub(super) enum Given {
    Source(Source),
    Issue(u64),
    Queue(String),
    Event,
    Nothing,
}

impl Given {
    /// The one source that the command line names, else the event of the job.
    ///
    /// # Errors
    /// When it names several, or the source cannot be read.
    pub(super) fn of(context: &Context, args: &RunArgs) -> Result<Self> {
        let sources = [
            ("--plan", args.plan.is_some()),
            ("--prompt", args.prompt.is_some()),
            ("--prompt-file", args.prompt_file.is_some()),
            ("--issue", args.issue.is_some()),
            ("--queue", args.queue.is_some()),
            ("--event", args.event),
        ];
        let named = sources.iter().filter(|(_, is_named)| *is_named);
        let named: Vec<&str> = named.map(|(name, _)| *name).collect();
        if named.len() > 1 {
            let message = format!("{} were given together", named.join(" and "));
            return Err(Error::usage(message).hint(CHOICES));
        }
        if let Some(path) = &args.plan {
            return Ok(Self::Source(Source::File(context.cwd.join(path))));
        }
        if let Some(text) = &args.prompt {
            return Ok(Self::Source(if args.asks {
                let title = one_line(first_line(text), 72);
                Source::Text(one_task(&title, text, TaskKind::Ask))
            } else {
                Source::Prompt(text.clone())
            }));
        }
        if let Some(path) = &args.prompt_file {
            return prompt_file(context, path).map(|text| Self::Source(Source::Prompt(text)));
        }
        if let Some(dir) = &args.queue {
            let dir = dir.display().to_string().trim_end_matches('/').to_owned();
            refname::check_path(&dir)
                .map_err(|why| Error::usage(format!("--queue {dir}: {why}")))?;
            return Ok(Self::Queue(dir));
        }
        Ok(match args.issue {
            Some(number) => Self::Issue(number),
            None if args.event || (context.in_actions() && event(context).is_some()) => Self::Event,
            None => Self::Nothing,
        })
    }

    /// What a review does with it: it looks at the pull request of the event or at the current branch, whatever else
    /// the event requests. A prompt says what to look for.
    ///
    /// # Errors
    /// When something else than a review is named.
    pub(super) fn for_review(self) -> Result<Self> {
        let words = match self {
            Self::Source(Source::Prompt(words)) => words,
            Self::Event | Self::Nothing => String::new(),
            Self::Source(_) | Self::Issue(_) | Self::Queue(_) => {
                let message = "review_only reviews a pull request or a branch; it does not run a plan, an issue or a queue";
                let hint =
                    "leave out the plan, the issue or the queue; a prompt can say what to look for";
                return Err(Error::usage(message).hint(hint));
            }
        };
        Ok(Self::Source(Source::Prompt(words)))
    }
}

/// The error for a command line without a source.
pub(super) fn nothing_asked() -> Error {
    Error::usage("nothing to do: no plan and no prompt was given").hint(CHOICES)
}

fn prompt_file(context: &Context, path: &Path) -> Result<String> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(plan::MAX_FILE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Error::usage(format!("standard input cannot be read: {error}")))?;
        plan::check_size("standard input", bytes.len() as u64)
            .map_err(|located| Error::usage(located.to_string()))?;
        bytes
    } else {
        settings::read_file(&context.cwd.join(path), "prompt file")?
    };
    String::from_utf8(bytes)
        .map_err(|_| Error::usage(format!("the prompt {} is not UTF-8 text", path.display())))
}
