//! Shows a run on GitHub while it is in progress: one check run, one comment, reactions.
//!
//! A separate thread receives the latest summary from a channel, so that neither a slow response nor a wait
//! for GitHub holds up the run, and outdated summaries are never sent. What cannot be published becomes a
//! line in the log; it never fails the run.

mod check_and_comment;
mod check_fields;

pub use check_and_comment::{CheckAndComment, End, Known, Published};

use crate::domain::agent::AgentEvent;
use crate::domain::event::{Event, EventKind};
use crate::domain::summary::RunSummary;
use crate::github::api::{Error, Repo};
use crate::report::Reporter;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Minimum time between two updates of the check run while the run is in progress. GitHub counts updates as
/// content: 80 per minute and 500 per hour are its secondary limits.
const CHECK_EVERY: Duration = Duration::from_secs(15);
/// Minimum time between two updates of the comment.
const COMMENT_EVERY: Duration = Duration::from_secs(60);

/// The latest state to show.
#[derive(Clone, Default)]
pub struct Latest {
    /// The state. It has a status before the end of a run that was cancelled.
    pub summary: Arc<RunSummary>,
    /// Whether the run tells its end, so that nobody else does.
    pub is_over: bool,
    end: Option<Arc<End>>,
}

impl Latest {
    fn has_status(&self) -> bool {
        self.end.is_some() || self.summary.status.is_some()
    }
}

/// Publishes a run from a separate thread.
pub struct Publisher {
    latest: watch::Sender<Latest>,
    thread: JoinHandle<Published>,
}

impl Publisher {
    /// Starts publishing. `open` creates the access inside the thread's runtime.
    ///
    /// # Errors
    /// When no thread can be created.
    pub fn start(
        pages: CheckAndComment,
        latest: watch::Sender<Latest>,
        open: impl FnOnce() -> Result<Repo, Error> + Send + 'static,
    ) -> io::Result<Self> {
        let seen = latest.subscribe();
        let thread = std::thread::Builder::new()
            .name("github".into())
            .spawn(move || published(pages, open, seen))?;
        Ok(Self { latest, thread })
    }

    /// Publishes the end and waits for it until shortly after `end.until`. Once `is_hurried` returns true, it
    /// waits for `hurry` at most.
    pub fn finish(
        self,
        summary: &RunSummary,
        end: End,
        is_hurried: impl Fn() -> bool,
        hurry: Duration,
    ) -> Published {
        let until = end.until;
        let _ = self.latest.send_replace(Latest {
            summary: Arc::new(summary.clone()),
            is_over: true,
            end: Some(Arc::new(end)),
        });
        // The thread keeps to its own deadline. This limit is for a thread that hangs.
        let patience = until.saturating_duration_since(Instant::now()) + Duration::from_millis(500);
        let mut gone_at = Instant::now() + patience;
        let mut was_hurried = false;
        while !self.thread.is_finished() && Instant::now() < gone_at {
            if !was_hurried && is_hurried() {
                was_hurried = true;
                gone_at = gone_at.min(Instant::now() + hurry);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let finished = self.thread.is_finished().then(|| self.thread.join().ok());
        finished
            .flatten()
            .unwrap_or_else(|| lost("GitHub did not answer in time".into()))
    }
}

/// Passes the summary on after every event that changes the report, until the run is said to be cancelled.
pub struct Feed(pub watch::Sender<Latest>);

impl Reporter for Feed {
    fn report(&mut self, event: &Event, summary: &RunSummary) -> io::Result<()> {
        if shows(&event.kind) {
            self.0.send_if_modified(|latest| {
                let goes_on = !latest.has_status();
                if goes_on {
                    latest.summary = Arc::new(summary.clone());
                }
                goes_on
            });
        }
        Ok(())
    }
}

/// Whether an event changes the report. The end comes from [`Publisher::finish`], with more details.
fn shows(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::Agent(AgentEvent::Todo { .. })
            | EventKind::RunStarted(_)
            | EventKind::TaskStarted { .. }
            | EventKind::TurnStarted { .. }
            | EventKind::TurnProgress(_)
            | EventKind::TurnAssessed(_)
            | EventKind::ReviewEnded(_)
            | EventKind::CheckEnded(_)
            | EventKind::RetryScheduled { .. }
            | EventKind::TaskEnded(_)
    )
}

fn published(
    mut pages: CheckAndComment,
    open: impl FnOnce() -> Result<Repo, Error>,
    seen: watch::Receiver<Latest>,
) -> Published {
    let publish = || -> anyhow::Result<Published> {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build()?.block_on(async {
            let repo = open()?;
            follow(&mut pages, &repo, seen).await;
            Ok(pages.published(&repo))
        })
    };
    publish().unwrap_or_else(|error| lost(format!("GitHub cannot be reached: {error}")))
}

/// Nothing is known of what was published.
fn lost(why: String) -> Published {
    Published {
        incidents: vec![why],
        ..Published::default()
    }
}

/// Publishes the latest state repeatedly until the end.
async fn follow(pages: &mut CheckAndComment, repo: &Repo, mut seen: watch::Receiver<Latest>) {
    let (mut check_at, mut comment_at) = (None, None);
    loop {
        if seen.changed().await.is_err() {
            // The run ended without a summary: its process is about to exit with its own error.
            return;
        }
        let pause = wait_of(check_at, CHECK_EVERY);
        if !seen.borrow().has_status() && !pause.is_zero() {
            let ended = seen.wait_for(Latest::has_status);
            let _ = tokio::time::timeout(pause, ended).await;
        }
        let Latest { summary, end, .. } = seen.borrow_and_update().clone();
        if let Some(end) = end {
            let repo = repo.clone().until(end.until).hurried(end.hurried);
            pages.end(&repo, &summary, &end).await;
            return;
        }
        // The end interrupts an update that is in progress.
        let is_cancelled = summary.status.is_some();
        let show_comment = is_cancelled || wait_of(comment_at, COMMENT_EVERY).is_zero();
        let mut end_comes = seen.clone();
        let is_next =
            |latest: &Latest| latest.end.is_some() || !is_cancelled && latest.has_status();
        let repo = repo.clone().hurried(is_cancelled);
        tokio::select! {
            () = pages.show(&repo, &summary, show_comment) => {}
            _ = end_comes.wait_for(is_next) => {}
        }
        if is_cancelled {
            if seen.wait_for(|latest| latest.end.is_some()).await.is_err() {
                return;
            }
            seen.mark_changed();
        }
        check_at = Some(Instant::now());
        if show_comment {
            comment_at = check_at;
        }
    }
}

fn wait_of(last: Option<Instant>, every: Duration) -> Duration {
    last.map_or(Duration::ZERO, |last| every.saturating_sub(last.elapsed()))
}
