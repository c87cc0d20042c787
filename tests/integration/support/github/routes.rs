//! Which endpoint asks for what, and who answers it.

use super::auth::Access::{Read, Write};
use super::auth::Area::{Actions, Checks, Contents, Issues, Pulls};
use super::auth::Need::{self, Account, Nothing, Of, Thread};
use super::call::{Call, Handled};
use super::{actions, checks, issues, pulls, repository};

/// Answers a call.
pub type Handler = fn(&mut Call<'_>) -> Handled;

/// The endpoints below `/repos/{owner}/{repo}`, by method and the rest of the path.
const OF_THE_REPOSITORY: &[(&str, &str, Need, Handler)] = &[
    ("GET", "", Nothing, repository::get),
    (
        "GET",
        "/collaborators/{username}/permission",
        Nothing,
        repository::permission,
    ),
    (
        "GET",
        "/branches/{branch}",
        Of(Contents, Read),
        repository::branch,
    ),
    (
        "GET",
        "/rules/branches/{branch}",
        Nothing,
        repository::rules,
    ),
    (
        "GET",
        "/rulesets/{ruleset_id}",
        Nothing,
        repository::ruleset,
    ),
    (
        "GET",
        "/commits/{ref}/check-runs",
        Of(Checks, Read),
        checks::of_commit,
    ),
    (
        "GET",
        "/git/ref/{ref}",
        Of(Contents, Read),
        repository::get_ref,
    ),
    (
        "GET",
        "/git/matching-refs/{ref}",
        Of(Contents, Read),
        repository::matching_refs,
    ),
    (
        "POST",
        "/git/refs",
        Of(Contents, Write),
        repository::create_ref,
    ),
    (
        "DELETE",
        "/git/refs/{ref}",
        Of(Contents, Write),
        repository::delete_ref,
    ),
    (
        "GET",
        "/git/commits/{commit_sha}",
        Of(Contents, Read),
        repository::git_commit,
    ),
    ("POST", "/check-runs", Of(Checks, Write), checks::create),
    (
        "GET",
        "/check-runs/{check_run_id}",
        Of(Checks, Read),
        checks::get,
    ),
    (
        "PATCH",
        "/check-runs/{check_run_id}",
        Of(Checks, Write),
        checks::update,
    ),
    (
        "GET",
        "/check-suites/{check_suite_id}/check-runs",
        Of(Checks, Read),
        checks::of_suite,
    ),
    ("GET", "/issues", Of(Issues, Read), issues::list),
    ("POST", "/issues", Of(Issues, Write), issues::create),
    ("GET", "/issues/{issue_number}", Thread(Read), issues::get),
    (
        "PATCH",
        "/issues/{issue_number}",
        Thread(Write),
        issues::update,
    ),
    (
        "GET",
        "/issues/{issue_number}/comments",
        Thread(Read),
        issues::comments,
    ),
    (
        "POST",
        "/issues/{issue_number}/comments",
        Thread(Write),
        issues::comment,
    ),
    (
        "GET",
        "/issues/comments/{comment_id}",
        Thread(Read),
        issues::get_comment,
    ),
    (
        "PATCH",
        "/issues/comments/{comment_id}",
        Thread(Write),
        issues::edit_comment,
    ),
    (
        "DELETE",
        "/issues/comments/{comment_id}",
        Thread(Write),
        issues::delete_comment,
    ),
    (
        "POST",
        "/issues/comments/{comment_id}/reactions",
        Thread(Write),
        issues::react,
    ),
    (
        "POST",
        "/issues/{issue_number}/reactions",
        Thread(Write),
        issues::react,
    ),
    ("GET", "/pulls", Of(Pulls, Read), pulls::list),
    ("POST", "/pulls", Of(Pulls, Write), pulls::create),
    ("GET", "/pulls/{pull_number}", Of(Pulls, Read), pulls::get),
    (
        "PATCH",
        "/pulls/{pull_number}",
        Of(Pulls, Write),
        pulls::update,
    ),
    (
        "GET",
        "/pulls/{pull_number}/files",
        Of(Pulls, Read),
        pulls::files,
    ),
    (
        "GET",
        "/pulls/{pull_number}/reviews",
        Of(Pulls, Read),
        pulls::reviews,
    ),
    (
        "POST",
        "/pulls/{pull_number}/reviews",
        Of(Pulls, Write),
        pulls::review,
    ),
    (
        "GET",
        "/pulls/{pull_number}/reviews/{review_id}",
        Of(Pulls, Read),
        pulls::get_review,
    ),
    (
        "GET",
        "/pulls/{pull_number}/reviews/{review_id}/comments",
        Of(Pulls, Read),
        pulls::comments_of_review,
    ),
    (
        "GET",
        "/pulls/{pull_number}/comments",
        Of(Pulls, Read),
        pulls::comments,
    ),
    (
        "PATCH",
        "/pulls/comments/{comment_id}",
        Of(Pulls, Write),
        pulls::edit_comment,
    ),
    (
        "POST",
        "/pulls/{pull_number}/comments/{comment_id}/replies",
        Of(Pulls, Write),
        pulls::reply,
    ),
    (
        "POST",
        "/pulls/{pull_number}/requested_reviewers",
        Of(Pulls, Write),
        pulls::request_reviewers,
    ),
    (
        "POST",
        "/pulls/comments/{comment_id}/reactions",
        Of(Pulls, Write),
        issues::react,
    ),
    ("GET", "/actions/runs", Of(Actions, Read), actions::runs),
    (
        "GET",
        "/actions/runs/{run_id}",
        Of(Actions, Read),
        actions::run,
    ),
    (
        "POST",
        "/actions/runs/{run_id}/cancel",
        Of(Actions, Write),
        actions::cancel,
    ),
    (
        "GET",
        "/actions/runs/{run_id}/jobs",
        Of(Actions, Read),
        actions::jobs,
    ),
    (
        "GET",
        "/actions/jobs/{job_id}/logs",
        Of(Actions, Read),
        actions::logs,
    ),
    (
        "POST",
        "/actions/workflows/{workflow_id}/dispatches",
        Of(Actions, Write),
        actions::dispatch,
    ),
];

/// What an endpoint of the description asks for and who answers it; none when the model does not.
pub fn route(endpoint: &str) -> Option<(Need, Handler)> {
    if endpoint == "GET /user" {
        return Some((Account, repository::account));
    }
    let (method, path) = endpoint.split_once(' ')?;
    let rest = path.strip_prefix("/repos/{owner}/{repo}")?;
    let mut routes = OF_THE_REPOSITORY.iter();
    let found = routes.find(|route| route.0 == method && route.1 == rest)?;
    Some((found.2, found.3))
}
