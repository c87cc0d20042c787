//! The table of the files in a run directory.

use sprag::report::Format;
use sprag::run::state::layout::{Folder, RunFile};
use std::collections::BTreeSet;

/// How a file is stored, when it is written, and the files for which this holds. A log is appended and synced before
/// anything that depends on it, and an incomplete last line is cut off. A whole file is replaced atomically: temporary
/// file, sync, rename, sync of the directory.
const ROWS: &[(&str, &str, &[RunFile<'_>])] = &[
    (
        "whole",
        "once and last: a directory without it is not a run",
        &[RunFile::Manifest],
    ),
    ("log", "before and after each effect", &[RunFile::History]),
    (
        "log",
        "before the record that depends on it; synced if an event contains more than the history: turns, commits, ends",
        &[RunFile::EventRecord],
    ),
    (
        "whole",
        "before the branch is moved: the old and the new commit",
        &[RunFile::Landing],
    ),
    (
        "whole",
        "before the branch is moved onto commits by others",
        &[RunFile::Move],
    ),
    ("whole", "before the manifest", &[RunFile::Plan]),
    (
        "whole",
        "before the first event",
        &[
            RunFile::Request,
            RunFile::StartCommit,
            RunFile::Picture(1, "png"),
        ],
    ),
    (
        "whole",
        "when the state changes",
        &[
            RunFile::TurnMark,
            RunFile::PhaseStart,
            RunFile::FinalMessage,
            RunFile::Session,
            RunFile::Answer,
            RunFile::Notes,
            RunFile::CheckArtifacts,
            RunFile::BeforeChecks,
            RunFile::Uncommitted,
            RunFile::OriginalTests,
            RunFile::SetupDone,
            RunFile::OrderlyEnd,
            RunFile::OnGithub,
            RunFile::Matcher("DIGEST"),
        ],
    ),
    (
        "whole",
        "before the event that names it",
        &[
            RunFile::Prompt(1),
            RunFile::TurnMessage(1),
            RunFile::Patch("TASK"),
        ],
    ),
    (
        "whole",
        "at the end; the summary also at a signal",
        &[
            RunFile::Report(Format::Md),
            RunFile::Report(Format::Html),
            RunFile::Report(Format::Json),
        ],
    ),
    (
        "derived",
        "at the end, before the report",
        &[RunFile::Commits],
    ),
    (
        "derived",
        "at the end, if the commits are for another job or could not be pushed",
        &[RunFile::Bundle],
    ),
    (
        "whole",
        "after the summary: a run that dies before this is resumed to report its end",
        &[RunFile::Ended, RunFile::Finished],
    ),
    (
        "derived",
        "as it happens; an incomplete last line is removed when the run is resumed",
        &[
            RunFile::Events,
            RunFile::Transcript(1, "AGENT"),
            RunFile::SetupLog(1),
            RunFile::CheckLog(1, "CHECK"),
        ],
    ),
];

pub fn table() -> String {
    let mut text = String::from("| file of the run directory | form | written |\n|---|---|---|\n");
    for (form, written, files) in ROWS {
        let names: Vec<String> = files
            .iter()
            .map(|file| format!("`{}`", file.path()))
            .collect();
        text += &format!("| {} | {form} | {written} |\n", names.join(", "));
    }
    text
}

#[test]
fn no_two_files_have_one_path_and_each_lies_in_a_known_folder() {
    let all = || ROWS.iter().flat_map(|(_, _, files)| *files);
    let paths: BTreeSet<String> = all().map(|file| file.path().into_owned()).collect();
    assert_eq!(paths.len(), all().count());
    let folders = Folder::OF_NEW_RUN.map(Folder::name);
    for path in &paths {
        if let Some((folder, name)) = path.split_once('/') {
            assert!(folders.contains(&folder) && !name.contains('/'), "{path}");
        }
    }
    for (form, _, files) in ROWS {
        let is_derived = *form == "derived";
        assert!(
            files.iter().all(|file| file.is_derived() == is_derived),
            "{files:?}"
        );
    }
}
