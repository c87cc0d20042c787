//! Decides which agents of a run use the model gateway, and what they get instead of their keys.

use crate::agents::gateway::Route;
use crate::agents::routes::{self, GatewayCandidate};
use crate::agents::{Agent, CLIS, CliAgent};
use crate::context::Context;
use crate::domain::sandbox::{DeniedHost, GatewayLine};
use crate::domain::settings;
use crate::error::{Error, Result};
use crate::gateway::{Gateway, SpendLimits, TurnCost};
use crate::github::actions_environment;
use crate::http::Network;
use crate::process::environment::environment;
use crate::secrets::sources::holds_secret;
use crate::settings::{RunConfig, TaskConfig};
use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The most bytes of an agent's configuration file that are read.
const MAX_CONFIGURATION_BYTES: u64 = 256 << 10;

/// The host of the gateway.
const GATEWAY: &str = "127.0.0.1";

/// The variables that list hosts to reach without a proxy.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The gateway of a run. It starts for the first agent that needs it. Nothing that an agent writes after the first turn
/// decides who gets a key.
pub struct ModelGateway {
    setting: settings::Gateway,
    /// Whether the user chose how it is used, or set a limit that only it can enforce within a turn.
    is_asked_for: bool,
    network: Network,
    /// The configuration of each agent CLI before the first turn.
    of_clis: Vec<(&'static str, Vec<String>)>,
    /// The environment of the run.
    job: Vec<(OsString, OsString)>,
    server: OnceCell<Gateway>,
    /// Whether the gateway is also the proxy of the run. Then its own address also works through the
    /// proxy.
    is_proxy: bool,
}

impl ModelGateway {
    /// The gateway of a run with these settings. If the run has a proxy, it is also the gateway.
    pub fn of(context: &Context, config: &RunConfig, proxy: Option<Gateway>) -> Self {
        let default = settings::Settings::default().resolve(context.in_actions());
        let set = &config.settings;
        let variable = |name: &str| context.var_os(name).map(OsStr::to_owned);
        let of_cli = CLIS.iter().map(|spec| {
            let paths = spec.own_configuration(&variable);
            let texts = paths.iter().filter_map(|path| text_of(path));
            (spec.name, texts.collect())
        });
        Self {
            setting: set.gateway,
            is_asked_for: set.gateway != default.gateway
                || set.max_tokens.is_some()
                || set.max_cost_usd != default.max_cost_usd,
            network: actions_environment::network(context),
            of_clis: of_cli.collect(),
            job: context.env.clone(),
            is_proxy: proxy.is_some(),
            server: proxy.map_or_else(OnceCell::new, OnceCell::from),
        }
    }

    /// The routes of a task's agent, or why its keys cannot stay with Sprag. `None` for the built-in
    /// agent, which calls its model from this process.
    fn routes_of_task(&self, task: &TaskConfig) -> Option<Result<Vec<Route>, String>> {
        let Agent::Cli(agent) = &task.agent else {
            return None;
        };
        let is_set = |name: &str| self.job.iter().any(|(known, _)| known == name);
        let passed = agent.variables_to_pass(is_set).into_iter();
        let mut names: Vec<String> = passed.map(str::to_owned).collect();
        names.extend(task.settings.agent_env.iter().cloned());
        Some(self.routes(task, &environment(&self.job, &names).variables))
    }

    fn routes(
        &self,
        task: &TaskConfig,
        env: &[(OsString, OsString)],
    ) -> Result<Vec<Route>, String> {
        let mut known = self.of_clis.iter();
        let own = known.find(|(name, _)| *name == task.agent.name());
        let around = GatewayCandidate {
            env,
            job: &self.job,
            args: &task.settings.agent_args,
            configuration: own.map_or(&[], |(_, texts)| texts),
        };
        routes::routes(&task.agent, &around)
    }

    /// Whether the key of a task's agent stays with Sprag; `None` for the built-in agent, and for a command
    /// that gets no key unless the gateway is asked for.
    pub fn line(&self, task: &TaskConfig) -> Option<GatewayLine> {
        let routes = self.routes_of_task(task)?;
        let is_command = matches!(
            task.agent,
            Agent::Cli(CliAgent::Command { .. } | CliAgent::Acp { .. })
        );
        let mut passed = task.settings.agent_env.iter();
        if is_command && !self.is_asked_for && !passed.any(|name| holds_secret(name)) {
            return None;
        }
        let why = match self.setting {
            settings::Gateway::Off => Some("`gateway: off`".to_owned()),
            _ => routes.err(),
        };
        Some(GatewayLine {
            agent: task.agent.name().to_owned(),
            behind: why.is_none(),
            why,
        })
    }

