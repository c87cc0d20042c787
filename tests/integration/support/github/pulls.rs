//! Pull requests, reviews and comments on lines.

use super::auth::Kind;
use super::call::{Answer, Call, Handled};
use super::issues;
use super::state::{Comment, Line, Pull, Review, State};
use super::store::git;
use serde_json::{Value, json};

/// `GET …/pulls`.
pub fn list(call: &mut Call<'_>) -> Handled {
    let state = call.asked("state").unwrap_or("open").to_owned();
    let (head, base) = (call.asked("head"), call.asked("base"));
    let wanted = |number: &u64, pull: &Pull| {
        let issue = &call.state.issues[number];
        (state == "all" || issue.state == state)
            && head.is_none_or(|head| head_label(call.state, pull) == head)
            && base.is_none_or(|base| pull.base == base)
    };
    let pulls = call.state.pulls.iter().rev();
    let numbers: Vec<u64> = pulls
        .filter(|(number, pull)| wanted(number, pull))
        .map(|(number, _)| *number)
        .collect();
    let shown = numbers
        .iter()
        .map(|number| shown(call, *number, false))
        .collect();
    Ok(call.page(shown))
}

/// `POST …/pulls`.
pub fn create(call: &mut Call<'_>) -> Handled {
    let job = call.token.is_some_and(|token| token.kind == Kind::Job);
    if job && !call.state.actions_may_open_pulls {
        let message = "GitHub Actions is not permitted to create or approve pull requests.";
        return Err(Answer::refusal(403, message));
    }
    let (head, base) = (
        call.text("head").unwrap_or_default(),
        call.text("base").unwrap_or_default(),
    );
    let owner = owner(call.state);
    let (label, branch) = match head.split_once(':') {
        Some((_, branch)) => (head.clone(), branch.to_owned()),
        None => (format!("{owner}:{head}"), head.clone()),
    };
    let invalid =
        |field: &str| json!({ "resource": "PullRequest", "field": field, "code": "invalid" });
    let sha_of = |name: &str| call.state.sha_of(&format!("refs/heads/{name}"));
    let base_sha = sha_of(&base).ok_or_else(|| Answer::invalid(&[invalid("base")]))?;
    let head_sha = sha_of(&branch).ok_or_else(|| Answer::invalid(&[invalid("head")]))?;
    let custom = |message: String| {
        let error = json!({ "resource": "PullRequest", "code": "custom", "message": message });
        Answer::invalid(&[error])
    };
    let nothing_new = match call.state.bare {
        Some(_) => call.state.descends(&base_sha, &head_sha),
        None => base_sha == head_sha,
    };
    if nothing_new {
        return Err(custom(format!("No commits between {base} and {branch}")));
    }
    let open = call.state.pulls.iter().any(|(number, pull)| {
        let state = &call.state.issues[number].state;
        state == "open" && head_label(call.state, pull) == label && pull.base == base
    });
    if open {
        return Err(custom(format!(
            "A pull request already exists for {label}."
        )));
    }
    let (login, title) = (call.login(), call.text("title").unwrap_or_default());
    let number = call.state.open_pull(&login, &title, &branch, &base);
    call.issue_mut(number)?.body = call.text("body").unwrap_or_default();
    let pull = call
        .state
        .pulls
        .get_mut(&number)
        .ok_or_else(Answer::not_found)?;
    pull.draft = call.body["draft"] == true;
    Ok(Answer::of(201, shown(call, number, true)))
}

/// `GET …/pulls/{pull_number}`.
pub fn get(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    Ok(Answer::of(200, shown(call, number, true)))
}

/// `PATCH …/pulls/{pull_number}`.
pub fn update(call: &mut Call<'_>) -> Handled {
    let (number, body) = (existing(call)?, call.body.clone());
    issues::change(call.issue_mut(number)?, &body);
    if let (Some(base), Some(pull)) = (call.text("base"), call.state.pulls.get_mut(&number)) {
        pull.base = base;
    }
    Ok(Answer::of(200, shown(call, number, true)))
}

/// `GET …/pulls/{pull_number}/files`, for files that are added or modified.
pub fn files(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let range = format!(
        "{}...{}",
        call.state.pulls[&number].base,
        call.state.head_of(number)
    );
    let bare = call.state.bare.clone().ok_or_else(Answer::not_found)?;
    let diff = |args: &[&str]| git(&bare, &[&["diff", &range], args].concat());
    let listed = diff(&["--name-status"]);
    let shown = listed.lines().filter_map(|line| {
        let (status, path) = line.split_once('\t')?;
        let whole = diff(&["--", path]);
        let patch = whole.find("@@").map(|at| whole[at..].to_owned());
        Some(json!({
            "sha": null, "filename": path, "patch": patch,
            "status": if status == "A" { "added" } else { "modified" },
            "additions": 0, "deletions": 0, "changes": 0,
            "blob_url": "", "raw_url": "", "contents_url": call.api_url("contents"),
        }))
    });
    let shown = shown.collect();
    Ok(call.page(shown))
}

