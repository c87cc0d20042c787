//! What is secret stays so, whatever the agent says and tries.

use crate::support::runner::{Runner, TOKEN, comment_event};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use std::fs;
use std::path::Path;

const KEY: &str = "canary-model-key-7f3a9c";

/// The forms of a secret that a text must not have.
fn forms(secret: &str) -> Vec<String> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped = |form: fn(char) -> String| secret.chars().map(form).collect();
    vec![
        secret.to_owned(),
        BASE64_STANDARD.encode(secret),
        hex,
        escaped(|c| format!("%{:02x}", u32::from(c))),
        escaped(|c| format!("&#{};", u32::from(c))),
        escaped(|c| format!("{c}\u{200b}")),
        escaped(|c| format!("{c}\u{1b}[0m")),
    ]
}

/// Every file of a run directory, but for the private git directory.
pub fn texts(dir: &Path) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("git") {
            texts.extend(self::texts(&path));
        } else if path.is_file() {
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            texts.push((path.display().to_string(), text));
        }
    }
    texts
}

#[test]
fn a_secret_that_the_agent_says_is_in_no_text_that_leaves() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    runner.project.env("MODEL_API_KEY", KEY);
    runner.branch("feature", "b.txt", "feature");
    let number = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        state.open_pull("ada", "Add b", "feature", "main")
    };
    let payload = comment_event(number, true, 99, "grace", "/sprag make a.txt say fixed");
    runner
        .github
        .state()
        .comment(number, "grace", "/sprag make a.txt say fixed");
    runner.event("issue_comment", "refs/heads/main", &payload);
    let said: Vec<String> = [KEY, TOKEN]
        .iter()
        .flat_map(|secret| forms(secret))
        .collect();
    let said = said.join(" ");
    let agent = runner.project.agent(&format!(
        "printf fixed > a.txt\necho 'I know {said}'\necho 'SUGGESTED_COMMIT_MESSAGE: Use {said}'"
    ));
    let check = format!("echo 'a.txt:1: error: {said}' >&2; false");
    let step = runner
        .step(&[
            "--agent-command",
            &agent,
            "--verify",
            &check,
            "--max-retries",
            "1",
            "-vv",
        ])
        .expect(1);
    let mut all = texts(step.dir.as_ref().unwrap());
    for part in [
        "history.jsonl",
        "state/events.jsonl",
        "/turns/",
        "/prompts/",
        "/verify/",
    ] {
        assert!(all.iter().any(|(name, _)| name.contains(part)), "{part}");
    }
    // The manifest has the command line, which holds the secret here.
    all.retain(|(name, text)| !text.is_empty() && !name.ends_with("manifest.json"));
    all.push(("log".into(), step.run.stdout.clone() + &step.run.stderr));
    all.push(("step summary".into(), step.summary.clone()));
    all.push(("outputs".into(), format!("{:?}", step.outputs)));
    assert_eq!(step.env, "");
    let given = fs::read_to_string(runner.project.outside("env-1")).unwrap();
    assert!(!given.contains("GITHUB_"), "{given}");
    all.push(("comment".into(), runner.comment(number).unwrap()));
    let state = runner.github.state();
    all.push(("check runs".into(), format!("{:?}", state.checks)));
    assert!(
        state
            .checks
            .iter()
            .any(|check| !check.annotations.is_empty())
    );
    for (name, text) in &all {
        assert!(!text.is_empty(), "{name} is empty");
        for form in [KEY, TOKEN].iter().flat_map(|secret| forms(secret)) {
            assert!(!text.contains(&form), "{name} has {form}");
        }
    }
}

#[test]
fn a_secret_in_a_suggested_message_is_not_in_the_commit() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    runner.project.env("MODEL_API_KEY", KEY);
    runner.event(
        "push",
        "refs/heads/main",
        &json!({ "ref": "refs/heads/main" }),
    );
    runner
        .by(
            &format!("printf fixed > a.txt\necho 'SUGGESTED_COMMIT_MESSAGE: Use {KEY}'"),
            &["--prompt", "fix it", "--verify", "true"],
        )
        .expect(0);
    let subject = runner.log("main").remove(0);
    assert_eq!(subject, "Use ***");
}

/// Where `actions/checkout` keeps the token: up to version 5 in the repository's configuration, from
/// 6 on in a file that it includes.
fn persist(runner: &Runner, layout: &str) {
    let project = &runner.project;
    let basic = BASE64_STANDARD.encode(format!("x-access-token:{TOKEN}"));
    let key = format!("http.{}/.extraheader", runner.github.url());
    let value = format!("AUTHORIZATION: basic {basic}");
    let url = format!("{}/acme/widget.git", runner.github.url());
    project.git(&["remote", "add", "origin", &url]);
    if layout == "v4" {
        project.git(&["config", &key, &value]);
        return;
    }
    let file = project.beside("runner").join("git-credentials-1.config");
    project.git(&["config", "--file", file.to_str().unwrap(), &key, &value]);
    let at = project.repo().join(".git");
    let include = format!("includeIf.gitdir:{}.path", at.display());
    project.git(&["config", &include, file.to_str().unwrap()]);
}

#[test]
fn the_checkouts_credential_is_out_of_use_while_the_agent_works() {
    for layout in ["v4", "v6"] {
        let mut runner = Runner::new(&[("a.txt", "broken")]);
        persist(&runner, layout);
        let payload = json!({ "ref": "refs/heads/main", "after": runner.at("main") });
        runner.event("push", "refs/heads/main", &payload);
        let agent = runner.project.agent(
            "printf fixed > a.txt\n\
             if git push origin HEAD:refs/heads/stolen; then echo pushed > \"$OUT/pushed\"; fi\n\
             echo done",
        );
        let args = [
            "--prompt",
            "fix it",
            "--agent-command",
            &agent,
            "--verify",
            "true",
        ];
        runner.step(&args).expect(0);
        assert_eq!(runner.project.calls(), 1);
        assert!(runner.project.notes("pushed").is_empty(), "{layout}");
        assert_eq!(
            runner.file("main", "a.txt"),
            "fixed",
            "{layout}: Sprag pushes all the same"
        );
        // The steps that follow have it again.
        runner
            .project
            .git(&["push", "--quiet", "origin", "HEAD:refs/heads/later"]);
        assert_eq!(runner.at("later"), runner.at("main"));
    }
}
