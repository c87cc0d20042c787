//! Issues, their comments and labels, and reactions.

use super::call::{Answer, Call, Handled};
use super::state::{Comment, Issue, Reaction, State, Subject};
use serde_json::{Value, json};

/// `GET …/issues`.
pub fn list(call: &mut Call<'_>) -> Handled {
    let state = call.asked("state").unwrap_or("open").to_owned();
    let labels: Vec<&str> = call
        .asked("labels")
        .into_iter()
        .flat_map(|all| all.split(','))
        .collect();
    let wanted = |issue: &Issue| {
        let labelled = labels
            .iter()
            .all(|label| issue.labels.iter().any(|known| known == label));
        labelled && (state == "all" || issue.state == state)
    };
    let author = call.asked("creator");
    let issues = call.state.issues.iter().rev();
    let shown = issues
        .filter(|(_, issue)| wanted(issue) && author.is_none_or(|author| issue.author == author))
        .map(|(number, _)| shown(call, *number))
        .collect();
    Ok(call.page(shown))
}

/// `POST …/issues`.
pub fn create(call: &mut Call<'_>) -> Handled {
    if !call.state.repository.has_issues {
        return Err(Answer::refusal(
            410,
            "Issues has been disabled in this repository.",
        ));
    }
    let title = match &call.body["title"] {
        Value::String(title) => title.clone(),
        other => other.to_string(),
    };
    let (login, body) = (call.login(), call.text("body").unwrap_or_default());
    let number = call.state.open_issue(&login, &title, &body);
    let labels = label_names(&call.body["labels"]);
    call.issue_mut(number)?.labels = labels;
    Ok(Answer::of(201, shown(call, number)))
}

/// `GET …/issues/{issue_number}`.
pub fn get(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    Ok(Answer::of(200, shown(call, number)))
}

/// `PATCH …/issues/{issue_number}`.
pub fn update(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let body = call.body.clone();
    change(call.issue_mut(number)?, &body);
    Ok(Answer::of(200, shown(call, number)))
}

/// Applies what a body says of an issue or a pull request.
pub fn change(issue: &mut Issue, body: &Value) {
    let fields = [
        (&mut issue.title, "title"),
        (&mut issue.body, "body"),
        (&mut issue.state, "state"),
    ];
    for (field, name) in fields {
        if let Some(text) = body[name].as_str() {
            text.clone_into(field);
        }
    }
    if body["labels"].is_array() {
        issue.labels = label_names(&body["labels"]);
    }
}

/// `GET …/issues/{issue_number}/comments`.
pub fn comments(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let since = call.asked("since").unwrap_or_default();
    let comments = call.state.comments.iter();
    let shown = comments
        .filter(|comment| comment.number == number && comment.updated_at.as_str() >= since)
        .map(|comment| shown_comment(call, comment))
        .collect();
    Ok(call.page(shown))
}

/// `POST …/issues/{issue_number}/comments`.
pub fn comment(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let (login, body) = (call.login(), call.text("body").unwrap_or_default());
    let id = call.state.comment(number, &login, &body);
    let shown = shown_comment(call, found_comment(call, id)?);
    Ok(Answer::of(201, shown))
}

/// `GET …/issues/comments/{comment_id}`.
pub fn get_comment(call: &mut Call<'_>) -> Handled {
    let comment = found_comment(call, call.number("comment_id")?)?;
    Ok(Answer::of(200, shown_comment(call, comment)))
}

/// `PATCH …/issues/comments/{comment_id}`.
pub fn edit_comment(call: &mut Call<'_>) -> Handled {
    let (id, now) = (call.number("comment_id")?, call.state.now());
    let body = call.text("body").unwrap_or_default();
    let mut comments = call.state.comments.iter_mut();
    let comment = comments
        .find(|comment| comment.id == id)
        .ok_or_else(Answer::not_found)?;
    comment.bodies.push(body.clone());
    comment.body = body;
    comment.updated_at = now;
    let shown = shown_comment(call, found_comment(call, id)?);
    Ok(Answer::of(200, shown))
}

/// `DELETE …/issues/comments/{comment_id}`.
pub fn delete_comment(call: &mut Call<'_>) -> Handled {
    let id = call.number("comment_id")?;
    found_comment(call, id)?;
    call.state.comments.retain(|comment| comment.id != id);
    Ok(Answer::of(204, Value::Null))
}

