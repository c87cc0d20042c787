//! What is fixed for the whole run: where it keeps what it leaves behind, its settings, its
//! surroundings, and what asks it to stop.

use crate::domain::attempt::{Interruption, Policy, Spend, phases};
use crate::domain::duration::{self, millis};
use crate::domain::event::EventKind;
use crate::domain::output_schema::OutputSchema;
use crate::domain::sandbox::{Enforcement, NetworkLine};
use crate::domain::settings::IfUnverified;
use crate::domain::snapshot::RevId;
use crate::http::Network;
use crate::process::environment::environment;
use crate::process::take_survivors;
use crate::process::{Cancel, CancelReason, RUN_ID};
use crate::run::agent_files::AgentFiles;
use crate::run::directory::RunDir;
use crate::run::emitter::Emitter;
use crate::run::isolation::{Isolation, with_temporary};
use crate::run::layout::RunFile;
use crate::run::model_gateway::ModelGateway;
use crate::run::reviewed_change::ReviewedChange;
use crate::run::runner_files::RunnerFiles;
use crate::secrets::detect::Detector;
use crate::secrets::redact::Redactor;
use crate::settings::{RunConfig, TaskConfig};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// The first wait for a transient error; each further one is three times as long.
const WAIT_BASE_MS: u64 = 1_000;

/// Waits for transient errors within an attempt.
const WAITS: u32 = 5;

/// The variable with the longest wait for a model, in milliseconds.
const LONGEST_WAIT: &str = "SPRAG_MODEL_WAIT_MS";

/// The variable with the time between two reports of how far a turn has come, as a duration.
const HEARTBEAT: &str = "SPRAG_HEARTBEAT";

/// The same where it is not set.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(60);

/// What is fixed for the whole run.
pub struct Setup {
    /// Where the run keeps what it leaves behind.
    pub run_dir: RunDir,
    /// The run's id.
    pub run_id: String,
    /// The process's own environment.
    pub env: Vec<(OsString, OsString)>,
    /// The way out of this machine.
    pub network: Network,
    /// Whether the process runs as root.
    pub is_root: bool,
    /// Whether this is a step of a GitHub Actions job.
    pub in_actions: bool,
    /// Raised by signals and by the deadline.
    pub cancel: Cancel,
    /// The settings that concern the whole run.
    pub config: RunConfig,
    /// Where the files come from that configure the agent.
    pub agent_files: AgentFiles,
    /// The JSON Schema that the last task's final message has to fit.
    pub output_schema: Option<OutputSchema>,
    /// How far children are confined.
    pub isolation: Isolation,
    /// Where the keys of agents stay.
    pub gateway: ModelGateway,
    /// What is reviewed, where that is all that the run does.
    pub reviewed: Option<ReviewedChange>,
    /// The files by which the job speaks to its runner.
    pub runner_files: RunnerFiles,
    /// Takes secrets out of a text that leaves this process.
    pub redactor: Arc<Redactor>,
    /// Finds secrets in what is to be committed, if there are any.
    pub detector: Option<Detector>,
}

impl Setup {
    /// What asks the run to stop.
    pub fn interruption(&self) -> Option<Interruption> {
        self.cancel.reason().map(interruption)
    }

    /// What children that have ended did beyond the repository that no task may do: they wrote to files of the
    /// runner's, which are put right, or left a process that could not be ended.
    pub fn violations(&self) -> Vec<String> {
        let survivors = take_survivors().into_iter().map(|process| {
            format!(
                "process {} could not be ended and may go on writing: {}",
                process.pid, process.command
            )
        });
        self.runner_files
            .put_right()
            .into_iter()
            .chain(survivors)
            .collect()
    }

    /// The allow-listed environment of agents, checks, hooks and setup commands, with these variables besides, and
    /// nothing of the runner's.
    pub fn environment(
        &self,
        extra: &[String],
        emit: &mut Emitter<'_>,
    ) -> Vec<(OsString, OsString)> {
        let allowed = environment(&self.env, extra);
        for name in &allowed.refused {
            emit.warn_once(&format!(
                "{name} is the runner's own and is not passed on; remove it from agent_env or verify_env"
            ));
        }
        let mut env = with_temporary(allowed.variables, &self.isolation);
        env.push((RUN_ID.into(), self.run_id.clone().into()));
        if let (Some(line), Some(url)) = (self.isolation.network(), self.gateway.url()) {
            by_proxy(&mut env, &url, line);
        }
        env
    }

