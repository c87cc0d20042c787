//! A job that may only read does the work, and another one publishes it.

use super::closed_meanwhile::{close, rescues};
use crate::support::github::{Access, Area, Token, git};
use crate::support::has;
use crate::support::proc::{end_of, signal, wait_until};
use crate::support::runner::{Runner, Step, TOKEN, comment_event, label_event, repository};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The token of the job that does the work.
const READER: &str = "ghs_reader0000000000000000000000000000";
const FIX: &str = "printf fixed > a.txt\necho 'SUGGESTED_COMMIT_MESSAGE: Say fixed'";
/// Whose name the commits of a job have.
const BOT: (&str, &str) = (
    "github-actions[bot]",
    "41898282+github-actions[bot]@users.noreply.github.com",
);
const CHECK: &str = "grep -q fixed a.txt";

/// A pull request of `feature` onto `main`, a comment on it that asks for work, and the branch that
/// the work is for.
fn asked() -> (Runner, u64) {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    runner.branch("feature", "b.txt", "feature");
    let (number, id) = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        let number = state.open_pull("ada", "Add b", "feature", "main");
        let body = "/sprag make a.txt say fixed";
        (number, state.comment(number, "grace", body))
    };
    let body = "/sprag make a.txt say fixed";
    let payload = comment_event(number, true, id, "grace", body);
    runner.event("issue_comment", "refs/heads/main", &payload);
    (runner, number)
}

/// The first job, and what it hands over.
fn work(runner: &mut Runner, script: &str, code: i32) -> PathBuf {
    runner.github.token(READER, Token::fork());
    runner.server.read_only(READER);
    runner.project.env("INPUT_GITHUB-TOKEN", READER);
    let agent = runner.project.agent(script);
    let args = [
        "--agent-command",
        &agent,
        "--verify",
        CHECK,
        "--max-retries=0",
    ];
    let off = ["--report", "none", "--no-push"];
    let step = runner.step(&[&args[..], &off].concat()).expect(code);
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(runner.github.state().checks.len(), 0);
    hand_over(runner, &step)
}

fn hand_over(runner: &Runner, step: &Step) -> PathBuf {
    let to = runner.project.beside("artifact");
    fs::create_dir(&to).unwrap();
    let from = step.dir.clone().unwrap();
    for name in ["summary.json", "work.bundle"] {
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    to
}

/// The second job: a fresh checkout, an empty temporary directory, a token that may write.
fn publish(runner: &mut Runner, from: &Path, args: &[&str]) -> Step {
    let output = publishing(runner, from, args).output().unwrap();
    runner.ended(&output)
}

fn publishing(runner: &mut Runner, from: &Path, args: &[&str]) -> Command {
    runner.checkout("main");
    let temp = runner.project.beside("runner");
    let _ = fs::remove_dir_all(temp.join("sprag"));
    runner.project.env("INPUT_GITHUB-TOKEN", TOKEN);
    let all: Vec<&str> = std::iter::once(from.to_str().unwrap())
        .chain(args.iter().copied())
        .collect();
    runner.command_of("publish", &all)
}

fn forge(dir: &Path, change: impl FnOnce(&mut Value)) {
    let path = dir.join("summary.json");
    let mut summary: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut summary);
    fs::write(&path, summary.to_string()).unwrap();
}

fn conclusions(runner: &Runner) -> Vec<(String, Option<String>)> {
    let state = runner.github.state();
    let checks = state.checks.iter();
    checks
        .map(|check| (check.head_sha.clone(), check.conclusion.clone()))
        .collect()
}

#[test]
fn the_second_job_pushes_and_reports_what_the_first_one_did() {
    let (mut runner, number) = asked();
    let before = runner.at("feature");
    let handed = work(&mut runner, FIX, 0);
    assert_eq!(runner.at("feature"), before);
    assert_eq!(runner.comment(number), None);
    let step = publish(&mut runner, &handed, &[]).expect(0);
    assert_eq!(runner.log("feature")[..2], ["Say fixed", "Somebody's work"]);
    assert_eq!(runner.file("feature", "a.txt"), "fixed");
    let head = runner.at("feature");
    assert_eq!(
        ["status", "head-sha", "branch", "commits", "changed-files"].map(|it| step.output(it)),
        ["success", &head, "feature", &head, "a.txt"]
    );
    let neutral = Some("neutral".to_owned());
    assert_eq!(conclusions(&runner), [(head.clone(), neutral)]);
    let comment = runner.comment(number).unwrap();
    has(&comment, "The work was done in another job");
    has(&comment, "policy checked here, verified there");
    assert!(step.summary.contains("Say fixed") || step.summary.contains(&head[..7]));
    assert_eq!(runner.project.calls(), 1, "no agent runs in the second job");
    // Once more, as a person does who runs the job again: everything is there already.
    runner.project.env("GITHUB_RUN_ATTEMPT", "2");
    let again = publish(&mut runner, &handed, &[]).expect(0);
    assert_eq!(again.output("status"), "success");
    assert_eq!(runner.at("feature"), head);
    assert_eq!(runner.server.pushes(), 1);
    assert!(runner.comment(number).is_some());
}

