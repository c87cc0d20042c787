//! The lines of a patch: their numbers, and the lines of each file that the patch shows.

use std::collections::BTreeMap;

/// The lines of the new files that a patch shows, changed or not: for each file, one range of lines per hunk,
/// with the first and the last line counted from 1. Files whose names git quotes are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchLines(BTreeMap<String, Vec<(u64, u64)>>);

impl PatchLines {
    /// Reads a patch in git's format.
    pub fn read(patch: &str) -> Self {
        let mut files: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        let mut path: Option<&str> = None;
        for (at, line) in numbered(patch) {
            if at != Numbers::default() {
                continue;
            }
            if let Some(name) = line.strip_prefix("+++ ") {
                let name = name.strip_prefix("b/");
                path = name.map(|name| name.trim_end_matches('\t'));
            } else if let (Some((_, new)), Some(path)) = (hunk(line), path)
                && new.left > 0
            {
                let last = new.next.saturating_add(new.left - 1);
                let of_file = files.entry(path.to_owned()).or_default();
                of_file.push((new.next, last));
            }
        }
        Self(files)
    }

    /// Whether one hunk of the patch shows all of these lines of a file.
    pub fn show(&self, path: &str, first: u32, last: u32) -> bool {
        let (first, last) = (u64::from(first), u64::from(last));
        let mut hunks = self.0.get(path).into_iter().flatten();
        hunks.any(|(from, to)| *from <= first && last <= *to)
    }
}

/// The line number on each side of a diff line; neither for headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Numbers {
    /// In the old file.
    pub old: Option<u64>,
    /// In the new file.
    pub new: Option<u64>,
}

/// The lines of a patch, with their numbers. Hunk headers state the number of lines on each side, so a line
/// of the file cannot be mistaken for a header.
pub fn numbered(part: &str) -> impl Iterator<Item = (Numbers, &str)> {
    let (mut old, mut new) = (Side::default(), Side::default());
    part.lines().map(move |line| {
        let at = match line.chars().next() {
            Some('-') if old.left > 0 => Numbers {
                old: old.take(),
                new: None,
            },
            Some('+') if new.left > 0 => Numbers {
                old: None,
                new: new.take(),
            },
            Some(' ') | None if old.left > 0 && new.left > 0 => Numbers {
                old: old.take(),
                new: new.take(),
            },
            _ => {
                if let Some((of_old, of_new)) = hunk(line) {
                    (old, new) = (of_old, of_new);
                }
                Numbers::default()
            }
        };
        (at, line)
    })
}

/// The next line on one side of a hunk, and the number of lines left.
#[derive(Debug, Clone, Copy, Default)]
struct Side {
    next: u64,
    left: u64,
}

impl Side {
    fn take(&mut self) -> Option<u64> {
        let at = self.next;
        self.next = at.saturating_add(1);
        self.left -= 1;
        Some(at)
    }

    /// Reads `12,3`, or `12` for a single line.
    fn of(text: &str) -> Option<Self> {
        let (next, left) = text.split_once(',').unwrap_or((text, "1"));
        Some(Self {
            next: next.parse().ok()?,
            left: left.parse().ok()?,
        })
    }
}

/// The two sides that a hunk header names.
fn hunk(line: &str) -> Option<(Side, Side)> {
    let mut words = line.strip_prefix("@@ -")?.split(' ');
    let old = Side::of(words.next()?)?;
    let new = Side::of(words.next()?.strip_prefix('+')?)?;
    Some((old, new))
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
