//! Wrong input ends with one message that says where, what was expected and what to do, before
//! anything is touched.

use crate::support::project::{Project, Run};
use sprag::agents::{ACP, CLIS, COMMAND};
use sprag::domain::settings::AGENTS;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const PLAN: &str = "title: Example\ntasks:\n  - id: fix\n    title: Fix a.txt\n";
const RUN: [&str; 5] = [
    "run",
    "--agent-command",
    "touch touched",
    "--plan",
    "plan.yaml",
];

fn project() -> Project {
    project_with(PLAN.as_bytes())
}

fn project_with(plan: &[u8]) -> Project {
    let project = Project::new(&[("a.txt", "broken\n")]);
    fs::write(project.repo().join("plan.yaml"), plan).unwrap();
    project.commit_all("plan");
    project
}

/// Every file below a directory with its content. Locks are no trace of a run.
fn files(dir: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.ends_with("sprag/locks") {
            continue;
        }
        if path.is_dir() {
            files(&path, into);
        }
        let content = match path.is_dir() || path.metadata().unwrap().len() > 1 << 20 {
            true => Vec::new(),
            false => fs::read(&path).unwrap(),
        };
        into.insert(path, content);
    }
}

fn world(project: &Project) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut world = BTreeMap::new();
    files(project.repo().parent().unwrap(), &mut world);
    world.retain(|path, _| !path.ends_with("state/sprag"));
    world
}

/// Runs `sprag` and holds it to this exit code, this standard error, no standard output, and an
/// untouched world. `$ROOT` is the directory around the repository.
fn refused(project: &Project, args: &[&str], code: i32, stderr: &str) {
    let before = world(project);
    let run = project.sprag(args);
    let root = project.repo().parent().unwrap().display().to_string();
    assert_eq!(run.stderr.replace(&root, "$ROOT"), stderr, "sprag {args:?}");
    assert_eq!(
        (run.code, run.stdout.as_str()),
        (code, ""),
        "sprag {args:?}"
    );
    let after = world(project);
    assert!(
        before == after,
        "sprag {args:?} left {:?}",
        after
            .keys()
            .filter(|path| before.get(*path) != after.get(*path))
            .collect::<Vec<_>>()
    );
    assert!(!project.repo().join("touched").exists());
}

fn refused_plan(plan: &[u8], stderr: &str) {
    refused(&project_with(plan), &RUN, 2, stderr);
}

#[test]
fn no_source() {
    refused(
        &project(),
        &["run"],
        2,
        "error: nothing to do: no plan and no prompt was given\n  give exactly one of --plan FILE, --prompt TEXT, --prompt-file FILE|-, --issue N, --queue DIR, --event\n",
    );
}

#[test]
fn two_sources() {
    let project = project();
    for (more, named) in [
        (["--prompt", "x"], "--plan and --prompt"),
        (["--prompt-file", "x"], "--plan and --prompt-file"),
    ] {
        refused(
            &project,
            &[&RUN[..], &more].concat(),
            2,
            &format!(
                "error: {named} were given together\n  give exactly one of --plan FILE, --prompt TEXT, --prompt-file FILE|-, --issue N, --queue DIR, --event\n"
            ),
        );
    }
}

#[test]
fn two_sources_among_the_inputs_of_the_action() {
    let mut project = project();
    project.env("INPUT_PLAN", "plan.yaml");
    project.env("INPUT_PROMPT", "x");
    refused(
        &project,
        &["run"],
        2,
        "error: the inputs plan and prompt were given together\n  give one of plan, prompt, prompt-file, issue, queue\n",
    );
}

#[test]
fn a_prompt_as_the_argument_and_as_a_flag() {
    let project = project();
    let run = project.sprag(&["run", "x", "--prompt", "y"]).expect(2);
    assert!(run.stderr.contains("cannot be used with"), "{}", run.stderr);
    refused(
        &project,
        &[&RUN[..], &["x"]].concat(),
        2,
        "error: --plan and --prompt were given together\n  give exactly one of --plan FILE, --prompt TEXT, --prompt-file FILE|-, --issue N, --queue DIR, --event\n",
    );
    refused(
        &project,
        &["run", "plan.yaml"],
        2,
        "error: the prompt `plan.yaml` is a file name\n  run it with --plan plan.yaml, or use its text as the prompt with --prompt-file plan.yaml\n",
    );
}

