//! Reads all refs of the repository from their files if every one of them has the plainest form.
//!
//! Everything else (another ref storage, a linked work tree, a link, an unusual name or content) is left to git,
//! which takes a process.

use crate::git::private::head::{is_absent, is_plain_name, packed_refs, plain_oid, plain_ref_file};
use crate::git::real::Real;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The beginning of a symbolic ref's value in [`Refs`].
pub(in crate::git) const SYMBOLIC: &str = "ref:";

/// The value of every ref by full name: its object id, or `ref:` and the name of its target.
pub type Refs = BTreeMap<String, String>;

/// The refs according to the files, or `None` if git must be run.
pub(in crate::git) fn plain_refs(real: &Real) -> Option<Refs> {
    let dir = &real.common_dir;
    if real.git_dir != *dir || !is_absent(&dir.join("reftable")) {
        return None;
    }
    let length = real.id_length();
    let below = dir.join("refs");
    if !below.symlink_metadata().ok()?.is_dir() {
        return None;
    }
    let mut loose = Refs::new();
    add_loose(&below, "refs", length, &mut loose)?;
    // These are read afterwards, since git moves refs from the other files into this one.
    let mut refs = packed(&packed_refs(dir)?, length)?;
    refs.extend(loose);
    // git leaves a symbolic ref out if its target does not exist, and resolves a chain of them.
    let is_resolved = |value: &String| match value.strip_prefix(SYMBOLIC) {
        Some(target) => refs.get(target).is_some_and(|to| !to.starts_with(SYMBOLIC)),
        None => true,
    };
    refs.values().all(is_resolved).then_some(refs)
}

/// Parses a header, and the lines `id SP name LF` in the order of the names. A line `^id LF` has the commit of the tag
/// above it. git refuses other lines.
pub(in crate::git) fn packed(content: &[u8], length: usize) -> Option<Refs> {
    let mut refs = Refs::new();
    let Some(lines) = content.strip_suffix(b"\n") else {
        return content.is_empty().then_some(refs);
    };
    let mut lines = lines.split(|byte| *byte == b'\n').peekable();
    lines.next_if(|line| line.starts_with(b"# pack-refs with: "));
    while let Some(line) = lines.next() {
        let (oid, name) = line.split_at_checked(length)?;
        let name = plain_name(name.strip_prefix(b" ")?)?;
        let is_next = refs.last_key_value().is_none_or(|(last, _)| **last < *name);
        let oid = plain_oid(oid, length).filter(|_| is_next)?;
        refs.insert(name.to_owned(), oid);
        if let Some(line) = lines.next_if(|line| line.starts_with(b"^")) {
            plain_oid(&line[1..], length)?;
        }
    }
    Some(refs)
}

/// Adds the refs whose files are in the directory `dir`, which is `name` in the repository.
fn add_loose(dir: &Path, name: &str, length: usize, refs: &mut Refs) -> Option<()> {
    for entry in fs::read_dir(dir).ok()? {
        let entry = entry.ok()?;
        let name = format!("{name}/{}", entry.file_name().to_str()?);
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            add_loose(&entry.path(), &name, length, refs)?;
            continue;
        }
        if !kind.is_file() || !is_plain_name(&name) {
            return None;
        }
        let content = plain_ref_file(&entry.path())?;
        refs.insert(name, ref_value(&content, length)?);
    }
    Some(())
}

/// The value of a ref, from the line in its file.
pub(in crate::git) fn ref_value(line: &[u8], length: usize) -> Option<String> {
    match line.strip_prefix(b"ref: ") {
        Some(target) => Some(format!("{SYMBOLIC}{}", plain_name(target)?)),
        None => plain_oid(line, length),
    }
}

fn plain_name(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok()?;
    (name.starts_with("refs/") && is_plain_name(name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_refs_are_read_as_whole_lines() {
        let header = "# pack-refs with: peeled fully-peeled sorted \n";
        let lines = "00aa refs/heads/w\n00ab refs/tags/v1.0\n^00ac\n";
        let refs = packed(format!("{header}{lines}").as_bytes(), 4).unwrap();
        let listed: Vec<_> = refs.iter().map(|(name, oid)| (&**name, &**oid)).collect();
        assert_eq!(
            listed,
            [("refs/heads/w", "00aa"), ("refs/tags/v1.0", "00ab")]
        );
        assert_eq!(packed(b"", 4), Some(Refs::new()));
        for odd in [
            "00aa refs/heads/w",
            "00aa refs/heads/w\n\n",
            "00aa  refs/heads/w\n",
            "00AA refs/heads/w\n",
            "00aa HEAD\n",
            "00aa refs/heads/a b\n",
            "00aa refs/heads/w\n00ab refs/heads/w\n",
            "00aa refs/heads/w\n00ab refs/heads/v\n",
            "00aa refs/heads/w\n# pack-refs with: peeled \n",
            "# a comment\n00aa refs/heads/w\n",
            "^00ac\n00aa refs/heads/w\n",
            "00aa refs/heads/w\n^00a\n",
            "00aa refs/heads/w\n^00ab\n^00ac\n",
        ] {
            assert_eq!(packed(odd.as_bytes(), 4), None, "{odd:?}");
        }
    }
}
