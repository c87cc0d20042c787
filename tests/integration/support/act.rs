//! Workflows run by `act`, which reads expressions, conditions, matrices, dependencies between jobs and workflow
//! commands as GitHub's runner does, against the GitHub of [`Runner`].
//!
//! Steps run on this machine. What is not as on GitHub: the actions of others are those of `tests/act`, which do
//! in a few lines of shell what the workflows need of them; `npm`, `cargo`, `codex` and `claude` are stand-ins; and
//! act knows neither `permissions` nor `concurrency`. The permissions are held nevertheless: each job gets a token
//! that has those it names and no others.

use super::github::{Access, Area, Token};
use super::npm;
use super::proc::end_of;
use super::runner::{Runner, TOKEN};
use crate::action_file::{ROOT, write_program};
use serde_json::{Value, json};
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What the model's key is in the jobs' secrets.
const MODEL_KEY: &str = "sk-act-canary-000000000000";

/// The agents: each makes a file for a task that is called `Add part-...`, finds something in a review, and writes
/// `fixed` to `a.txt` otherwise.
const WORK: &str = r#"prompt=$(cat)
part=$(printf '%s\n' "$prompt" | sed -n 's/.*Add \(part-[a-z]*\).*/\1/p' | head -n 1)
said='SUGGESTED_COMMIT_MESSAGE: Say fixed'
case $part,$prompt in
  ,*VERDICT*) said='- b.txt:1: say more than feature\n\nVERDICT: NEEDS_FIXES' ;;
  ,*) printf fixed > a.txt ;;
  *) echo new > "$part.txt"; said="SUGGESTED_COMMIT_MESSAGE: Add $part" ;;
esac
tell() { printf '%s\n' "$1"; }
"#;
const CODEX: &str = r#"tell '{"type":"thread.started","thread_id":"00000000-0000-4000-8000-000000000001"}'
tell "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"id\":\"1\",\"text\":\"$said\"}}"
tell '{"type":"turn.completed","usage":{"input_tokens":1200,"cached_input_tokens":0,"output_tokens":34}}'
"#;
const CLAUDE: &str = r#"tell '{"type":"system","subtype":"init","session_id":"00000000-0000-4000-8000-000000000002"}'
tell "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"$said\",\"session_id\":\"00000000-0000-4000-8000-000000000002\",\"total_cost_usd\":0.25,\"usage\":{\"input_tokens\":1200,\"output_tokens\":34}}"
"#;

/// What a workflow left that has run to its end.
pub struct Ended {
    /// Whether every job ended well.
    pub succeeded: bool,
    /// What act told of steps and of what they printed.
    pub log: Vec<Value>,
    /// What the last step of each job read of the outputs of the step `sprag`.
    pub outputs: Vec<StepOutputs>,
}

/// The outputs of the step `sprag` as a later step of its job read them.
pub struct StepOutputs {
    /// The key of the job.
    pub job: String,
    /// The row of the matrix; `null` without one.
    pub matrix: Value,
    /// The outputs.
    pub outputs: Value,
}

impl StepOutputs {
    /// An output; empty when there is none.
    pub fn output(&self, name: &str) -> &str {
        self.outputs[name].as_str().unwrap_or_default()
    }
}

impl Ended {
    /// Fails with the whole log unless this holds.
    pub fn expect(self, succeeded: bool) -> Self {
        assert_eq!(self.succeeded, succeeded, "{}", self.text());
        self
    }

    /// What the one job told that ran, or the one with this key.
    pub fn job(&self, key: &str) -> &StepOutputs {
        let mut found = self.outputs.iter().filter(|outputs| outputs.job == key);
        let (first, second) = (found.next(), found.next());
        assert!(second.is_none(), "two jobs {key}");
        let nothing = || panic!("no job {key} ran: {}", self.text());
        first.unwrap_or_else(nothing)
    }