#[test]
fn an_unknown_key() {
    let project = project();
    for (file, text, expected) in [
        (
            "p.yaml",
            "verfy: ['false']\ntasks: [{title: x}]\n",
            "error: p.yaml:1:1: `verfy` is not a key of a plan (did you mean `verify`?)\n",
        ),
        (
            "p.yaml",
            "tasks:\n- title: x\n  verfy: ['false']\n",
            "error: p.yaml:3:3: `verfy` is not a key of a task (did you mean `verify`?)\n",
        ),
        (
            "p.yaml",
            "verify: [{ run: x, tmeout: 1m }]\ntasks: [{title: x}]\n",
            "error: p.yaml:1:20: a check has no part `tmeout`, only name, run, kind, timeout, junit, problem_matcher (did you mean `timeout`?)\n",
        ),
        (
            "p.yaml",
            "progress: { ignroe: [x] }\ntasks: [{title: x}]\n",
            "error: p.yaml:1:13: progress has no part `ignroe`, only ignore (did you mean `ignore`?)\n",
        ),
        (
            "p.md",
            "---\nverfy: ['false']\n---\n- [ ] x\n",
            "error: p.md:2:1: `verfy` is not a key of a plan (did you mean `verify`?)\n",
        ),
    ] {
        project.write(file, text);
        refused(
            &project,
            &["run", "--plan", file, "--agent", "codex"],
            2,
            expected,
        );
    }
    project.write(".sprag/config.yaml", "verfy: ['false']\n");
    refused(
        &project,
        &RUN,
        2,
        "error: .sprag/config.yaml:1:1: `verfy` is not a key of the configuration (did you mean `verify`?)\n",
    );
}

#[test]
fn an_empty_prompt() {
    refused(
        &project(),
        &["run", "--prompt", " "],
        2,
        "error: the prompt is empty\n  describe the work to do\n",
    );
}

#[test]
fn a_missing_plan() {
    refused(
        &project(),
        &["run", "--plan", "no.yaml", "--agent-command", "x"],
        2,
        "error: there is no plan $ROOT/repo/no.yaml\n  check the path; it is relative to the current directory\n",
    );
}

#[test]
fn a_directory_as_plan() {
    refused(
        &project(),
        &["run", "--plan", ".", "--agent-command", "x"],
        2,
        "error: the plan $ROOT/repo is a directory, not a file\n  name a file in it\n",
    );
}

#[test]
fn an_empty_plan() {
    for empty in ["", "\n\n", "# nothing yet\n", "---\n"] {
        refused_plan(
            empty.as_bytes(),
            "error: plan.yaml:1:1: the plan is empty: it needs `tasks`\n",
        );
    }
    refused_plan(
        b"title: Example\n",
        "error: plan.yaml:1:1: the plan has no `tasks`: add a list of at least one task\n",
    );
    refused_plan(
        b"tasks: []\n",
        "error: plan.yaml:1:1: `tasks` is empty: a plan needs at least one task\n",
    );
}

#[test]
fn a_binary_plan() {
    refused_plan(
        b"\x7fELF\x02\x01\x00\x00",
        "error: plan.yaml:1:7: a zero byte: this is not a text file; save it as UTF-8 text\n",
    );
    refused_plan(
        b"title: caf\xe9\n",
        "error: plan.yaml:1:11: not UTF-8: save the file as UTF-8 text\n",
    );
}

#[test]
fn a_huge_plan() {
    let project = project();
    let huge = project.outside("huge.yaml");
    fs::File::create(&huge).unwrap().set_len(100 << 20).unwrap();
    for (flag, what) in [
        ("--plan", "agent/huge.yaml"),
        ("--prompt-file", "agent/huge.yaml"),
    ] {
        refused(
            &project,
            &["run", flag, huge.to_str().unwrap(), "--agent-command", "x"],
            2,
            &format!(
                "error: $ROOT/{what}:1:1: the file has 104857600 bytes, but at most 1048576 are read: split it\n"
            ),
        );
    }
}

#[test]
fn a_plan_indented_with_tabs() {
    refused_plan(
        b"title: Example\ntasks:\n\t- id: fix\n",
        "error: plan.yaml:3:1: a tab cannot indent YAML: use spaces\n",
    );
}

