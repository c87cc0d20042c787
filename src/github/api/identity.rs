//! The account that a token belongs to.

use super::call::Call;
use super::client::Client;
use super::error::Error;
use super::facts::Author;
use super::policy::Kind;
use hyper::Method;
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

#[derive(Deserialize)]
struct Viewer {
    data: Option<ViewerData>,
}

#[derive(Deserialize)]
struct ViewerData {
    viewer: Option<Login>,
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
        let query = json!({ "query": "query { viewer { login } }" });
        let call = Call::with_body(Method::POST, "/graphql".to_owned(), Kind::Read, &query)?;
        let viewer = match self.call::<Viewer>(&call).await {
            Ok(answer) => answer.data.and_then(|data| data.viewer),
            Err(error) if error.is_temporary() => return Err(error),
            Err(error @ Error::Unauthorised { .. }) => return Err(error),
            Err(_) => None,
        };
        Ok(match viewer {
            Some(viewer) => Identity {
                login: with_bot(viewer.login),
                assumed: false,
            },
            None => Identity {
                login: JOB.to_owned(),
                assumed: true,
            },
        })
    }
}

/// Adds `[bot]` to app names, which GraphQL sometimes leaves out but REST has in comments.
fn with_bot(login: String) -> String {
    if login.ends_with("[bot]") {
        login
    } else {
        format!("{login}[bot]")
    }
}
