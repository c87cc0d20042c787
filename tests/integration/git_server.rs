//! The tests' git server refuses, loses and races as GitHub does, seen by the git program.

use crate::support::git_http::{GitServer, Push};
use crate::support::github::{Github, Token, git, scrubbed};
use crate::support::http_client::Client;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const TOKEN: &str = "ghs_canary0000000000000000000000000000";

/// A bare repository `acme/widget` behind a server, and a clone of it with one commit on `main`
/// pushed.
struct Setting {
    root: TempDir,
    bare: PathBuf,
    server: GitServer,
}

impl Setting {
    fn new() -> Self {
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let bare = GitServer::create(root.path(), "acme/widget");
        let server = GitServer::start(root.path(), TOKEN);
        let setting = Self { root, bare, server };
        fs::create_dir(setting.work()).unwrap();
        setting.must(&["init", "--quiet", "--initial-branch=main"]);
        setting.must(&["config", "user.name", "Tester"]);
        setting.must(&["config", "user.email", "tester@example.invalid"]);
        setting.remote(&setting.server.url());
        setting.commit("a.txt", "base");
        setting.must(&["push", "--quiet", "origin", "main"]);
        setting
    }

    fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    fn remote(&self, url: &str) {
        let address = url.trim_start_matches("http://");
        let url = format!("http://x-access-token:{TOKEN}@{address}/acme/widget.git");
        let _ = self.git(&["remote", "remove", "origin"]);
        self.must(&["remote", "add", "origin", &url]);
    }

    fn commit(&self, path: &str, text: &str) {
        let path = self.work().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self.must(&["add", "--all"]);
        self.must(&["commit", "--quiet", "--message", text]);
    }

    /// Whether git succeeded, and what it said.
    fn git(&self, args: &[&str]) -> (bool, String) {
        let mut command = scrubbed("git", &self.work());
        command.env("GIT_TERMINAL_PROMPT", "0");
        let output = command.args(args).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }

    fn must(&self, args: &[&str]) -> String {
        let (succeeded, said) = self.git(args);
        assert!(succeeded, "git {args:?}: {said}");
        said.trim_end().to_owned()
    }

    /// What a refused push says.
    fn refused(&self) -> String {
        let (succeeded, said) = self.git(&["push", "origin", "HEAD:main"]);
        assert!(!succeeded, "{said}");
        said
    }

    fn head(&self) -> String {
        self.must(&["rev-parse", "HEAD"])
    }

    fn main(&self) -> String {
        git(&self.bare, &["rev-parse", "main"]).trim().to_owned()
    }
}

/// Puts one more commit on `main` of a bare repository.
fn move_main(bare: &Path) {
    let tree = git(bare, &["rev-parse", "main^{tree}"]);
    let author = [
        "-c",
        "user.name=Other",
        "-c",
        "user.email=other@example.invalid",
    ];
    let mut args = author.to_vec();
    args.extend(["commit-tree", tree.trim(), "-p", "main", "-m", "moved"]);
    let commit = git(bare, &args);
    git(bare, &["update-ref", "refs/heads/main", commit.trim()]);
}

#[test]
fn pushes_with_the_token_arrive_and_others_do_not() {
    let setting = Setting::new();
    assert_eq!(setting.main(), setting.head());
    assert_eq!(setting.server.pushes(), 1);
    let statuses: Vec<_> = setting
        .server
        .requests()
        .iter()
        .map(|request| request.status)
        .collect();
    assert_eq!(statuses[..2], [Some(401), Some(200)], "challenged first");

    setting.commit("a.txt", "next");
    let url = format!("{}/acme/widget.git", setting.server.url());
    let (succeeded, _) = setting.git(&["push", &url, "main"]);
    assert!(!succeeded, "without a token");
    let basic = BASE64_STANDARD.encode(format!("x-access-token:{TOKEN}"));
    let header = format!("http.extraheader=AUTHORIZATION: basic {basic}");
    setting.must(&["-c", &header, "push", "--quiet", &url, "main"]);
    assert_eq!(setting.main(), setting.head());

    setting.server.read_only("ghs_reader");
    let basic = BASE64_STANDARD.encode("x-access-token:ghs_reader");
    let header = format!("http.extraheader=AUTHORIZATION: basic {basic}");
    setting.must(&["-c", &header, "fetch", "--quiet", &url]);
    let (_, said) = setting.git(&["-c", &header, "push", &url, "main:other"]);
    assert!(said.contains("403"), "{said}");
    let elsewhere = format!("{}/acme/other.git", setting.server.url());
    let (_, said) = setting.git(&["-c", &header, "ls-remote", &elsewhere]);
    assert!(said.contains("not found"), "{said}");
}

