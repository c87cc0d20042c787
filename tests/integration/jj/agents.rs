//! What an agent does with jj itself is undone, and what fails beside a run leaves jj usable.

use super::scenarios::{Kind, jj_of, place_of};
use super::{AGENT, Both, PLAN, jj_directory};
use crate::support::has;
use crate::support::project::{Project, Run, plan};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// A repository that jj has alone, with another line of work that has a bookmark, and a change that the user is at.
fn with_other_work(plan: &str) -> Option<Both> {
    jj_directory()?;
    let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", plan)]);
    let both = jj_of(project, Kind::JjAlone);
    both.jj(&["new", "main", "-m", "Other work"]);
    both.project.write("other.txt", "other\n");
    both.jj(&["bookmark", "create", "other", "-r", "@"]);
    both.jj(&["new", "main", "-m", "What I am at"]);
    Some(both)
}

/// What jj has apart from the run's commits: the working-copy change and all bookmarks.
fn beside(both: &Both) -> (Vec<String>, Vec<String>, Vec<String>) {
    let at = both.known("@", "change_id ++ \" \" ++ description.first_line()");
    let other = both.known("other", "commit_id ++ \" \" ++ description.first_line()");
    let names = "bookmarks.map(|it| it.name()).join(\" \")";
    let mut names = both.known("bookmarks()", names);
    names.sort();
    (at, other, names)
}

fn run(both: &Both, script: &str) -> Run {
    both.run(script, &["--task", "one"])
}

#[test]
fn what_an_agent_does_with_jj_to_what_was_there_is_undone() {
    let ways = [
        "jj --quiet squash -u",
        "jj --quiet commit -m mine; jj --quiet new; jj --quiet describe -m open",
        "jj --quiet describe -r main -m rewritten",
        "jj --quiet abandon other",
        "jj --quiet bookmark set other -r main --allow-backwards; jj --quiet bookmark create mine -r @",
        "jj --quiet bookmark delete main other",
        "jj --quiet new main other -m merge",
        "jj --quiet describe -m one; jj --quiet --at-op @- describe -m two; jj --quiet status",
        "jj --quiet op restore $(jj --quiet op log --no-graph -T 'id.short() ++ \" \"' | cut -d' ' -f6)",
    ];
    // The others differ in the commands alone, and an unoptimised jj takes seconds for each.
    let step = if std::env::var_os("SPRAG_TEST_FULL").is_some() {
        1
    } else {
        4
    };
    for own in ways.into_iter().step_by(step) {
        let Some(both) = with_other_work(PLAN) else {
            return;
        };
        let before = beside(&both);
        // What jj takes out of the work tree is made once more: the agent's files are not jj's to decide.
        let run = run(&both, &format!("{AGENT}; {own} >/dev/null; {AGENT}")).expect(0);
        assert_eq!(beside(&both), before, "{own}");
        let below = both.known("::@- ~ root()", "description.first_line()");
        assert_eq!(below, ["Add one", "base"], "{own}");
        assert_eq!(
            both.known("main", "commit_id"),
            both.known("@-", "commit_id"),
            "{own}"
        );
        for broken in ["conflicts()", "divergent()"] {
            assert_eq!(both.known(broken, "commit_id"), [""; 0], "{own}");
        }
        assert_eq!(both.jj(&["diff", "--name-only"]), "", "{own}");
        let told =
            "what was done with jj during the run was undone, and the files are as they were left";
        let warnings = run.summary["warnings"].to_string();
        assert!(warnings.contains(told), "{own}: {warnings}");
    }
}

#[test]
fn an_agent_that_only_looks_with_jj_has_nothing_undone() {
    let Some(both) = with_other_work(PLAN) else {
        return;
    };
    let run = run(
        &both,
        &format!("{AGENT}; jj --quiet status; jj --quiet log"),
    )
    .expect(0);
    assert_eq!(run.summary["warnings"].to_string(), "[]");
    assert!(!both.jj(&["op", "log"]).contains("restore to operation"));
}

#[test]
fn what_fails_may_be_done_by_hand_with_the_commands_that_the_warning_names() {
    let Some(both) = with_other_work(PLAN) else {
        return;
    };
    let before = beside(&both).1;
    let run = run(&both, &format!("{AGENT}; jj --quiet op restore 0000")).expect(0);
    let warnings = run.summary["warnings"].to_string();
    let commands: Vec<&str> = warnings
        .split('`')
        .filter(|it| it.starts_with("jj "))
        .collect();
    let [.., undo, import, new] = commands[..] else {
        panic!("{warnings}");
    };
    for command in [undo, import, new] {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        both.jj(&words);
    }
    assert_eq!(beside(&both).1, before);
    assert_eq!(both.known("@-", "description.first_line()"), ["Add one"]);
    assert_eq!(both.jj(&["diff", "--name-only"]), "");
    both.run(AGENT, &[]).expect(0);
    let below = both.known("::@- ~ root()", "description.first_line()");
    assert_eq!(below, ["Add two", "Add one", "base"]);
}

