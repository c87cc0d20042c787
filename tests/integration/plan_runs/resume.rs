//! A run whose process was killed is taken up where it died.

use super::signals::{ended, fifo, heard, is_alive, send, started};
use crate::support::has;
use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{
    FIX, assert_nothing_recorded, end, ends, files_of, fixable, several, statuses, warnings,
};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// Kills `sprag` once its child has written to the pipe `working`, and returns what that wrote.
fn killed(project: &Project, agent: &str) -> String {
    let mut child = started(project, agent);
    let said = heard(project, "working");
    send("-KILL", &child.id().to_string());
    child.wait().unwrap();
    said
}

fn resume(project: &Project, agent: &str) -> Run {
    project.sprag(&["run", "--resume", "--agent-command", agent])
}

#[test]
fn killed_in_a_turn() {
    let mut project = fixable();
    // In a sandbox, nothing of the turn would be left to end.
    project.env("SPRAG_SANDBOX", "off");
    fifo(&project, "working");
    let head = project.head();
    let agent = project.agent(
        "[ $N = 1 ] && { echo half > b.txt; echo $$ > $OUT/working; sleep 1000; }; echo fixed > a.txt; echo Done.",
    );
    let pid = killed(&project, &agent);
    assert!(is_alive(&pid), "nobody was there to end it");
    assert_nothing_recorded(&project, &head);
    let run = resume(&project, &agent).expect(0);
    assert!(!is_alive(&pid));
    assert_eq!(project.calls(), 2);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(
        run.task(0)["attempts"],
        1,
        "the turn that died is no attempt"
    );
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "b.txt", "plan.yaml"]);
    assert_eq!(project.commits(), 3);
    assert_eq!(project.status(), "");
    assert_eq!(project.run_dirs().len(), 1);
    assert!(
        warnings(&run)
            .iter()
            .any(|text| text.contains("of the interrupted run were still running")),
        "{:?}",
        warnings(&run)
    );
}

#[test]
fn killed_in_a_turn_that_had_done_the_work() {
    let project = fixable();
    fifo(&project, "working");
    let agent = project.agent("[ $N = 1 ] && { echo fixed > a.txt; echo $$ > $OUT/working; sleep 1000; }; echo 'Plan: I will edit a.txt.'");
    killed(&project, &agent);
    // The turn goes on from where it began: what it did before counts.
    let run = resume(&project, &agent).expect(0);
    assert_eq!(project.calls(), 2);
    assert_eq!(run.summary["totals"]["nudges"], 0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
}

#[test]
fn killed_in_a_check() {
    let mut project = Project::new(&[("a.txt", "broken\n")]);
    // The first check is then the one of the work.
    project.env("SPRAG_BASELINE", "off");
    let once = project.outside("once");
    let check = project.check(&format!(
        "echo report > report.xml; test -e {once} || {{ touch {once}; echo $$ > {pipe}; sleep 1000; }}; grep -q fixed a.txt",
        once = once.display(),
        pipe = project.outside("working").display()
    ));
    project.write("plan.yaml", &plan(&check));
    project.commit_all("plan");
    fifo(&project, "working");
    let agent = project.agent(FIX);
    let pid = killed(&project, &agent);
    let run = resume(&project, &agent).expect(0);
    assert!(!is_alive(&pid));
    assert_eq!(project.calls(), 1);
    assert_eq!(project.checks(), 2);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    // What only the check made is still known as such.
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "plan.yaml"]);
    assert_eq!(project.status(), "?? report.xml");
}

/// A `git` that stops when the branch is to be moved, before or after it did so.
fn stopping_git(project: &mut Project, after: bool) {
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|path| path.is_file())
        .unwrap();
    let out = project.outside("");
    let act = if after {
        format!("{} \"$@\" || exit; ", real.display())
    } else {
        String::new()
    };
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *'update-ref '*' -m commit'*)\n  if mkdir {out}/once 2> /dev/null; then {act}echo $$ > {out}/working; exec sleep 1000; fi ;;\nesac\nexec {real} \"$@\"\n",
        out = out.display(),
        real = real.display(),
    );
    let bin = out.join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("git"), script).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{path}", bin.display()));
}

#[test]
fn killed_right_before_the_commit_lands() {
    let mut project = fixable();
    fifo(&project, "working");
    let head = project.head();
    stopping_git(&mut project, false);
    let agent = project.agent(FIX);
    let pid = killed(&project, &agent);
    send("-KILL", &pid);
    assert_nothing_recorded(&project, &head);
    let run = resume(&project, &agent).expect(0);
    assert_eq!(project.calls(), 1);
    assert_eq!(
        project.checks(),
        3,
        "the permit to commit died with the process that saw the checks pass"
    );
    assert_eq!(project.commits(), 3);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done"]
    );
    assert_eq!(run.summary["commits"], serde_json::json!([project.head()]));
    assert_eq!(project.status(), "");
}