#[test]
fn an_unknown_task() {
    let project = project();
    refused(
        &project,
        &[&RUN[..], &["--task", "fx"]].concat(),
        2,
        "error: --task fx: the plan has no such task (did you mean `fix`?)\n  its tasks are fix\n",
    );
}

#[test]
fn wrong_dependencies() {
    let plan = |first: &str, second: &str| {
        format!(
            "tasks:\n  - id: alpha\n    title: A\n    depends_on: [{first}]\n  - id: beta\n    title: B\n    depends_on: [{second}]\n"
        )
    };
    refused_plan(
        plan("beta", "alpha").as_bytes(),
        "error: plan.yaml:4:18: depends_on has a cycle: alpha -> beta -> alpha; remove one of these dependencies\n",
    );
    refused_plan(
        plan("alpha", "").as_bytes(),
        "error: plan.yaml:4:18: depends_on has a cycle: alpha -> alpha; remove one of these dependencies\n",
    );
    refused_plan(
        plan("bate", "").as_bytes(),
        "error: plan.yaml:4:18: depends_on names the task `bate`, which does not exist (did you mean `beta`?)\n",
    );
    refused_plan(
        plan("something-else", "").as_bytes(),
        "error: plan.yaml:4:18: depends_on names the task `something-else`, which does not exist; add that task or remove the dependency\n",
    );
}

#[test]
fn a_task_id_given_twice() {
    refused_plan(
        b"tasks:\n  - id: a\n    title: A\n  - id: a\n    title: B\n",
        "error: plan.yaml:4:9: the task id `a` is given twice, first on line 2; give one of them another id\n",
    );
}

#[test]
fn wrong_retries() {
    for wrong in ["-1", "1.5", "11", "\"x\"", "x"] {
        let message = |place: &str, wrong: &str| {
            format!("error: {place} must be a whole number from 0 to 10, got {wrong}\n")
        };
        refused_plan(
            format!("max_retries: {wrong}\n{PLAN}").as_bytes(),
            &message("plan.yaml:1:14: max_retries", wrong),
        );
        refused_plan(
            format!("{PLAN}    max_retries: {wrong}\n").as_bytes(),
            &message("plan.yaml:5:18: max_retries", wrong),
        );

        let in_file = project();
        in_file.write(
            ".sprag/config.yaml",
            &format!("model: m\nmax_retries: {wrong}\n"),
        );
        in_file.commit_all("configuration");
        refused(
            &in_file,
            &RUN,
            2,
            &message(".sprag/config.yaml:2:14: max_retries", wrong),
        );

        let bare = wrong.trim_matches('"');
        let by_flag = project();
        refused(
            &by_flag,
            &[&RUN[..], &["--max-retries", bare]].concat(),
            2,
            &message("--max-retries", bare),
        );
        for (variable, place) in [
            ("SPRAG_MAX_RETRIES", "SPRAG_MAX_RETRIES"),
            ("INPUT_MAX-RETRIES", "action input max-retries"),
        ] {
            let mut project = project();
            project.env(variable, bare);
            refused(&project, &RUN, 2, &message(place, bare));
        }
    }
}

#[test]
fn an_unknown_agent() {
    let args = ["run", "--plan", "plan.yaml", "--agent"];
    for (agent, nearest) in [("cursor", ""), ("cluade", " (did you mean `claude`?)")] {
        let known = AGENTS.join(", ");
        refused(
            &project(),
            &[&args[..], &[agent]].concat(),
            2,
            &format!("error: --agent must be one of {known}, got {agent}{nearest}\n"),
        );
    }
}

/// The flags that choose an agent without a command of the user's, as the program tells them.
pub fn agent_flags() -> String {
    let named = sprag::agents::names().filter(|name| ![ACP, COMMAND].contains(name));
    let flags: Vec<String> = named.map(|name| format!("--agent {name}")).collect();
    flags.join(", ")
}

#[test]
fn no_agent() {
    refused(
        &project(),
        &["run", "--plan", "plan.yaml"],
        4,
        &format!(
            "error: no agent is configured\n  name one: {}, or --agent-command 'COMMAND'; or set `agent` in .sprag/config.yaml\n  or use the built-in agent: set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, OPENROUTER_API_KEY, DEEPSEEK_API_KEY, GROQ_API_KEY, MISTRAL_API_KEY, XAI_API_KEY\n  or name a server that speaks OpenAI's format with SPRAG_BASE_URL\n",
            agent_flags()
        ),
    );
}

