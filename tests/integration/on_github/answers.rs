//! Comments that need no agent: help, status and stop.

use super::{FIX, IS_FIXED, own_comments, with_pull};
use crate::support::github::{Access, Area, Subject, Token, WorkflowRun};
use crate::support::proc::{signal, wait_until};
use crate::support::runner::{Runner, TOKEN};
use std::process::Stdio;

fn answered(runner: &mut Runner, number: u64, body: &str) -> (u64, String) {
    let id = runner.say(number, "grace", body);
    let step = runner.by(FIX, &["--verify", IS_FIXED]).expect(0);
    assert_eq!(step.output("status"), "no_work");
    (id, runner.comment(number).unwrap())
}

#[test]
fn help_is_one_comment_however_often_it_is_asked_for() {
    let mut runner = with_pull();
    let (id, first) = answered(&mut runner, 1, "/sprag help");
    assert!(first.contains("`/sprag continue`"), "{first}");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["rocket"]);
    let (_, second) = answered(&mut runner, 1, "/sprag");
    assert_eq!(second.matches("`/sprag continue`").count(), 1, "{second}");
    runner.assert_untouched();
}

#[test]
fn status_leaves_the_report_where_it_is() {
    let mut runner = with_pull();
    let (_, none) = answered(&mut runner, 1, "/sprag status");
    assert!(!none.contains("Say fixed"), "{none}");
    runner.assert_untouched();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    runner.by(FIX, &["--verify", IS_FIXED]).expect(0);
    let report = runner.comment(1).unwrap();
    let text = |comment: &str| comment.split_once('\n').unwrap().1.trim().to_owned();
    let (id, after) = answered(&mut runner, 1, "/sprag status");
    assert_eq!(text(&after), text(&report));
    assert_eq!(runner.reactions(Subject::Comment(id)), ["rocket"]);
    let (_, helped) = answered(&mut runner, 1, "/sprag help");
    assert!(helped.contains(&text(&report)), "{helped}");
    assert!(helped.contains("`/sprag continue`"), "{helped}");
    assert_eq!(runner.project.calls(), 1);
    assert_eq!(own_comments(&runner), 1);
}

/// A job works for a pull request, for one that somebody pushes to meanwhile, or for an issue.
#[test]
fn stop_cancels_the_workflow_run_that_is_under_way_wherever_its_check_run_is() {
    for (is_pull, is_moved) in [(true, false), (true, true), (false, false)] {
        let mut runner = with_pull();
        let number = if is_pull {
            1
        } else {
            runner.github.state().open_issue("ada", "Broken", "It is.")
        };
        runner.say(number, "grace", "/sprag make a.txt say fixed");
        let running = WorkflowRun {
            status: "in_progress".to_owned(),
            attempt: 1,
            ..WorkflowRun::default()
        };
        runner.github.state().runs.insert(4711, running);
        let agent = runner.project.agent("touch $OUT/under-way\nexec sleep 600");
        let mut command = runner.command(&["--agent-command", &agent]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let under_way = runner.project.outside("under-way");
        wait_until("the agent works", || under_way.exists());
        wait_until("there is a comment", || own_comments(&runner) == 1);
        wait_until("the check run is open", || {
            let state = runner.github.state();
            let mut checks = state.checks.iter();
            checks.any(|check| check.status == "in_progress")
        });
        if is_moved {
            runner.push("feature", "theirs.txt", "theirs");
        }

        runner.project.env("GITHUB_RUN_ID", "4712");
        let id = runner.say(number, "ada", "/sprag stop");
        let stop = runner.step(&[]).expect(0);
        assert_eq!(stop.output("status"), "no_work");
        assert!(stop.output("summary").contains("1 run asked to stop"));
        assert_eq!(runner.reactions(Subject::Comment(id)), ["rocket"]);
        let cancelled = runner.github.state().runs[&4711].conclusion.clone();
        assert_eq!(cancelled.as_deref(), Some("cancelled"));
        // What GitHub does then to the job of that run.
        signal(child.id(), "INT");
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
        let ended = runner.checks().into_iter().map(|(_, ended)| ended);
        assert_eq!(ended.collect::<Vec<_>>(), ["cancelled"]);
        assert_eq!((own_comments(&runner), runner.server.pushes()), (1, 0));

        let id = runner.say(number, "ada", "/sprag stop");
        let stop = runner.step(&[]).expect(0);
        assert!(stop.output("summary").contains("no run is active"));
        assert_eq!(runner.reactions(Subject::Comment(id)), ["rocket"]);
    }
}

#[test]
fn a_stop_that_fails_says_so_where_it_was_asked_for_and_tries_every_run() {
    let mut runner = with_pull();
    runner.say(1, "grace", "/sprag make a.txt say fixed");
    let agent = runner.project.agent("touch $OUT/under-way\nexec sleep 600");
    let mut command = runner.command(&["--agent-command", &agent]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let under_way = runner.project.outside("under-way");
    wait_until("the agent works", || under_way.exists());
    wait_until("there is a comment", || own_comments(&runner) == 1);

    runner.project.env("GITHUB_RUN_ID", "4712");
    runner.say(1, "ada", "/sprag status");
    let status = runner.step(&[]).expect(0);
    let told = status.output("summary");
    assert!(told.contains("workflow run 4711 works here"), "{told}");

    let token = Token::job().may(Area::Actions, Access::Read);
    runner.github.token(TOKEN, token);
    let id = runner.say(1, "ada", "/sprag stop");
    let stop = runner.step(&[]).expect(4);
    assert_eq!(stop.output("status"), "environment");
    assert_eq!(runner.reactions(Subject::Comment(id)), ["confused"]);
    let comment = runner.comment(1).unwrap();
    for part in [
        "running, 0 of 1 task done",
        "A run could not be cancelled",
        "`actions: write`",
    ] {
        let shown = comment.replace("\\`", "`");
        assert!(shown.contains(part), "{comment}");
    }
    signal(child.id(), "INT");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
}
