//! Wrong input ends with one message that says where, what was expected and what to do, before
//! anything is touched.

mod agents;
mod plans;

use crate::support::has;
use crate::support::project::Project;
use sprag::agents::{ACP, COMMAND};
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
        let content = if path.is_dir() || path.metadata().unwrap().len() > 1 << 20 {
            Vec::new()
        } else {
            fs::read(&path).unwrap()
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
fn flags_that_cannot_be_used() {
    for (args, stderr) in [
        (
            &["run"][..],
            "error: nothing to do: no plan and no prompt was given\n  give exactly one of a prompt in quotes, --plan FILE, --prompt-file FILE|-, --issue N, --queue DIR, --event\n",
        ),
        (
            &["run", "--prompt", " "],
            "error: the prompt is empty\n  describe the work to do\n",
        ),
        (
            &["run", "--plan", "plan.yaml", "--agnt", "codex"],
            "error: unexpected argument '--agnt' found\n\n  tip: a similar argument exists: '--agent'\n\nUsage: sprag run --plan <FILE> --agent <NAME> [PROMPT]\n\nFor more information, try '--help'.\n",
        ),
        (
            &[&RUN[..], &["--events", "no/where.jsonl"]].concat(),
            "error: --events $ROOT/repo/no/where.jsonl: No such file or directory (os error 2)\n  name a file in a directory that exists, or - for standard output\n",
        ),
        (
            &[&RUN[..], &["--run-dir", "runs/1"]].concat(),
            "error: the run directory $ROOT/repo/runs/1 lies inside the repository\n  choose a place outside of the work tree: the agent could write there\n",
        ),
        (
            &["run", "--plan", "no.yaml", "--agent-command", "x"],
            "error: there is no plan $ROOT/repo/no.yaml\n  check the path; it is relative to the current directory\n",
        ),
        (
            &["run", "--plan", ".", "--agent-command", "x"],
            "error: the plan $ROOT/repo is a directory, not a file\n  name a file in it\n",
        ),
        (
            &[&RUN[..], &["--task", "fx"]].concat(),
            "error: --task fx: the plan has no such task (did you mean `fix`?)\n  its tasks are fix\n",
        ),
    ] {
        refused(&project(), args, 2, stderr);
    }
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
                "error: {named} were given together\n  give exactly one of a prompt in quotes, --plan FILE, --prompt-file FILE|-, --issue N, --queue DIR, --event\n"
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
        "error: --plan and --prompt were given together\n  give exactly one of a prompt in quotes, --plan FILE, --prompt-file FILE|-, --issue N, --queue DIR, --event\n",
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
    for n in 0..30 {
        project.write(&format!("build/{n}.o"), "");
    }
    project.write("a.txt", "mine\n");
    project.write("new.txt", "mine too\n");
    refused(
        &project,
        &RUN,
        2,
        "error: the work tree is not clean:\n    a.txt\n    build/\n    new.txt\n  commit or stash these files, or use --allow-dirty (then nothing is committed)\n  to continue an interrupted run, use --resume\n",
    );
}

#[test]
fn a_dirty_tree_is_not_answered_with_a_flag_that_is_refused() {
    let project = project();
    project.write("a.txt", "mine\n");
    let run = [&RUN[..], &["--keep-going"]].concat();
    let said = "error: the work tree is not clean:\n    a.txt\n  commit or stash these files\n";
    let resume = "  to continue an interrupted run, use --resume\n";
    refused(&project, &run, 2, &format!("{said}{resume}"));
    let integrate = ["integrate", "--plan", "plan.yaml", "main"];
    refused(&project, &integrate, 2, said);
    refused(
        &project,
        &["plan", "CSV", "--agent-command", "true"],
        2,
        said,
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
    has(&doctor, "index.lock is held by another git process");
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
    has(&doctor, "did you mean SPRAG_MAX_RETRIES?");
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
