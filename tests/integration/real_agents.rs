//! `sprag run` from end to end with the real programs of the agents: only the model is scripted.
//!
//! The gate has a whole repair by each agent and one test of what is peculiar to it. scripts/test-full runs the others,
//! which are marked as ignored.

mod aider;
mod gateway;
mod mcp;
mod roles;
mod thread;

use crate::support::agent_clis;
use crate::support::model_api::{ModelApi, Recorded, Step};
use crate::support::model_wire::{TOKENS_IN, TOKENS_OUT};
use crate::support::proc::processes;
use crate::support::project::{Project, Run, plan};
use crate::support::prompt_cache::{front, print_share, share};
use crate::support::real_crate::{self, BROKEN, FILE, GOOD, WORSE, broken_crate};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A real agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    Codex,
    Claude,
    Gemini,
    Opencode,
    Qwen,
    /// opencode by the Agent Client Protocol.
    OpencodeAcp,
    /// Gemini CLI by the Agent Client Protocol.
    GeminiAcp,
}
use Agent::{Claude, Codex, Gemini, GeminiAcp, Opencode, OpencodeAcp, Qwen};

impl Agent {
    fn name(self) -> &'static str {
        match self {
            Codex => "codex",
            Claude => "claude",
            Gemini => "gemini",
            Opencode => "opencode",
            Qwen => "qwen",
            OpencodeAcp | GeminiAcp => "acp",
        }
    }

    /// The settings of a plan that it takes beside its name, model and arguments.
    fn settings(self) -> Value {
        let acp =
            |command: &str, env: &[&str]| json!({ "agent_command": command, "agent_env": env });
        match self {
            OpencodeAcp => acp(
                "opencode acp",
                &["OPENCODE_CONFIG_CONTENT", "OPENCODE_DISABLE_MODELS_FETCH"],
            ),
            GeminiAcp => acp(
                "gemini --experimental-acp --model gemini-2.5-flash",
                &[
                    "GEMINI_API_KEY",
                    "GOOGLE_GEMINI_BASE_URL",
                    "GEMINI_CLI_TRUST_WORKSPACE",
                ],
            ),
            _ => json!({}),
        }
    }

    /// Whether it tells what the model cost.
    fn tells_cost(self) -> bool {
        matches!(self, Claude | Opencode | OpencodeAcp)
    }

    fn model(self) -> &'static str {
        match self {
            Codex => "gpt-5.5",
            Claude => "claude-sonnet-4-5",
            Gemini | GeminiAcp => "gemini-2.5-flash",
            Opencode | OpencodeAcp => "scripted/fake-model",
            Qwen => "fake-model",
        }
    }

    /// The environment in which a user starts `sprag` with this agent.
    fn prepare(self, project: &mut Project, bin: &Path, api: &ModelApi) {
        project.env("SPRAG_SANDBOX", "auto");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [bin.to_path_buf()]
            .into_iter()
            .chain(std::env::split_paths(&path));
        project.env("PATH", std::env::join_paths(path).unwrap());
        match self {
            Codex => drop(project.env("OPENAI_API_KEY", "not-a-key")),
            Claude => {
                for (name, value) in api.claude_env() {
                    project.env(&name, value);
                }
            }
            Gemini | GeminiAcp => {
                project.env("GEMINI_API_KEY", "not-a-key");
                project.env("GOOGLE_GEMINI_BASE_URL", api.url());
                project.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
                // Sprag chooses the key by a file of defaults, which gemini skips below a directory that
                // others may write to, as /tmp is.
                let settings =
                    json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
                let directory = project.beside("home").join(".gemini");
                fs::create_dir_all(&directory).unwrap();
                fs::write(directory.join("settings.json"), settings.to_string()).unwrap();
            }
            Opencode | OpencodeAcp => {
                let config = api.opencode_config();
                project.env("OPENCODE_CONFIG_CONTENT", config.to_string());
                project.env("OPENCODE_DISABLE_MODELS_FETCH", "1");
            }
            Qwen => {
                project.env("OPENAI_API_KEY", "not-a-key");
                project.env("OPENAI_BASE_URL", format!("{}/v1", api.url()));
            }
        }
    }

    /// The agent's own arguments, which a plan may hold. The key is read from the variable that
    /// codex has for it.
    fn args(self, api: &ModelApi) -> Vec<String> {
        match self {
            Codex => api
                .codex_args()
                .into_iter()
                .map(|arg| arg.replace("SCRIPTED_KEY", "CODEX_API_KEY"))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The key that the model's API was shown.
    fn key(self, request: &Recorded) -> Option<String> {
        let header = match self {
            Claude => request.header("x-api-key")?,
            Gemini | GeminiAcp => request.header("x-goog-api-key")?,
            _ => request.header("authorization")?.strip_prefix("Bearer ")?,
        };
        Some(header.to_owned())
    }

    /// What the person said last in a conversation.
    fn last_prompt(self, request: &Recorded) -> String {
        let messages = match self {
            Codex => &request.body["input"],
            Gemini | GeminiAcp => &request.body["contents"],
            _ => &request.body["messages"],
        };
        let messages = messages.as_array().unwrap().iter();
        let said = messages.rev().find(|message| message["role"] == "user");
        let said = said.unwrap();
        text_of(said.get("content").unwrap_or(&said["parts"]))
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect::<Vec<_>>()
            .join("\n"),
        other => panic!("no text: {other}"),
    }
}

fn text(text: &str) -> Step {
    Step::Text(text.to_owned())
}

fn replace(from: &str, to: &str) -> Step {
    Step::Shell(format!("sed -i 's/{from}/{to}/' {FILE}"))
}

/// A small project with one task and a check that takes no time.
struct Small {
    project: Project,
    api: ModelApi,
    agent: Agent,
}

impl Small {
    /// `None` when there are no agents to test.
    fn new(agent: Agent, steps: impl IntoIterator<Item = Step>) -> Option<Self> {
        let bin = agent_clis::bin()?;
        let api = ModelApi::start(steps).unwrap();
        let plan = plan("grep -q fixed a.txt");
        let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", &plan)]);
        agent.prepare(&mut project, bin, &api);
        Some(Self {
            project,
            api,
            agent,
        })
    }

    fn run(&self, args: &[&str]) -> Run {
        let agent_args = self.agent.args(&self.api);
        let agent_args = agent_args.iter().map(|arg| format!("--agent-arg={arg}"));
        let agent_args: Vec<String> = agent_args.collect();
        let mut all = vec!["run", "--plan", "plan.yaml", "--agent", self.agent.name()];
        all.extend(["--model", self.agent.model()]);
        all.extend(agent_args.iter().map(String::as_str));
        all.extend_from_slice(args);
        self.project.sprag(&all)
    }
}

const PLANNED: &str = "Plan:\n1. Look at the cost of an insertion in generic_levenshtein.\n\
                       2. I will then correct the recurrence and run the tests.";
const REPAIRED: &str = "The cost of an insertion is one again, and all tests pass.\n\n\
                        SUGGESTED_COMMIT_MESSAGE: Count an insertion once";

/// First it plans, then it repairs the wrong thing, then the right one.
fn repairs_a_crate(agent: Agent) {
    let Some(bin) = agent_clis::bin() else { return };
    let api = ModelApi::start([
        text(PLANNED),
        replace(BROKEN, WORSE),
        text("The recurrence is corrected."),
        replace(WORSE, GOOD),
        text(REPAIRED),
    ])
    .unwrap();
    let mut plan = json!({
        "title": "Repair",
        "agent": agent.name(),
        "agent_args": agent.args(&api),
        "model": agent.model(),
        "verify": [
            { "name": "build", "run": "cargo build --offline", "kind": "build" },
            { "name": "test", "run": real_crate::CHECK, "kind": "test" },
        ],
        "tasks": [{ "id": "repair", "title": "Make the tests pass again" }],
    });
    let settings = agent.settings();
    let settings = settings.as_object().unwrap().clone();
    plan.as_object_mut().unwrap().extend(settings);
    let mut project = broken_crate(&[("plan.yaml", &plan.to_string())]);
    agent.prepare(&mut project, bin, &api);
    let (base, commits) = (project.head(), project.commits());

    let run = project.sprag(&["run", "--plan", "plan.yaml"]).expect(0);

    assert_eq!(project.commits(), commits + 1);
    assert_eq!(project.git(&["rev-parse", "HEAD~"]), base);
    assert_eq!(
        project.git(&["log", "-1", "--format=%s"]),
        "Count an insertion once"
    );
    assert_eq!(
        project.git(&["show", "--format=", "--name-only"]),
        format!("plan.yaml\n{FILE}")
    );
    assert!(project.read(FILE).contains(GOOD));
    assert!(project.read("plan.yaml").contains("done"));
    assert_eq!(project.status(), "");
    assert_eq!(api.steps_left(), 0);
    told_in_the_summary(agent, &run, &project.head());
    if agent != GeminiAcp {
        // It cannot load its sessions.
        one_conversation(agent, &api.model_requests(), &run);
    }
}

fn told_in_the_summary(agent: Agent, run: &Run, head: &str) {
    let task = run.task(0);
    assert_eq!(
        json!({
            "status": task["status"], "reason": task["reason"], "commit": task["commit"],
            "attempts": task["attempts"], "retries": task["retries"], "nudges": task["nudges"],
            "turns": task["turns"].as_array().unwrap().iter().map(|turn| {
                json!([turn["purpose"], turn["assessment"]])
            }).collect::<Vec<_>>(),
            "checks": task["checks"].as_array().unwrap().iter().map(|check| {
                json!([check["name"], check["passed"], check["passed_count"], check["failed_count"]])
            }).collect::<Vec<_>>(),
            "history": task["history"].as_array().unwrap().iter().map(|attempt| {
                json!([attempt["attempt"], attempt["changes"], attempt["outcome"]])
            }).collect::<Vec<_>>(),
        }),
        json!({
            "status": "done", "reason": "verified", "commit": head,
            "attempts": 2, "retries": 1, "nudges": 1,
            "turns": [["implement", "planning_only"], ["nudge", "changed"], ["retry", "changed"]],
            "checks": [
                ["build", true, null, null],
                ["test", false, 87, 1],
                ["build", true, null, null],
                ["test", true, real_crate::TESTS, 0],
            ],
            "history": [[1, [FILE], "failed_tests"], [2, [FILE], "passed"]],
        }),
        "{}",
        run.stderr
    );
    let usage = &run.summary["usage"];
    let requests = 5;
    if agent.name() == "acp" {
        assert_eq!(usage["tokens_in"], Value::Null);
    } else {
        assert_eq!(usage["tokens_in"], requests * TOKENS_IN);
        assert_eq!(usage["tokens_out"], requests * TOKENS_OUT);
    }
    let cost = usage["cost_usd"].as_f64();
    assert_eq!(cost.is_some_and(|usd| usd > 0.0), agent.tells_cost());
}

/// The nudge and the retry went on where the turn before them ended, with a short prompt each.
fn one_conversation(agent: Agent, requests: &[Recorded], run: &Run) {
    let prompt = |n: u32| {
        let dir = run.dir.as_ref().unwrap();
        fs::read_to_string(dir.join(format!("prompts/{n:02}.md"))).unwrap()
    };
    let [implement, nudge, _, retry, _] = requests else {
        panic!("{} requests", requests.len());
    };
    if matches!(agent, Codex | Claude) {
        for (earlier, later) in requests.iter().zip(&requests[1..]) {
            let share = share(earlier, later);
            print_share(agent.name(), share);
            assert_eq!(front(earlier), front(later), "tools and system prompt");
            assert!(share > 0.9, "{share}");
        }
    }
    for (n, request) in [(1, implement), (2, nudge), (3, retry)] {
        let said = agent.last_prompt(request);
        assert!(said.contains(prompt(n).trim()), "turn {n}: {said}");
        assert_eq!(agent.key(request).as_deref(), Some("not-a-key"));
        for earlier in 1..n {
            assert!(request.mentions(prompt(earlier).trim()), "turn {n}");
        }
    }
    assert!(nudge.mentions(PLANNED));
    assert!(retry.mentions(PLANNED) && retry.mentions("The recurrence is corrected."));
    let whole = [1, 2, 3].map(|n| prompt(n).contains("## Rules"));
    assert_eq!(whole, [true, false, false]);
    assert!(prompt(2).contains("Please implement the changes now, not just plan them."));
    assert!(prompt(3).contains("tests::levenshtein_diff_longer"));
}

#[test]
fn codex_repairs_a_real_crate() {
    repairs_a_crate(Codex);
}

#[test]
fn claude_repairs_a_real_crate() {
    repairs_a_crate(Claude);
}

#[test]
fn gemini_repairs_a_real_crate() {
    repairs_a_crate(Gemini);
}

#[test]
fn opencode_repairs_a_real_crate() {
    repairs_a_crate(Opencode);
}

#[test]
fn qwen_repairs_a_real_crate() {
    repairs_a_crate(Qwen);
}

#[test]
fn opencode_repairs_a_real_crate_by_the_agent_client_protocol() {
    repairs_a_crate(OpencodeAcp);
}

#[test]
fn gemini_repairs_a_real_crate_by_the_agent_client_protocol() {
    repairs_a_crate(GeminiAcp);
}

fn a_refused_key(agent: Agent, remedy: &str) {
    // Both try again a few times.
    let steps = vec![Step::Status(401); 20];
    let Some(small) = Small::new(agent, steps) else {
        return;
    };
    let run = small.run(&[]).expect(4);
    let message = run.task(0)["message"].as_str().unwrap();
    assert!(message.contains(remedy), "{message}");
    assert!(run.stderr.contains(remedy) || run.stdout.contains(remedy));
    assert_eq!(
        json!([
            run.summary["status"],
            run.task(0)["reason"],
            run.task(0)["attempts"],
            run.summary["totals"]["turns"],
            run.summary["totals"]["verifications"],
        ]),
        json!(["environment", "agent_unavailable", 1, 1, 0])
    );
    assert_eq!(small.project.status(), "");
}

#[test]
fn opencode_with_a_refused_key_ends_the_run_with_the_remedy() {
    a_refused_key(Opencode, "set ANTHROPIC_API_KEY or OPENAI_API_KEY or");
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn others_with_a_refused_key_end_the_run_with_the_remedy() {
    for (agent, remedy) in [
        (Codex, "set CODEX_API_KEY or OPENAI_API_KEY from a secret"),
        (Gemini, "set GEMINI_API_KEY from a secret"),
        (
            Qwen,
            "set OPENAI_API_KEY or DASHSCOPE_API_KEY from a secret",
        ),
        (
            Claude,
            "set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN from a secret",
        ),
    ] {
        a_refused_key(agent, remedy);
    }
}

fn a_rate_limit(agent: Agent) {
    let steps = [
        Step::RateLimit(1),
        Step::Shell("echo fixed > a.txt".into()),
        text("SUGGESTED_COMMIT_MESSAGE: Fix it"),
    ];
    let Some(mut small) = Small::new(agent, steps) else {
        return;
    };
    // Else claude waits by itself, and nobody sees that it did.
    small.project.env("CLAUDE_CODE_MAX_RETRIES", "0");
    small.project.write(
        ".sprag/config.yaml",
        "agent_env: [CLAUDE_CODE_MAX_RETRIES]\n",
    );
    small.project.commit_all("configuration");
    let run = small.run(&[]).expect(0);
    let turns = run.task(0)["turns"].as_array().unwrap();
    let assessed: Vec<&Value> = turns.iter().map(|turn| &turn["assessment"]).collect();
    assert_eq!(assessed, ["agent_transient", "changed"]);
    assert_eq!(
        json!([
            run.task(0)["reason"],
            run.task(0)["attempts"],
            run.task(0)["retries"],
            run.task(0)["nudges"],
        ]),
        json!(["verified", 1, 0, 0])
    );
    assert_eq!(small.project.git(&["log", "-1", "--format=%s"]), "Fix it");
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn a_rate_limit_costs_a_wait_and_no_attempt() {
    a_rate_limit(Codex);
    a_rate_limit(Claude);
}

/// The agent has left something running, and waits for an answer that does not come.
fn a_silent_model(agent: Agent) {
    let steps = [
        Step::Shell("nohup sleep 1000 >/dev/null 2>&1 &".into()),
        Step::Silence,
    ];
    let Some(small) = Small::new(agent, steps) else {
        return;
    };
    let run = small
        .run(&["--turn-timeout", "6s", "--max-retries", "0"])
        .expect(1);
    let task = run.task(0);
    assert_eq!(
        json!([
            task["reason"],
            task["attempts"],
            task["turns"][0]["assessment"],
            run.summary["totals"]["verifications"],
        ]),
        json!(["turn_timeout", 1, "turn_timeout", 0])
    );
    assert_eq!(
        processes_of(&small.project),
        Vec::<String>::new(),
        "{}",
        agent.name()
    );
}

/// The command lines of processes that have the project's home in their environment.
fn processes_of(project: &Project) -> Vec<String> {
    let home = project.outside("").join("../home");
    let home = format!("HOME={}", home.canonicalize().unwrap().display());
    let found = processes().filter_map(|(_, path)| {
        let environ = fs::read(path.join("environ")).ok()?;
        let has_home = environ
            .split(|byte| *byte == 0)
            .any(|variable| variable == home.as_bytes());
        let command = fs::read(path.join("cmdline")).ok()?;
        has_home.then(|| String::from_utf8_lossy(&command).replace('\0', " "))
    });
    found.collect()
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn a_turn_that_hangs_is_ended_with_everything_it_started() {
    std::thread::scope(|scope| {
        scope.spawn(|| a_silent_model(Codex));
        scope.spawn(|| a_silent_model(Claude));
    });
}

/// It may not write, and says that it has.
fn a_forbidden_write(agent: Agent, argument: &str) {
    let claim = "I fixed a.txt: it now says what it should. All done.";
    let turn = || [Step::Shell("echo fixed > a.txt".into()), text(claim)];
    let Some(mut small) = Small::new(agent, turn().into_iter().chain(turn())) else {
        return;
    };
    // It is the agent's own sandbox that forbids it, and codex's cannot be made by root inside of Sprag's.
    small.project.env("SPRAG_SANDBOX", "off");
    let run = small.run(&["--agent-arg", argument]).expect(1);
    let task = run.task(0);
    assert_eq!(
        json!([
            task["status"],
            task["reason"],
            task["commit"],
            task["changes_made"]
        ]),
        json!(["failed", "no_progress", null, false])
    );
    let turns = task["turns"].as_array().unwrap();
    let assessed: Vec<&Value> = turns.iter().map(|turn| &turn["assessment"]).collect();
    assert_eq!(assessed, ["claims_done", "claims_done"]);
    assert_eq!(small.project.read("a.txt"), "broken\n");
    assert_eq!(
        (small.project.commits(), small.project.status()),
        (1, String::new())
    );
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn an_agent_that_may_not_write_is_not_believed() {
    a_forbidden_write(Codex, "--sandbox=read-only");
    a_forbidden_write(Claude, "--permission-mode=default");
}
