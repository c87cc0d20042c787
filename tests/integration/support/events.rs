//! Events of GitHub as a job finds them in its file, made from what the tests' GitHub knows.

use super::github::{ACTIONS, State, Subject};
use super::runner::{REPOSITORY, Runner, label_event, repository};
use serde_json::{Value, json};

/// An issue or pull request as an event of issues has it.
pub fn issue(state: &State, number: u64) -> Value {
    let issue = &state.issues[&number];
    let labels = issue.labels.iter().map(|name| json!({ "name": name }));
    let mut shown = json!({ "number": number, "title": issue.title, "body": issue.body,
        "state": issue.state, "user": State::user(&issue.author),
        "labels": labels.collect::<Value>(), "updated_at": state.now() });
    if state.pulls.contains_key(&number) {
        shown["pull_request"] = json!({ "url": "https://example.invalid/pull" });
    }
    shown
}

/// A pull request as an event of pull requests has it.
pub fn pull(state: &State, number: u64) -> Value {
    let mut shown = issue(state, number);
    let pull = &state.pulls[&number];
    let head = pull.fork.as_deref().unwrap_or(REPOSITORY);
    let base = state.sha_of(&format!("refs/heads/{}", pull.base));
    shown["head"] = json!({ "ref": pull.head, "sha": state.head_of(number),
        "repo": { "full_name": head, "fork": pull.fork.is_some() } });
    shown["base"] = json!({ "ref": pull.base, "sha": base, "repo": { "full_name": REPOSITORY } });
    shown
}

/// `issue_comment`, or `pull_request_review_comment` where the comment is on a line.
pub fn comment(state: &State, id: u64) -> (&'static str, Value) {
    let mut all = state.comments.iter().chain(&state.review_comments);
    let comment = all.find(|comment| comment.id == id).unwrap();
    let mut shown = json!({ "id": id, "body": comment.body, "user": State::user(&comment.author),
        "author_association": comment.association, "created_at": comment.created_at,
        "updated_at": comment.updated_at });
    let mut event = json!({ "action": "created", "repository": repository(),
        "sender": State::user(&comment.author) });
    let name = match &comment.line {
        None => {
            event["issue"] = issue(state, comment.number);
            "issue_comment"
        }
        Some(line) => {
            shown["path"] = json!(line.path);
            shown["line"] = json!(line.line);
            shown["diff_hunk"] = json!(line.diff_hunk);
            event["pull_request"] = pull(state, comment.number);
            "pull_request_review_comment"
        }
    };
    event["comment"] = shown;
    (name, event)
}

/// The label `sprag` on an issue (`issues`) or a pull request (`pull_request`).
pub fn label(state: &State, number: u64, login: &str) -> (&'static str, Value) {
    let mut event = label_event(number, login, "", "");
    if state.pulls.contains_key(&number) {
        event["pull_request"] = pull(state, number);
        event.as_object_mut().unwrap().remove("issue");
        return ("pull_request", event);
    }
    event["issue"] = issue(state, number);
    ("issues", event)
}

/// A review of a pull request.
pub fn review(state: &State, id: u64) -> Value {
    let review = state.reviews.iter().find(|review| review.id == id).unwrap();
    json!({ "action": "submitted", "pull_request": pull(state, review.number),
        "review": { "id": id, "state": review.state.to_lowercase(), "body": review.body,
            "user": State::user(&review.author), "author_association": review.association,
            "submitted_at": state.now() },
        "repository": repository(), "sender": State::user(&review.author) })
}

/// A workflow run that is over.
pub fn workflow_run(state: &State, id: u64) -> Value {
    let run = &state.runs[&id];
    let pulls = run.pulls.iter().map(|number| json!({ "number": number }));
    json!({ "action": "completed", "repository": repository(), "sender": State::user("ada"),
        "workflow_run": { "id": id, "name": run.name, "path": run.path, "run_attempt": run.attempt,
            "conclusion": run.conclusion, "head_sha": run.head_sha, "head_branch": run.head_branch,
            "head_repository": { "full_name": REPOSITORY }, "updated_at": state.now(),
            "pull_requests": pulls.collect::<Value>(), "actor": State::user("ada") } })
}

impl Runner {
    /// The next step is for this comment.
    pub fn commented(&mut self, id: u64) -> &mut Self {
        let (name, event) = comment(&self.github.state(), id);
        self.event(name, "refs/heads/main", &event)
    }

    /// Somebody writes a comment, and the next step is for it; returns the comment's id.
    pub fn say(&mut self, number: u64, login: &str, body: &str) -> u64 {
        let id = self.github.state().comment(number, login, body);
        self.commented(id);
        id
    }

    /// Somebody gives an issue the label, and the next step is for it.
    pub fn labelled(&mut self, number: u64, login: &str) -> &mut Self {
        self.github.state().issues.get_mut(&number).unwrap().labels = vec!["sprag".to_owned()];
        let (name, event) = label(&self.github.state(), number, login);
        let reference = match name {
            "issues" => "refs/heads/main".to_owned(),
            _ => format!("refs/pull/{number}/merge"),
        };
        self.event(name, &reference, &event)
    }

    /// The check runs as heads and conclusions, oldest first. None may be open.
    pub fn checks(&self) -> Vec<(String, String)> {
        let state = self.github.state();
        let ended = state.checks.iter().map(|check| {
            assert_eq!(check.status, "completed", "{check:?}");
            (check.head_sha.clone(), check.conclusion.clone().unwrap())
        });
        ended.collect()
    }

    /// The contents of the job's own reactions, oldest first.
    pub fn reactions(&self, subject: Subject) -> Vec<String> {
        let state = self.github.state();
        let all = state.reactions_on(subject).into_iter();
        let own = all.filter(|(login, _)| *login == ACTIONS);
        own.map(|(_, content)| content.to_owned()).collect()
    }

    /// Fails unless a step left everything as it was: no agent was called, nothing was pushed, and
    /// no check run was made.
    pub fn assert_untouched(&self) {
        assert_eq!(self.project.calls(), 0, "agent calls");
        assert_eq!(self.server.pushes(), 0, "pushes");
        assert_eq!(self.github.state().checks.len(), 0, "check runs");
    }

    /// The merge commit that GitHub keeps of a pull request, checked out detached as on
    /// `pull_request`; returns it.
    pub fn merge_ref(&self, number: u64) -> String {
        let (head, base) = {
            let state = self.github.state();
            (state.head_of(number), state.pulls[&number].base.clone())
        };
        let bare = self.bare();
        let run = |args: &[&str]| {
            let text = super::github::try_git(&bare, args, &NOBODY, b"").unwrap();
            text.trim().to_owned()
        };
        let tree = run(&["merge-tree", "--write-tree", &base, &head]);
        let merge = run(&[
            "commit-tree",
            &tree,
            "-p",
            &base,
            "-p",
            &head,
            "-m",
            "Merge",
        ]);
        run(&["update-ref", &format!("refs/pull/{number}/merge"), &merge]);
        self.checkout_detached(&merge);
        merge
    }
}

const NOBODY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "GitHub"),
    ("GIT_AUTHOR_EMAIL", "noreply@github.invalid"),
    ("GIT_COMMITTER_NAME", "GitHub"),
    ("GIT_COMMITTER_EMAIL", "noreply@github.invalid"),
];
