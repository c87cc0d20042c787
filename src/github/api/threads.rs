//! Review threads of a pull request: lists, answers and resolves them, and requests the review again.

use super::call::Call;
use super::client::Repo;
use super::error::Error;
use super::identity::Identity;
use super::policy::Kind;
use super::pulls::ReviewComment;
use hyper::Method;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Maximum number of pages of threads that are read. GitHub returns a hundred threads per page.
const PAGES: usize = 10;

const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } \
    nodes { id isResolved comments(first: 1) { nodes { id } } } } } } }";

const RESOLVE: &str = "mutation($thread: ID!) { resolveReviewThread(input: {threadId: $thread}) { \
    thread { isResolved } } }";

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewThread {
    /// Its GraphQL id.
    pub id: String,
    /// The id of its first comment.
    pub first: u64,
    /// Whether it is resolved.
    pub is_resolved: bool,
}

impl Repo {
    /// All line comments of a pull request, oldest first.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn line_comments(&self, number: u64) -> Result<Vec<ReviewComment>, Error> {
        self.list(&format!("/pulls/{number}/comments")).await
    }

    /// The threads of a pull request. This needs GraphQL, because REST does not have them.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn review_threads(&self, number: u64) -> Result<Vec<ReviewThread>, Error> {
        let comments = self.line_comments(number).await?;
        let by_node = comments.iter().map(|it| (it.node_id.as_str(), it.id));
        let by_node: HashMap<&str, u64> = by_node.collect();
        let full_name = self.full_name();
        let (owner, name) = full_name.split_once('/').unwrap_or_default();
        let (mut threads, mut after) = (Vec::new(), Value::Null);
        for _ in 0..PAGES {
            let variables =
                json!({ "owner": owner, "name": name, "number": number, "after": after });
            let data = self
                .client
                .graphql(THREADS, &variables, Kind::Read, "reviewThreads")
                .await?;
            let page = &data["repository"]["pullRequest"]["reviewThreads"];
            let nodes = page["nodes"].as_array().into_iter().flatten();
            threads.extend(nodes.filter_map(|node| {
                let first = node["comments"]["nodes"][0]["id"].as_str()?;
                Some(ReviewThread {
                    id: node["id"].as_str()?.to_owned(),
                    first: *by_node.get(first)?,
                    is_resolved: node["isResolved"] == true,
                })
            }));
            if page["pageInfo"]["hasNextPage"] != true {
                break;
            }
            after = page["pageInfo"]["endCursor"].clone();
        }
        Ok(threads)
    }

    /// Resolves a thread.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn resolve_thread(&self, thread: &ReviewThread) -> Result<(), Error> {
        let variables = json!({ "thread": thread.id });
        let what = "resolveReviewThread";
        let resolved = self.client.graphql(RESOLVE, &variables, Kind::Change, what);
        resolved.await.map(drop)
    }

    /// Replies to the thread that starts with this comment. The text starts with `marker`. A reply by
    /// `identity` that starts with it is replaced, so that there are never two.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn answer_thread(
        &self,
        number: u64,
        first: u64,
        marker: &str,
        text: &str,
        identity: &Identity,
    ) -> Result<(), Error> {
        let body = json!({ "body": format!("{marker}\n{text}") });
        let own = async || {
            let comments = self.line_comments(number).await?;
            let is_own = |comment: &ReviewComment| {
                comment.in_reply_to_id == Some(first)
                    && comment.body.starts_with(marker)
                    && identity.is(comment.author.as_ref())
            };
            Ok(comments.into_iter().find(is_own))
        };
        if let Some(there) = own().await? {
            let path = format!("/pulls/comments/{}", there.id);
            return self.send(Method::PATCH, &path, Kind::Change, &body).await;
        }
        let path = self.path(&format!("/pulls/{number}/comments/{first}/replies"));
        let call = Call::with_body(Method::POST, path, Kind::Create, &body)?;
        self.client.create(&call, own).await.map(drop)
    }
}
