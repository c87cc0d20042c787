//! Every text of a summary in one place, for what is to be done to all of them.

use super::{CheckLine, RunSummary, TaskSummary, TurnSummary};

impl RunSummary {
    /// Calls `each` with every text in which something foreign can stand: all but codes, times and
    /// formats' own words.
    pub fn for_each_text(&mut self, each: &mut impl FnMut(&mut String)) {
        for text in [&mut self.run_id, &mut self.run_dir, &mut self.agent] {
            each(text);
        }
        each(&mut self.plan.title);
        let options = [
            &mut self.branch,
            &mut self.head,
            &mut self.base,
            &mut self.plan.path,
            &mut self.current,
        ];
        options.into_iter().flatten().for_each(&mut *each);
        for list in [
            &mut self.checks,
            &mut self.changed_files,
            &mut self.commits,
            &mut self.warnings,
        ] {
            list.iter_mut().for_each(&mut *each);
        }
        if let Some(push) = &mut self.push {
            each(&mut push.branch);
            each(&mut push.detail);
            push.head.iter_mut().for_each(&mut *each);
            push.rescue.iter_mut().for_each(&mut *each);
            let pulls = push.pull_request.iter_mut();
            pulls.map(|pull| &mut pull.url).for_each(&mut *each);
        }
        for item in &mut self.todo {
            each(&mut item.text);
        }
        for task in &mut self.tasks {
            of_task(task, each);
        }
    }
}

fn of_task(task: &mut TaskSummary, each: &mut impl FnMut(&mut String)) {
    for text in [&mut task.id, &mut task.title, &mut task.message] {
        each(text);
    }
    let options = [&mut task.commit, &mut task.patch];
    options.into_iter().flatten().for_each(&mut *each);
    task.changed_files.iter_mut().for_each(&mut *each);
    if let Some(report) = &mut task.failed_report {
        each(&mut report.summary);
        let sections = [
            &mut report.requirements,
            &mut report.problems,
            &mut report.solutions,
        ];
        sections.into_iter().flatten().for_each(&mut *each);
    }
    for turn in &mut task.turns {
        of_turn(turn, each);
    }
    for line in &mut task.history {
        line.changes.iter_mut().for_each(&mut *each);
        line.errors.iter_mut().for_each(&mut *each);
        each(&mut line.outcome);
    }
    for check in &mut task.checks {
        of_check(check, each);
    }
}

fn of_turn(turn: &mut TurnSummary, each: &mut impl FnMut(&mut String)) {
    for text in [&mut turn.purpose, &mut turn.detail, &mut turn.exit] {
        each(text);
    }
    turn.indicators.iter_mut().for_each(&mut *each);
    for state in [&mut turn.before, &mut turn.after] {
        let ids = [&mut state.head, &mut state.tree];
        ids.into_iter().flatten().for_each(&mut *each);
    }
}

fn of_check(check: &mut CheckLine, each: &mut impl FnMut(&mut String)) {
    for text in [&mut check.name, &mut check.detail, &mut check.ended_at] {
        each(text);
    }
    let options = [&mut check.log, &mut check.excerpt];
    options.into_iter().flatten().for_each(&mut *each);
    for diagnostic in &mut check.diagnostics {
        each(&mut diagnostic.message);
        let options = [&mut diagnostic.path, &mut diagnostic.code];
        options.into_iter().flatten().for_each(&mut *each);
    }
}
