//! Reads the JUnit XML reports that a run of a check wrote.

use crate::domain::checks::junit::{MAX_REPORT_BYTES, Report, read};
use crate::plain_file;
use globset::{GlobBuilder, GlobMatcher};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of reports of one check, and of files that are examined to find them.
const MAX_REPORTS: usize = 200;
const MAX_LOOKED_AT: usize = 200_000;

/// The identity, the size and the times of a file. A different value means that it was written.
type FileStamp = ([u64; 3], [i64; 4]);

/// The reports that existed before the check started.
pub(super) struct EarlierReports {
    glob: GlobMatcher,
    marks: BTreeMap<PathBuf, FileStamp>,
}

impl EarlierReports {
    /// Records the reports before the check runs, or returns `None` if the glob is invalid.
    pub(super) fn record(work_tree: &Path, glob: &str) -> Option<Self> {
        let glob = GlobBuilder::new(glob)
            .literal_separator(true)
            .build()
            .ok()?
            .compile_matcher();
        let marks = matching(work_tree, &glob).collect();
        Some(Self { glob, marks })
    }

    /// The combined content of the reports written since, or `None` if there are none. Problems are passed to
    /// `tell`.
    pub(super) fn written(self, work_tree: &Path, tell: &mut dyn FnMut(String)) -> Option<Report> {
        let mut all: Option<Report> = None;
        let is_written = |(path, mark): &(PathBuf, FileStamp)| self.marks.get(path) != Some(mark);
        let written = matching(work_tree, &self.glob).filter(is_written);
        let written: Vec<_> = written.take(MAX_REPORTS + 1).collect();
        for (path, _) in written.iter().take(MAX_REPORTS) {
            let shown = path.display();
            let bytes = match contents(&work_tree.join(path)) {
                Ok(bytes) => bytes,
                Err(error) => {
                    tell(format!("the report {shown} cannot be read: {error}"));
                    continue;
                }
            };
            let mut report = read(&bytes, &work_tree.display().to_string());
            if let Some(problem) = report.problem.take() {
                tell(format!("the report {shown}: {problem}"));
            }
            match &mut all {
                Some(all) => all.join(report),
                None => all = Some(report),
            }
        }
        match written.len() {
            0 => tell("it wrote no report that its `junit` names".to_owned()),
            1..=MAX_REPORTS => {}
            _ => tell(format!("only the first {MAX_REPORTS} reports are read")),
        }
        all
    }
}

/// Regular files below the work tree whose path matches, by path. No symbolic link is followed.
fn matching<'a>(
    work_tree: &'a Path,
    glob: &'a GlobMatcher,
) -> impl Iterator<Item = (PathBuf, FileStamp)> + 'a {
    let mut walk = ignore::WalkBuilder::new(work_tree);
    walk.standard_filters(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(|entry| entry.file_name() != ".git");
    walk.build()
        .filter_map(Result::ok)
        .take(MAX_LOOKED_AT)
        .filter_map(move |entry| {
            let path = entry.path().strip_prefix(work_tree).ok()?;
            let metadata = glob
                .is_match(path)
                .then(|| fs::symlink_metadata(entry.path()));
            let metadata = metadata?.ok().filter(Metadata::is_file)?;
            Some((path.to_path_buf(), mark(&metadata)))
        })
}

/// The files of the work tree that git does not ignore, relative to it.
pub(super) fn files(work_tree: &str) -> Vec<String> {
    let walk = ignore::WalkBuilder::new(work_tree)
        .hidden(false)
        .parents(false)
        .git_global(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    walk.filter_map(Result::ok)
        .take(MAX_LOOKED_AT)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(work_tree).ok()?;
            Some(path.to_str()?.to_owned())
        })
        .collect()
}

fn mark(of: &Metadata) -> FileStamp {
    let times = [of.mtime(), of.mtime_nsec(), of.ctime(), of.ctime_nsec()];
    ([of.dev(), of.ino(), of.len()], times)
}

/// Reads at most one byte more than the maximum size of a report. A link or pipe in its place is refused.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let file = plain_file::open(path)?;
    let mut bytes = Vec::new();
    file.take(MAX_REPORT_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::EarlierReports;
    use std::fs;

    const FAILED: &str = "<testsuite><testcase name='t'><failure/></testcase></testsuite>";

    #[test]
    fn only_files_of_this_run_inside_the_tree_are_read() {
        let outside = tempfile::tempdir().unwrap();
        let tree = tempfile::tempdir().unwrap();
        let root = tree.path();
        fs::create_dir_all(root.join("out/deep")).unwrap();
        fs::write(root.join("out/old.xml"), FAILED).unwrap();
        let record = || EarlierReports::record(root, "out/**/*.xml").unwrap();
        let before = record();
        fs::write(root.join("out/deep/new.xml"), FAILED).unwrap();
        fs::write(root.join("elsewhere.xml"), FAILED).unwrap();
        fs::write(outside.path().join("far.xml"), FAILED).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("out/link")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("far.xml"), root.join("out/far.xml"))
            .unwrap();
        let mut told = Vec::new();
        let report = before.written(root, &mut |it| told.push(it)).unwrap();
        assert_eq!((report.failed, told), (1, Vec::new()));
        let mut told = Vec::new();
        assert_eq!(record().written(root, &mut |it| told.push(it)), None);
        assert_eq!(told, ["it wrote no report that its `junit` names"]);
        let before = record();
        fs::write(root.join("out/old.xml"), "<html>").unwrap();
        let mut told = Vec::new();
        before.written(root, &mut |it| told.push(it)).unwrap();
        assert_eq!(
            told,
            ["the report out/old.xml: it is not JUnit XML: it has no testsuite"]
        );
    }
}