#[test]
fn a_job_that_is_cancelled_while_it_fetches_or_pushes_says_so() {
    for fetches in [true, false] {
        let (mut runner, number) = asked();
        let handed = work(&mut runner, FIX, 0);
        let mut publishing = publishing(&mut runner, &handed, &[]);
        let (began, go) = (
            runner.project.outside("began"),
            runner.project.outside("go"),
        );
        let files = (began.clone(), go.clone());
        let hold = move || {
            fs::write(&files.0, "").unwrap();
            wait_until("the end of the job", || files.1.exists());
        };
        if fetches {
            runner.server.before_next_fetch(hold)
        } else {
            runner.server.move_before_next_push(move |_| hold())
        }
        let mut child = publishing.stdout(Stdio::null()).spawn().unwrap();
        wait_until("the exchange", || began.exists());
        signal(child.id(), "TERM");
        let status = end_of(&mut child);
        fs::write(go, "").unwrap();
        let (stdout, stderr) = (Vec::new(), Vec::new());
        let output = Output {
            status,
            stdout,
            stderr,
        };
        let step = runner.ended(&output).expect(143);
        assert_eq!(step.output("status"), "cancelled", "{fetches}");
        let ends = conclusions(&runner);
        let cancelled = Some("cancelled".to_owned());
        assert!(!ends.is_empty() && ends.iter().all(|(_, end)| *end == cancelled));
        let comment = runner.comment(number).unwrap();
        assert!(comment.contains("cancelled"), "{comment}");
        assert_eq!(runner.server.pushes(), 0);
    }
}

#[test]
fn both_jobs_of_a_workflow_go_by_one_name() {
    let (mut runner, number) = asked();
    runner.project.env("GITHUB_JOB", "work");
    let handed = work(&mut runner, FIX, 0);
    runner.project.env("GITHUB_JOB", "publish");
    publish(&mut runner, &handed, &[]).expect(0);
    let name = |runner: &Runner| runner.github.state().checks.last().unwrap().name.clone();
    assert_eq!(name(&runner), "Sprag / Sprag / work");
    // So the job that works knows what was answered.
    runner.checkout("main");
    runner.project.env("GITHUB_JOB", "work");
    let step = runner.step(&["--agent-command", "false"]).expect(0);
    assert_eq!(step.output("status"), "no_work");
    // The name of another workflow is not believed.
    runner.project.env("GITHUB_JOB", "publish");
    forge(&handed, |summary| {
        summary["name"] = json!("Sprag / Other / fix")
    });
    publish(&mut runner, &handed, &[]).expect(0);
    assert_eq!(name(&runner), "Sprag / Sprag / publish");
    assert_eq!(runner.github.state().comments.len(), 3, "{number}");
}

#[test]
fn a_run_that_was_told_of_is_counted_once() {
    let (mut runner, number) = asked();
    let step = runner.by(FIX, &["--verify", CHECK, "--no-push"]).expect(0);
    assert_eq!(runner.server.pushes(), 0);
    let counted = counts(&runner, number);
    let handed = hand_over(&runner, &step);
    publish(&mut runner, &handed, &[]).expect(0);
    assert_eq!(runner.log("feature")[0], "Say fixed");
    assert_eq!(counts(&runner, number), counted);
}

/// Runs by day and what was answered, as the comment keeps them.
fn counts(runner: &Runner, number: u64) -> (Value, Value) {
    use base64::Engine as _;
    let comment = runner.comment(number).unwrap();
    let first = comment.lines().next().unwrap();
    let text = first.split(' ').nth(4).unwrap();
    let json = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap();
    let state: Value = serde_json::from_slice(&json).unwrap();
    (state["runs_by_day"].clone(), state["answered"].clone())
}

