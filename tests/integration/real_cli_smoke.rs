//! The real `codex` and `claude`, started with our arguments against a scripted model, and their
//! output read by our parsers: here a change of their command lines or streams shows.

use crate::support::agent_clis;
use crate::support::model_api::{ModelApi, Step};
use crate::support::model_wire::{TOKENS_CACHED, TOKENS_IN, TOKENS_OUT};
use crate::support::npm::not_tested;

use sprag::agents::{CliAgent, ExitFacts, OwnSandbox, RepositoryFiles, TurnRequest, claude, codex};
use sprag::domain::agent::{AgentEvent, AgentReport, ApiError, ApiErrorClass, Usage, UsageBasis};
use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;
use tempfile::TempDir;

const CODEX: CliAgent = CliAgent::Known(&codex::SPEC);
const CLAUDE: CliAgent = CliAgent::Known(&claude::SPEC);

/// A repository of one commit, a home, and a clean environment.
struct Place {
    root: TempDir,
    env: Vec<(OsString, OsString)>,
}

/// A turn's report and events.
struct Turn {
    report: AgentReport,
    events: Vec<AgentEvent>,
    stderr: String,
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

    fn turn(&self, agent: &CliAgent, request: &TurnRequest<'_>, prompt: &str) -> Turn {
        let invocation = agent.invocation(request);
        for (path, content) in &invocation.files {
            fs::write(path, content).unwrap();
        }
        let start = Instant::now();
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
        eprintln!(
            "{agent:?}: a turn of {:.2} s, {}",
            start.elapsed().as_secs_f64(),
            output.status
        );
        let mut parser = agent.reader(request, prompt);
        let lines = output.stdout.split(|byte| *byte == b'\n');
        let events = lines.flat_map(|line| parser.line(line)).collect();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let final_file = invocation
            .final_message_file
            .and_then(|file| fs::read(file).ok());
        let report = parser.finish(ExitFacts {
            code: output.status.code(),
            signal: output.status.signal(),
            stderr_tail: &stderr,
            final_file: final_file.as_deref(),
            ..ExitFacts::default()
        });
        Turn {
            report,
            events,
            stderr,
        }
    }
}

fn shell(command: &str) -> Step {
    Step::Shell(command.to_owned())
}

fn text(text: &str) -> Step {
    Step::Text(text.to_owned())
}

fn raw_lines(turn: &Turn) -> Vec<&AgentEvent> {
    turn.events
        .iter()
        .filter(|event| matches!(event, AgentEvent::Raw { .. }))
        .collect()
}

/// Two turns of one session: a file is written in the first, and appended to in the second.
fn edits_and_resumes(
    agent: &CliAgent,
    place: &Place,
    api: &ModelApi,
    request: &TurnRequest<'_>,
) -> [Turn; 2] {
    let first = place.turn(agent, request, "PROMPT-ONE: write hello.txt");
    assert_eq!(
        raw_lines(&first),
        Vec::<&AgentEvent>::new(),
        "{}",
        first.stderr
    );
    let read = || fs::read_to_string(place.dir("work/hello.txt")).ok();
    assert_eq!(
        read().as_deref(),
        Some("hello\n"),
        "{:?}\n{}",
        first.events,
        first.stderr
    );
    assert!(api.model_requests()[0].mentions("PROMPT-ONE: write hello.txt"));

    let session = first.report.session_id.clone();
    let again = TurnRequest {
        resume: session.as_deref(),
        ..*request
    };
    let second = place.turn(agent, &again, "PROMPT-TWO: append to it");
    assert_eq!(
        raw_lines(&second),
        Vec::<&AgentEvent>::new(),
        "{}",
        second.stderr
    );
    assert_eq!(
        read().as_deref(),
        Some("hello\nagain\n"),
        "{:?}\n{}",
        second.events,
        second.stderr
    );
    assert_eq!(second.report.session_id, session);
    let last = api.model_requests().pop().unwrap();
    assert!(last.mentions("PROMPT-ONE") && last.mentions("PROMPT-TWO"));
    assert_eq!(api.steps_left(), 0);
    [first, second]
}

