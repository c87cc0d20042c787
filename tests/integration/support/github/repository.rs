//! The repository itself, its people, branches, refs and commits; and who asks.

use super::call::{Answer, Call, Handled};
use super::state::{Commit, State};
use serde_json::{Value, json};

/// `GET /user`.
pub fn account(call: &mut Call<'_>) -> Handled {
    Ok(Answer::of(200, State::user(&call.login())))
}

/// `GET /repos/{owner}/{repo}`.
pub fn get(call: &mut Call<'_>) -> Handled {
    let full_name = call.state.repository.full_name.clone();
    Ok(Answer::of(200, shown(call, &full_name)))
}

/// A repository as GitHub shows it.
pub fn shown(call: &Call<'_>, full_name: &str) -> Value {
    let (owner, name) = full_name.split_once('/').unwrap_or_default();
    let repository = &call.state.repository;
    json!({
        "id": 4711,
        "name": name,
        "full_name": full_name,
        "owner": State::user(owner),
        "private": repository.private,
        "fork": repository.fork,
        "has_issues": repository.has_issues,
        "default_branch": repository.default_branch,
        "html_url": format!("{}/{full_name}", call.base),
        "clone_url": format!("{}/{full_name}.git", call.base),
        "url": format!("{}/repos/{full_name}", call.base),
    })
}

/// `GET …/collaborators/{username}/permission`.
pub fn permission(call: &mut Call<'_>) -> Handled {
    let login = &call.path["username"];
    let role = call
        .state
        .roles
        .get(login)
        .ok_or_else(|| Answer::refusal(404, &format!("{login} is not a user")))?;
    // The older field knows four words only.
    let permission = match role.as_str() {
        "maintain" => "write",
        "triage" => "read",
        known => known,
    };
    let body = json!({ "permission": permission, "role_name": role, "user": State::user(login) });
    Ok(Answer::of(200, body))
}

/// `GET …/branches/{branch}`.
pub fn branch(call: &mut Call<'_>) -> Handled {
    let name = &call.path["branch"];
    let sha = call.state.sha_of(&format!("refs/heads/{name}"));
    let commit = sha
        .and_then(|sha| call.state.commit(&sha))
        .ok_or_else(|| Answer::refusal(404, "Branch not found"))?;
    let is_protected = call.state.protected.contains(name);
    let contexts: &[&str] = if is_protected { &["ci / test"] } else { &[] };
    let body = json!({
        "name": name,
        "commit": shown_commit(call, &commit),
        "protected": is_protected,
        "protection": {
            "enabled": is_protected,
            "required_status_checks": { "enforcement_level": "non_admins", "contexts": contexts },
        },
        "protection_url": call.api_url(&format!("branches/{name}/protection")),
        "_links": {
            "self": call.api_url(&format!("branches/{name}")),
            "html": call.page_url(&format!("tree/{name}")),
        },
    });
    Ok(Answer::of(200, body))
}

/// `GET …/rules/branches/{branch}`. The branch need not exist.
pub fn rules(call: &mut Call<'_>) -> Handled {
    let rules = call.state.rules.get(&call.path["branch"]);
    let rules = rules.cloned().unwrap_or_default();
    Ok(call.page(rules))
}

/// `GET …/rulesets/{ruleset_id}`.
pub fn ruleset(call: &mut Call<'_>) -> Handled {
    let id = call.number("ruleset_id")?;
    let bypass = call.state.bypasses.get(&id).ok_or_else(Answer::not_found)?;
    let mut ruleset = json!({
        "id": id,
        "name": format!("rules {id}"),
        "source_type": "Repository",
        "source": call.state.repository.full_name,
        "enforcement": "active",
    });
    if let Some(bypass) = bypass {
        ruleset["current_user_can_bypass"] = json!(bypass);
    }
    Ok(Answer::of(200, ruleset))
}

