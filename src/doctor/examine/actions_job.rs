//! GitHub: the token, the API, the repository there, and each permission.

use crate::doctor::facts::{
    ActionsJob, Answer, Area, Delivery, Facts, JobFacts, PermissionState, Refused, RefusedKind,
    Right, TokenKind, Trigger,
};
use crate::doctor::finding::Finding;

const AREAS: [Area; 5] = [
    Area::Contents,
    Area::Issues,
    Area::PullRequests,
    Area::Checks,
    Area::Actions,
];

/// Fewer remaining requests than this may not be enough for a run.
const FEW_REQUESTS: u64 = 50;

pub(super) fn findings(facts: &Facts) -> Vec<Finding> {
    let ActionsJob::Inside(here) = &facts.actions_job else {
        let found = "not checked: this is not a GitHub Actions job";
        return vec![Finding::unknown("github", found)];
    };
    let configuration = facts.configuration.as_ref();
    let delivery = configuration.map_or(Delivery::default(), |it| it.delivery);
    let (asks, needs_hub) = match facts.trigger {
        Trigger::Asks { needs_hub, .. } => (true, needs_hub),
        _ => (false, false),
    };
    let told = delivery.push == Some(true) || delivery.pull_request || delivery.report;
    let look = Look {
        here,
        delivery,
        needed: needs_hub || told,
        pushes: delivery.pull_request || delivery.push.unwrap_or(asks),
    };
    let mut findings = vec![look.token()];
    findings.extend(look.api());
    findings.extend(AREAS.map(|area| look.right(area)));
    findings
}

struct Look<'a> {
    here: &'a JobFacts,
    delivery: Delivery,
    /// Whether a run needs GitHub.
    needed: bool,
    /// Whether a run would push.
    pushes: bool,
}