#[test]
fn a_push_of_megabytes_arrives() {
    let setting = Setting::new();
    // Text that does not compress to less than what git sends in one piece.
    let mut seed = 1_u64;
    let mut noise = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u8::try_from(seed >> 56).unwrap()
    };
    let bytes: Vec<u8> = (0..3_000_000).map(|_| noise()).collect();
    fs::write(setting.work().join("big"), bytes).unwrap();
    setting.commit("b.txt", "big");
    setting.must(&["push", "--quiet", "origin", "main"]);
    assert_eq!(setting.main(), setting.head());
}

#[test]
fn protected_branches_and_workflows_are_declined() {
    let setting = Setting::new();
    let before = setting.main();
    setting.commit(".github/workflows/ci.yml", "on: push");
    setting.server.refuse_workflows();
    let said = setting.refused();
    let reason = "refusing to allow a GitHub App to create or update workflow `.github/workflows/ci.yml` without `workflows` permission";
    assert!(
        said.contains(&format!("[remote rejected] HEAD -> main ({reason})")),
        "{said}"
    );
    setting.must(&["reset", "--quiet", "--hard", "HEAD~1"]);
    setting.commit("b.txt", "fine");
    setting.must(&["push", "--quiet", "origin", "HEAD:other"]);
    setting.server.protect("main");
    let said = setting.refused();
    assert!(
        said.contains("remote: error: GH006: Protected branch update failed for refs/heads/main."),
        "{said}"
    );
    assert!(said.contains("(protected branch hook declined)"), "{said}");
    assert_eq!(setting.main(), before);
}

#[test]
fn planned_refusals_come_once_each() {
    let setting = Setting::new();
    setting.commit("b.txt", "next");
    for (push, words) in [
        (Push::forbidden("acme/widget"), "error: 403"),
        (Push::Status(500, "Oh".to_owned()), "error: 500"),
        (Push::Status(503, "Oh".to_owned()), "error: 503"),
        (
            Push::cannot_lock("main"),
            "cannot lock ref 'refs/heads/main'",
        ),
        (Push::large_file("big.bin"), "GH001: Large files detected"),
        (
            Push::numbered("GH003", "Sorry, force-pushing is not allowed"),
            "error: GH003:",
        ),
        (Push::HangUp, "remote end hung up"),
    ] {
        setting.server.next_push(push.clone());
        let said = setting.refused();
        assert!(said.contains(words), "{push:?}: {said}");
        assert_ne!(setting.main(), setting.head());
    }
    setting.must(&["push", "--quiet", "origin", "main"]);
    for (index, push) in [Push::Lost, Push::Torn].into_iter().enumerate() {
        setting.commit("c.txt", &format!("lost {index}"));
        setting.server.next_push(push);
        setting.refused();
        assert_eq!(setting.main(), setting.head(), "the push was performed");
    }
}

#[test]
fn the_remote_moves_before_and_during_a_push() {
    let setting = Setting::new();
    setting.must(&["fetch", "--quiet", "origin"]);
    setting.commit("b.txt", "mine");
    setting.server.move_before_next_push(move_main);
    let (succeeded, said) = setting.git(&["push", "--force-with-lease=main", "origin", "main"]);
    assert!(!succeeded && said.contains("stale info"), "{said}");
    setting.server.move_during_next_push(move_main);
    let (succeeded, said) = setting.git(&["push", "--force", "origin", "main"]);
    assert!(!succeeded && said.contains("[remote rejected]"), "{said}");
    assert_eq!(
        git(&setting.bare, &["rev-list", "--count", "main"]).trim(),
        "3"
    );
}

