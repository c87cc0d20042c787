//! The entries of the repository's git directories that are put back after a turn: all but those that git changes while
//! somebody works.

use crate::git::bytes::{as_path, nul_fields, nul_joined};
use crate::git::error::{Result, io_error};
use crate::git::files::{copy_tree, is_directory, is_link, is_there, make_dir, names, write};
use crate::git::private::calls::private_call;
use crate::git::real::Real;
use crate::git::special_files::leading_elsewhere;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Entries of a git directory that hold objects, also those of git-lfs and git-annex, refs and the index. The boundary of
/// a shallow clone is looked at by itself.
const FREE: &str = "HEAD annex index lfs logs objects packed-refs refs reftable shallow";

/// The directory of the git directory for whatever is moved away for a proof.
pub(crate) const AWAY: &str = "sprag-away";

/// The file of an object store that names further stores.
const ALTERNATES: &str = "objects/info/alternates";

/// Directories of a git directory that hold further ones, by name or in directories of their own.
const CONTAINERS: [&str; 2] = [MODULES, "worktrees"];

/// Where the git directories of submodules are.
const MODULES: &str = "modules";

/// The file that every git directory has.
const HEAD: &str = "HEAD";

/// A path that is put back, with the path of its copy.
type Recorded = (PathBuf, PathBuf);

/// Copies what is put back after a turn. `further` are places beside the git directories: the directory of the hooks,
/// and what names the git directories of submodules.
pub(super) fn record(real: &Real, root: &Path, further: &[PathBuf]) -> Result<()> {
    let recorded = root.join("recorded");
    make_dir(&recorded)?;
    let list = further.iter().map(|path| path.as_os_str().as_bytes());
    write(&recorded.join("further"), &nul_joined(list))?;
    record_again(real, root)
}

/// Copies it again, with the same further places.
pub(super) fn record_again(real: &Real, root: &Path) -> Result<()> {
    let mut places = listed(real, root, true).into_iter();
    places.try_for_each(|(place, copy)| copy_tree(&place, &copy))
}

/// The paths that an agent may not change, each with the path of its copy. New entries have no copy.
pub(crate) fn recorded_places(real: &Real, root: &Path) -> Vec<Recorded> {
    listed(real, root, false)
}

fn listed(real: &Real, root: &Path, is_new: bool) -> Vec<Recorded> {
    let recorded = root.join("recorded");
    let mut found = Found {
        places: Vec::new(),
        is_new,
        own: &real.git_dir,
    };
    found.git_dir(&real.common_dir, &recorded.join("shared"));
    if !real.git_dir.starts_with(&real.common_dir) {
        found.git_dir(&real.git_dir, &recorded.join("own"));
    }
    let further = fs::read(recorded.join("further")).unwrap_or_default();
    for (number, place) in nul_fields(&further).enumerate() {
        let place = as_path(place).to_path_buf();
        let copy = recorded.join("beside").join(number.to_string());
        // A submodule that is gone was removed, perhaps with its entry.
        let is_gone = !is_new && place.ends_with(".git") && !is_there(&place);
        if !is_gone {
            found.either(place, copy);
        }
    }
    let dot_git = real.work_tree.join(".git");
    let copy = recorded.join("dot-git");
    if !is_directory(&dot_git) || is_there(&copy) {
        found.places.push((dot_git, copy));
    }
    found.places
}

struct Found<'r> {
    places: Vec<Recorded>,
    /// The git directory of the run's work tree. Somebody may be working in the others.
    own: &'r Path,
    /// Whether copies are made now. Otherwise what has no copy is new.
    is_new: bool,
}

impl Found<'_> {
    /// The entries of a git directory.
    fn git_dir(&mut self, dir: &Path, copy: &Path) {
        for name in names_of(dir, copy) {
            let (place, copy) = (dir.join(&name), copy.join(&name));
            if CONTAINERS.iter().any(|container| name == *container) {
                self.container(place, copy);
            } else if !is_free(&name, &place) && (dir == self.own || !is_state(&name, &place)) {
                self.places.push((place, copy));
            }
        }
        let alternates = (dir.join(ALTERNATES), copy.join(ALTERNATES));
        self.places.push(alternates);
        if self.is_new {
            // It says later that there was a git directory.
            self.places.push((dir.join(HEAD), copy.join(HEAD)));
        }
    }

    /// The git directories below a directory, whose names may have several parts.
    fn container(&mut self, dir: PathBuf, copy: PathBuf) {
        if !self.is_entered(&dir, &copy) {
            return self.places.push((dir, copy));
        }
        for name in names_of(&dir, &copy) {
            self.either(dir.join(&name), copy.join(&name));
        }
    }

    /// A git directory, a directory of git directories, or something else.
    fn either(&mut self, place: PathBuf, copy: PathBuf) {
        let is_named = |part: &OsStr| CONTAINERS.iter().any(|name| part == *name);
        let has_head = |dir: &Path| is_there(&dir.join(HEAD));
        if !self.is_entered(&place, &copy) {
            self.places.push((place, copy));
        } else if has_head(&place) || has_head(&copy) {
            self.git_dir(&place, &copy);
        } else if place.components().any(|part| is_named(part.as_os_str())) {
            self.container(place, copy);
        } else {
            self.places.push((place, copy));
        }
    }

    /// Whether there is a directory now and was one at the start. Of a new submodule the objects and refs stay.
    fn is_entered(&self, place: &Path, copy: &Path) -> bool {
        let is_of_submodule = || place.components().any(|part| part.as_os_str() == MODULES);
        is_directory(place) && (self.is_new || is_directory(copy) || is_of_submodule())
    }
}

