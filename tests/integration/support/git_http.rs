//! git's smart HTTP for tests: the bare repositories of a directory behind `git http-backend`, with
//! GitHub's authentication and its ways to refuse a push.

use super::github::{scrubbed, try_git};
use super::http::{Reply, Request, Response, lock};
use super::project::configure;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// The server that another one is to mount; clones are the same one.
#[derive(Clone)]
pub struct GitServer {
    shared: Arc<Shared>,
}

struct Shared {
    root: PathBuf,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Tokens, and whether each may push.
    tokens: BTreeMap<String, bool>,
    requests: Vec<GitRequest>,
    protected: BTreeSet<String>,
    refuses_workflows: bool,
    next: VecDeque<Push>,
    before_fetch_of_refs: Option<Move>,
    before_fetch: Option<Box<dyn FnOnce() + Send>>,
}

type Move = Box<dyn FnOnce(&Path) + Send>;

/// A request to the server and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// With its query.
    pub target: String,
    /// The token it came with.
    pub token: Option<String>,
    /// The answer's status; none when none was given.
    pub status: Option<u16>,
    /// The full names of the references that it updates.
    pub updated: Vec<String>,
}

impl GitRequest {
    /// Whether objects and updates were sent, not only asked what is there.
    pub fn is_push(&self) -> bool {
        self.method == "POST" && self.target.ends_with("/git-receive-pack")
    }
}

/// What becomes of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// It is refused with this HTTP status and text before anything is sent.
    Status(u16, String),
    /// Its objects arrive and every ref is declined: the reason that git shows in parentheses, and
    /// lines that it shows after `remote:`.
    Declined(String, Vec<String>),
    /// The refs are updated; the connection closes without an answer.
    Lost,
    /// The refs are updated; the connection closes in the middle of the answer.
    Torn,
}

impl Push {
    /// The token may not push to this repository (`owner/name`).
    pub fn forbidden(repository: &str) -> Self {
        Self::Status(
            403,
            format!("Permission to {repository}.git denied to github-actions[bot]."),
        )
    }

    /// Another process holds the ref.
    pub fn cannot_lock(branch: &str) -> Self {
        Self::Declined(format!("cannot lock ref 'refs/heads/{branch}'"), Vec::new())
    }

    /// A rule of the repository forbids the branch to everyone.
    pub fn protected(branch: &str) -> Self {
        let lines = [
            format!("error: GH006: Protected branch update failed for refs/heads/{branch}."),
            "error: Changes must be made through a pull request.".to_owned(),
        ];
        Self::Declined("protected branch hook declined".to_owned(), lines.into())
    }

    /// A workflow is among the changes.
    pub fn workflow(path: &str) -> Self {
        Self::Declined(
            format!(
                "refusing to allow a GitHub App to create or update workflow `{path}` without `workflows` permission"
            ),
            Vec::new(),
        )
    }

    /// Of GitHub's secret scanning and other rules that have a number: `GH003`, `GH013` …
    pub fn numbered(rule: &str, message: &str) -> Self {
        Self::Declined(
            "push declined due to repository rule violations".to_owned(),
            vec![format!("error: {rule}: {message}")],
        )
    }
}

impl GitServer {
    /// Serves the bare repositories below `root` to those with this token; `{url}/{path}.git` is
    /// `{root}/{path}.git`.
    pub fn start(root: &Path, token: &str) -> Self {
        let shared = Arc::new(Shared {
            root: root.to_owned(),
            inner: Mutex::default(),
        });
        lock(&shared.inner).tokens.insert(token.to_owned(), true);
        Self { shared }
    }

    /// Makes an empty bare repository `{root}/{name}.git` that can be pushed to and returns its
    /// path.
    pub fn create(root: &Path, name: &str) -> PathBuf {
        let bare = root.join(format!("{name}.git"));
        std::fs::create_dir_all(&bare).unwrap();
        let init = ["init", "--quiet", "--bare", "--initial-branch=main"];
        try_git(&bare, &init, &[], b"").unwrap();
        let serves = "[http]\n\treceivepack = true\n[uploadpack]\n\tallowAnySHA1InWant = true\n";
        configure(&bare.join("config"), serves);
        bare
    }

