//! Remotes: asking and fetching, by the URL and the credential that the caller gives and nothing else.
//!
//! Every exchange runs in the private git directory with an empty work tree, so that no remote, URL
//! rewriting, proxy, credential helper or hook of the repository has a say in it.

use crate::domain::snapshot::RevId;
use crate::git::command::{Call, Login};
use crate::git::error::{GitError, io_error};
use crate::git::files::write_atomically;
use crate::git::private::calls::{HOME, git_dir};
use crate::git::remote::error::RemoteError;
use crate::git::remote::names::{checked_ref, is_id};
use crate::git::remote::refusal::{Refusal, Trouble, classify};
use crate::git::repo::Repo;
use crate::process::Cancel;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use std::fs;
use std::time::Duration;

/// Limit of a question to a remote.
const ASK_LIMIT: Duration = Duration::from_secs(60);
/// Limit of a transfer of objects: as any git command.
pub(in crate::git) const TRANSFER_LIMIT: Duration = Duration::from_secs(600);

/// Commits that are fetched of a branch where the checkout has not got all of its history.
const ANCESTORS: u32 = 1_000;
/// The same for a search that goes on until two histories meet.
const DEPTHS: [u32; 4] = [50, 500, 5_000, i32::MAX as u32];

/// What a remote is asked with.
#[derive(Debug, Clone)]
pub struct Credential {
    user: String,
    token: SecretString,
}

impl Credential {
    /// A token of GitHub's, of an App or of a person.
    pub fn token(token: SecretString) -> Self {
        Self {
            user: "x-access-token".to_owned(),
            token,
        }
    }

    fn basic(&self) -> String {
        STANDARD.encode(format!("{}:{}", self.user, self.token.expose_secret()))
    }
}

/// A repository on a server.
#[derive(Debug, Clone)]
pub struct Remote {
    url: String,
    credential: Option<Credential>,
    protocols: &'static str,
    network: Vec<(String, String)>,
}

impl Remote {
    /// The repository at `url`, which is of the form `https://host/path` and holds no credential.
    /// Plain `http` is taken too: a server of one's own may have nothing else.
    ///
    /// # Errors
    /// [`RemoteError::BadUrl`] for any other form.
    pub fn new(url: &str, credential: Option<Credential>) -> Result<Self, RemoteError> {
        let protocols = match url.split_once("://") {
            Some(("https", rest)) if is_plain_location(rest) => "https",
            Some(("http", rest)) if is_plain_location(rest) => "http:https",
            _ => return Err(RemoteError::BadUrl),
        };
        Ok(Self {
            url: url.to_owned(),
            credential,
            protocols,
            network: Vec::new(),
        })
    }

    /// Hands these variables of the environment that Sprag was started with on to git: those that
    /// name a proxy or the certificates to trust. All others are left out.
    #[must_use]
    pub fn with_network(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let of_network = |(name, _): &(String, String)| NETWORK.contains(&name.as_str());
        self.network = variables.into_iter().filter(of_network).collect();
        self
    }

    /// A repository in a directory, for tests.
    #[cfg(test)]
    pub(in crate::git) fn local(path: &std::path::Path) -> Self {
        Self {
            url: format!("file://{}", path.display()),
            credential: None,
            protocols: "file",
            network: Vec::new(),
        }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `text` without the credential, should git or the remote have repeated it.
    pub(in crate::git) fn clean(&self, text: &str) -> String {
        let Some(credential) = &self.credential else {
            return text.to_owned();
        };
        let token = credential.token.expose_secret();
        let mut text = text.replace(&credential.basic(), "***");
        if !token.is_empty() {
            text = text.replace(token, "***");
        }
        text
    }

    /// How git logs in there.
    fn login(&self) -> Option<Login> {
        let credential = self.credential.as_ref()?;
        let (scheme, rest) = self.url.split_once("://")?;
        let host = rest.split('/').next()?;
        Some(Login {
            server: format!("{scheme}://{host}"),
            user: credential.user.clone(),
            password: credential.token.clone(),
        })
    }
}

/// Variables that lead to the network and decide nothing else.
const NETWORK: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
];

