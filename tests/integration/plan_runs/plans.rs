//! Where a plan comes from, and what becomes of the tasks behind a failed one.

use crate::support::has;
use crate::support::project::Project;
use crate::support::tasks::{
    FIX, FIXED, end, ends, files_of, fixable, kept, plan_of, several, statuses, subjects, warnings,
};
use serde_json::json;
use std::fs;

const MAKE: &str = "touch $SPRAG_TASK_ID; echo Done.";

#[test]
fn keep_going() {
    let project = several(&["one", "two", "three"]);
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = two ] && { touch bad; echo edited > a.txt; }; touch $SPRAG_TASK_ID; echo Done.",
    );
    let run = project
        .run(&agent, &["--keep-going", "--max-retries", "0"])
        .expect(1);
    assert_eq!(
        ends(&run),
        [
            ("done", "verified"),
            ("failed", "verification_failed"),
            ("done", "verified")
        ]
    );
    assert_eq!(end(&run.summary), ("partial", "verification_failed"));
    // The tree was restored: nothing of the failed task is in the next one's commit.
    assert_eq!(
        subjects(&project),
        [
            "[sprag] Complete task three: Make three",
            "[sprag] Complete task one: Make one",
            "plan",
            "base"
        ]
    );
    assert_eq!(files_of(&project, "HEAD"), ["plan.yaml", "three"]);
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done", "failed", "done"]
    );
    assert_eq!(project.status(), "");
    assert_eq!(project.read("a.txt"), "broken\n");
    assert_eq!(run.task(1)["patch"], "patches/two.patch");
    let patch = run.dir.as_ref().unwrap().join("patches/two.patch");
    project.git(&["apply", patch.to_str().unwrap()]);
    assert_eq!(project.status(), " M a.txt\n?? bad\n?? two");
    assert_eq!(project.read("a.txt"), "edited\n");
}

#[test]
fn a_whole_plan_of_another_tool_is_done_with_its_last_task_and_not_when_an_agent_says_so() {
    let steps = "status: pending # soon\nverify: [ 'true' ]\ntasks:\n  - { title: One, done: false }\n  - { title: Two, done: false }\n";
    let tasks = "{\"name\": \"Both\", \"status\": \"pending\", \"verify\": [\"true\"], \"tasks\": [\n  \
                 {\"id\": \"a\", \"title\": \"A\", \"acceptanceCriteria\": []},\n  {\"id\": \"b\", \"title\": \"B\"}\n]}\n";
    for (path, plan, done) in [
        ("p.plan.yml", steps, "status: done # soon"),
        ("plan.json", tasks, "\"status\": \"completed\", \"verify\""),
    ] {
        let project = Project::new(&[(path, plan)]);
        let word = done
            .rsplit_once(": ")
            .unwrap()
            .1
            .split([' ', ','])
            .next()
            .unwrap()
            .trim_matches('"');
        let agent = format!("touch file-$N; sed 's/pending/{word}/' {path} > new; mv new {path}");
        let agent = project.agent(&agent);
        let args = ["run", "--plan", path, "--agent-command", &agent];
        let run = project.sprag(&args).expect(0);
        assert_eq!(run.summary["totals"]["done"], 2);
        let committed = |commit: &str| project.git(&["show", &format!("{commit}:{path}")]);
        has(&committed("HEAD~1"), "pending");
        assert!(committed("HEAD").contains(done), "{}", committed("HEAD"));
        assert_eq!((project.commits(), project.status().as_str()), (3, ""));
    }
}

#[test]
fn what_an_agent_marks_as_done_of_another_task_is_not_committed() {
    let steps = "verify: [ test -e first ]\ntasks:\n  - title: Make first\n    done: false\n    steps:\n      - prompt: Touch it.\n        done: false\n  - title: Make second\n    steps:\n      - prompt: Touch that.\n        done: false\n";
    let boxes = "---\nverify: [ test -e first ]\n---\n# Tasks: Two\n\n- [ ] T001 Make first\n  - [ ] Touch it\n- [ ] T002 Make second\n  - [ ] Touch that\n";
    for (path, plan, [open, done]) in [
        ("p.plan.yml", steps, ["done: false", "done: true"]),
        ("tasks.md", boxes, ["[ ]", "[x]"]),
    ] {
        let project = Project::new(&[(path, plan)]);
        let mark = format!(
            "sed 's/{}/{done}/' {path} > new; mv new {path}",
            open.replace('[', "\\[")
        );
        let agent = project.agent(&format!("test $N = 1 && touch first && {mark}"));
        let args = [
            "run",
            "--plan",
            path,
            "--agent-command",
            &agent,
            "--max-retries",
            "0",
        ];
        project.sprag(&args).expect(1);
        let expected = plan.replacen(open, done, 2);
        let committed = project.git(&["show", &format!("HEAD:{path}")]);
        assert_eq!(committed, expected.trim_end(), "{path}");
        assert_eq!(project.commits(), 2);
    }
}

