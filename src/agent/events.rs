//! Converts a session to the events and the report that all agents have in common.

use crate::access::Account;
use crate::model_error::{ModelError, ModelErrorKind};
use crate::session::{OpenCall, Response, SessionExit, State, ToolResult};
use crate::tool::ToolRequest;
use sprag_domain::agent::{AgentEvent, AgentReport, ApiError, ApiErrorClass, CutOff, progress};
use sprag_domain::api_error;
use sprag_domain::text::{cap_chars, count, excerpt, one_line};

/// Maximum length in characters of a reported message. The transcript contains all of it.
const MAX_MESSAGE_CHARS: usize = 65_536;

/// Maximum length in characters of a reported error.
const MAX_ERROR_CHARS: usize = 1_000;

type Emit<'a> = &'a mut dyn FnMut(AgentEvent);

pub(super) fn response(response: &Response, emit: Emit<'_>) {
    let said = |text: &str| {
        let text = Some(text.trim_end()).filter(|text| !text.trim().is_empty())?;
        Some(cap_chars(text, MAX_MESSAGE_CHARS).into_owned())
    };
    if let Some(text) = said(&response.reasoning) {
        emit(AgentEvent::Reasoning { text });
    }
    if let Some(text) = said(&response.text) {
        emit(AgentEvent::Message { text });
    }
    emit(AgentEvent::Usage(response.usage));
}

pub(super) fn error(error: &ModelError, emit: Emit<'_>) {
    let message = api_error::plain(&error.message);
    let raw = excerpt(&error.message);
    let has_more = message != error.message;
    emit(AgentEvent::Error {
        message,
        is_final: false,
    });
    if has_more {
        emit(AgentEvent::Raw { line: raw });
    }
}

pub(super) fn call(call: &OpenCall, emit: Emit<'_>) {
    emit(AgentEvent::ToolCall {
        id: Some(call.id.clone()),
        name: call.request.name().to_owned(),
        summary: one_line(&call.request.about(), 200),
    });
}

pub(super) fn result(call: &OpenCall, result: &ToolResult, emit: Emit<'_>) {
    emit(AgentEvent::ToolResult {
        id: Some(call.id.clone()),
        ok: result.ok,
        exit_code: None,
        summary: excerpt(&result.output),
    });
    for (at, path) in result.changed.iter().enumerate() {
        let kind = match &call.request {
            ToolRequest::DeleteFile { .. } => "delete",
            // A move names its source first. Paths from the model may be absolute.
            ToolRequest::MoveFile { .. } if at == 0 => "delete",
            ToolRequest::MoveFile { .. } => "add",
            _ => "update",
        };
        emit(file_change(path, kind));
    }
}

/// Files that commands changed.
pub(super) fn changed(paths: &[String], emit: Emit<'_>) {
    paths
        .iter()
        .for_each(|path| emit(file_change(path, "update")));
}

fn file_change(path: &str, kind: &str) -> AgentEvent {
    let (path, kind) = (path.to_owned(), kind.to_owned());
    AgentEvent::FileChange { path, kind }
}

/// The report of a session that has ended.
pub(super) fn report(state: &State, exit: SessionExit, account: &Account<'_>) -> AgentReport {
    let api_error = match exit {
        SessionExit::ModelError => state.model_error().map(|error| explained(error, account)),
        _ => None,
    };
    AgentReport {
        final_message: state.final_message().map(str::to_owned),
        todo: state.ledger.todo(),
        usage: state.usage,
        api_error,
        // Completed work was not cut off, whatever came after it.
        stopped_by: stopped_by(exit, state).filter(|_| !state.ledger.is_complete()),
        stop: match exit {
            SessionExit::Stalled => CutOff::NoProgress,
            _ => CutOff::OwnLimit,
        },
        needed_no_change: state.needed_no_change(exit),
        tool_calls: state.counts.tool_calls,
        last_error_line: state
            .model_error()
            .map(|error| one_line(&api_error::plain(&error.message), 300)),
        ..AgentReport::default()
    }
}

