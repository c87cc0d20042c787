//! Paths as byte strings, which is how git stores them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// The hexadecimal digits of an id in binary form.
pub(crate) fn hex(id: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16);
    let digits = id
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.flatten().collect()
}

/// Formats a path for display, relative to the work tree if the path is inside it.
pub fn path_within(path: &Path, work_tree: &Path) -> String {
    if path.components().any(|part| part == Component::ParentDir) {
        return path_in_tree(path, work_tree);
    }
    stripped(path, work_tree)
}

/// The path of a file from the root of the work tree: the same for all ways to name the file.
pub fn path_in_tree(path: &Path, work_tree: &Path) -> String {
    stripped(&with_real_parent(path), &real_path(work_tree))
}

fn stripped(path: &Path, work_tree: &Path) -> String {
    let rest = path.strip_prefix(work_tree).unwrap_or(path);
    rest.display().to_string()
}

/// The path without links, or the path itself if it does not exist.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// The path of a file in the real directory. A link keeps its own name.
pub(crate) fn with_real_parent(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_path_buf(),
    }
}

/// Formats a path for display, escaping control characters and invalid UTF-8.
pub fn display_path(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                shown.extend(c.escape_default());
            } else {
                shown.push(c);
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// Splits the output of git's `-z` option into its NUL-terminated fields, which may be empty.
pub(crate) fn nul_ended(bytes: &[u8]) -> Vec<&[u8]> {
    let mut fields: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    fields.pop();
    fields
}

/// Like [`nul_ended`], without empty fields.
pub(crate) fn nul_fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|field| !field.is_empty())
}

/// The paths in the output of git's `-z` option.
pub(crate) fn nul_paths<T: FromIterator<Vec<u8>>>(bytes: &[u8]) -> T {
    nul_fields(bytes).map(<[u8]>::to_vec).collect()
}

/// The fields before the tab and the path behind it, in a line of `ls-files --stage` or `ls-tree`.
pub(crate) fn fields_and_path(line: &[u8]) -> Option<(std::str::Split<'_, char>, &[u8])> {
    let tab = memchr::memchr(b'\t', line)?;
    let fields = line.get(..tab)?;
    let path = line.get(tab + 1..)?;
    Some((std::str::from_utf8(fields).ok()?.split(' '), path))
}

pub(crate) fn nul_joined(paths: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut joined = Vec::new();
    for path in paths {
        joined.extend_from_slice(path.as_ref());
        joined.push(0);
    }
    joined
}

/// Formats paths for a single line: the first ten, then the number of remaining paths.
pub fn display_paths(paths: &[Vec<u8>]) -> String {
    let shown = paths.iter().take(10).map(|path| display_path(path));
    let mut text = shown.collect::<Vec<String>>().join(", ");
    if let more @ 1.. = paths.len().saturating_sub(10) {
        text += &format!(" and {more} more");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_on_one_line_whatever_they_contain() {
        assert_eq!(display_path(b"a\nb\xff::x\x1b"), "a\\nb\\xff::x\\u{1b}");
    }

    #[test]
    fn empty_fields_are_no_paths() {
        let fields: Vec<&[u8]> = nul_fields(b"a\0b c\0").collect();
        assert_eq!(fields, [b"a".as_slice(), b"b c"]);
        // The value of an attribute may be empty, and the fields after it keep their places.
        let fields = nul_ended(b"a\0filter\0\0b\0");
        assert_eq!(fields, [b"a".as_slice(), b"filter", b"", b"b"]);
        assert_eq!(nul_ended(b""), Vec::<&[u8]>::new());
    }

    #[test]
    fn a_file_has_one_path_however_it_is_named() {
        let top = tempfile::tempdir().unwrap();
        let tree = top.path().join("tree");
        std::fs::create_dir_all(tree.join("plans")).unwrap();
        std::fs::write(tree.join("plans/a.yaml"), "").unwrap();
        std::os::unix::fs::symlink("plans", tree.join("link")).unwrap();
        std::os::unix::fs::symlink("a.yaml", tree.join("plans/b.yaml")).unwrap();
        std::os::unix::fs::symlink("tree", top.path().join("other")).unwrap();
        for (name, path) in [
            ("tree/plans/a.yaml", "plans/a.yaml"),
            ("tree/./plans/../plans/a.yaml", "plans/a.yaml"),
            ("tree/link/a.yaml", "plans/a.yaml"),
            ("other/plans/a.yaml", "plans/a.yaml"),
            ("tree/plans/b.yaml", "plans/b.yaml"),
            ("tree/gone/a.yaml", "gone/a.yaml"),
        ] {
            for root in [&tree, &top.path().join("other")] {
                let found = path_in_tree(&top.path().join(name), root);
                assert_eq!(found, path, "{name}");
            }
        }
    }
}
