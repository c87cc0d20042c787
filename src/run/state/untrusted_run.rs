//! Reads the files that another job left. They are untrusted, because that job ran foreign code: no
//! links are followed, reads never block and have a size limit, and anything unexpected is an error with
//! its location.

use crate::domain::outcome::{RunStatus, TaskEnd};
use crate::domain::summary::RunSummary;
use crate::domain::trigger::refname::is_commit_id;
use crate::error::{Error, Location, Result};
use crate::plain_file;
use crate::report::text;
use crate::run::state::layout::{BUNDLE, SUMMARY};
use crate::secrets::redact::Redactor;
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The largest summary, in bytes, that is read. A run of one hundred tasks with all retries takes 2 MB.
const SUMMARY_BYTES: u64 = 32 << 20;
/// How many characters of a parser's message are shown. The message may quote the file.
const WORDS: usize = 200;

/// A run as another job left it. The bundle is not opened yet.
#[derive(Debug)]
pub struct UntrustedRun {
    /// The validated summary, without this job's token.
    pub summary: RunSummary,
    /// The commits, where there are any.
    pub bundle: Option<PathBuf>,
}

/// Reads a run directory.
///
/// # Errors
/// When it is not a run directory, or a file that is needed is damaged.
pub fn read(dir: &Path, redactor: &Redactor) -> Result<UntrustedRun> {
    let shown = dir.display();
    if !fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir()) {
        return Err(Error::usage(format!("{shown} is not a directory"))
            .hint("name the directory with the summary.json and work.bundle of the run"));
    }
    let summary = parse(&read_regular(&dir.join(SUMMARY))?)?;
    sound(&summary).map_err(|what| damaged(0, &what))?;
    let path = dir.join(BUNDLE);
    let bundle = match open_regular(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unread(&path, &error)),
        Ok(_) => Some(path),
    };
    if bundle.is_none() && !summary.commits.is_empty() {
        let count = text::count(summary.commits.len() as u64, "commit");
        return Err(
            Error::config(format!("{SUMMARY} lists {count}, but there is no {BUNDLE}"))
                .hint("run with --no-push, and hand both files over"),
        );
    }
    let summary = redactor.redacted(&summary).map_err(anyhow::Error::from)?;
    let summary = summary.into_owned();
    Ok(UntrustedRun { summary, bundle })
}

fn read_regular(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read =
        open_regular(path).and_then(|file| file.take(SUMMARY_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| unread(path, &error))?;
    if bytes.len() as u64 > SUMMARY_BYTES {
        let (shown, limit) = (path.display(), SUMMARY_BYTES >> 20);
        return Err(Error::config(format!("{shown} has more than {limit} MiB")));
    }
    Ok(bytes)
}

/// Same as [`plain_file::open`], with a clearer error for a link.
fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    plain_file::open(path)
}

fn unread(path: &Path, error: &io::Error) -> Error {
    Error::config(format!("{} cannot be read: {error}", path.display()))
}

fn damaged(line: usize, what: &str) -> Error {
    let what: String = text::line(what).chars().take(WORDS).collect();
    let whole = match line {
        0 => format!("{SUMMARY}: {what}"),
        line => format!("{SUMMARY}:{line}: {what}"),
    };
    let line = line.max(1);
    let file = SUMMARY.to_owned();
    Error::located(whole, Location { file, line, what })
}

fn parse(bytes: &[u8]) -> Result<RunSummary> {
    #[derive(Deserialize)]
    struct Versioned {
        v: u64,
    }
    let wrong = |error: serde_json::Error| damaged(error.line(), &error.to_string());
    match serde_json::from_slice::<Versioned>(bytes).map_err(wrong)?.v {
        1 => serde_json::from_slice(bytes).map_err(wrong),
        v => Err(damaged(0, &format!("version {v} is unknown"))
            .hint("publish with the version of Sprag that ran")),
    }
}

