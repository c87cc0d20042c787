use super::*;
use proptest::prelude::*;

fn ids(tasks: &[&Task]) -> Vec<String> {
    tasks.iter().map(|task| task.id.to_string()).collect()
}

fn with_dependencies(tasks: &[(&str, &[&str])]) -> Plan {
    let mut plan = Plan::without_tasks(PlanFormat::Sprag);
    plan.tasks = tasks
        .iter()
        .map(|(name, dependencies)| Task {
            depends_on: dependencies
                .iter()
                .map(|dependency| id(dependency))
                .collect(),
            ..bare_task(name, "x", 1)
        })
        .collect();
    plan
}

#[test]
fn the_files_order_holds_unless_a_dependency_says_otherwise() {
    let plan = with_dependencies(&[
        ("a", &["c"]),
        ("b", &[]),
        ("c", &[]),
        ("d", &["a"]),
        ("e", &[]),
    ]);
    assert_eq!(
        selection(&plan, &[]).map(|t| ids(&t)),
        Ok(texts(&["b", "c", "a", "d", "e"]))
    );
}

#[test]
fn a_choice_is_ordered_and_brings_nothing_along() {
    let plan = with_dependencies(&[("a", &["c"]), ("b", &[]), ("c", &[])]);
    let only = [id("a"), id("c"), id("a")];
    assert_eq!(
        selection(&plan, &only).map(|t| ids(&t)),
        Ok(texts(&["c", "a"]))
    );
    assert_eq!(
        selection(&plan, &[id("a")]).map(|t| ids(&t)),
        Ok(texts(&["a"]))
    );
}

#[test]
fn an_unknown_choice_names_the_nearest_task() {
    let plan = with_dependencies(&[("endpoint", &[]), ("other", &[])]);
    let error = selection(&plan, &[id("endpont")]).expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "the plan has no task `endpont` (did you mean `endpoint`?)"
    );
}

#[test]
fn a_long_chain_is_no_matter_for_the_stack() {
    let mut text = "tasks:\n- {id: a0, title: x}\n".to_owned();
    for n in 1..5000 {
        text.push_str(&format!(
            "- {{id: a{n}, title: x, depends_on: [a{}]}}\n",
            n - 1
        ));
    }
    let chain = plan("p.yaml", &text);
    let ordered = selection(&chain, &[]).expect("known");
    assert_eq!(ordered.len(), 5000);
    let circular = text.replacen(
        "{id: a0, title: x}",
        "{id: a0, title: x, depends_on: [a4999]}",
        1,
    );
    assert_eq!(
        error("p.yaml", &circular),
        "p.yaml:2:35: depends_on has a cycle: a0 -> a4999 -> a4998 -> a4997 -> a4996 -> a4995 -> … -> a4 -> a3 -> a2 -> a1 -> a0; remove one of these dependencies"
    );
}

proptest! {
    #[test]
    fn dependencies_come_first_and_the_order_is_the_least(edges in proptest::collection::vec((0_usize..12, 0_usize..12), 0..30)) {
        let mut plan = Plan::without_tasks(PlanFormat::Sprag);
        // Each edge leads from an earlier shuffled place to a later one, so there is no cycle.
        let shuffled = |n: usize| n * 5 % 12;
        plan.tasks = (0..12).map(|n| Task {
            depends_on: edges.iter().filter(|(a, b)| a < b && shuffled(*b) == n).map(|(a, _)| id(&format!("a{}", shuffled(*a)))).collect(),
            ..bare_task(&format!("a{n}"), "x", 1)
        }).collect();
        let ordered = selection(&plan, &[]).expect("known");
        prop_assert_eq!(ordered.len(), 12);
        for (place, task) in ordered.iter().enumerate() {
            let before = &ordered[..place];
            let is_free = |task: &Task| task.depends_on.iter().all(|d| before.iter().any(|b| b.id == *d));
            prop_assert!(is_free(task));
            let first_free = plan.tasks.iter().find(|t| !before.iter().any(|b| b.id == t.id) && is_free(t));
            prop_assert_eq!(first_free.map(|t| &t.id), Some(&task.id));
        }
    }
}
