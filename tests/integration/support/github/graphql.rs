//! The part of GitHub's GraphQL that the model speaks: a query's text is held against the fields
//! that GitHub's schema has, and answered.

mod schema;

pub use schema::faults;

use super::auth::{Access, Area, NOT_ACCESSIBLE, Need, refusal};
use super::call::Call;
use super::graphql_text::{Field, Selection, parse};
use super::state::{Comment, State};
use super::store::Changes;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

/// An error of GraphQL, which comes with status 200.
struct Failed {
    kind: &'static str,
    message: String,
}

impl Failed {
    fn new(kind: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message }
    }
}

/// The body of the answer to a request without faults.
pub fn answer(call: &mut Call<'_>) -> Value {
    let query = call.text("query").unwrap_or_default();
    let Ok((_, selections)) = parse(&query, &call.body["variables"]) else {
        return json!({ "errors": [{ "message": "Parse error" }] });
    };
    let (mut data, mut errors) = (Map::new(), Vec::new());
    for selection in &selections {
        let Selection::Field(field) = selection else {
            continue;
        };
        let value = match field.name.as_str() {
            "createCommitOnBranch" => commit_on_branch(call, &field.arguments["input"]),
            "resolveReviewThread" => resolve_thread(call, &field.arguments["input"]),
            "repository" => repository(call, field),
            _ if call
                .token
                .is_some_and(|token| token.login.ends_with("[bot]")) =>
            {
                Err(Failed::new("FORBIDDEN", NOT_ACCESSIBLE))
            }
            _ => Ok(json!({ "__typename": "User", "login": call.login(), "id": "U_1" })),
        };
        let shown = value
            .map(|value| picked(&value, &field.inner))
            .unwrap_or_else(|failed| {
                errors.push(json!({
                    "type": failed.kind,
                    "path": [field.alias],
                    "locations": [{ "line": 1, "column": 1 }],
                    "message": failed.message,
                }));
                Value::Null
            });
        data.insert(field.alias.clone(), shown);
    }
    let mut body = json!({ "data": data });
    if !errors.is_empty() {
        body["errors"] = json!(errors);
    }
    body
}

/// The selected fields of a value.
fn picked(value: &Value, selections: &[Selection]) -> Value {
    if selections.is_empty() || value.is_null() {
        return value.clone();
    }
    if let Value::Array(values) = value {
        return values
            .iter()
            .map(|value| picked(value, selections))
            .collect();
    }
    let mut shown = Map::new();
    for selection in selections {
        match selection {
            Selection::Field(field) => {
                let arguments = serde_json::to_string(&field.arguments).unwrap_or_default();
                let with_arguments = value.get(format!("{}{arguments}", field.name));
                let inner = with_arguments.unwrap_or(&value[field.name.as_str()]);
                shown.insert(field.alias.clone(), picked(inner, &field.inner));
            }
            Selection::On(kind, inner) if value["__typename"] == kind.as_str() => {
                let fields = picked(value, inner);
                shown.extend(fields.as_object().cloned().into_iter().flatten());
            }
            Selection::On(..) => {}
        }
    }
    Value::Object(shown)
}