#[test]
fn killed_right_after_the_commit_landed() {
    let mut project = fixable();
    fifo(&project, "working");
    stopping_git(&mut project, true);
    let agent = project.agent(FIX);
    let pid = killed(&project, &agent);
    send("-KILL", &pid);
    let landed = project.head();
    assert_eq!(project.commits(), 3);
    let run = resume(&project, &agent).expect(0);
    assert_eq!(project.head(), landed, "it is not made twice");
    assert_eq!(project.calls(), 1);
    assert_eq!(project.checks(), 2);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(run.task(0)["commit"], landed.as_str());
    assert_eq!(run.summary["commits"], serde_json::json!([landed]));
    assert_eq!(statuses(&project.read("plan.yaml")), ["done"]);
    assert_eq!(project.status(), "");
}

/// No task's record leads to the commit with the status of a plan in which nothing was to be done.
#[test]
fn killed_right_after_the_status_of_the_plan_landed() {
    let plan = plan("grep -qx fixed a.txt");
    let mut project = Project::new(&[("a.txt", "fixed\n"), ("plan.yaml", &plan)]);
    fifo(&project, "working");
    stopping_git(&mut project, true);
    let agent = project.agent("echo 'ALREADY_SATISFIED: it is there'");
    let pid = killed(&project, &agent);
    send("-KILL", &pid);
    let landed = project.head();
    let run = resume(&project, &agent).expect(0);
    assert_eq!(project.head(), landed, "it is not made twice");
    assert_eq!(run.summary["commits"], serde_json::json!([landed]));
    let made = |name: &&str| *name == "commit.created";
    assert_eq!(run.event_names().into_iter().filter(made).count(), 1);
    assert_eq!(project.status(), "");
}

/// A run that failed and left `a.txt` changed.
fn failed() -> (Project, String) {
    let project = fixable();
    let agent = project.agent("[ $N = 1 ] && echo wrong > a.txt || echo fixed > a.txt; echo Done.");
    project.run(&agent, &["--max-retries", "0"]).expect(1);
    (project, agent)
}

#[test]
fn dirt_of_somebody_else_is_not_taken_for_the_agents() {
    let (project, agent) = failed();
    project.write("mine.txt", "mine\n");
    let refused = resume(&project, &agent).expect(2);
    has(
        &refused.stderr,
        "files were changed since the run ended:\n  mine.txt\n",
    );
    assert_eq!(project.calls(), 1);
    assert_eq!(project.status(), " M a.txt\n?? mine.txt");
    fs::remove_file(project.repo().join("mine.txt")).unwrap();
    resume(&project, &agent).expect(0);
    assert_eq!(project.commits(), 3);
}

#[test]
fn what_somebody_else_writes_into_a_file_of_the_agent_is_not_taken_for_the_agents() {
    let (project, agent) = failed();
    project.write("a.txt", "mine\n");
    let refused = resume(&project, &agent).expect(2);
    let words = "files were changed since the run ended:\n  a.txt\n";
    assert!(refused.stderr.contains(words), "{}", refused.stderr);
    assert_eq!(
        (project.calls(), project.read("a.txt").as_str()),
        (1, "mine\n")
    );
    // What the agent left, and what was there before it, are as good.
    project.write("a.txt", "wrong\n");
    resume(&project, &agent).expect(0);
    let (project, agent) = failed();
    project.git(&["restore", "a.txt"]);
    resume(&project, &agent).expect(0);
    assert_eq!(project.commits(), 3);
}

#[test]
fn a_run_that_cannot_be_resumed_keeps_its_end() {
    let (project, agent) = failed();
    let dir = project.run_dirs().remove(0);
    let record = || {
        [
            "summary.json",
            "events.jsonl",
            "report.html",
            "state/events.jsonl",
            "history.jsonl",
        ]
        .map(|name| fs::read_to_string(dir.join(name)).unwrap())
    };
    let before = record();
    project.git(&["commit", "--quiet", "--all", "--message", "mine"]);
    let refused = resume(&project, &agent).expect(2);
    has(&refused.stderr, "the run cannot be resumed");
    assert_eq!(record(), before);
    let listed = project.sprag(&["runs"]).expect(0).stdout;
    assert!(
        listed.contains("failed") && !listed.contains("invalid"),
        "{listed}"
    );
    project.git(&["reset", "--quiet", "HEAD~1"]);
    resume(&project, &agent).expect(0);
    assert_eq!(project.git(&["show", "HEAD:a.txt"]), "fixed");
}

