//! The tests' GitHub is itself held to what GitHub does.

mod faults;

use crate::support::github::{
    ACTIONS, Access, Area, Github, Job, Line, Subject, Token, WorkflowRun,
};
use crate::support::http_client::Client;
use serde_json::{Value, json};

pub const TOKEN: &str = "ghs_canary0000000000000000000000000000";
pub const REPO: &str = "/repos/acme/widget";
pub const SHA: &str = "00112233445566778899aabbccddeeff00112233";

/// A GitHub that knows a job's token, a client that shows it, and issue 1.
pub fn github() -> (Github, Client) {
    let github = Github::start();
    github.token(TOKEN, Token::job());
    github.state().open_issue("dev", "Broken", "It is broken.");
    let client = Client::with_token(&github.url(), TOKEN);
    (github, client)
}

/// A check run's body with this of it replaced.
pub fn check_run(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = json!({
        "name": "sprag",
        "head_sha": SHA,
        "status": "in_progress",
        "output": { "title": "Running", "summary": "One task." },
    });
    change(&mut body);
    body
}

pub fn annotations(lines: std::ops::RangeInclusive<u32>) -> Value {
    lines
        .map(|line| {
            json!({
                "path": "src/a.rs",
                "start_line": line,
                "end_line": line,
                "annotation_level": "failure",
                "message": format!("wrong in line {line}"),
            })
        })
        .collect()
}

#[test]
fn updates_of_a_check_run_append_annotations() {
    let (github, mut client) = github();
    let body = check_run(|body| body["output"]["annotations"] = annotations(1..=50));
    let created = client.post(&format!("{REPO}/check-runs"), &body);
    assert_eq!(created.status, 201, "{}", created.text);
    let check = format!("{REPO}/check-runs/{}", created.json["id"]);
    let output = json!({ "title": "Failed", "summary": "", "annotations": annotations(51..=60) });
    let update = json!({ "status": "completed", "conclusion": "failure", "output": output });
    let updated = client.patch(&check, &update).json;
    assert_eq!(updated["output"]["annotations_count"], 60);
    assert_eq!(updated["conclusion"], "failure");
    assert!(updated["completed_at"].is_string());

    let page = client.get(&format!("{check}/annotations?per_page=40&page=2"));
    assert_eq!(page.json.as_array().unwrap().len(), 20);
    assert_eq!(page.json[19]["start_line"], 60);
    assert!(page.header("link").contains("rel=\"prev\""));

    let listed = client
        .get(&format!("{REPO}/commits/{SHA}/check-runs?check_name=sprag"))
        .json;
    assert_eq!(listed["total_count"], 1);
    let suite = &listed["check_runs"][0]["check_suite"]["id"];
    let of_suite = client
        .get(&format!("{REPO}/check-suites/{suite}/check-runs"))
        .json;
    assert_eq!(of_suite["check_runs"][0]["id"], created.json["id"]);
    assert_eq!(client.get(&check).json["output"]["title"], "Failed");
    let state = github.state();
    assert_eq!(
        (
            state.checks[0].updates.len(),
            state.checks[0].annotations.len()
        ),
        (2, 60)
    );
}

#[test]
fn a_comment_is_written_found_and_edited() {
    let (github, mut client) = github();
    let comments = format!("{REPO}/issues/1/comments");
    let written = client.post(&comments, &json!({ "body": "<!-- sprag --> one" }));
    assert_eq!(written.status, 201, "{}", written.text);
    assert_eq!(written.json["user"]["login"], ACTIONS);
    let found = client.get(&comments).json;
    assert_eq!(found[0]["id"], written.json["id"]);
    let comment = format!("{REPO}/issues/comments/{}", written.json["id"]);
    client.patch(&comment, &json!({ "body": "two" }));
    assert_eq!(client.get(&comment).json["body"], "two");
    assert_eq!(client.get(&format!("{REPO}/issues/2/comments")).status, 404);

    let reaction = json!({ "content": "eyes" });
    assert_eq!(
        client
            .post(&format!("{comment}/reactions"), &reaction)
            .status,
        201
    );
    assert_eq!(
        client
            .post(&format!("{comment}/reactions"), &reaction)
            .status,
        200
    );
    let listed = client
        .get(&format!("{comment}/reactions?content=eyes"))
        .json;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    let id = written.json["id"].as_u64().unwrap();
    let state = github.state();
    assert_eq!(
        state.reactions_on(Subject::Comment(id)),
        [(ACTIONS, "eyes")]
    );
    assert_eq!(state.comments[0].bodies, ["<!-- sprag --> one", "two"]);
}

