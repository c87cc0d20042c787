//! What a run does, in a repository of git, in one that git and jj share, and in one that jj has alone: the same.

use super::{Both, jj_directory, with_jj};
use crate::support::proc::{end_of, signal, wait_until};
use crate::support::project::{Project, Run, plan};
use crate::support::tasks::{FIX, FIXED, assessments, end, ends, plan_of};
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// Whose the repository is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Git,
    Colocated,
    JjAlone,
}

/// A repository of one kind.
pub(super) enum Place {
    Git(Project),
    Jj(Both, Kind),
}

/// One repository with these files for each kind; those of jj only where the program is there.
fn places(files: &[(&str, &str)]) -> Vec<Place> {
    let mut places = vec![Place::Git(Project::new(files))];
    if jj_directory().is_some() {
        let kinds = [Kind::Colocated, Kind::JjAlone];
        places.extend(kinds.map(|kind| Place::Jj(jj_of(Project::new(files), kind), kind)));
    }
    places
}

/// Puts jj beside git, or alone, into the repository of a project.
pub(super) fn jj_of(project: Project, kind: Kind) -> Both {
    let both = with_jj(project).unwrap();
    both.jj(&["git", "init", "--colocate"]);
    if kind == Kind::JjAlone {
        both.jj(&["git", "colocation", "disable"]);
    }
    both
}

/// A repository of this kind with two tasks.
pub(super) fn place_of(kind: Kind) -> Option<Place> {
    let all = places(&[("plan.yaml", &plan_of(&["one", "two"], "true"))]);
    all.into_iter().find(|place| place.kind() == kind)
}

/// The task is to make `a.txt` say fixed.
fn fixable() -> Vec<Place> {
    places(&[("a.txt", "broken\n"), ("plan.yaml", &plan(FIXED))])
}

impl Place {
    fn kind(&self) -> Kind {
        match self {
            Self::Git(_) => Kind::Git,
            Self::Jj(_, kind) => *kind,
        }
    }

    fn project(&self) -> &Project {
        match self {
            Self::Git(project) => project,
            Self::Jj(both, _) => &both.project,
        }
    }

    pub(super) fn both(&self) -> &Both {
        match self {
            Self::Git(_) => panic!("there is no jj"),
            Self::Jj(both, _) => both,
        }
    }

    pub(super) fn run(&self, script: &str, args: &[&str]) -> Run {
        let project = self.project();
        project.run(&project.agent(script), args)
    }

    /// The git directory of a repository that jj has alone, and the one in it by which Sprag sees it.
    fn store(&self) -> PathBuf {
        self.project().repo().join(".jj/repo/store/git")
    }

    /// What the commits below the work say they are, newest first, without those of the start.
    fn subjects(&self) -> Vec<String> {
        let all = match self {
            Self::Git(project) => {
                let log = project.git(&["log", "--format=%s"]);
                log.lines().map(str::to_owned).collect()
            }
            Self::Jj(both, _) => both.known("::@- ~ root()", "description.first_line()"),
        };
        let all = all
            .into_iter()
            .filter(|subject| subject != "base" && !subject.is_empty());
        all.map(|subject| subject.rsplit(": ").next().unwrap().to_owned())
            .collect()
    }

    /// Paths of which the work tree has something else than the newest commit.
    fn open(&self) -> Vec<String> {
        let text = match self {
            Self::Git(project) => {
                let status = project.git(&["status", "--porcelain", "--untracked-files=all"]);
                let paths = status
                    .lines()
                    .filter_map(|line| line.trim().split_once(' '));
                paths
                    .map(|(_, path)| format!("{}\n", path.trim()))
                    .collect()
            }
            Self::Jj(both, _) => both.jj(&["diff", "--name-only"]),
        };
        let mut paths: Vec<String> = text.lines().map(str::to_owned).collect();
        paths.sort();
        paths
    }

    /// What the newest commit has at a path.
    fn committed(&self, path: &str) -> String {
        match self {
            Self::Git(project) => project.git(&["show", &format!("HEAD:{path}")]) + "\n",
            Self::Jj(both, _) => both.jj(&["file", "show", "-r", "@-", path]),
        }
    }

    /// jj sees by itself what git has, where it can, after a run that could not tell it.
    fn look(&self) {
        if let Self::Jj(both, Kind::Colocated) = self {
            both.jj(&["status"]);
        }
    }

