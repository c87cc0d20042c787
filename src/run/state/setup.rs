//! What is fixed for the whole run: its directory, its settings, its environment, and what cancels it.

use crate::domain::attempt::{Interruption, Observation, Policy, Spend, phases};
use crate::domain::commit_message::run_value;
use crate::domain::duration::{self, millis};
use crate::domain::event::EventKind;
use crate::domain::output_schema::OutputSchema;
use crate::domain::sandbox::{Enforcement, NetworkLine};
use crate::domain::settings::{IfUnverified, variables};
use crate::domain::snapshot::RevId;
use crate::domain::summary::RunSummary;
use crate::git::FilterSandbox;
use crate::http::{Network, jittered};
use crate::process::environment::environment;
use crate::process::take_survivors;
use crate::process::{Cancel, CancelReason};
use crate::run::begin::isolation::{Isolation, Purpose, with_temporary};
use crate::run::begin::model_gateway::ModelGateway;
use crate::run::begin::reviewed_change::ReviewedChange;
use crate::run::state::agent_files::AgentFiles;
use crate::run::state::directory::RunDir;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::runner_files::RunnerFiles;
use crate::secrets::detect::Detector;
use crate::secrets::redact::Redactor;
use crate::settings::{RunConfig, TaskConfig};
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// The first wait after a transient error, in milliseconds. Every further wait is three times as long.
const WAIT_BASE_MS: u64 = 1_000;

/// How many times an attempt waits because of transient errors.
const WAITS: u32 = 5;

/// The default interval between progress reports.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(60);

/// What is fixed for the whole run.
pub struct Setup {
    /// The run's directory.
    pub run_dir: RunDir,
    /// The run's id.
    pub run_id: String,
    /// The environment of Sprag's own process.
    pub env: Vec<(OsString, OsString)>,
    /// How to connect to other hosts.
    pub network: Network,
    /// Whether Sprag runs as root.
    pub is_root: bool,
    /// Whether this is a step of a GitHub Actions job.
    pub in_actions: bool,
    /// Triggered by signals and by the deadline.
    pub cancel: Cancel,
    /// The settings of the whole run.
    pub config: RunConfig,
    /// Where the agent's configuration files come from.
    pub agent_files: AgentFiles,
    /// The JSON Schema for the last task's final message.
    pub output_schema: Option<OutputSchema>,
    /// How children are confined.
    pub isolation: Isolation,
    /// Keeps the agents' keys out of their environment.
    pub gateway: ModelGateway,
    /// The change to review, if the run only reviews.
    pub reviewed: Option<ReviewedChange>,
    /// The files through which the job communicates with its runner.
    pub runner_files: RunnerFiles,
    /// Redacts secrets in text that leaves this process.
    pub redactor: Arc<Redactor>,
    /// Finds secrets in changes before they are committed; `None` if no secrets are known.
    pub detector: Option<Detector>,
}

impl Setup {
    /// Why the run should stop, if it should.
    pub fn interruption(&self) -> Option<Interruption> {
        self.cancel.reason().map(interruption)
    }

    /// Whether the run may make commits.
    pub fn commits(&self) -> bool {
        !self.config.settings.allow_dirty && self.reviewed.is_none()
    }

    /// The summary of the run so far, without secrets.
    ///
    /// # Errors
    /// When the run's events cannot be read.
    pub fn summary(&self) -> anyhow::Result<RunSummary> {
        let summary = RunSummary::of(&self.run_dir.read_events()?);
        Ok(self.redactor.redacted(&summary)?.into_owned())
    }

    /// Forbidden effects of children that have ended, one message each: changes to the runner's files,
    /// which are restored, and processes that could not be killed.
    pub fn violations(&self) -> Vec<String> {
        let mut violations = self.runner_files.repair();
        violations.extend(take_survivors().into_iter().map(|process| {
            let (pid, command) = (process.pid, process.command);
            format!("process {pid} could not be ended and may still write: {command}")
        }));
        violations
    }

    /// The environment of agents, checks, hooks and setup commands: the allow-listed variables and
    /// `extra`, without those of the runner.
    pub fn environment(
        &self,
        purpose: Purpose,
        extra: &[String],
        emit: &mut Emitter<'_>,
    ) -> Vec<(OsString, OsString)> {
        let allowed = environment(&self.env, extra);
        for name in &allowed.refused {
            emit.warn_once(&format!(
                "{name} belongs to the runner and is not passed; remove it from agent_env or verify_env"
            ));
        }
        let mut env = with_temporary(allowed.variables, &self.isolation, purpose);
        env.push((variables::RUN_ID.into(), self.run_id.clone().into()));
        self.by_proxy(env)
    }

    /// How filters are confined that git starts.
    pub fn filters(&self) -> FilterSandbox {
        self.isolation.filters(self.by_proxy(Vec::new()))
    }