/// `GET …/git/commits/{commit_sha}`.
pub fn git_commit(call: &mut Call<'_>) -> Handled {
    let commit = call
        .state
        .commit(&call.path["commit_sha"])
        .ok_or_else(Answer::not_found)?;
    let mut shown = git_side(call, &commit);
    shown["sha"] = json!(commit.sha);
    shown["parents"] = parents(&commit);
    Ok(Answer::of(200, shown))
}

fn parents(commit: &Commit) -> Value {
    commit
        .parents
        .iter()
        .map(|sha| json!({ "sha": sha }))
        .collect()
}

fn git_side(call: &Call<'_>, commit: &Commit) -> Value {
    let signed = call.state.signed.contains(&commit.sha);
    let actor = json!({ "name": commit.author, "email": commit.email, "date": commit.date });
    json!({
        "author": actor,
        "committer": actor,
        "message": commit.message,
        "tree": { "sha": commit.tree },
        "verification": {
            "verified": signed,
            "reason": if signed { "valid" } else { "unsigned" },
        },
    })
}

fn shown_commit(call: &Call<'_>, commit: &Commit) -> Value {
    json!({
        "sha": commit.sha,
        "commit": git_side(call, commit),
        "parents": parents(commit),
        "html_url": call.page_url(&format!("commit/{}", commit.sha)),
    })
}

/// `GET …/git/ref/{ref}`.
pub fn get_ref(call: &mut Call<'_>) -> Handled {
    let name = format!("refs/{}", call.path["ref"]);
    let sha = call.state.sha_of(&name).ok_or_else(Answer::not_found)?;
    Ok(Answer::of(200, shown_ref(call, &name, &sha)))
}

/// `GET …/git/matching-refs/{ref}`.
pub fn matching_refs(call: &mut Call<'_>) -> Handled {
    let start = format!("refs/{}", call.path["ref"]);
    let refs = call.state.all_refs();
    let matching = refs.iter().filter(|(name, _)| name.starts_with(&start));
    let shown = matching.map(|(name, sha)| shown_ref(call, name, sha));
    Ok(Answer::of(200, shown.collect()))
}

/// `POST …/git/refs`.
pub fn create_ref(call: &mut Call<'_>) -> Handled {
    let (name, sha) = named(call, call.text("ref").unwrap_or_default())?;
    if call.state.sha_of(&name).is_some() {
        return Err(Answer::refusal(422, "Reference already exists"));
    }
    call.state.set_ref(&name, &sha);
    Ok(Answer::of(201, shown_ref(call, &name, &sha)))
}

/// `DELETE …/git/refs/{ref}`.
pub fn delete_ref(call: &mut Call<'_>) -> Handled {
    let name = format!("refs/{}", call.path["ref"]);
    if call.state.sha_of(&name).is_none() {
        return Err(Answer::refusal(422, "Reference does not exist"));
    }
    unprotected(call, &name)?;
    call.state.remove_ref(&name);
    Ok(Answer::of(204, Value::Null))
}

/// A ref's name and the body's commit, which has to be known.
fn named(call: &Call<'_>, name: String) -> Result<(String, String), Answer> {
    let sha = call.text("sha").unwrap_or_default();
    if !call.state.knows(&sha) {
        return Err(Answer::refusal(422, "Object does not exist"));
    }
    Ok((name, sha))
}

fn unprotected(call: &Call<'_>, name: &str) -> Result<(), Answer> {
    let branch = name.strip_prefix("refs/heads/").unwrap_or_default();
    if call.state.protected.contains(branch) {
        return Err(Answer::refusal(422, "Cannot update this protected ref."));
    }
    Ok(())
}

fn shown_ref(call: &Call<'_>, name: &str, sha: &str) -> Value {
    json!({
        "ref": name,
        "url": call.api_url(&format!("git/{name}")),
        "object": {
            "type": "commit",
            "sha": sha,
            "url": call.api_url(&format!("git/commits/{sha}")),
        },
    })
}