#[test]
fn the_api_and_the_pushes_agree() {
    let setting = Setting::new();
    let github = Github::start();
    github.token(TOKEN, Token::job());
    github.attach(&setting.bare);
    github.mount(&setting.server);
    setting.remote(&github.url());
    setting.must(&["checkout", "--quiet", "-b", "topic"]);
    setting.commit("b.txt", "topic");
    setting.must(&["push", "--quiet", "origin", "topic"]);
    let mut client = Client::with_token(&github.url(), TOKEN);
    let pull = json!({ "title": "Topic", "head": "topic", "base": "main" });
    let opened = client.post("/repos/acme/widget/pulls", &pull);
    assert_eq!(
        (opened.status, &opened.json["head"]["sha"]),
        (201, &json!(setting.head())),
        "{}",
        opened.text
    );
    setting.commit("c.txt", "more");
    setting.must(&["push", "--quiet", "origin", "topic"]);
    let number = &opened.json["number"];
    let read = client
        .get(&format!("/repos/acme/widget/pulls/{number}"))
        .json;
    assert_eq!(read["head"]["sha"], json!(setting.head()));
    let commit = client
        .get(&format!(
            "/repos/acme/widget/git/commits/{}",
            setting.head()
        ))
        .json;
    assert_eq!(
        (&commit["message"], &commit["author"]["name"]),
        (&json!("more"), &json!("Tester"))
    );

    let nowhere = "0123456789".repeat(4);
    let check = json!({ "name": "sprag", "head_sha": nowhere });
    assert_eq!(
        client.post("/repos/acme/widget/check-runs", &check).status,
        422
    );
    let same = json!({ "ref": "refs/heads/same", "sha": setting.main() });
    assert_eq!(
        client.post("/repos/acme/widget/git/refs", &same).status,
        201
    );
    let nothing = json!({ "title": "Nothing", "head": "same", "base": "main" });
    let refused = client.post("/repos/acme/widget/pulls", &nothing);
    assert!(
        refused.text.contains("No commits between main and same"),
        "{}",
        refused.text
    );
    let back = json!({ "sha": setting.main() });
    let refused = client.patch("/repos/acme/widget/git/refs/heads/topic", &back);
    assert!(
        refused.text.contains("not a fast forward"),
        "{}",
        refused.text
    );
}

#[test]
fn a_commit_made_by_graphql_is_a_real_one() {
    let setting = Setting::new();
    let github = Github::start();
    github.token(TOKEN, Token::job());
    github.attach(&setting.bare);
    let mut client = Client::with_token(&github.url(), TOKEN);
    let head = setting.main();
    let commit = |additions, deletions| {
        json!({
            "query": "mutation($input: CreateCommitOnBranchInput!) { createCommitOnBranch(input: $input) { commit { oid } } }",
            "variables": { "input": {
                "branch": { "repositoryNameWithOwner": "acme/widget", "branchName": "main" },
                "expectedHeadOid": head,
                "message": { "headline": "Fix it" },
                "fileChanges": { "additions": additions, "deletions": deletions },
            } },
        })
    };
    let added = json!([{ "path": "dir/new.txt", "contents": BASE64_STANDARD.encode("new\n") }]);
    let made = client.post("/graphql", &commit(added, json!([{ "path": "a.txt" }])));
    let oid = &made.json["data"]["createCommitOnBranch"]["commit"]["oid"];
    assert_eq!(oid, &json!(setting.main()), "{}", made.text);
    assert_eq!(
        git(&setting.bare, &["ls-tree", "-r", "--name-only", "main"]).trim(),
        "dir/new.txt"
    );
    assert_eq!(git(&setting.bare, &["show", "main:dir/new.txt"]), "new\n");
    let verified = client
        .get(&format!("/repos/acme/widget/commits/{}", setting.main()))
        .json;
    assert_eq!(verified["commit"]["verification"]["verified"], true);
    let stale = client.post("/graphql", &commit(json!([]), json!([]))).json;
    assert_eq!(stale["errors"][0]["type"], "STALE_DATA");
    let absent = json!([{ "path": "none.txt" }]);
    let mut refused = commit(json!([]), absent);
    refused["variables"]["input"]["expectedHeadOid"] = json!(setting.main());
    let refused = client.post("/graphql", &refused).json;
    assert_eq!(refused["errors"][0]["type"], "UNPROCESSABLE");
}
