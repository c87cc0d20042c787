//! Queries remotes and fetches from them, with only the URL and the credential that the caller gives.
//!
//! Every exchange runs in the private git directory with an empty work tree, so that no remote, URL
//! rewriting, proxy, credential helper or hook of the repository affects it.

use crate::domain::snapshot::RevId;
use crate::domain::text::has_word;
use crate::git::command::{Call, Login, Output, USER};
use crate::git::error::{GitError, Result};
use crate::git::files::{is_there, remove, write_atomically};
use crate::git::private::calls::{HOME, git_dir};
use crate::git::remote::names::{checked_ref, is_id};
use crate::git::remote::refusal::{ExchangeFailure, Refusal, RefusalKind, RemoteError, classify};
use crate::git::repo::Repo;
use crate::process::Cancel;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

/// Time limit of a query to a remote.
const ASK_LIMIT: Duration = Duration::from_secs(60);
/// Time limit of a transfer of objects, as for any git command.
pub(crate) const TRANSFER_LIMIT: Duration = Duration::from_secs(600);

/// Number of commits of a branch to fetch into a shallow checkout.
pub const ANCESTORS: u32 = 1_000;
/// The increasing numbers of commits to fetch until two histories meet.
const DEPTHS: [u32; 4] = [50, 500, 5_000, i32::MAX as u32];

/// The credential for a remote.
#[derive(Debug, Clone)]
pub struct Credential {
    token: SecretString,
}

impl Credential {
    /// A GitHub token of an App or of a person.
    pub fn token(token: SecretString) -> Self {
        Self { token }
    }

    fn basic(&self) -> String {
        STANDARD.encode(format!("{USER}:{}", self.token.expose_secret()))
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
    /// The repository at `url`, which has the form `https://host/path` and contains no credential. Plain
    /// `http` is accepted too, because a private server may offer nothing else.
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

    /// Passes those of these environment variables on to git that name a proxy or trusted certificates. All
    /// others are left out.
    #[must_use]
    pub fn with_network(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let of_network = |(name, _): &(String, String)| has_word(NETWORK, name);
        self.network = variables.into_iter().filter(of_network).collect();
        self
    }

    /// A repository in a directory, for tests.
    #[cfg(test)]
    pub(crate) fn local(path: &std::path::Path) -> Self {
        Self {
            url: format!("file://{}", path.display()),
            credential: None,
            protocols: "file",
            network: Vec::new(),
        }
    }

    /// The URL of the repository.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Removes the credential from `text`, in case git or the remote repeated it.
    pub(crate) fn clean(&self, text: &str) -> String {
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

    /// The login that git gets for this remote.
    fn login(&self) -> Option<Login> {
        let credential = self.credential.as_ref()?;
        let (scheme, rest) = self.url.split_once("://")?;
        let host = rest.split('/').next()?;
        Some(Login {
            server: format!("{scheme}://{host}"),
            password: credential.token.clone(),
        })
    }
}

/// Variables that configure access to the network and nothing else.
const NETWORK: &str = "
    http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY SSL_CERT_FILE SSL_CERT_DIR
    GIT_SSL_CAINFO GIT_SSL_CAPATH";

/// Redirections are not followed, because the credential would go with them. No helper is asked. Refs of the
/// object store, which the agent can write to, are not advertised.
const REMOTE_SETTINGS: [(&str, &str); 14] = [
    ("http.followRedirects", "false"),
    ("http.sslVerify", "true"),
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "60"),
    ("credential.helper", ""),
    ("core.alternateRefsCommand", "true"),
    // Sends the credential before the server asks, if git knows this setting (2.46).
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
    /// The commit that the remote's ref with this full name is at, or `None` if there is no such ref.
    ///
    /// # Errors
    /// [`RemoteError`]; only [`RemoteError::Transient`] is worth a retry.
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
        let answer = remote_error(remote, call.status())?;
        let text = String::from_utf8_lossy(&answer.stdout);
        Ok(text.lines().find_map(|line| {
            let (id, name) = line.split_once('\t')?;
            (name == refname && is_id(id)).then(|| RevId(id.to_owned()))
        }))
    }

