//! Who asks, and what they may.

use super::state::State;
use std::collections::BTreeMap;

/// GitHub's answer to a token without the permission.
pub const NOT_ACCESSIBLE: &str = "Resource not accessible by integration";
/// The account of a job's token.
pub const ACTIONS: &str = "github-actions[bot]";

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A workflow job's own.
    Job,
    /// A person's. It may not write checks, and GitHub looks at the person's role in the repository.
    Personal,
}

/// What a permission is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Area {
    Actions,
    Checks,
    Contents,
    Issues,
    Pulls,
}

/// How far a permission goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    None,
    Read,
    Write,
}

/// A token and its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The account that acts.
    pub login: String,
    /// What the token is.
    pub kind: Kind,
    /// What it may; the areas that are not named, not at all.
    pub permissions: BTreeMap<Area, Access>,
}

impl Token {
    /// A job's token that may write everything.
    pub fn job() -> Self {
        Self::of(ACTIONS, Kind::Job)
    }

    /// A person's token that may write everything such a token can.
    pub fn personal(login: &str) -> Self {
        Self::of(login, Kind::Personal).may(Area::Checks, Access::Read)
    }

    /// The same with this permission.
    #[must_use]
    pub fn may(mut self, area: Area, access: Access) -> Self {
        self.permissions.insert(area, access);
        self
    }

    /// A job's token of a pull request from a fork: it reads.
    pub fn fork() -> Self {
        let all = Self::job().permissions.into_keys();
        let reads = all.map(|area| (area, Access::Read)).collect();
        Self {
            permissions: reads,
            ..Self::job()
        }
    }

    fn of(login: &str, kind: Kind) -> Self {
        let areas = [
            Area::Actions,
            Area::Checks,
            Area::Contents,
            Area::Issues,
            Area::Pulls,
        ];
        Self {
            login: login.to_owned(),
            kind,
            permissions: areas.map(|area| (area, Access::Write)).into(),
        }
    }
}

/// What an endpoint asks of a token.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Any token of an account; a job's is none.
    Account,
    /// This access to this area.
    Of(Area, Access),
    /// This access to issues, or where the number is a pull request's, to pull requests.
    Thread(Access),
}

/// Why a token is refused: status and message; `number` is the issue or pull request in question.
pub fn refusal(
    state: &State,
    token: Option<&Token>,
    need: Need,
    number: Option<u64>,
) -> Option<(u16, &'static str)> {
    let anonymous_reads = !state.repository.private;
    let Some(token) = token else {
        return match need {
            Need::Nothing => None,
            Need::Of(_, Access::Read) | Need::Thread(Access::Read) if anonymous_reads => None,
            _ => Some((401, "Requires authentication")),
        };
    };
    let allowed = |area: Area, access: Access| {
        let held = token.permissions.get(&area).copied();
        held.unwrap_or(Access::None) >= access
    };
    match need {
        Need::Nothing => None,
        Need::Account if token.kind == Kind::Personal => None,
        Need::Account => Some((403, NOT_ACCESSIBLE)),
        Need::Of(Area::Checks, Access::Write) if token.kind == Kind::Personal => {
            Some((403, "You must authenticate via a GitHub App."))
        }
        Need::Of(area, access) => (!allowed(area, access)).then_some((403, NOT_ACCESSIBLE)),
        Need::Thread(access) => {
            let pull = number.is_some_and(|number| state.pulls.contains_key(&number));
            let enough = allowed(Area::Issues, access) || pull && allowed(Area::Pulls, access);
            (!enough).then_some((403, NOT_ACCESSIBLE))
        }
    }
}
