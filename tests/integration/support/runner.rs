//! A job of GitHub Actions, emulated: a repository on a GitHub of the test's own, a checkout of it as
//! `actions/checkout` makes it, the files and variables that a step gets.

use super::git_http::GitServer;
use super::github::{Github, Token, commit_on, git, open};
use super::project::{Project, Run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The job's token, in the form of GitHub's own.
pub const TOKEN: &str = "ghs_canary0000000000000000000000000000";
/// The repository.
pub const REPOSITORY: &str = "acme/widget";

/// See the module.
pub struct Runner {
    /// GitHub's API, with the git server under the same address.
    pub github: Github,
    /// The git server.
    pub server: GitServer,
    /// The checkout that the step works in.
    pub project: Project,
    bare: PathBuf,
    step: u32,
}

impl Runner {
    /// A repository with these files on `main`, checked out in depth 1.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let mut project = Project::new(files);
        let root = project.beside("origin");
        fs::create_dir(&root).unwrap();
        let bare = GitServer::create(&root, REPOSITORY);
        let server = GitServer::start(&root, TOKEN);
        let github = Github::start();
        github.token(TOKEN, Token::job());
        github.attach(&bare);
        github.mount(&server);
        project.git(&["push", "--quiet", bare.to_str().unwrap(), "main:main"]);
        for (name, value) in [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_REPOSITORY", REPOSITORY),
            ("GITHUB_RUN_ID", "4711"),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_WORKFLOW", "Sprag"),
            ("GITHUB_JOB", "fix"),
            ("SPRAG_GITHUB_SPACING_MS", "0"),
            ("INPUT_GITHUB-TOKEN", TOKEN),
        ] {
            project.env(name, value);
        }
        project.env("GITHUB_API_URL", github.url());
        project.env("GITHUB_SERVER_URL", github.url());
        let temp = project.beside("runner");
        fs::create_dir(&temp).unwrap();
        project.env("RUNNER_TEMP", &temp);
        let runner = Self {
            github,
            server,
            project,
            bare,
            step: 0,
        };
        runner.checkout("main");
        runner
    }

    /// A branch of the repository with this commit on top of `main`, made by somebody else.
    pub fn branch(&self, name: &str, path: &str, text: &str) -> String {
        self.commit_on(name, "main", path, text)
    }

    /// One more commit on a branch of the repository, made by somebody else.
    pub fn push(&self, branch: &str, path: &str, text: &str) -> String {
        self.commit_on(branch, branch, path, text)
    }

    fn commit_on(&self, branch: &str, base: &str, path: &str, text: &str) -> String {
        let (bare, path, text) = (self.bare.clone(), path.to_owned(), text.to_owned());
        commit(&bare, branch, base, &path, &text)
    }

    /// The bare repository.
    pub fn bare(&self) -> PathBuf {
        self.bare.clone()
    }

    /// Where a branch of the repository is.
    pub fn at(&self, branch: &str) -> String {
        let repository = open(&self.bare);
        repository.revparse_single(branch).unwrap().id().to_string()
    }

    /// Subjects of a branch's commits, newest first.
    pub fn log(&self, branch: &str) -> Vec<String> {
        let text = git(&self.bare, &["log", "--format=%s", branch]);
        text.lines().map(str::to_owned).collect()
    }

    /// A file of a branch.
    pub fn file(&self, branch: &str, path: &str) -> String {
        git(&self.bare, &["show", &format!("{branch}:{path}")])
    }

    /// Checks a branch out anew, in depth 1, as the action does.
    pub fn checkout(&self, branch: &str) {
        let repo = self.project.repo();
        fs::remove_dir_all(&repo).unwrap();
        fs::create_dir(&repo).unwrap();
        let url = format!("file://{}", self.bare.display());
        self.project
            .git(&["init", "--quiet", "--initial-branch=none"]);
        let refspec = format!("+refs/heads/{branch}:refs/remotes/origin/{branch}");
        self.project
            .git(&["fetch", "--quiet", "--depth=1", &url, &refspec]);
        let start = format!("refs/remotes/origin/{branch}");
        self.project
            .git(&["checkout", "--quiet", "-B", branch, &start]);
    }

    /// Checks a commit out anew, detached, in depth 1, as on a pull request.
    pub fn checkout_detached(&self, commit: &str) {
        self.checkout("main");
        let url = format!("file://{}", self.bare.display());
        self.project
            .git(&["fetch", "--quiet", "--depth=1", &url, commit]);
        self.project
            .git(&["checkout", "--quiet", "--detach", commit]);
    }

    /// The event of the next step; `reference` is `GITHUB_REF`.
    pub fn event(&mut self, name: &str, reference: &str, payload: &Value) -> &mut Self {
        let path = self.project.beside("runner").join("event.json");
        fs::write(&path, payload.to_string()).unwrap();
        let branch = reference.trim_start_matches("refs/heads/").to_owned();
        let sha = if reference.starts_with("refs/heads/") {
            self.at(&branch)
        } else {
            self.project.head()
        };
        self.project.env("GITHUB_EVENT_NAME", name);
        self.project.env("GITHUB_EVENT_PATH", &path);
        self.project.env("GITHUB_REF", reference);
        self.project.env("GITHUB_REF_NAME", &branch);
        self.project.env("GITHUB_SHA", &sha);
        self
    }

    /// A step whose agent is this script.
    pub fn by(&mut self, script: &str, args: &[&str]) -> Step {
        let agent = self.project.agent(script);
        self.step(&[&["--agent-command", &agent], args].concat())
    }

    /// `sprag run` with these arguments as a step, to its end.
    pub fn step(&mut self, args: &[&str]) -> Step {
        let mut command = self.command(args);
        let output = command.output().unwrap();
        self.ended(&output)
    }

    /// The same, not yet started.
    pub fn command(&mut self, args: &[&str]) -> Command {
        self.command_of("run", args)
    }

    /// Another command of `sprag` as a step, not yet started.
    pub fn command_of(&mut self, name: &str, args: &[&str]) -> Command {
        self.step += 1;
        let at = self.project.beside("runner");
        for name in ["GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_ENV"] {
            let path = at.join(format!("{name}-{}", self.step));
            fs::write(&path, "").unwrap();
            self.project.env(name, &path);
        }
        let all: Vec<&str> = std::iter::once(name).chain(args.iter().copied()).collect();
        self.project.command(&all)
    }

    /// What a step left that has ended.
    pub fn ended(&self, output: &std::process::Output) -> Step {
        let run = self.project.finished(output);
        let read = |name: &str| {
            let at = self.project.beside("runner");
            fs::read_to_string(at.join(format!("{name}-{}", self.step))).unwrap()
        };
        Step {
            outputs: outputs(&read("GITHUB_OUTPUT")),
            summary: read("GITHUB_STEP_SUMMARY"),
            env: read("GITHUB_ENV"),
            dir: self.run_dir(),
            run,
        }
    }

    /// The directory of the latest run.
    pub fn run_dir(&self) -> Option<PathBuf> {
        let dirs = fs::read_dir(self.project.beside("runner").join("sprag"))
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path());
        dirs.filter(|path| path.join("manifest.json").is_file())
            .max()
    }

    /// The one comment of the job's account on an issue or pull request.
    pub fn comment(&self, number: u64) -> Option<String> {
        let state = self.github.state();
        let own: Vec<_> = state
            .comments
            .iter()
            .filter(|comment| comment.number == number && comment.author == "github-actions[bot]")
            .collect();
        assert!(own.len() < 2, "{} comments", own.len());
        own.first().map(|comment| comment.body.clone())
    }
}