#[test]
fn not_a_repository() {
    let project = project();
    // Outside of every repository, which the other directories of the tests are not.
    let elsewhere = tempfile::tempdir().unwrap();
    refused(
        &project,
        &[
            "run",
            "--prompt",
            "x",
            "--agent-command",
            "x",
            "-C",
            elsewhere.path().to_str().unwrap(),
        ],
        2,
        &format!(
            "error: {} is not inside a git repository; check one out (actions/checkout) or run git init\n",
            elsewhere.path().display()
        ),
    );
    refused(
        &project,
        &[
            "run",
            "--prompt",
            "x",
            "--agent-command",
            "x",
            "-C",
            "nowhere",
        ],
        2,
        "error: there is no directory $ROOT/repo/nowhere\n  -C needs the path of a repository's work tree\n",
    );
}

#[test]
fn a_run_directory_that_is_in_use() {
    let project = project();
    let used = project.outside("used");
    fs::create_dir(&used).unwrap();
    fs::write(used.join("notes"), "kept").unwrap();
    refused(
        &project,
        &[
            "run",
            "--prompt",
            "x",
            "--agent-command",
            "x",
            "--run-dir",
            used.to_str().unwrap(),
        ],
        2,
        "error: the run directory $ROOT/agent/used exists and is not an empty directory\n  name a new directory, or add --resume to continue the run in it\n",
    );
    assert_eq!(fs::read_to_string(used.join("notes")).unwrap(), "kept");
}

