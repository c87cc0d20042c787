use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const TEMPLATE: &str = "sprag/{slug}";

fn plan(name: &str, depends_on: &[&str]) -> QueuedPlan {
    QueuedPlan {
        path: format!("plans/{name}.yaml"),
        name: name.to_owned(),
        branch: branch_of(TEMPLATE, name),
        id: None,
        priority: Priority::Medium,
        depends_on: depends_on.iter().map(|&on| on.to_owned()).collect(),
        progress: Progress::Open,
        failed_runs: 0,
        open_pull: false,
        invalid: None,
    }
}

/// `> name` of the chosen plan (`+` when it continues), then `name: why` of the others.
fn shown(plans: &[QueuedPlan]) -> Vec<String> {
    let choice = next(plans);
    let name = |index: usize| plans[index].name.clone();
    let first = match choice.next {
        Next::Run { index, continues } => {
            format!("{} {}", if continues { "+" } else { ">" }, name(index))
        }
        Next::Nothing { reason } => reason,
        Next::NeedsPerson { plans } => format!(
            "person: {}",
            plans.into_iter().map(name).collect::<Vec<_>>().join(", ")
        ),
    };
    let rest = choice
        .passed_over
        .iter()
        .map(|it| format!("{}: {}", it.name, it.why));
    std::iter::once(first).chain(rest).collect()
}

#[test]
fn the_order_is_priority_then_begun_then_name() {
    let mut plans = ["d", "c", "b", "a"].map(|name| plan(name, &[]));
    assert_eq!(
        shown(&plans),
        [
            "> a",
            "b: ready, comes later",
            "c: ready, comes later",
            "d: ready, comes later"
        ]
    );
    plans[1].open_pull = true;
    plans[2].failed_runs = 2;
    assert_eq!(shown(&plans)[..2], ["+ b", "c: ready, comes later"]);
    plans[0].priority = Priority::High;
    assert_eq!(shown(&plans)[0], "> d");
    plans[0].priority = Priority::Low;
    plans[3].priority = Priority::Low;
    assert_eq!(
        shown(&plans),
        [
            "+ b",
            "c: ready, comes later",
            "a: ready, comes later",
            "d: ready, comes later"
        ]
    );
}

#[test]
fn every_plan_that_is_passed_over_has_its_reason() {
    let mut plans = vec![
        plan("a-done", &[]),
        plan("b-broken", &[]),
        plan("c-given-up", &[]),
        plan("d-lost", &["nowhere"]),
        plan("e-ring", &["f-ring"]),
        plan("f-ring", &["e-ring"]),
        plan("g-self", &["g-self"]),
        plan("h-waits", &["a-done", "c-given-up"]),
        plan("i-behind-ring", &["e-ring"]),
        plan("j-ready", &["a-done"]),
    ];
    plans[0].progress = Progress::Merged;
    plans[1].invalid = Some("plan.yaml:1:1: no tasks".to_owned());
    plans[2].failed_runs = 3;
    assert_eq!(
        shown(&plans),
        [
            "> j-ready",
            "c-given-up: gave up after 3 failed runs",
            "a-done: done",
            "b-broken: invalid: plan.yaml:1:1: no tasks",
            "d-lost: depends on `nowhere`, which is not in the queue",
            "e-ring: depends on itself: e-ring -> f-ring -> e-ring",
            "f-ring: depends on itself: f-ring -> e-ring -> f-ring",
            "g-self: depends on itself: g-self -> g-self",
            "h-waits: waits for c-given-up",
            "i-behind-ring: waits for e-ring",
        ]
    );
    plans.pop();
    assert_eq!(
        shown(&plans)[0],
        "person: b-broken, c-given-up, d-lost, e-ring, f-ring, g-self"
    );
}

#[test]
fn without_a_plan_left_there_is_nothing_to_do() {
    assert_eq!(shown(&[]), ["the queue has no plan"]);
    let done = QueuedPlan {
        progress: Progress::Merged,
        open_pull: true,
        failed_runs: 9,
        ..plan("a", &["gone"])
    };
    assert_eq!(
        shown(&[done]),
        ["every plan of the queue is done", "a: done"]
    );
}

#[test]
fn a_plan_begins_once_the_base_branch_has_what_it_depends_on() {
    let mut plans = [plan("base", &[]), plan("top", &["base"])];
    plans[0].progress = Progress::Done;
    assert_eq!(
        shown(&plans),
        [
            "every plan of the queue is done or waits for a pull request to be merged",
            "base: done",
            "top: waits until the work of base is in the base branch",
        ]
    );
    plans[0].progress = Progress::Merged;
    assert_eq!(shown(&plans)[0], "> top");
}

#[test]
fn a_plan_that_was_edited_after_its_branch_was_finished_needs_a_person() {
    let mut plans = [plan("a", &[]), plan("b", &[])];
    plans[0].progress = Progress::DoneBeforeEdit;
    assert_eq!(shown(&plans)[0], "> b");
    plans[1].progress = Progress::Merged;
    let shown = shown(&plans);
    assert_eq!(shown[0], "person: a");
    assert!(
        shown[1].contains("after sprag/a had finished it"),
        "{shown:?}"
    );
}

#[test]
fn a_dependency_is_named_by_file_or_by_id() {
    let mut plans = [
        plan("01-base", &[]),
        plan("02-top", &["base"]),
        plan("03-x", &[]),
    ];
    plans[0].id = Some("base".to_owned());
    plans[0].failed_runs = 3;
    assert_eq!(shown(&plans)[2], "02-top: waits for 01-base");
    plans[2].id = Some("base".to_owned());
    assert_eq!(
        shown(&plans)[2],
        "02-top: depends on `base`, which names several plans"
    );
}

