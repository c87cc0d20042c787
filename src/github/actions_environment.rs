//! The variables and inputs of a job: the repository, the token, the workflow run and the event.

use crate::context::{Context, EVENT_FILE};
use crate::domain::settings::variables;
use crate::domain::trigger::place::{Place, WorkflowRun};
use crate::domain::trigger::run_name::RunName;
use crate::git::RETRY_PAUSES;
use crate::github::api::{Client, Error, Limits, Repo, Settings};
use crate::http::Network;
use crate::settings::inputs::token;
use secrecy::{ExposeSecret as _, SecretString};
use std::path::PathBuf;
use std::time::Duration;

/// The GitHub repository that the environment names, and the access to it.
#[derive(Debug, Clone)]
pub struct ActionsEnvironment {
    /// The repository and the workflow run.
    pub place: Place,
    /// The token of this step.
    pub token: SecretString,
    /// The pauses between attempts at a push after transient failures.
    pub pauses: [Duration; 3],
    limits: Limits,
    network: Network,
}

impl ActionsEnvironment {
    /// Reads the environment. `None` without a repository or a token.
    pub fn of(context: &Context) -> Option<Self> {
        // Tests shorten the waits, because they have their own server.
        let set = |name: &str| Some(Duration::from_millis(context.var(name)?.parse().ok()?));
        let pause = set(variables::GITHUB_RETRY);
        let limits = Limits::default();
        Some(Self {
            place: place(context)?,
            token: SecretString::from(token(context)?.to_owned()),
            pauses: pause.map_or(RETRY_PAUSES, |pause| [pause; 3]),
            limits: Limits {
                spacing: set(variables::GITHUB_SPACING).unwrap_or(limits.spacing),
                first_wait: pause.unwrap_or(limits.first_wait),
                request: set(variables::GITHUB_REQUEST).unwrap_or(limits.request),
                ..limits
            },
            network: network(context),
        })
    }

    /// Like [`Self::of`], with the chosen name of the run, if there is one.
    pub fn named(context: &Context, name: Option<&str>) -> Option<Self> {
        let mut actions = Self::of(context)?;
        if let Some(name) = name {
            actions.place.name = RunName::chosen(name);
        }
        Some(actions)
    }

    /// Whether the token belongs to a job or an app. Pushes with a job's token start no workflow.
    pub fn is_job_token(&self) -> bool {
        self.token.expose_secret().starts_with("ghs_")
    }

    /// The repository of the job. Call this inside a runtime.
    ///
    /// # Errors
    /// When the token must not be sent to the URL of the API, or an invalid name.
    pub fn repo(&self) -> Result<Repo, Error> {
        let settings = Settings {
            api_url: self.place.api_url.clone(),
            server_url: self.place.server_url.clone(),
            token: self.token.clone(),
            limits: self.limits,
        };
        Client::new(settings, &self.network)?.repo(&self.place.repository)
    }
}

/// The repository and the workflow run that the variables of the job name. It needs no token.
pub fn place(context: &Context) -> Option<Place> {
    let url = |name: &str, default: &str| {
        let url = context.var(name).unwrap_or(default);
        url.trim_end_matches('/').to_owned()
    };
    let run = context.var("GITHUB_RUN_ID").map(|id| WorkflowRun {
        id: id.to_owned(),
        attempt: context.var("GITHUB_RUN_ATTEMPT").unwrap_or("1").to_owned(),
    });
    Some(Place {
        server_url: url("GITHUB_SERVER_URL", "https://github.com"),
        api_url: url("GITHUB_API_URL", "https://api.github.com"),
        repository: context.var("GITHUB_REPOSITORY")?.to_owned(),
        run,
        name: RunName::of_job(context.var("GITHUB_WORKFLOW"), context.var("GITHUB_JOB")),
    })
}

/// The proxy and certificate settings, from the same variables that curl and git read.
pub fn network(context: &Context) -> Network {
    Network::of(|name| context.var_os(name).map(ToOwned::to_owned))
}

/// The name and the file of the event that started the workflow run.
pub fn event(context: &Context) -> Option<(String, PathBuf)> {
    let name = context.var("GITHUB_EVENT_NAME")?;
    Some((name.to_owned(), context.path_var(EVENT_FILE)?))
}