fn edit_script() -> ModelApi {
    let steps = [
        shell("printf 'hello\\n' > hello.txt"),
        text("First turn: written."),
        shell("echo again >> hello.txt; exit 3"),
        text("Second turn: appended."),
    ];
    ModelApi::start(steps).unwrap()
}

fn report(turn: &Turn, message: &str, usage: Usage, usage_basis: UsageBasis) -> AgentReport {
    AgentReport {
        session_id: turn.report.session_id.clone(),
        final_message: Some(message.to_owned()),
        usage,
        usage_basis,
        tool_calls: 1,
        ..AgentReport::default()
    }
}

fn exit_codes(turn: &Turn) -> Vec<Option<i32>> {
    let code = |event: &AgentEvent| match event {
        AgentEvent::ToolResult { exit_code, .. } => Some(*exit_code),
        _ => None,
    };
    turn.events.iter().filter_map(code).collect()
}

/// Whether codex's own sandbox works here, which needs user namespaces.
fn has_codex_sandbox() -> bool {
    static WHY_NOT: OnceLock<Option<String>> = OnceLock::new();
    let why_not = WHY_NOT.get_or_init(|| {
        let place = Place::new(Vec::new())?;
        let mut command = Command::new(agent_clis::bin()?.join("codex"));
        command.args(["sandbox", "--", "true"]).env_clear();
        let output = command.envs(place.env.iter().cloned()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.contains("bwrap: ").then_some(said)
    });
    if let Some(why) = why_not {
        not_tested("codex's own sandbox", why.trim_end());
    }
    why_not.is_none()
}

fn codex_edits(model: Option<&str>, own_sandbox: OwnSandbox) {
    if own_sandbox == OwnSandbox::On && !has_codex_sandbox() {
        return;
    }
    let api = edit_script();
    let Some(place) = Place::new(api.codex_env()) else {
        return;
    };
    let (work, scratch, extra) = (place.dir("work"), place.dir("scratch"), api.codex_args());
    let request = TurnRequest {
        model,
        extra_args: &extra,
        own_sandbox,
        ..place.request(&work, &scratch)
    };
    let [first, second] = edits_and_resumes(&CODEX, &place, &api, &request);
    let usage = |requests| Usage {
        tokens_in: Some(TOKENS_IN * requests),
        tokens_cached: Some(TOKENS_CACHED * requests),
        tokens_out: Some(TOKENS_OUT * requests),
        cost_usd: None,
    };
    let session = UsageBasis::Session;
    assert_eq!(
        first.report,
        report(&first, "First turn: written.", usage(2), session)
    );
    assert_eq!(
        second.report,
        report(&second, "Second turn: appended.", usage(4), session)
    );
    assert_eq!(
        (exit_codes(&first), exit_codes(&second)),
        (vec![Some(0)], vec![Some(3)])
    );
}

#[test]
fn codex_edits_a_file_and_resumes_in_its_own_sandbox() {
    codex_edits(Some("gpt-5.5"), OwnSandbox::On);
}

#[test]
fn codex_edits_a_file_and_resumes_without_its_sandbox() {
    codex_edits(Some("gpt-5.5"), OwnSandbox::Off);
}

#[test]
fn codex_edits_a_file_and_resumes_with_its_default_model() {
    codex_edits(None, OwnSandbox::On);
}

fn claude_edits(own_sandbox: OwnSandbox) {
    let api = edit_script();
    let Some(place) = Place::new(api.claude_env()) else {
        return;
    };
    let (work, scratch) = (place.dir("work"), place.dir("scratch"));
    let request = TurnRequest {
        model: Some("claude-sonnet-4-5"),
        max_cost_usd: Some(5.0),
        own_sandbox,
        ..place.request(&work, &scratch)
    };
    let [first, second] = edits_and_resumes(&CLAUDE, &place, &api, &request);
    let usage = |turn: &Turn| Usage {
        tokens_in: Some(TOKENS_IN * 2),
        tokens_cached: Some(0),
        tokens_out: Some(TOKENS_OUT * 2),
        cost_usd: turn.report.usage.cost_usd.filter(|usd| *usd > 0.0),
    };
    let turn = UsageBasis::Turn;
    assert_eq!(
        first.report,
        report(&first, "First turn: written.", usage(&first), turn)
    );
    assert_eq!(
        second.report,
        report(&second, "Second turn: appended.", usage(&second), turn)
    );
    assert_eq!(
        (exit_codes(&first), exit_codes(&second)),
        (vec![Some(0)], vec![Some(3)])
    );
}

#[test]
fn claude_edits_a_file_and_resumes_with_permission_for_commands() {
    claude_edits(OwnSandbox::On);
}

#[test]
fn claude_edits_a_file_and_resumes_with_every_permission() {
    claude_edits(OwnSandbox::Off);
}

/// The API error of a turn in which the model's API answers with `status` alone.
fn error_of(agent: &CliAgent, status: u16, tries: usize) -> Option<(ApiErrorClass, Option<u16>)> {
    let api = ModelApi::start(vec![Step::Status(status); tries]).unwrap();
    let mut env = api.codex_env();
    env.extend(api.claude_env());
    env.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), "0".to_owned()));
    let place = Place::new(env)?;
    let (work, scratch) = (place.dir("work"), place.dir("scratch"));
    let extra = if *agent == CODEX {
        api.codex_args()
    } else {
        Vec::new()
    };
    let request = TurnRequest {
        extra_args: &extra,
        ..place.request(&work, &scratch)
    };
    let turn = place.turn(agent, &request, "say hello");
    turn.report
        .api_error
        .map(|ApiError { class, status, .. }| (class, status))
}

