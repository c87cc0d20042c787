//! A session in the vocabulary of all agents.

use crate::agent::text::{cut, excerpt};
use crate::domain::agent::{AgentEvent, AgentReport, UsageBasis};
use crate::domain::builtin::model_error::ModelError;
use crate::domain::builtin::session::{OpenCall, Response, SessionExit, State, ToolResult};
use crate::domain::builtin::tool::ToolRequest;
use crate::domain::text::one_line;

/// Characters of a message that are told; the transcript has all of it.
const LONGEST: usize = 65_536;

type Emit<'a> = &'a mut dyn FnMut(AgentEvent);

pub(super) fn response(response: &Response, emit: Emit<'_>) {
    if !response.reasoning.trim().is_empty() {
        emit(AgentEvent::Reasoning {
            text: cut(response.reasoning.trim_end(), LONGEST),
        });
    }
    if !response.text.trim().is_empty() {
        emit(AgentEvent::Message {
            text: cut(response.text.trim_end(), LONGEST),
        });
    }
    emit(AgentEvent::Usage(response.usage));
}

pub(super) fn error(error: &ModelError, emit: Emit<'_>) {
    emit(AgentEvent::Error {
        message: error.message.clone(),
        is_final: false,
    });
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
    for path in &result.changed {
        let kind = match &call.request {
            ToolRequest::DeleteFile { .. } => "delete",
            ToolRequest::MoveFile { from, .. } if from.ends_with(path.as_str()) => "delete",
            ToolRequest::MoveFile { .. } => "add",
            _ => "update",
        };
        emit(AgentEvent::FileChange {
            path: path.clone(),
            kind: kind.to_owned(),
        });
    }
}

/// What is known of a session that has ended.
pub(super) fn report(state: &State, exit: SessionExit) -> AgentReport {
    let api_error = match exit {
        SessionExit::ModelError => state.model_error().map(ModelError::api_error),
        _ => None,
    };
    AgentReport {
        session_id: None,
        final_message: state.final_message().map(str::to_owned),
        final_message_cut: false,
        todo: state.ledger().todo(),
        usage: state.usage(),
        usage_basis: UsageBasis::Turn,
        api_error,
        // Work that is complete was not cut off, whatever came after it.
        stopped_by: stopped_by(exit)
            .filter(|_| !state.ledger().is_complete())
            .map(str::to_owned),
        permission_denials: 0,
        tool_calls: state.counts().tool_calls,
        last_error_line: state
            .model_error()
            .map(|error| one_line(&error.message, 300)),
    }
}

/// The name of an end without a result.
fn stopped_by(exit: SessionExit) -> Option<&'static str> {
    match exit {
        // A time that is over is told as that of a process.
        SessionExit::TimeLimit => None,
        SessionExit::Submitted | SessionExit::ModelError | SessionExit::Cancelled => None,
        SessionExit::StepLimit => Some("step_limit"),
        SessionExit::TokenLimit => Some("token_limit"),
        SessionExit::CostLimit => Some("cost_limit"),
        SessionExit::RepeatedFormatError => Some("repeated_format_error"),
        SessionExit::Stalled => Some("stalled"),
    }
}