#[test]
fn a_bare_repository() {
    let project = project();
    let bare = project.outside("bare.git");
    project.git(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    refused(
        &project,
        &[
            "run",
            "--prompt",
            "x",
            "--agent-command",
            "x",
            "-C",
            bare.to_str().unwrap(),
        ],
        2,
        "error: $ROOT/agent/bare.git is a bare repository; run in a checkout with a work tree\n",
    );
}

#[test]
fn a_dirty_tree() {
    let project = project();
    project.write("a.txt", "mine\n");
    project.write("new.txt", "mine too\n");
    refused(
        &project,
        &RUN,
        2,
        "error: the work tree is not clean:\n    a.txt\n    new.txt\n  commit or stash these files, or use --allow-dirty (then nothing is committed)\n  to continue an interrupted run, use --resume\n",
    );
}

#[test]
fn a_directory_that_git_does_not_know() {
    let project = project();
    for n in 0..30 {
        project.write(&format!("build/{n}.o"), "");
    }
    project.write("a.txt", "mine\n");
    refused(
        &project,
        &RUN,
        2,
        "error: the work tree is not clean:\n    a.txt\n    build/\n  commit or stash these files, or use --allow-dirty (then nothing is committed)\n  to continue an interrupted run, use --resume\n",
    );
}

/// A commit fails on it, after an agent has worked.
#[test]
fn a_lock_that_a_killed_git_left() {
    let project = project();
    project.write(".git/index.lock", "");
    let run = project.sprag(&RUN).expect(1);
    let told = format!(
        "{} is held by another git process, and nothing can be committed until it is gone: remove the file if no git is running",
        project.repo().join(".git/index.lock").display()
    );
    let warnings = run.summary["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|it| *it == told), "{warnings:?}");
    assert!(project.repo().join(".git/index.lock").exists());
    let doctor = project.sprag(&["doctor"]).stdout;
    assert!(
        doctor.contains("index.lock is held by another git process"),
        "{doctor}"
    );
    let run = project.sprag(&[&RUN[..], &["--allow-dirty"]].concat());
    assert_eq!(
        run.summary["warnings"],
        serde_json::json!([]),
        "nothing is committed"
    );
}

#[test]
fn a_misspelt_variable_is_told_with_the_one_that_is_meant() {
    let mut project = project();
    project.env("SPRAG_MAX_RETRYS", "0");
    project.env("SPRAG_TASK_ID", "of-an-agent-around-this-run");
    let run = project.sprag(&RUN);
    assert_eq!(
        run.summary["warnings"],
        serde_json::json!([
            "the variable SPRAG_MAX_RETRYS is set, and nothing reads it: did you mean SPRAG_MAX_RETRIES?"
        ])
    );
    let doctor = project.sprag(&["doctor"]).stdout;
    assert!(
        doctor.contains("did you mean SPRAG_MAX_RETRIES?"),
        "{doctor}"
    );
}

#[test]
fn a_plan_with_a_conflict() {
    refused_plan(
        b"title: Example\n<<<<<<< HEAD\ngoal: one\n=======\ngoal: two\n>>>>>>> topic\n",
        "error: plan.yaml:2:1: unresolved merge conflict: resolve it\n",
    );
}

#[test]
fn a_very_dirty_tree() {
    let project = project();
    for n in 10..40 {
        project.write(&format!("new-{n}.txt"), "mine\n");
    }
    let run = project.sprag(&RUN);
    let listed: Vec<&str> = run
        .stderr
        .lines()
        .filter(|line| line.starts_with("    "))
        .collect();
    assert_eq!(listed.len(), 21);
    assert_eq!(
        (listed[0], listed[20]),
        ("    new-10.txt", "    and 10 more")
    );
}

#[test]
fn a_merge_in_progress() {
    let project = project();
    project.git(&["checkout", "--quiet", "-b", "other"]);
    project.write("b.txt", "theirs\n");
    project.commit_all("theirs");
    project.git(&["checkout", "--quiet", "main"]);
    project.write("c.txt", "ours\n");
    project.commit_all("ours");
    project.git(&["merge", "--quiet", "--no-commit", "--no-ff", "other"]);
    refused(
        &project,
        &RUN,
        2,
        "error: a merge is in progress; finish it or run `git merge --abort`\n",
    );
}

#[test]
fn an_unknown_flag() {
    refused(
        &project(),
        &["run", "--plan", "plan.yaml", "--agnt", "codex"],
        2,
        "error: unexpected argument '--agnt' found\n\n  tip: a similar argument exists: '--agent'\n\nUsage: sprag run --plan <FILE> --agent <NAME> [PROMPT]\n\nFor more information, try '--help'.\n",
    );
}

#[test]
fn a_place_for_events_that_is_not_there() {
    let project = project();
    refused(
        &project,
        &[&RUN[..], &["--events", "no/where.jsonl"]].concat(),
        2,
        "error: --events $ROOT/repo/no/where.jsonl: No such file or directory (os error 2)\n  name a file in a directory that exists, or - for standard output\n",
    );
}

#[test]
fn a_run_directory_in_the_work_tree() {
    let project = project();
    refused(
        &project,
        &[&RUN[..], &["--run-dir", "runs/1"]].concat(),
        2,
        "error: the run directory $ROOT/repo/runs/1 lies inside the repository\n  choose a place outside of the work tree: the agent could write there\n",
    );
}

#[test]
fn nothing_to_resume() {
    let project = project();
    let run = project.sprag(&["run", "--resume"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr
            .starts_with("error: there is no unfinished run in "),
        "{}",
        run.stderr
    );
    assert!(
        run.stderr.ends_with(
            "\n  start one with sprag run --plan FILE, or name one with --run-dir DIR\n"
        ),
        "{}",
        run.stderr
    );
}

/// A directory of programs that stands before all others on PATH, with `git` and `sh` behind it.
fn with_program(project: &mut Project, name: &str, script: &str) {
    let dir = project.outside("bin");
    fs::create_dir(&dir).unwrap();
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let rest = std::env::var("PATH").unwrap();
    project.env("PATH", format!("{}:{rest}", dir.display()));
}

#[test]
fn a_missing_agent_program() {
    for (agent, package) in CLIS.iter().map(|spec| (spec.name, spec.package.npm)) {
        let mut project = project();
        let dir = project.outside("bin");
        fs::create_dir(&dir).unwrap();
        for program in ["git", "sh"] {
            let path = std::env::var("PATH").unwrap();
            let found = std::env::split_paths(&path)
                .map(|dir| dir.join(program))
                .find(|path| path.is_file());
            std::os::unix::fs::symlink(found.unwrap(), dir.join(program)).unwrap();
        }
        project.env("PATH", &dir);
        refused(
            &project,
            &["run", "--plan", "plan.yaml", "--agent", agent],
            4,
            &format!(
                "error: the agent {agent} was not found on PATH\n  install it: npm install --global {package}\n  or use another agent: --agent NAME or --agent-command 'COMMAND'\n"
            ),
        );
    }
}

fn recorded(agent: &str, name: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agent-events");
    format!("cat {}; exit 1", fixtures.join(agent).join(name).display())
}

/// Whether a key is accepted can only be tried by starting the agent: nothing but its turn has
/// happened then.
fn refused_login(agent: &str, recording: &str) -> Run {
    let mut project = project();
    for key in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"] {
        project.env(key, "not-a-key");
    }
    with_program(&mut project, agent, &recorded(agent, recording));
    let head = project.head();
    let run = project
        .sprag(&["run", "--plan", "plan.yaml", "--agent", agent])
        .expect(4);
    assert_eq!(run.summary["status"], "environment");
    assert_eq!(run.summary["totals"]["retries"], 0);
    assert_eq!(run.summary["totals"]["turns"], 1);
    assert_eq!((project.head(), project.status()), (head, String::new()));
    run
}

#[test]
fn an_agent_without_a_key_and_a_login_is_not_started() {
    for (agent, keys, file) in [
        (
            "claude",
            "ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN",
            ".claude/.credentials.json",
        ),
        (
            "codex",
            "CODEX_API_KEY or OPENAI_API_KEY",
            ".codex/auth.json",
        ),
    ] {
        let mut project = project();
        let started = project.outside("started");
        with_program(&mut project, agent, &format!("touch {}", started.display()));
        let home = project.outside("home");
        project.env("HOME", &home);
        let head = project.head();
        let args = ["run", "--plan", "plan.yaml", "--agent", agent];
        let file = home.join(file);
        refused(
            &project,
            &args,
            4,
            &format!(
                "error: the agent {agent} cannot work: {keys} is not set, and it is not logged in ({} is not there)\n  set {keys} from a secret, or log {agent} in\n  or use another agent: --agent NAME or --agent-command 'COMMAND'\n",
                file.display()
            )
            .replace(&project.repo().parent().unwrap().display().to_string(), "$ROOT"),
        );
        assert!(!started.exists());
        assert_eq!((project.head(), project.status()), (head, String::new()));

        // A login is as good as a key; what it is worth only the agent can tell.
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "{}").unwrap();
        project.sprag(&args);
        assert!(started.exists());
    }
}

#[test]
fn a_setup_command_may_log_the_agent_in() {
    let mut project = project();
    with_program(&mut project, "codex", "exit 1");
    let home = project.outside("home");
    project.env("HOME", &home);
    let config = |setup: &str| format!("setup: ['{setup}']\n");
    let path = project.outside("config.yaml");
    let args = ["run", "--plan", "plan.yaml", "--agent", "codex"];
    let args = [&args[..], &["--config", path.to_str().unwrap()]].concat();
    fs::write(project.outside("config.yaml"), config("true")).unwrap();
    let run = project.sprag(&args).expect(4);
    assert!(run.stderr.contains("CODEX_API_KEY"), "{}", run.stderr);
    assert_eq!(run.summary["reason"], "agent_unavailable");
    assert_eq!(run.summary["totals"]["turns"], 0);
    let log_in = "mkdir -p ~/.codex; echo {} > ~/.codex/auth.json";
    fs::write(project.outside("config.yaml"), config(log_in)).unwrap();
    let run = project.sprag(&args);
    assert_eq!(run.summary["totals"]["turns"], 1);
}

#[test]
fn a_key_that_the_agent_does_not_see() {
    let run = refused_login("claude", "no_api_key.jsonl");
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains("ANTHROPIC_API_KEY"), "{message}");
    assert!(run.stdout.contains("ANTHROPIC_API_KEY"), "{}", run.stdout);
}

#[test]
fn a_refused_key() {
    for (agent, key) in [("claude", "ANTHROPIC_API_KEY"), ("codex", "OPENAI_API_KEY")] {
        let run = refused_login(agent, "api_error_401.jsonl");
        let message = run.task(0)["message"].as_str().unwrap();
        assert!(
            message.contains("401") && message.contains(key),
            "{message}"
        );
    }
}