#[test]
fn a_task_list_is_worked_on_phase_by_phase() {
    let project = Project::new(&[]);
    let list = "---\ndescription: Tasks\nverify: [ test ! -e bad ]\n---\n# Tasks: Export\n\n## Phase 1: Setup\n\n- [x] T001 Create it\n- [ ] T002 [P] Lint it in lint.toml\n\n## Phase 2: User Story 1 - One\n\n- [ ] T003 [US1] Fail in src/a\n- [ ] T004 [US1] Never come to this\n\n## Phase 3: User Story 2 - Two\n\n- [ ] T005 [US2] Write src/b\n";
    let path = "specs/001-export/tasks.md";
    project.write(path, list);
    project.commit_all("list");
    let agent =
        project.agent("[ $SPRAG_TASK_ID = T003 ] && touch bad; touch $SPRAG_TASK_ID; echo Done.");
    let args = [
        "run",
        "--plan",
        path,
        "--agent-command",
        &agent,
        "--keep-going",
        "--max-retries",
        "0",
    ];
    let run = project.sprag(&args).expect(1);
    let ends: Vec<_> = ends(&run).into_iter().map(|(status, _)| status).collect();
    assert_eq!(ends, ["done", "done", "failed", "skipped", "done"]);
    let expected = list
        .replace("- [ ] T002", "- [x] T002")
        .replace("- [ ] T005", "- [x] T005");
    assert_eq!(project.read(path), expected);
    has(&project.prompt(1), "Part of: Phase 1: Setup");
    assert_eq!(project.status(), "");
}

#[test]
fn keep_going_skips_dependents() {
    let project = Project::new(&[]);
    let plan = "title: Example\nverify: [ test ! -e bad ]\nmax_retries: 0\ntasks:\n  - id: one\n    title: Make one\n  - id: two\n    title: Make two\n    depends_on: [ one ]\n  - id: three\n    title: Make three\n    depends_on: [ two ]\n  - id: four\n    title: Make four\n";
    project.write("plan.yaml", plan);
    project.commit_all("plan");
    let agent =
        project.agent("[ $SPRAG_TASK_ID = one ] && touch bad; touch $SPRAG_TASK_ID; echo Done.");
    let run = project.run(&agent, &["--keep-going"]).expect(1);
    let of_id = |id: &str| {
        let tasks = run.summary["tasks"].as_array().unwrap();
        let task = tasks.iter().find(|task| task["id"] == id).unwrap();
        (
            task["status"].as_str().unwrap(),
            task["reason"].as_str().unwrap(),
        )
    };
    assert_eq!(of_id("one"), ("failed", "verification_failed"));
    assert_eq!(of_id("two"), ("skipped", "dependency_failed"));
    assert_eq!(of_id("three"), ("skipped", "dependency_failed"));
    assert_eq!(of_id("four"), ("done", "verified"));
    assert_eq!(project.calls(), 2);
    assert_eq!(end(&run.summary), ("partial", "verification_failed"));
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["failed", "-", "-", "done"]
    );
}

#[test]
fn keep_going_records_a_last_failure_at_the_plans_end() {
    let project = several(&["one", "two"]);
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = two ] && { echo 'FAILED: no key'; exit; }; touch one; echo Done.",
    );
    let run = project.run(&agent, &["--keep-going"]).expect(3);
    assert_eq!(
        ends(&run),
        [("done", "verified"), ("blocked", "failed_report")]
    );
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done", "blocked"]
    );
    assert_eq!(subjects(&project)[0], "[sprag] Record the status of plan");
    assert_eq!(project.status(), "");
}

