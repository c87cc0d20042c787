//! Stages exactly what was verified, and creates a commit that no ref points to yet.

use crate::domain::snapshot::{Head, RevId};
use crate::git::bytes::{as_path, nul_fields};
use crate::git::command::Call;
use crate::git::commit::request::{
    CommitError, CommitRequest, Identity, LandingIntent, PlanContent, PlanLanding, Stage, Staged,
    StagedTree, hex,
};
use crate::git::entries::{OnDisk, PathInspector, inspect_all, split};
use crate::git::error::{IGNORED, Result};
use crate::git::files::copy_index;
use crate::git::preflight::Operation;
use crate::git::private::config::{signing_file, with_configuration};
use crate::git::repo::Repo;
use crate::git::snapshot::change::{Change, ChangeKind, RawSnapshot, Unread};
use crate::git::snapshot::listing::GITLINK;
use crate::permit::Committable;
use crate::plain_file;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit for signing, because a signing program that asks for a passphrase would wait for ever.
const SIGNING_TIMEOUT: Duration = Duration::from_secs(60);
const MARKERS_LOOKED_FOR_UP_TO: u64 = 32 * 1024 * 1024;

/// The minimum length of the conflict markers that git and jj write.
pub(crate) const MARKER_LENGTH: usize = 7;

/// An index, and the store for the objects of the staged files.
pub(crate) struct Target<'a> {
    pub(crate) index: &'a Path,
    pub(crate) objects: PathBuf,
    /// Whether the objects must survive a crash.
    pub(crate) durable: bool,
}

impl Repo {
    /// Stages the snapshot's changes and the plan, and writes the tree. Files are added from the work tree
    /// with the filters that were configured at the start of the run. The objects go to Sprag's own store,
    /// and [`Repo::land`] copies them into the repository.
    ///
    /// # Errors
    /// When the permit is not for this tree, when there are conflicts, or when git fails.
    pub fn stage(
        &mut self,
        token: Committable,
        request: &CommitRequest<'_>,
    ) -> Result<Stage, CommitError> {
        let _open = self.unseal()?;
        let snapshot = request.snapshot;
        self.ensure_permitted(&token, snapshot)?;
        self.refuse_links(snapshot.known.branch.as_deref().unwrap_or("HEAD"))?;
        let changes: Vec<&Change> = snapshot.committed().collect();
        refuse_unreadable(&changes)?;
        self.refuse_conflicts(snapshot)?;
        self.staged_tree = None;
        let mut warnings = Vec::new();
        let (staged, plan) = self.past_false_objects(&mut warnings, || {
            self.stage_tree(snapshot, &changes, request.plan.as_ref())
        })?;
        let parent = request.parent.as_ref().map(|parent| parent.0.clone());
        let parent_tree = match &parent {
            Some(commit) if parent != self.private.state.base => self.raw_commit(commit)?.tree,
            _ => self.private.state.base_tree.clone(),
        };
        if staged.tree == parent_tree && request.merged.is_none() {
            return Ok(Stage::Nothing);
        }
        self.staged_tree = Some(staged.clone());
        let merged = request.merged.as_ref().map(|merged| merged.0.clone());
        Ok(Stage::Ready(Staged {
            content: staged,
            parents: parent.into_iter().chain(merged).collect(),
            old: match &snapshot.known.head {
                Head::Unborn => None,
                Head::At(rev) => Some(rev.clone()),
            },
            branch: snapshot.known.branch.clone(),
            plan,
            warnings,
        }))
    }

    fn stage_tree(
        &self,
        snapshot: &RawSnapshot,
        changes: &[&Change],
        plan: Option<&PlanContent>,
    ) -> Result<(StagedTree, Option<PlanLanding>), CommitError> {
        let index = self.stage_index();
        copy_index(&self.private.index(), &index)?;
        let target = Target {
            index: &index,
            objects: self.own_objects(),
            durable: false,
        };
        let is_converted = self.may_convert(changes.iter().map(|change| &change.path))?;
        let content = plan
            .filter(|_| !is_converted)
            .map(|plan| plan.content.clone());
        let plan = plan.map(|plan| self.store_plan(&target, plan, is_converted));
        let (plan, entry) = plan.transpose()?.unzip();
        let left_out = self.stage_with(&target, changes, entry)?;
        if !left_out.is_empty() {
            return Err(CommitError::Impossible(left_out));
        }
        let tree = self.write_tree(&index)?;
        let plan_path = plan.as_ref().map(|plan| plan.path.as_slice());
        let (changed, objects) = self.verify_staged(&tree, snapshot, changes, plan_path)?;
        let staged = StagedTree {
            tree,
            changed,
            objects,
            plan: content,
        };
        Ok((staged, plan))
    }