/// The error that ended a session, with the provider, the reason and the remedy. The session has already
/// waited for transient errors, so the error is not marked as transient and nobody waits again.
fn explained(error: &ModelError, account: &Account<'_>) -> ApiError {
    let mut told = error.api_error();
    let waited = told.class == ApiErrorClass::Transient;
    if waited {
        told.class = ApiErrorClass::Unavailable;
        told.retry_after_ms = None;
    }
    let provider = account.provider;
    let status = error
        .status
        .map(|status| format!(" ({status})"))
        .unwrap_or_default();
    let text = one_line(&api_error::plain(&error.message), MAX_ERROR_CHARS);
    let keys = account.keys.join(" or ");
    let remedy = match (error.kind, account.keys) {
        (ModelErrorKind::Login, []) => Some("remove or change the key for its server".to_owned()),
        (ModelErrorKind::Login, _) => Some(format!("set {keys} to a key that it accepts")),
        (ModelErrorKind::Permission, [_, ..]) => {
            Some(format!("check the permissions of the key in {keys}"))
        }
        (ModelErrorKind::Quota, [_, ..]) => Some(format!(
            "add credit to the account, or set {keys} to another key"
        )),
        (ModelErrorKind::UnknownModel, _) => Some("name another model with --model".to_owned()),
        (ModelErrorKind::Rejected, _) if has_no_tools(&text) => {
            told.class = ApiErrorClass::Unavailable;
            Some("name a model that can call tools with --model".to_owned())
        }
        (ModelErrorKind::RateLimit, _) => {
            Some("run again later, or use an account with a higher limit".to_owned())
        }
        (ModelErrorKind::Network, _) if waited => Some(
            "check its address and that it can be reached from here, or run again later".to_owned(),
        ),
        _ if waited => Some("run again later".to_owned()),
        _ => None,
    };
    let remedy = remedy
        .map(|remedy| format!("; {remedy}"))
        .unwrap_or_default();
    told.message = format!("{provider}{status}: {text}{remedy}");
    told
}

/// Whether an API refused a request because its model cannot call tools.
fn has_no_tools(text: &str) -> bool {
    let text = text.to_lowercase();
    text.contains("tool") && (text.contains("support") || text.contains("enable-auto-tool"))
}

/// Why a session ended without a result, and how far it came.
fn stopped_by(exit: SessionExit, state: &State) -> Option<String> {
    let why = match exit {
        // An exceeded time limit is reported in the same way as that of a process.
        SessionExit::TimeLimit => return None,
        SessionExit::Submitted | SessionExit::ModelError | SessionExit::Cancelled => return None,
        SessionExit::Stalled => match state.idle_steps() {
            0 => "it repeated itself".to_owned(),
            steps => format!("no progress in {}", count(u64::from(steps), "step")),
        },
        SessionExit::StepLimit => format!("{} steps", state.counts.steps),
        SessionExit::TokenLimit => "the tokens of the run".to_owned(),
        SessionExit::CostLimit => "the cost of the run".to_owned(),
        SessionExit::RepeatedFormatError => "responses without a usable action".to_owned(),
    };
    Some(match progress(&state.ledger.todo()) {
        Some(progress) => format!("{why}, {progress}"),
        None => why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Toolbox;
    use crate::tools::tests::Shell;
    use std::fs;
    use std::time::Duration;

    /// The reported file changes after this move in a tree with a file `src/a.rs`.
    async fn told(absolute: bool, from: &str, to: &str) -> Vec<(String, String)> {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "").unwrap();
        let path = |path: &str| {
            if absolute {
                root.join(path).display().to_string()
            } else {
                path.to_owned()
            }
        };
        let call = OpenCall {
            id: "1".into(),
            request: ToolRequest::MoveFile {
                from: path(from),
                to: path(to),
            },
        };
        let shell = Shell::new(&root);
        let mut tools = Toolbox::new(&root, &shell);
        let left = Duration::from_secs(60);
        let moved = tools.call(&call.request, left).await;
        assert!(moved.ok, "{}", moved.output);
        let mut files = Vec::new();
        result(&call, &moved, &mut |event| {
            if let AgentEvent::FileChange { path, kind } = event {
                files.push((path, kind));
            }
        });
        files
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_move_deletes_its_source_and_adds_its_target() {
        for absolute in [false, true] {
            for (from, to) in [("src/a.rs", "a.rs"), ("./src/a.rs", "lib/src/a.rs")] {
                let told = told(absolute, from, to).await;
                let expected = [("src/a.rs", "delete"), (to, "add")];
                assert_eq!(
                    told,
                    expected.map(|(path, kind)| (path.into(), kind.into()))
                );
            }
        }
    }
}