fn repository(call: &Call<'_>, field: &Field) -> Result<Value, Failed> {
    let argument = |name: &str| {
        field.arguments[name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let asked = format!("{}/{}", argument("owner"), argument("name"));
    let repository = &call.state.repository;
    if asked != repository.full_name {
        let message = format!("Could not resolve to a Repository with the name '{asked}'.");
        return Err(Failed::new("NOT_FOUND", message));
    }
    let mut shown = json!({
        "__typename": "Repository",
        "nameWithOwner": asked,
        "isFork": repository.fork,
        "isPrivate": repository.private,
        "defaultBranchRef": shown_ref(call, &format!("refs/heads/{}", repository.default_branch)),
    });
    // A field with arguments may be asked for several times; each has its own value.
    for selection in &field.inner {
        let Selection::Field(inner) = selection else {
            continue;
        };
        let text = |name: &str| {
            inner.arguments[name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let value = match inner.name.as_str() {
            "object" => {
                let name = format!("{}{}", text("oid"), text("expression"));
                let sha = call.state.resolved(&name);
                sha.map_or(Value::Null, |sha| shown_commit(call, &sha))
            }
            "ref" => shown_ref(call, &text("qualifiedName")),
            "pullRequest" => shown_pull(call, inner.arguments["number"].as_u64()),
            _ => continue,
        };
        let arguments = serde_json::to_string(&inner.arguments).unwrap_or_default();
        shown[format!("{}{arguments}", inner.name)] = value;
    }
    Ok(shown)
}

/// A pull request with its threads: each begins with a comment that answers none.
fn shown_pull(call: &Call<'_>, number: Option<u64>) -> Value {
    let Some(number) = number.filter(|number| call.state.pulls.contains_key(number)) else {
        return Value::Null;
    };
    let comments = call.state.review_comments.iter();
    let of_pull = comments.filter(|comment| comment.number == number);
    let line = |comment: &Comment| comment.line.clone().unwrap_or_default();
    let first = of_pull.filter(|comment| line(comment).in_reply_to.is_none());
    let nodes: Vec<Value> = first
        .map(|comment| {
            json!({
                "__typename": "PullRequestReviewThread",
                "id": format!("PRRT_{}", comment.id),
                "isResolved": call.state.resolved.contains(&comment.id),
                "isOutdated": false,
                "line": line(comment).line,
                "path": line(comment).path,
                "comments": { "totalCount": 1, "nodes": [{
                    "id": format!("PRRC_{}", comment.id),
                    "body": comment.body,
                    "path": line(comment).path,
                }] },
            })
        })
        .collect();
    let page = json!({ "hasNextPage": false, "endCursor": null });
    json!({
        "__typename": "PullRequest",
        "id": format!("PR_{number}"),
        "number": number,
        "reviewThreads": { "totalCount": nodes.len(), "nodes": nodes, "pageInfo": page },
    })
}

fn resolve_thread(call: &mut Call<'_>, input: &Value) -> Result<Value, Failed> {
    let need = Need::Of(Area::Pulls, Access::Write);
    if let Some((_, message)) = refusal(call.state, call.token, need, None) {
        return Err(Failed::new("FORBIDDEN", message));
    }
    let thread = input["threadId"].as_str().unwrap_or_default();
    let id = thread.strip_prefix("PRRT_").and_then(|id| id.parse().ok());
    let is_there = |id: &u64| {
        let mut comments = call.state.review_comments.iter();
        comments.any(|comment| comment.id == *id)
    };
    let Some(id) = id.filter(is_there) else {
        let message = format!("Could not resolve to a node with the global id of '{thread}'");
        return Err(Failed::new("NOT_FOUND", message));
    };
    call.state.resolved.insert(id);
    Ok(json!({
        "__typename": "ResolveReviewThreadPayload",
        "thread": { "__typename": "PullRequestReviewThread", "id": thread, "isResolved": true },
    }))
}

fn shown_ref(call: &Call<'_>, name: &str) -> Value {
    let full = if name.starts_with("refs/") {
        name.to_owned()
    } else {
        format!("refs/heads/{name}")
    };
    let Some(sha) = call.state.sha_of(&full) else {
        return Value::Null;
    };
    let at = full.rfind('/').map_or(0, |at| at + 1);
    let (prefix, short) = full
        .strip_prefix("refs/heads/")
        .map_or_else(|| full.split_at(at), |short| ("refs/heads/", short));
    json!({
        "__typename": "Ref",
        "id": format!("REF_{full}"),
        "name": short,
        "prefix": prefix,
        "target": shown_commit(call, &sha),
    })
}

fn shown_commit(call: &Call<'_>, sha: &str) -> Value {
    let Some(commit) = call.state.commit(sha) else {
        return Value::Null;
    };
    let (headline, body) = commit
        .message
        .split_once('\n')
        .unwrap_or((&commit.message, ""));
    let signature = call.state.signed.contains(sha).then(|| {
        json!({
            "__typename": "GpgSignature",
            "isValid": true,
            "wasSignedByGitHub": true,
            "state": "VALID",
            "email": "noreply@github.invalid",
        })
    });
    json!({
        "__typename": "Commit",
        "id": format!("C_{sha}"),
        "oid": sha,
        "abbreviatedOid": &sha[..7],
        "url": call.page_url(&format!("commit/{sha}")),
        "commitUrl": call.page_url(&format!("commit/{sha}")),
        "message": commit.message,
        "messageHeadline": headline,
        "messageBody": body.trim_start(),
        "committedDate": commit.date,
        "authoredDate": commit.date,
        "signature": signature,
    })
}

fn commit_on_branch(call: &mut Call<'_>, input: &Value) -> Result<Value, Failed> {
    let need = Need::Of(Area::Contents, Access::Write);
    if let Some((_, message)) = refusal(call.state, call.token, need, None) {
        return Err(Failed::new("FORBIDDEN", message));
    }
    let branch = committable(call.state, &input["branch"])?;
    let full = format!("refs/heads/{branch}");
    let missing = || Failed::new("NOT_FOUND", format!("No ref named {full} was found."));
    let head = call.state.sha_of(&full).ok_or_else(missing)?;
    let expected = input["expectedHeadOid"].as_str().unwrap_or_default();
    if head != expected {
        let message = format!(
            "Expected branch to point to \"{expected}\" but it did not. Pull and try again."
        );
        return Err(Failed::new("STALE_DATA", message));
    }
    if call.state.protected.contains(&branch) {
        let message = format!("{branch} is a protected branch.");
        return Err(Failed::new("UNPROCESSABLE", message));
    }
    let mut changes = changes(&input["fileChanges"])?;
    let added = call.state.added_file.clone();
    changes.extend(added.map(|path| (path, Some(b"added".to_vec()))));
    let workflow = |path: &str| path.starts_with(".github/workflows/");
    if let Some((path, _)) = changes.iter().find(|(path, _)| workflow(path)) {
        let message = format!(
            "refusing to allow a GitHub App to create or update workflow `{path}` without `workflows` permission"
        );
        return Err(Failed::new("FORBIDDEN", message));
    }
    let text = |name: &str| input["message"][name].as_str().unwrap_or_default();
    let message = match text("body") {
        "" => text("headline").to_owned(),
        body => format!("{}\n\n{body}", text("headline")),
    };
    let author = call.login();
    let made = call.state.make_commit(&head, &author, &message, &changes);
    let sha = made.map_err(|error| Failed::new("UNPROCESSABLE", error))?;
    call.state.set_ref(&full, &sha);
    Ok(json!({
        "__typename": "CreateCommitOnBranchPayload",
        "clientMutationId": input["clientMutationId"],
        "commit": shown_commit(call, &sha),
        "ref": shown_ref(call, &full),
    }))
}

fn committable(state: &State, branch: &Value) -> Result<String, Failed> {
    if let Some(id) = branch["id"].as_str() {
        let name = id.strip_prefix("REF_refs/heads/").map(str::to_owned);
        return name.ok_or_else(|| Failed::new("NOT_FOUND", "Could not resolve to a node"));
    }
    let text = |name: &str| branch[name].as_str().unwrap_or_default();
    if text("repositoryNameWithOwner") != state.repository.full_name {
        return Err(Failed::new(
            "NOT_FOUND",
            "Could not resolve to a Repository",
        ));
    }
    let name = text("branchName");
    Ok(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned())
}

fn changes(changes: &Value) -> Result<Changes, Failed> {
    let list = |name: &str| changes[name].as_array().into_iter().flatten();
    let path = |change: &Value| change["path"].as_str().unwrap_or_default().to_owned();
    let mut all = Changes::new();
    for addition in list("additions") {
        let contents = BASE64_STANDARD
            .decode(addition["contents"].as_str().unwrap_or_default())
            .map_err(|error| Failed::new("UNPROCESSABLE", error.to_string()))?;
        all.push((path(addition), Some(contents)));
    }
    all.extend(list("deletions").map(|deletion| (path(deletion), None)));
    Ok(all)
}