impl Look<'_> {
    fn answer(&self) -> Option<&Answer> {
        self.here.answer.as_ref()?.as_ref().ok()
    }

    fn refused(&self) -> Option<&Refused> {
        self.here.answer.as_ref()?.as_ref().err()
    }

    fn token(&self) -> Finding {
        const CHECK: &str = "token";
        const JOBS: &str = "use the job's own token: `github-token: ${{ github.token }}`";
        let Some(kind) = self.here.token else {
            return Finding::bad(
                self.needed,
                CHECK,
                "none: nothing can be pushed or reported to GitHub",
                "give the step `env: GITHUB_TOKEN: ${{ github.token }}`, or the action its `github-token`",
            );
        };
        let login = self.answer().and_then(|answer| answer.login.as_deref());
        let of = |what: &str| match login {
            Some(login) => format!("{what}, acts as {login}"),
            None => what.to_owned(),
        };
        if let Some(refused) = self.refused()
            && refused.kind == RefusedKind::Token
        {
            return Finding::fail(CHECK, &refused.message, JOBS);
        }
        match kind {
            TokenKind::Installation => Finding::ok(CHECK, of("of the job or of an app (ghs_)")),
            TokenKind::Classic | TokenKind::FineGrained | TokenKind::OnBehalf => {
                let what = match kind {
                    TokenKind::Classic => "a personal token (ghp_)",
                    TokenKind::FineGrained => "a fine-grained personal token (github_pat_)",
                    _ => "a person's token issued to an app (gho_ or ghu_)",
                };
                Finding::warn(
                    CHECK,
                    format!("{}: it cannot write check runs", of(what)),
                    format!("{JOBS}, unless its pushes are to start workflows"),
                )
            }
            TokenKind::Other => {
                Finding::unknown(CHECK, of("of an unknown kind, according to its prefix"))
            }
        }
    }

    /// Findings about the API and the repository.
    fn api(&self) -> Vec<Finding> {
        const API: &str = "api";
        const REPOSITORY: &str = "github-repository";
        let not_asked = |check| Finding::unknown(check, "not asked without a token");
        let address = &self.here.api;
        let Some(name) = &self.here.repository else {
            let found = "GITHUB_REPOSITORY is not set";
            return vec![
                Finding::unknown(API, format!("not asked: {found}")),
                Finding::bad(
                    self.needed,
                    REPOSITORY,
                    found,
                    "pass the job's variables to this step",
                ),
            ];
        };
        match &self.here.answer {
            None => vec![not_asked(API), not_asked(REPOSITORY)],
            Some(Ok(answer)) => vec![self.rate(API, answer), self.found(REPOSITORY, answer)],
            Some(Err(Refused { kind, message })) => match kind {
                RefusedKind::Token => vec![
                    Finding::ok(API, format!("{address} answers")),
                    Finding::unknown(REPOSITORY, format!("{name}: not shown to this token")),
                ],
                RefusedKind::Repository => vec![
                    Finding::ok(API, format!("{address} answers")),
                    Finding::fail(
                        REPOSITORY,
                        format!("{name}: {message}"),
                        "give the job `permissions: contents: read`, or use a token that can read the repository",
                    ),
                ],
                RefusedKind::Away | RefusedKind::Setting => {
                    let remedy = match kind {
                        RefusedKind::Away => {
                            "make sure that this machine can reach that address; githubstatus.com shows GitHub's status"
                        }
                        _ => "check GITHUB_API_URL and the token",
                    };
                    vec![
                        Finding::bad(self.needed, API, message, remedy),
                        Finding::unknown(REPOSITORY, format!("{name}: not asked")),
                    ]
                }
            },
        }
    }

    fn rate(&self, check: &'static str, answer: &Answer) -> Finding {
        let address = &self.here.api;
        let left = answer.rate.map(|(left, of)| {
            let found = format!("{address} answers; {left} of {of} requests are left");
            (left, found)
        });
        match (&answer.broke_off, left) {
            (Some(why), _) => Finding::warn(
                check,
                format!("{address} answers only some requests: {why}"),
                "try again; githubstatus.com shows GitHub's status",
            ),
            (None, Some((left, found))) if left < FEW_REQUESTS => Finding::warn(
                check,
                found,
                "wait for the next hour, or use a separate token for Sprag",
            ),
            (None, Some((_, found))) => Finding::ok(check, found),
            (None, None) => Finding::ok(check, format!("{address} answers")),
        }
    }

    fn found(&self, check: &'static str, answer: &Answer) -> Finding {
        let name = &answer.repository;
        if answer.archived {
            return Finding::bad(
                self.pushes,
                check,
                format!("{name} is archived and cannot be changed"),
                "unarchive it, or run with --no-push and --report none",
            );
        }
        let sight = if answer.private { "private" } else { "public" };
        Finding::ok(check, format!("{name}, {sight}"))
    }

    fn right(&self, area: Area) -> Finding {
        let check = check_of(area);
        let name = name_of(area);
        let used_for = self.used_for(area);
        let rights = self
            .answer()
            .map(|answer| answer.rights.as_slice())
            .unwrap_or_default();
        let Some(Right { read, write, .. }) = rights.iter().find(|right| right.area == area) else {
            let found = format!("unknown; needed to {used_for}");
            return Finding::unknown(check, found);
        };
        let wants_write = area != Area::Actions || self.delivery.dispatch;
        let (wanted, standing) = if wants_write {
            ("write", *write)
        } else {
            ("read", *read)
        };
        match standing {
            PermissionState::Known => {
                Finding::ok(check, format!("{wanted} is confirmed: it can {used_for}"))
            }
            PermissionState::Unknown => Finding::unknown(
                check,
                format!(
                    "{wanted} cannot be confirmed in advance; to {used_for}, the job needs `permissions: {name}: {wanted}`"
                ),
            ),
            PermissionState::Refused => Finding::bad(
                self.must(area),
                check,
                format!("{wanted} is refused: it cannot {used_for}"),
                self.remedy(area, wanted),
            ),
        }
    }

    /// Whether the configuration of a run requires this permission.
    fn must(&self, area: Area) -> bool {
        match area {
            Area::Contents => self.pushes,
            Area::PullRequests => self.delivery.pull_request,
            Area::Issues | Area::Checks | Area::Actions => false,
        }
    }

    fn used_for(&self, area: Area) -> &'static str {
        match area {
            Area::Contents => "push commits",
            Area::Issues => "comment on issues",
            Area::PullRequests => "open pull requests and comment on them",
            Area::Checks => "write check runs",
            Area::Actions if self.delivery.dispatch => "start other workflows",
            Area::Actions => "read the logs of failed jobs",
        }
    }

    fn remedy(&self, area: Area, wanted: &str) -> String {
        let name = name_of(area);
        let personal = self.here.token.is_some_and(TokenKind::is_personal);
        match (personal, area) {
            (true, Area::Checks) => {
                "use the job's own token with `permissions: checks: write`; only apps write check runs"
                    .to_owned()
            }
            (true, _) => format!(
                "give the token that permission, or use the job's own with `permissions: {name}: {wanted}`"
            ),
            (false, _) => format!("give the job `permissions: {name}: {wanted}`"),
        }
    }
}

fn name_of(area: Area) -> &'static str {
    match area {
        Area::Contents => "contents",
        Area::Issues => "issues",
        Area::PullRequests => "pull-requests",
        Area::Checks => "checks",
        Area::Actions => "actions",
    }
}

fn check_of(area: Area) -> &'static str {
    match area {
        Area::Contents => "may-contents",
        Area::Issues => "may-issues",
        Area::PullRequests => "may-pull-requests",
        Area::Checks => "may-checks",
        Area::Actions => "may-actions",
    }
}