#[test]
fn keep_going_takes_back_commits_of_the_agent() {
    let project = several(&["one", "two"]);
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = one ] && { touch bad; git add bad; git commit --quiet --message own; echo Done.; exit; }; touch two; echo Done.",
    );
    let run = project
        .run(&agent, &["--keep-going", "--max-retries", "0"])
        .expect(1);
    assert_eq!(
        ends(&run),
        [("failed", "verification_failed"), ("done", "verified")]
    );
    assert_eq!(
        subjects(&project),
        ["[sprag] Complete task two: Make two", "plan", "base"]
    );
    assert!(!project.repo().join("bad").exists());
    let run_id = run.summary["run_id"].as_str().unwrap();
    assert_eq!(
        project.git(&[
            "log",
            "-1",
            "--format=%s",
            &format!("refs/sprag/{run_id}/one")
        ]),
        "own"
    );
    assert!(kept(&run, "patches/one.patch").contains("bad"));
}

#[test]
fn keep_going_takes_failed_tasks_again_in_a_rerun() {
    let project = several(&["one", "two"]);
    let agent = project.agent("[ $N = 1 ] && touch bad; touch $SPRAG_TASK_ID; echo Done.");
    project
        .run(&agent, &["--keep-going", "--max-retries", "0"])
        .expect(1);
    assert_eq!(statuses(&project.read("plan.yaml")), ["failed", "done"]);
    let again = project.run(&agent, &[]).expect(0);
    assert_eq!(project.calls(), 3);
    assert_eq!(again.task(0)["attempts"], 1);
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done", "done"]
    );
}

#[test]
fn markdown_with_a_check_list() {
    let text = "---\ntitle: Example\nverify: [ 'true' ]\n---\n# Work\n\nSome *words*.\n\n- [ ] Make one\n      with care\n- [x] Make zero\n- [ ] Make two\n\nAn end.\n";
    let project = Project::new(&[("plan.md", text)]);
    let agent = project.agent(MAKE);
    let run = project
        .sprag(&["run", "--plan", "plan.md", "--agent-command", &agent])
        .expect(0);
    assert_eq!(project.calls(), 2);
    assert_eq!(run.summary["totals"]["done"], 3);
    assert!(project.prompt(1).contains("with care"));
    let first = project.git(&["show", "HEAD~1:plan.md"]);
    has(
        &first,
        "- [x] Make one\n      with care\n- [x] Make zero\n- [ ] Make two\n",
    );
    let now = project.git(&["show", "HEAD:plan.md"]);
    assert_eq!(now, text.replace("[ ]", "[x]").trim_end());
    assert_eq!(project.status(), "");
    assert_eq!(project.commits(), 3);
}

#[test]
fn markdown_with_headings() {
    let text = "---\ntitle: Example\nverify: [ 'true' ]\n---\n# Work\n\n## Make one\n\nWith care.\n\nAcceptance:\n\n- it is there\n\n## Make two\n\nToo.\n";
    let project = Project::new(&[("plan.md", text)]);
    let agent = project.agent(MAKE);
    let run = project
        .sprag(&["run", "--plan", "plan.md", "--agent-command", &agent])
        .expect(0);
    assert_eq!(run.summary["totals"]["done"], 2);
    has(
        &project.prompt(1),
        "## Acceptance criteria\n\n- it is there\n\nVerify that all acceptance criteria are met",
    );
    let first = project.git(&["show", "HEAD~1:plan.md"]);
    assert_eq!(first.matches("done").count(), 1, "{first}");
    let now = project.git(&["show", "HEAD:plan.md"]);
    assert_eq!(now.matches("done").count(), 2, "{now}");
    let body = |text: &str| text.split_once("# Work").unwrap().1.trim_end().to_owned();
    assert_eq!(body(&now), body(text));
    let nothing = project
        .sprag(&["run", "--plan", "plan.md", "--agent-command", &agent])
        .expect(0);
    assert_eq!(nothing.summary["status"], "no_work");
}

#[test]
fn untracked_plan() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    project.write("plan.yaml", &plan_of(&["fix"], FIXED));
    let run = project.by(FIX, &[]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "plan.yaml"]);
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done"]
    );
    assert_eq!(project.status(), "");
    assert_eq!(project.commits(), 2);
}

#[test]
fn ignored_plan() {
    let project = Project::new(&[("a.txt", "broken\n"), (".gitignore", "plan.yaml\n")]);
    project.write("plan.yaml", &plan_of(&["fix"], FIXED));
    project.by(FIX, &[]).expect(0);
    assert_eq!(files_of(&project, "HEAD"), ["a.txt"]);
    assert_eq!(statuses(&project.read("plan.yaml")), ["done"]);
}