#[test]
fn issues_have_labels_and_states() {
    let (github, mut client) = github();
    let body = json!({ "title": "Next", "body": "More", "labels": ["sprag"] });
    let opened = client.post(&format!("{REPO}/issues"), &body);
    assert_eq!(
        (opened.status, &opened.json["number"]),
        (201, &json!(2)),
        "{}",
        opened.text
    );
    let issue = format!("{REPO}/issues/2");
    client.post(
        &format!("{issue}/labels"),
        &json!({ "labels": ["bug", "sprag"] }),
    );
    assert_eq!(
        client.get(&format!("{issue}/labels")).json[1]["name"],
        "bug"
    );
    let removed = client
        .send("DELETE", &format!("{issue}/labels/bug"), &Value::Null)
        .unwrap();
    assert_eq!(
        (removed.status, removed.json.as_array().unwrap().len()),
        (200, 1)
    );
    let again = client
        .send("DELETE", &format!("{issue}/labels/bug"), &Value::Null)
        .unwrap();
    assert_eq!(again.status, 404);
    let labelled = client
        .get(&format!("{REPO}/issues?labels=sprag&state=open"))
        .json;
    assert_eq!(labelled[0]["number"], 2);
    client.patch(&issue, &json!({ "state": "closed" }));
    assert_eq!(client.get(&issue).json["state"], "closed");
    assert_eq!(
        client
            .post(
                &format!("{issue}/reactions"),
                &json!({ "content": "rocket" })
            )
            .status,
        201
    );
    assert_eq!(
        client.get(&format!("{issue}/reactions")).json[0]["content"],
        "rocket"
    );
    github.state().repository.has_issues = false;
    assert_eq!(client.post(&format!("{REPO}/issues"), &body).status, 410);
}

#[test]
fn lists_come_in_pages() {
    let (github, mut client) = github();
    for number in 0..250 {
        github
            .state()
            .comment(1, "dev", &format!("comment {number}"));
    }
    let mut target = format!("{REPO}/issues/1/comments?per_page=100");
    let mut bodies = Vec::new();
    loop {
        let page = client.get(&target);
        for comment in page.json.as_array().unwrap() {
            bodies.push(comment["body"].as_str().unwrap().to_owned());
        }
        let mut links = page.header("link").split(", ");
        let Some(next) = links.find(|link| link.ends_with("rel=\"next\"")) else {
            break;
        };
        let url = next.trim_start_matches('<').split('>').next().unwrap();
        url.strip_prefix(&github.url())
            .unwrap()
            .clone_into(&mut target);
    }
    assert_eq!((bodies.len(), bodies[249].as_str()), (250, "comment 249"));
    assert_eq!(
        github
            .requests_to("GET /repos/{owner}/{repo}/issues/{issue_number}/comments")
            .len(),
        3
    );
}