/// Whether git changes an entry while somebody works. Locks are looked at elsewhere, and so is what a run has moved away.
/// A link is never one of these.
fn is_free(name: &OsStr, place: &Path) -> bool {
    let bytes = name.as_bytes();
    let is_part = bytes.ends_with(b".lock") || bytes.starts_with(b"sharedindex.");
    // Links in the place of these are looked at where git writes to them.
    FREE.split(' ').any(|free| name == free) || ((name == AWAY || is_part) && !is_link(place))
}

/// Whether an entry is the state of an operation, such as `MERGE_HEAD`: these have names in capitals.
fn is_state(name: &OsStr, place: &Path) -> bool {
    let is_of_state = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9');
    name.as_bytes().iter().all(is_of_state) && !is_link(place)
}

/// Whether git notes for a person in an entry what its last command did.
pub(super) fn is_note(place: &Path) -> bool {
    let notes = ["COMMIT_EDITMSG", "FETCH_HEAD", "ORIG_HEAD"];
    notes.iter().any(|name| place.ends_with(name)) && !is_link(place)
}

/// The names in either directory.
fn names_of(dir: &Path, copy: &Path) -> BTreeSet<OsString> {
    let listed = [dir, copy].into_iter().filter(|dir| is_directory(dir));
    listed.filter_map(|dir| names(dir).ok()).flatten().collect()
}

/// What git's configuration names as configuration and hooks: first the paths of what is tracked, relative to the work
/// tree, and then the places of all else.
pub(super) fn named_in_configuration(
    real: &Real,
    root: &Path,
    named: impl Iterator<Item = PathBuf>,
) -> Result<(Vec<Vec<u8>>, Vec<PathBuf>)> {
    let (mut tracked, mut others) = (Vec::new(), Vec::new());
    for place in named {
        let place = match place.canonicalize() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => place,
            found => found.map_err(io_error("resolve", &place))?,
        };
        if place.starts_with(&real.common_dir) || real.work_tree.starts_with(&place) {
            continue;
        }
        if let Ok(below) = place.strip_prefix(&real.work_tree) {
            let listed = private_call(real, root).words("--literal-pathspecs ls-files --");
            if !listed.arg(below).stdout()?.is_empty() {
                tracked.push(below.as_os_str().as_bytes().to_vec());
                continue;
            }
        }
        others.push(place);
    }
    Ok((tracked, others))
}

/// The paths that git writes to when it moves the ref `name` or stores an object.
fn written_for(dir: &Path, name: &str) -> Vec<PathBuf> {
    let tops = ["packed-refs", "objects", "logs", "logs/HEAD"].map(|top| dir.join(top));
    let parts = || {
        Path::new(name)
            .ancestors()
            .filter(|part| *part != Path::new(""))
    };
    // A ref itself is replaced, never written through. Its log is appended to.
    let refs = parts().skip(1).map(|part| dir.join(part));
    let logs = parts().map(|part| dir.join("logs").join(part));
    tops.into_iter().chain(refs).chain(logs).collect()
}

/// Whether a write to a path may go elsewhere: the path is a link, or a log with a second hard link. git
/// appends to logs, but replaces all other files.
fn leads_elsewhere(path: &Path) -> bool {
    let in_logs = || path.components().any(|part| part.as_os_str() == "logs");
    let is_linked = |meta: Metadata| meta.is_file() && meta.nlink() > 1 && in_logs();
    is_link(path) || path.symlink_metadata().is_ok_and(is_linked)
}

/// The links among the written paths. Some repositories have them from the start.
pub(crate) fn links(real: &Real, name: &str) -> Vec<PathBuf> {
    let dirs = [&real.common_dir, &real.git_dir].into_iter();
    let written = dirs.flat_map(|dir| written_for(dir, name));
    // A store that cannot be listed can still be written to.
    let objects = real.common_dir.join("objects");
    let fans = fans_of(&objects);
    written
        .chain(fans)
        .filter(|path| leads_elsewhere(path))
        .collect()
}

/// The directories of loose objects, whether they are there or not.
fn fans_of(objects: &Path) -> impl Iterator<Item = PathBuf> {
    (0..256).map(move |fan| objects.join(format!("{fan:02x}")))
}

/// Where git writes besides the places of one ref: the entries below these directories that lead elsewhere.
pub(crate) fn links_below(real: &Real) -> BTreeSet<Vec<u8>> {
    let below = ["logs", "refs", "objects/info", "objects/pack", AWAY];
    let mut dirs = vec![&real.common_dir, &real.git_dir];
    dirs.dedup();
    let tops = dirs.iter().flat_map(|dir| below.map(|name| dir.join(name)));
    // A pack may have a second name, and is never written.
    let is_written = |path: &PathBuf| {
        !path.components().any(|part| part.as_os_str() == "pack") || path.is_symlink()
    };
    let tops = tops.filter(|top| is_directory(top));
    let found = tops
        .flat_map(|top| leading_elsewhere(&top))
        .filter(is_written);
    found.map(|path| path.into_os_string().into_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_in_place_of_directories_of_loose_objects_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ab", "pack"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["0f", "info", "AB", "abc"] {
            symlink("/tmp", dir.path().join(name)).unwrap();
        }
        let linked = |objects: &Path| -> Vec<PathBuf> {
            fans_of(objects)
                .filter(|path| leads_elsewhere(path))
                .collect()
        };
        assert_eq!(linked(dir.path()), [dir.path().join("0f")]);
        assert_eq!(
            linked(&dir.path().join("missing")),
            [""; 0].map(PathBuf::from)
        );
    }
}