#[test]
fn for_an_edited_plan_a_new_run_is_named() {
    let (project, agent) = failed();
    project.write("mine.txt", "mine\n");
    let kept = "a resumed run keeps its plan: for the edited one, commit it";
    let refused = resume(&project, &agent).expect(2);
    assert!(!refused.stderr.contains(kept), "{}", refused.stderr);
    let plan = project.read("plan.yaml");
    project.write("plan.yaml", &format!("goal: Say more\n{plan}"));
    let refused = resume(&project, &agent).expect(2);
    assert!(refused.stderr.contains(kept), "{}", refused.stderr);
}

#[test]
fn another_branch_is_another_place() {
    let (project, agent) = failed();
    project.git(&["checkout", "--quiet", "-b", "other"]);
    let refused = resume(&project, &agent).expect(2);
    has(&refused.stderr, "and now it is other at");
}

#[test]
fn a_run_that_kept_going_is_resumed_after_its_plan_end_commit() {
    let project = several(&["one", "two"]);
    let agent = project
        .agent("[ $N = 2 ] && { echo 'FAILED: no key'; exit; }; touch $SPRAG_TASK_ID; echo Done.");
    project.run(&agent, &["--keep-going"]).expect(3);
    assert_eq!(project.status(), "");
    let run = resume(&project, &agent).expect(0);
    assert_eq!(ends(&run), [("done", "verified"), ("done", "verified")]);
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done", "done"]
    );
    assert_eq!(project.status(), "");
}

#[test]
fn commits_of_an_agent_that_was_interrupted_are_gone_on_with() {
    let project = fixable();
    fifo(&project, "working");
    let agent = project.agent(
        "[ $N = 1 ] && { echo half > b.txt; git add b.txt; git commit --quiet --message own; echo $$ > $OUT/working; sleep 1000; }; echo fixed > a.txt; echo Done.",
    );
    let head = project.head();
    let child = started(&project, &agent);
    heard(&project, "working");
    send("-TERM", &child.id().to_string());
    ended(&project, child).expect(143);
    assert_nothing_recorded(&project, &head);
    assert_eq!(project.read("b.txt"), "half\n");
    resume(&project, &agent).expect(0);
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "b.txt", "plan.yaml"]);
    assert_eq!(project.commits(), 3);
    assert_eq!(project.status(), "");
}

#[test]
fn branches_and_tags_that_are_made_after_an_interruption_stay() {
    let project = fixable();
    fifo(&project, "working");
    let agent = project.agent(
        "[ $N = 1 ] && { echo half > b.txt; git branch planted; echo $$ > $OUT/working; sleep 1000; }; echo fixed > a.txt; echo Done.",
    );
    let child = started(&project, &agent);
    heard(&project, "working");
    send("-INT", &child.id().to_string());
    ended(&project, child).expect(130);
    project.git(&["branch", "mine"]);
    project.git(&["tag", "v1"]);
    resume(&project, &agent).expect(0);
    let refs = project.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/heads",
        "refs/tags",
    ]);
    assert_eq!(refs, "refs/heads/main\nrefs/heads/mine\nrefs/tags/v1");
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "b.txt", "plan.yaml"]);
}

#[test]
fn what_a_resumed_turn_does_to_refs_is_undone() {
    let project = fixable();
    fifo(&project, "working");
    let agent = project.agent(
        "[ $N = 1 ] && { echo half > b.txt; echo $$ > $OUT/working; sleep 1000; }; git branch -f mine HEAD~1; git branch planted; echo fixed > a.txt; echo Done.",
    );
    let child = started(&project, &agent);
    heard(&project, "working");
    send("-INT", &child.id().to_string());
    ended(&project, child).expect(130);
    project.git(&["branch", "mine"]);
    let run = resume(&project, &agent).expect(3);
    assert_eq!(end(run.task(0)), ("blocked", "policy_violation"));
    let refs = project.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(refs, "refs/heads/main\nrefs/heads/mine");
    assert_eq!(project.git(&["rev-parse", "mine"]), project.head());
}

#[test]
fn what_a_person_does_to_configuration_and_hooks_after_the_end_stays_and_counts() {
    let project = fixable();
    project.hook("commit-msg", "echo no ticket >&2; exit 1");
    let agent = project.agent(FIX);
    let failed = project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert_eq!(end(failed.task(0)), ("failed", "commit_rejected"));
    project.hook("commit-msg", "sed -i '1s/^/T-1 /' \"$1\"");
    project.git(&["config", "user.name", "Somebody"]);
    project.git(&["remote", "add", "fork", "https://example.invalid/fork"]);
    fs::write(project.repo().join(".git/info/exclude"), "*.mine\n").unwrap();
    project.write("x.mine", "");
    let run = resume(&project, &agent).expect(0);
    let told = ".git/config, .git/hooks, .git/info changed after the end of the run; it is used as it is now";
    assert!(warnings(&run).contains(&told), "{:?}", warnings(&run));
    assert!(
        project
            .git(&["log", "-1", "--format=%an %s"])
            .starts_with("Somebody T-1 ")
    );
    assert_eq!(project.git(&["remote"]), "fork");
    let rules = fs::read_to_string(project.repo().join(".git/info/exclude"));
    assert_eq!(rules.unwrap(), "*.mine\n");
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "plan.yaml"]);
}