#[test]
fn branches_are_readable_where_they_can_be() {
    for (name, branch) in [
        ("csv-export", "sprag/csv-export"),
        ("v1.2_x", "sprag/v1.2_x"),
        ("CSV Export", "sprag/csv-export-"),
        ("a..b", "sprag/a.b-"),
        ("-x", "sprag/x-"),
        ("x.lock", "sprag/x-"),
        ("ä", "sprag/plan-"),
        ("", "sprag/plan-"),
        ("x-0123456789ab", "sprag/x-0123456789ab-"),
    ] {
        let found = branch_of(TEMPLATE, name);
        if branch.ends_with('-') {
            assert_eq!(found.len(), branch.len() + DIGEST, "{name}");
            assert!(found.starts_with(branch), "{name}: {found}");
        } else {
            assert_eq!(found, branch);
        }
    }
}

#[test]
fn plans_of_one_name_have_branches_of_their_own() {
    let paths = [
        "tasks.md",
        "specs/001-a/tasks.md",
        "specs/002-b/tasks.md",
        "specs/001-a/tasks.yaml",
    ];
    let branches: BTreeSet<String> = paths
        .iter()
        .map(|path| branch_of_path(TEMPLATE, path))
        .collect();
    assert_eq!(branches.len(), paths.len());
    for (path, branch) in paths
        .iter()
        .zip(paths.map(|path| branch_of_path(TEMPLATE, path)))
    {
        assert_eq!(name_of(path), "tasks");
        assert!(branch.starts_with("sprag/tasks-"), "{branch}");
        let name = branch.strip_prefix("sprag/").unwrap();
        assert_ne!(branch_of(TEMPLATE, name), branch);
    }
    assert_eq!(name_of("a/.hidden"), ".hidden");
    assert_eq!(name_of("a.b/plan"), "plan");
    assert!(can_be_plan("a/b.yml") && !can_be_plan("a.yml/b") && !can_be_plan("b.rs"));
}

/// Every queue of three plans, each in one of the states that matter, with every dependency.
#[test]
fn every_small_queue_is_decided_soundly() {
    let [first, second, third] = ["a", "b", "c"].map(small_plans);
    for a in &first {
        for b in &second {
            for c in &third {
                sound(&[a.clone(), b.clone(), c.clone()]);
            }
        }
    }
}

fn small_plans(name: &str) -> Vec<QueuedPlan> {
    const STATES: usize = 7;
    let names = ["a", "b", "c"];
    let mut plans = Vec::new();
    for edges in 0..1_usize << names.len() {
        let on = names
            .iter()
            .enumerate()
            .filter(|(to, _)| edges >> to & 1 == 1);
        let on: Vec<&str> = on.map(|(_, name)| *name).collect();
        plans.extend((0..STATES).map(|state| small_plan(name, &on, state)));
    }
    plans
}

fn small_plan(name: &str, depends_on: &[&str], state: usize) -> QueuedPlan {
    let mut plan = plan(name, depends_on);
    match state {
        1 => plan.progress = Progress::Merged,
        2 => plan.failed_runs = MAX_FAILED_RUNS,
        3 => plan.invalid = Some("x".to_owned()),
        4 => plan.open_pull = true,
        5 => plan.progress = Progress::Done,
        6 => plan.progress = Progress::DoneBeforeEdit,
        _ => {}
    }
    plan
}

fn sound(plans: &[QueuedPlan]) {
    let choice = next(plans);
    let merged = |name: &String| {
        let is_merged = |plan: &QueuedPlan| plan.is_done() && plan.progress == Progress::Merged;
        plans
            .iter()
            .any(|plan| plan.name == *name && is_merged(plan))
    };
    let ready = |plan: &QueuedPlan| {
        plan.progress == Progress::Open
            && plan.invalid.is_none()
            && plan.failed_runs < MAX_FAILED_RUNS
            && plan.depends_on.iter().all(merged)
    };
    let others = usize::from(matches!(choice.next, Next::Run { .. }));
    assert_eq!(choice.passed_over.len() + others, plans.len());
    match &choice.next {
        Next::Run { index, .. } => assert!(ready(&plans[*index]), "{plans:?}"),
        Next::NeedsPerson { plans: needy } => {
            assert!(!plans.iter().any(ready) && !needy.is_empty(), "{plans:?}");
        }
        Next::Nothing { .. } => {
            let waits = plans.iter().any(|plan| plan.progress == Progress::Done);
            let done = plans.iter().all(QueuedPlan::is_done);
            assert!(done || (waits && !plans.iter().any(ready)), "{plans:?}");
        }
    }
}

proptest! {
    #[test]
    fn different_names_have_different_and_sound_branches(a in "[aA.\\- ä/0-9b]{0,14}", b in "[aA.\\- ä/0-9b]{0,14}") {
        let (x, y) = (branch_of(TEMPLATE, &a), branch_of(TEMPLATE, &b));
        prop_assert_eq!(a == b, x.eq_ignore_ascii_case(&y));
        prop_assert!(!x.contains("..") && !x.ends_with(['.', '-', '/']) && !x.ends_with(".lock"));
        prop_assert!(!x.contains("/.") && !x.contains("/-"));
        prop_assert!(x.len() <= 100 && x.is_ascii() && x.matches('/').count() == 1);
    }
}