/// `GET …/pulls/{pull_number}/reviews`.
pub fn reviews(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let reviews = call.state.reviews.iter();
    let shown = reviews
        .filter(|review| review.number == number)
        .map(|review| shown_review(call, review))
        .collect();
    Ok(call.page(shown))
}

/// `POST …/pulls/{pull_number}/reviews`.
pub fn review(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let state = match call.text("event").as_deref() {
        Some("APPROVE") => "APPROVED",
        Some("REQUEST_CHANGES") => "CHANGES_REQUESTED",
        Some("COMMENT") => "COMMENTED",
        _ => "PENDING",
    };
    let (id, login) = (call.state.new_id(), call.login());
    let review = Review {
        id,
        number,
        author: login.clone(),
        state: state.to_owned(),
        body: call.text("body").unwrap_or_default(),
        association: "NONE".to_owned(),
    };
    for comment in call.body["comments"]
        .as_array()
        .cloned()
        .into_iter()
        .flatten()
    {
        let text = |name: &str| comment[name].as_str().unwrap_or_default().to_owned();
        let line = Line {
            path: text("path"),
            line: comment["line"].as_u64().unwrap_or(1),
            review: Some(id),
            ..Line::default()
        };
        call.state
            .review_comment(number, &login, &text("body"), line);
    }
    let shown = shown_review(call, &review);
    call.state.reviews.push(review);
    Ok(Answer::of(200, shown))
}

/// `GET …/pulls/{pull_number}/reviews/{review_id}`.
pub fn get_review(call: &mut Call<'_>) -> Handled {
    let (number, id) = (existing(call)?, call.number("review_id")?);
    let mut reviews = call.state.reviews.iter();
    let found = reviews.find(|review| review.id == id && review.number == number);
    let review = found.ok_or_else(Answer::not_found)?;
    Ok(Answer::of(200, shown_review(call, review)))
}

/// `GET …/pulls/{pull_number}/reviews/{review_id}/comments`.
pub fn comments_of_review(call: &mut Call<'_>) -> Handled {
    let (number, id) = (existing(call)?, call.number("review_id")?);
    line_comments(call, |comment| {
        comment.number == number
            && comment
                .line
                .as_ref()
                .is_some_and(|line| line.review == Some(id))
    })
}

/// `GET …/pulls/{pull_number}/comments`.
pub fn comments(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    line_comments(call, |comment| comment.number == number)
}

/// `PATCH …/pulls/comments/{comment_id}`.
pub fn edit_comment(call: &mut Call<'_>) -> Handled {
    let (id, body) = (
        call.number("comment_id")?,
        call.text("body").unwrap_or_default(),
    );
    let mut comments = call.state.review_comments.iter_mut();
    let comment = comments.find(|comment| comment.id == id);
    let comment = comment.ok_or_else(Answer::not_found)?;
    comment.body.clone_from(&body);
    comment.bodies.push(body);
    let comment = comment.clone();
    Ok(Answer::of(200, shown_comment(call, &comment)))
}

/// `POST …/pulls/{pull_number}/comments/{comment_id}/replies`.
pub fn reply(call: &mut Call<'_>) -> Handled {
    let (number, first) = (existing(call)?, call.number("comment_id")?);
    let mut comments = call.state.review_comments.iter();
    let there = comments.find(|comment| comment.id == first && comment.number == number);
    let line = there
        .ok_or_else(Answer::not_found)?
        .line
        .clone()
        .unwrap_or_default();
    if line.in_reply_to.is_some() {
        // GitHub takes no reply to a reply.
        return Err(Answer::not_found());
    }
    let line = Line {
        in_reply_to: Some(first),
        review: None,
        ..line
    };
    let (login, body) = (call.login(), call.text("body").unwrap_or_default());
    let id = call.state.review_comment(number, &login, &body, line);
    let mut comments = call.state.review_comments.iter();
    let comment = comments
        .find(|comment| comment.id == id)
        .ok_or_else(Answer::not_found)?;
    Ok(Answer::of(201, shown_comment(call, comment)))
}

