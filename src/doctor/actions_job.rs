//! GitHub: the token, the API, the repository there, and each permission. Nothing is written to GitHub.

use crate::context::Context;
use crate::doctor::configuration::Configured;
use crate::doctor::finding::{Finding, State};
use crate::doctor::trigger::Trigger;
use crate::domain::settings::{PullRequest, Report, Resolved};
use crate::domain::trigger::place::Place;
use crate::github::actions_environment;
use crate::github::api::{
    Area, Client, Error, ErrorKind, Limits, PermissionState, RateLimit, Settings, Survey,
};
use crate::settings::inputs;
use secrecy::SecretString;
use std::time::Duration;

/// Time limit for all requests together.
const OVERALL: Duration = Duration::from_secs(10);

/// A person waits for the answer, so waits are short and retries are few.
const LIMITS: Limits = Limits {
    request: Duration::from_secs(4),
    longest_wait: Duration::from_secs(2),
    first_wait: Duration::from_millis(300),
    attempts: 2,
    spacing: Duration::ZERO,
};

/// Fewer remaining requests than this may not be enough for a run.
const FEW_REQUESTS: u64 = 50;

/// Each area with the name of its check, which ends with that of the area, and with what a run uses it for.
pub(super) const AREAS: [(Area, &str, &str); 5] = [
    (Area::Contents, "may-contents", "push commits"),
    (Area::Issues, "may-issues", "comment on issues"),
    (
        Area::PullRequests,
        "may-pull-requests",
        "open pull requests and comment on them",
    ),
    (Area::Checks, "may-checks", "write check runs"),
    (Area::Actions, "may-actions", "read the logs of failed jobs"),
];

/// A kind of token: its prefix, the state of its finding, and its description.
pub(super) type TokenKind = (&'static str, State, &'static str);

/// Those with a warning act as a person, who cannot create check runs. The last is for any other prefix.
const TOKENS: [TokenKind; 6] = [
    ("ghs_", State::Ok, "of the job or of an app (ghs_)"),
    ("ghp_", State::Warn, "a personal token (ghp_)"),
    (
        "github_pat_",
        State::Warn,
        "a fine-grained personal token (github_pat_)",
    ),
    (
        "gho_",
        State::Warn,
        "a person's token issued to an app (gho_ or ghu_)",
    ),
    (
        "ghu_",
        State::Warn,
        "a person's token issued to an app (gho_ or ghu_)",
    ),
    (
        "",
        State::Unknown,
        "of an unknown kind, according to its prefix",
    ),
];

pub(super) fn token_kind(token: &str) -> Option<TokenKind> {
    let mut kinds = TOKENS.into_iter();
    kinds.find(|(prefix, ..)| token.starts_with(prefix))
}

/// GitHub from the view of a step of a job.
pub(super) struct Job<'a> {
    /// `owner/name`, if known.
    pub(super) repository: Option<String>,
    /// The URL of the API.
    pub(super) api: String,
    pub(super) token: Option<TokenKind>,
    /// The login of the token's account, if GitHub reports it.
    pub(super) login: Option<String>,
    /// GitHub's answer, or `None` if it was not asked.
    pub(super) survey: Option<Result<Survey, Error>>,
    pub(super) settings: &'a Resolved,
    /// Whether GitHub must be asked before the work of the event starts; `None` if it requests no work.
    pub(super) asks: Option<bool>,
}

pub(super) async fn findings(
    context: &Context,
    configured: Option<&Configured>,
    trigger: &Option<crate::error::Result<Trigger>>,
) -> Vec<Finding> {
    if !context.in_actions() {
        return vec![outside()];
    }
    let place = actions_environment::place(context);
    let token = inputs::token(context);
    let default = "https://api.github.com";
    let api = context.var("GITHUB_API_URL").unwrap_or(default);
    let defaults = Resolved::default();
    let mut job = Job {
        api: crate::git::without_userinfo(api.trim_end_matches('/')),
        token: token.and_then(token_kind),
        login: None,
        survey: None,
        settings: configured.map_or(&defaults, |configured| &configured.run.settings),
        asks: trigger
            .as_ref()
            .and_then(|trigger| trigger.as_ref().ok()?.asks()),
        repository: place.as_ref().map(|place| place.repository.clone()),
    };
    if let (Some(place), Some(token)) = (place, token) {
        let survey = job.ask(context, &place, token).await;
        job.survey = Some(survey);
    }
    job.findings()
}