#[test]
fn plan_outside_of_the_repository() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let plan = project.outside("work.yaml");
    let text = plan_of(&["fix"], FIXED);
    fs::write(&plan, &text).unwrap();
    let path = plan.to_str().unwrap();
    let fails = [
        "run",
        "--plan",
        path,
        "--agent-command",
        "echo wrong > a.txt",
    ];
    let once = ["--max-retries", "0"];
    project.sprag(&[&fails[..], &once].concat()).expect(1);
    assert_eq!(fs::read_to_string(&plan).unwrap(), text);
    project.git(&["restore", "a.txt"]);
    let agent = project.agent(FIX);
    let args = ["run", "--plan", path, "--agent-command", &agent];
    let run = project.sprag(&args).expect(0);
    assert_eq!(files_of(&project, "HEAD"), ["a.txt"]);
    assert_eq!(statuses(&fs::read_to_string(&plan).unwrap()), ["done"]);
    assert_eq!(
        project
            .git(&["log", "-1", "--format=%(trailers:key=Sprag-Task,valueonly)"])
            .trim(),
        "work/fix"
    );
    assert_eq!(run.summary["plan"]["path"], plan.to_str().unwrap());
    let nothing = project.sprag(&args).expect(0);
    assert_eq!(nothing.summary["status"], "no_work");
    assert_eq!(project.calls(), 1);
}

#[test]
fn plan_in_a_subdirectory_and_run_from_there() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    project.write("docs/plan.yaml", &plan_of(&["fix"], FIXED));
    project.commit_all("plan");
    let agent = project.agent(FIX);
    let output = project
        .command(&["run", "--plan", "plan.yaml", "--agent-command", &agent])
        .current_dir(project.repo().join("docs"))
        .output()
        .unwrap();
    let run = project.finished(&output).expect(0);
    assert_eq!(files_of(&project, "HEAD"), ["a.txt", "docs/plan.yaml"]);
    assert_eq!(run.summary["plan"]["path"], "docs/plan.yaml");
}

#[test]
fn a_prompt_is_a_plan_of_one_task() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let agent = project.agent(FIX);
    let run = project
        .sprag(&[
            "run",
            "--prompt",
            "Fix a.txt\n\nIt must say fixed.",
            "--verify",
            FIXED,
            "--agent-command",
            &agent,
        ])
        .expect(0);
    assert_eq!(end(&run.summary), ("success", "verified"));
    assert_eq!(project.status(), "");
    assert!(!project.repo().join(".sprag").exists());
    assert_eq!(run.summary["totals"]["tasks"], 1);
    assert_eq!(run.task(0)["title"], "Fix a.txt");
    assert_eq!(run.summary["plan"]["path"], json!(null));
    assert!(project.prompt(1).contains("It must say fixed."));
    assert_eq!(files_of(&project, "HEAD"), ["a.txt"]);
    let id = run.task(0)["id"].as_str().unwrap();
    assert_eq!(
        subjects(&project)[0],
        format!("[sprag] Complete task {id}: Fix a.txt")
    );
}

#[test]
fn a_prompt_from_a_file() {
    let project = Project::new(&[("a.txt", "broken\n")]);
    let file = project.outside("prompt.md");
    fs::write(&file, "Fix a.txt\n").unwrap();
    let agent = project.agent(FIX);
    project
        .sprag(&[
            "run",
            "--prompt-file",
            file.to_str().unwrap(),
            "--verify",
            FIXED,
            "--agent-command",
            &agent,
        ])
        .expect(0);
    assert!(project.prompt(1).contains("Fix a.txt"));
    let two = project
        .sprag(&["run", "--prompt", "x", "--plan", "plan.yaml"])
        .expect(2);
    assert!(two.stderr.contains("exactly one"), "{}", two.stderr);
}

#[test]
fn an_agent_that_removes_the_plan() {
    let project = fixable();
    let run = project.by(&format!("rm plan.yaml; {FIX}"), &[]).expect(0);
    assert_eq!(end(run.task(0)), ("done", "verified"));
    assert_eq!(
        statuses(&project.git(&["show", "HEAD:plan.yaml"])),
        ["done"]
    );
    assert_eq!(project.status(), "", "{:?}", warnings(&run));
}