/// `POST …/pulls/{pull_number}/requested_reviewers`. A login with `nobody` in it is not a collaborator.
pub fn request_reviewers(call: &mut Call<'_>) -> Handled {
    let number = existing(call)?;
    let asked = call.body["reviewers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let asked: Vec<String> = asked
        .iter()
        .filter_map(|login| login.as_str().map(str::to_owned))
        .collect();
    if asked.iter().any(|login| login.contains("nobody")) {
        return Err(Answer::of(
            422,
            serde_json::json!({ "message": "Reviews may only be requested from collaborators." }),
        ));
    }
    let reviewers = call.state.reviewers.entry(number).or_default();
    reviewers.extend(asked);
    Ok(Answer::of(201, shown(call, number, false)))
}

fn line_comments(call: &Call<'_>, wanted: impl Fn(&Comment) -> bool) -> Handled {
    let comments = call.state.review_comments.iter();
    let shown = comments
        .filter(|comment| wanted(comment))
        .map(|comment| shown_comment(call, comment))
        .collect();
    Ok(call.page(shown))
}

fn existing(call: &Call<'_>) -> Result<u64, Answer> {
    let number = call.number("pull_number")?;
    let known = call.state.pulls.contains_key(&number);
    known.then_some(number).ok_or_else(Answer::not_found)
}

fn owner(state: &State) -> String {
    let full_name = state.repository.full_name.split('/').next();
    full_name.unwrap_or_default().to_owned()
}

/// `owner:branch`, as the filter of the list wants it.
fn head_label(state: &State, pull: &Pull) -> String {
    let full_name = pull.fork.as_ref().unwrap_or(&state.repository.full_name);
    let owner = full_name.split('/').next().unwrap_or_default();
    format!("{owner}:{}", pull.head)
}

impl State {
    /// The head of a pull request: of an open one, where its branch is now.
    pub fn head_of(&self, number: u64) -> String {
        let pull = &self.pulls[&number];
        let follows = pull.fork.is_none() && self.issues[&number].state == "open";
        let branch = follows.then(|| self.sha_of(&format!("refs/heads/{}", pull.head)));
        branch.flatten().unwrap_or_else(|| pull.head_sha.clone())
    }
}

fn shown(call: &Call<'_>, number: u64, whole: bool) -> Value {
    let (pull, issue) = (&call.state.pulls[&number], &call.state.issues[&number]);
    let own = &call.state.repository.full_name;
    let head_repository = pull.fork.as_ref().unwrap_or(own);
    let base_sha = call.state.sha_of(&format!("refs/heads/{}", pull.base));
    let side = |repository: &str, branch: &str, sha: String| {
        let owner = repository.split('/').next().unwrap_or_default();
        let mut shown = super::repository::shown(call, repository);
        shown["fork"] = json!(repository != own || call.state.repository.fork);
        json!({
            "label": format!("{owner}:{branch}"),
            "ref": branch,
            "sha": sha,
            "user": State::user(owner),
            "repo": shown,
        })
    };
    let head = side(head_repository, &pull.head, call.state.head_of(number));
    let base = side(own, &pull.base, base_sha.unwrap_or_else(|| "0".repeat(40)));
    let mut shown = json!({
        "id": number + 9_000_000,
        "number": number,
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "draft": pull.draft,
        "user": State::user(&issue.author),
        "author_association": issue.association,
        "labels": issue.labels.iter().map(|name| issues::label(name)).collect::<Value>(),
        "head": head,
        "base": base,
        "url": call.api_url(&format!("pulls/{number}")),
        "html_url": call.page_url(&format!("pull/{number}")),
    });
    if whole {
        shown["merged"] = json!(pull.merged);
        shown["maintainer_can_modify"] = json!(pull.maintainer_can_modify);
        let comments = call.state.comments.iter();
        shown["comments"] = json!(comments.filter(|comment| comment.number == number).count());
    }
    shown
}

fn shown_review(call: &Call<'_>, review: &Review) -> Value {
    let (id, number) = (review.id, review.number);
    json!({
        "id": id,
        "state": review.state,
        "body": review.body,
        "user": State::user(&review.author),
        "author_association": review.association,
        "commit_id": call.state.head_of(number),
        "submitted_at": call.state.now(),
        "html_url": call.page_url(&format!("pull/{number}#pullrequestreview-{id}")),
        "pull_request_url": call.api_url(&format!("pulls/{number}")),
    })
}

fn shown_comment(call: &Call<'_>, comment: &Comment) -> Value {
    let (id, number) = (comment.id, comment.number);
    let line = comment.line.clone().unwrap_or_default();
    let mut shown = json!({
        "id": id,
        "node_id": format!("PRRC_{id}"),
        "body": comment.body,
        "user": State::user(&comment.author),
        "author_association": comment.association,
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "path": line.path,
        "line": line.line,
        "diff_hunk": line.diff_hunk,
        "pull_request_review_id": line.review,
        "commit_id": call.state.head_of(number),
        "original_commit_id": call.state.written_at.get(&id),
        "html_url": call.page_url(&format!("pull/{number}#discussion_r{id}")),
        "url": call.api_url(&format!("pulls/comments/{id}")),
        "pull_request_url": call.api_url(&format!("pulls/{number}")),
    });
    if let Some(first) = line.in_reply_to {
        shown["in_reply_to_id"] = json!(first);
    }
    shown
}