/// No redirection is followed, for the credential would go with it; no helper is asked; the object
/// store that the agent can write to tells nothing of its own refs.
const REMOTE_SETTINGS: &[(&str, &str)] = &[
    ("http.followRedirects", "false"),
    ("http.sslVerify", "true"),
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "60"),
    ("credential.helper", ""),
    ("core.alternateRefsCommand", "true"),
    // Not only once the server has asked, where git knows this setting (2.46).
    ("http.proactiveAuth", "basic"),
    ("core.askPass", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("push.followTags", "false"),
    ("push.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];

fn is_plain_location(rest: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:[]%+".contains(c);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    !host.is_empty() && !path.is_empty() && !host.starts_with('-') && rest.chars().all(is_plain)
}

impl Repo {
    /// Where the ref of this full name is on the remote; `None` when there is none.
    ///
    /// # Errors
    /// [`RemoteError`]; only [`RemoteError::Transient`] is worth another try.
    pub fn ls_remote(
        &self,
        remote: &Remote,
        refname: &str,
        cancel: &Cancel,
    ) -> Result<Option<RevId>, RemoteError> {
        let refname = checked_ref(refname)?;
        let _open = self.unseal()?;
        let call = self.remote_call(remote, cancel).timeout(ASK_LIMIT);
        let call = call.args(["ls-remote", "--quiet", &remote.url, refname]);
        let answer = told(remote, call.status())?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let found = text.lines().find_map(|line| {
            let (id, name) = line.split_once('\t')?;
            (name == refname && is_id(id)).then(|| RevId(id.to_owned()))
        });
        Ok(found)
    }

    /// Brings a ref of the remote by its full name, or a commit by its id, into the repository, and
    /// returns the commit. `depth` bounds how much history comes along; what is shallow stays so.
    /// Neither a ref nor `FETCH_HEAD` is written.
    ///
    /// # Errors
    /// [`RemoteError`]; only [`RemoteError::Transient`] is worth another try.
    pub fn fetch(
        &self,
        remote: &Remote,
        wanted: &str,
        depth: Option<u32>,
        cancel: &Cancel,
    ) -> Result<RevId, RemoteError> {
        let id = if is_id(wanted) {
            RevId(wanted.to_owned())
        } else {
            let found = self.ls_remote(remote, wanted, cancel)?;
            found.ok_or_else(|| {
                RemoteError::Refused(Refusal {
                    kind: crate::git::remote::refusal::RefusalKind::NotFound,
                    words: format!("there is no {wanted}"),
                })
            })?
        };
        let _open = self.unseal()?;
        self.refresh_shallow()?;
        let mut call = self.remote_call(remote, cancel).timeout(TRANSFER_LIMIT);
        call = call.args(FETCH).durably();
        if let Some(depth) = depth {
            call = call.args([format!("--depth={}", depth.max(1))]);
        }
        told(remote, call.args([remote.url.as_str(), &id.0]).status())?;
        self.share_shallow()?;
        let commit = format!("{}^{{commit}}", id.0);
        let is_there = self.call().args(["cat-file", "-e", &commit]).status()?;
        is_there.expect_success("fetch".to_owned())?;
        Ok(id)
    }

    /// Brings a commit of the remote into the repository, with no more history than there is already.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn fetch_for(
        &self,
        remote: &Remote,
        commit: &RevId,
        cancel: &Cancel,
    ) -> Result<RevId, RemoteError> {
        let depth = self.is_shallow().then_some(1);
        self.fetch(remote, &commit.0, depth, cancel)
    }

    /// Brings a ref or a commit of the remote into the repository, with much of its history where the
    /// repository has not got all of its own.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn fetch_with_history(
        &self,
        remote: &Remote,
        wanted: &str,
        cancel: &Cancel,
    ) -> Result<RevId, RemoteError> {
        let depth = self.is_shallow().then_some(ANCESTORS);
        self.fetch(remote, wanted, depth, cancel)
    }

    /// Brings a ref or a commit of the remote into the repository, and of both histories what it takes to
    /// find where it parted from `other`, a commit that the remote has too. Returns the commit, and the last
    /// one that is in both histories; `None` where there is none.
    ///
    /// # Errors
    /// As [`Repo::fetch`].
    pub fn fetch_until_fork(
        &self,
        remote: &Remote,
        wanted: &str,
        other: &RevId,
        cancel: &Cancel,
    ) -> Result<(RevId, Option<RevId>), RemoteError> {
        let depths: &[u32] = if self.is_shallow() { &DEPTHS } else { &[] };
        let tip = self.fetch(remote, wanted, depths.first().copied(), cancel)?;
        for (round, depth) in depths.iter().enumerate() {
            if round > 0 {
                self.fetch(remote, &tip.0, Some(*depth), cancel)?;
            }
            self.fetch(remote, &other.0, Some(*depth), cancel)?;
            if let Some(fork) = self.fork_point(&tip, other)? {
                return Ok((tip, Some(fork)));
            }
        }
        let fork = self.fork_point(&tip, other)?;
        Ok((tip, fork))
    }

    /// A command that talks to `remote`: the private directory, no work tree, objects where the
    /// repository has them, and the credential in a pipe of this one process.
    pub(in crate::git) fn remote_call(&self, remote: &Remote, cancel: &Cancel) -> Call<'_> {
        let mut call = self.apart().cancelled_by(cancel);
        call = call.env("GIT_ALLOW_PROTOCOL", remote.protocols);
        for (name, value) in &remote.network {
            call = call.env(name, value);
        }
        call = call.env("GIT_CONFIG_COUNT", REMOTE_SETTINGS.len().to_string());
        for (number, (key, value)) in REMOTE_SETTINGS.iter().enumerate() {
            call = call.env(format!("GIT_CONFIG_KEY_{number}"), key);
            call = call.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        call.login(remote.login())
    }

    /// A command in the private directory that sees no work tree and so no `.gitmodules`, attributes
    /// or nested repository of one. New objects go to the repository.
    pub(in crate::git) fn apart(&self) -> Call<'_> {
        let root = &self.private.root;
        let call = self.real.git.call(root);
        call.env("HOME", root.join(HOME))
            .env("TMPDIR", root.join("tmp"))
            .env("GIT_DIR", git_dir(root))
            .env("GIT_WORK_TREE", root.join("no-hooks"))
            .env("GIT_OBJECT_DIRECTORY", self.real.common_dir.join("objects"))
    }

    /// Tells the repository of the borders of its history that a fetch drew anew.
    fn share_shallow(&self) -> Result<(), GitError> {
        let own = self.private.git_dir().join("shallow");
        let shared = self.real.common_dir.join("shallow");
        let Ok(borders) = fs::read(&own) else {
            // A fetch that brought all of the history leaves no border.
            return match shared.symlink_metadata() {
                Ok(meta) if meta.is_file() => {
                    fs::remove_file(&shared).map_err(io_error("remove", &shared))
                }
                _ => Ok(()),
            };
        };
        match shared.symlink_metadata() {
            Ok(meta) if !meta.is_file() => return Ok(()),
            Ok(_) if fs::read(&shared).map_err(io_error("read", &shared))? == borders => {
                return Ok(());
            }
            _ => {}
        }
        write_atomically(&shared, &borders)
    }
}