    /// What holds after every run: whoever looks sees the run's commits below the work, and nothing of Sprag's.
    fn assert_in_step(&self, subjects: &[&str], open: &[&str]) {
        let kind = self.kind();
        assert_eq!(self.subjects(), subjects, "{kind:?}");
        assert_eq!(self.open(), open, "{kind:?}");
        let project = self.project();
        if kind != Kind::JjAlone {
            let (index, tree) = (["write-tree"], ["rev-parse", "HEAD^{tree}"]);
            assert_eq!(project.git(&index), project.git(&tree), "{kind:?}");
        }
        let Self::Jj(both, _) = self else { return };
        let bookmarks = both.known("bookmarks()", "bookmarks.map(|it| it.name()).join(\" \")");
        assert_eq!(bookmarks, ["main"], "{kind:?}");
        let conflicts = both.known("conflicts()", "commit_id");
        assert_eq!(conflicts, Vec::<String>::new(), "{kind:?}");
        if kind == Kind::Colocated {
            assert_eq!(both.known("@-", "commit_id"), [project.head()]);
        } else {
            assert!(!project.repo().join(".git").exists());
            for entry in fs::read_dir(self.store().join("worktrees")).unwrap() {
                assert!(!entry.unwrap().path().join("sprag-unimported").exists());
            }
        }
    }
}

#[test]
fn an_agent_that_only_plans_is_nudged_and_its_work_is_one_commit() {
    for place in fixable() {
        let script = format!("test $N = 1 && echo 'Plan: 1. mend a.txt' && exit; {FIX}");
        let run = place.run(&script, &[]).expect(0);
        assert_eq!(run.summary["warnings"], json!([]), "{:?}", place.kind());
        assert_eq!(assessments(run.task(0)), ["planning_only", "changed"]);
        place.assert_in_step(&["Fix a.txt"], &[]);
        assert_eq!(place.committed("a.txt"), "fixed\n");
        assert!(place.committed("plan.yaml").contains("status: done"));
        if let Place::Jj(both, _) = &place {
            assert_eq!(
                both.known("main", "commit_id"),
                both.known("@-", "commit_id")
            );
            both.jj(&["undo"]);
        }
    }
}

#[test]
fn a_red_check_is_told_and_what_mends_it_is_committed() {
    for place in fixable() {
        let script = format!("test $N = 1 && echo half > a.txt && exit; {FIX}");
        let run = place.run(&script, &[]).expect(0);
        assert_eq!(
            (place.project().calls(), &run.task(0)["retries"]),
            (2, &json!(1))
        );
        place.assert_in_step(&["Fix a.txt"], &[]);
    }
}

#[test]
fn the_same_again_is_no_progress_and_commits_nothing() {
    for place in fixable() {
        let run = place.run("echo half > a.txt", &[]).expect(1);
        assert_eq!(
            end(run.task(0)),
            ("failed", "no_progress"),
            "{:?}",
            place.kind()
        );
        place.assert_in_step(&[], &["a.txt"]);
    }
}

#[test]
fn what_a_failed_task_left_makes_room_for_the_next_one() {
    let plan = plan_of(&["one", "two"], "test ! -e bad");
    for place in places(&[("plan.yaml", &plan)]) {
        let script = "case $SPRAG_TASK_ID in one) touch bad ;; *) echo two > two.txt ;; esac";
        let args = ["--keep-going", "--max-retries", "0"];
        let run = place.run(script, &args).expect(1);
        let statuses: Vec<&str> = ends(&run).iter().map(|(status, _)| *status).collect();
        assert_eq!(statuses, ["failed", "done"], "{:?}", place.kind());
        place.assert_in_step(&["Make two"], &[]);
    }
}

#[test]
fn work_that_is_not_committed_stays_as_it_is_even_where_it_takes_back_what_is() {
    let plan = plan_of(&["one", "two"], "test ! -e bad");
    for place in places(&[("plan.yaml", &plan)]) {
        let script =
            "case $SPRAG_TASK_ID in one) echo one > one.txt ;; *) rm one.txt; touch bad ;; esac";
        place.run(script, &["--max-retries", "0"]).expect(1);
        place.assert_in_step(&["Make one"], &["bad", "one.txt"]);
        let repo = place.project().repo();
        assert!(repo.join("bad").exists() && !repo.join("one.txt").exists());
    }
}

#[test]
fn a_run_that_was_killed_goes_on_and_whoever_looks_sees_all_of_it() {
    for place in places(&[("plan.yaml", &plan_of(&["one", "two"], "true"))]) {
        killed_in_the_second_task(&place);
        let project = place.project();
        project.sprag(&["run", "--resume"]).expect(0);
        place.assert_in_step(&["Make two", "Make one"], &[]);
    }
}