#[test]
fn errors_of_the_api_are_told_apart() {
    use ApiErrorClass::{Rejected, Transient, Unavailable};
    if agent_clis::bin().is_none() {
        return;
    }
    for (status, class) in [
        (400, Rejected),
        (401, Unavailable),
        (429, Transient),
        (500, Transient),
    ] {
        let codex = error_of(&CODEX, status, 10).map(|(class, _)| class);
        assert_eq!(codex, Some(class), "codex, {status}");
        let claude = error_of(&CLAUDE, status, 10);
        assert_eq!(claude, Some((class, Some(status))), "claude, {status}");
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
        let report = place.turn(&agent, &request, "go on").report;
        let class = report.api_error.map(|error| error.class);
        assert_eq!(
            (class, report.session_id),
            (Some(ApiErrorClass::Rejected), None),
            "{agent:?}"
        );
    }
}

#[test]
fn a_reviewer_looks_and_does_not_write() {
    for agent in [CODEX, CLAUDE] {
        if agent == CODEX && !has_codex_sandbox() {
            continue;
        }
        let steps = [
            shell("git diff --stat"),
            shell("echo no > written.txt"),
            text("Reviewed."),
        ];
        let api = ModelApi::start(steps).unwrap();
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
            may_write: false,
            ..place.request(&work, &scratch)
        };
        let turn = place.turn(&agent, &request, "review the change");
        let looked = turn.events.iter().any(|event| {
            matches!(
                event,
                AgentEvent::ToolResult {
                    ok: true,
                    exit_code: Some(0),
                    ..
                }
            )
        });
        assert!(looked, "{agent:?}: {:?}", turn.events);
        assert!(!place.dir("work/written.txt").exists(), "{agent:?}");
        assert_eq!(
            turn.report.final_message.as_deref(),
            Some("Reviewed."),
            "{agent:?}"
        );
    }
}

#[test]
fn commands_of_codex_do_not_see_its_key() {
    if !has_codex_sandbox() {
        return;
    }
    let steps = [shell("env > seen.txt"), text("Looked.")];
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
