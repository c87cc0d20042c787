//! Answers that go on in an agent's session.

use super::{Agent, Claude, Codex, Small, text};
use serde_json::Value;

fn goes_on_in_its_session(agent: Agent) {
    let steps = [
        text("Which licence should the file have?"),
        text("It has the MIT licence."),
    ];
    let Some(small) = Small::new(agent, steps) else {
        return;
    };
    let plan = "tasks: [{ id: ask, title: 'Which licence has a.txt?', kind: ask }]\n";
    small.project.write("plan.yaml", plan);
    small.project.commit_all("plan");
    let run = small.run(&[]).expect(3);
    let id = run.summary["run_id"].as_str().unwrap();
    let resume = ["run", "--resume", id, "--answer", "MIT, please"];
    let run = small.project.sprag(&resume).expect(0);
    assert_eq!(run.task(0)["answer"], "It has the MIT licence.");
    let requests = small.api.model_requests();
    let [first, second] = &requests[..] else {
        panic!("{} requests", requests.len());
    };
    let length = |body: &Value| {
        let said = body.get("input").unwrap_or(&body["messages"]);
        said.as_array().unwrap().len()
    };
    assert!(length(&second.body) >= length(&first.body) + 2);
    assert!(agent.last_prompt(second).contains("\n\nMIT, please"));
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn an_agent_goes_on_in_its_session_with_an_answer() {
    [Codex, Claude].into_iter().for_each(goes_on_in_its_session);
}