#[test]
fn a_token_does_what_it_may() {
    let (github, mut job) = github();
    github.token("ghp_person", Token::personal("dev"));
    github.token("ghs_fork", Token::fork());
    github.token("ghs_app", Token::app("helper"));
    github.token("ghs_pulls", Token::job().may(Area::Issues, Access::None));
    let comment = json!({ "body": "Hello" });
    let comments = format!("{REPO}/issues/1/comments");
    let as_who = |secret: &str| Client::with_token(&github.url(), secret);
    assert_eq!(job.get("/user").status, 403);
    assert_eq!(as_who("ghp_person").get("/user").json["login"], "dev");
    let refused = as_who("ghs_fork").post(&comments, &comment);
    let message = "Resource not accessible by integration";
    assert_eq!(
        (refused.status, &refused.json["message"]),
        (403, &json!(message))
    );
    assert_eq!(as_who("ghs_fork").get(&comments).status, 200);
    let refused = as_who("ghp_person").post(&format!("{REPO}/check-runs"), &check_run(|_| ()));
    assert_eq!(refused.status, 403);
    assert_eq!(as_who("ghs_unknown").get(REPO).status, 401);
    assert_eq!(Client::new(&github.url()).get(REPO).status, 200);
    assert_eq!(
        Client::new(&github.url()).post(&comments, &comment).status,
        401
    );
    let by_app = as_who("ghs_app").post(&comments, &comment);
    assert_eq!(by_app.json["user"]["login"], "helper[bot]");
    // An issue is not a pull request: the permission for those is none for it.
    assert_eq!(as_who("ghs_pulls").post(&comments, &comment).status, 403);
    let pull = github.state().open_pull("dev", "Topic", "topic", "main");
    let comments = format!("{REPO}/issues/{pull}/comments");
    assert_eq!(as_who("ghs_pulls").post(&comments, &comment).status, 201);
    // Nobody but its creator updates a check run.
    let check = job
        .post(&format!("{REPO}/check-runs"), &check_run(|_| ()))
        .json;
    let update = json!({ "status": "in_progress" });
    let target = format!("{REPO}/check-runs/{}", check["id"]);
    assert_eq!(as_who("ghs_app").patch(&target, &update).status, 403);
    assert_eq!(job.get("/repos/acme/other").status, 404);
    github.state().repository.private = true;
    assert_eq!(Client::new(&github.url()).get(REPO).status, 404);
}

#[test]
fn people_have_roles() {
    let (github, mut client) = github();
    github.state().role("dev", "maintain");
    let permission = client
        .get(&format!("{REPO}/collaborators/dev/permission"))
        .json;
    assert_eq!(
        (&permission["permission"], &permission["role_name"]),
        (&json!("write"), &json!("maintain"))
    );
    assert_eq!(
        client
            .get(&format!("{REPO}/collaborators/stranger/permission"))
            .status,
        404
    );
    assert_eq!(client.get("/users/dev").json["login"], "dev");
    assert_eq!(client.get("/users/stranger").status, 404);
}

