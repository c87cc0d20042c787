//! The files of a run that its HTML report shows.

use crate::plain_file;
use crate::report::html::{SOURCE_BYTES, SOURCES_BYTES, Source, SourceKind, Sources};
use crate::run::state::layout::{Folder, RunFile};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The files to show, up to the size limit of a report. Unreadable files are left out, so this cannot
/// fail.
pub fn sources(run_dir: &Path) -> Sources {
    let mut files = vec![(SourceKind::Commits, run_dir.join(&*RunFile::Commits.path()))];
    for (kind, folder) in [
        (SourceKind::Diff, Folder::Patches),
        (SourceKind::Prompt, Folder::Prompts),
        (SourceKind::Log, Folder::Checks),
        (SourceKind::Transcript, Folder::Turns),
    ] {
        let found = plain_file::entries(&run_dir.join(folder.name()));
        files.extend(found.into_iter().map(|path| (kind, path)));
    }
    let mut left = SOURCES_BYTES;
    let mut sources = Vec::new();
    for (kind, path) in files {
        let Ok((text, cut)) = read(&path, kind, left.min(SOURCE_BYTES)) else {
            continue;
        };
        left = left.saturating_sub(text.len());
        let name = path
            .strip_prefix(run_dir)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        sources.push(Source {
            kind,
            name,
            text,
            cut,
        });
    }
    sources
}

/// The start of a file, or the end of a log, because that is where failures are.
fn read(path: &Path, kind: SourceKind, most: usize) -> io::Result<(String, bool)> {
    let mut file = plain_file::open(path)?;
    let about = file.metadata()?;
    let most = most as u64;
    if kind == SourceKind::Log {
        file.seek(SeekFrom::Start(about.len().saturating_sub(most)))?;
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((text, about.len() > most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_are_read_in_order_within_the_budget_and_links_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["patches", "prompts", "verify"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write("prompts/02.md", "second");
        write("prompts/01.md", "first");
        let log = format!("begin{}end", "x".repeat(SOURCE_BYTES));
        write("verify/01-test.log", &log);
        std::os::unix::fs::symlink("/etc/hostname", dir.path().join("patches/t1.patch")).unwrap();
        let found = sources(dir.path());
        let names: Vec<&str> = found.iter().map(|source| source.name.as_str()).collect();
        assert_eq!(
            names,
            ["prompts/01.md", "prompts/02.md", "verify/01-test.log"]
        );
        let log = &found[2];
        assert!(log.cut && log.text.ends_with("end") && !log.text.contains("begin"));
    }
}
