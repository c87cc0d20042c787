//! Check runs.

use super::call::{Answer, Call, Handled, take_text};
use super::state::{CheckRun, State};
use serde_json::{Value, json};

/// `POST …/check-runs`.
pub fn create(call: &mut Call<'_>) -> Handled {
    let head_sha = call.text("head_sha").unwrap_or_default();
    if !call.state.knows(&head_sha) {
        return Err(Answer::refusal(
            422,
            &format!("No commit found for SHA: {head_sha}"),
        ));
    }
    let mut check = CheckRun {
        id: call.state.new_id(),
        name: String::new(),
        head_sha,
        status: "queued".to_owned(),
        conclusion: None,
        started_at: None,
        completed_at: None,
        details_url: None,
        external_id: None,
        title: None,
        summary: None,
        text: None,
        annotations: Vec::new(),
        creator: call.login(),
        updates: Vec::new(),
    };
    update_from(&mut check, &call.body, &call.state.now());
    let shown = shown(&check, call.base, &call.state.repository.full_name);
    call.state.checks.push(check);
    Ok(Answer::of(201, shown))
}

/// `PATCH …/check-runs/{check_run_id}`.
pub fn update(call: &mut Call<'_>) -> Handled {
    let (id, login, now) = (call.number("check_run_id")?, call.login(), call.state.now());
    let repository = call.state.repository.full_name.clone();
    let mut checks = call.state.checks.iter_mut();
    let check = checks
        .find(|check| check.id == id)
        .ok_or_else(Answer::not_found)?;
    if check.creator != login {
        let message =
            "Invalid app_id - check run can only be modified by the GitHub App that created it.";
        return Err(Answer::refusal(403, message));
    }
    update_from(check, &call.body, &now);
    Ok(Answer::of(200, shown(check, call.base, &repository)))
}

fn update_from(check: &mut CheckRun, body: &Value, now: &str) {
    for (field, name) in [(&mut check.name, "name"), (&mut check.status, "status")] {
        if let Some(text) = body[name].as_str() {
            text.clone_into(field);
        }
    }
    take_text(&mut check.conclusion, body, "conclusion");
    take_text(&mut check.started_at, body, "started_at");
    take_text(&mut check.completed_at, body, "completed_at");
    take_text(&mut check.details_url, body, "details_url");
    take_text(&mut check.external_id, body, "external_id");
    let output = &body["output"];
    take_text(&mut check.title, output, "title");
    take_text(&mut check.summary, output, "summary");
    take_text(&mut check.text, output, "text");
    let annotations = output["annotations"].as_array().into_iter().flatten();
    check.annotations.extend(annotations.cloned());
    if body["conclusion"].is_string() {
        "completed".clone_into(&mut check.status);
        check.completed_at.get_or_insert_with(|| now.to_owned());
    } else if body["status"].is_string() && check.status != "completed" {
        check.conclusion = None;
    }
    check.updates.push(body.clone());
}

/// `GET …/check-runs/{check_run_id}`.
pub fn get(call: &mut Call<'_>) -> Handled {
    let check = found(call)?;
    let repository = &call.state.repository.full_name;
    Ok(Answer::of(200, shown(check, call.base, repository)))
}

/// `GET …/commits/{ref}/check-runs`.
pub fn of_commit(call: &mut Call<'_>) -> Handled {
    let name = call.path["ref"].clone();
    let sha = call.state.resolved(&name).unwrap_or(name);
    list(call, |check, _| check.head_sha == sha)
}

/// `GET …/check-suites/{check_suite_id}/check-runs`: a suite is what one account hung on a commit.
pub fn of_suite(call: &mut Call<'_>) -> Handled {
    let id = call.number("check_suite_id")?;
    list(call, |check, _| suite_id(check) == id)
}

fn list(call: &mut Call<'_>, wanted: impl Fn(&CheckRun, &State) -> bool) -> Handled {
    let state = &*call.state;
    let asked = |name: &str, value: &str| call.asked(name).is_none_or(|asked| asked == value);
    let checks = state.checks.iter().filter(|check| wanted(check, state));
    let asked_for = checks
        .filter(|check| asked("check_name", &check.name) && asked("status", &check.status))
        .rev();
    let mut shown: Vec<Value> = Vec::new();
    let mut names = Vec::new();
    for check in asked_for {
        // Of several of a name GitHub lists the latest, unless all are asked for.
        let name = (&check.name, &check.creator);
        if call.asked("filter") == Some("all") || !names.contains(&name) {
            names.push(name);
            shown.push(self::shown(check, call.base, &state.repository.full_name));
        }
    }
    Ok(call.page_in("check_runs", shown))
}

fn found<'c>(call: &'c Call<'_>) -> Result<&'c CheckRun, Answer> {
    let id = call.number("check_run_id")?;
    let mut checks = call.state.checks.iter();
    checks
        .find(|check| check.id == id)
        .ok_or_else(Answer::not_found)
}

fn suite_id(check: &CheckRun) -> u64 {
    u64::from_str_radix(check.head_sha.get(..8).unwrap_or("1"), 16).unwrap_or(1)
}

fn shown(check: &CheckRun, base: &str, repository: &str) -> Value {
    let slug = check.creator.trim_end_matches("[bot]");
    let url = format!("{base}/repos/{repository}/check-runs/{}", check.id);
    let page = format!("{base}/{repository}/runs/{}", check.id);
    json!({
        "id": check.id,
        "name": check.name,
        "head_sha": check.head_sha,
        "status": check.status,
        "conclusion": check.conclusion,
        "started_at": check.started_at,
        "completed_at": check.completed_at,
        "details_url": check.details_url.as_ref().unwrap_or(&page),
        "external_id": check.external_id,
        "url": url,
        "html_url": page,
        "app": { "slug": slug, "name": slug, "id": 15368 },
        "check_suite": { "id": suite_id(check) },
        "output": {
            "title": check.title,
            "summary": check.summary,
            "text": check.text,
            "annotations_count": check.annotations.len(),
            "annotations_url": format!("{url}/annotations"),
        },
    })
}
