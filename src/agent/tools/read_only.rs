//! Reads, lists and searches files within limits.

use super::tree::Tree;
use ignore::WalkBuilder;
use sprag_domain::text::cap_chars;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Maximum number of bytes that one call shows.
const SHOWN: usize = 40_000;
/// Maximum number of characters of a line that are shown, when reading and when searching.
const LINE: usize = 2_000;
const MATCH: usize = 300;
/// Maximum number of files that are listed, and that are visited.
const LISTED: usize = 1_000;
const WALKED: usize = 100_000;
/// Maximum number of matches, of bytes in a searched file, and of bytes in all searched files.
const MATCHES: usize = 200;
const SEARCHED: u64 = 2 << 20;
const SEARCHED_ALL: usize = 512 << 20;

/// The lines of a file with their numbers.
pub(super) fn read(
    tree: &Tree,
    path: &str,
    start: Option<u64>,
    end: Option<u64>,
) -> Result<String, String> {
    let bytes = tree.read(path)?;
    if is_binary(&bytes) {
        return Err(format!("{path} is a binary file of {} bytes", bytes.len()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let total = text.lines().count();
    if total == 0 {
        return Ok(format!("({path} is empty)"));
    }
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let first = start.map_or(1, index).max(1);
    let last = end.map_or(total, index).min(total);
    if first > total || last < first {
        return Err(format!(
            "{path} has {total} lines; there are none from {first} to {last}"
        ));
    }
    let mut shown = String::new();
    let mut next = first;
    for line in text.lines().skip(first - 1).take(last + 1 - first) {
        let cut = cap_chars(line, LINE);
        let _ = write!(shown, "{next:>6}\t{cut}");
        if cut.len() < line.len() {
            let _ = write!(shown, " [cut: the line has {} bytes]", line.len());
        }
        shown.push('\n');
        next += 1;
        if shown.len() > SHOWN && next <= last {
            let _ = writeln!(shown, "({path} has {total} lines; go on with start={next})");
            break;
        }
    }
    Ok(shown)
}

/// The files below a directory.
pub(super) fn list(tree: &Tree, path: &str) -> Result<String, String> {
    let mut files = files(tree, path)?;
    files.sort();
    if files.is_empty() {
        return Ok("(no files)".into());
    }
    let total = files.len();
    files.truncate(LISTED);
    let mut shown = cap_chars(&files.join("\n"), SHOWN).into_owned();
    let listed = shown.lines().count();
    if listed < total {
        let _ = write!(
            shown,
            "\n({listed} of {total} files; list a directory to see more of it)"
        );
    }
    Ok(shown)
}

/// The lines of files that match a regular expression.
pub(super) fn search(tree: &Tree, pattern: &str, path: &str) -> Result<String, String> {
    let pattern = regex::bytes::RegexBuilder::new(pattern)
        .size_limit(4 << 20)
        .build()
        .map_err(|error| format!("the regular expression cannot be read: {error}"))?;
    let mut files = if tree.is_directory(path)? {
        files(tree, path)?
    } else {
        vec![Tree::normal(path)?]
    };
    files.sort();
    let mut shown = String::new();
    let (mut matches, mut read, mut too_large) = (0, 0, 0);
    for file in files {
        if tree.size(&file).is_some_and(|size| size > SEARCHED) {
            too_large += 1;
            continue;
        }
        // An unreadable file has no matches.
        let Ok(bytes) = tree.read(&file) else {
            continue;
        };
        if is_binary(&bytes) {
            continue;
        }
        read += bytes.len();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            if !pattern.is_match(line) {
                continue;
            }
            matches += 1;
            let line = String::from_utf8_lossy(line);
            let line = cap_chars(line.trim_end(), MATCH);
            let _ = writeln!(shown, "{file}:{}: {line}", number + 1);
            if matches >= MATCHES || shown.len() > SHOWN {
                shown.push_str("(there may be more; search for something narrower)\n");
                return Ok(shown);
            }
        }
        if read > SEARCHED_ALL {
            shown.push_str("(not everything was searched; name a directory)\n");
            return Ok(shown);
        }
    }
    if shown.is_empty() {
        shown.push_str("(no match)\n");
    }
    if too_large > 0 {
        let _ = writeln!(
            shown,
            "(not searched, for their size: {too_large} files; use run_command to look into them)"
        );
    }
    Ok(shown)
}

/// The files below a directory that git does not ignore, relative to the root of the tree. The walk always
/// starts at the root, so that ignore rules above the directory apply, and none from above the tree.
fn files(tree: &Tree, path: &str) -> Result<Vec<String>, String> {
    if !tree.is_directory(path)? {
        return Err(format!("{path} is a file; read_file shows it"));
    }
    let root = tree.root().to_owned();
    let named = PathBuf::from(Tree::normal(path)?);
    let top = root.join(&named);
    let walk = WalkBuilder::new(&root)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            let inside = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            let on_the_way = named.starts_with(inside) || inside.starts_with(&named);
            on_the_way && !entry.file_name().eq_ignore_ascii_case(".git")
        })
        .build();
    let mut files = Vec::new();
    let mut reached = false;
    for entry in walk.take(WALKED).flatten() {
        reached |= entry.path() == top;
        if entry.file_type().is_none_or(|kind| kind.is_dir()) {
            continue;
        }
        let inside = entry.path().strip_prefix(tree.root()).ok();
        files.extend(inside.and_then(Path::to_str).map(str::to_owned));
    }
    if reached {
        Ok(files)
    } else {
        Err(format!(
            "{path} is ignored by git, so its files are neither listed nor searched; read_file and \
             run_command still reach them"
        ))
    }
}

