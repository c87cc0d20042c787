//! What is said of a cancelled run at once, from what is known. Saving what it leaves can take longer than a runner
//! waits after its signal, and then nobody would be told.

use crate::domain::outcome::{Reason, RunStatus};
use crate::domain::summary::RunSummary;
use crate::github::publisher::Latest;
use crate::process::Cancel;
use crate::report::{Format, render};
use crate::run::state::directory::RunDir;
use crate::run::state::layout::RunFile;
use std::sync::Arc;
use std::thread;
use tokio::sync::watch;

/// After a signal, writes the summary and has the run shown as cancelled, unless it has told its end by then.
pub(super) fn say_on(cancel: &Cancel, latest: &watch::Sender<Latest>, run_dir: &RunDir) {
    let (cancel, latest, run_dir) = (cancel.clone(), latest.clone(), run_dir.clone());
    let say = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let Ok(by) = runtime.map(|runtime| runtime.block_on(cancel.cancelled())) else {
            return;
        };
        latest.send_if_modified(|latest| {
            if latest.is_over || latest.summary.run_id.is_empty() {
                return false;
            }
            let status = RunStatus::Cancelled;
            let summary = RunSummary {
                status: Some(status),
                reason: Some(Reason::Cancelled),
                exit_code: Some(status.exit_code(by.signal())),
                current: None,
                ..RunSummary::clone(&latest.summary)
            };
            let text = render(&summary, &Vec::new(), Format::Json);
            // If this fails, the end of the run says why.
            let _ = run_dir.write(RunFile::Report(Format::Json), text.as_bytes());
            latest.summary = Arc::new(summary);
            true
        });
    };
    // Without a thread, the run is told of at its end, as any other.
    let _ = thread::Builder::new().name("last words".into()).spawn(say);
}