const FETCH: [&str; 7] = [
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-recurse-submodules",
    "--no-auto-maintenance",
    "--no-show-forced-updates",
];

/// Makes a remote's refusal of a failed command. The error output is freed of the credential first.
pub(in crate::git) fn told(
    remote: &Remote,
    output: Result<crate::git::command::Output, GitError>,
) -> Result<crate::git::command::Output, RemoteError> {
    let output = match output {
        Err(error @ GitError::TimedOut { .. }) => {
            return Err(RemoteError::Transient(error.to_string()));
        }
        other => other?,
    };
    if output.status == Some(0) {
        return Ok(output);
    }
    match classify(&remote.clean(&output.stderr)) {
        Trouble::Refused(refusal) => Err(RemoteError::Refused(refusal)),
        Trouble::Transient(words) => Err(RemoteError::Transient(words)),
        Trouble::Moved => Err(RemoteError::Transient(remote.clean(&output.stderr))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> Remote {
        let credential = Credential::token(SecretString::from("s3cret-token"));
        Remote::new("https://example.org/o/r.git", Some(credential)).unwrap()
    }

    #[test]
    fn the_credential_is_shown_nowhere() {
        let remote = remote();
        let basic = STANDARD.encode("x-access-token:s3cret-token");
        assert!(!format!("{remote:?}").contains("s3cret"));
        let said = format!("fatal: header AUTHORIZATION: basic {basic} for s3cret-token");
        assert_eq!(
            remote.clean(&said),
            "fatal: header AUTHORIZATION: basic *** for ***"
        );
        let login = remote.login().unwrap();
        assert_eq!(login.server, "https://example.org");
        assert!(!format!("{login:?}").contains("s3cret"));
    }

    #[test]
    fn only_plain_addresses_are_remotes() {
        for good in [
            "https://github.com/o/r.git",
            "http://127.0.0.1:8080/o/r.git",
            "https://ghe.example.org:8443/o/r",
        ] {
            assert!(Remote::new(good, None).is_ok(), "{good}");
        }
        for bad in [
            "",
            "file:///etc",
            "ext::sh -c x",
            "--upload-pack=x",
            "git@github.com:o/r.git",
            "ssh://github.com/o/r",
            "https://user:token@github.com/o/r.git",
            "https://github.com",
            "https:///o/r",
            "https://-x/o/r",
            "https://github.com/o/r.git\nx",
            "https://github.com/o/r.git?x=1",
        ] {
            assert!(
                matches!(Remote::new(bad, None), Err(RemoteError::BadUrl)),
                "{bad}"
            );
        }
    }

    #[test]
    fn only_what_leads_to_the_network_is_handed_on() {
        let given = [
            ("https_proxy", "http://p"),
            ("GIT_SSH_COMMAND", "x"),
            ("LD_PRELOAD", "y"),
        ];
        let given = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let remote = remote().with_network(given);
        assert_eq!(
            remote.network,
            [("https_proxy".to_owned(), "http://p".to_owned())]
        );
    }
}
