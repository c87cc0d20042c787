//! Uploads the contents that git-lfs keeps, before the commits with the pointers to them are pushed.

use crate::git::remote::error::RemoteError;
use crate::git::remote::exchange::{Remote, TRANSFER_LIMIT};
use crate::git::remote::refusal::{Refusal, RefusalKind};
use crate::git::repo::Repo;
use crate::process::Cancel;

/// The first line of a pointer, and what comes before the digest of the content in the second one.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1";
const DIGEST: &str = "oid sha256:";

/// The largest pointer, in bytes, as a filter of git.
const SMALL: &str = "--filter=blob:limit=1024";

impl Repo {
    /// Uploads the contents for the pointers in the commits that the remote lacks. Returns why that failed: the
    /// pointers must not be pushed then.
    pub(super) fn upload_contents(
        &self,
        remote: &Remote,
        new: &str,
        expected: Option<&str>,
        cancel: &Cancel,
    ) -> Result<Option<Refusal>, RemoteError> {
        if self.private.state.lfs_storage.is_none() {
            return Ok(None);
        }
        let call = self.real_call().args(["rev-list", "--objects", SMALL, new]);
        let call = call.args(["--not", "--remotes"]).args(expected);
        let listed = call.of_any_size().run()?.stdout;
        let ids = listed
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b' ').next());
        let ids: Vec<&[u8]> = ids.filter(|id| !id.is_empty()).collect();
        let call = self.real_call().args(["cat-file", "--batch"]);
        let contents = call.of_any_size().stdin(ids.join(&b'\n')).run()?.stdout;
        let digests = pointed_to(&String::from_utf8_lossy(&contents));
        if digests.is_empty() {
            return Ok(None);
        }
        let call = self.remote_call(remote, cancel).timeout(TRANSFER_LIMIT);
        let call = call.args(["lfs", "push", "--object-id", remote.url()]);
        let output = call.args(&digests).status()?;
        let said = remote.clean(&output.stderr);
        Ok((output.status != Some(0)).then(|| Refusal {
            kind: RefusalKind::LargeFile,
            words: format!("git-lfs could not upload the contents of the commits, so they were not pushed: {said}"),
        }))
    }
}

/// The digests of the contents to which the blobs in an output of `git cat-file --batch` point.
fn pointed_to(contents: &str) -> Vec<String> {
    let lines: Vec<&str> = contents.lines().collect();
    let is_blob = |line: &str| line.split(' ').nth(1) == Some("blob");
    let found = lines.windows(3).filter_map(|lines| match lines {
        [header, POINTER, digest] if is_blob(header) => digest.strip_prefix(DIGEST),
        _ => None,
    });
    found.map(str::to_owned).collect()
}
