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

/// The directory that a command changes to before anything else, if it changes to no other: `web` for
/// `cd web && npm test`.
pub(super) fn directory(command: &str) -> Option<String> {
    let (first, rest) = command.trim_start().split_once("&&")?;
    let in_word = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let mut words = rest.split(|c| !in_word(c));
    let stays = !words.any(|word| matches!(word, "cd" | "pushd" | "popd"));
    let name = first.strip_prefix("cd ")?.trim();
    let quoted = |mark: char| name.strip_prefix(mark)?.strip_suffix(mark);
    let name = quoted('\'').or(quoted('"')).unwrap_or(name);
    let is_plain = !name.contains(['$', '`', '\'', ';', '&', '\\']);
    relative(name.trim_end_matches('/'), "").filter(|_| is_plain && stays)
}

/// `path` in `directory`, if that is a file and `path` itself is none.
pub(super) fn only_in(
    directory: &str,
    path: &str,
    is_file: impl Fn(&str) -> bool,
) -> Option<String> {
    let inside = format!("{directory}/{path}");
    (is_file(&inside) && !is_file(path)).then_some(inside)
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
    use super::{directory, relative};
    use proptest::prelude::*;

    #[test]
    fn a_command_may_change_to_a_directory_first() {
        for (command, expected) in [
            ("cd web && npm test", Some("web")),
            ("cd './web app/' && npm test", Some("web app")),
            ("npm test && cd web", None),
            ("cd web; npm test", None),
            ("cd \"$HOME\" && make", None),
            ("cd .. && make", None),
            ("cd /tmp && make", None),
            ("cd . && make", None),
            ("cdk synth && make", None),
            ("cd web && npm run ci-cd", Some("web")),
            ("cd build && make && cd .. && pytest", None),
            ("cd build && make\npopd", None),
            ("cd build && (cd a; make)", None),
            ("cd build && sh -c 'pushd a && make'", None),
        ] {
            assert_eq!(directory(command).as_deref(), expected, "{command}");
        }
    }

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
