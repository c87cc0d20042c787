//! Commits in a file for the job that may push. The file comes from a job that ran foreign code, so
//! everything in it is checked before it is trusted.

use crate::domain::snapshot::RevId;
use crate::git::commit::facts::CommitLine;
use crate::git::error::{GitError, Result, io_error};
use crate::git::files::{make_dir, remove};
use crate::git::private::directory::write_ref;
use crate::git::remote::names::{checked_id, is_id};
use crate::git::repo::Repo;
use crate::plain_file;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The only ref in a bundle.
const RESULT: &str = "refs/sprag/result";
/// Maximum size of a bundle in bytes. GitHub refuses pushes of more than two gigabytes and warns far below
/// that; an agent's work is kilobytes.
const SIZE_LIMIT: u64 = 100 << 20;
const HEADER_LIMIT: usize = 16 * 1024;
const OBJECT_LIMIT: u32 = 200_000;
/// Time limit for inflating and checking a bundle, which takes seconds within the size limits.
const CHECK_LIMIT: Duration = Duration::from_secs(120);

/// Why a bundle was not written or not accepted. The repository is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// There are no commits between base and head, or the file is not one that Sprag writes and accepts here.
    #[error("{0}")]
    Refused(String),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn refused(why: impl Display) -> BundleError {
    BundleError::Refused(format!("the bundle is refused: {why}"))
}

fn too_large(what: &str) -> BundleError {
    BundleError::Refused(format!("the bundle has more {what} than are accepted"))
}

impl Repo {
    /// Writes the commits after `base` up to `head` into a file at `path`, which must be outside of the
    /// repository.
    ///
    /// # Errors
    /// [`BundleError::Empty`], or when git fails.
    pub fn bundle(&self, path: &Path, base: &RevId, head: &RevId) -> Result<(), BundleError> {
        let base = checked_id(base)?;
        let head = checked_id(head)?;
        let _open = self.unseal()?;
        if base == head {
            return Err(BundleError::Refused(
                "there are no commits to bundle".to_owned(),
            ));
        }
        self.restore_shallow()?;
        let root = &self.private.root;
        write_ref(root, RESULT, format!("{head}\n").as_bytes())?;
        let call = self.bare_call().words("bundle create --quiet").arg(path);
        let made = call.args([RESULT, &format!("^{base}")]).run();
        remove(&self.private.git_dir().join(RESULT))?;
        made?;
        Ok(())
    }

    /// The commit that a bundle claims to continue. The claim is not verified; the caller must judge it.
    ///
    /// # Errors
    /// [`BundleError`] if the file is not a bundle of exactly one linear sequence of commits.
    pub fn bundle_base(path: &Path) -> Result<RevId, BundleError> {
        let content = read_bounded(path)?;
        match Header::parse(&content)?.prerequisites.as_slice() {
            [base] if is_id(base) => Ok(RevId((*base).to_owned())),
            _ => Err(refused("it does not continue exactly one commit")),
        }
    }

    /// Imports the commits of a bundle into the repository, after checking that they are a linear sequence of
    /// ordinary commits on top of `expected_base` and that their objects are sound. No ref is created.
    ///
    /// # Errors
    /// [`BundleError`]; then nothing of the bundle is in the repository.
    pub fn unbundle(&self, path: &Path, expected_base: &RevId) -> Result<CommitLine, BundleError> {
        let base = checked_id(expected_base)?;
        let _open = self.unseal()?;
        self.restore_shallow()?;
        if !self.has_object(&format!("{base}^{{commit}}"))? {
            return Err(BundleError::Refused(format!(
                "the repository does not have {base}, which the bundle continues; check it out"
            )));
        }
        let content = read_bounded(path)?;
        let header = Header::parse(&content)?;
        if header.prerequisites != [base] {
            return Err(refused(
                "it does not continue the expected commit, and only that",
            ));
        }
        let quarantine = self.quarantine(&content[header.length..])?;
        let line = self.commit_line(Some(quarantine.path()), base, header.head)?;
        let facts = line.map_err(refused)?;
        self.adopt_line(&quarantine, base, header.head)?;
        Ok(facts)
    }

    /// Unpacks the objects of a pack into a separate directory and checks each as a server would.
    fn quarantine(&self, pack: &[u8]) -> Result<tempfile::TempDir, BundleError> {
        let count = pack
            .get(8..12)
            .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
            .map(u32::from_be_bytes);
        match count {
            _ if !pack.starts_with(b"PACK") => return Err(refused("it has no pack")),
            Some(..=OBJECT_LIMIT) => {}
            Some(_) => return Err(too_large("objects")),
            None => return Err(refused("its pack is cut off")),
        }
        let dir = self.scratch_objects()?;
        make_dir(&dir.path().join("pack"))?;
        let call = self.seeing(Some(dir.path()));
        let call = call.words("index-pack --stdin --fix-thin --strict --threads=1");
        let call = call
            .arg(format!("--max-input-size={SIZE_LIMIT}"))
            .stdin(pack);
        let output = call.timeout(CHECK_LIMIT).status()?;
        if !output.is_success() {
            return Err(refused(output.stderr));
        }
        Ok(dir)
    }

    /// Copies the objects of the commits into the repository, and nothing else from the pack.
    fn adopt_line(&self, quarantine: &tempfile::TempDir, base: &str, head: &str) -> Result<()> {
        let packs = self.real.common_dir.join("objects/pack");
        make_dir(&packs)?;
        let call = self.seeing(Some(quarantine.path()));
        let call = call
            .words("pack-objects --quiet --revs --threads=1")
            .arg(packs.join("pack"));
        let wanted = format!("{head}\n^{base}\n");
        call.durably().stdin(wanted).run().map(drop)
    }
}

/// The header of a bundle (gitformat-bundle(5)).
struct Header<'a> {
    prerequisites: Vec<&'a str>,
    head: &'a str,
    length: usize,
}

impl<'a> Header<'a> {
    fn parse(content: &'a [u8]) -> Result<Self, BundleError> {
        let start = content.get(..HEADER_LIMIT).unwrap_or(content);
        let end =
            memchr::memmem::find(start, b"\n\n").ok_or_else(|| refused("it has no header"))?;
        let text =
            std::str::from_utf8(&content[..end]).map_err(|_| refused("its header is not text"))?;
        let mut lines = text.split('\n');
        if !matches!(lines.next(), Some("# v2 git bundle" | "# v3 git bundle")) {
            return Err(refused("it is not a git bundle"));
        }
        let mut prerequisites = Vec::new();
        let mut refs = Vec::new();
        for line in lines {
            if line.starts_with('@') {
                let known = ["@object-format=sha1", "@object-format=sha256"];
                if !known.contains(&line) {
                    return Err(refused("it asks for a capability that no run uses"));
                }
            } else if let Some(rest) = line.strip_prefix('-') {
                prerequisites.push(rest.split(' ').next().unwrap_or(rest));
            } else {
                refs.push(line);
            }
        }
        let [only] = refs.as_slice() else {
            return Err(refused("it does not hold exactly one ref"));
        };
        match only.split_once(' ') {
            Some((head, RESULT)) if is_id(head) => Ok(Self {
                prerequisites,
                head,
                length: end + 2,
            }),
            _ => Err(refused(format!("its ref is not {RESULT}"))),
        }
    }
}

fn read_bounded(path: &Path) -> Result<Vec<u8>, BundleError> {
    plain_file::read(path, SIZE_LIMIT).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => too_large("bytes"),
        _ => io_error("read", path)(error).into(),
    })
}
