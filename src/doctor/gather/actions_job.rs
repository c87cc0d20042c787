//! Facts about GitHub and the event of this job. Nothing is written to GitHub.

use crate::context::Context;
use crate::doctor::{
    ActionsJob, Answer, Area, JobFacts, PermissionState, Refused, RefusedKind, Right, TokenKind,
    Trigger, read,
};
use crate::domain::settings::Settings;
use crate::domain::trigger::place::Place;
use crate::github::api::{Client, Error, Limits, Permission, Settings as Api, Survey};
use crate::github::{actions_environment, lookup};
use crate::settings::inputs;
use secrecy::SecretString;
use std::time::{Duration, Instant};

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

pub(crate) async fn gather(context: &Context) -> ActionsJob {
    if !context.in_actions() {
        return ActionsJob::Outside;
    }
    let place = actions_environment::place(context);
    let token = inputs::token(context);
    let default = "https://api.github.com";
    let api = context.var("GITHUB_API_URL").unwrap_or(default);
    let mut here = JobFacts {
        repository: place.as_ref().map(|place| place.repository.clone()),
        api: crate::git::without_userinfo(api.trim_end_matches('/')),
        token: token.map(TokenKind::of),
        answer: None,
    };
    if let (Some(place), Some(token)) = (place, token) {
        here.answer = Some(ask(context, &place, token).await.map_err(refused));
    }
    ActionsJob::Inside(here)
}

async fn ask(context: &Context, place: &Place, token: &str) -> Result<Answer, Error> {
    let settings = Api {
        api_url: place.api_url.clone(),
        token: SecretString::from(token.to_owned()),
        limits: LIMITS,
    };
    let client = Client::new(settings, &actions_environment::network(context))?
        .with_deadline(Instant::now() + OVERALL);
    let survey = client.repo(&place.repository)?.survey().await?;
    let identity = client.identity().await.ok();
    let login = identity.filter(|identity| !identity.assumed);
    Ok(answer(survey, login.map(|identity| identity.login)))
}

fn answer(survey: Survey, login: Option<String>) -> Answer {
    use Permission as P;
    let standing = |wanted: Permission| {
        let mut known = survey.permissions.iter();
        let found = known.find(|(permission, _)| *permission == wanted);
        found.map_or(PermissionState::Unknown, |(_, standing)| *standing)
    };
    let rights = [
        (Area::Contents, P::ContentsRead, P::ContentsWrite),
        (Area::Issues, P::IssuesRead, P::IssuesWrite),
        (
            Area::PullRequests,
            P::PullRequestsRead,
            P::PullRequestsWrite,
        ),
        (Area::Checks, P::ChecksRead, P::ChecksWrite),
        (Area::Actions, P::ActionsRead, P::ActionsWrite),
    ];
    Answer {
        rights: rights
            .into_iter()
            .map(|(area, read, write)| Right {
                area,
                read: standing(read),
                write: standing(write),
            })
            .collect(),
        login,
        rate: survey.rate.map(|rate| (rate.remaining, rate.limit)),
        broke_off: survey.broke_off.map(|error| error.to_string()),
        repository: survey.facts.full_name,
        private: survey.facts.private,
        archived: survey.facts.archived,
    }
}

fn refused(error: Error) -> Refused {
    let kind = match &error {
        Error::Unauthorised { .. } => RefusedKind::Token,
        Error::Forbidden { .. } | Error::NotFound { .. } => RefusedKind::Repository,
        _ if error.is_temporary() => RefusedKind::Away,
        _ => RefusedKind::Setting,
    };
    Refused {
        kind,
        message: error.to_string(),
    }
}

/// The interpretation of this job's event, if there is one.
pub(crate) fn trigger(context: &Context, settings: &Settings) -> Trigger {
    let Some((name, _)) = actions_environment::event(context).filter(|_| context.in_actions())
    else {
        return Trigger::None;
    };
    match lookup::read(context) {
        Ok(event) => read(&name, &event, &lookup::trigger_settings(settings, context)),
        Err(error) => Trigger::Unreadable(error.message),
    }
}
