//! The real agents behind the model gateway.

use super::*;

/// An agent whose key stays with Sprag: it has a token and the address of the gateway, nothing of the user's
/// arguments, and the scripted model in the place of the provider.
fn behind_the_gateway(agent: Agent, steps: impl IntoIterator<Item = Step>) -> Option<Small> {
    let mut small = Small::new(agent, steps)?;
    let (project, url) = (&mut small.project, small.api.url());
    project.env("SPRAG_GATEWAY", "on");
    match agent {
        Codex => {
            project.env("OPENAI_BASE_URL", format!("{url}/v1"));
            project.env("OPENAI_API_KEY", CANARY);
        }
        Gemini => drop(project.env("GEMINI_API_KEY", CANARY)),
        _ => drop(project.env("ANTHROPIC_API_KEY", CANARY)),
    }
    Some(small)
}

const CANARY: &str = "sk-canary-of-the-job-0123456789";

impl Small {
    fn run_behind(&self, args: &[&str]) -> Run {
        let mut all = vec!["run", "--plan", "plan.yaml", "--agent", self.agent.name()];
        all.extend(["--model", self.agent.model()]);
        all.extend_from_slice(args);
        self.project.sprag(&all)
    }
}

fn works_with_a_token(agent: Agent) {
    let notes = "set > own-variables; echo fixed > a.txt";
    let steps = [
        Step::Shell(notes.into()),
        text("SUGGESTED_COMMIT_MESSAGE: Fix it"),
    ];
    let Some(small) = behind_the_gateway(agent, steps) else {
        return;
    };
    let run = small.run_behind(&[]).expect(0);
    let requests = small.api.model_requests();
    assert_eq!(requests.len(), 2, "{}", run.stderr);
    for request in &requests {
        assert_eq!(agent.key(request).as_deref(), Some(CANARY));
    }
    let seen = small.project.read("own-variables");
    assert!(seen.contains("PATH=") && !seen.contains(CANARY), "{seen}");
    let usage = &run.summary["usage"];
    assert_eq!(usage["tokens_in"], 2 * TOKENS_IN);
    assert_eq!(usage["tokens_out"], 2 * TOKENS_OUT);
    // The price of the model that gemini is asked for is not known.
    let is_priced = usage["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0);
    assert_eq!(is_priced, agent != Gemini, "{usage}");
}

/// Its model by the gateway, and nothing else.
fn works_where_no_host_is_allowed(agent: Agent) {
    let steps = [
        Step::Shell(
            "curl -s http://blocked.example.invalid/ > /dev/null; echo fixed > a.txt".into(),
        ),
        text("SUGGESTED_COMMIT_MESSAGE: Fix it"),
    ];
    let Some(mut small) = behind_the_gateway(agent, steps) else {
        return;
    };
    small.project.env("SPRAG_SANDBOX", "auto");
    let run = small.run_behind(&["--network-allow", "deny"]).expect(0);
    let network = &run.summary["sandbox"]["network"];
    let denied = network["denied"].to_string();
    assert!(denied.contains("blocked.example.invalid"), "{network}");
    assert_eq!(run.summary["gateway"][0]["behind"], true);
    assert!(
        run.stdout
            .contains(&format!("model gateway: used by {}", agent.name()))
    );
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn agents_work_by_the_gateway_where_no_host_is_allowed() {
    [Codex, Claude, Gemini]
        .into_iter()
        .for_each(works_where_no_host_is_allowed);
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn codex_and_claude_work_behind_the_gateway_and_never_have_the_key() {
    [Codex, Claude].into_iter().for_each(works_with_a_token);
}

#[test]
fn gemini_works_behind_the_gateway_and_never_has_the_key() {
    works_with_a_token(Gemini);
}

fn meets_a_limit(agent: Agent) {
    let steps = [
        Step::Shell("echo half > a.txt".into()),
        text("never asked for"),
    ];
    let Some(small) = behind_the_gateway(agent, steps) else {
        return;
    };
    let run = small.run_behind(&["--max-tokens", "1000"]).expect(5);
    assert_eq!(small.api.steps_left(), 1);
    let task = run.task(0);
    assert_eq!(
        json!([
            run.summary["status"],
            task["reason"],
            task["turns"][0]["assessment"]
        ]),
        json!(["budget", "budget", "changed"]),
        "{}",
        run.stderr
    );
    assert_eq!(task["turns"].as_array().unwrap().len(), 1);
}

#[test]
#[ignore = "scripts/test-full runs it"]
fn agents_meet_a_limit_within_a_turn() {
    [Codex, Claude, Gemini].into_iter().for_each(meets_a_limit);
}
