//! Passes every event to every report, and writes the files of a finished run.

use crate::cli::Output;
use crate::context::Context;
use crate::domain::agent::AgentEvent;
use crate::domain::continuation::Continuation;
use crate::domain::event::{Event, EventKind, WarningTopic};
use crate::domain::outcome::RunStatus;
use crate::domain::settings::Resolved;
use crate::domain::summary::RunSummary;
use crate::error::{Error, Result};
use crate::github::actions_environment::ActionsEnvironment;
use crate::github::publisher::{CheckAndComment, End, Feed, Known, Latest, Publisher};
use crate::github::refusal::end_of;
use crate::github::request::RunRequest;
use crate::process::Cancel;
use crate::report::actions_log::{ActionsLog, Token, print_warning};
use crate::report::annotation::annotations;
use crate::report::append::append_only;
use crate::report::buffered_output::{BufferedOutput, Time, drain_timeout};
use crate::report::console::{Console, Size, Style, Verbosity, is_colored};
use crate::report::jsonl::Jsonl;
use crate::report::outputs::{OtherOutputs, ReportStatus, github_output, outputs};
use crate::report::workflow_command::{WorkflowCommands, annotation_commands};
use crate::report::{Format, Reporters, markdown, render};
use crate::run::begin::repository::relative;
use crate::run::deliver::finish::say_on;
use crate::run::deliver::report_sources;
use crate::run::deliver::telemetry::Exporter;
use crate::run::state::conversation;
use crate::run::state::directory::RunDir;
use crate::run::state::emitter::Emitter;
use crate::run::state::layout::RunFile;
use crate::run::state::places::events_file;
use crate::secrets::redact::Redactor;
use anyhow::Context as _;
use clap::ValueEnum as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::fs::File;
use std::io::{Write, stderr, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long the final report to GitHub may take, normally and while the job is being cancelled: its
/// processes are killed 10 s after the first signal.
const REPORT_TIMEOUT: Duration = Duration::from_secs(90);
const CANCELLED_REPORT_TIMEOUT: Duration = Duration::from_secs(3);

/// The name of the reporter for groups and annotations.
const LOG_COMMANDS: &str = "annotations";

/// Passes the events of a run to its reports.
pub struct Reporting {
    reporters: Reporters,
    /// Streams whose readers may have stopped reading.
    outputs: BufferedOutputs,
    /// The log of a GitHub Actions step, if the run is one.
    actions_log: Option<ActionsLog>,
    /// The fold of the events, without secrets.
    summary: RunSummary,
    /// The log of events for resuming the run. It leaves out most of the agent's output.
    record: Option<File>,
    run_dir: RunDir,
    status: ReportStatus,
    /// Number of the last event.
    seq: u64,
    /// The latest state, for those that show it at another pace.
    latest: watch::Sender<Latest>,
    /// The report to GitHub, if there is one.
    publishing: Option<Publishing>,
    /// The export to an OpenTelemetry collector, if one is configured.
    telemetry: Option<Exporter>,
    /// Redacts every event before it is used.
    redactor: Arc<Redactor>,
    /// Set by a signal, even after the last task.
    cancel: Option<Cancel>,
    /// The work tree of a job, to which paths in warnings are relative.
    work_tree: Option<PathBuf>,
}

/// A run that is reported to GitHub.
struct Publishing {
    publisher: Publisher,
    /// Whether the token is the job's own. Its pushes start no workflows.
    is_job_token: bool,
    /// How long the report may take after a signal.
    hurry: Duration,
}

impl Reporting {
    /// Opens every report.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn open(
        context: &Context,
        settings: &Resolved,
        output: Output,
        run_dir: &RunDir,
        work_tree: &Path,
        earlier: Option<&RunSummary>,
    ) -> Result<Self> {
        let mut reporters = Reporters::default();
        let mut outputs = BufferedOutputs::default();
        let events = run_dir.append_lines(RunFile::Events)?;
        let redactor = run_dir.redactor();
        reporters.add("events", Box::new(Jsonl::new(Box::new(events))));
        let to_stdout = settings.events.as_deref() == Some("-");
        if let Some(path) = &settings.events {
            let out = if to_stdout {
                outputs.open("JSONL", &stdout(), context.stdout_is_terminal)?
            } else {
                events_output(&events_file(context, path), &mut outputs)?
            };
            reporters.add("JSONL", Box::new(Jsonl::new(out)));
        }
        let (terminal, out) = if to_stdout {
            let terminal = context.stderr_is_terminal;
            (terminal, outputs.open("log", &stderr(), terminal)?)
        } else {
            let terminal = context.stdout_is_terminal;
            (terminal, outputs.open("log", &stdout(), terminal)?)
        };
        let can_draw = terminal && context.var("TERM").is_some_and(|term| term != "dumb");
        let style = Style {
            color: is_colored(settings.color, can_draw, context.wants_color()),
            verbosity: Verbosity::from_flags(output.verbose, output.quiet),
            width: None,
        };
        let mut actions_log = None;
        if context.in_actions() {
            // The runner executes no commands in an agent's output.
            let token: Token = Box::new(|| uuid::Uuid::new_v4().simple().to_string());
            let log = ActionsLog::new(out, token);
            reporters.add(
                LOG_COMMANDS,
                Box::new(WorkflowCommands::new(log.clone(), true)),
            );
            reporters.add("log", Box::new(Console::new(Box::new(log.clone()), style)));
            actions_log = Some(log);
        } else if can_draw {
            let size = Box::new(move || size(to_stdout));
            reporters.add("log", Box::new(Console::live(out, style, size)));
        } else {
            reporters.add("log", Box::new(Console::new(out, style)));
        }
        let latest = watch::Sender::new(Latest::default());
        reporters.add("GitHub", Box::new(Feed(latest.clone())));
        Ok(Self {
            reporters,
            latest,
            outputs,
            actions_log,
            summary: match earlier {
                Some(earlier) => redacted(&redactor, earlier)?.into_owned(),
                None => RunSummary::default(),
            },
            record: Some(run_dir.append_lines(RunFile::EventRecord)?),
            run_dir: run_dir.clone(),
            status: ReportStatus::Ok,
            seq: 0,
            publishing: None,
            telemetry: Exporter::of(context),
            redactor,
            cancel: None,
            work_tree: context.in_actions().then(|| work_tree.to_path_buf()),
        })
    }

    /// From now on, once a signal has been received, says so and cuts all waiting short.
    pub fn hurry_after(&mut self, cancel: &Cancel) {
        let signals = cancel.beyond_deadline();
        say_on(&signals, &self.latest, &self.run_dir);
        self.cancel = Some(signals);
    }

    /// Starts reporting to GitHub, if that is wanted and there is a token.
    pub fn publish(
        &mut self,
        context: &Context,
        request: &RunRequest,
        run_id: &str,
        resumed: bool,
    ) {
        let Some(actions) = ActionsEnvironment::of(context).filter(|_| request.delivery.report)
        else {
            return;
        };
        let known = self.run_dir.read_json(RunFile::OnGithub);
        let mut known: Known = known.unwrap_or_default();
        if known.comment.is_none() {
            known.comment.clone_from(&request.comment);
        }
        let mut request = request.clone();
        let run = request.context.place.run.as_ref();
        request.state.workflow_run = run.and_then(|run| run.id.parse().ok());
        let place = self.run_dir.clone();
        // If this fails, a later process searches for them.
        let keep = move |known: &Known| drop(place.write_json(RunFile::OnGithub, known));
        // A resumed run updates the existing check run and comment.
        let pages = CheckAndComment::new(request, run_id.to_owned(), known, resumed, keep);
        let is_job_token = actions.is_job_token();
        match Publisher::start(pages, self.latest.clone(), move || actions.repo()) {
            Ok(publisher) => {
                if let Some(log) = &self.actions_log {
                    // The check run gets the annotations. If that fails, they are written to the log at
                    // the end.
                    let groups = WorkflowCommands::new(log.clone(), false);
                    self.reporters.replace(LOG_COMMANDS, Box::new(groups));
                }
                self.publishing = Some(Publishing {
                    publisher,
                    is_job_token,
                    hurry: context.after_signal(CANCELLED_REPORT_TIMEOUT),
                });
            }
            Err(error) => self.warn(format!("the run is not reported to GitHub: {error}")),
        }
    }

    /// Reports the end of the run to GitHub. Failures become warnings. Returns whether anything is there, if that is
    /// wanted.
    fn end_publishing(&mut self) -> bool {
        let Some(publishing) = self.publishing.take() else {
            return true;
        };
        let push = self.summary.push.as_ref().filter(|push| push.pushed);
        let dispatched = push.map_or(Vec::new(), |push| push.dispatched.clone());
        let is_cancelled = self.summary.status == Some(RunStatus::Cancelled);
        let patience = if is_cancelled {
            publishing.hurry
        } else {
            REPORT_TIMEOUT
        };
        let end = End {
            ci_will_not_start: push.is_some() && dispatched.is_empty() && publishing.is_job_token,
            dispatched,
            pushed: push.and_then(|push| push.head.clone()),
            until: Instant::now() + patience,
            hurried: is_cancelled,
        };
        let published =
            publishing
                .publisher
                .finish(&self.summary, end, || self.is_stopped(), publishing.hurry);
        if !published.complete {
            self.status = ReportStatus::Degraded;
        }
        let is_there = published.check_url.is_some() || published.comment_url.is_some();
        for incident in published.incidents {
            self.warn(format!("GitHub: {incident}"));
        }
        if !published.annotated
            && let Some(log) = &self.actions_log
        {
            let commands = annotation_commands(&annotations(&self.summary));
            let written = log.command(&commands).and_then(|()| log.finish());
            self.note_written("annotations", written.map_err(Into::into));
            self.drain();
        }
        is_there
    }

    /// Adds a warning unless it is known, and prints it, because the reports may be closed already.
    fn warn(&mut self, warning: String) {
        let warning = self.redactor.redact(&warning).into_owned();
        if !self.summary.warnings.contains(&warning) {
            print_warning(&warning, self.time());
            self.summary.warnings.push(warning);
        }
    }

    /// Reports and stores an event.
    ///
    /// # Errors
    /// When it cannot be stored for resuming the run. All reports have received it nevertheless.
    pub fn take(&mut self, mut event: Event) -> anyhow::Result<()> {
        self.seq = event.seq;
        if let (EventKind::Warning { message, .. }, Some(root)) = (&mut event.kind, &self.work_tree)
        {
            *message = relative(message, root);
        }
        let clean = redacted(&self.redactor, &event)?;
        self.summary.apply(&clean);
        let kept = self.keep(&event, &clean);
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.take(&clean, &self.summary);
        }
        let stopped = self.reporters.report(&clean, &self.summary);
        if !stopped.is_empty() {
            self.status = ReportStatus::Degraded;
            self.summary.warnings.extend(stopped);
        }
        kept
    }

    /// Records how a person continues the run, before its first event says so.
    pub fn note_continuation(&mut self, continuation: Continuation) {
        self.summary.facts.continuation = continuation;
    }

    /// Reports that an error ended the run, instead of a decision.
    pub fn record_error(&mut self, error: &Error) {
        let (status, reason) = end_of(error.kind);
        let ended = EventKind::RunEnded {
            status,
            reason,
            exit_code: error.exit_code(),
            head: self.summary.head.clone(),
            changed_files: self.summary.changed_files_so_far().into_iter().collect(),
        };
        let remedies = error.hints.clone();
        let (last, elapsed_ms) = (self.seq, self.summary.elapsed_ms);
        // The error may be that nothing can be stored, so a failure to store is ignored.
        let mut take = |event| self.take(event);
        let mut emit = Emitter::new(&mut take, last, elapsed_ms);
        emit.warn_about(WarningTopic::Error { remedies }, error.without_hints());
        emit.emit(ended);
    }

    /// Stores an event before the history continues, because the summary is made from the events.
    /// Secrets are redacted, but task ids stay as in the history.
    fn keep(&mut self, event: &Event, clean: &Event) -> anyhow::Result<()> {
        let is_kept = match &event.kind {
            EventKind::Agent(kind) => matches!(kind, AgentEvent::Todo { .. }),
            EventKind::TurnProgress(_) => false,
            _ => true,
        };
        let Some(file) = self.record.as_mut().filter(|_| is_kept) else {
            return Ok(());
        };
        let mut line = serde_json::to_vec(&with_ids(clean, event))?;
        line.push(b'\n');
        let mut written = file.write_all(&line);
        if written.is_ok() && is_milestone(&event.kind) {
            written = file.sync_data();
        }
        if written.is_err() {
            // Lines after an incomplete one could not be read, so nothing more is written.
            self.record = None;
        }
        let path = || self.run_dir.path(RunFile::EventRecord);
        written.with_context(|| format!("{} cannot be written", path().display()))
    }

    /// Writes the reports, the summary, the step summary and the action's outputs. Failures become
    /// warnings and never change the exit code. Returns the number of the last event.
    pub fn finish(mut self, context: &Context) -> u64 {
        // Nothing new is shown by this.
        self.latest.send_if_modified(|latest| {
            latest.is_over = true;
            false
        });
        // First the files of the run directory, so that they exist whatever else fails.
        let all = Format::value_variants().iter().copied();
        let written = self.summary.clone();
        self.write(all.clone());
        self.drain();
        let time = self.time();
        for warning in self.reporters.warnings() {
            print_warning(&self.redactor.redact(warning), time);
        }
        let mut is_posted = self.end_publishing();
        if let Some(path) = context.path_var("GITHUB_STEP_SUMMARY") {
            // The limit is the step's, and its other programs may have written to the file.
            let there = std::fs::metadata(&path).map_or(0, |about| about.len());
            let there = usize::try_from(there).unwrap_or(usize::MAX);
            let room = markdown::STEP_SUMMARY_BYTES.saturating_sub(there);
            let text = markdown::step_summary(&self.summary, room);
            is_posted |= self.append(&path, &text, "step summary (GITHUB_STEP_SUMMARY)");
        }
        if !is_posted {
            self.status = ReportStatus::Failed;
        }
        if let Some(path) = context.path_var("GITHUB_OUTPUT") {
            let run_dir = &self.run_dir;
            let report = run_dir.path(RunFile::Report(Format::Html));
            let beyond = OtherOutputs {
                report_status: self.status,
                report_path: Some(report.display().to_string()),
                session_id: conversation::session_id(run_dir),
                final_message: conversation::final_message(run_dir),
            };
            let delimiter = format!("sprag_{}", uuid::Uuid::new_v4().simple());
            let text = github_output(&outputs(&self.summary, &beyond), &delimiter);
            let _ = self.append(&path, &text, "outputs (GITHUB_OUTPUT)");
        }
        if let Some(telemetry) = self.telemetry.take() {
            for fault in telemetry.send(self.time(), &self.redactor) {
                self.warn(fault);
            }
        }
        // Again, to include the warnings that were added since.
        if self.summary != written {
            self.write(all.filter(|format| !format.shows_sources()));
        }
        self.seq
    }

    fn write(&mut self, formats: impl IntoIterator<Item = Format>) {
        for format in formats {
            let mut sources = Vec::new();
            if format.shows_sources() {
                sources = report_sources::sources(self.run_dir.root());
            }
            for source in &mut sources {
                source.text = self.redactor.redact(&source.text).into_owned();
            }
            let text = render(&self.summary, &sources, format);
            let written = (self.run_dir).write(RunFile::Report(format), text.as_bytes());
            self.note_written(format.what(), written.map(drop));
        }
    }

    fn note_written(&mut self, what: &str, written: anyhow::Result<()>) {
        let Err(error) = written else { return };
        self.status = ReportStatus::Degraded;
        // A failed write of the summary itself would hide the warning, so it is printed, too.
        self.warn(format!("the {what} could not be written: {error:#}"));
    }

    /// Whether a signal has been received.
    fn is_stopped(&self) -> bool {
        let cancel = self.cancel.as_ref();
        cancel.is_some_and(|cancel| cancel.reason().is_some())
    }

    /// Little time is left if the run was cancelled, or a signal arrived since it ended.
    fn time(&self) -> Time {
        if self.summary.status == Some(RunStatus::Cancelled) || self.is_stopped() {
            Time::Short
        } else {
            Time::Enough
        }
    }

    /// Waits until the readers have received everything.
    fn drain(&mut self) {
        let time = self.time();
        let drained = self.outputs.0.iter().map(|(name, output, has_person)| {
            let drained = output.drain(drain_timeout(time, *has_person));
            drained.map_err(|error| format!("the {name} report is incomplete: {error}"))
        });
        let incomplete: Vec<String> = drained.filter_map(Result::err).collect();
        for warning in incomplete {
            self.status = ReportStatus::Degraded;
            self.warn(warning);
        }
    }

    /// Returns whether the text was written.
    fn append(&mut self, path: &Path, text: &str, what: &str) -> bool {
        let written = append_only(path).and_then(|mut file| {
            file.write_all(text.as_bytes())
                .with_context(|| path.display().to_string())
        });
        let is_written = written.is_ok();
        self.note_written(what, written);
        is_written
    }
}

