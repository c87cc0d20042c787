use super::*;
use crate::domain::attempt::Observation;
use crate::report::Format;
use std::sync::Arc;

fn line(task: &str) -> HistoryLine {
    let record = Record::Observed {
        observation: Observation::Waited,
    };
    HistoryLine {
        task: task.into(),
        record,
    }
}

#[test]
fn a_history_with_a_torn_last_line_is_read_and_continued() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    dir.history().unwrap().append(&line("t1")).unwrap();
    let path = dir.path(RunFile::History);
    let mut file = append_only(&path).unwrap();
    file.write_all(b"{\"task\":\"t").unwrap();
    assert_eq!(dir.read_history().unwrap(), [line("t1")]);
    dir.history().unwrap().append(&line("t2")).unwrap();
    assert_eq!(dir.read_history().unwrap(), [line("t1"), line("t2")]);
}

#[test]
fn a_damaged_line_in_the_middle_is_an_error_that_names_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    fs::write(dir.path(RunFile::History), "nonsense\n{}\n").unwrap();
    let error = format!("{:#}", dir.read_history().unwrap_err());
    assert!(error.contains("history.jsonl:1 is damaged"), "{error}");
}

#[test]
fn a_record_of_another_version_is_no_torn_line() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    let text = "{\"task\":\"t1\",\"record\":\"foreseen\"}\n";
    fs::write(dir.path(RunFile::History), text).unwrap();
    let error = format!("{:#}", dir.read_history().unwrap_err());
    assert!(
        error.contains("history.jsonl:1 is not understood"),
        "{error}"
    );
    dir.history().unwrap();
    assert_eq!(
        fs::read_to_string(dir.path(RunFile::History)).unwrap(),
        text
    );
}

#[test]
fn a_manifest_of_another_version_is_refused_and_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    fs::write(dir.path(RunFile::Manifest), "{\"v\":2,\"what\":[]}").unwrap();
    let error = format!("{:#}", dir.manifest().unwrap_err());
    assert!(
        error.contains("has version 2, but this Sprag reads version 1"),
        "{error}"
    );
}

#[test]
fn a_history_cut_at_any_byte_of_its_last_two_records_is_read_up_to_there() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    let lines = ["t1", "t\u{2}\n\u{1f980}", "t3"].map(line);
    let mut file = dir.history().unwrap();
    lines
        .iter()
        .for_each(|line| drop(file.append(line).unwrap()));
    let path = dir.path(RunFile::History);
    let bytes = fs::read(&path).unwrap();
    let first = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in first..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(dir.read_history().unwrap(), lines[..whole], "cut at {cut}");
        let mut file = dir.history().unwrap();
        file.append(&line("next")).unwrap();
        let expected = [&lines[..whole], &[line("next")]].concat();
        assert_eq!(dir.read_history().unwrap(), expected, "cut at {cut}");
    }
}

proptest::proptest! {
    /// A file of records may be cut at any byte and continued with any bytes: the complete records are
    /// read, and the next one follows them.
    #[test]
    fn a_history_cut_anywhere_is_read_up_to_there_and_continued(
        tasks in proptest::collection::vec("[a-z\u{e9}\n\"]{0,40}", 1..6),
        cut in proptest::prelude::any::<proptest::sample::Index>(),
        garbage in proptest::sample::select(vec![&b""[..], b"\0\0\0", b"\0\n", b"{\"ta\n"]),
    ) {
        let temp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
        let mut file = dir.history().unwrap();
        let lines: Vec<_> = tasks.iter().map(|task| line(task)).collect();
        lines.iter().for_each(|line| drop(file.append(line).unwrap()));
        let path = dir.path(RunFile::History);
        let bytes = fs::read(&path).unwrap();
        let at = cut.index(bytes.len() + 1);
        let whole = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        fs::write(&path, [&bytes[..at], garbage].concat()).unwrap();
        proptest::prop_assert_eq!(dir.read_history().unwrap(), &lines[..whole]);
        dir.history().unwrap().append(&line("next")).unwrap();
        let mut expected = lines[..whole].to_vec();
        expected.push(line("next"));
        proptest::prop_assert_eq!(dir.read_history().unwrap(), expected);
    }
}

#[test]
fn neither_a_link_nor_a_full_directory_becomes_a_run_directory() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("target");
    fs::create_dir(&target).unwrap();
    let link = temp.path().join("link");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(RunDir::create(&link, Arc::default()).is_err());
    fs::write(target.join("file"), "kept").unwrap();
    assert!(RunDir::create(&target, Arc::default()).is_err());
    assert_eq!(fs::read_dir(&target).unwrap().count(), 1);
}