/// `POST …/reactions`: 200 for one that is there, 201 for a new one.
pub fn react(call: &mut Call<'_>) -> Handled {
    let (subject, login) = (subject(call)?, call.login());
    let content = call.text("content").unwrap_or_default();
    let mut all = call.state.reactions.iter();
    let same = |reaction: &&Reaction| {
        reaction.subject == subject && reaction.login == login && reaction.content == content
    };
    if let Some(known) = all.find(same) {
        return Ok(Answer::of(200, shown_reaction(known)));
    }
    let id = call.state.new_id();
    let reaction = Reaction {
        id,
        subject,
        login,
        content,
    };
    let shown = shown_reaction(&reaction);
    call.state.reactions.push(reaction);
    Ok(Answer::of(201, shown))
}

fn subject(call: &Call<'_>) -> Result<Subject, Answer> {
    if call.path.contains_key("issue_number") {
        return existing(call).map(Subject::Issue);
    }
    let id = call.number("comment_id")?;
    if call.target.contains("/pulls/comments/") {
        let mut comments = call.state.review_comments.iter();
        let found = comments.find(|comment| comment.id == id);
        return found
            .map(|_| Subject::ReviewComment(id))
            .ok_or_else(Answer::not_found);
    }
    found_comment(call, id).map(|_| Subject::Comment(id))
}

/// The number in the path, if there is such an issue or pull request.
fn existing(call: &Call<'_>) -> Result<u64, Answer> {
    let number = call.number("issue_number")?;
    let known = call.state.issues.contains_key(&number);
    known.then_some(number).ok_or_else(Answer::not_found)
}

fn found_comment<'c>(call: &'c Call<'_>, id: u64) -> Result<&'c Comment, Answer> {
    let mut comments = call.state.comments.iter();
    comments
        .find(|comment| comment.id == id)
        .ok_or_else(Answer::not_found)
}

impl Call<'_> {
    /// The issue of a number.
    pub fn issue_mut(&mut self, number: u64) -> Result<&mut Issue, Answer> {
        self.state
            .issues
            .get_mut(&number)
            .ok_or_else(Answer::not_found)
    }

    /// The URL of something of the repository in the API.
    pub fn api_url(&self, rest: &str) -> String {
        format!(
            "{}/repos/{}/{rest}",
            self.base, self.state.repository.full_name
        )
    }

    /// The URL of something of the repository for people.
    pub fn page_url(&self, rest: &str) -> String {
        format!("{}/{}/{rest}", self.base, self.state.repository.full_name)
    }
}

fn label_names(labels: &Value) -> Vec<String> {
    let labels = labels.as_array().into_iter().flatten();
    let name = |label: &Value| label.as_str().or(label["name"].as_str()).map(str::to_owned);
    labels.filter_map(name).collect()
}

/// A label as GitHub shows it.
pub fn label(name: &str) -> Value {
    json!({ "name": name, "color": "ededed", "default": false })
}

fn shown(call: &Call<'_>, number: u64) -> Value {
    let issue = &call.state.issues[&number];
    let comments = call.state.comments.iter();
    let kind = if call.state.pulls.contains_key(&number) {
        "pull"
    } else {
        "issues"
    };
    let mut shown = json!({
        "id": number + 5_000_000,
        "number": number,
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "user": State::user(&issue.author),
        "author_association": issue.association,
        "labels": issue.labels.iter().map(|name| label(name)).collect::<Value>(),
        "comments": comments.filter(|comment| comment.number == number).count(),
        "url": call.api_url(&format!("issues/{number}")),
        "html_url": call.page_url(&format!("{kind}/{number}")),
    });
    if kind == "pull" {
        shown["pull_request"] = json!({
            "url": call.api_url(&format!("pulls/{number}")),
            "html_url": call.page_url(&format!("pull/{number}")),
        });
    }
    shown
}

fn shown_comment(call: &Call<'_>, comment: &Comment) -> Value {
    let kind = if call.state.pulls.contains_key(&comment.number) {
        "pull"
    } else {
        "issues"
    };
    let (id, number) = (comment.id, comment.number);
    json!({
        "id": id,
        "body": comment.body,
        "user": State::user(&comment.author),
        "author_association": comment.association,
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "url": call.api_url(&format!("issues/comments/{id}")),
        "html_url": call.page_url(&format!("{kind}/{number}#issuecomment-{id}")),
        "issue_url": call.api_url(&format!("issues/{number}")),
    })
}

fn shown_reaction(reaction: &Reaction) -> Value {
    json!({
        "id": reaction.id,
        "content": reaction.content,
        "user": State::user(&reaction.login),
    })
}