    /// The log as a person reads it.
    pub fn text(&self) -> String {
        let lines = self.log.iter().filter_map(|line| line["msg"].as_str());
        let is_of_act = |line: &str| line.starts_with("LocalRepositoryCache");
        lines
            .filter(|line| !is_of_act(line))
            .map(|line| format!("{}\n", line.trim_end()))
            .collect()
    }

    /// The annotations that the runner made: kind, file and text.
    pub fn annotations(&self) -> Vec<(String, String, String)> {
        let is_one = |line: &&Value| {
            ["error", "warning", "notice"]
                .iter()
                .any(|kind| line["command"] == *kind)
        };
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let found = self.log.iter().filter(is_one);
        found
            .map(|line| {
                let file = &line["kvPairs"]["file"];
                (text(&line["command"]), text(file), text(&line["arg"]))
            })
            .collect()
    }
}

/// The program `act`. `None` when it is not here: the test that asks has then nothing to do, and its reader is told
/// so. With `SPRAG_CI_STRICT=1` that is a failure.
pub fn program() -> Option<&'static Path> {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match FOUND.get_or_init(find) {
        Ok(program) => Some(program),
        Err(why) => {
            npm::not_tested("act", why);
            None
        }
    }
}

/// `scripts/test` names it in `SPRAG_TEST_ACT`. Without the variable it is installed here, into the same place.
fn find() -> Result<PathBuf, String> {
    match env::var_os("SPRAG_TEST_ACT") {
        Some(none) if none == "none" => {
            return Err("scripts/test could not install it, or was told not to".into());
        }
        Some(program) => return Ok(program.into()),
        None => {}
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let lock = File::create(target.join("act.lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    let script = Path::new(ROOT).join("scripts/install-act");
    let output = Command::new("bash")
        .arg(script)
        .env_clear()
        .envs(npm::registry_env())
        .env("CARGO_TARGET_DIR", target)
        .output()
        .map_err(|error| format!("bash cannot be started: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("pip could not install it:\n{stderr}"));
    }
    Ok(PathBuf::from(
        String::from_utf8_lossy(&output.stdout).trim(),
    ))
}

/// Lays out what the jobs find on their machine beside the repository: the programs on their `PATH`.
fn machine(runner: &Runner) -> PathBuf {
    let bin = runner.project.outside("bin");
    if bin.exists() {
        return bin;
    }
    let cargo = runner.project.beside("home").join(".cargo/bin");
    for dir in [&bin, &cargo] {
        fs::create_dir_all(dir).unwrap();
    }
    for (name, tells) in [("codex", CODEX), ("claude", CLAUDE)] {
        let text = format!("#!/bin/sh\n{WORK}{tells}");
        write_program(&bin.join(format!("{name}.package")), &text);
    }
    // Installing an agent puts its program on the `PATH`, and building Sprag the one that was built.
    let npm = "#!/bin/sh\nfor last; do :; done\ncase $last in\n  @openai/codex@*) name=codex ;;\n  @anthropic-ai/claude-code@*) name=claude ;;\n  *) exit 1 ;;\nesac\ncd \"$(dirname \"$0\")\" && cp $name.package $name.$$ && mv $name.$$ $name\n";
    write_program(&bin.join("npm"), npm);
    let built = env!("CARGO_BIN_EXE_sprag");
    let install = format!(
        "#!/bin/sh\necho \"$*\" >> '{}'\nln -sf '{built}' '{}'\n",
        runner.project.outside("cargo").display(),
        cargo.join("sprag").display()
    );
    write_program(&bin.join("cargo"), &install);
    bin
}

/// The token of a job that names these permissions, made known to GitHub.
fn token(runner: &Runner, job: usize, permissions: &Value) -> String {
    let named = [
        ("actions", Area::Actions),
        ("checks", Area::Checks),
        ("contents", Area::Contents),
        ("issues", Area::Issues),
        ("pull-requests", Area::Pulls),
    ];
    let mut token = Token::job();
    for (name, area) in named {
        let access = match permissions[name].as_str() {
            Some("write") => Access::Write,
            Some("read") => Access::Read,
            None => Access::None,
            Some(other) => panic!("{name}: {other}"),
        };
        token = token.may(area, access);
    }
    let secret = match permissions["contents"].as_str() {
        Some("write") => TOKEN.to_owned(),
        _ => format!("ghs_reader{job:026}"),
    };
    if secret != TOKEN {
        runner.server.read_only(&secret);
    }
    runner.github.token(&secret, token);
    secret
}

/// A workflow as it is run here: the steps that use Sprag take the program that was built, where they name none,
/// and the token of their job; a last step of each job tells what it reads of Sprag's outputs.
fn prepared(runner: &Runner, workflow: &str) -> Value {
    let mut workflow: Value = serde_saphyr::from_str(workflow).unwrap();
    let jobs = workflow["jobs"].as_object_mut().unwrap();
    for (n, (key, job)) in jobs.iter_mut().enumerate() {
        let token = token(runner, n, &job["permissions"]);
        let steps = job["steps"].as_array_mut().unwrap();
        let is_sprag = |step: &&mut Value| {
            let uses = step["uses"].as_str();
            uses.is_some_and(|uses| uses.starts_with("sprag-ci/sprag@"))
        };
        let step = steps.iter_mut().find(is_sprag).unwrap();
        if step["id"].is_null() {
            step["id"] = json!("sprag");
        }
        let id = step["id"].as_str().unwrap().to_owned();
        step["with"]["github-token"] = json!(token);
        if step["with"]["binary"].is_null() {
            step["with"]["binary"] = json!(env!("CARGO_BIN_EXE_sprag"));
        }
        steps.push(json!({
            "name": "Tell what a later step reads",
            "if": "always()",
            "env": {
                "TOLD": format!("{{\"job\":\"{key}\",\"matrix\":${{{{ toJSON(matrix) }}}},\"outputs\":${{{{ toJSON(steps.{id}.outputs) }}}}}}"),
            },
            "run": "printf '%s\\n' \"$TOLD\" > \"$(mktemp \"$ACT_TOLD/XXXXXX\")\"",
        }));
    }
    workflow
}

/// What a use of the action brings to a job, alone in a directory: act copies all that is there.
fn own_action(runner: &Runner) -> PathBuf {
    let to = runner.project.outside("action");
    fs::create_dir_all(to.join("action")).unwrap();
    let scripts = fs::read_dir(Path::new(ROOT).join("action"))
        .unwrap()
        .map(|entry| Path::new("action").join(entry.unwrap().file_name()));
    for file in scripts.chain(["action.yml", "Cargo.toml"].map(PathBuf::from)) {
        fs::copy(Path::new(ROOT).join(&file), to.join(&file)).unwrap();
    }
    to
}

/// Every action that a workflow uses, with the directory here that stands for it.
fn actions(runner: &Runner, workflow: &Value) -> Vec<String> {
    let own = own_action(runner);
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.flat_map(|job| job["steps"].as_array().unwrap());
    let used = steps.filter_map(|step| step["uses"].as_str());
    let here = |uses: &str| {
        let (name, version) = uses.split_once('@').unwrap();
        // An action may lie in a directory of its repository: OWNER/NAME/DIRECTORY.
        let mut parts = name.splitn(3, '/');
        let (owner, name) = (parts.next().unwrap(), parts.next().unwrap());
        let dir = match owner {
            "actions" => Path::new(ROOT).join("tests/act").join(name),
            _ => own.clone(),
        };
        assert!(
            dir.join(parts.next().unwrap_or(""))
                .join("action.yml")
                .is_file(),
            "nothing stands for {uses}"
        );
        format!(
            "--local-repository={owner}/{name}@{version}={}",
            dir.display()
        )
    };
    let mut all: Vec<String> = used.map(here).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Runs a workflow for the event of the next step of `runner` to its end. `None` where there is no act.
pub fn run(runner: &Runner, workflow: &str) -> Option<Ended> {
    let act = program()?;
    let bin = machine(runner);
    let prepared = prepared(runner, workflow);
    let at = |name: &str| {
        let dir = runner.project.outside(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        dir
    };
    let (outputs, artifacts) = (at("told"), at("artifacts"));
    let file = runner.project.outside("workflow.yml");
    fs::write(&file, prepared.to_string()).unwrap();

    let mut command = runner.project.program(act.to_str().unwrap(), &[]);
    let value = |command: &Command, name: &str| {
        let mut set = command.get_envs().filter(|(key, _)| *key == name);
        let value = set.next().and_then(|(_, value)| value);
        value.unwrap().to_str().unwrap().to_owned()
    };
    let event = value(&command, "GITHUB_EVENT_NAME");
    let payload = value(&command, "GITHUB_EVENT_PATH");
    command.arg(event).args(["--eventpath", &payload]);
    command.arg("--workflows").arg(&file);
    command.args(["--platform", "ubuntu-24.04=-self-hosted", "--json"]);
    command.args([
        "--no-skip-checkout",
        "--action-offline-mode",
        "--no-cache-server",
    ]);
    command.args(["--concurrent-jobs", "2", "--actor", "grace"]);
    command.args(actions(runner, &prepared));
    for name in [
        "GITHUB_API_URL",
        "GITHUB_SERVER_URL",
        "GITHUB_REPOSITORY",
        "GITHUB_REF",
        "GITHUB_SHA",
        "GITHUB_RUN_ID",
    ] {
        let set = format!("{name}={}", value(&command, name));
        command.args(["--env", &set]);
    }
    for name in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        command.args(["--secret", &format!("{name}={MODEL_KEY}")]);
    }
    // Jobs see their machine and what act sets, and nothing of what the tests set for steps of their own.
    let set: Vec<_> = command
        .get_envs()
        .map(|(name, _)| name.to_owned())
        .collect();
    for name in set {
        let name = name.to_str().unwrap();
        let is_of_tests = ["GITHUB_", "RUNNER_", "INPUT_", "SPRAG_"];
        if is_of_tests.iter().any(|prefix| name.starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    let home = runner.project.beside("home");
    let path = env::var("PATH").unwrap();
    let path = format!(
        "{}:{}:{path}",
        bin.display(),
        home.join(".cargo/bin").display()
    );
    command
        .env("PATH", path)
        .env("XDG_CACHE_HOME", home.join(".cache"))
        .env("SPRAG_GITHUB_SPACING_MS", "0")
        .env("ACT_ORIGIN", format!("file://{}", runner.bare().display()))
        .env("ACT_ARTIFACTS", &artifacts)
        .env("ACT_TOLD", &outputs);
    // Act may wait for ever for the terminal of a step that has ended.
    let log = runner.project.outside("printed");
    let written = File::create(&log).unwrap();
    command.stdin(Stdio::null());
    command.stdout(written.try_clone().unwrap()).stderr(written);
    let status = end_of(&mut command.spawn().unwrap());
    let printed = fs::read(&log).unwrap();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(
        !printed.contains(MODEL_KEY) && !printed.contains(TOKEN),
        "{printed}"
    );
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| json!({ "msg": line }));
    Some(Ended {
        succeeded: status.success(),
        log: printed.lines().map(line).collect(),
        outputs: read_outputs(&outputs),
    })
}

fn read_outputs(dir: &Path) -> Vec<StepOutputs> {
    let files = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut all: Vec<StepOutputs> = files
        .map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let mut value: Value = serde_json::from_str(&text).unwrap();
            StepOutputs {
                job: value["job"].as_str().unwrap().to_owned(),
                matrix: value["matrix"].take(),
                outputs: value["outputs"].take(),
            }
        })
        .collect();
    all.sort_by_key(|outputs| (outputs.job.clone(), outputs.matrix.to_string()));
    all
}
