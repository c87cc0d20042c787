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

/// The only one of these files whose path ends with `path`.
pub(super) fn ending_with(path: &str, files: &[String]) -> Option<String> {
    let mut found = files.iter().filter(|file| {
        let before = file.strip_suffix(path);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    });
    found.next().filter(|_| found.next().is_none()).cloned()
}

/// The only one of these files at the end of `path`, whose first directories may have other names here. The more
/// directories have the same name, the better, and best of all is a file that `path` ends with.
pub(super) fn at_the_end_of(path: &str, files: &[String]) -> Option<String> {
    let alike = |file: &&String| {
        let parts = file.rsplit('/').zip(path.rsplit('/'));
        let same = parts.take_while(|(a, b)| a == b).count();
        (same, same == file.split('/').count())
    };
    let best = files.iter().map(|file| alike(&file)).max();
    let best = best.filter(|(same, _)| *same > 0)?;
    let mut found = files.iter().filter(|file| alike(file) == best);
    found.next().filter(|_| found.next().is_none()).cloned()
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
    use super::{at_the_end_of, ending_with, relative};
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

    #[test]
    fn a_file_is_found_by_the_end_of_its_path() {
        let files = [
            "a_test.go",
            "sub/a_test.go",
            "x/deep/b_test.go",
            "src/test/java/m/T.java",
        ];
        let files = files.map(str::to_owned);
        for (path, ending, end) in [
            ("m/T.java", Some(3), Some(3)),
            ("T.java", Some(3), Some(3)),
            ("est.go", None, None),
            ("sub/a_test.go", Some(1), Some(1)),
            ("example.org/m/sub/a_test.go", None, Some(1)),
            ("example.org/m/a_test.go", None, Some(0)),
            ("example.org/m/deep/b_test.go", None, Some(2)),
            ("example.org/m/gone.go", None, None),
        ] {
            let file = |at: Option<usize>| at.map(|at| files[at].clone());
            assert_eq!(ending_with(path, &files), file(ending), "{path}");
            assert_eq!(at_the_end_of(path, &files), file(end), "{path}");
        }
        let two = ["a/x.go", "b/x.go"].map(str::to_owned);
        assert_eq!(ending_with("x.go", &two), None);
        assert_eq!(at_the_end_of("m/x.go", &two), None);
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
