//! Writes new objects, among them the trees of changed directories, in this process.

use crate::git::entries::inside;
use crate::git::objects::loose::{object_id, write_object};
use crate::git::objects::reader::{
    LeftToGit, ObjectReader, PATH_LIMIT, TreeEntry, binary, in_tree_order,
};
use crate::git::snapshot::listing::{Recorded, TREE};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// The new entry of each changed path, or `None` if it is deleted.
pub(in crate::git) type NewEntries = BTreeMap<Vec<u8>, Option<Recorded>>;

/// The trees of the directories in which something changed.
#[derive(Debug, Default)]
pub(in crate::git) struct NewTrees {
    /// The ids by path. The top directory is the empty path.
    pub(in crate::git) ids: HashMap<Vec<u8>, String>,
    /// Whether a directory is new or gone.
    pub(in crate::git) directories_differ: bool,
}

/// The changes of a directory's entry of one name: its own, and those below it.
#[derive(Default)]
struct Changes<'a> {
    own: Option<&'a Option<Recorded>>,
    below: Vec<(&'a [u8], &'a Option<Recorded>)>,
}

/// Writes new objects into Sprag's own store. If another store has something under the id of one, it is left to git,
/// which does not write it again, so that false objects are found.
pub(in crate::git) struct ObjectWriter<'a> {
    pub(in crate::git) reader: &'a ObjectReader,
    pub(in crate::git) store: &'a Path,
    pub(in crate::git) id_length: usize,
}

impl ObjectWriter<'_> {
    /// Writes an object and returns its id. The file may be incomplete after a crash.
    pub(in crate::git) fn write(&self, kind: &str, content: &[u8]) -> Result<String, LeftToGit> {
        self.write_as(object_id(kind, content, self.id_length), kind, content)
    }

    fn write_as(&self, id: String, kind: &str, content: &[u8]) -> Result<String, LeftToGit> {
        if self.reader.is_elsewhere(&id)? {
            return Err(LeftToGit);
        }
        write_object(self.store, &id, kind, content).map_err(|_| LeftToGit)?;
        Ok(id)
    }

    /// Writes the tree `base` with these changes. Nothing takes the place of a directory, or the other way round.
    pub(in crate::git) fn write_trees(
        &self,
        base: &str,
        changes: &NewEntries,
    ) -> Result<NewTrees, LeftToGit> {
        let mut new = NewTrees::default();
        let changes = changes.iter().map(|(path, entry)| (path.as_slice(), entry));
        self.directory(b"", Some(base), changes.collect(), &mut new)?;
        Ok(new)
    }

    /// Writes the tree of the directory at `path`. `None` if nothing is left in it.
    fn directory(
        &self,
        path: &[u8],
        base: Option<&str>,
        changes: Vec<(&[u8], &Option<Recorded>)>,
        new: &mut NewTrees,
    ) -> Result<Option<String>, LeftToGit> {
        if path.len() > PATH_LIMIT {
            return Err(LeftToGit);
        }
        let listed = base.map_or_else(|| Ok(Vec::new()), |base| self.reader.tree(base))?;
        let count = listed.len();
        let entries = listed.into_iter().map(|entry| (entry.name, entry.recorded));
        let mut entries: BTreeMap<Vec<u8>, Recorded> = entries.collect();
        let empty = object_id("tree", b"", self.id_length);
        let has_empty = entries.values().any(|entry| entry.oid == empty);
        // Both a file and a directory of one name, or a directory that no index has.
        if entries.len() != count || has_empty {
            return Err(LeftToGit);
        }
        for (name, changes) in by_name(changes) {
            let was_tree = entries.get(name).map(|entry| entry.mode == TREE);
            let has_files_below = changes.below.iter().any(|(_, entry)| entry.is_some());
            if (changes.own.is_some() && was_tree == Some(true))
                || (has_files_below && was_tree == Some(false))
                || (has_files_below && changes.own.is_some())
            {
                return Err(LeftToGit);
            }
            match changes.own {
                Some(Some(entry)) => {
                    entries.insert(name.to_vec(), entry.clone());
                }
                Some(None) => {
                    entries.remove(name);
                }
                None => {}
            }
            if changes.below.is_empty() || was_tree == Some(false) {
                continue;
            }
            let below = inside(path, name);
            let base = entries.get(name).map(|entry| entry.oid.clone());
            let tree = self.directory(&below, base.as_deref(), changes.below, new)?;
            new.directories_differ |= base.is_some() != tree.is_some();
            match tree {
                Some(oid) => entries.insert(name.to_vec(), Recorded { mode: TREE, oid }),
                None => entries.remove(name),
            };
        }
        if entries.is_empty() && !path.is_empty() {
            return Ok(None);
        }
        let id = self.tree_of(entries, base)?;
        new.ids.insert(path.to_vec(), id.clone());
        Ok(Some(id))
    }

    /// Writes the tree with these entries, unless it is `base`.
    fn tree_of(
        &self,
        entries: BTreeMap<Vec<u8>, Recorded>,
        base: Option<&str>,
    ) -> Result<String, LeftToGit> {
        let entries = entries.into_iter();
        let mut entries: Vec<TreeEntry> = entries
            .map(|(name, recorded)| TreeEntry { recorded, name })
            .collect();
        entries.sort_by(in_tree_order);
        let mut content = Vec::new();
        for TreeEntry { recorded, name } in &entries {
            content.extend_from_slice(format!("{:o} ", recorded.mode).as_bytes());
            content.extend_from_slice(name);
            content.push(0);
            content.extend_from_slice(&binary(&recorded.oid).ok_or(LeftToGit)?);
        }
        let id = object_id("tree", &content, self.id_length);
        if base == Some(&id) {
            Ok(id)
        } else {
            self.write_as(id, "tree", &content)
        }
    }
}

fn by_name<'a>(changes: Vec<(&'a [u8], &'a Option<Recorded>)>) -> BTreeMap<&'a [u8], Changes<'a>> {
    let mut named: BTreeMap<&[u8], Changes<'_>> = BTreeMap::new();
    for (path, entry) in changes {
        match memchr::memchr(b'/', path) {
            Some(slash) => {
                let below = &mut named.entry(&path[..slash]).or_default().below;
                below.push((&path[slash + 1..], entry));
            }
            None => named.entry(path).or_default().own = Some(entry),
        }
    }
    named
}
