//! GitHub for tests: a model of one repository with its REST and GraphQL API on a port of the
//! loopback interface.
//!
//! It keeps state, knows tokens and what they may, pages its lists, and meets requests with the
//! faults that a test plans. Every request, and every answer of its own, is held against GitHub's
//! own description (`tests/github-api`) and the rules that GitHub states in words. What is wrong
//! with the traffic is a finding; a test that leaves findings behind fails.

mod actions;
mod auth;
mod call;
mod checks;
mod description;
mod fault;
mod graphql;
mod graphql_text;
mod handle;
mod issues;
mod pulls;
mod repository;
mod routes;
mod rules;
mod state;
mod store;

pub use auth::{ACTIONS, Access, Area, Token};
pub use fault::{Fault, Trouble};
pub use state::{CheckRun, Job, Line, State, Subject, WorkflowRun};
pub use store::{commit_on, git, open, scrubbed, try_git};

use super::git_http::GitServer;
use super::http::{Request, Server, lock};
use handle::Inner;
use serde_json::Value;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

/// The server. It runs until it is dropped, which fails the test if there are findings left.
pub struct Github {
    server: Server,
    shared: Arc<Shared>,
}

/// What the threads of the connections share.
#[derive(Default)]
struct Shared {
    inner: Mutex<Inner>,
    git: Mutex<Option<GitServer>>,
}

/// A request and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// `POST`, `GET` …
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `null` without one that is JSON.
    pub body: Value,
    /// The answer's status; none when none was given.
    pub status: Option<u16>,
    /// The endpoint as GitHub's description names it; none when there is none.
    pub endpoint: Option<String>,
}

/// Something that GitHub would not take, or, of an answer, would not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub kind: FindingKind,
    /// The request's method and path.
    pub request: String,
    pub message: String,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// There is no such endpoint among those that the tests know.
    Route,
    /// A parameter of the path or the query.
    Parameter,
    /// A body that GitHub refuses.
    Body,
    /// A field that GitHub ignores.
    Unknown,
    /// A header.
    Header,
    /// A query's text or variables.
    GraphQl,
    /// An answer of the model's own.
    Answer,
}

/// The path below which an enterprise server is.
pub const PREFIX: &str = "/ghe";

/// The request without the prefix of its path.
fn below(prefix: &str, request: &Request) -> Request {
    let target = request.target.strip_prefix(prefix);
    Request {
        target: target.unwrap_or(&request.target).to_owned(),
        ..request.clone()
    }
}

impl Github {
    /// Starts a GitHub with the empty repository `acme/widget`.
    pub fn start() -> Self {
        let shared = Arc::<Shared>::default();
        let server = Server::start({
            let shared = Arc::clone(&shared);
            move |request| {
                let git = request
                    .path()
                    .contains(".git/")
                    .then(|| lock(&shared.git).clone());
                match git.flatten() {
                    Some(git) => git.reply(&below(PREFIX, &request)),
                    None => lock(&shared.inner).handle(&request),
                }
            }
        })
        .unwrap();
        lock(&shared.inner).base = server.url();
        Self { server, shared }
    }

    /// `http://127.0.0.1:PORT`: the API's base, and, with a git server mounted, that of the
    /// repositories.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Makes a token known.
    pub fn token(&self, secret: &str, token: Token) {
        lock(&self.shared.inner)
            .tokens
            .insert(secret.to_owned(), token);
    }

    /// Puts this bare repository behind the model: refs and commits are its own from now on.
    pub fn attach(&self, bare: &Path) {
        self.state().bare = Some(bare.to_owned());
    }

    /// Serves the git server's repositories under this base URL too, as
    /// `{url}/{owner}/{name}.git`.
    pub fn mount(&self, git: &GitServer) {
        *lock(&self.shared.git) = Some(git.clone());
    }

    /// The state. Nothing is answered while the guard lives.
    pub fn state(&self) -> impl DerefMut<Target = State> + '_ {
        StateGuard(lock(&self.shared.inner))
    }

    /// Every request so far but those to a mounted git server.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.inner).requests.clone()
    }

    /// The requests to an endpoint, named as in GitHub's description:
    /// `POST /repos/{owner}/{repo}/check-runs`, or `POST /graphql`.
    pub fn requests_to(&self, endpoint: &str) -> Vec<Recorded> {
        let to = |request: &Recorded| request.endpoint.as_deref() == Some(endpoint);
        self.requests().into_iter().filter(to).collect()
    }

    /// Plans a fault. Of several that fit a request the earliest planned strikes.
    pub fn fault(&self, fault: Fault) {
        lock(&self.shared.inner).faults.push(fault);
    }

    /// Ends all planned faults.
    pub fn heal(&self) {
        lock(&self.shared.inner).faults.clear();
    }

    /// Refuses every connection from now on, and closes those there are.
    pub fn shut_down(&self) {
        self.server.shut_down();
    }

    /// What was wrong with the traffic so far.
    pub fn findings(&self) -> Vec<Finding> {
        lock(&self.shared.inner).findings.clone()
    }

    /// As [`Self::findings`]; they no longer fail the test.
    pub fn take_findings(&self) -> Vec<Finding> {
        std::mem::take(&mut lock(&self.shared.inner).findings)
    }
}

impl Drop for Github {
    fn drop(&mut self) {
        let findings = self.take_findings();
        if !findings.is_empty() && !thread::panicking() {
            panic!("GitHub would not take this traffic: {findings:#?}");
        }
    }
}

struct StateGuard<'g>(MutexGuard<'g, Inner>);

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.0.state
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.0.state
    }
}