    /// Creates the commit. No ref points to it before [`Repo::land`]; store the intent on disk first.
    ///
    /// # Errors
    /// When git or the signing program fails.
    pub fn commit_tree(
        &self,
        staged: Staged,
        message: &str,
        identity: &Identity,
    ) -> Result<LandingIntent, CommitError> {
        let _open = self.unseal_to_read()?;
        let message = format!("{}\n", message.trim_end());
        let subject = message.lines().next().unwrap_or_default().to_owned();
        let mut warnings = staged.warnings;
        let parents = staged.parents.iter().flat_map(|parent| ["-p", parent]);
        let commit = self.past_false_objects(&mut warnings, || {
            let call = self.commit_of(&staged.content.tree, identity);
            let call = self.signed(call).args(parents.clone());
            let commit = call.stdin(message.as_str()).line()?;
            match self.objects().digest(&commit, u64::MAX)? {
                Some(_) => Ok(commit),
                None => Err(CommitError::Unsound(vec![commit])),
            }
        })?;
        Ok(LandingIntent {
            warnings,
            commit: RevId(commit),
            tree: Some(staged.content.tree),
            old: staged.old,
            branch: staged.branch,
            subject,
            identity: identity.clone(),
            plan: staged.plan,
        })
    }

    /// Whether git signs the commits.
    pub fn signs_commits(&self) -> bool {
        self.private.state.sign
    }

    /// Signs a commit that is not kept, so that a missing key is found before there is any work. Does nothing
    /// unless commits are signed.
    ///
    /// # Errors
    /// When git or the signing program fails.
    pub fn try_signing(&self, identity: &Identity) -> Result<()> {
        if !self.private.state.sign {
            return Ok(());
        }
        let _open = self.unseal_to_read()?;
        let scratch = self.scratch_objects()?;
        let call = self.commit_of(&self.private.state.base_tree, identity);
        let call = self.signed(call.env("GIT_OBJECT_DIRECTORY", scratch.path()));
        call.stdin("A trial signature\n").line().map(drop)
    }