#[test]
fn a_commit_with_jj_is_refused_where_agents_may_make_none() {
    let Some(both) = with_other_work(PLAN) else {
        return;
    };
    let args = ["--task", "one", "--agent-commits", "reject"];
    let commits = format!("{AGENT}; jj --quiet commit -m mine");
    let refused = both.run(&commits, &args).expect(3);
    assert_eq!(refused.task(0)["reason"], "policy_violation");
    let looks = format!("{AGENT}; jj --quiet log");
    both.run(&looks, &args).expect(0);
}

/// A command in the middle of the import, the last one before its end, or the one that ends it fails, as if the run was
/// killed there.
#[test]
fn an_import_that_stops_anywhere_leaves_jj_as_it_was_and_is_done_by_the_next_run() {
    for failing in [2, 4, 5] {
        let Some(mut both) = with_other_work(PLAN) else {
            return;
        };
        let before = beside(&both);
        stop_at(&mut both, failing);
        let run = run(&both, &format!("{AGENT}; jj --quiet commit -m mine")).expect(0);
        let is_stopped = run.summary["warnings"]
            .to_string()
            .contains("were not imported");
        assert!(is_stopped, "{failing}");
        // It is not stale, and has the files.
        both.jj(&["status"]);
        assert!(both.project.repo().join("one.txt").exists());
        both.run(AGENT, &[]).expect(0);
        let (at, other, _) = beside(&both);
        assert_eq!(other, before.1, "{failing}");
        assert_eq!(
            (at.len(), both.jj(&["diff", "--name-only"])),
            (1, String::new()),
            "{failing}"
        );
        let known = both.known("::@-", "description.first_line()");
        assert!(known.contains(&"Add two".to_owned()), "{known:?}");
        assert_eq!(both.known("conflicts()", "commit_id"), [""; 0], "{failing}");
    }
}

/// Puts a jj ahead of the real one whose n-th command of an import fails.
fn stop_at(both: &mut Both, n: usize) {
    let directory = both.project.beside("stopping");
    fs::create_dir(&directory).unwrap();
    let count = both.project.outside("commands");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--no-integrate-operation*|*'op integrate'*)\n  echo x >> {count}\n  \
         test $(wc -l < {count}) = {n} && exit 7\nesac\nexec {} \"$@\"\n",
        both.jj.display(),
        count = count.display(),
    );
    let program = directory.join("jj");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(directory).chain(std::env::split_paths(&path));
    both.project.env("PATH", std::env::join_paths(all).unwrap());
}

#[test]
fn conflicts_of_jj_are_not_committed() {
    for kind in [Kind::Colocated, Kind::JjAlone] {
        if jj_directory().is_none() {
            return;
        }
        let project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan("'true'"))]);
        let both = jj_of(project, kind);
        both.jj(&["new", "main", "-m", "Between"]);
        both.jj(&["new", "-m", "Other work"]);
        both.project.write("a.txt", "other\n");
        both.jj(&["bookmark", "create", "other", "-r", "@"]);
        // HEAD is then on no branch, from which jj would take it away.
        both.jj(&["new", "@-"]);
        let script = "echo mine > a.txt; jj --quiet rebase -r @ --onto other; echo Done.";
        let run = both.run(script, &[]).expect(1);
        assert_eq!(run.task(0)["reason"], "commit_rejected", "{kind:?}");
        let message = run.task(0)["message"].as_str().unwrap();
        has(message, "unresolved conflicts in a.txt");
    }
}

/// Whoever uses jj between a killed run and the next one loses nothing of it.
#[test]
fn what_the_user_does_with_jj_after_a_killed_run_stays_on_top_of_its_commits() {
    for moves in [false, true] {
        let Some(place) = place_of(Kind::JjAlone) else {
            return;
        };
        super::scenarios::killed_in_the_second_task(&place);
        let both = place.both();
        both.jj(&["commit", "-m", "Half of it"]);
        if moves {
            both.jj(&["bookmark", "set", "main", "-r", "@-"]);
        }
        place.run("echo two > two", &[]).expect(0);
        let below = both.known("::@- ~ root()", "description.first_line()");
        let below: Vec<&str> = below
            .iter()
            .map(|it| it.rsplit(": ").next().unwrap())
            .collect();
        assert_eq!(below, ["Make two", "Half of it", "Make one", "base"]);
        assert_eq!(both.jj(&["diff", "--name-only"]), "");
        let main = both.known("main", "description.first_line()").concat();
        let expected = if moves { "Make two" } else { "Make one" };
        assert!(main.ends_with(expected), "{main}");
    }
}