/// Validates that the parts of the summary are consistent and that the run has ended. Everything that an
/// unmodified run can leave is accepted.
fn sound(summary: &RunSummary) -> std::result::Result<(), String> {
    let id = &summary.facts.run_id;
    if id.len() != 36 || uuid::Uuid::parse_str(id).is_err() {
        return Err("run_id is not the id of a run".to_owned());
    }
    let (Some(status), Some(_), Some(code)) = (summary.status, summary.reason, summary.exit_code)
    else {
        return Err("the run has not ended".to_owned());
    };
    let is_terminated = status == RunStatus::Cancelled && code == status.exit_code(Some(15));
    if code != status.exit_code(None) && !is_terminated {
        let status = status.as_str();
        return Err(format!("exit_code {code} does not match status {status}"));
    }
    let ids = summary.commits.iter().chain(&summary.head);
    if let Some(id) = ids.chain(&summary.facts.base).find(|id| !is_commit_id(id)) {
        return Err(format!("`{id}` is not the id of a commit"));
    }
    let tasks = summary.tasks.iter();
    let done = tasks.filter(|task| task.status == TaskEnd::Done);
    let counted = (summary.tasks.len(), done.count());
    let totals = &summary.totals;
    if counted != (totals.tasks as usize, totals.done as usize) {
        return Err("totals do not match the tasks".to_owned());
    }
    if summary.push.as_ref().is_some_and(|push| push.pushed) {
        return Err("the run has pushed its work itself, so nothing is left to publish".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::outcome::Reason;
    use serde_json::{Value, json};
    use std::os::unix::fs::symlink;

    fn honest() -> RunSummary {
        let mut summary = RunSummary {
            status: Some(RunStatus::Success),
            reason: Some(Reason::Verified),
            exit_code: Some(0),
            ..RunSummary::default()
        };
        summary.facts.run_id = "019398c4-5f1e-7c44-9d9e-3a1f0f1c2d3e".to_owned();
        summary
    }

    fn with(change: impl FnOnce(&mut Value)) -> String {
        let mut value = serde_json::to_value(honest()).unwrap();
        change(&mut value);
        value.to_string()
    }

    fn refusal(summary: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(SUMMARY), summary).unwrap();
        refused(dir.path())
    }

    fn refused(dir: &Path) -> String {
        let error = read(dir, &Redactor::default()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        let text = error.to_string();
        text.replace(&dir.display().to_string(), "DIR")
    }

    #[test]
    fn what_a_run_leaves_is_read_and_the_token_is_taken_out() {
        let dir = tempfile::tempdir().unwrap();
        let token = "ghs_0123456789012345678901234567890123456";
        let text = with(|value| value["plan"]["title"] = json!(format!("Say {token}")));
        fs::write(dir.path().join(SUMMARY), text).unwrap();
        fs::write(dir.path().join(BUNDLE), "").unwrap();
        let found = read(dir.path(), &Redactor::new([token])).unwrap();
        assert_eq!(found.summary.facts.plan.title, "Say ***");
        assert_eq!(found.bundle, Some(dir.path().join(BUNDLE)));
    }

    #[test]
    fn files_that_are_none_are_refused_without_being_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bundle) = (dir.path().join(SUMMARY), dir.path().join(BUNDLE));
        let cannot = "DIR/summary.json cannot be read: ";
        assert!(refused(dir.path()).starts_with(cannot));
        symlink("/etc/hostname", &path).unwrap();
        let not_regular = format!("{cannot}it is not a regular file");
        assert_eq!(refused(dir.path()), not_regular);
        for make in [fifo, |path: &Path| fs::create_dir(path)] {
            let _ = fs::remove_file(&path);
            make(&path).unwrap();
            assert_eq!(refused(dir.path()), not_regular);
        }
        fs::remove_dir(&path).unwrap();
        fs::write(&path, with(|_| ())).unwrap();
        for make in [fifo, |path: &Path| symlink("/etc/hostname", path)] {
            make(&bundle).unwrap();
            assert_eq!(
                refused(dir.path()),
                "DIR/work.bundle cannot be read: it is not a regular file"
            );
            fs::remove_file(&bundle).unwrap();
        }
        let link = dir.path().join("link");
        symlink(dir.path(), &link).unwrap();
        assert!(refused(&link).contains("DIR is not a directory"));
    }

    fn fifo(path: &Path) -> io::Result<()> {
        use rustix::fs::{FileType, Mode, mknodat};
        mknodat(
            rustix::fs::CWD,
            path,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )?;
        Ok(())
    }

    #[test]
    fn a_summary_of_any_size_costs_no_more_than_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join(SUMMARY)).unwrap();
        file.set_len(100 << 30).unwrap();
        assert_eq!(refused(dir.path()), "DIR/summary.json has more than 32 MiB");
    }

    #[test]
    fn damaged_json_is_told_with_its_place() {
        assert!(refusal("").starts_with("summary.json:1: EOF"));
        assert!(refusal("\n\n{]").starts_with("summary.json:3: "));
        let deep = "[".repeat(1 << 20);
        for key in ["x", "tasks"] {
            let told = refusal(&format!("{{\"v\":1,\"{key}\":{deep}"));
            assert!(told.starts_with("summary.json:1: EOF"), "{told}");
        }
        let quoted = refusal(&with(|value| {
            value["status"] = json!(format!("::error::{}", "x".repeat(100_000)));
        }));
        assert!(quoted.len() < 300, "{quoted}");
        let cases = [
            (with(|value| value["v"] = json!(2)), "version 2"),
            (with(|value| value["v"] = json!("1")), "invalid type"),
            (with(|value| value["tasks"] = json!({})), "invalid type"),
            (
                with(|value| value["exit_code"] = json!(-1)),
                "invalid value",
            ),
        ];
        for (summary, expected) in cases {
            let told = refusal(&summary);
            assert!(told.contains(expected), "{told}");
        }
        let twice = with(|_| ()).replacen("\"run_id\"", "\"run_id\":\"\",\"run_id\"", 1);
        assert!(refusal(&twice).contains("duplicate field"));
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let cases = [
            (with(|value| value["run_id"] = json!("../../x")), "run_id"),
            (with(|value| value["status"] = Value::Null), "has not ended"),
            (
                with(|value| value["status"] = json!("failed")),
                "exit_code 0",
            ),
            (with(|value| value["commits"] = json!(["--all"])), "`--all`"),
            (with(|value| value["base"] = json!("main")), "`main`"),
            (with(|value| value["totals"]["done"] = json!(3)), "totals"),
            (
                with(|value| value["commits"] = json!(["a".repeat(40)])),
                "lists 1 commit, but there is no work.bundle",
            ),
        ];
        for (summary, expected) in cases {
            let told = refusal(&summary);
            assert!(told.contains(expected), "{told}");
        }
    }
}