    /// Makes a token known that may read only.
    pub fn read_only(&self, token: &str) {
        lock(&self.shared.inner)
            .tokens
            .insert(token.to_owned(), false);
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<GitRequest> {
        lock(&self.shared.inner).requests.clone()
    }

    /// How many pushes arrived, performed or not, but for those of unfinished work, which no branch and
    /// nobody's page shows.
    pub fn pushes(&self) -> usize {
        self.requests()
            .iter()
            .filter(|request| request.is_push() && !is_of_kept_work(&request.updated))
            .count()
    }

    /// Declines every push to this branch as GitHub does where a branch is protected.
    pub fn protect(&self, branch: &str) {
        lock(&self.shared.inner).protected.insert(branch.to_owned());
    }

    /// Declines every push that touches a workflow, as GitHub does to a job's token.
    pub fn refuse_workflows(&self) {
        lock(&self.shared.inner).refuses_workflows = true;
    }

    /// Says what becomes of the next push; of several calls each is for one push, in their order.
    pub fn next_push(&self, answer: Push) {
        lock(&self.shared.inner).next.push_back(answer);
    }

    /// Changes the bare repository when the next push begins: it sees the change, and a lease on
    /// what was fetched before is stale.
    pub fn move_before_next_push(&self, change: impl FnOnce(&Path) + Send + 'static) {
        lock(&self.shared.inner).before_fetch_of_refs = Some(Box::new(change));
    }

    /// Runs when objects are asked for the next time, before they are sent.
    pub fn before_next_fetch(&self, first: impl FnOnce() + Send + 'static) {
        lock(&self.shared.inner).before_fetch = Some(Box::new(first));
    }

    /// What becomes of a request, for a server that this one is mounted in.
    pub fn reply(&self, request: &Request) -> Reply {
        self.shared.reply(request)
    }
}

impl Shared {
    fn reply(&self, request: &Request) -> Reply {
        let index = self.record(request);
        let reply = self.decide(request);
        let status = match &reply {
            Reply::Answer(response) => Some(response.status),
            _ => None,
        };
        lock(&self.inner).requests[index].status = status;
        reply
    }

    fn record(&self, request: &Request) -> usize {
        let mut inner = lock(&self.inner);
        inner.requests.push(GitRequest {
            method: request.method.clone(),
            target: request.target.clone(),
            token: token_of(request),
            status: None,
            updated: names(&updates(&request.body).unwrap_or_default()),
        });
        inner.requests.len() - 1
    }

    fn decide(&self, request: &Request) -> Reply {
        let pushes = request.target.ends_with("git-receive-pack");
        let may_push = token_of(request).and_then(|token| {
            let inner = lock(&self.inner);
            inner.tokens.get(&token).copied()
        });
        let Some(may_push) = may_push else {
            return Reply::Answer(challenge());
        };
        let Some(bare) = self.bare_of(request.path()) else {
            return Reply::Answer(text(404, "Repository not found."));
        };
        if pushes && !may_push {
            return Reply::Answer(text(403, "Write access to repository not granted."));
        }
        if pushes && request.method == "GET" {
            return self.announce(request, &bare);
        }
        // A client with much to send asks first with no update whether it may.
        match updates(&request.body) {
            Some(updates) if pushes && !updates.is_empty() => self.push(request, &bare, &updates),
            _ => {
                let reads = request.path().ends_with("git-upload-pack");
                let first = if reads {
                    lock(&self.inner).before_fetch.take()
                } else {
                    None
                };
                if let Some(first) = first {
                    first();
                }
                Reply::Answer(self.backend(request))
            }
        }
    }

    /// The refs, which a push asks for first.
    fn announce(&self, request: &Request, bare: &Path) -> Reply {
        let (change, refusal) = {
            let mut inner = lock(&self.inner);
            let refused = matches!(inner.next.front(), Some(Push::Status(..)));
            let refusal = if refused {
                inner.next.pop_front()
            } else {
                None
            };
            (inner.before_fetch_of_refs.take(), refusal)
        };
        if let Some(Push::Status(status, message)) = refusal {
            return Reply::Answer(text(status, &message));
        }
        if let Some(change) = change {
            change(bare);
        }
        Reply::Answer(self.backend(request))
    }