    /// A commit of a tree, with the message from standard input.
    fn commit_of(&self, tree: &str, identity: &Identity) -> Call<'_> {
        let call = self.git("commit-tree -F -").arg(tree);
        call.in_name_of(&identity.name, &identity.email)
    }

    /// Makes `git commit-tree` sign if the configuration asks for signed commits.
    pub(crate) fn signed<'a>(&self, mut call: Call<'a>) -> Call<'a> {
        if !self.private.state.sign {
            return call;
        }
        for (name, value) in self.real.environment.signing() {
            call = call.env(name, value);
        }
        let call = with_configuration(call, &signing_file(&self.private.root));
        call.words("-S").timeout(SIGNING_TIMEOUT)
    }

    pub(crate) fn stage_index(&self) -> PathBuf {
        self.private.git_dir().join("index.stage")
    }

    pub(crate) fn staging(&self, target: &Target<'_>) -> Call<'_> {
        let call = self.with_index(target.index);
        call.env("GIT_OBJECT_DIRECTORY", &target.objects)
    }

    /// Writes the tree of an index to Sprag's own store.
    pub(crate) fn write_tree(&self, index: &Path) -> Result<String> {
        self.with_index(index)
            .words("write-tree --missing-ok")
            .line()
    }

    fn ensure_permitted(
        &self,
        token: &Committable,
        snapshot: &RawSnapshot,
    ) -> Result<(), CommitError> {
        let is_own = self.fingerprint_of(snapshot) == snapshot.known.tree;
        let permitted = match token.tree() {
            Some(tree) => *tree == snapshot.known.tree,
            None => snapshot.changes.iter().all(|change| change.newly_ignored),
        };
        if is_own && permitted {
            Ok(())
        } else {
            Err(CommitError::NotVerified)
        }
    }

    /// Stages paths individually: no directory is descended into, no ignore rule applies, and a submodule is
    /// staged as its commit. Returns the files that git does not accept.
    pub(crate) fn stage_changes(
        &self,
        target: &Target<'_>,
        changes: &[&Change],
    ) -> Result<Vec<Vec<u8>>> {
        self.stage_with(target, changes, None)
    }

    /// Like [`Repo::stage_changes`], but one path gets the content of `entry` instead of that in the work
    /// tree.
    fn stage_with(
        &self,
        target: &Target<'_>,
        changes: &[&Change],
        entry: Option<PlanEntry>,
    ) -> Result<Vec<Vec<u8>>> {
        let mut looker = PathInspector::new(&self.real.work_tree);
        let (mut records, mut files) = (Vec::new(), Vec::new());
        let of_entry = |path: &[u8]| entry.as_ref().is_some_and(|entry| entry.path == path);
        for change in changes.iter().filter(|change| !of_entry(&change.path)) {
            let path = change.path.as_slice();
            let is_real = looker.is_real(split(path).0);
            let meta = self.at(path).symlink_metadata().ok();
            let meta = meta.filter(|_| is_real && change.kind != ChangeKind::Deleted);
            let submodule = match &meta {
                Some(meta) if meta.is_dir() => self.nested_head(path),
                _ => None,
            };
            if meta.is_some_and(|meta| meta.is_file() || meta.is_symlink()) {
                files.push(path);
            } else if let Some(head) = submodule {
                records.extend(record(GITLINK, &head, path));
            } else {
                records.extend(record(0, &self.no_object(), path));
            }
        }
        let (filtered, files) = self.split_by_filter(target.index, files)?;
        let mut left_out = self.filter_into(target, &filtered, &mut records)?;
        if let Some(entry) = entry.as_ref().filter(|_| files.is_empty()) {
            records.extend(record(entry.mode, &entry.oid, &entry.path));
        }
        if !records.is_empty() {
            let call = self.staging(target).words("update-index -z --index-info");
            call.stdin(records).run()?;
        }
        if files.is_empty() {
            return Ok(left_out);
        }
        let call = self.staging(target).loose();
        let mut call = call.words("update-index --add --remove --replace -z");
        if let Some(PlanEntry { mode, oid, path }) = &entry {
            let info = [format!("{mode:06o},{oid},").as_bytes(), path].concat();
            call = call.arg("--cacheinfo").arg(as_path(&info));
        }
        if target.durable {
            call = call.durably_together();
        }
        let said = call.arg("--stdin").paths(&files).run()?.stderr;
        if said.contains(IGNORED) {
            // Those of these files that are missing in the index.
            let listed = self.staging(target).words("ls-files -z").stdout()?;
            let there: HashSet<&[u8]> = nul_fields(&listed).collect();
            let missing = files.into_iter().filter(|path| !there.contains(path));
            left_out.extend(missing.map(<[u8]>::to_vec));
        }
        Ok(left_out)
    }

    pub(crate) fn no_object(&self) -> String {
        "0".repeat(self.private.state.base_tree.len())
    }

    /// Stages the plan with its new status while the file in the work tree keeps the old one, because a task
    /// is not marked as done before its commit has landed.
    fn store_plan(
        &self,
        target: &Target<'_>,
        plan: &PlanContent,
        is_converted: bool,
    ) -> Result<(PlanLanding, PlanEntry)> {
        let oid = if is_converted {
            self.filter_content(target, &plan.path, &plan.content)?
        } else {
            self.store("blob", &plan.content)?
        };
        let seen = inspect_all(&self.real.work_tree, &[&plan.path]);
        let (mode, before) = match seen.first() {
            Some(OnDisk::File {
                executable, digest, ..
            }) => (self.file_mode(*executable, None), Some(hex(digest))),
            _ => (0o100_644, None),
        };
        let path = plan.path.clone();
        let entry = PlanEntry {
            mode,
            oid,
            path: path.clone(),
        };
        Ok((PlanLanding { path, before }, entry))
    }

    fn refuse_conflicts(&self, snapshot: &RawSnapshot) -> Result<(), CommitError> {
        let operation = Operation::under_way(&self.real.git_dir);
        if let Some(operation) = operation.filter(|operation| !operation.is_search()) {
            return Err(CommitError::InProgress(operation));
        }
        if !snapshot.unmerged.is_empty() {
            return Err(CommitError::Conflicts(snapshot.unmerged.clone()));
        }
        // git knows of the conflicts in files that both sides added, and knows nothing of those of jj.
        let markers_in = |change: &Change| Markers {
            git: change.kind == ChangeKind::Modified,
            jj: self.started_with_jj()
                && matches!(change.kind, ChangeKind::Modified | ChangeKind::Added),
        };
        let mut marked = Vec::new();
        for change in snapshot.committed() {
            let markers = markers_in(change);
            if markers == Markers::default() {
                continue;
            }
            let file = plain_file::open(&self.at(&change.path));
            if !file.is_ok_and(|file| has_conflict(BufReader::new(file), markers)) {
                continue;
            }
            // A file about conflicts may have had one before.
            let before = self.base_file(&change.path)?.unwrap_or_default();
            if !has_conflict(before.as_slice(), markers) {
                marked.push(change.path.clone());
            }
        }
        if marked.is_empty() {
            Ok(())
        } else {
            Err(CommitError::Conflicts(marked))
        }
    }
}

/// The staged plan file.
struct PlanEntry {
    mode: u32,
    oid: String,
    path: Vec<u8>,
}