#[test]
fn a_failed_run_is_reported_and_its_exit_code_kept() {
    let (mut runner, number) = asked();
    let before = runner.at("feature");
    let handed = work(&mut runner, "printf worse > a.txt", 1);
    assert!(!handed.join("work.bundle").exists());
    let step = publish(&mut runner, &handed, &[]).expect(1);
    assert_eq!(step.output("status"), "failed");
    assert_eq!(runner.server.pushes(), 0);
    let failure = Some("failure".to_owned());
    assert_eq!(conclusions(&runner), [(before, failure)]);
    assert!(runner.comment(number).unwrap().contains("another job"));
}

#[test]
fn an_issue_gets_a_branch_and_a_pull_request() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    let number = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        state.open_issue("ada", "Widget is broken", "Make a.txt say fixed.")
    };
    let payload = label_event(number, "grace", "Widget is broken", "Make a.txt say fixed.");
    runner.event("issues", "refs/heads/main", &payload);
    let handed = work(&mut runner, FIX, 0);
    // The default branch moves on meanwhile, which is nothing to a branch of its own.
    runner.push("main", "c.txt", "c");
    let step = publish(&mut runner, &handed, &[]).expect(0);
    let name = format!("sprag/issue-{number}");
    assert_eq!(runner.file(&name, "a.txt"), "fixed");
    assert_eq!(step.output("branch"), name);
    assert!(step.output("pull-request-url").contains("/pull/"));
}

#[test]
fn a_wanted_pull_request_has_a_branch_of_its_own_whichever_job_wants_it() {
    for (both, plan) in [(true, true), (false, false)] {
        let mut runner = Runner::new(&[("a.txt", "broken")]);
        if plan {
            let text = "title: Mend it\ntasks:\n  - { id: only, title: Say fixed }\n";
            runner.push("main", "plans/mend.yaml", text);
            runner.checkout("main");
        }
        let main = runner.at("main");
        let inputs = if plan {
            json!({ "plan": "plans/mend.yaml" })
        } else {
            json!({ "prompt": "Make a.txt say fixed." })
        };
        let event = json!({ "repository": repository(), "ref": "refs/heads/main", "inputs": inputs,
            "sender": { "login": "ada", "type": "User" } });
        runner.event("workflow_dispatch", "refs/heads/main", &event);
        let want = |runner: &mut Runner, is: bool| {
            let kind = if is { "draft" } else { "" };
            runner.project.env("SPRAG_PULL_REQUEST", kind);
        };
        want(&mut runner, both);
        let handed = work(&mut runner, FIX, 0);
        want(&mut runner, true);
        let step = publish(&mut runner, &handed, &[]).expect(0);
        let branch = step.output("branch");
        if both && plan {
            assert_eq!(branch, "sprag/mend")
        } else {
            assert!(
                branch.starts_with("sprag/run-4711-"),
                "{both} {plan} {branch}"
            )
        }
        if both {
            let worked_on = fs::read_to_string(handed.join("summary.json")).unwrap();
            let worked_on: Value = serde_json::from_str(&worked_on).unwrap();
            assert_eq!(worked_on["branch"], branch);
        }
        assert_eq!(runner.file(branch, "a.txt"), "fixed");
        assert_eq!(runner.at("main"), main);
        let state = runner.github.state();
        let pulls = state.pulls.values().map(|pull| (&*pull.head, &*pull.base));
        assert_eq!(pulls.collect::<Vec<_>>(), [(branch, "main")]);
    }
}

#[test]
fn a_pull_request_that_cannot_be_opened_ends_with_4() {
    let mut runner = Runner::new(&[("a.txt", "broken")]);
    let number = {
        let mut state = runner.github.state();
        state.role("grace", "write");
        state.open_issue("ada", "Widget is broken", "Make a.txt say fixed.")
    };
    let payload = label_event(number, "grace", "Widget is broken", "Make a.txt say fixed.");
    runner.event("issues", "refs/heads/main", &payload);
    let handed = work(&mut runner, FIX, 0);
    let token = Token::job().may(Area::Pulls, Access::Read);
    runner.github.token(TOKEN, token);
    let step = publish(&mut runner, &handed, &[]).expect(4);
    assert_eq!(step.output("status"), "environment");
    assert_eq!(
        runner.file(&format!("sprag/issue-{number}"), "a.txt"),
        "fixed"
    );
}

#[test]
fn work_on_a_branch_that_has_moved_is_kept_on_another_one() {
    let (mut runner, number) = asked();
    let handed = work(&mut runner, FIX, 0);
    let theirs = runner.push("feature", "c.txt", "theirs");
    let step = publish(&mut runner, &handed, &[]).expect(4);
    assert_eq!(runner.at("feature"), theirs);
    let refs = git(
        &runner.bare(),
        &["for-each-ref", "refs/heads/sprag/rescue/"],
    );
    assert_eq!(refs.lines().count(), 1, "{refs}");
    let rescue = refs.trim().rsplit_once("refs/heads/").unwrap().1;
    assert_eq!(runner.file(rescue, "a.txt"), "fixed");
    assert_eq!(step.output("status"), "environment");
    assert!(runner.comment(number).unwrap().contains(rescue));
}