    /// Fetches a ref of the remote by its full name, or a commit by its id, and returns the commit. `depth`
    /// limits how much history a shallow clone fetches, and it stays shallow. Neither a ref nor
    /// `FETCH_HEAD` is written.
    ///
    /// # Errors
    /// [`RemoteError`]; only [`RemoteError::Transient`] is worth a retry.
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
            self.ls_remote(remote, wanted, cancel)?.ok_or_else(|| {
                RemoteError::Refused(Refusal {
                    kind: RefusalKind::NotFound,
                    words: format!("there is no {wanted}"),
                })
            })?
        };
        let _open = self.unseal()?;
        self.restore_shallow()?;
        let depth = depth.filter(|_| self.is_shallow());
        let depth = depth.map(|depth| format!("--depth={}", depth.max(1)));
        let call = self.remote_call(remote, cancel).timeout(TRANSFER_LIMIT);
        let call = call.words(FETCH).durably().args(depth);
        remote_error(remote, call.args([&remote.url, &id.0]).status())?;
        self.copy_shallow()?;
        self.git("cat-file -e")
            .arg(format!("{}^{{commit}}", id.0))
            .run()?;
        self.fetch_missing(remote, &id, cancel)?;
        Ok(id)
    }

    /// Fetches what a partial clone lacks of a commit's tree. The private directory has no remote from which git
    /// would fetch it when it needs it. What the base has and a sparse checkout leaves out stays missing.
    fn fetch_missing(
        &self,
        remote: &Remote,
        commit: &RevId,
        cancel: &Cancel,
    ) -> Result<(), RemoteError> {
        if !self.real.is_partial() {
            return Ok(());
        }
        let _open = self.unseal()?;
        let tree = format!("{}^{{tree}}", commit.0);
        let base = format!("^{}", self.private.state.base_tree);
        let call = self
            .git("rev-list --objects --quiet --missing=print")
            .args([&tree, &base]);
        let listed = call.stdout()?;
        let lines = listed.split(|byte| *byte == b'\n');
        let missing: Vec<&[u8]> = lines.filter_map(|line| line.strip_prefix(b"?")).collect();
        let missing = missing.join(&b'\n');
        if missing.is_empty() {
            return Ok(());
        }
        // The remote would leave out what the commits have that are here.
        let call = self
            .remote_call(remote, cancel)
            .timeout(TRANSFER_LIMIT)
            .durably();
        let call = call
            .configured(&["fetch.negotiationAlgorithm=noop"])
            .words(FETCH);
        let call = call.args(["--stdin", &remote.url]);
        remote_error(remote, call.stdin(missing).status())?;
        Ok(())
    }

    /// Fetches a commit of the remote, without extending a shallow history.
    ///
    /// # Errors
    /// As for [`Repo::fetch`].
    pub fn fetch_for(
        &self,
        remote: &Remote,
        commit: &RevId,
        cancel: &Cancel,
    ) -> Result<RevId, RemoteError> {
        self.fetch(remote, &commit.0, Some(1), cancel)
    }

    /// Fetches a ref or a commit of the remote, and as much of both histories as it takes to find the merge
    /// base with `other`, a commit that the remote has too. Returns the commit and the merge base, or `None`
    /// if there is none.
    ///
    /// # Errors
    /// As for [`Repo::fetch`].
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
            if self.fork_point(&tip, other)?.is_some() {
                break;
            }
        }
        let fork = self.fork_point(&tip, other)?;
        if let Some(fork) = &fork {
            self.fetch_missing(remote, fork, cancel)?;
        }
        Ok((tip, fork))
    }

    /// A command that communicates with `remote`: in the private directory, without a work tree, with the
    /// object store of the repository, and with the credential in a pipe that only this process has.
    pub(crate) fn remote_call(&self, remote: &Remote, cancel: &Cancel) -> Call<'_> {
        let mut call = self.bare_call().of_any_size().cancelled_by(cancel);
        call = call.env("GIT_ALLOW_PROTOCOL", remote.protocols);
        for (name, value) in &remote.network {
            call = call.env(name, value);
        }
        let settings = REMOTE_SETTINGS.map(|(key, value)| (key, OsStr::new(value)));
        call.with_settings(&settings).login(remote.login())
    }

    /// A command in the private directory without a work tree, and so without its `.gitmodules`, attributes
    /// or nested repositories. New objects go to the repository.
    pub(crate) fn bare_call(&self) -> Call<'_> {
        let root = &self.private.root;
        let call = self.real.git.call(root);
        call.env("HOME", root.join(HOME))
            .env("TMPDIR", root.join("tmp"))
            .env("GIT_DIR", git_dir(root))
            .env("GIT_WORK_TREE", root.join("no-hooks"))
            .env("GIT_OBJECT_DIRECTORY", self.real.common_dir.join("objects"))
    }

    /// Copies the boundary of a shallow history to the repository after a fetch has moved it.
    fn copy_shallow(&self) -> Result<()> {
        let own = self.private.git_dir().join("shallow");
        let shared = self.real.common_dir.join("shallow");
        let is_file = shared.symlink_metadata().ok().map(|meta| meta.is_file());
        match fs::read(&own) {
            // The fetch completed the history, so there is no boundary.
            Err(_) if is_file == Some(true) => remove(&shared),
            Ok(borders) if is_file == Some(true) || !is_there(&shared) => {
                write_atomically(&shared, &borders)
            }
            _ => Ok(()),
        }
    }
}

const FETCH: &str = "
    fetch --quiet --no-tags --no-write-fetch-head --no-recurse-submodules --no-auto-maintenance
    --no-show-forced-updates";

/// Converts a failed command to a [`RemoteError`]. The credential is first removed from the error output.
pub(crate) fn remote_error(remote: &Remote, output: Result<Output>) -> Result<Output, RemoteError> {
    let output = match output {
        Err(error @ GitError::TimedOut { .. }) => {
            return Err(RemoteError::Transient(error.to_string()));
        }
        output => output?,
    };
    if output.is_success() {
        return Ok(output);
    }
    let said = remote.clean(&output.stderr);
    Err(match classify(&said) {
        ExchangeFailure::Refused(refusal) => RemoteError::Refused(refusal),
        ExchangeFailure::Transient(words) => RemoteError::Transient(words),
        ExchangeFailure::Moved => RemoteError::Transient(said),
    })
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
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let remote = remote().with_network(given);
        assert_eq!(
            remote.network,
            [("https_proxy".to_owned(), "http://p".to_owned())]
        );
    }
}