/// What a step left.
pub struct Step {
    /// As of any other run.
    pub run: Run,
    /// `GITHUB_OUTPUT`, as the runner reads it.
    pub outputs: BTreeMap<String, String>,
    /// `GITHUB_STEP_SUMMARY`.
    pub summary: String,
    /// `GITHUB_ENV`.
    pub env: String,
    /// The newest run directory.
    pub dir: Option<PathBuf>,
}

impl Step {
    /// Fails with everything that was printed unless the exit code is this one.
    pub fn expect(self, code: i32) -> Self {
        let Self { run, .. } = self;
        Self {
            run: run.expect(code),
            ..self
        }
    }

    /// An output; empty when there is none.
    pub fn output(&self, name: &str) -> &str {
        self.outputs.get(name).map_or("", String::as_str)
    }
}

/// Makes a commit of one file on a branch of a bare repository.
pub fn commit(bare: &std::path::Path, branch: &str, base: &str, path: &str, text: &str) -> String {
    let somebody = git2::Signature::now("Somebody", "somebody@example.invalid").unwrap();
    let repository = open(bare);
    let changes = vec![(path.to_owned(), Some(text.as_bytes().to_vec()))];
    let message = "Somebody's work\n";
    let commit = commit_on(&repository, base, [&somebody; 2], message, &changes).unwrap();
    let name = format!("refs/heads/{branch}");
    repository.reference(&name, commit, true, "").unwrap();
    commit.to_string()
}

/// Name-value pairs as the runner reads them from the file: `name<<DELIMITER`, lines, `DELIMITER`.
fn outputs(text: &str) -> BTreeMap<String, String> {
    let mut outputs = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((name, delimiter)) = line.split_once("<<") {
            let value: Vec<&str> = lines
                .by_ref()
                .take_while(|line| *line != delimiter)
                .collect();
            outputs.insert(name.to_owned(), value.join("\n"));
        } else if let Some((name, value)) = line.split_once('=') {
            outputs.insert(name.to_owned(), value.to_owned());
        }
    }
    outputs
}

/// The parts that every payload has.
pub fn repository() -> Value {
    json!({ "full_name": REPOSITORY, "name": "widget", "default_branch": "main", "fork": false,
        "owner": { "login": "acme", "type": "Organization" } })
}

/// A comment on an issue or, with `is_pull`, on a pull request.
pub fn comment_event(number: u64, is_pull: bool, id: u64, login: &str, body: &str) -> Value {
    let mut issue = json!({ "number": number, "title": "Widget is broken", "body": "It says broken.",
        "state": "open", "user": { "login": "ada", "type": "User" }, "labels": [] });
    if is_pull {
        issue["pull_request"] = json!({ "url": "https://example.invalid/pull" });
    }
    let kind = if login.ends_with("[bot]") {
        "Bot"
    } else {
        "User"
    };
    json!({ "action": "created", "issue": issue, "repository": repository(),
        "comment": { "id": id, "body": body, "author_association": "MEMBER",
            "user": { "login": login, "type": kind }, "created_at": "2026-11-21T10:00:00Z",
            "updated_at": "2026-11-21T10:00:00Z" },
        "sender": { "login": login, "type": kind } })
}

/// A label on an issue.
pub fn label_event(number: u64, login: &str, title: &str, body: &str) -> Value {
    json!({ "action": "labeled", "label": { "name": "sprag" }, "repository": repository(),
        "issue": { "number": number, "title": title, "body": body, "state": "open",
            "user": { "login": "ada", "type": "User" }, "labels": [{ "name": "sprag" }],
            "updated_at": "2026-11-21T10:00:00Z" },
        "sender": { "login": login, "type": "User" } })
}