#[test]
fn files_behind_planted_links_stay_as_they_are() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    let outside = temp.path().join("outside");
    fs::write(&outside, "kept").unwrap();
    std::os::unix::fs::symlink(&outside, dir.path(RunFile::History)).unwrap();
    assert!(dir.history().is_err());
    std::os::unix::fs::symlink(&outside, dir.path(RunFile::Report(Format::Json))).unwrap();
    dir.write(RunFile::Report(Format::Json), b"new").unwrap();
    assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
    assert_eq!(
        fs::read_to_string(dir.path(RunFile::Report(Format::Json))).unwrap(),
        "new"
    );
}

fn manifest() -> Manifest {
    Manifest {
        directory: String::new(),
        shards: Vec::new(),
        text: None,
        v: 1,
        run_id: "r".into(),
        work_tree: "/w".into(),
        plan: None,
        prompt: None,
        tasks: Vec::new(),
        config: None,
        trusted: None,
        is_draft: false,
        reviewed: None,
        flags: serde_json::Value::Null,
    }
}

#[test]
fn the_newest_twenty_runs_stay() {
    let temp = tempfile::tempdir().unwrap();
    let manifest = manifest();
    let mut last = None;
    for n in 0..25 {
        let dir = RunDir::create(&temp.path().join(format!("run-{n:02}")), Arc::default()).unwrap();
        dir.write_manifest(&manifest).unwrap();
        last = Some(dir);
    }
    fs::create_dir(temp.path().join("not-a-run")).unwrap();
    last.unwrap().prune_siblings();
    let mut left: Vec<_> = fs::read_dir(temp.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left.len(), KEPT_RUNS + 1);
    assert_eq!(left.last().unwrap(), "run-24");
    assert_eq!(
        newest_unfinished(temp.path(), Path::new("/w")),
        Some(temp.path().join("run-24"))
    );
}

#[test]
fn a_directory_that_was_removed_and_used_again_is_listed_once() {
    let temp = tempfile::tempdir().unwrap();
    let (runs, elsewhere) = (temp.path().join("runs"), temp.path().join("elsewhere"));
    for run_id in ["a", "b"] {
        let dir = RunDir::create(&elsewhere, Arc::default()).unwrap();
        let manifest = Manifest {
            run_id: run_id.into(),
            ..manifest()
        };
        dir.write_manifest(&manifest).unwrap();
        dir.list_in(&runs, run_id).unwrap();
        if run_id == "a" {
            fs::remove_dir_all(&elsewhere).unwrap();
        }
    }
    let listed = runs_of_tree(&runs, Path::new("/w"));
    let ids: Vec<&str> = listed.iter().map(|(_, it)| it.run_id.as_str()).collect();
    assert_eq!(ids, ["b"]);
}

#[test]
fn a_run_elsewhere_is_listed_and_never_removed() {
    let temp = tempfile::tempdir().unwrap();
    let (runs, elsewhere) = (temp.path().join("runs"), temp.path().join("elsewhere"));
    let made = |root: &Path, run_id: &str| {
        let dir = RunDir::create(root, Arc::default()).unwrap();
        let manifest = Manifest {
            run_id: run_id.into(),
            ..manifest()
        };
        dir.write_manifest(&manifest).unwrap();
        dir
    };
    for n in 0..KEPT_RUNS + 5 {
        // The names are in another order than the ids.
        let root = elsewhere.join(format!("run-{}", 99 - n));
        let id = format!("{n:02}");
        made(&root, &id).list_in(&runs, &id).unwrap();
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), KEPT_RUNS + 5);
    let listed = runs_of_tree(&runs, Path::new("/w"));
    assert_eq!(listed.len(), KEPT_RUNS);
    let newest = fs::canonicalize(&elsewhere).unwrap().join("run-75");
    assert_eq!(newest_unfinished(&runs, Path::new("/w")), Some(newest));
    // A run here is newer than those elsewhere, and a removed run is no longer listed.
    made(&runs.join("25"), "25").prune_siblings();
    fs::remove_dir_all(&elsewhere).unwrap();
    made(&elsewhere.join("last"), "24")
        .list_in(&runs, "24b")
        .unwrap();
    let left = runs_of_tree(&runs, Path::new("/w"));
    assert_eq!(left.len(), 2);
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 2);
    assert_eq!(
        newest_unfinished(&runs, Path::new("/w")),
        Some(runs.join("25"))
    );
}

#[test]
fn every_event_is_read_back_as_it_was_written() {
    let temp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&temp.path().join("run"), Arc::default()).unwrap();
    let events = crate::report::samples::every_event();
    let mut file = append_only(&dir.path(RunFile::EventRecord)).unwrap();
    for event in &events {
        serde_json::to_writer(&mut file, event).unwrap();
        file.write_all(b"\n").unwrap();
    }
    assert_eq!(dir.read_events().unwrap(), events);
}