#[test]
fn what_the_agent_did_to_hooks_counts_for_nothing_when_the_run_is_resumed() {
    let project = fixable();
    project.write(
        "hooks/commit-msg",
        "#!/bin/sh\necho no ticket >&2; exit 1\n",
    );
    let hook = project.repo().join("hooks/commit-msg");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    project.commit_all("hooks");
    project.git(&["config", "core.hooksPath", "hooks"]);
    let agent = project.agent("echo '#!/bin/sh' > hooks/commit-msg; echo fixed > a.txt; git config user.name Agent; echo Done.");
    let failed = project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert_eq!(end(failed.task(0)), ("failed", "commit_rejected"));
    project.git(&["remote", "add", "fork", "https://example.invalid/fork"]);
    let run = resume(&project, &agent).expect(1);
    assert_eq!(end(run.task(0)), ("failed", "commit_rejected"));
    assert_eq!(project.git(&["remote"]), "fork");
    assert_eq!(project.git(&["config", "user.name"]), "Tester");
}

#[test]
fn a_killed_run_does_not_take_the_commits_of_another_run_for_its_agents() {
    let project = fixable();
    fifo(&project, "working");
    let agent = project.agent(
        "[ $N = 1 ] && { echo half > b.txt; echo $$ > $OUT/working; sleep 1000; }; echo fixed > a.txt; echo Done.",
    );
    killed(&project, &agent);
    project.git(&["stash", "--quiet", "--include-untracked"]);
    let other = ["run", "Do c", "--agent-command", "touch c.txt; echo Done."];
    project.sprag(&other).expect(0);
    let head = project.head();
    project.git(&["stash", "pop", "--quiet"]);
    let refused = resume(&project, &agent).expect(2);
    let said = format!("error: another run has made the commit {}", &head[..12]);
    assert!(refused.stderr.starts_with(&said), "{}", refused.stderr);
    assert_eq!(
        (project.head(), project.status()),
        (head, "?? b.txt".to_owned())
    );
    project.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    resume(&project, &agent).expect(0);
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "b.txt", "plan.yaml"]);
}

#[test]
fn what_a_check_does_to_hooks_is_undone_before_the_run_ends() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let hook = project.repo().join(".git/hooks/commit-msg");
    let check = project.check(&format!("touch {}; grep -q fixed a.txt", hook.display()));
    project.write("plan.yaml", &plan(&check));
    project.commit_all("plan");
    let agent = project.agent("[ $N = 1 ] && { echo half > b.txt; exit; }; echo fixed > a.txt");
    project.run(&agent, &["--max-retries", "0"]).expect(1);
    assert!(!hook.exists());
    project.git(&["remote", "add", "fork", "https://example.invalid/fork"]);
    resume(&project, &agent).expect(0);
    assert_eq!(project.git(&["remote"]), "fork");
}

#[test]
fn a_link_that_the_agent_made_is_not_written_through_when_somebody_changes_the_configuration() {
    let project = fixable();
    let victim = project.outside("victim");
    fs::write(&victim, "mine\n").unwrap();
    let agent = project.agent(&format!(
        "[ $N = 1 ] && {{ rm -rf .git/logs; mkdir .git/logs; ln -s {} .git/logs/HEAD; echo half > b.txt; exit; }}; {FIX}",
        victim.display()
    ));
    project.run(&agent, &["--max-retries", "0"]).expect(1);
    project.git(&["config", "branch.main.description", "Mine"]);
    let run = resume(&project, &agent).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert!(!project.repo().join(".git/logs/HEAD").is_symlink());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine\n");
}

#[test]
fn a_dead_holders_lock_is_taken_over() {
    let project = fixable();
    fifo(&project, "working");
    let agent = project.agent(
        "[ $N = 1 ] && { echo $$ > $OUT/working; sleep 1000; }; echo fixed > a.txt; echo Done.",
    );
    let pid = killed(&project, &agent);
    send("-KILL", &pid);
    let child = started(&project, &agent);
    ended(&project, child).expect(0);
    assert_eq!(project.run_dirs().len(), 2);
}
