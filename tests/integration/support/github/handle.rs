//! What happens to a request: it is recorded and held against the description, meets a fault or
//! the endpoint's own answer, and that answer is held against the description too.

use super::auth::{self, Token};
use super::call::{Answer, Call};
use super::description::{Description, Endpoint, Parameters, query_of};
use super::fault::{Fault, Trouble};
use super::state::State;
use super::{Finding, FindingKind, PREFIX, Recorded, actions, graphql, routes, rules};
use crate::support::http::{Reply, Request, Response};
use serde_json::Value;
use std::collections::BTreeMap;

/// What the server knows, behind its lock.
#[derive(Default)]
pub struct Inner {
    /// The server's own URL.
    pub base: String,
    pub state: State,
    pub tokens: BTreeMap<String, Token>,
    pub requests: Vec<Recorded>,
    pub faults: Vec<Fault>,
    pub findings: Vec<Finding>,
}

/// A request as the description sees it.
struct Read<'d> {
    endpoint: Option<(&'d Endpoint, Parameters)>,
    query: Parameters,
    body: Option<Value>,
    /// For what GitHub answers 422.
    refused: Vec<String>,
}

const GRAPHQL: &str = "POST /graphql";

/// A request to an enterprise server as one to github.com; one that is not below the API's root there is to no
/// endpoint.
fn of_enterprise(request: &Request) -> Request {
    let own = request.target.strip_prefix(PREFIX).unwrap_or_default();
    let target = match own.strip_prefix("/api/v3/") {
        Some("graphql") | None if own != "/api/graphql" => {
            format!("/outside-of-the-api{}", request.target)
        }
        Some(rest) => format!("/{rest}"),
        None => "/graphql".to_owned(),
    };
    Request {
        target,
        ..request.clone()
    }
}

impl Inner {
    /// Where a request to the repository under a former name has to go.
    fn moved(&self, request: &Request) -> Option<Response> {
        let former = self.state.former_name.as_ref()?;
        let rest = request.target.strip_prefix(&format!("/repos/{former}"))?;
        let to = format!("{}/repositories/1296269{rest}", self.base);
        Some(Response {
            status: 301,
            headers: vec![("location".to_owned(), to)],
            body: Vec::new(),
        })
    }

    /// What becomes of a request.
    pub fn handle(&mut self, request: &Request) -> Reply {
        if let Some(response) = self.moved(request) {
            return Reply::Answer(response);
        }
        let by_id = request.target.strip_prefix("/repositories/1296269");
        let by_name = by_id.map(|rest| Request {
            target: format!("/repos/{}{rest}", self.state.repository.full_name),
            ..request.clone()
        });
        let request = by_name.as_ref().unwrap_or(request);
        if request.path().starts_with(actions::LOGS) {
            return Reply::Answer(self.log(request.path()));
        }
        if let Some(file) = self.state.files.get(request.path()) {
            self.state.file_requests.push(request.clone());
            return Reply::Answer(file.clone());
        }
        let of_enterprise = self.state.enterprise.then(|| of_enterprise(request));
        let request = of_enterprise.as_ref().unwrap_or(request);
        let read = self.read(request);
        self.record(request, &read);
        let mut faults = self.faults.iter_mut();
        let struck = faults.find_map(|fault| fault.strikes(&request.method, request.path()));
        match struck {
            Some(Trouble::Hang) => Reply::Hang,
            Some(Trouble::Down) => Reply::Close,
            Some(Trouble::Answer(mut response)) => {
                self.answered(response.status);
                self.add_headers(&mut response);
                Reply::Answer(response)
            }
            Some(Trouble::Lost) => {
                self.perform(request, read);
                Reply::Close
            }
            Some(Trouble::Drip(pause)) => Reply::Drip(self.performed(request, read), pause),
            Some(Trouble::Torn) => Reply::Broken(self.performed(request, read)),
            None => Reply::Answer(self.performed(request, read)),
        }
    }