#[test]
fn pull_requests_follow_their_branches() {
    let (github, mut client) = github();
    let other = "ff".repeat(20);
    for (name, sha) in [("refs/heads/main", SHA), ("refs/heads/topic", SHA)] {
        let made = client.post(
            &format!("{REPO}/git/refs"),
            &json!({ "ref": name, "sha": sha }),
        );
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let pull = json!({ "title": "T", "head": "topic", "base": "main", "body": "B" });
    let pulls = format!("{REPO}/pulls");
    assert_eq!(
        client.post(&pulls, &pull).status,
        422,
        "no commits between them"
    );
    let moved = client.patch(
        &format!("{REPO}/git/refs/heads/topic"),
        &json!({ "sha": other }),
    );
    assert_eq!(moved.status, 200, "{}", moved.text);
    let opened = client.post(&pulls, &pull);
    assert_eq!(opened.status, 201, "{}", opened.text);
    assert_eq!(opened.json["head"]["sha"], *other);
    let again = client.post(&pulls, &pull);
    assert!(
        again
            .text
            .contains("A pull request already exists for acme:topic."),
        "{}",
        again.text
    );
    let missing = json!({ "title": "T", "head": "none", "base": "main" });
    assert_eq!(
        client.post(&pulls, &missing).json["errors"][0]["field"],
        "head"
    );
    let found = client
        .get(&format!("{pulls}?head=acme:topic&base=main&state=open"))
        .json;
    assert_eq!(
        (found[0]["number"].as_u64(), found.as_array().unwrap().len()),
        (Some(2), 1)
    );
    client.patch(
        &format!("{pulls}/2"),
        &json!({ "title": "New", "state": "closed" }),
    );
    let closed = client.get(&format!("{pulls}/2")).json;
    assert_eq!(
        (&closed["title"], &closed["state"]),
        (&json!("New"), &json!("closed"))
    );
    github.state().actions_may_open_pulls = false;
    assert_eq!(client.post(&pulls, &pull).status, 403);
}

#[test]
fn refs_are_read_and_deleted() {
    let (github, mut client) = github();
    {
        let mut state = github.state();
        state.set_ref("refs/heads/main", SHA);
        state.set_ref("refs/heads/sprag/one", SHA);
        state.protected.insert("main".to_owned());
    }
    let one = client.get(&format!("{REPO}/git/ref/heads/sprag/one")).json;
    assert_eq!(one["object"]["sha"], SHA);
    assert_eq!(
        client.get(&format!("{REPO}/git/ref/heads/none")).status,
        404
    );
    let matching = client
        .get(&format!("{REPO}/git/matching-refs/heads/sprag/"))
        .json;
    assert_eq!(matching.as_array().unwrap().len(), 1);
    assert_eq!(
        client.get(&format!("{REPO}/git/commits/{SHA}")).json["sha"],
        SHA
    );
    assert_eq!(client.get(&format!("{REPO}/commits/main")).json["sha"], SHA);
    assert_eq!(client.get(&format!("{REPO}/commits/none")).status, 422);
    assert_eq!(
        client.get(&format!("{REPO}/branches/main")).json["protected"],
        true
    );
    assert_eq!(client.get(&format!("{REPO}/branches/none")).status, 404);
    let mut delete = |name: &str| {
        let target = format!("{REPO}/git/refs/heads/{name}");
        client.send("DELETE", &target, &Value::Null).unwrap().status
    };
    assert_eq!(delete("main"), 422);
    assert_eq!(delete("sprag/one"), 204);
    assert_eq!(delete("sprag/one"), 422);
}

#[test]
fn reviews_and_their_comments_are_there_to_read() {
    let (github, mut client) = github();
    github.state().set_ref("refs/heads/topic", SHA);
    let pull = github.state().open_pull("dev", "T", "topic", "main");
    let pull = format!("{REPO}/pulls/{pull}");
    let comments = json!([{ "path": "a.rs", "line": 3, "body": "Why?" }]);
    let review = json!({ "event": "REQUEST_CHANGES", "body": "No", "comments": comments });
    let review = client.post(&format!("{pull}/reviews"), &review);
    assert_eq!(review.status, 200, "{}", review.text);
    let id = &review.json["id"];
    assert_eq!(
        client.get(&format!("{pull}/reviews")).json[0]["state"],
        "CHANGES_REQUESTED"
    );
    assert_eq!(
        client.get(&format!("{pull}/reviews/{id}")).json["body"],
        "No"
    );
    assert_eq!(
        client.get(&format!("{pull}/reviews/{id}/comments")).json[0]["body"],
        "Why?"
    );
    let line = Line {
        path: "b.rs".to_owned(),
        line: 7,
        diff_hunk: "@@ -1 +1 @@".to_owned(),
        ..Line::default()
    };
    let id = github.state().review_comment(2, "dev", "/sprag fix", line);
    let listed = client.get(&format!("{pull}/comments")).json;
    assert_eq!(listed[1]["diff_hunk"], "@@ -1 +1 @@");
    let comment = format!("{REPO}/pulls/comments/{id}");
    assert_eq!(client.get(&comment).json["path"], "b.rs");
    assert_eq!(
        client
            .post(
                &format!("{comment}/reactions"),
                &json!({ "content": "eyes" })
            )
            .status,
        201
    );
    assert_eq!(
        client.get(&format!("{comment}/reactions")).json[0]["content"],
        "eyes"
    );
}

#[test]
fn workflow_runs_have_jobs_and_logs() {
    let (github, mut client) = github();
    let job = Job {
        id: 7,
        name: "test".to_owned(),
        conclusion: Some("failure".to_owned()),
        steps: vec![("cargo test".to_owned(), "failure".to_owned())],
        log: Some("error: it failed\n".to_owned()),
    };
    let run = WorkflowRun {
        name: "CI".to_owned(),
        path: ".github/workflows/ci.yml".to_owned(),
        event: "push".to_owned(),
        head_branch: "main".to_owned(),
        head_sha: SHA.to_owned(),
        status: "completed".to_owned(),
        conclusion: Some("failure".to_owned()),
        attempt: 1,
        jobs: vec![job],
        pulls: Vec::new(),
    };
    github.state().runs.insert(70, run);
    assert_eq!(
        client.get(&format!("{REPO}/actions/runs/70")).json["conclusion"],
        "failure"
    );
    let listed = client
        .get(&format!("{REPO}/actions/runs?branch=main&status=failure"))
        .json;
    assert_eq!(listed["total_count"], 1);
    let jobs = client.get(&format!("{REPO}/actions/runs/70/jobs")).json;
    assert_eq!(jobs["jobs"][0]["steps"][0]["conclusion"], "failure");
    let sent_on = client.get(&format!("{REPO}/actions/jobs/7/logs"));
    assert_eq!(sent_on.status, 302);
    let target = sent_on
        .header("location")
        .strip_prefix(&github.url())
        .unwrap();
    assert_eq!(
        Client::new(&github.url()).get(target).text,
        "error: it failed\n"
    );

    let dispatches = format!("{REPO}/actions/workflows/ci.yml/dispatches");
    let body = json!({ "ref": "main", "inputs": { "a": "b" } });
    assert_eq!(client.post(&dispatches, &body).status, 404);
    github.state().dispatchable.insert("ci.yml".to_owned());
    assert_eq!(client.post(&dispatches, &body).status, 204);
    assert_eq!(github.state().dispatches[0].inputs["a"], "b");
}

#[test]
fn a_commit_is_made_by_graphql() {
    let (github, mut client) = github();
    github.state().set_ref("refs/heads/main", SHA);
    let query = "mutation($input: CreateCommitOnBranchInput!) {
        createCommitOnBranch(input: $input) { commit { oid signature { isValid wasSignedByGitHub } } }
    }";
    let branch = json!({ "repositoryNameWithOwner": "acme/widget", "branchName": "main" });
    let input = json!({
        "branch": branch,
        "expectedHeadOid": SHA,
        "message": { "headline": "Fix it", "body": "Because." },
        "fileChanges": { "additions": [{ "path": "a.txt", "contents": "Zml4ZWQK" }] },
    });
    let body = json!({ "query": query, "variables": { "input": input } });
    let made = client.post("/graphql", &body).json;
    let commit = &made["data"]["createCommitOnBranch"]["commit"];
    assert_eq!(
        commit["signature"],
        json!({ "isValid": true, "wasSignedByGitHub": true })
    );
    let oid = commit["oid"].as_str().unwrap();
    assert_eq!(
        github.state().sha_of("refs/heads/main").as_deref(),
        Some(oid)
    );
    let stale = client.post("/graphql", &body).json;
    assert_eq!(stale["errors"][0]["type"], "STALE_DATA");
    assert!(stale["data"]["createCommitOnBranch"].is_null());

    let query = "query($owner: String!, $name: String!, $oid: GitObjectID!) {
        repository(owner: $owner, name: $name) {
            it: object(oid: $oid) { oid ... on Commit { message signature { isValid } } }
        }
    }";
    let variables = json!({ "owner": "acme", "name": "widget", "oid": oid });
    let read = client
        .post(
            "/graphql",
            &json!({ "query": query, "variables": variables }),
        )
        .json;
    let it = &read["data"]["repository"]["it"];
    assert_eq!(
        (&it["oid"], &it["signature"]["isValid"]),
        (&json!(oid), &json!(true))
    );
    assert_eq!(it["message"], "Fix it\n\nBecause.");
    assert_eq!(github.requests_to("POST /graphql").len(), 3);
}
