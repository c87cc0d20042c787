//! A running child: copies its input and output, watches its limits, and ends it.

use std::borrow::Cow;
use std::future::pending;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until};

use super::cancel::{Cancel, Urgency};
use super::command::{CommandSpec, Input, Limits};
use super::dialogue::{Dialogue, Next};
use super::exit::{Ended, Exit, Leaked, StreamKind};
use super::host::{Proc, State};
use super::launcher::{self, Launcher};
use super::output::Output;
use super::registry;
use super::service::{Registration, Service, discard};
use super::spawn::Started;
use super::tree::{Tree, gives_up};
use super::{marker, spawn};
use crate::sandbox::{Report, Status};

/// How long a child gets to exit by itself once its dialogue is over.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// How often orphans are reaped while a child runs.
const REAP_EVERY: Duration = Duration::from_secs(1);
/// How often to check whether members of the tree are still alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// After the child has ended: how long the output may stay silent and open, and how long it is read at
/// most.
const DRAIN_QUIET: Duration = Duration::from_millis(500);
const DRAIN_LIMIT: Duration = Duration::from_secs(2);
/// How long descendants get to end by themselves after the child has.
const SETTLE: Duration = Duration::from_millis(200);
/// How many checks in a row must find no orphan before none is assumed to be left, and the pause between
/// two checks. A check is not a snapshot of the process table: it can miss a process that starts a
/// successor and ends at the same time, but several checks cannot.
const QUIET_CHECKS: u32 = 3;
const QUIET_PAUSE: Duration = Duration::from_millis(1);
/// How many checks to make for processes that a namespace's first process reports as left.
const MAX_CHECKS: u32 = 32;
/// The pause between two rounds of killing.
const KILL_PAUSE: Duration = Duration::from_millis(5);

/// Runs a child until it ends for any reason, and ends its descendants.
///
/// `on_output` gets the output as it arrives, in chunks of at most 128 KiB. If it is slow, the child
/// blocks once its pipe is full. A cancelled run ends with SIGTERM to the whole tree, the grace period,
/// and SIGKILL; a forced one with SIGKILL at once. Dropping the future also kills the tree.
pub async fn run(
    spec: &CommandSpec,
    cancel: &Cancel,
    on_output: &mut dyn FnMut(StreamKind, &[u8]),
) -> Ended {
    run_and(spec, cancel, on_output, false).await.0
}

/// As [`run`], but processes that a successful child leaves running continue as a [`Service`].
pub async fn run_keeping(
    spec: &CommandSpec,
    cancel: &Cancel,
    on_output: &mut dyn FnMut(StreamKind, &[u8]),
) -> (Ended, Option<Service>) {
    run_and(spec, cancel, on_output, true).await
}

async fn run_and(
    spec: &CommandSpec,
    cancel: &Cancel,
    on_output: &mut dyn FnMut(StreamKind, &[u8]),
    keeps: bool,
) -> (Ended, Option<Service>) {
    let began = Instant::now();
    let started = match cancel.reason() {
        Some(reason) => Err(Exit::Cancelled(reason)),
        None => spawn::start(spec).await,
    };
    let started = match started {
        Ok(started) => started,
        Err(exit) => return (never_started(exit, began), None),
    };
    let mut live = Live::new(started, &spec.stdin, began, cancel, on_output);
    let cut_short = live.watch(&spec.limits).await;
    if cut_short.is_some() {
        let rest = live.say_farewell(spec.limits.grace).await;
        live.terminate(rest).await;
    }
    let report = live.hear_launcher();
    if let Some(exit) = spawn::not_started(spec, &report) {
        live.registration.release();
        return (never_started(exit, began), None);
    }
    live.drain(cut_short.is_none()).await;
    if live.is_over() {
        return (live.finish(cut_short, Vec::new()).await, None);
    }
    let left = live.settle(cut_short.is_none()).await;
    let succeeded = cut_short.is_none() && live.raw == Some(Status::Code(0));
    if keeps && succeeded && !left.is_empty() {
        let (ended, service) = live.keep(&left);
        return (ended, Some(service));
    }
    let leaked = live
        .end_descendants(left, cut_short.is_none(), spec.limits.grace)
        .await;
    (live.finish(cut_short, leaked).await, None)
}

