//! Whose token it is.

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

/// Who Sprag is on GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The login; of an app it ends with `[bot]`.
    pub login: String,
    /// Whether GitHub would not say, so that it is taken for a job's own token.
    pub assumed: bool,
}

impl Identity {
    /// Whether `author` is this identity. An app is nobody's namesake: a person cannot have `[bot]` in
    /// a login.
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
    /// Whose token this is. `GET /user` answers for people; tokens of an app's installation, a job's
    /// among them, are refused there and asked for their `viewer` instead. Where neither tells, it is
    /// taken for a job's own token.
    ///
    /// # Errors
    /// A token that is not accepted, or GitHub that cannot be reached.
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

/// GraphQL names some apps without the `[bot]` that REST has in their comments.
fn with_bot(login: String) -> String {
    match login.ends_with("[bot]") {
        true => login,
        false => format!("{login}[bot]"),
    }
}