    fn push(&self, request: &Request, bare: &Path, updates: &[Update]) -> Reply {
        // What is planned is for the pushes that tests count.
        let planned = if is_of_kept_work(&names(updates)) {
            None
        } else {
            lock(&self.inner).next.pop_front()
        };
        match planned.or_else(|| self.rule_against(request, bare, updates)) {
            Some(Push::Status(status, message)) => Reply::Answer(text(status, &message)),
            Some(Push::Declined(reason, lines)) => {
                Reply::Answer(declined(updates, &reason, &lines))
            }
            Some(Push::Lost) => {
                self.backend(request);
                hang_up()
            }
            Some(Push::Torn) => Reply::Broken(self.backend(request)),
            None => Reply::Answer(self.backend(request)),
        }
    }

    /// The rule that a push breaks, if any.
    fn rule_against(&self, request: &Request, bare: &Path, updates: &[Update]) -> Option<Push> {
        let (protected, refuses_workflows) = {
            let inner = lock(&self.inner);
            (inner.protected.clone(), inner.refuses_workflows)
        };
        let branches = updates
            .iter()
            .filter_map(|update| update.name.strip_prefix("refs/heads/"));
        if let Some(branch) = branches
            .into_iter()
            .find(|branch| protected.contains(*branch))
        {
            return Some(Push::protected(branch));
        }
        let touched = updates
            .iter()
            .filter(|_| refuses_workflows)
            .find_map(|update| touched_workflow(&request.body, bare, update));
        touched.map(|path| Push::workflow(&path))
    }

    /// The bare repository of a path.
    fn bare_of(&self, path: &str) -> Option<PathBuf> {
        let (repository, _) = path.split_once(".git/")?;
        if repository.contains("..") {
            return None;
        }
        let bare = self
            .root
            .join(format!("{}.git", repository.trim_start_matches('/')));
        bare.is_dir().then_some(bare)
    }

    /// What `git http-backend` answers.
    fn backend(&self, request: &Request) -> Response {
        let mut command = scrubbed("git", &self.root);
        command
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", &self.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", &request.method)
            .env("PATH_INFO", request.path())
            .env("QUERY_STRING", request.query())
            .env("CONTENT_LENGTH", request.body.len().to_string())
            .env("REMOTE_USER", "x-access-token")
            .env("REMOTE_ADDR", "127.0.0.1");
        for (header, variable) in [
            ("content-type", "CONTENT_TYPE"),
            ("content-encoding", "HTTP_CONTENT_ENCODING"),
            ("git-protocol", "GIT_PROTOCOL"),
        ] {
            if let Some(value) = request.header(header) {
                command.env(variable, value);
            }
        }
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = pipes.stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let body = request.body.clone();
        // A thread of its own: git may answer before it has read all.
        let writer = std::thread::spawn(move || input.write_all(&body));
        let output = child.wait_with_output().unwrap();
        let _ = writer.join();
        of_cgi(&output.stdout)
    }
}

/// What a CGI program printed, as a response.
fn of_cgi(printed: &[u8]) -> Response {
    let end = printed.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let Some(end) = end else {
        return text(500, "git http-backend said nothing");
    };
    let mut response = Response {
        status: 200,
        headers: Vec::new(),
        body: printed[end + 4..].to_vec(),
    };
    for line in String::from_utf8_lossy(&printed[..end]).lines() {
        let Some((name, value)) = line.split_once(": ") else {
            continue;
        };
        if name == "Status" {
            response.status = value
                .get(..3)
                .and_then(|code| code.parse().ok())
                .unwrap_or(500);
        } else {
            response
                .headers
                .push((name.to_lowercase(), value.to_owned()));
        }
    }
    response
}

/// The password of `basic` authorization.
fn token_of(request: &Request) -> Option<String> {
    let (scheme, encoded) = request.header("authorization")?.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded).ok()?;
    let pair = String::from_utf8(decoded).ok()?;
    let (_, token) = pair.split_once(':')?;
    scheme
        .eq_ignore_ascii_case("basic")
        .then(|| token.to_owned())
}

