//! Compares the complete text for people.

use super::*;
use crate::doctor::samples;

#[test]
fn a_laptop_where_all_is_well() {
    let told = text(&samples::laptop(), false);
    insta::assert_snapshot!(told, @r"
    ok       git                  2.47.3 (/usr/bin/git)
    ok       repository           /home/anna/widget
    ok       identity             Anna <anna@example.org> commits
    ok       work-tree            clean
    ok       checkout             branch main at 3f2f3ad64825
    ok       credentials          none in git's configuration
    ok       configuration        .sprag/config.yaml is valid
    ok       checks               build, test
    ok       agent                codex, named by a flag
    ok       agent-program        codex 0.169.0 (/usr/local/bin/codex), known to work
    ok       model-key            OPENAI_API_KEY is set
    unknown  github               not checked: this is not a GitHub Actions job
    ok       proxy                none is used
    ok       certificates         142 built-in roots and 140 of this machine
    ok       user                 not root; processes of the same user can still read each other's environment in /proc
    ok       sandbox              user namespaces: yes, Landlock: yes
    ok       sandbox-level        a run gets level 2 here, by `sandbox: auto`; `sandbox: require` gives level 3, with its own process namespace
    ok       processes            Sprag inherits the processes that an agent leaves behind, and ends them
    ok       run-directory        /home/anna/.local/state/sprag/widget-01020304, 14 GiB free
    ok       state-directory      /home/anna/.local/state/sprag
    ok       home                 /home/anna
    ok       temporary-directory  /tmp

    a run could work here
    ");
}

#[test]
fn a_usual_job() {
    let told = text(&samples::job(), false);
    insta::assert_snapshot!(told, @r"
    ok       git                  2.47.3 (/usr/bin/git)
    ok       repository           /home/runner/work/widget/widget
    ok       identity             github-actions[bot] commits, as in every job
    ok       work-tree            clean
    ok       checkout             detached at 3f2f3ad64825 (refs/remotes/pull/7/merge), shallow: 1 commit of its history; a run for a pull request switches to its head branch
    warn     credentials          git has a credential that an agent could push with: http.https://github.com/.extraheader in /home/runner/work/_temp/git-credentials-1.config
                                  -> give actions/checkout `persist-credentials: false`: Sprag pushes with its own token
    ok       configuration        .sprag/config.yaml is valid
    ok       checks               build, test
    ok       agent                builtin, chosen because no agent is named: claude-sonnet-5-5 by anthropic at https://api.anthropic.com/v1
    ok       model-key            ANTHROPIC_API_KEY is set
    ok       token                of the job or of an app (ghs_), acts as github-actions[bot]
    ok       api                  https://api.github.com answers; 993 of 1000 requests are left
    ok       github-repository    acme/widget, private
    unknown  may-contents         write cannot be confirmed in advance; to push commits, the job needs `permissions: contents: write`
    unknown  may-issues           write cannot be confirmed in advance; to comment on issues, the job needs `permissions: issues: write`
    unknown  may-pull-requests    write cannot be confirmed in advance; to open pull requests and comment on them, the job needs `permissions: pull-requests: write`
    unknown  may-checks           write cannot be confirmed in advance; to write check runs, the job needs `permissions: checks: write`
    ok       may-actions          read is confirmed: it can read the logs of failed jobs
    ok       trigger              issue_comment by anna asks for a task: fix the flaky test, if that is permitted
    ok       proxy                none is used
    ok       certificates         142 built-in roots and 140 of this machine
    ok       user                 not root; processes of the same user can still read each other's environment in /proc
    ok       sandbox              user namespaces: yes, Landlock: yes
    ok       sandbox-level        a run gets level 2 here, by `sandbox: auto`; `sandbox: require` gives level 3, with its own process namespace
    ok       processes            Sprag inherits the processes that an agent leaves behind, and ends them
    ok       run-directory        /home/anna/.local/state/sprag/widget-01020304, 14 GiB free
    ok       state-directory      /home/anna/.local/state/sprag
    ok       home                 /home/anna
    ok       temporary-directory  /tmp

    a run could work here
    ");
}

#[test]
fn what_fails_is_counted_and_the_words_are_coloured() {
    let one = samples::with(samples::laptop(), vec![samples::closed_run_directory()]);
    let told = text(&one, true);
    assert!(told.contains("\u{1b}[31mFAIL   \u{1b}[0m  run-directory"));
    assert!(told.ends_with("\na run could not work here: 1 check failed\n"));
    let two = samples::with(one, vec![samples::closed_state_directory()]);
    let told = text(&two, false);
    assert!(told.ends_with("\na run could not work here: 2 checks failed\n"));
}

#[test]
fn what_others_named_is_one_line_that_the_runner_does_not_obey() {
    let named = samples::work_tree("/a\n::add-mask::x\n##[error]y");
    let findings = samples::with(samples::laptop(), vec![named]);
    let told = text(&findings, false);
    assert!(told.contains("/a ::add-mask::x ## [error]y\n"), "{told}");
    assert!(!json(&findings).contains("##["));
}

#[test]
fn several_ways_out_stand_below_each_other() {
    let findings = samples::with(samples::laptop(), vec![samples::no_agent()]);
    let told = text(&findings, false);
    let margin = " ".repeat(30);
    let expected = format!(
        "FAIL     agent                no agent is configured\n{margin}-> name one\n{margin}-> or set a key\n"
    );
    assert!(told.contains(&expected), "{told}");
}

#[test]
fn machines_get_every_field() {
    let told = json(&samples::job());
    let parsed: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        parsed[0],
        serde_json::json!({ "check": "git", "state": "ok", "found": "2.47.3 (/usr/bin/git)", "remedy": null })
    );
}
