//! The paths that no task may change.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

/// Globs of paths that no task may change, in any letter case, and the directories above them: a link or a
/// file that replaces such a directory changes everything below it.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths {
    /// The globs, and the parent directories that they name.
    paths: GlobSet,
    /// The parent directories by patterns that also match files.
    above: GlobSet,
    /// Further paths, each with what is below it.
    places: Vec<Vec<u8>>,
}

impl ProtectedPaths {
    /// Protects the paths that match these globs.
    ///
    /// # Errors
    /// An invalid glob.
    pub fn of(globs: &[impl AsRef<str>]) -> Result<Self, globset::Error> {
        let (mut paths, mut above) = (BTreeSet::new(), BTreeSet::new());
        for glob in globs.iter().map(AsRef::as_ref) {
            paths.insert(glob);
            for (end, _) in glob.match_indices('/') {
                let directory = &glob[..end];
                let name = directory.rsplit('/').next().unwrap_or_default();
                match name {
                    "" | "**" => {}
                    _ if name.contains(['*', '?', '[', '{', '}', '\\']) => {
                        above.insert(directory);
                    }
                    _ => {
                        paths.insert(directory);
                    }
                }
            }
        }
        Ok(Self {
            paths: set(paths)?,
            above: set(above)?,
            places: Vec::new(),
        })
    }

    /// The same with further paths, each with what is below it.
    #[must_use]
    pub fn and(&self, places: &[Vec<u8>]) -> Self {
        let mut all = self.clone();
        all.places.extend_from_slice(places);
        all
    }

    /// Whether a change of this path affects a protected path. `leads_elsewhere` says that the path is a link
    /// or another repository afterwards.
    pub fn cover(&self, path: &[u8], leads_elsewhere: bool) -> bool {
        let is_within = |path: &[u8], place: &[u8]| {
            let below = path.strip_prefix(place);
            below.is_some_and(|below| below.is_empty() || below.starts_with(b"/"))
        };
        let mut places = self.places.iter();
        if places.any(|place| is_within(path, place) || is_within(place, path)) {
            return true;
        }
        let path = OsStr::from_bytes(path);
        self.paths.is_match(path) || (leads_elsewhere && self.above.is_match(path))
    }

    /// The globs, and the parent directories that they name.
    pub fn paths(self) -> GlobSet {
        self.paths
    }
}

fn set(globs: BTreeSet<&str>) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let glob = GlobBuilder::new(glob)
            .literal_separator(true)
            .case_insensitive(true)
            .build()?;
        builder.add(glob);
    }
    builder.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_protected_with_every_directory_above_it_and_in_any_case() {
        let globs = [".github/**", "ci/*/keys/**", "**/CODEOWNERS", "a/b/c.txt"];
        let protected = ProtectedPaths::of(&globs).unwrap();
        for path in [
            ".github/workflows/x.yml",
            ".GitHub/x",
            ".github",
            ".GITHUB",
            "docs/codeowners",
            "CODEOWNERS",
            "a/b/c.txt",
            "a/b",
            "A",
            "ci",
            "ci/prod/keys",
            "ci/prod/keys/x/y",
        ] {
            assert!(protected.cover(path.as_bytes(), false), "{path}");
            assert!(protected.cover(path.as_bytes(), true), "{path}");
        }
        assert!(protected.cover(b".github/\xff\n.yml", false));
        let protected = protected.and(&[b"a/hooks".to_vec()]);
        for (path, is_covered) in [("a/hooks/x", true), ("a", true), ("a/hooks2", false)] {
            assert_eq!(
                protected.cover(path.as_bytes(), false),
                is_covered,
                "{path}"
            );
        }
        // A file beside the protected paths is not protected, but a link there leads to other files.
        assert!(!protected.cover(b"ci/prod", false));
        assert!(protected.cover(b"ci/prod", true));
        for path in ["src/a", "github", ".githubx", "ci/prod/other", "docs", "b"] {
            assert!(!protected.cover(path.as_bytes(), true), "{path}");
        }
    }
}