    fn by_proxy(&self, mut env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        if let Some((line, url)) = self.isolation.network().zip(self.gateway.url()) {
            by_proxy(&mut env, &url, line);
        }
        env
    }

    /// Emits an event with the denied hosts that children requested since the last call.
    pub fn report_denied_hosts(&self, emit: &mut Emitter<'_>) {
        let hosts = self.gateway.denied();
        if !hosts.is_empty() {
            emit.emit(EventKind::HostsDenied { hosts });
        }
    }

    /// The policy for a task with these settings, after earlier tasks spent `spent_before`.
    pub fn policy(&self, config: &TaskConfig, spent_before: Spend) -> Policy {
        let (of_task, of_run) = (&config.settings, &self.config.settings);
        Policy {
            phases: phases(config.phases_asked()),
            identical_failures: of_task.identical_failures,
            waits: WAITS,
            has_checks: !config.checks.is_empty(),
            only_checks: false,
            is_question: false,
            accept_unverified: of_task.if_unverified == IfUnverified::Accept,
            baseline: of_task.baseline,
            flaky_reruns: of_task.flaky_reruns,
            known_failures: of_task.known_failures,
            test_changes: of_task.test_changes,
            prove_new_tests: of_task.prove_new_tests,
            signals: of_task.signals,
            commits: !of_run.allow_dirty,
            wants_output: false,
            max_tokens: of_run.max_tokens,
            max_cost_usd: of_run.max_cost_usd,
            spent_before,
            deadline_ms: of_run.deadline.map(millis),
            wait_base_ms: WAIT_BASE_MS,
        }
    }

    /// The longest wait for a model; longer waits are shortened. Tests set it, because they use their
    /// own server.
    pub fn longest_wait(&self) -> Duration {
        let value = self.variable(variables::MODEL_WAIT);
        let value = value.and_then(|value| value.parse().ok());
        value.map_or(Duration::MAX, Duration::from_millis)
    }

    /// Waits for `ms` milliseconds plus up to a quarter, or until the run is cancelled.
    pub async fn wait(&self, ms: u64) -> Observation {
        let pause = tokio::time::sleep(jittered(ms, self.longest_wait()));
        tokio::select! {
            () = pause => Observation::Waited,
            reason = self.cancel.cancelled() => Observation::interrupted(interruption(reason)),
        }
    }

    /// The interval between progress reports of a turn.
    pub fn heartbeat(&self) -> Duration {
        let value = self.variable(variables::HEARTBEAT);
        let every = value.and_then(|value| duration::parse(value).ok());
        let every = every.filter(|every| !every.is_zero());
        every.unwrap_or(HEARTBEAT_EVERY)
    }

    /// This run in commit messages: the URL of the workflow run in GitHub Actions, elsewhere the run id.
    pub fn run_link(&self) -> String {
        self.link_of(&self.run_id)
    }

    /// A run of this workflow run in commit messages, by its id.
    pub fn link_of(&self, run_id: &str) -> String {
        let set = |name: &str| self.variable(name).filter(|value| !value.is_empty());
        let page = || {
            let server = set("GITHUB_SERVER_URL").unwrap_or("https://github.com");
            let (repository, run) = (set("GITHUB_REPOSITORY")?, set("GITHUB_RUN_ID")?);
            Some(format!("{server}/{repository}/actions/runs/{run}"))
        };
        run_value(self.in_actions.then(page).flatten(), run_id)
    }

    /// The commit that the first process of the run started from; `None` in an empty repository.
    pub fn start_commit(&self) -> Option<RevId> {
        let kept = String::from_utf8(self.run_dir.read(RunFile::StartCommit)?).ok();
        kept.filter(|id| !id.is_empty()).map(RevId)
    }

    /// Saves the start commit, unless an earlier process of the run has.
    ///
    /// # Errors
    /// When it cannot be saved.
    pub fn save_start_commit(&self, base: Option<RevId>) -> anyhow::Result<()> {
        if let (Some(base), false) = (base, self.run_dir.has(RunFile::StartCommit)) {
            let id = base.0.as_bytes();
            self.run_dir.write(RunFile::StartCommit, id)?;
        }
        Ok(())
    }

    /// The value of a variable of Sprag's own environment.
    fn variable(&self, name: &str) -> Option<&str> {
        let mut set = self.env.iter().filter(|(key, _)| key == name);
        set.find_map(|(_, value)| value.to_str())
    }
}

/// Sets the proxy variables. In a separate network namespace the names of this machine mean the child's own
/// servers, which it reaches without the proxy. If the allow-list has such a name, it means the machine's servers.
pub fn by_proxy(env: &mut Vec<(OsString, OsString)>, url: &str, line: &NetworkLine) {
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

/// Why the run stops, as a value of the domain.
pub fn interruption(reason: CancelReason) -> Interruption {
    match reason.signal() {
        Some(signal) => Interruption::Cancel { signal },
        None => Interruption::Deadline,
    }
}