#[test]
fn work_for_a_pull_request_that_was_merged_in_between_is_kept_on_another_branch() {
    let (mut runner, number) = asked();
    let handed = work(&mut runner, FIX, 0);
    let before = runner.at("feature");
    close(&runner, true);
    let step = publish(&mut runner, &handed, &[]).expect(4);
    assert_eq!(runner.at("feature"), before);
    let rescue = &rescues(&runner)[0];
    assert_eq!(runner.file(rescue, "a.txt"), "fixed");
    assert_eq!(step.output("status"), "environment");
    let told = runner.comment(number).unwrap();
    has(&told, "merged during the run");
    has(&told, rescue);
}

#[test]
fn what_this_job_protects_is_not_pushed_whatever_the_other_one_did() {
    let (mut runner, number) = asked();
    let before = runner.at("feature");
    runner.project.env("SPRAG_PROTECTED_PATHS", "nothing/**");
    let script = format!("mkdir -p .github\nprintf x > .github/ci.yml\n{FIX}");
    let handed = work(&mut runner, &script, 0);
    runner.project.env("SPRAG_PROTECTED_PATHS", "");
    let step = publish(&mut runner, &handed, &[]).expect(3);
    assert_eq!(runner.at("feature"), before);
    assert_eq!(runner.server.pushes(), 0);
    assert_eq!(
        [step.output("status"), step.output("reason")],
        ["blocked", "policy_violation"]
    );
    let comment = runner.comment(number).unwrap();
    assert!(comment.contains("protected path"), "{comment}");
    assert_eq!(
        conclusions(&runner)[0].1.as_deref(),
        Some("action_required")
    );
}

#[test]
fn work_of_another_workflow_run_is_not_pushed() {
    let (mut runner, _) = asked();
    let before = runner.at("feature");
    let handed = work(&mut runner, FIX, 0);
    runner.project.env("GITHUB_RUN_ID", "4712");
    publish(&mut runner, &handed, &[]).expect(3);
    assert_eq!(runner.at("feature"), before);
}

#[test]
fn a_forged_directory_ends_with_2_and_nothing_is_pushed() {
    let (mut runner, _) = asked();
    let before = runner.at("feature");
    let handed = work(&mut runner, FIX, 0);
    let honest = fs::read(handed.join("summary.json")).unwrap();
    let refused = |runner: &mut Runner, expected: &str| {
        let step = publish(runner, &handed, &[]).expect(2);
        assert!(step.run.stderr.contains(expected), "{}", step.run.stderr);
        assert_eq!(step.output("status"), "invalid");
        assert_eq!(runner.at("feature"), before);
        fs::remove_file(handed.join("summary.json")).unwrap();
        fs::write(handed.join("summary.json"), &honest).unwrap();
    };
    forge(&handed, |summary| summary["status"] = json!("unverified"));
    forge(&handed, |summary| summary["exit_code"] = json!(1));
    refused(&mut runner, "exit_code 1 does not match status unverified");
    forge(&handed, |summary| {
        summary["commits"] = json!(["a".repeat(40)])
    });
    refused(&mut runner, "which work.bundle does not have");
    forge(&handed, |summary| summary["branch"] = json!("main"));
    refused(&mut runner, "the run worked on main");
    forge(&handed, |summary| summary["run_id"] = json!("../../main"));
    refused(&mut runner, "run_id is not the id of a run");
    fs::remove_file(handed.join("summary.json")).unwrap();
    symlink("/etc/hostname", handed.join("summary.json")).unwrap();
    refused(&mut runner, "not a regular file");
    fs::write(handed.join("work.bundle"), "# v2 git bundle\n").unwrap();
    refused(&mut runner, "work.bundle: the bundle is refused");
    fs::remove_file(handed.join("work.bundle")).unwrap();
    refused(&mut runner, "there is no work.bundle");
    assert_eq!(runner.server.pushes(), 0);
}