pub(super) fn outside() -> Finding {
    Finding::unknown("github", "not checked: this is not a GitHub Actions job")
}

impl Job<'_> {
    async fn ask(
        &mut self,
        context: &Context,
        place: &Place,
        token: &str,
    ) -> Result<Survey, Error> {
        let settings = Settings {
            api_url: place.api_url.clone(),
            server_url: place.server_url.clone(),
            token: SecretString::from(token.to_owned()),
            limits: LIMITS,
        };
        let client = Client::new(settings, &actions_environment::network(context))?;
        let repo = client.repo(&place.repository)?.within(OVERALL);
        let survey = repo.survey().await?;
        let identity = repo.identity().await.ok();
        self.login = identity
            .filter(|identity| !identity.assumed)
            .map(|identity| identity.login);
        Ok(survey)
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = vec![self.token()];
        findings.extend(self.api());
        let areas = AREAS.iter();
        findings
            .extend(areas.map(|(area, check, used_for)| self.permission(*area, check, used_for)));
        findings
    }

    /// Whether a run needs GitHub.
    fn is_needed(&self) -> bool {
        self.asks == Some(true)
            || self.settings.push == Some(true)
            || self.opens_pull_request()
            || self.settings.report == Report::Github
    }

    fn opens_pull_request(&self) -> bool {
        let wanted = self.settings.pull_request;
        matches!(wanted, Some(PullRequest::Draft | PullRequest::Ready))
    }

    /// Whether a run would push: the work of an event is pushed unless `push` says otherwise.
    fn pushes(&self) -> bool {
        self.opens_pull_request() || self.settings.push.unwrap_or(self.asks.is_some())
    }

    fn token(&self) -> Finding {
        const CHECK: &str = "token";
        const JOBS: &str = "use the job's own token: `github-token: ${{ github.token }}`";
        let Some((_, state, words)) = self.token else {
            return Finding::bad(
                self.is_needed(),
                CHECK,
                "none: nothing can be pushed or reported to GitHub",
                "give the step `env: GITHUB_TOKEN: ${{ github.token }}`, or the action its `github-token`",
            );
        };
        if let Some(Err(error)) = &self.survey
            && error.kind == ErrorKind::Unauthorised
        {
            return Finding::fail(CHECK, error.to_string(), JOBS);
        }
        let found = match &self.login {
            Some(login) => format!("{words}, acts as {login}"),
            None => words.to_owned(),
        };
        match state {
            State::Ok => Finding::ok(CHECK, found),
            State::Unknown => Finding::unknown(CHECK, found),
            State::Warn | State::Fail => Finding::warn(
                CHECK,
                format!("{found}: it cannot write check runs"),
                format!("{JOBS}, unless its pushes are to start workflows"),
            ),
        }
    }

    /// Findings about the API and the repository.
    fn api(&self) -> [Finding; 2] {
        const API: &str = "api";
        const REPOSITORY: &str = "github-repository";
        let answers = || Finding::ok(API, format!("{} answers", self.api));
        let Some(name) = &self.repository else {
            let found = "GITHUB_REPOSITORY is not set";
            return [
                Finding::unknown(API, format!("not asked: {found}")),
                Finding::bad(
                    self.is_needed(),
                    REPOSITORY,
                    found,
                    "pass the job's variables to this step",
                ),
            ];
        };
        let error = match &self.survey {
            None => {
                let not_asked = "not asked without a token";
                return [API, REPOSITORY].map(|check| Finding::unknown(check, not_asked));
            }
            Some(Ok(survey)) => {
                return [self.rate(API, survey), self.found(REPOSITORY, survey)];
            }
            Some(Err(error)) => error,
        };
        match error.kind {
            ErrorKind::Unauthorised => [
                answers(),
                Finding::unknown(REPOSITORY, format!("{name}: not shown to this token")),
            ],
            ErrorKind::Forbidden | ErrorKind::NotFound => [
                answers(),
                Finding::fail(
                    REPOSITORY,
                    format!("{name}: {error}"),
                    "give the job `permissions: contents: read`, or use a token that can read the repository",
                ),
            ],
            _ => {
                let remedy = if error.is_temporary() {
                    "make sure that this machine can reach that address; githubstatus.com shows GitHub's status"
                } else {
                    "check GITHUB_API_URL and the token"
                };
                [
                    Finding::bad(self.is_needed(), API, error.to_string(), remedy),
                    Finding::unknown(REPOSITORY, format!("{name}: not asked")),
                ]
            }
        }
    }

    fn rate(&self, check: &'static str, survey: &Survey) -> Finding {
        let address = &self.api;
        if let Some(why) = &survey.broke_off {
            return Finding::warn(
                check,
                format!("{address} answers only some requests: {why}"),
                "try again; githubstatus.com shows GitHub's status",
            );
        }
        let Some(RateLimit { remaining, limit }) = survey.rate else {
            return Finding::ok(check, format!("{address} answers"));
        };
        let found = format!("{address} answers; {remaining} of {limit} requests are left");
        if remaining < FEW_REQUESTS {
            let remedy = "wait for the next hour, or use a separate token for Sprag";
            Finding::warn(check, found, remedy)
        } else {
            Finding::ok(check, found)
        }
    }

    fn found(&self, check: &'static str, survey: &Survey) -> Finding {
        let name = &survey.facts.full_name;
        if survey.facts.archived {
            return Finding::bad(
                self.pushes(),
                check,
                format!("{name} is archived and cannot be changed"),
                "unarchive it, or run with --no-push and --report none",
            );
        }
        let sight = if survey.facts.private {
            "private"
        } else {
            "public"
        };
        Finding::ok(check, format!("{name}, {sight}"))
    }

    fn permission(&self, area: Area, check: &'static str, used_for: &str) -> Finding {
        let name = check.trim_start_matches("may-");
        let dispatches = area == Area::Actions && !self.settings.dispatch_workflows.is_empty();
        let used_for = if dispatches {
            "start other workflows"
        } else {
            used_for
        };
        let Some(Ok(survey)) = &self.survey else {
            return Finding::unknown(check, format!("unknown; needed to {used_for}"));
        };
        let mut areas = survey.areas.iter();
        let known = areas.find(|known| known.area == area);
        let (word, known) = if area == Area::Actions && !dispatches {
            ("read", known.map(|known| known.read))
        } else {
            ("write", known.map(|known| known.write))
        };
        match known.unwrap_or(PermissionState::Unknown) {
            PermissionState::Known => {
                Finding::ok(check, format!("{word} is confirmed: it can {used_for}"))
            }
            PermissionState::Unknown => Finding::unknown(
                check,
                format!(
                    "{word} cannot be confirmed in advance; to {used_for}, the job needs `permissions: {name}: {word}`"
                ),
            ),
            PermissionState::Refused => Finding::bad(
                self.must(area),
                check,
                format!("{word} is refused: it cannot {used_for}"),
                self.remedy(area, name, word),
            ),
        }
    }

    /// Whether the configuration of a run requires the permission to write there.
    fn must(&self, area: Area) -> bool {
        match area {
            Area::Contents => self.pushes(),
            Area::PullRequests => self.opens_pull_request(),
            Area::Issues | Area::Checks | Area::Actions => false,
        }
    }

    fn remedy(&self, area: Area, name: &str, word: &str) -> String {
        let own = format!("`permissions: {name}: {word}`");
        let is_personal = self.token.is_some_and(|(_, state, _)| state == State::Warn);
        if !is_personal {
            format!("give the job {own}")
        } else if area == Area::Checks {
            format!("use the job's own token with {own}; only apps write check runs")
        } else {
            format!("give the token that permission, or use the job's own with {own}")
        }
    }
}
