//! Plans and configuration.

use super::text;
use sprag::domain::plan::{self, Plan, PlanFormat, StatusUpdate, Task, TaskStatus};
use sprag::domain::text_error::Located;
use sprag::domain::{config_file, draft};

pub(super) fn yaml(data: &[u8]) {
    plan("plan.yaml", data);
}

pub(super) fn json(data: &[u8]) {
    plan("plan.json", data);
}

pub(super) fn markdown(data: &[u8]) {
    plan("plan.md", data);
}

pub(super) fn config(data: &[u8]) {
    if let Err(error) = config_file::parse("config.yaml", data) {
        is_in(data, &error);
    }
}

pub(super) fn draft(data: &[u8]) {
    if let Ok(draft) = draft::of_message("plan.yaml", &text(data)) {
        let again = draft::of_message("plan.yaml", &format!("```yaml\n{}```\n", draft.text));
        // A text with fences of its own is cut at the first of them, and only what looks like a plan is taken out of one,
        // without a carriage return before each line's end.
        let looks_like_a_plan = draft.text.lines().any(|line| line.starts_with("tasks:"));
        if !draft.text.contains("```") && !draft.text.contains('\r') && looks_like_a_plan {
            assert_eq!(again.expect("a draft is read again").text, draft.text);
        }
    }
}

/// Reads a plan, writes states into it and reads them back.
fn plan(name: &str, data: &[u8]) {
    let read = match plan::parse(name, data) {
        Ok(parsed) => parsed.value,
        Err(error) => return is_in(data, &error),
    };
    is_sound(&read);
    let bare = plan::without_owned_keys(name, data).expect("a plan that was read is rendered");
    let text = std::str::from_utf8(data).expect("a plan is text");
    let first = read.tasks.first().into_iter();
    for task in first.chain(read.tasks.last()) {
        for &status in TaskStatus::ALL {
            let update = StatusUpdate {
                status,
                attempts: Some(3),
                completed_at: Some("2026-01-31T10:00:00Z".to_owned()),
            };
            let Ok(written) = plan::set_statuses(name, text, &[(&task.id, &update)]) else {
                continue;
            };
            has_state(name, &read, task, status, &written);
            let other = plan::without_owned_keys(name, written.as_bytes());
            assert_eq!(other.as_deref(), Some(bare.as_slice()), "{written}");
            let again = plan::set_statuses(name, &written, &[(&task.id, &update)]);
            assert_eq!(again.expect("a state is written twice"), written);
        }
    }
}

fn is_sound(plan: &Plan) {
    assert!(!plan.tasks.is_empty());
    let order = plan::selection(plan, &[]).expect("all tasks are there");
    assert_eq!(order.len(), plan.tasks.len(), "there is no cycle");
    let rows = plan::matrix(plan, Some(3)).include;
    assert!(rows.len() <= 3);
    let named: usize = rows.iter().map(|row| row.tasks.split(' ').count()).sum();
    let open = |task: &&Task| task.status != TaskStatus::Done;
    assert_eq!(named, plan.tasks.iter().filter(open).count());
    let texts = plan::parse("plan.json", plan.texts().as_bytes());
    let texts = texts.expect("the texts of a plan are a plan").value;
    let ids = |plan: &Plan| {
        plan.tasks
            .iter()
            .map(|task| task.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&texts), ids(plan));
}

fn has_state(name: &str, before: &Plan, task: &Task, status: TaskStatus, written: &str) {
    let after = plan::parse(name, written.as_bytes())
        .expect("what is written is read")
        .value;
    assert_eq!(after.tasks.len(), before.tasks.len());
    for (old, new) in before.tasks.iter().zip(&after.tasks) {
        let stays = Task {
            status: old.status,
            attempts: old.attempts,
            completed_at: old.completed_at.clone(),
            line: old.line,
            // A task that is done has its steps and boxes marked too.
            description: if old.id == task.id && status == TaskStatus::Done {
                old.description.clone()
            } else {
                new.description.clone()
            },
            ..new.clone()
        };
        assert_eq!(&stays, old, "{written}");
        if old.id != task.id {
            assert_eq!((new.status, new.attempts), (old.status, old.attempts));
        } else if before.format == PlanFormat::Sprag {
            assert_eq!((new.status, new.attempts), (status, Some(3)));
        } else {
            assert_eq!(new.status == TaskStatus::Done, status == TaskStatus::Done);
        }
    }
}

/// Whether an error names a place of the text, or the one after its end.
fn is_in(data: &[u8], error: &Located) {
    let text = text(data);
    // A carriage return alone ends a line of YAML.
    let lines = text.matches(['\n', '\r']).count() + 1;
    assert!((1..=lines + 1).contains(&error.at.line), "{error}");
    assert!(error.at.column >= 1, "{error}");
    let said = error.to_string();
    assert!(said.len() < 20_000, "an error of {} bytes", said.len());
}