fn never_started(exit: Exit, began: Instant) -> Ended {
    Ended {
        exit,
        raw: None,
        elapsed: began.elapsed(),
        leaked: Vec::new(),
    }
}

struct Live<'a> {
    // Declared first to be dropped first: it kills the tree while the child's id is still in use.
    registration: Registration,
    tree: Tree,
    child: Child,
    /// The child's launcher. It also keeps the child alive, see [`Launcher`].
    launcher: Option<Launcher>,
    /// The first process of the child's namespace, which does not count as a descendant.
    first_process: Option<i32>,
    /// Whether the child has ended. Its launcher may still wait for processes that the child has left.
    exited: bool,
    /// Whether the started process, which is the launcher if there is one, has ended.
    reaped: bool,
    raw: Option<Status>,
    stdout: Output<ChildStdout>,
    stderr: Output<ChildStderr>,
    stdin: Option<ChildStdin>,
    dialogue: Option<&'a Dialogue>,
    unwritten: Cow<'a, [u8]>,
    written: usize,
    began: Instant,
    last_output: Option<Instant>,
    cancel: &'a Cancel,
    on_output: &'a mut dyn FnMut(StreamKind, &[u8]),
}

/// Why [`Live::pump`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeReason {
    /// The given time has come.
    Due,
    /// The child itself has just ended.
    Exited,
    /// The child and both outputs have ended.
    Closed,
    /// The cancellation has reached the given urgency.
    Cancelled,
}

impl<'a> Live<'a> {
    fn new(
        started: Started,
        stdin: &'a Input,
        began: Instant,
        cancel: &'a Cancel,
        on_output: &'a mut dyn FnMut(StreamKind, &[u8]),
    ) -> Self {
        let Started {
            mut child,
            registration,
            launcher,
        } = started;
        let (dialogue, unwritten) = match stdin {
            Input::Null => (None, Cow::default()),
            Input::Bytes(bytes) => (None, Cow::from(bytes)),
            Input::Dialogue(dialogue) => (Some(dialogue), Cow::default()),
        };
        Self {
            tree: Tree::new(registration.origin.clone()),
            registration,
            launcher,
            first_process: None,
            exited: false,
            reaped: false,
            raw: None,
            stdout: Output::new(child.stdout.take()),
            stderr: Output::new(child.stderr.take()),
            stdin: child.stdin.take(),
            dialogue,
            unwritten,
            written: 0,
            child,
            began,
            last_output: None,
            cancel,
            on_output,
        }
    }

    /// Reads the launcher's report and applies it to the child's exit status.
    fn hear_launcher(&mut self) -> Report {
        let report = self.launcher.as_mut().map(Launcher::report);
        let report = report.unwrap_or_default();
        self.first_process = report.first_process;
        if let (Some(signal), Some(_)) = (report.signal, self.raw) {
            self.raw = Some(Status::Signal(signal));
        }
        report
    }

    /// Waits for the child. `None` if it ended by itself, else why it has to be ended.
    async fn watch(&mut self, limits: &Limits) -> Option<Exit> {
        let mut next_reap = self.began + REAP_EVERY;
        let mut dismissed = None;
        loop {
            let (limit, _) = next_limit(limits, self.began, self.last_output).unzip();
            let due = limit.map_or(next_reap, |limit| next_reap.min(limit));
            match self.pump(due, Some(Urgency::Asked)).await {
                WakeReason::Exited | WakeReason::Closed => return None,
                WakeReason::Cancelled => return self.cancel.reason().map(Exit::Cancelled),
                WakeReason::Due => {}
            }
            let now = Instant::now();
            if now >= next_reap {
                registry::reap_orphans();
                registry::update_kept();
                next_reap = now + REAP_EVERY;
            }
            if self.dialogue.is_some_and(Dialogue::is_over) {
                let since = *dismissed.get_or_insert(now);
                if now >= since + EXIT_GRACE {
                    return Some(Exit::Dismissed);
                }
            }
            // Output may have arrived in the meantime, so the limit is computed again.
            match next_limit(limits, self.began, self.last_output) {
                Some((limit, exit)) if now >= limit => return Some(exit),
                _ => {}
            }
        }
    }

