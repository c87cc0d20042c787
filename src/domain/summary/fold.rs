//! Applies the events of a run to its summary.

use super::*;

impl RunSummary {
    /// The summary of a run's events.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut summary = Self::default();
        events.into_iter().for_each(|event| summary.apply(event));
        summary
    }

    /// Applies one event.
    pub fn apply(&mut self, event: &Event) {
        self.elapsed_ms = event.elapsed_ms;
        // A resumed task does not start again.
        if event.place.task.is_some() && !matches!(event.kind, EventKind::TaskEnded(_)) {
            self.current.clone_from(&event.place.task);
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
            EventKind::RetryScheduled(line) => self.retry_scheduled(event, line),
            EventKind::ProofEnded(line) => {
                self.on_task(event, |task| task.proofs.push((**line).clone()));
            }
            EventKind::VerificationSkipped { .. } => self.totals.verifications_skipped += 1,
            // A run that crashed right after a commit reports the commit again.
            EventKind::CommitCreated { commit, .. } if self.commits.contains(commit) => {}
            EventKind::CommitCreated { commit, .. } => self.commits.push(commit.clone()),
            EventKind::AgentCommits { commits } => {
                let count = u32::try_from(commits.len()).unwrap_or(u32::MAX);
                self.on_task(event, |task| task.work.agent_commits = count);
            }
            EventKind::PushEnded(push) => self.push_ended(push),
            EventKind::TaskEnded(ended) => self.task_ended(event, ended),
            EventKind::HostsDenied { hosts } => {
                let network = self
                    .facts
                    .sandbox
                    .as_mut()
                    .and_then(|line| line.network.as_mut());
                if let Some(network) = network {
                    network.note_denied(hosts);
                }
            }
            EventKind::Warning { message, topic } => self.warn(message.clone(), topic.clone()),
            EventKind::CommitRejected { by_hook, .. } => {
                self.on_task(event, |task| task.refused_by_hook = Some(*by_hook));
            }
            EventKind::RunEnded {
                status,
                reason,
                exit_code,
                head,
                changed_files,
            } => {
                (self.status, self.reason) = (Some(*status), Some(*reason));
                self.exit_code = Some(*exit_code);
                self.head.clone_from(head);
                self.changed_files.clone_from(changed_files);
                self.current = None;
            }
            EventKind::Agent(_)
            | EventKind::SetupStarted { .. }
            | EventKind::SetupEnded(_)
            | EventKind::CheckStarted { .. }
            | EventKind::ProofStarted {}
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
        Some(&lines.find(|line| line.warning == warning)?.topic)
    }

    /// The topics of the warnings.
    pub fn topics(&self) -> impl Iterator<Item = &WarningTopic> {
        self.warning_topics.iter().map(|line| &line.topic)
    }

    /// Whether there is a warning with this topic.
    pub fn has_warned(&self, topic: &WarningTopic) -> bool {
        self.topics().any(|known| known == topic)
    }

    /// The error that ended the run, and its remedies.
    pub fn last_error(&self) -> Option<(&str, &[String])> {
        self.warning_topics.iter().rev().find_map(|line| {
            let WarningTopic::Error { remedies } = &line.topic else {
                return None;
            };
            Some((self.warnings.get(line.warning)?.as_str(), &remedies[..]))
        })
    }

    /// The pull request of the branch that was pushed.
    pub fn pull_request(&self) -> Option<&PullRequestLine> {
        self.push.as_ref()?.pull_request.as_ref()
    }

    /// The tasks that are done.
    pub fn done(&self) -> impl Iterator<Item = &TaskSummary> {
        let tasks = self.tasks.iter();
        tasks.filter(|task| task.status == TaskEnd::Done)
    }

    /// The tasks that were worked on and are not done.
    pub fn undone(&self) -> impl Iterator<Item = &TaskSummary> {
        self.tasks.iter().filter(|task| task.is_undone())
    }

    /// The files changed by the completed tasks.
    pub fn changed_files_so_far(&self) -> std::collections::BTreeSet<String> {
        let files = self.done().flat_map(|task| &task.work.changed_files);
        files.cloned().collect()
    }

    /// The hosts that were requested and that the setting `network` does not allow.
    pub fn denied_hosts(&self) -> &[DeniedHost] {
        let network = self
            .facts
            .sandbox
            .as_ref()
            .and_then(|line| line.network.as_ref());
        network.map_or(&[], |line| &line.denied)
    }

    /// The task with this id.
    pub fn task(&self, id: &str) -> Option<&TaskSummary> {
        self.tasks.iter().find(|task| task.id == id)
    }

    fn started(&mut self, started: &RunStarted) {
        let before = std::mem::take(&mut self.facts);
        let mut now = started.facts.clone();
        // For a resumed run, the weaker confinement counts.
        now.sandbox = match (before.sandbox, now.sandbox) {
            (Some(before), Some(now)) => Some(before.lesser(&now)),
            (before, now) => before.or(now),
        };
        now.gateway = weaker(before.gateway, now.gateway);
        if started.resumed && !before.run_id.is_empty() {
            self.facts = RunFacts {
                run_id: before.run_id,
                branch: before.branch,
                base: before.base,
                plan: before.plan,
                agent: before.agent,
                model: before.model,
                host: before.host,
                checks: before.checks,
                ..now
            };
            // The error that ended the run before does not keep it from its end now.
            let is_error = |line: &TopicLine| matches!(line.topic, WarningTopic::Error { .. });
            self.warning_topics.retain(|line| !is_error(line));
            return;
        }
        self.head.clone_from(&now.base);
        self.facts = now;
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
        let part = match event.place.phase {
            None => Some((1, Phase::Implement)),
            Some(name) => name.counted_in(),
        };
        if let (Some(attempt), Some(part), Some(task)) =
            (event.place.attempt, part, self.task_mut(event))
        {
            let counted = task.counted.0.entry(part).or_default();
            let begun = attempt.saturating_sub(counted.attempts);
            counted.attempts += begun;
            task.attempts += begun;
            self.totals.attempts += begun;
        }
    }

    /// A run that crashed right after it reported a review reports it again.
    fn review_ended(&mut self, event: &Event, line: &ReviewLine) {
        let open = review::open(&line.findings);
        let review = ReviewSummary {
            round: line.round,
            of: line.of,
            verdict: line.verdict,
            incomplete: line.incomplete,
            open: u32::try_from(open.count()).unwrap_or(u32::MAX),
        };
        self.on_task(event, |task| {
            task.reviews.retain(|before| before.round != review.round);
            task.reviews.push(review);
            task.findings.clone_from(&line.findings);
        });
    }

    /// An interrupted turn is not listed among the turns, but its cost counts.
    fn used(&mut self, event: &Event, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        self.usage.add(usage);
        self.on_task(event, |task| task.usage.add(usage));
    }

    fn turn_assessed(&mut self, event: &Event, line: &TurnLine) {
        self.used(event, Some(&line.usage));
        let writer = event.place.task.as_deref().unwrap_or_default();
        for text in &line.notes {
            let note = Note {
                task: writer.to_owned(),
                at: event.ts.clone(),
                text: text.clone(),
            };
            let is_same = |known: &Note| known.task == note.task && known.text == note.text;
            if !self.notes.iter().any(is_same) {
                self.notes.push(note);
            }
        }
        let prompt = self.prompt.take();
        let turn = event.place.turn.unwrap_or_default();
        self.on_task(event, |task| {
            if line.failed_report.is_some() {
                task.failed_report.clone_from(&line.failed_report);
            }
            // A run that crashed right after it reported a turn repeats that turn.
            task.turns.retain(|known| known.turn != turn);
            task.turns.push(TurnSummary {
                turn,
                attempt: event.place.attempt.unwrap_or(task.attempts),
                purpose: line.purpose.clone(),
                prompt,
                place: event.place.phase,
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
        });
    }

    fn check_ended(&mut self, event: &Event, result: &CheckResult) {
        // A check on another tree says nothing about the work.
        let of_work = matches!(event.place.proof, None | Some(Proof::Flake));
        let ran = of_work && !matches!(result.outcome, CheckOutcome::Skipped { .. });
        if !ran {
            return;
        }
        self.on_task(event, |task| {
            let place = event.place.phase.map(|place| task.counted_place(place));
            let attempt = event.place.attempt.unwrap_or(1);
            let line = CheckLine::new(result, attempt, place, &event.ts);
            task.checks.push(line);
            if result.outcome.is_failure() {
                task.judge_session(false);
            }
        });
    }

    /// A run that crashed right after it reported a retry reports it again, with the same number.
    fn retry_scheduled(&mut self, event: &Event, line: &RetryLine) {
        let mut tasks = self.tasks.iter_mut();
        let Some(task) = tasks.find(|task| Some(&task.id) == event.place.task.as_ref()) else {
            return;
        };
        let part = event.place.phase.map(|name| (name.cycle, name.phase));
        let part = part.unwrap_or((1, Phase::Implement));
        let counted = task.counted.0.entry(part).or_default();
        let total = &mut self.totals;
        let (count, of_task, of_run) = match line.how {
            RetryKind::Nudge | RetryKind::Output => {
                (&mut counted.nudges, &mut task.nudges, &mut total.nudges)
            }
            RetryKind::Retry => (&mut counted.retries, &mut task.retries, &mut total.retries),
            RetryKind::Wait => return,
        };
        let more = line.n.saturating_sub(*count);
        *count += more;
        *of_task += more;
        *of_run += more;
    }

    fn task_ended(&mut self, event: &Event, ended: &TaskEnded) {
        // The cost of a task that is reported twice counts once.
        let known = self.task_mut(event).map(|task| task.usage);
        if known.is_none_or(|usage| usage == Usage::default()) {
            self.used(event, ended.elsewhere.as_ref());
        }
        let Some(task) = self.task_mut(event) else {
            return;
        };
        // An interrupted and resumed task ends twice; its second end contains the total.
        let before = std::mem::replace(&mut task.work, ended.work.clone()).verifications;
        task.status = ended.outcome.task_end();
        task.reason = Some(ended.outcome.reason());
        task.verified = ended.outcome.is_verified();
        task.commit = ended.outcome.commit().map(|id| id.0.clone());
        task.message = task.end_message(&ended.outcome);
        task.changes_made = Some(ended.changes_made);
        task.elapsed_ms = ended.elapsed_ms;
        let satisfied = task.reason == Some(Reason::AlreadySatisfied) && !task.checks.is_empty();
        if matches!(task.reason, Some(Reason::Verified | Reason::Drafted)) || satisfied {
            task.judge_session(true);
        }
        let total = &mut self.totals.verifications;
        *total = total
            .saturating_sub(before)
            .saturating_add(ended.work.verifications);
        self.totals.done = count(&self.tasks, |task| task.status == TaskEnd::Done);
        let output = &ended.work.structured_output;
        self.structured_output.clone_from(output);
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

    fn on_task(&mut self, event: &Event, change: impl FnOnce(&mut TaskSummary)) {
        if let Some(task) = self.task_mut(event) {
            change(task);
        }
    }

    fn task_mut(&mut self, event: &Event) -> Option<&mut TaskSummary> {
        let id = event.place.task.as_deref()?;
        self.tasks.iter_mut().find(|task| task.id == id)
    }
}

/// An agent that held its key in any part of a run counts as having held it in the run.
fn weaker(mut before: Vec<GatewayLine>, now: Vec<GatewayLine>) -> Vec<GatewayLine> {
    for line in now {
        match before.iter_mut().find(|known| known.agent == line.agent) {
            Some(known) if known.behind => *known = line,
            Some(_) => {}
            None => before.push(line),
        }
    }
    before
}

fn count(tasks: &[TaskSummary], wanted: impl Fn(&TaskSummary) -> bool) -> u32 {
    u32::try_from(tasks.iter().filter(|task| wanted(task)).count()).unwrap_or(u32::MAX)
}
