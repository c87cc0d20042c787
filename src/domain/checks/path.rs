//! Restricts the paths that a diagnostic may name.

/// `path` relative to `root`, or `None` if it is not clearly a file below it.
pub fn relative(path: &str, root: &str) -> Option<String> {
    let path = path.trim().replace('\\', "/");
    let root = root.replace('\\', "/");
    let root = root.trim_end_matches('/');
    let path = path.strip_prefix("file://").unwrap_or(&path);
    let below = if is_absolute(path) {
        let rest = path.strip_prefix(root).filter(|_| !root.is_empty())?;
        rest.strip_prefix('/')?
    } else {
        path
    };
    let parts: Vec<&str> = below
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let fits = !parts.is_empty()
        && !parts.contains(&"..")
        && below.chars().count() <= 1_000
        && !below.ends_with('/')
        && !below
            .contains(|c: char| c.is_control() || matches!(c, '<' | '>' | '|' | '"' | '*' | '?'));
    fits.then(|| parts.join("/"))
}

/// `path` in one of these directories, if that is the only such file and `path` itself is none.
pub(super) fn only_in(
    directories: &[String],
    path: &str,
    is_file: impl Fn(&str) -> bool,
) -> Option<String> {
    if directories.is_empty() || is_file(path) {
        return None;
    }
    let all = directories.iter().map(|dir| format!("{dir}/{path}"));
    let mut found = all.filter(|path| is_file(path));
    found.next().filter(|_| found.next().is_none())
}

/// Whether a path with only `/` separators is neither absolute nor a URL.
pub(super) fn is_relative(path: &str) -> bool {
    !is_absolute(path)
}

fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    path.starts_with(['/', '~'])
        || path.contains("://")
        || (bytes.get(1) == Some(&b':') && bytes.first().is_some_and(u8::is_ascii_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::relative;
    use proptest::prelude::*;

    #[test]
    fn only_paths_below_the_root_are_kept() {
        let table = [
            ("src/a.rs", "", Some("src/a.rs")),
            ("./src//./a.rs", "/w", Some("src/a.rs")),
            (r"src\a.cs", "", Some("src/a.cs")),
            ("/w/src/a.rs", "/w", Some("src/a.rs")),
            ("/w/src/a.rs", "/w/", Some("src/a.rs")),
            ("file:///w/a.mjs", "/w", Some("a.mjs")),
            (r"C:\w\a.cs", r"C:\w", Some("a.cs")),
            ("src/[...slug].ts", "", Some("src/[...slug].ts")),
            ("/wide/a.rs", "/w", None),
            ("/w/src/a.rs", "", None),
            ("/etc/passwd", "/w", None),
            ("../a.rs", "/w", None),
            ("src/../../a.rs", "/w", None),
            ("/w/../etc/passwd", "/w", None),
            (r"C:\x\a.cs", "/w", None),
            ("~/a.rs", "", None),
            ("https://example.org/a.js", "", None),
            ("<anonymous>", "", None),
            ("src/", "", None),
            ("/w", "/w", None),
            (".", "", None),
            ("", "", None),
        ];
        for (path, root, expected) in table {
            assert_eq!(
                relative(path, root).as_deref(),
                expected,
                "{path} in {root}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_kept_path_never_leaves_the_root(path in r"[a./\\~:]{0,12}", root in "(/[a.]{1,3}){0,2}") {
            if let Some(kept) = relative(&path, &root) {
                prop_assert!(!kept.starts_with('/'));
                prop_assert!(kept.split('/').all(|part| !part.is_empty() && part != ".." && part != "."));
            }
        }
    }
}