/// The streams of the reports: name, output, and whether it is a terminal.
#[derive(Default)]
struct BufferedOutputs(Vec<(&'static str, BufferedOutput, bool)>);

impl BufferedOutputs {
    fn open(
        &mut self,
        name: &'static str,
        out: &impl AsFd,
        is_terminal: bool,
    ) -> Result<Box<dyn Write + Send>> {
        let output = BufferedOutput::new(out).map_err(anyhow::Error::from)?;
        self.0.push((name, output.clone(), is_terminal));
        Ok(Box::new(output))
    }
}

/// An event or a summary without secrets.
fn redacted<'v, T>(redactor: &Redactor, value: &'v T) -> anyhow::Result<Cow<'v, T>>
where
    T: Serialize + DeserializeOwned + Clone,
{
    let clean = redactor.redacted(value);
    clean.context("an event cannot be redacted, so it is not reported")
}

/// The redacted event with the original task ids, because tasks are looked up by them.
fn with_ids<'e>(clean: &'e Event, event: &Event) -> Cow<'e, Event> {
    let mut with = Cow::Borrowed(clean);
    if clean.place.task != event.place.task {
        with.to_mut().place.task.clone_from(&event.place.task);
    }
    if let (EventKind::RunStarted(clean), EventKind::RunStarted(started)) =
        (&clean.kind, &event.kind)
        && clean != started
    {
        let mut clean = clean.clone();
        for (line, original) in clean.tasks.iter_mut().zip(&started.tasks) {
            line.id.clone_from(&original.id);
        }
        with.to_mut().kind = EventKind::RunStarted(clean);
    }
    with
}