    /// Sends the dialogue's last message to a child that will be ended, and waits at most half of the
    /// grace period for the end of the dialogue. Returns the rest of the grace period.
    async fn say_farewell(&mut self, grace: Duration) -> Duration {
        let Some(dialogue) = self.dialogue else {
            return grace;
        };
        if !dialogue.say_farewell() {
            return grace;
        }
        let began = Instant::now();
        let until = began + grace / 2;
        while !self.exited && !dialogue.is_over() && Instant::now() < until {
            let look = until.min(Instant::now() + CHECK_INTERVAL);
            if self.wait_until(look, Some(Urgency::Forced)).await == WakeReason::Cancelled {
                break;
            }
        }
        grace.saturating_sub(began.elapsed())
    }

    /// Asks the whole tree to terminate, waits for the grace period, and kills what is left.
    async fn terminate(&mut self, grace: Duration) {
        // A grace period that the clock cannot represent lasts until everything has ended.
        let deadline = Instant::now().checked_add(grace);
        self.tree.terminate();
        while deadline.is_none_or(|deadline| Instant::now() < deadline) {
            let alive = self.tree.terminate();
            if self.exited && alive == 0 {
                return;
            }
            let look = Instant::now() + CHECK_INTERVAL;
            let look = deadline.map_or(look, |deadline| look.min(deadline));
            if self.wait_until(look, Some(Urgency::Forced)).await == WakeReason::Cancelled {
                break;
            }
        }
        self.kill().await;
    }

    /// Kills the whole tree, in several rounds.
    async fn kill(&mut self) {
        let began = Instant::now();
        let mut round = 0;
        loop {
            let alive = self.tree.kill_round(round);
            let done = alive == 0 && self.exited;
            if done || gives_up(began.elapsed(), round, || self.tree.members()) {
                return;
            }
            round += 1;
            self.wait_until(Instant::now() + KILL_PAUSE, None).await;
        }
    }

    /// Reads the rest of the output after the child has ended, for as long as it may take if a process still holds it
    /// open.
    async fn drain(&mut self, ended_by_itself: bool) {
        let ended = Instant::now();
        // The last output of a cancelled child is read, too. Its tree is dead, so this does not take
        // long.
        let urgency = ended_by_itself.then_some(Urgency::Asked);
        while self.output_is_open() {
            let quiet = self.last_output.map_or(ended, |last| last.max(ended)) + DRAIN_QUIET;
            let due = quiet.min(ended + DRAIN_LIMIT);
            if Instant::now() >= due || self.pump(due, urgency).await == WakeReason::Cancelled {
                return;
            }
        }
    }

    /// Whether nothing is left to end or to read, so that neither has to be waited for. Also a process that is no
    /// descendant belongs to the child if it has its marker.
    fn is_over(&mut self) -> bool {
        let is_quiet = self.reaped && !self.output_is_open() && registry::has_no_descendants();
        is_quiet && self.tree.members().is_empty()
    }

    /// If the child ended by itself, waits a moment for its descendants to do the same. Returns those
    /// that are left.
    async fn settle(&mut self, ended_by_itself: bool) -> Vec<Proc> {
        let patience = Instant::now() + SETTLE;
        let mut pause = Duration::from_millis(5);
        let mut left = self.tree.members();
        while ended_by_itself && !left.is_empty() && Instant::now() < patience {
            let look = Instant::now() + pause;
            if self.wait_until(look, Some(Urgency::Asked)).await == WakeReason::Cancelled {
                break;
            }
            pause *= 2;
            left = self.tree.members();
        }
        left
    }

