//! Workflow runs, their jobs and logs, and dispatches.

use super::call::{Answer, Call, Handled};
use super::state::{Dispatch, Job, WorkflowRun};
use serde_json::{Value, json};

/// `GET …/actions/runs`.
pub fn runs(call: &mut Call<'_>) -> Handled {
    let asked = |name: &str, value: &str| call.asked(name).is_none_or(|asked| asked == value);
    let runs = call.state.runs.iter().rev();
    let shown = runs
        .filter(|(_, run)| asked("branch", &run.head_branch) && asked("head_sha", &run.head_sha))
        .filter(|(_, run)| asked("event", &run.event))
        .filter(|(_, run)| {
            let conclusion = run.conclusion.as_deref().unwrap_or_default();
            asked("status", &run.status) || asked("status", conclusion)
        })
        .map(|(id, run)| shown(call, *id, run))
        .collect();
    Ok(call.page_in("workflow_runs", shown))
}

/// `GET …/actions/runs/{run_id}`.
pub fn run(call: &mut Call<'_>) -> Handled {
    let (id, run) = found(call)?;
    Ok(Answer::of(200, shown(call, id, run)))
}

/// `POST …/actions/runs/{run_id}/cancel`.
pub fn cancel(call: &mut Call<'_>) -> Handled {
    let (id, run) = found(call)?;
    if run.status == "completed" {
        let message = "Cannot cancel a workflow run that is completed.";
        return Err(Answer::refusal(409, message));
    }
    if let Some(run) = call.state.runs.get_mut(&id) {
        "completed".clone_into(&mut run.status);
        run.conclusion = Some("cancelled".to_owned());
    }
    Ok(Answer::of(202, json!({})))
}

/// `GET …/actions/runs/{run_id}/jobs`.
pub fn jobs(call: &mut Call<'_>) -> Handled {
    let (id, run) = found(call)?;
    let shown = run
        .jobs
        .iter()
        .map(|job| shown_job(call, id, run, job))
        .collect();
    Ok(call.page_in("jobs", shown))
}

/// `GET …/actions/jobs/{job_id}/logs`: sends to a URL that needs no token.
pub fn logs(call: &mut Call<'_>) -> Handled {
    let id = call.number("job_id")?;
    let mut jobs = call.state.runs.values().flat_map(|run| &run.jobs);
    let job = jobs
        .find(|job| job.id == id)
        .ok_or_else(Answer::not_found)?;
    if job.log.is_none() {
        return Err(Answer::refusal(410, "Server Error"));
    }
    let url = format!("{}{LOGS}{id}", call.base);
    Ok(Answer::of(302, Value::Null).with("location", &url))
}

/// Where the logs of jobs lie, by the job's id.
pub const LOGS: &str = "/_logs/";

/// `POST …/actions/workflows/{workflow_id}/dispatches`.
pub fn dispatch(call: &mut Call<'_>) -> Handled {
    let workflow = call.path["workflow_id"].clone();
    if !call.state.dispatchable.contains(&workflow) {
        return Err(Answer::not_found());
    }
    let git_ref = call.text("ref").unwrap_or_default();
    if call.state.bare.is_some() && call.state.resolved(&git_ref).is_none() {
        return Err(Answer::refusal(
            422,
            &format!("No ref found for: {git_ref}"),
        ));
    }
    let inputs = call.body["inputs"].clone();
    call.state.dispatches.push(Dispatch {
        workflow,
        git_ref,
        inputs,
    });
    Ok(Answer::of(204, Value::Null))
}

fn found<'c>(call: &'c Call<'_>) -> Result<(u64, &'c WorkflowRun), Answer> {
    let id = call.number("run_id")?;
    let run = call.state.runs.get(&id);
    run.map(|run| (id, run)).ok_or_else(Answer::not_found)
}

fn shown(call: &Call<'_>, id: u64, run: &WorkflowRun) -> Value {
    let pulls = run.pulls.iter().filter_map(|number| {
        let pull = call.state.pulls.get(number)?;
        Some(json!({
            "id": number + 9_000_000,
            "number": number,
            "url": call.api_url(&format!("pulls/{number}")),
            "head": { "ref": pull.head, "sha": call.state.head_of(*number) },
            "base": { "ref": pull.base },
        }))
    });
    json!({
        "id": id,
        "name": run.name,
        "path": run.path,
        "event": run.event,
        "head_branch": run.head_branch,
        "head_sha": run.head_sha,
        "head_repository": { "full_name": call.state.repository.full_name },
        "status": run.status,
        "conclusion": run.conclusion,
        "run_attempt": run.attempt,
        "pull_requests": pulls.collect::<Value>(),
        "html_url": call.page_url(&format!("actions/runs/{id}")),
        "url": call.api_url(&format!("actions/runs/{id}")),
    })
}

fn shown_job(call: &Call<'_>, run_id: u64, run: &WorkflowRun, job: &Job) -> Value {
    let steps = job
        .steps
        .iter()
        .enumerate()
        .map(|(index, (name, conclusion))| {
            json!({
                "name": name,
                "number": index + 1,
                "status": "completed",
                "conclusion": conclusion,
            })
        });
    let done = job.conclusion.is_some();
    json!({
        "id": job.id,
        "run_id": run_id,
        "run_attempt": run.attempt,
        "name": job.name,
        "head_sha": run.head_sha,
        "head_branch": run.head_branch,
        "status": if done { "completed" } else { "in_progress" },
        "conclusion": job.conclusion,
        "steps": steps.collect::<Value>(),
        "html_url": call.page_url(&format!("actions/runs/{run_id}/job/{}", job.id)),
    })
}