    /// For each agent of these tasks, whether its key stays with Sprag.
    pub fn lines<'t>(&self, tasks: impl Iterator<Item = &'t TaskConfig>) -> Vec<GatewayLine> {
        let mut lines: Vec<GatewayLine> = Vec::new();
        for task in tasks.flat_map(TaskConfig::in_each_role) {
            let is_known = lines.iter().any(|line| line.agent == task.agent.name());
            lines.extend(self.line(&task).filter(|_| !is_known));
        }
        lines
    }

    /// Removes the keys from the environment of an agent that is about to work on a task within these
    /// limits. Returns the arguments with which the agent uses the gateway.
    ///
    /// # Errors
    /// Why its key cannot stay with Sprag, if `gateway: on` requires it.
    pub fn take_over(
        &self,
        task: &TaskConfig,
        limits: SpendLimits,
        env: &mut Vec<(OsString, OsString)>,
    ) -> Result<Vec<String>, String> {
        if self.setting == settings::Gateway::Off {
            return Ok(Vec::new());
        }
        match self.taken(task, limits, env) {
            Err(why) if self.setting == settings::Gateway::On => {
                Err(format!("its key cannot stay with Sprag: {why}"))
            }
            taken => Ok(taken.unwrap_or_default()),
        }
    }

    fn taken(
        &self,
        task: &TaskConfig,
        limits: SpendLimits,
        env: &mut Vec<(OsString, OsString)>,
    ) -> Result<Vec<String>, String> {
        let Agent::Cli(agent) = &task.agent else {
            return Ok(Vec::new());
        };
        let routes = self.routes(task, env)?;
        let server = match self.server.get() {
            Some(server) => server,
            None => {
                let started = Gateway::start(&self.network, None)
                    .map_err(|error| format!("the gateway cannot be started: {error}"))?;
                self.server.get_or_init(|| started)
            }
        };
        server.begin_turn(limits);
        let mut args = Vec::new();
        for route in &routes {
            let (url, account) = (server.url(), server.account(route));
            args.extend(routes::take_over(route, agent, &url, account.token(), env));
        }
        if self.is_proxy {
            return Ok(args);
        }
        // A proxy elsewhere would look for the gateway on its own machine.
        for name in NO_PROXY {
            match env.iter_mut().find(|(known, _)| known == name) {
                Some((_, value)) if !value.is_empty() => value.push(format!(",{GATEWAY}")),
                Some((_, value)) => *value = GATEWAY.into(),
                None => env.push((name.into(), GATEWAY.into())),
            }
        }
        Ok(args)
    }

    /// The address of the gateway or proxy; `None` until it has started.
    pub fn url(&self) -> Option<String> {
        self.server.get().map(Gateway::url)
    }

    /// Denied hosts that children requested since the last call.
    pub fn denied(&self) -> Vec<DeniedHost> {
        let server = self.server.get();
        server.map(Gateway::take_denied).unwrap_or_default()
    }

    /// Ends the turn and returns its cost according to the gateway.
    pub fn end_turn(&self) -> TurnCost {
        self.server.get().map(Gateway::end_turn).unwrap_or_default()
    }
}

fn text_of(path: &Path) -> Option<String> {
    if !path.is_file() {
        return None;
    }
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_CONFIGURATION_BYTES)
        .read_to_end(&mut text)
        .ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Fails if an agent would need its key although `gateway: on` keeps keys with Sprag.
///
/// # Errors
/// The first such agent, and the reason.
pub fn require_gateway<'t>(
    context: &Context,
    run: &RunConfig,
    tasks: impl Iterator<Item = &'t TaskConfig>,
) -> Result<()> {
    if run.settings.gateway != settings::Gateway::On {
        return Ok(());
    }
    let gateway = ModelGateway::of(context, run, None);
    for task in tasks.flat_map(TaskConfig::in_each_role) {
        if let Some(Err(why)) = gateway.routes_of_task(&task) {
            let message = format!(
                "`gateway: on` keeps keys with Sprag, which is not possible with the agent {}: {why}",
                task.agent.name()
            );
            return Err(Error::agent(message)
                .hint("docs/security.md says which agents can be behind the gateway, and how")
                .hint(
                    "or give agents their keys if the gateway cannot replace them: --gateway auto",
                ));
        }
    }
    Ok(())
}