pub(crate) fn refuse_unreadable(changes: &[&Change]) -> Result<(), CommitError> {
    let of = |why: Unread| -> Vec<Vec<u8>> {
        let found = changes
            .iter()
            .filter(|change| change.unreadable == Some(why));
        found.map(|change| change.path.clone()).collect()
    };
    let (refused, too_large) = (of(Unread::Refused), of(Unread::TooLarge));
    if !refused.is_empty() {
        Err(CommitError::Unreadable(refused))
    } else if !too_large.is_empty() {
        Err(CommitError::TooLarge(too_large))
    } else {
        Ok(())
    }
}

/// `mode SP oid TAB path NUL`
pub(crate) fn record(mode: u32, oid: &str, path: &[u8]) -> Vec<u8> {
    [format!("{mode:06o} {oid}\t").as_bytes(), path, b"\0"].concat()
}

/// The conflict markers that count in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Markers {
    git: bool,
    /// Those that jj labels. jj may be told to write git's.
    jj: bool,
}

/// Whether lines are conflict markers in their order.
fn has_conflict(text: impl BufRead, markers: Markers) -> bool {
    let of_git = [b"<<<<<<< ".as_slice(), b"=======", b">>>>>>> "];
    let mut of_git = of_git.into_iter().peekable();
    let mut of_jj = None;
    let lines = text.take(MARKERS_LOOKED_FOR_UP_TO).split(b'\n');
    for line in lines.map_while(Result::ok) {
        let is_next = of_git.next_if(|marker| line.starts_with(marker)).is_some();
        if markers.git && is_next && of_git.peek().is_none() {
            return true;
        }
        match jj_marker(&line).filter(|_| markers.jj) {
            Some((b'<', length)) => of_jj = Some(length),
            Some((b'>', length)) if of_jj == Some(length) => return true,
            _ => {}
        }
    }
    false
}

/// The character and the length of a marker that opens or closes a conflict of jj: `<<<<<<< conflict 1 of 2`,
/// `>>>>>>> conflict 1 of 2 ends`. It is longer where the sides have lines like it.
fn jj_marker(line: &[u8]) -> Option<(u8, usize)> {
    let first = *line.first().filter(|&&byte| byte == b'<' || byte == b'>')?;
    let length = line.iter().take_while(|&&byte| byte == first).count();
    let label = line.get(length..)?.strip_prefix(b" conflict ")?;
    let is_numbered = label.first().is_some_and(u8::is_ascii_digit);
    (length >= MARKER_LENGTH && is_numbered).then_some((first, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIT: Markers = Markers {
        git: true,
        jj: false,
    };
    const JJ: Markers = Markers {
        git: false,
        jj: true,
    };

    #[test]
    fn only_a_whole_conflict_is_one() {
        for (text, is_one) in [
            ("a\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> other\n", true),
            ("<<<<<<< HEAD\n<<<<<<<<<< x\n=======\n>>>>>>> b\n", true),
            ("Title\n=======\n>>>>>>> quoted\n<<<<<<< HEAD\n", false),
            (" <<<<<<< HEAD\n =======\n >>>>>>> b\n", false),
            (
                "<<<<<<<<<< request\n----------\n>>>>>>>>>> response\n",
                false,
            ),
        ] {
            assert_eq!(has_conflict(text.as_bytes(), GIT), is_one, "{text}");
            assert!(!has_conflict(text.as_bytes(), JJ), "{text}");
        }
    }

    #[test]
    fn a_conflict_of_jj_is_one_in_each_of_its_styles() {
        for (text, is_one) in [
            (
                "<<<<<<< conflict 1 of 1\n+++++++ abc \"Other\"\nother\n%%%%%%% diff from: def\n\\\\\\\\\\\\\\        to: ghi\n-base\n+mine\n>>>>>>> conflict 1 of 1 ends\n",
                true,
            ),
            (
                "<<<<<<< conflict 1 of 2\n+++++++ abc\na\n------- def\nb\n+++++++ ghi\nc\n>>>>>>> conflict 1 of 2 ends\n",
                true,
            ),
            // Longer, where the sides have lines like markers themselves.
            (
                "<<<<<<<<<<< conflict 1 of 1\n%%%%%%%%%%% diff\n-=======\n+++++++++++ abc\nx\n>>>>>>>>>>> conflict 1 of 1 ends\n",
                true,
            ),
            (
                "<<<<<<< conflict 1 of 1\nx\n>>>>>>>> conflict 1 of 1 ends\n",
                false,
            ),
            (
                "<<<<<<< conflict in words\n>>>>>>> conflict in words\n",
                false,
            ),
        ] {
            assert_eq!(has_conflict(text.as_bytes(), JJ), is_one, "{text}");
            assert!(!has_conflict(text.as_bytes(), GIT), "{text}");
        }
    }
}
