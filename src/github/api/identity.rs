//! The account that a token belongs to.

use super::call::Call;
use super::client::{Client, Repo};
use super::error::Error;
use super::facts::Author;
use super::policy::Kind;
use serde::Deserialize;
use serde_json::json;

/// The login of a job's own token.
const JOB: &str = "github-actions[bot]";

/// Sprag's account on GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The login. That of an app ends with `[bot]`.
    pub login: String,
    /// Whether GitHub did not say, so that the token counts as a job's own.
    pub assumed: bool,
}

impl Identity {
    /// Whether `author` is this account. A person cannot have `[bot]` in a login, so an app is unambiguous.
    pub fn is(&self, author: Option<&Author>) -> bool {
        author.is_some_and(|author| author.login.eq_ignore_ascii_case(&self.login))
    }
}

#[derive(Deserialize)]
struct Login {
    login: String,
}

impl Client {
    /// Determines the account of the token. `GET /user` works for people. It refuses tokens of app
    /// installations, including a job's, so these are asked for their `viewer`. If neither works, the token
    /// counts as a job's own.
    ///
    /// # Errors
    /// The token is not accepted, or GitHub cannot be reached.
    pub async fn identity(&self) -> Result<Identity, Error> {
        if !self.inner.transport.is_installation_token() {
            match self.call::<Login>(&Call::get("/user".to_owned())).await {
                Ok(user) => {
                    return Ok(Identity {
                        login: user.login,
                        assumed: false,
                    });
                }
                Err(Error::Forbidden { .. } | Error::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let query = "query { viewer { login } }";
        let viewer = match self.graphql(query, &json!({}), Kind::Read, "viewer").await {
            Ok(data) => data["viewer"]["login"].as_str().map(with_bot),
            Err(error) if error.is_temporary() => return Err(error),
            Err(error @ Error::Unauthorised { .. }) => return Err(error),
            Err(_) => None,
        };
        Ok(Identity {
            assumed: viewer.is_none(),
            login: viewer.unwrap_or_else(|| JOB.to_owned()),
        })
    }
}

impl Repo {
    /// The account of the token.
    ///
    /// # Errors
    /// As for [`Client::identity`].
    pub async fn identity(&self) -> Result<Identity, Error> {
        self.client.identity().await
    }
}

/// Adds `[bot]` to app names, which GraphQL sometimes leaves out but REST has in comments.
fn with_bot(login: &str) -> String {
    if login.ends_with("[bot]") {
        login.to_owned()
    } else {
        format!("{login}[bot]")
    }
}