fn challenge() -> Response {
    let mut response = text(401, "Authentication required");
    let realm = (
        "www-authenticate".to_owned(),
        "Basic realm=\"GitHub\"".to_owned(),
    );
    response.headers.push(realm);
    response
}

fn text(status: u16, message: &str) -> Response {
    Response {
        status,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: format!("{message}\n").into_bytes(),
    }
}

/// The head of an answer and no more: a connection that closes without a word is tried again by
/// git's HTTP library.
fn hang_up() -> Reply {
    let mut response = text(200, "");
    let kind = "application/x-git-receive-pack-result".to_owned();
    response.headers = vec![("content-type".to_owned(), kind)];
    Reply::Broken(response)
}

/// An update of a ref that a push asks for.
struct Update {
    old: String,
    new: String,
    name: String,
}

/// The lengths and contents of packet lines up to the first flush, and what follows it.
fn packets(body: &[u8]) -> Option<(Vec<&[u8]>, &[u8])> {
    let mut lines = Vec::new();
    let mut rest = body;
    loop {
        let digits = std::str::from_utf8(rest.get(..4)?).ok()?;
        match usize::from_str_radix(digits, 16).ok()? {
            0 => return Some((lines, &rest[4..])),
            length => {
                lines.push(rest.get(4..length)?);
                rest = &rest[length..];
            }
        }
    }
}

/// The updates of a push; none when the body is no push.
fn updates(body: &[u8]) -> Option<Vec<Update>> {
    let (lines, _) = packets(body)?;
    let update = |line: &&[u8]| {
        let line = String::from_utf8_lossy(line).into_owned();
        // The first line goes on with the client's capabilities.
        let mut words = line
            .split(['\0', '\n'])
            .next()?
            .splitn(3, ' ')
            .map(str::to_owned);
        Some(Update {
            old: words.next()?,
            new: words.next()?,
            name: words.next()?,
        })
    };
    Some(lines.iter().filter_map(update).collect())
}

fn names(updates: &[Update]) -> Vec<String> {
    updates.iter().map(|update| update.name.clone()).collect()
}

fn is_of_kept_work(names: &[String]) -> bool {
    let is_kept = |name: &String| name.starts_with("refs/sprag/work/");
    !names.is_empty() && names.iter().all(is_kept)
}

/// The first workflow that differs between the old and the new commit of an update.
fn touched_workflow(body: &[u8], bare: &Path, update: &Update) -> Option<String> {
    let (_, pack) = packets(body)?;
    let none = |sha: &str| sha.bytes().all(|byte| byte == b'0');
    if none(&update.new) {
        return None;
    }
    // Objects that no ref leads to do no harm.
    let _ = try_git(bare, &["unpack-objects", "-q"], &[], pack);
    let old = if none(&update.old) {
        let base = ["merge-base", "HEAD", &update.new];
        let base = try_git(bare, &base, &[], b"").ok();
        let empty_tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        base.map_or_else(|| empty_tree.to_owned(), |base| base.trim().to_owned())
    } else {
        update.old.clone()
    };
    let diff = [
        "diff",
        "--name-only",
        &old,
        &update.new,
        "--",
        ".github/workflows",
    ];
    let changed = try_git(bare, &diff, &[], b"").ok()?;
    changed.lines().next().map(str::to_owned)
}

/// The report of a push of which every ref is declined.
fn declined(updates: &[Update], reason: &str, lines: &[String]) -> Response {
    let packet = |content: &[u8]| {
        let mut packet = format!("{:04x}", content.len() + 4).into_bytes();
        packet.extend_from_slice(content);
        packet
    };
    let mut report = packet(b"unpack ok\n");
    for update in updates {
        report.extend(packet(format!("ng {} {reason}\n", update.name).as_bytes()));
    }
    report.extend_from_slice(b"0000");
    let mut body = Vec::new();
    // Of the side bands the second is for people, the first for git.
    for line in lines {
        body.extend(packet(format!("\x02{line}\n").as_bytes()));
    }
    body.extend(packet(&[b"\x01".as_slice(), &report].concat()));
    body.extend_from_slice(b"0000");
    let kind = "application/x-git-receive-pack-result".to_owned();
    Response {
        status: 200,
        headers: vec![("content-type".to_owned(), kind)],
        body,
    }
}
