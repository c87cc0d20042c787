use super::*;
use crate::report::samples;

fn commands(summary: &RunSummary) -> Vec<String> {
    let steps = next_steps(summary).into_iter();
    let commands = steps.filter_map(|step| match step {
        NextStep::Command { command, .. } => Some(command),
        _ => None,
    });
    commands.collect()
}

#[test]
fn every_run_that_is_not_a_success_names_a_command() {
    for (name, summary) in samples::all() {
        assert_eq!(commands(&summary).is_empty(), name == "success", "{name}");
    }
}

#[test]
fn a_job_names_no_command_for_a_machine_that_is_gone() {
    let job = |phrase: Option<&str>| Continuation::Job {
        phrase: phrase.map(str::to_owned),
        merges_base: false,
    };
    for (name, mut summary) in samples::all() {
        summary.facts.continuation = job(Some("/sprag"));
        let steps = next_steps(&summary);
        let told = format!("{steps:?} {:?}", kept(&summary));
        assert!(!told.contains("sprag run"), "{name}: {told}");
        assert!(!told.contains("still in the work tree"), "{name}: {told}");
        let done = matches!(
            summary.status,
            None | Some(RunStatus::Success | RunStatus::Unverified)
        );
        let comments = |step: &NextStep| matches!(step, NextStep::Comment { .. });
        assert_eq!(!done, steps.iter().any(comments), "{name}: {told}");
        summary.facts.continuation = job(None);
        let told = format!("{:?}", next_steps(&summary));
        assert_eq!(
            !done,
            told.contains("start the workflow again"),
            "{name}: {told}"
        );
        summary.facts.continuation = Continuation::Anew;
        let told = format!("{:?}", next_steps(&summary));
        assert!(!told.contains("--resume"), "{name}: {told}");
    }
}

#[test]
fn a_draft_whose_commit_did_not_arrive_is_not_said_to_have_changed_nothing() {
    let mut summary = samples::planning_only();
    summary.facts.continuation = Continuation::Anew;
    let told = |summary: &RunSummary| format!("{:?}", next_steps(summary));
    assert!(told(&summary).contains("nothing was changed here"));
    summary.status = Some(RunStatus::Environment);
    summary.commits = vec!["9b1e44c0aa27ffff".into()];
    summary.facts.branch = Some("sprag/plan-csv".into());
    let mut push = PushLine {
        branch: "sprag/plan-csv".into(),
        detail: "refused\n  by a rule".into(),
        ..PushLine::default()
    };
    summary.push = Some(push.clone());
    let here = told(&summary);
    let own = "push sprag/plan-csv, which has the commit 9b1e44c0aa27,";
    assert!(here.contains(own), "{here}");
    assert!(here.contains("cause: refused   by a rule\""), "{here}");
    assert!(!here.contains("nothing was changed"), "{here}");
    push.rescue = Some("sprag/rescue".into());
    summary.push = Some(push.clone());
    let rescued = told(&summary);
    assert!(rescued.contains("pull request for the branch sprag/rescue"));
    push.pushed = true;
    summary.push = Some(push);
    let pushed = told(&summary);
    assert!(pushed.contains("pull request for the branch sprag/plan-csv"));
}

#[test]
fn only_pushed_work_of_a_job_is_said_to_last() {
    let mut summary = samples::partial();
    summary.facts.continuation = Continuation::Job {
        phrase: None,
        merges_base: false,
    };
    let lasts =
        |summary: &RunSummary| format!("{:?}", next_steps(summary)).contains("not repeated");
    assert!(!summary.commits.is_empty() && !lasts(&summary));
    for is_pushed in [false, true] {
        let push = samples::pushed();
        summary.push = Some(PushLine {
            pushed: is_pushed,
            ..push
        });
        assert_eq!(lasts(&summary), is_pushed);
    }
}