    /// Tells of the hosts that children have asked for meanwhile and may not reach.
    pub fn tell_denied(&self, emit: &mut Emitter<'_>) {
        let hosts = self.gateway.denied();
        if !hosts.is_empty() {
            emit.emit(EventKind::HostsDenied { hosts });
        }
    }

    /// What is allowed for a task with these settings, after tasks that have spent this much.
    pub fn policy(&self, config: &TaskConfig, spent_before: Spend) -> Policy {
        Policy {
            phases: phases(config.phases_asked()),
            identical_failures: config.settings.identical_failures,
            waits: WAITS,
            has_checks: !config.checks.is_empty(),
            accept_unverified: config.settings.if_unverified == IfUnverified::Accept,
            baseline: config.settings.baseline,
            flaky_reruns: config.settings.flaky_reruns,
            known_failures: config.settings.known_failures,
            test_changes: config.settings.test_changes,
            prove_new_tests: config.settings.prove_new_tests,
            commits: !self.config.settings.allow_dirty,
            wants_output: false,
            max_tokens: self.config.settings.max_tokens,
            max_cost_usd: self.config.settings.max_cost_usd,
            spent_before,
            deadline_ms: self.config.settings.deadline.map(millis),
            wait_base_ms: WAIT_BASE_MS,
        }
    }

    /// The longest wait for a model; longer ones are cut. Tests set it, who have no reason to spare
    /// a server of their own.
    pub fn longest_wait(&self) -> Duration {
        let value = self.variable(LONGEST_WAIT);
        let value = value.and_then(|value| value.parse().ok());
        value.map_or(Duration::MAX, Duration::from_millis)
    }

    /// How often a turn is told of.
    pub fn heartbeat(&self) -> Duration {
        let value = self.variable(HEARTBEAT);
        let value = value.and_then(|value| duration::parse(value).ok());
        value
            .filter(|every| !every.is_zero())
            .unwrap_or(HEARTBEAT_EVERY)
    }

    /// The run's page in Actions, its id elsewhere.
    pub fn run_link(&self) -> String {
        let set = |name: &str| self.variable(name).filter(|value| !value.is_empty());
        let page = || {
            let server = set("GITHUB_SERVER_URL").unwrap_or("https://github.com");
            Some(format!(
                "{server}/{}/actions/runs/{}",
                set("GITHUB_REPOSITORY")?,
                set("GITHUB_RUN_ID")?
            ))
        };
        let page = self.in_actions.then(page).flatten();
        page.unwrap_or_else(|| self.run_id.clone())
    }

    /// The commit that the run began from, over all of its processes; `None` in an empty repository.
    pub fn start_commit(&self) -> Option<RevId> {
        let kept = self.run_dir.read(RunFile::StartCommit)?;
        let kept = String::from_utf8(kept).ok();
        kept.filter(|id| !id.is_empty()).map(RevId)
    }

    /// Keeps the commit that the run begins from, unless an earlier process of the run has.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn note_start_commit(&self, base: Option<RevId>) -> anyhow::Result<()> {
        if let (Some(base), false) = (base, self.run_dir.has(RunFile::StartCommit)) {
            self.run_dir
                .write(RunFile::StartCommit, base.0.as_bytes())?;
        }
        Ok(())
    }

    /// The value of a variable of the process's own environment.
    fn variable(&self, name: &str) -> Option<&str> {
        let mut set = self.env.iter().filter(|(key, _)| key == name);
        set.find_map(|(_, value)| value.to_str())
    }
}

/// Names the proxy to programs. In a network of its own a child reaches its own servers directly, but for names
/// by which the machine's are allowed.
fn by_proxy(env: &mut Vec<(OsString, OsString)>, url: &str, line: &NetworkLine) {
    const OWN: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
    let is_allowed = |name: &&str| line.allow.iter().any(|host| host == name);
    let direct: Vec<&str> = match line.enforced {
        Enforcement::Namespace => OWN.into_iter().filter(|name| !is_allowed(name)).collect(),
        Enforcement::TcpPort | Enforcement::Nothing => Vec::new(),
    };
    for (name, value) in [
        ("HTTP_PROXY", url),
        ("HTTPS_PROXY", url),
        ("ALL_PROXY", url),
        ("NO_PROXY", &direct.join(",")),
    ] {
        for name in [name.to_owned(), name.to_ascii_lowercase()] {
            env.retain(|(known, _)| *known != *name);
            env.push((name.into(), value.into()));
        }
    }
}

/// What a raised flag means to the domain.
pub fn interruption(reason: CancelReason) -> Interruption {
    match reason.signal() {
        Some(signal) => Interruption::Cancel { signal },
        None => Interruption::Deadline,
    }
}
