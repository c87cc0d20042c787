//! Which lines of which files a patch shows.

use std::collections::BTreeMap;

/// The lines of the new files that a patch shows, changed or not: for each file its ranges, first and last line
/// from 1, one for each hunk. Files whose names git writes in quotes are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchLines(BTreeMap<String, Vec<(u32, u32)>>);

impl PatchLines {
    /// Reads a patch as git writes it.
    pub fn read(patch: &str) -> Self {
        let mut files: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
        let mut path: Option<&str> = None;
        let (mut old, mut new) = (0, 0);
        for line in patch.split('\n') {
            // Within a hunk every line is content, whatever it looks like.
            if old > 0 || new > 0 {
                match line.as_bytes().first() {
                    Some(b'-') => old -= 1,
                    Some(b'+') => new -= 1,
                    Some(b'\\') => {}
                    _ => (old, new) = (old - 1, new - 1),
                }
                (old, new) = (i64::max(old, 0), i64::max(new, 0));
            } else if let Some(name) = line.strip_prefix("+++ ") {
                path = name
                    .strip_prefix("b/")
                    .map(|name| name.trim_end_matches('\t'));
            } else if let Some((of_old, of_new)) = hunk(line) {
                (old, new) = (i64::from(of_old.1), i64::from(of_new.1));
                if let Some(path) = path.filter(|_| of_new.1 > 0) {
                    let last = of_new.0.saturating_add(of_new.1 - 1);
                    files
                        .entry(path.to_owned())
                        .or_default()
                        .push((of_new.0, last));
                }
            }
        }
        Self(files)
    }

    /// Whether the patch shows these lines of a file together.
    pub fn show(&self, path: &str, first: u32, last: u32) -> bool {
        let hunks = self.0.get(path).into_iter().flatten();
        hunks
            .clone()
            .any(|(from, to)| *from <= first && last <= *to)
    }
}

/// First line and number of lines, of the old file and of the new one.
fn hunk(line: &str) -> Option<((u32, u32), (u32, u32))> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    Some((range(old)?, range(new)?))
}

fn range(text: &str) -> Option<(u32, u32)> {
    match text.split_once(',') {
        Some((first, count)) => Some((first.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "\
diff --git a/a.rs b/a.rs
index 1..2 100644
--- a/a.rs
+++ b/a.rs
@@ -1,3 +1,4 @@ fn main
 one
-- two
+++ b/forged.rs
+@@ -1 +1,99 @@
 three
@@ -10 +11,2 @@
 ten
+eleven
\\ No newline at end of file
diff --git a/gone b/gone
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/new file b/new file
--- /dev/null
+++ b/new file\t
@@ -0,0 +1 @@
+x
";

    #[test]
    fn only_what_a_hunk_shows_is_a_line_of_the_patch() {
        let lines = PatchLines::read(PATCH);
        for (path, first, last) in [
            ("a.rs", 1, 4),
            ("a.rs", 2, 2),
            ("a.rs", 11, 12),
            ("new file", 1, 1),
        ] {
            assert!(lines.show(path, first, last), "{path}:{first}-{last}");
        }
        for (path, first, last) in [
            ("a.rs", 4, 5),
            ("a.rs", 4, 11),
            ("a.rs", 13, 13),
            ("forged.rs", 1, 1),
            ("gone", 1, 1),
            ("other", 1, 1),
        ] {
            assert!(!lines.show(path, first, last), "{path}:{first}-{last}");
        }
    }
}