    /// Ends orphans until there are none. Returns whether that succeeded, and the first orphans that
    /// were found.
    async fn end_orphans(&self) -> (bool, Vec<(Proc, String)>) {
        let began = Instant::now();
        let mut missed = Vec::new();
        let mut round = 0;
        while !self.has_no_orphans().await {
            if gives_up(began.elapsed(), round, || self.tree.orphans()) {
                return (false, missed);
            }
            round += 1;
            if missed.is_empty() {
                missed = marker::describe(&self.tree.orphans());
            }
            self.tree.kill_orphans();
        }
        (true, missed)
    }

    /// Whether several checks find no orphan. After the end of a namespace's first process no check is
    /// needed, because nothing of the namespace is left.
    async fn has_no_orphans(&self) -> bool {
        if self.first_process.is_some() {
            return true;
        }
        for look in 0..QUIET_CHECKS {
            if look > 0 {
                tokio::time::sleep(QUIET_PAUSE).await;
            }
            let orphans = self.tree.orphans();
            if orphans.iter().any(|proc| proc.state != State::Dead) {
                return false;
            }
        }
        true
    }

    /// The processes that are left, without the launcher and the first process of a namespace, which
    /// stay as long as there are others. Checks several times, because one check can miss a process
    /// that starts a successor and ends.
    fn remaining(&mut self, left: &[Proc]) -> Vec<Proc> {
        let launcher = self.launcher.is_some() && !self.reaped;
        let launcher = launcher.then_some(self.registration.origin.main.pid);
        let own = [self.first_process, launcher];
        let but_first = |procs: &[Proc]| -> Vec<Proc> {
            let others = procs.iter().filter(|proc| !own.contains(&Some(proc.pid)));
            others.copied().collect()
        };
        let is_alive = left.iter().any(|proc| proc.state != State::Dead);
        let mut others = but_first(left);
        let mut looks = 0;
        while is_alive && others.is_empty() && looks < MAX_CHECKS {
            others = but_first(&self.tree.members());
            looks += 1;
        }
        others
    }

    /// Ends the descendants that outlived the child. Returns them if the child ended by itself.
    async fn end_descendants(
        &mut self,
        left: Vec<Proc>,
        ended_by_itself: bool,
        grace: Duration,
    ) -> Vec<Leaked> {
        let mut described = Vec::new();
        if ended_by_itself && !left.is_empty() {
            described = marker::describe(&self.remaining(&left));
            self.terminate(grace).await;
        } else if !left.is_empty() {
            self.kill().await;
        }
        let (is_quiet, missed) = self.end_orphans().await;
        if ended_by_itself && described.len() < marker::MAX_DESCRIBED {
            described.extend(missed);
        }
        if self.output_is_open() {
            // All writers are dead, so only what is left in the pipe can be read.
            self.pump(Instant::now() + DRAIN_QUIET, Some(Urgency::Forced))
                .await;
        }
        registry::reap_orphans();
        if !is_quiet || !left.is_empty() {
            let alive = marker::describe(&self.tree.members());
            let survivors = marker::killed_processes(alive).into_iter();
            registry::note_survivors(survivors.filter(|process| !process.killed).collect());
        }
        marker::killed_processes(described)
    }

    /// Lets the descendants continue as a service.
    fn keep(self, left: &[Proc]) -> (Ended, Service) {
        let ended = self.ended(None, Vec::new());
        registry::keep(&self.registration.origin, left);
        let service = Service {
            registration: self.registration,
            tree: self.tree,
            child: self.child,
            _launcher: self.launcher,
            readers: [self.stdout.pipe.map(discard), self.stderr.pipe.map(discard)],
        };
        (ended, service)
    }

    async fn finish(mut self, cut_short: Option<Exit>, leaked: Vec<Leaked>) -> Ended {
        self.registration.reap(&mut self.child).await;
        let ended = self.ended(cut_short, leaked);
        self.registration.release();
        ended
    }

    fn ended(&self, cut_short: Option<Exit>, leaked: Vec<Leaked>) -> Ended {
        let exit = match (cut_short, self.raw) {
            (Some(exit), _) => exit,
            (None, Some(raw)) => raw.into(),
            (None, None) => Exit::SpawnFailed {
                why: "its exit status is lost".into(),
            },
        };
        Ended {
            exit,
            raw: self.raw,
            elapsed: self.began.elapsed(),
            leaked,
        }
    }