#[test]
fn commits_made_by_hand_are_checked_one_by_one() {
    let (mut runner, _) = asked();
    let before = runner.at("feature");
    let handed = work(&mut runner, FIX, 0);
    let link = runner.github.url().to_owned() + "/acme/widget/actions/runs/4711";
    let bundle = |runner: &Runner, script: &str, extra: &[&str]| {
        let project = &runner.project;
        runner.checkout("feature");
        let (name, email) = BOT;
        project.git(&["config", "user.name", name]);
        project.git(&["config", "user.email", email]);
        let output = Command::new("sh")
            .args(["-ec", script])
            .current_dir(project.repo())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        project.git(&["add", "--all"]);
        let message = format!("Hi @org/team\n\nFixes #1\n\nSprag-Run: {link}\n");
        let commit = ["commit", "--quiet", "--message", &message];
        project.git(&[extra, &commit].concat());
        project.git(&["update-ref", "refs/sprag/result", "HEAD"]);
        let path = handed.join("work.bundle");
        let not = format!("^{before}");
        let create = ["bundle", "create", "-q", path.to_str().unwrap()];
        project.git(&[&create[..], &["refs/sprag/result", &not]].concat());
    };
    forge(&handed, |summary| summary["commits"] = json!([]));
    for (script, told) in [
        ("ln -s /etc/passwd x", "a symbolic link that leads outside"),
        (
            "truncate -s 101M large.bin",
            "large.bin has 101 MiB, more than 100",
        ),
        (
            "mkdir .sprag; echo x > .sprag/config.yaml",
            "protected path",
        ),
    ] {
        bundle(&runner, script, &[]);
        let step = publish(&mut runner, &handed, &[]).expect(3);
        assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
        assert_eq!(runner.at("feature"), before);
    }
    for (extra, told) in [
        (["-c", "user.name=Mallory"], "has the author Mallory <"),
        (
            ["-c", "committer.email=m@example.invalid"],
            "has the committer github-actions[bot] <m@example.invalid>",
        ),
        (
            ["-c", "i18n.commitEncoding=latin1"],
            "has the header encoding",
        ),
    ] {
        bundle(&runner, "echo fine > fine.txt", &extra);
        let step = publish(&mut runner, &handed, &[]).expect(3);
        assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
        assert_eq!(runner.at("feature"), before);
    }
    bundle(&runner, "echo fine > fine.txt", &[]);
    publish(&mut runner, &handed, &[]).expect(0);
    let message = git(&runner.bare(), &["log", "-1", "--format=%B", "feature"]);
    assert!(
        message.starts_with("Hi org/team\n\nFixes issue 1\n\nSprag-Run: "),
        "{message}"
    );
}

#[test]
fn an_event_that_asks_for_nothing_publishes_nothing() {
    let (mut runner, number) = asked();
    let handed = work(&mut runner, FIX, 0);
    let payload = comment_event(number, true, 1, "grace", "Thank you");
    runner.event("issue_comment", "refs/heads/main", &payload);
    let step = publish(&mut runner, &handed, &[]).expect(3);
    assert_eq!(step.output("status"), "blocked");
    assert_eq!(runner.server.pushes(), 0);
}

#[test]
fn a_secret_that_only_the_publishing_job_knows_is_not_pushed() {
    const KEY: &str = "canary/publish+key-7f3a9c";
    let escaped: String = KEY
        .chars()
        .map(|c| format!("\\\\u{:04x}", u32::from(c)))
        .collect();
    for content in [KEY, &escaped] {
        let (mut runner, _) = asked();
        let before = runner.at("feature");
        let handed = work(
            &mut runner,
            &format!("{FIX}\nprintf '%s' '{content}' > b.txt"),
            0,
        );
        runner.project.env("PUBLISH_API_KEY", KEY);
        let step = publish(&mut runner, &handed, &[]).expect(3);
        assert_eq!(runner.at("feature"), before);
        let told = "the value of PUBLISH_API_KEY is in b.txt";
        assert!(step.run.stdout.contains(told), "{}", step.run.stdout);
        assert!(!step.run.stdout.contains(KEY));
    }
}

#[test]
fn a_forged_cost_counts_as_at_most_what_one_run_may_cost() {
    let (mut runner, _) = asked();
    let handed = work(&mut runner, FIX, 0);
    forge(&handed, |summary| {
        summary["usage"]["cost_usd"] = json!(1000.0);
    });
    publish(&mut runner, &handed, &[]).expect(0);
    let names = ["for-each-ref", "--format=%(refname)", "refs/sprag/spend"];
    let names = git(&runner.bare(), &names);
    let counted: Vec<&str> = names
        .lines()
        .filter_map(|name| name.rsplit('-').next())
        .collect();
    // Ten dollars, the limit of this job, in parts of a dollar.
    assert_eq!(counted, ["100000"], "{names}");
}