#[test]
fn after_a_run_that_was_killed_a_new_one_begins_where_its_commits_are() {
    for place in places(&[("plan.yaml", &plan_of(&["one", "two"], "true"))]) {
        killed_in_the_second_task(&place);
        let refused = place.run("true", &[]).expect(2);
        assert!(refused.stderr.contains("not clean"), "{}", refused.stderr);
        place.look();
        place.assert_in_step(&["Make one"], &["half"]);
        fs::remove_file(place.project().repo().join("half")).unwrap();
        place.run("echo two > two", &[]).expect(0);
        place.assert_in_step(&["Make two", "Make one"], &[]);
    }
}

/// A run that has committed the first task and is killed while the agent works at the second. A later one
/// goes on at once.
pub(super) fn killed_in_the_second_task(place: &Place) {
    let project = place.project();
    let agent = project.agent(
        "test $N = 1 && echo one > one && exit; test $N = 3 && echo two > two && rm -f half && exit; \
         echo half > half; touch \"$OUT/began\"; sleep 1000",
    );
    let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
    let mut sprag = project.start(&args);
    wait_until("the second task", || project.outside("began").exists());
    signal(sprag.id(), "KILL");
    end_of(&mut sprag);
}

#[test]
fn a_signal_ends_a_run_whose_commits_are_seen_all_the_same() {
    for place in places(&[("plan.yaml", &plan_of(&["one", "two"], "true"))]) {
        let project = place.project();
        let agent = project
            .agent("test $N = 1 && echo one > one && exit; touch \"$OUT/began\"; sleep 1000");
        let args = ["run", "--plan", "plan.yaml", "--agent-command", &agent];
        let mut sprag = project.start(&args);
        wait_until("the second task", || project.outside("began").exists());
        signal(sprag.id(), "INT");
        assert_eq!(end_of(&mut sprag).code(), Some(130), "{:?}", place.kind());
        place.look();
        place.assert_in_step(&["Make one"], &[]);
    }
}

#[test]
fn what_an_agent_does_with_the_repository_itself_is_no_commit_beside_the_runs() {
    for place in fixable() {
        let own = match place.kind() {
            Kind::Git => "git commit --quiet --all --message mine",
            _ => {
                "jj --quiet commit -m mine; jj --quiet new -m further; jj --quiet describe -m open"
            }
        };
        if let Place::Jj(both, Kind::Colocated) = &place {
            // HEAD is then on no branch, from which jj would take it away.
            both.jj(&["new"]);
        }
        if let Place::Jj(both, _) = &place {
            both.configure(
                "[revset-aliases]\n\"immutable_heads()\" = \"description(substring:'mine')\"\n",
            );
        }
        let script = format!("{FIX}; echo 'SUGGESTED_COMMIT_MESSAGE: Mend a.txt'; {own}");
        let run = place.run(&script, &[]).expect(0);
        assert_eq!(run.task(0)["reason"], "verified", "{:?}", place.kind());
        place.assert_in_step(&["Mend a.txt"], &[]);
        if let Place::Jj(both, Kind::JjAlone) = &place {
            let all = both.known("all() ~ root() ~ @", "description.first_line()");
            assert_eq!(all, ["Mend a.txt", "base"]);
        }
    }
}

#[test]
fn commits_that_no_bookmark_is_on_are_below_the_working_copy() {
    for place in fixable() {
        let Place::Jj(both, _) = &place else { continue };
        both.jj(&["describe", "-m", "Between"]);
        both.jj(&["new"]);
        let run = place.run(FIX, &[]).expect(0);
        assert_eq!(run.summary["branch"], json!(null));
        let command = format!(
            "jj bookmark create NAME -r {}",
            &run.summary["head"].as_str().unwrap()[..12]
        );
        assert!(
            run.stdout.contains(&command) && !run.stdout.contains("git branch"),
            "{}",
            run.stdout
        );
        place.assert_in_step(&["Fix a.txt", "Between"], &[]);
        assert_eq!(both.known("main", "description.first_line()"), ["base"]);
    }
}

#[test]
fn doctor_tells_how_the_repository_is_worked_in() {
    for place in fixable() {
        let found = place.project().sprag(&["doctor", "--json"]);
        let found: Vec<serde_json::Value> = serde_json::from_str(&found.stdout).unwrap();
        let jj = found.iter().find(|finding| finding["check"] == "jj");
        let words = jj.map(|finding| finding["found"].as_str().unwrap());
        let expected = match place.kind() {
            Kind::Git => None,
            Kind::Colocated => Some("beside git"),
            Kind::JjAlone => Some("has the repository alone"),
        };
        assert_eq!(words.is_some(), expected.is_some(), "{found:?}");
        assert!(
            words.is_none_or(|words| words.contains(expected.unwrap())),
            "{words:?}"
        );
    }
}