#[test]
fn setup_runs_once_and_its_files_are_no_work() {
    let project = Project::new(&[]);
    project.write(
        "plan.yaml",
        &format!(
            "setup: [ 'echo call >> installed' ]\n{}",
            plan_of(&["one", "two"], "test -e installed")
        ),
    );
    project.commit_all("plan");
    project.by(MAKE, &[]).expect(0);
    assert_eq!(project.read("installed"), "call\n");
    assert_eq!(
        project.git(&["log", "--all", "--format=%h", "--", "installed"]),
        ""
    );
    assert_eq!(project.status(), "?? installed");
}

const STEPS: &str = "# Greeting\n\n### Task 1: Greet by name\n- [ ] Write the failing test\n- [ ] Write the code\n- [ ] Commit\n\n### Task 2: Say goodbye\n- [ ] Write the code\n\n## Success Criteria\n- [ ] Both are polite\n";

#[test]
fn boxes_below_a_task_are_its_steps() {
    let project = Project::new(&[("plan.md", STEPS)]);
    let check = project.sprag(&["check", "plan.md"]).expect(0);
    for said in [
        "3 boxes under `### Task 1: Greet by name` are its steps",
        "1 box under `Success Criteria` is an acceptance criterion",
        "left out, because Sprag makes the commits: 1 step",
        "(2 tasks)",
    ] {
        assert!(check.stdout.contains(said), "{said}: {}", check.stdout);
    }
    let agent = project.agent(MAKE);
    let args = ["run", "--plan", "plan.md", "--agent-command", &agent];
    let run = project.sprag(&args).expect(0);
    assert!(run.stdout.contains("are its steps"), "{}", run.stdout);
    assert_eq!(project.calls(), 2);
    let prompt = project.prompt(1);
    assert!(prompt.contains("- [ ] Write the failing test"), "{prompt}");
    assert!(!prompt.contains("- [ ] Commit"), "{prompt}");
    assert!(prompt.contains("Both are polite"), "{prompt}");
    let done = STEPS.replace("[ ]", "[x]").replace("[x] Both", "[ ] Both");
    assert_eq!(project.git(&["show", "HEAD:plan.md"]), done.trim_end());
}

#[test]
fn a_task_that_only_checks_needs_no_change() {
    let plan = "- [ ] Write one\n- [ ] Checkpoint - ensure all tests pass\n- [ ] Write two\n";
    let mut project = Project::new(&[("plan.md", plan)]);
    // The check names the file that the work makes, which is then a judge.
    project.env("SPRAG_TEST_CHANGES", "warn");
    let agent = project.agent(
        "[ $SPRAG_TASK_ID = t2 ] && { echo 'I ran `make test` and `make lint`. Both succeed, so the checkpoint is complete.'; exit; }; touch $SPRAG_TASK_ID; echo Done.",
    );
    let args = ["run", "--plan", "plan.md", "--agent-command", &agent];
    let run = project.sprag(&[&args[..], &["--verify", "test -e t1"]].concat());
    let run = run.expect(0);
    assert_eq!(
        ends(&run),
        [
            ("done", "verified"),
            ("done", "already_satisfied"),
            ("done", "verified")
        ]
    );
    assert_eq!(project.calls(), 3, "no nudge");
    // Without a check nothing is proved.
    let bare = Project::new(&[("plan.md", "- [ ] Run the linter\n")]);
    let agent = bare.agent("echo 'The linter is content.'");
    let args = ["run", "--plan", "plan.md", "--agent-command", &agent];
    let run = bare.sprag(&args).expect(0);
    assert_eq!(run.summary["status"], "unverified");
    assert_eq!(bare.calls(), 1);
}

#[test]
fn a_story_of_ralph_passes_when_it_is_done() {
    let text = "{\"project\": \"shop\", \"branchName\": \"ralph/shop\", \"userStories\": [\n {\"id\": \"US-001\", \"title\": \"Add a cart\", \"description\": \"As a buyer\", \"acceptanceCriteria\": [\"Typecheck passes\"], \"priority\": 1, \"passes\": false, \"notes\": \"\"}]}\n";
    let project = Project::new(&[("prd.json", text)]);
    let agent = project.agent(MAKE);
    let args = ["run", "--plan", "prd.json", "--agent-command", &agent];
    project.sprag(&args).expect(0);
    let expected = text.replace("\"passes\": false", "\"passes\": true");
    assert_eq!(project.git(&["show", "HEAD:prd.json"]), expected.trim_end());
}