/// Whether the event contains data that the history lacks: counts, cost, and results.
fn is_milestone(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::TurnEnded { usage: Some(_), .. }
            | EventKind::TurnAssessed(_)
            | EventKind::ReviewEnded(_)
            | EventKind::CommitCreated { .. }
            | EventKind::TaskEnded(_)
            | EventKind::RunEnded { .. }
    )
}

/// The file for the events as JSON lines.
fn events_output(path: &Path, outputs: &mut BufferedOutputs) -> Result<Box<dyn Write + Send>> {
    let file = File::create(path).map_err(|error| {
        Error::usage(format!("--events {}: {error}", path.display()))
            .hint("name a file in a directory that exists, or - for standard output")
    })?;
    if file.metadata().is_ok_and(|it| it.is_file()) {
        Ok(Box::new(file))
    } else {
        // A pipe has a reader, which may stop reading.
        outputs.open("JSONL", &file, false)
    }
}

/// The size of the terminal; 80 by 24 if it is unknown.
fn size(of_stderr: bool) -> Size {
    let told = if of_stderr {
        rustix::termios::tcgetwinsize(stderr())
    } else {
        rustix::termios::tcgetwinsize(stdout())
    };
    let (columns, rows) = told.map_or((0, 0), |told| (told.ws_col, told.ws_row));
    Size {
        columns: if columns == 0 { 80 } else { columns },
        rows: if rows == 0 { 24 } else { rows },
    }
}