#[test]
fn work_that_is_only_in_its_job_is_neither_on_the_branch_nor_continued() {
    let mut summary = samples::partial();
    summary.status = Some(RunStatus::Environment);
    let told = |summary: &mut RunSummary, phrase: Option<&str>| {
        summary.facts.continuation = Continuation::Job {
            phrase: phrase.map(str::to_owned),
            merges_base: false,
        };
        format!("{:?} {:?}", next_steps(summary), kept(summary))
    };
    summary.push = Some(PushLine {
        pushed: false,
        rescue: None,
        detail: "refused; the commits are in work.bundle of the run directory".into(),
        cause: Some("refused".into()),
        ..samples::pushed()
    });
    let kept_on_github = told(&mut summary, Some("/sprag"));
    assert!(kept_on_github.contains("/sprag continue"));
    assert!(kept_on_github.contains("remove this cause: refused\""));
    assert!(kept_on_github.contains("1 commit, not on the remote"));
    let only_here = "GitHub did not take the work: refused".to_owned();
    summary.warn(only_here, Some(WarningTopic::OnlyInJob));
    let lost = told(&mut summary, Some("/sprag"));
    assert!(lost.contains("/sprag retry") && lost.contains("have the work done again"));
    let lost = told(&mut summary, None);
    assert!(lost.contains("start the workflow again to have the work done again"));

    let push = summary.push.as_mut().unwrap();
    push.rescue = Some("sprag/rescue/1".into());
    let rescued = told(&mut summary, None);
    assert!(rescued.contains("1 commit on sprag/rescue/1"));
    assert!(rescued.contains("continue where this run stopped"));
}

#[test]
fn a_hook_is_named_only_if_it_refused_the_commit() {
    let mut summary = samples::partial();
    summary.reason = Some(Reason::CommitRejected);
    let task = summary.tasks.len() - 1;
    for (by_hook, is_named) in [(None, true), (Some(true), true), (Some(false), false)] {
        summary.tasks[task].refused_by_hook = by_hook;
        let told = format!("{:?}", next_steps(&summary));
        assert_eq!(told.contains("commit hook"), is_named, "{by_hook:?}");
    }
}

#[test]
fn paths_are_quoted_for_the_shell() {
    let mut summary = samples::partial();
    summary.facts.run_dir = "/runs/a b/$(x)".into();
    assert_eq!(
        commands(&summary),
        [
            "sprag run --resume --run-dir '/runs/a b/$(x)'",
            "git apply '/runs/a b/$(x)/patches/t2.patch'",
            "git apply -R '/runs/a b/$(x)/patches/t2.patch'"
        ]
    );
}

#[test]
fn what_is_kept_is_only_what_is_there() {
    assert_eq!(kept(&samples::planning_only()), Vec::<String>::new());
    let mut summary = samples::partial();
    assert_eq!(
        kept(&summary),
        [
            "1 commit on feature/csv",
            "the work of t2 as a patch: /runs/01H-run/patches/t2.patch",
            "the changes of t2 are still in the work tree, not committed",
        ]
    );
    // The run continued after a failed task, so it restored the tree.
    summary.tasks[0].status = TaskEnd::Failed;
    assert!(
        kept(&summary)
            .iter()
            .all(|entry| !entry.contains("work tree"))
    );
}

#[test]
fn nobody_is_told_to_discard_what_was_there_before_the_run() {
    let mut summary = samples::partial();
    assert!(commands(&summary).iter().any(|it| it.contains("apply -R")));
    summary.facts.allow_dirty = true;
    assert!(commands(&summary).iter().all(|it| !it.contains("apply -R")));
    let patch = "the work of t2 and everything else that was not committed as a patch: /runs/01H-run/patches/t2.patch";
    assert!(kept(&summary).iter().any(|entry| entry == patch));
}

#[test]
fn what_is_missing_comes_before_going_on() {
    let mut summary = samples::planning_only();
    summary.status = Some(RunStatus::Environment);
    summary.reason = Some(Reason::AgentUnavailable);
    let steps = next_steps(&summary);
    let general = "fix the problem named above, then continue";
    assert!(steps.contains(&NextStep::Advice(general.into())));
    assert!(
        matches!(steps.last(), Some(NextStep::Command { .. })),
        "{steps:?}"
    );
    let remedies = ["install it: npm install codex", "or use another agent"];
    let topic = WarningTopic::Error {
        remedies: remedies.map(str::to_owned).to_vec(),
    };
    summary.warn("codex was not found".into(), Some(topic));
    summary.warn("the log\n  is incomplete".into(), None);
    let steps = next_steps(&summary);
    assert_eq!(
        steps[..2],
        remedies.map(|what| NextStep::Advice(what.into()))
    );
}

#[test]
fn commits_that_jj_has_on_no_bookmark_are_named_with_its_own_command() {
    let mut summary = samples::success();
    (summary.facts.branch, summary.push) = (None, None);
    assert!(commands(&summary)[0].starts_with("git branch NAME "));
    summary.warn("no bookmark".into(), Some(WarningTopic::NoBookmark));
    assert!(commands(&summary)[0].starts_with("jj bookmark create NAME -r "));
}