/// Whether these bytes are not text.
fn is_binary(bytes: &[u8]) -> bool {
    bytes.get(..8_192).unwrap_or(bytes).contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn sample() -> (tempfile::TempDir, Tree) {
        let top = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &[u8]| {
            let path = top.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".git/HEAD", b"ref: needle");
        write(".gitignore", b"target/\n");
        write(".github/ci.yml", b"run: needle\n");
        write("target/out.txt", b"needle\n");
        write("src/a.rs", b"one\nneedle two\nthree\n");
        write("src/app/[...slug]/page.tsx", b"needle\n");
        write("image.png", b"\x89PNG\0needle");
        write("min.js", "needle".repeat(2_000).as_bytes());
        write("empty", b"");
        let tree = Tree::new(top.path());
        (top, tree)
    }

    #[test]
    fn lines_are_read_with_their_numbers() {
        let (_top, tree) = sample();
        let read = |path: &str, start, end| read(&tree, path, start, end);
        assert_eq!(
            read("src/a.rs", Some(2), None).unwrap(),
            "     2\tneedle two\n     3\tthree\n"
        );
        assert_eq!(read("src/a.rs", Some(0), Some(1)).unwrap(), "     1\tone\n");
        assert_eq!(read("empty", None, None).unwrap(), "(empty is empty)");
        assert!(
            read("src/a.rs", Some(9), None)
                .unwrap_err()
                .contains("has 3 lines")
        );
        assert!(
            read("image.png", None, None)
                .unwrap_err()
                .contains("binary file of 11 bytes")
        );
        let minified = read("min.js", None, None).unwrap();
        assert!(minified.len() < 2_200 && minified.contains("[cut: the line has 12000 bytes]"));
    }

    #[test]
    fn a_long_file_is_read_in_parts() {
        let (top, tree) = sample();
        fs::write(top.path().join("long"), "0123456789\n".repeat(10_000)).unwrap();
        let first = read(&tree, "long", None, None).unwrap();
        assert!(first.len() < SHOWN + 200, "{}", first.len());
        let next = first.lines().last().unwrap().rsplit('=').next().unwrap();
        let next: u64 = next.trim_end_matches(')').parse().unwrap();
        let second = read(&tree, "long", Some(next), None).unwrap();
        assert!(second.starts_with(&format!("{next:>6}\t0123456789\n")));
    }

    #[test]
    fn ignored_files_and_gits_own_are_not_listed() {
        let (_top, tree) = sample();
        assert_eq!(
            list(&tree, "").unwrap(),
            ".github/ci.yml\n.gitignore\nempty\nimage.png\nmin.js\nsrc/a.rs\nsrc/app/[...slug]/page.tsx"
        );
        assert_eq!(
            list(&tree, "./src/app/").unwrap(),
            "src/app/[...slug]/page.tsx"
        );
        assert!(list(&tree, "src/a.rs").unwrap_err().contains("is a file"));
        assert!(list(&tree, "..").is_err());
        assert!(list(&tree, ".git").is_err());
    }

    #[test]
    fn what_the_root_ignores_stays_ignored_in_a_directory_that_is_named() {
        let (top, tree) = sample();
        let write = |path: &str, text: &str| {
            let path = top.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(".gitignore", "node_modules/\n/web/gen/*.js\n");
        write("web/.gitignore", "*.log\n");
        write("web/node_modules/x/i.js", "needle\n");
        write("web/gen/a.js", "needle\n");
        write("web/gen/a.ts", "needle\n");
        write("web/app/x.log", "needle\n");
        write("web/app/x.js", "needle\n");
        write("webs/x.js", "needle\n");
        assert_eq!(
            list(&tree, "web").unwrap(),
            "web/.gitignore\nweb/app/x.js\nweb/gen/a.ts"
        );
        assert_eq!(list(&tree, "web/gen").unwrap(), "web/gen/a.ts");
        assert_eq!(list(&tree, "web/app").unwrap(), "web/app/x.js");
        assert_eq!(
            search(&tree, "needle", "web").unwrap(),
            "web/app/x.js:1: needle\nweb/gen/a.ts:1: needle\n"
        );
        fs::create_dir(top.path().join("web/none")).unwrap();
        assert_eq!(list(&tree, "web/none").unwrap(), "(no files)");
    }

    #[test]
    fn ignore_files_above_the_tree_do_not_count() {
        let above = tempfile::tempdir().unwrap();
        fs::write(above.path().join(".gitignore"), "*\n").unwrap();
        fs::create_dir(above.path().join(".git")).unwrap();
        let root = above.path().join("tree");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "x\n").unwrap();
        assert_eq!(list(&Tree::new(&root), "src").unwrap(), "src/a.rs");
    }

    #[test]
    fn a_directory_that_is_ignored_is_told_as_such() {
        let (top, tree) = sample();
        fs::create_dir(top.path().join("target/debug")).unwrap();
        for path in ["target", "./target/", "target/debug"] {
            let why = list(&tree, path).unwrap_err();
            assert!(
                why.starts_with(&format!("{path} is ignored by git")),
                "{why}"
            );
            assert_eq!(search(&tree, "needle", path), Err(why));
        }
        assert_eq!(
            search(&tree, "needle", "target/out.txt").unwrap(),
            "target/out.txt:1: needle\n"
        );
    }

    #[test]
    fn a_search_shows_the_lines_that_match() {
        let (_top, tree) = sample();
        assert_eq!(
            search(&tree, "^needle( two)?$|run:", "").unwrap(),
            ".github/ci.yml:1: run: needle\nsrc/a.rs:2: needle two\nsrc/app/[...slug]/page.tsx:1: needle\n"
        );
        assert_eq!(
            search(&tree, "needle", "src/a.rs").unwrap(),
            "src/a.rs:2: needle two\n"
        );
        assert_eq!(search(&tree, "absent", "src").unwrap(), "(no match)\n");
        assert!(
            search(&tree, "(", "")
                .unwrap_err()
                .contains("cannot be read")
        );
        assert!(search(&tree, "x", "../..").is_err());
    }

    #[test]
    fn a_search_says_what_was_too_large_for_it() {
        let (top, tree) = sample();
        let bundle = "needle ".repeat(400_000);
        fs::write(top.path().join("bundle.js"), bundle).unwrap();
        let notice = "(not searched, for their size: 1 files; use run_command to look into them)\n";
        assert_eq!(
            search(&tree, "needle", "bundle.js").unwrap(),
            format!("(no match)\n{notice}")
        );
        assert_eq!(
            search(&tree, "two", "").unwrap(),
            format!("src/a.rs:2: needle two\n{notice}")
        );
    }
}
