//! The real `codex` and `claude`, started with our arguments against a scripted model, and their
//! output read by our parsers: here a change of their command lines or streams shows.

use crate::support::agent_clis;
use crate::support::model_api::{ModelApi, Step};
use crate::support::npm::not_tested;

use sprag::agents::{CliAgent, ExitFacts, OwnSandbox, RepositoryFiles, TurnRequest, claude, codex};
use sprag::domain::agent::{AgentReport, ApiErrorClass};
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const CODEX: CliAgent = CliAgent::Known(&codex::SPEC);
const CLAUDE: CliAgent = CliAgent::Known(&claude::SPEC);

/// A repository of one commit, a home, and a clean environment.
struct Place {
    root: TempDir,
    env: Vec<(OsString, OsString)>,
}

impl Place {
    /// `None` when there are no agents to test.
    fn new(agent_env: Vec<(String, String)>) -> Option<Self> {
        let agents = agent_clis::bin()?.to_path_buf();
        let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        for dir in ["work", "home", "tmp", "scratch"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [agents].into_iter().chain(std::env::split_paths(&path));
        let mut env: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), std::env::join_paths(path).unwrap()),
            ("HOME".into(), root.path().join("home").into()),
            ("TMPDIR".into(), root.path().join("tmp").into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ];
        env.extend(
            agent_env
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        let place = Self { root, env };
        place.git(&["init", "--quiet", "--initial-branch=main"]);
        place.git(&[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "--allow-empty",
            "--message=start",
        ]);
        Some(place)
    }

    fn dir(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn git(&self, args: &[&str]) {
        let status = Command::new("git")
            .args(args)
            .current_dir(self.dir("work"))
            .env_clear()
            .envs(self.env.iter().cloned())
            .status()
            .unwrap();
        assert!(status.success(), "git {args:?}");
    }

    fn request<'a>(&'a self, work: &'a Path, scratch: &'a Path) -> TurnRequest<'a> {
        TurnRequest {
            work_tree: work,
            directory: work,
            scratch,
            model: None,
            extra_args: &[],
            resume: None,
            max_cost_usd: None,
            may_write: true,
            own_sandbox: OwnSandbox::On,
            repository_files: RepositoryFiles::AsTheyAre,
            is_root: rustix::process::geteuid().is_root(),
            mcp: &[],
            output_schema: None,
            base_env: &self.env,
        }
    }

    fn turn(&self, agent: &CliAgent, request: &TurnRequest<'_>, prompt: &str) -> AgentReport {
        let invocation = agent.invocation(request);
        for (path, content) in &invocation.files {
            fs::write(path, content).unwrap();
        }
        let mut child = Command::new(&invocation.program)
            .args(&invocation.args)
            .current_dir(request.work_tree)
            .env_clear()
            .envs(self.env.iter().cloned())
            .envs(invocation.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // An agent that refuses to start does not read its prompt.
        match child.stdin.take().unwrap().write_all(prompt.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => panic!("no prompt: {error}"),
            _ => {}
        }
        let output = child.wait_with_output().unwrap();
        let mut parser = agent.reader(request, prompt);
        for line in output.stdout.split(|byte| *byte == b'\n') {
            parser.line(line);
        }
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let final_file = invocation
            .final_message_file
            .and_then(|file| fs::read(file).ok());
        parser.finish(ExitFacts {
            code: output.status.code(),
            signal: output.status.signal(),
            stderr_tail: &stderr,
            final_file: final_file.as_deref(),
            ..ExitFacts::default()
        })
    }
}

#[test]
fn a_session_that_is_gone_is_a_failed_attempt_and_not_the_end_of_the_run() {
    for agent in [CODEX, CLAUDE] {
        let api = ModelApi::start([]).unwrap();
        let mut env = api.codex_env();
        env.extend(api.claude_env());
        let Some(place) = Place::new(env) else { return };
        let (work, scratch) = (place.dir("work"), place.dir("scratch"));
        let extra = if agent == CODEX {
            api.codex_args()
        } else {
            Vec::new()
        };
        let request = TurnRequest {
            extra_args: &extra,
            resume: Some("0198a1f8-0000-7000-8000-000000000000"),
            ..place.request(&work, &scratch)
        };
        let report = place.turn(&agent, &request, "go on");
        let class = report.api_error.map(|error| error.class);
        assert_eq!(
            (class, report.session_id),
            (Some(ApiErrorClass::Rejected), None),
            "{agent:?}"
        );
    }
}

#[test]
fn commands_of_codex_do_not_see_its_key() {
    let Some(probe) = Place::new(Vec::new()) else {
        return;
    };
    // Codex's own sandbox needs user namespaces.
    let mut sandbox = Command::new(agent_clis::bin().unwrap().join("codex"));
    sandbox.args(["sandbox", "--", "true"]).env_clear();
    let output = sandbox.envs(probe.env.iter().cloned()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("bwrap: ") {
        return not_tested("codex's own sandbox", said.trim_end());
    }
    let steps = [
        Step::Shell("env > seen.txt".to_owned()),
        Step::Text("Looked.".to_owned()),
    ];
    let api = ModelApi::start(steps).unwrap();
    let mut env = api.codex_env();
    env.push(("OPENAI_API_KEY".to_owned(), "canary-key".to_owned()));
    env.push(("AGENT_SETTING".to_owned(), "canary-setting".to_owned()));
    let Some(place) = Place::new(env) else { return };
    let (work, scratch, extra) = (place.dir("work"), place.dir("scratch"), api.codex_args());
    let request = TurnRequest {
        extra_args: &extra,
        ..place.request(&work, &scratch)
    };
    place.turn(&CODEX, &request, "look around");
    let seen = fs::read_to_string(place.dir("work/seen.txt")).unwrap();
    assert!(seen.contains("canary-setting"), "{seen}");
    assert!(!seen.contains("canary-key"), "{seen}");
}
