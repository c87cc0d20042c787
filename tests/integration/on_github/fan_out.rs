//! The work of several jobs on one plan, brought together and pushed.

use crate::support::runner::{Runner, repository};
use serde_json::json;

const PLAN: &str = "title: Two\nverify:\n  - { name: test, run: 'true', kind: test }\ntasks:\n\
    \x20 - { id: a, title: Make a }\n  - { id: b, title: Make b }\n";
const WORK: &str = "echo $SPRAG_TASK_ID > $SPRAG_TASK_ID.txt; echo Done.";

/// The branch moves while the jobs work, and each checkout has one commit.
#[test]
fn shards_are_brought_together_on_a_branch_that_has_moved_since_they_began() {
    for as_branches in [false, true] {
        let mut runner = Runner::new(&[("plan.yaml", PLAN)]);
        let payload = json!({ "inputs": null, "ref": "refs/heads/main", "repository": repository(),
            "sender": { "login": "grace", "type": "User" } });
        runner.event("workflow_dispatch", "refs/heads/main", &payload);
        let agent = runner.project.agent(WORK);
        let mut shards = Vec::new();
        for task in ["a", "b"] {
            runner.checkout("main");
            let dir = runner
                .project
                .beside(&format!("shard-{task}"))
                .to_str()
                .unwrap()
                .to_owned();
            let kept = ["--no-push", "--report", "none", "--run-dir", &dir];
            let work = [
                "--plan",
                "plan.yaml",
                "--task",
                task,
                "--agent-command",
                &agent,
            ];
            runner.step(&[&work[..], &kept].concat()).expect(0);
            let branch = format!("shard-{task}");
            let bare = runner.bare();
            let to = format!("HEAD:refs/heads/{branch}");
            runner
                .project
                .git(&["push", "--quiet", bare.to_str().unwrap(), &to]);
            shards.push(if as_branches { branch } else { dir });
        }
        runner.checkout("main");
        for n in ["1", "2", "3"] {
            runner.push("main", "theirs.txt", n);
        }
        let args = ["--plan", "plan.yaml", &shards[0], &shards[1]];
        let output = runner.command_of("integrate", &args).output().unwrap();
        runner.ended(&output).expect(0);
        for (file, text) in [("a.txt", "a\n"), ("b.txt", "b\n"), ("theirs.txt", "3")] {
            assert_eq!(runner.file("main", file), text, "{as_branches}");
        }
    }
}
