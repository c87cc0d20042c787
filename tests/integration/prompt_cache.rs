//! What successive requests of the built-in agent have in common, which providers serve from their caches.

use crate::builtin::{calls, finish, run};
use crate::support::model_api::{ModelApi, Recorded, Step};
use crate::support::project::Project;
use crate::support::prompt_cache::{front, print_share, share};
use crate::support::tasks::assessments;
use serde_json::json;

/// Two tasks of one plan.
const PLAN: &str = "title: Example
goal: Both files say fixed
verify: ['! grep -q broken a.txt']
tasks:
  - { id: a, title: Fix a.txt, description: a.txt must say fixed }
  - { id: b, title: Write b.txt, description: b.txt must say fixed }
";

/// The requests of a run with a turn of four requests that only plans, a nudge whose work fails the check, a retry, and a
/// second task.
fn requests(model: &str) -> Vec<Recorded> {
    let write = |path: &'static str, content: &str| {
        calls(
            "",
            vec![("write_file", json!({"path": path, "content": content}))],
        )
    };
    let look = |path: &'static str| calls("I look.", vec![("read_file", json!({"path": path}))]);
    let planned = || Step::Text("Here's what I'll do:\n1. I'll change a.txt to say fixed.".into());
    let api = ModelApi::start([
        look("a.txt"),
        planned(),
        planned(),
        planned(),
        write("a.txt", "broken still\n"),
        finish(),
        write("a.txt", "fixed\n"),
        finish(),
        write("b.txt", "fixed\n"),
        finish(),
    ])
    .unwrap();
    let mut project = Project::new(&[("a.txt", "broken\n"), ("plan.yaml", PLAN)]);
    let run = run(&mut project, &api, model, &[]).expect(0);
    let turns = ["planning_only", "changed", "changed"];
    assert_eq!(assessments(run.task(0)), turns);
    api.model_requests()
}

#[test]
fn nothing_changes_ahead_of_what_stays() {
    for model in ["openai/m", "openai-responses/m", "anthropic/m", "gemini/m"] {
        let all = requests(model);
        let [one, two, three, four, nudge, nudged, retry, _, next, last] = all.as_slice() else {
            panic!("{} requests", all.len());
        };
        for (what, earlier, later) in [
            ("within a turn", one, two),
            ("within a turn", two, three),
            ("within a turn", three, four),
            ("across a nudge, the turn's beginning", one, nudge),
            ("within the nudge", nudge, nudged),
            ("across a retry, the turn's beginning", one, retry),
            ("within the next task", next, last),
        ] {
            let share = share(earlier, later);
            assert!(share > 0.9999, "{model}: {what}: {share}");
        }
        let fronts: Vec<String> = all.iter().map(front).collect();
        assert!(!fronts[0].is_empty());
        for other in &fronts {
            assert_eq!(*other, fronts[0], "{model}: tools and system prompt");
        }
        let shares = [
            ("nudge", four, nudge),
            ("retry", nudged, retry),
            ("next task", one, next),
        ];
        for (what, earlier, later) in shares {
            let share = share(earlier, later);
            print_share(&format!("{model}: {what}"), share);
            assert!(share > 0.5, "{model}: {what}: {share}");
        }
    }
}
