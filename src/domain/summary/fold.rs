//! Applies the events of a run to its summary.

use super::*;

impl RunSummary {
    /// The summary of a run's events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut summary = Self::default();
        for event in events {
            summary.apply(event);
        }
        summary
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.elapsed_ms = event.elapsed_ms;
        // A resumed task does not start again.
        if event.task.is_some() && !matches!(event.kind, EventKind::TaskEnded(_)) {
            self.current.clone_from(&event.task);
        }
        match &event.kind {
            EventKind::RunStarted(started) => self.started(started),
            EventKind::TaskStarted { .. } => self.task_started(event),
            EventKind::TurnStarted { prompt, .. } => {
                self.prompt = Some(prompt.clone());
                self.turn_started(event);
            }
            EventKind::TurnProgress(progress) => self.turn = Some(progress.clone()),
            EventKind::Agent(AgentEvent::Todo { items }) => self.todo.clone_from(items),
            EventKind::TurnEnded { usage, .. } => {
                self.turn = None;
                self.used(event, usage.as_ref());
            }
            EventKind::TurnAssessed(line) => self.turn_assessed(event, line),
            EventKind::ReviewEnded(line) => self.review_ended(event, line),
            EventKind::CheckEnded(result) => self.check_ended(event, result),
            EventKind::RetryScheduled { how, n, .. } => self.retry_scheduled(event, *how, *n),
            EventKind::ProofEnded(line) => {
                if let Some(task) = self.task_mut(event) {
                    task.proofs.push((**line).clone());
                }
            }
            EventKind::VerificationSkipped { .. } => self.totals.verifications_skipped += 1,
            // A run that crashed right after a commit reports the commit again.
            EventKind::CommitCreated { commit, .. } if self.commits.contains(commit) => {}
            EventKind::CommitCreated { commit, .. } => self.commits.push(commit.clone()),
            EventKind::AgentCommits { commits } => {
                let count = u32::try_from(commits.len()).unwrap_or(u32::MAX);
                if let Some(task) = self.task_mut(event) {
                    task.agent_commits = count;
                }
            }
            EventKind::PushEnded(push) => self.push_ended(push),
            EventKind::TaskEnded(ended) => self.task_ended(event, ended),
            EventKind::HostsDenied { hosts } => {
                let network = self.sandbox.as_mut().and_then(|line| line.network.as_mut());
                if let Some(network) = network {
                    network.note_denied(hosts);
                }
            }
            EventKind::Warning { message, topic } => self.warn(message.clone(), topic.clone()),
            EventKind::CommitRejected { by_hook, .. } => {
                if let Some(task) = self.task_mut(event) {
                    task.refused_by_hook = Some(*by_hook);
                }
            }
            EventKind::RunEnded {
                status,
                reason,
                exit_code,
                head,
                changed_files,
            } => {
                self.status = Some(*status);
                self.reason = Some(*reason);
                self.exit_code = Some(*exit_code);
                self.head.clone_from(head);
                self.changed_files.clone_from(changed_files);
                self.current = None;
            }
            EventKind::Agent(_)
            | EventKind::SetupStarted { .. }
            | EventKind::SetupEnded { .. }
            | EventKind::CheckStarted { .. }
            | EventKind::ProofStarted { .. }
            | EventKind::NudgeResolved { .. }
            | EventKind::CancelRequested { .. } => {}
        }
    }

    /// Adds a warning.
    pub fn warn(&mut self, message: String, topic: Option<WarningTopic>) {
        let warning = self.warnings.len();
        let line = topic.map(|topic| TopicLine { warning, topic });
        self.warning_topics.extend(line);
        self.warnings.push(message);
    }

    /// The topic of the warning at this position.
    pub fn topic_of(&self, warning: usize) -> Option<&WarningTopic> {
        let mut lines = self.warning_topics.iter();
        let line = lines.find(|line| line.warning == warning)?;
        Some(&line.topic)
    }

    /// The files changed by the completed tasks.
    pub fn changed_files_so_far(&self) -> std::collections::BTreeSet<String> {
        let done = self
            .tasks
            .iter()
            .filter(|task| task.status == TaskEnd::Done);
        done.flat_map(|task| task.changed_files.iter().cloned())
            .collect()
    }

    /// The hosts that were requested and that the setting `network` does not allow.
    pub fn denied_hosts(&self) -> &[DeniedHost] {
        let network = self.sandbox.as_ref().and_then(|line| line.network.as_ref());
        network.map_or(&[], |line| &line.denied)
    }

    /// The task with this id.
    pub fn task(&self, id: &str) -> Option<&TaskSummary> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// An agent that held its key in any part of a run counts as having held it in the run.
    fn gateway_of(&mut self, lines: &[GatewayLine]) {
        for line in lines {
            match self
                .gateway
                .iter_mut()
                .find(|known| known.agent == line.agent)
            {
                Some(known) if known.behind => known.clone_from(line),
                Some(_) => {}
                None => self.gateway.push(line.clone()),
            }
        }
    }

    fn started(&mut self, started: &RunStarted) {
        self.run_dir.clone_from(&started.run_dir);
        self.name.clone_from(&started.name);
        self.limits.clone_from(&started.limits);
        self.continuation.clone_from(&started.continuation);
        self.allow_dirty = started.allow_dirty;
        self.directories.clone_from(&started.directories);
        // For a resumed run, the weaker confinement counts.
        self.sandbox = match (self.sandbox.take(), &started.sandbox) {
            (Some(before), Some(now)) => Some(before.lesser(now)),
            (before, now) => before.or_else(|| now.clone()),
        };
        self.gateway_of(&started.gateway);
        if started.resumed && !self.run_id.is_empty() {
            // The error that ended the run before does not keep it from its end now.
            let is_error = |line: &TopicLine| matches!(line.topic, WarningTopic::Error { .. });
            self.warning_topics.retain(|line| !is_error(line));
            return;
        }
        self.run_id.clone_from(&started.run_id);
        self.branch.clone_from(&started.branch);
        self.base.clone_from(&started.base);
        self.head.clone_from(&started.base);
        self.plan.clone_from(&started.plan);
        self.agent.clone_from(&started.agent);
        self.model.clone_from(&started.model);
        self.host.clone_from(&started.host);
        self.checks.clone_from(&started.checks);
        self.tasks = started.tasks.iter().map(TaskSummary::from_line).collect();
        self.totals.tasks = count(&self.tasks, |_| true);
        self.totals.done = count(&self.tasks, |task| task.status == TaskEnd::Done);
    }

    /// A failed task that starts again resets its own counts; the run's counts continue.
    fn task_started(&mut self, event: &Event) {
        self.todo.clear();
        if let Some(task) = self.task_mut(event).filter(|task| task.reason.is_some()) {
            task.begin_anew();
        }
    }

    fn turn_started(&mut self, event: &Event) {
        self.totals.turns += 1;
        // A review belongs to the attempt that it judges.
        let part = match event.phase {
            None => Some((1, Phase::Implement)),
            Some(name) => name.counted_in(),
        };
        let (Some(attempt), Some(part)) = (event.attempt, part) else {
            return;
        };
        let Some(task) = self.task_mut(event) else {
            return;
        };
        let counted = task.counted.0.entry(part).or_default();
        let begun = attempt.saturating_sub(counted.attempts);
        counted.attempts += begun;
        task.attempts += begun;
        self.totals.attempts += begun;
    }

    /// A run that crashed right after it reported a review reports it again.
    fn review_ended(&mut self, event: &Event, line: &ReviewLine) {
        let Some(task) = self.task_mut(event) else {
            return;
        };
        let open = review::open(&line.findings);
        let review = ReviewSummary {
            round: line.round,
            of: line.of,
            verdict: line.verdict,
            incomplete: line.incomplete,
            open: u32::try_from(open.count()).unwrap_or(u32::MAX),
        };
        task.reviews.retain(|before| before.round != review.round);
        task.reviews.push(review);
        task.findings.clone_from(&line.findings);
    }

    /// An interrupted turn is not listed among the turns, but its cost counts.
    fn used(&mut self, event: &Event, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.usage.add(usage);
        if let Some(task) = self.task_mut(event) {
            task.usage.add(usage);
        }
    }

    fn turn_assessed(&mut self, event: &Event, line: &TurnLine) {
        self.used(event, Some(&line.usage));
        let writer = event.task.as_deref().unwrap_or_default();
        for text in &line.notes {
            let is_same = |known: &Note| known.task == writer && known.text == *text;
            if !self.notes.iter().any(is_same) {
                self.notes.push(Note {
                    task: writer.to_owned(),
                    at: event.ts.clone(),
                    text: text.clone(),
                });
            }
        }
        let prompt = self.prompt.take();
        let Some(task) = self.task_mut(event) else {
            return;
        };
        if line.failed_report.is_some() {
            task.failed_report.clone_from(&line.failed_report);
        }
        let attempt = event.attempt.unwrap_or(task.attempts);
        // A run that crashed right after it reported a turn repeats that turn.
        let turn = event.turn.unwrap_or_default();
        task.turns.retain(|known| known.turn != turn);
        task.turns.push(TurnSummary {
            turn,
            attempt,
            purpose: line.purpose.clone(),
            prompt,
            place: event.phase,
            assessment: line.assessment,
            indicators: line.indicators.clone(),
            detail: line.detail.clone(),
            question: line.question.clone(),
            before: line.before.clone(),
            after: line.after.clone(),
            exit: line.exit.clone(),
            elapsed_ms: line.elapsed_ms,
            usage: line.usage,
            builtin: line.builtin.clone(),
        });
    }

    fn check_ended(&mut self, event: &Event, result: &CheckResult) {
        // A check on another tree says nothing about the work.
        let of_work = matches!(event.proof, None | Some(Proof::Flake));
        let ran = of_work && !matches!(result.outcome, CheckOutcome::Skipped { .. });
        let attempt = event.attempt.unwrap_or(1);
        let Some(task) = self.task_mut(event) else {
            return;
        };
        if ran {
            let place = event.phase.map(|place| task.counted_place(place));
            task.checks
                .push(CheckLine::new(result, attempt, place, &event.ts));
        }
        let says = !matches!(result.outcome, CheckOutcome::Passed | CheckOutcome::Aborted);
        if ran && says {
            task.judge_session(false);
        }
    }

    /// A run that crashed right after it reported a retry reports it again, with the same number.
    fn retry_scheduled(&mut self, event: &Event, how: RetryKind, n: u32) {
        let id = event.task.as_deref();
        let task = self
            .tasks
            .iter_mut()
            .find(|task| Some(task.id.as_str()) == id);
        let Some(task) = task else { return };
        let (cycle, phase) = match event.phase {
            None => (1, Phase::Implement),
            Some(name) => (name.cycle, name.phase),
        };
        let counted = task.counted.0.entry((cycle, phase)).or_default();
        let (count, of_task, of_run) = match how {
            RetryKind::Nudge | RetryKind::Output => (
                &mut counted.nudges,
                &mut task.nudges,
                &mut self.totals.nudges,
            ),
            RetryKind::Retry => (
                &mut counted.retries,
                &mut task.retries,
                &mut self.totals.retries,
            ),
            RetryKind::Wait => return,
        };
        let more = n.saturating_sub(*count);
        *count += more;
        *of_task += more;
        *of_run += more;
    }

    fn task_ended(&mut self, event: &Event, ended: &TaskEnded) {
        // The cost of a task that is reported twice counts once.
        let is_counted = |task: &mut TaskSummary| task.usage != Usage::default();
        if !self.task_mut(event).is_some_and(is_counted) {
            self.used(event, ended.elsewhere.as_ref());
        }
        let Some(task) = self.task_mut(event) else {
            return;
        };
        // An interrupted and resumed task ends twice; its second end contains the total.
        let before = std::mem::replace(&mut task.verifications, ended.verifications);
        task.status = ended.outcome.task_end();
        task.reason = Some(ended.outcome.reason());
        task.verified = ended.outcome.is_verified();
        task.commit = ended.outcome.commit().map(|id| id.0.clone());
        task.message = task.end_message(ended);
        task.history = ended.history.iter().map(HistoryLine::from).collect();
        task.changes_made = Some(ended.changes_made);
        task.changed_files.clone_from(&ended.changed_files);
        task.failing_tests.clone_from(&ended.failing_tests);
        task.evidence.clone_from(&ended.evidence);
        task.signals.clone_from(&ended.signals);
        task.held.clone_from(&ended.held);
        task.answer.clone_from(&ended.answer);
        task.structured_output.clone_from(&ended.structured_output);
        task.patch.clone_from(&ended.patch);
        task.agent_commits = ended.agent_commits;
        task.elapsed_ms = ended.elapsed_ms;
        let satisfied = task.reason == Some(Reason::AlreadySatisfied) && !task.checks.is_empty();
        if task.reason == Some(Reason::Verified) || satisfied {
            task.judge_session(true);
        }
        let total = &mut self.totals.verifications;
        *total = total
            .saturating_sub(before)
            .saturating_add(ended.verifications);
        self.totals.done = count(&self.tasks, |task| task.status == TaskEnd::Done);
        self.structured_output.clone_from(&ended.structured_output);
    }

    /// Replaces the ids of rewritten commits with their new ids.
    fn push_ended(&mut self, push: &PushLine) {
        let now = |id: &String| match push.rebased.iter().find(|line| line.old == *id) {
            Some(line) => line.new.clone(),
            None => Some(id.clone()),
        };
        // This also applies when the commits are on another branch or in a file.
        self.commits = self.commits.iter().filter_map(now).collect();
        for task in &mut self.tasks {
            task.commit = task.commit.as_ref().and_then(now);
        }
        self.push = Some(push.clone());
    }

    fn task_mut(&mut self, event: &Event) -> Option<&mut TaskSummary> {
        let id = event.task.as_deref()?;
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}

fn count(tasks: &[TaskSummary], wanted: impl Fn(&TaskSummary) -> bool) -> u32 {
    u32::try_from(tasks.iter().filter(|task| wanted(task)).count()).unwrap_or(u32::MAX)
}