    fn read(&mut self, request: &Request) -> Read<'static> {
        let description = Description::get();
        let query = query_of(request.query());
        let body = serde_json::from_slice(&request.body).ok();
        let endpoint = description.endpoint(&request.method, request.path());
        let mut refused = Vec::new();
        let header_faults = rules::header_faults(request);
        self.find(request, FindingKind::Header, header_faults);
        if let Some((endpoint, path)) = &endpoint {
            let mut parameters = description.query_faults(endpoint, &query);
            parameters.extend(description.path_faults(endpoint, path));
            parameters.extend(rules::query_faults(&query));
            self.find(request, FindingKind::Parameter, parameters);
            refused = description.body_faults(endpoint, body.as_ref());
            if let Some(body) = &body {
                refused.extend(rules::body_faults(&endpoint.name, body));
                let unknown = description.unknown_in_body(endpoint, body);
                self.find(request, FindingKind::Unknown, unknown);
            }
            self.find(request, FindingKind::Body, refused.clone());
        } else if is_graphql(request) {
            refused = graphql::faults(body.as_ref().unwrap_or(&Value::Null));
            self.find(request, FindingKind::GraphQl, refused.clone());
        } else {
            let message = "no endpoint that the tests know".to_owned();
            self.find(request, FindingKind::Route, vec![message]);
        }
        Read {
            endpoint,
            query,
            body,
            refused,
        }
    }

    fn record(&mut self, request: &Request, read: &Read<'_>) {
        let graphql = is_graphql(request).then(|| GRAPHQL.to_owned());
        let endpoint = read.endpoint.as_ref();
        self.requests.push(Recorded {
            method: request.method.clone(),
            path: request.target.clone(),
            headers: request.headers.clone(),
            body: read.body.clone().unwrap_or_default(),
            status: None,
            endpoint: endpoint
                .map(|(endpoint, _)| endpoint.name.clone())
                .or(graphql),
        });
    }

    /// The response to a request that is performed; it counts as answered.
    fn performed(&mut self, request: &Request, read: Read<'_>) -> Response {
        let answer = self.perform(request, read);
        self.answered(answer.status);
        let mut response = Response {
            status: answer.status,
            headers: answer.headers,
            body: Vec::new(),
        };
        if !answer.body.is_null() {
            response.body = answer.body.to_string().into_bytes();
            let json = "application/json; charset=utf-8";
            response
                .headers
                .push(("content-type".to_owned(), json.to_owned()));
        }
        self.add_headers(&mut response);
        response
    }

    fn perform(&mut self, request: &Request, read: Read<'_>) -> Answer {
        let endpoint = read.endpoint.as_ref().map(|(endpoint, _)| *endpoint);
        let mut answer = self.decide(request, read).unwrap_or_else(|refusal| refusal);
        if let Some(endpoint) = endpoint.filter(|_| !self.state.enterprise) {
            let description = Description::get();
            answer.body = description.complete(endpoint, answer.status, answer.body);
            let faults = description.answer_faults(endpoint, answer.status, &answer.body);
            self.find(request, FindingKind::Answer, faults);
        }
        answer
    }

    fn decide(&mut self, request: &Request, read: Read<'_>) -> Result<Answer, Answer> {
        if request.header("user-agent").unwrap_or_default().is_empty() {
            let message = "Request forbidden by administrative rules. Please make sure your request has a User-Agent header";
            return Err(Answer::refusal(403, message));
        }
        let token = self.authenticated(request)?;
        let Some((endpoint, path)) = read.endpoint else {
            if !is_graphql(request) {
                return Err(Answer::not_found());
            }
            self.within_rate()?;
            return self.graphql(request, token.as_ref(), read.body, &read.refused);
        };
        if endpoint.name != "GET /rate_limit" {
            self.within_rate()?;
        }
        let Some((need, handler)) = routes::route(&endpoint.name) else {
            return Err(Answer::not_found());
        };
        self.admitted(token.as_ref(), need, &path)?;
        if !read.refused.is_empty() {
            let message = format!("Invalid request.\n\n{}", read.refused.join("\n"));
            return Err(Answer::refusal(422, &message));
        }
        let mut call = Call {
            state: &mut self.state,
            token: token.as_ref(),
            path,
            query: read.query,
            body: read.body.unwrap_or_default(),
            base: &self.base,
            target: request.path().to_owned(),
        };
        handler(&mut call)
    }

    fn graphql(
        &mut self,
        request: &Request,
        token: Option<&Token>,
        body: Option<Value>,
        refused: &[String],
    ) -> Result<Answer, Answer> {
        if token.is_none() {
            return Err(Answer::refusal(
                401,
                "This endpoint requires you to be authenticated.",
            ));
        }
        if let Some(first) = refused.first() {
            let body = serde_json::json!({ "errors": [{ "message": first }] });
            return Ok(Answer::of(200, body));
        }
        let mut call = Call {
            state: &mut self.state,
            token,
            path: Parameters::new(),
            query: Parameters::new(),
            body: body.unwrap_or_default(),
            base: &self.base,
            target: request.path().to_owned(),
        };
        Ok(Answer::of(200, graphql::answer(&mut call)))
    }

    /// Whose token the request carries; none without one.
    fn authenticated(&self, request: &Request) -> Result<Option<Token>, Answer> {
        let Some(authorization) = request.header("authorization") else {
            return Ok(None);
        };
        let secret = authorization
            .split_once(' ')
            .map_or("", |(_, secret)| secret);
        let token = self.tokens.get(secret).cloned();
        let unknown = || Answer::refusal(401, "Bad credentials");
        token.map(Some).ok_or_else(unknown)
    }

    /// Whether the repository is there and the token may do this.
    fn admitted(
        &self,
        token: Option<&Token>,
        need: auth::Need,
        path: &Parameters,
    ) -> Result<(), Answer> {
        if let (Some(owner), Some(name)) = (path.get("owner"), path.get("repo")) {
            let hidden = self.state.repository.private && token.is_none();
            let asked = format!("{owner}/{name}").to_lowercase();
            if hidden || asked != self.state.repository.full_name.to_lowercase() {
                return Err(Answer::not_found());
            }
        }
        match auth::refusal(&self.state, token, need, self.thread_of(path)) {
            Some((status, message)) => Err(Answer::refusal(status, message)),
            None => Ok(()),
        }
    }

    /// The number of the issue or pull request that the path is about.
    fn thread_of(&self, path: &Parameters) -> Option<u64> {
        let number = |name: &str| path.get(name)?.parse::<u64>().ok();
        let of_comment = |id: u64| {
            let mut comments = self.state.comments.iter();
            comments
                .find(|comment| comment.id == id)
                .map(|comment| comment.number)
        };
        number("issue_number").or_else(|| of_comment(number("comment_id")?))
    }

    fn within_rate(&mut self) -> Result<(), Answer> {
        let rate = &mut self.state.rate;
        if rate.remaining == 0 {
            return Err(Answer::refusal(
                403,
                "API rate limit exceeded for installation.",
            ));
        }
        rate.remaining -= 1;
        Ok(())
    }

    fn add_headers(&self, response: &mut Response) {
        let state = &self.state;
        let epoch = state.epoch();
        let date = jiff::Timestamp::from_second(epoch).unwrap();
        let headers = [
            (
                "date",
                date.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string(),
            ),
            (
                "x-github-request-id",
                format!("TEST:{}", self.requests.len()),
            ),
            ("x-ratelimit-limit", state.rate.limit.to_string()),
            ("x-ratelimit-remaining", state.rate.remaining.to_string()),
            (
                "x-ratelimit-reset",
                epoch
                    .saturating_add_unsigned(state.rate.reset_in)
                    .to_string(),
            ),
            ("x-ratelimit-resource", "core".to_owned()),
        ];
        for (name, value) in headers {
            // A planned answer may say it otherwise.
            if !response.headers.iter().any(|(known, _)| known == name) {
                response.headers.push((name.to_owned(), value));
            }
        }
    }

    fn answered(&mut self, status: u16) {
        if let Some(request) = self.requests.last_mut() {
            request.status = Some(status);
        }
    }

    fn find(&mut self, request: &Request, kind: FindingKind, messages: Vec<String>) {
        let request = format!("{} {}", request.method, request.target);
        self.findings
            .extend(messages.into_iter().map(|message| Finding {
                kind,
                request: request.clone(),
                message,
            }));
    }

    /// The log of a job, from the URL that needs no token.
    fn log(&self, path: &str) -> Response {
        let id = path
            .strip_prefix(actions::LOGS)
            .and_then(|id| id.parse().ok());
        let mut jobs = self.state.runs.values().flat_map(|run| &run.jobs);
        let job = jobs.find(|job| Some(job.id) == id);
        let log = job.and_then(|job| job.log.clone());
        Response {
            status: if log.is_some() { 200 } else { 404 },
            headers: vec![(
                "content-type".to_owned(),
                "text/plain; charset=utf-8".to_owned(),
            )],
            body: log.unwrap_or_default().into_bytes(),
        }
    }
}

fn is_graphql(request: &Request) -> bool {
    request.method == "POST" && request.path() == "/graphql"
}