    /// Waits until a time and moves data meanwhile, even if there is none left to move.
    async fn wait_until(&mut self, until: Instant, urgency: Option<Urgency>) -> WakeReason {
        loop {
            match self.pump(until, urgency).await {
                WakeReason::Exited => {}
                WakeReason::Closed => {
                    tokio::select! {
                        () = sleep_until(until) => return WakeReason::Due,
                        () = reached(self.cancel, urgency) => return WakeReason::Cancelled,
                    }
                }
                woke @ (WakeReason::Due | WakeReason::Cancelled) => return woke,
            }
        }
    }

    /// Moves data in all directions until something else happens.
    async fn pump(&mut self, until: Instant, urgency: Option<Urgency>) -> WakeReason {
        loop {
            if self.exited && !self.output_is_open() {
                return WakeReason::Closed;
            }
            self.prepare_input();
            let left = self.unwritten.get(self.written..).unwrap_or_default();
            tokio::select! {
                read = self.stdout.read() => {
                    let chunk = self.stdout.accept(read);
                    if !chunk.is_empty() {
                        self.last_output = Some(Instant::now());
                        (self.on_output)(StreamKind::Stdout, chunk);
                    }
                }
                read = self.stderr.read() => {
                    let chunk = self.stderr.accept(read);
                    if !chunk.is_empty() {
                        self.last_output = Some(Instant::now());
                        (self.on_output)(StreamKind::Stderr, chunk);
                    }
                }
                written = write(&mut self.stdin, left), if !left.is_empty() => match written {
                    Some(count) => self.written += count,
                    None => self.stdin = None,
                },
                status = self.child.wait(), if !self.reaped => {
                    self.registration.origin.set_reaped();
                    self.reaped = true;
                    if !self.exited {
                        self.exited = true;
                        // An error means that another process has reaped the child, so its exit
                        // status is lost.
                        self.raw = status.ok().map(Status::from);
                        return WakeReason::Exited;
                    }
                }
                raw = launcher::stays(&mut self.launcher), if !self.exited => {
                    self.exited = true;
                    self.raw = Some(raw);
                    return WakeReason::Exited;
                }
                () = reached(self.cancel, urgency) => return WakeReason::Cancelled,
                () = sleep_until(until) => return WakeReason::Due,
            }
        }
    }

    /// Fetches the next input to write, and closes the input once there is none left.
    fn prepare_input(&mut self) {
        if self.written < self.unwritten.len() {
            return;
        }
        match self.dialogue.map(Dialogue::next) {
            Some(Next::Say(bytes)) => {
                self.unwritten = Cow::Owned(bytes);
                self.written = 0;
            }
            Some(Next::Wait) => {}
            Some(Next::Over) | None => self.stdin = None,
        }
    }

    fn output_is_open(&self) -> bool {
        self.stdout.pipe.is_some() || self.stderr.pipe.is_some()
    }
}

/// The number of bytes written; `None` if nobody reads them any more.
async fn write(stdin: &mut Option<ChildStdin>, bytes: &[u8]) -> Option<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await.ok().filter(|count| *count > 0),
        None => pending().await,
    }
}

/// When a child reaches its next limit without further output, and which limit that is.
fn next_limit(
    limits: &Limits,
    began: Instant,
    last_output: Option<Instant>,
) -> Option<(Instant, Exit)> {
    // A limit that the clock cannot represent is no limit.
    let timeout = limits
        .timeout
        .and_then(|after| Some((began.checked_add(after)?, Exit::TimedOut { after })));
    let start = limits.start.filter(|_| last_output.is_none());
    let silent = last_output.unwrap_or(began);
    let stall = start
        .or(limits.stall)
        .and_then(|after| Some((silent.checked_add(after)?, Exit::Stalled { after })));
    timeout.into_iter().chain(stall).min_by_key(|(at, _)| *at)
}

async fn reached(cancel: &Cancel, urgency: Option<Urgency>) {
    match urgency {
        Some(urgency) => drop(cancel.reached(urgency).await),
        None => pending().await,
    }
}

#[cfg(test)]
mod tests;
