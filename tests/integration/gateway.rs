//! Agents behind the model gateway: keys stay with Sprag, what is spent is counted, limits hold within a turn.

use crate::support::model_api::{ModelApi, Step};
use crate::support::model_wire::{TOKENS_IN, TOKENS_OUT};
use crate::support::project::{Project, Run, plan};
use serde_json::json;
use std::fs;

/// The key that no agent may see.
const KEY: &str = "sk-canary-0123456789abcdef";

/// Asks OpenAI's *responses* at the address and with the key of the environment; `$1` is the file of the answer.
/// What is printed is the status.
const ASK: &str = r#"ask() {
  curl -s -o "$OUT/$1" -w '%{http_code}\n' "$OPENAI_BASE_URL/responses" -H "authorization: Bearer $OPENAI_API_KEY" \
    -H 'content-type: application/json' \
    -d '{"model":"gpt-5.5","stream":true,"input":[],"tools":[{"type":"function","name":"exec_command"}]}'
}
"#;

/// A project whose command agent asks a scripted model with the job's key.
fn project(api: &ModelApi) -> Project {
    let mut project = Project::new(&[
        ("a.txt", "broken\n"),
        ("plan.yaml", &plan("grep -q fixed a.txt")),
    ]);
    project.env("OPENAI_API_KEY", KEY);
    project.env("OPENAI_BASE_URL", format!("{}/v1", api.url()));
    project.env("SPRAG_AGENT_ENV", "OPENAI_API_KEY");
    project
}

fn says(text: &str) -> Step {
    Step::Text(text.to_owned())
}

/// Everything that the agent noted, its environment included, and everything in the run directory.
fn left(project: &Project, run: &Run) -> String {
    let mut places = vec![project.outside(""), run.dir.clone().unwrap()];
    let mut text = String::new();
    while let Some(place) = places.pop() {
        if place.is_dir() {
            places.extend(fs::read_dir(&place).unwrap().map(|it| it.unwrap().path()));
        } else if let Ok(bytes) = fs::read(&place) {
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    text
}

#[test]
fn an_agent_behind_the_gateway_has_a_token_and_the_provider_gets_the_key() {
    let api = ModelApi::start([says("hello")]).unwrap();
    let project = project(&api);
    let script = format!(
        "{ASK}ask answer > $OUT/status; cat /proc/$$/environ /proc/$$/cmdline > $OUT/own; echo fixed > a.txt"
    );
    let run = project.run(&project.agent(&script), &[]).expect(0);

    assert_eq!(project.notes("status"), ["200"]);
    let answer = project.notes("answer").join("\n");
    assert!(answer.contains("response.completed"), "{answer}");
    let requests = api.model_requests();
    let bearer = format!("Bearer {KEY}");
    assert_eq!(requests[0].header("authorization"), Some(bearer.as_str()));
    assert_eq!(requests[0].path, "/v1/responses");
    assert!(!left(&project, &run).contains(KEY));
    let env = project.notes("env-1");
    let address = env.iter().find(|line| line.starts_with("OPENAI_BASE_URL="));
    assert!(
        address
            .unwrap()
            .starts_with("OPENAI_BASE_URL=http://127.0.0.1:")
    );
    let usage = &run.summary["usage"];
    assert_eq!(
        json!([usage["tokens_in"], usage["tokens_out"]]),
        json!([TOKENS_IN, TOKENS_OUT])
    );
    assert!(usage["cost_usd"].as_f64().unwrap() > 0.0, "{usage}");
}

#[test]
fn the_gateway_is_reached_where_the_network_allows_no_host() {
    for (sandbox, limit, enforced) in [
        ("auto", None, "namespace"),
        ("require:2", Some("tcp_port"), "tcp_port"),
        ("off", None, "nothing"),
    ] {
        let api = ModelApi::start([says("hello"), says("hello")]).unwrap();
        let mut project = project(&api);
        if let Some(limit) = limit {
            project.env("SPRAG_NETWORK_LIMIT", limit);
        }
        let out = project.outside("").display().to_string();
        // The second time as a program that asks its proxy for everything.
        let script = format!(
            "{ASK}ask one > $OUT/status; NO_PROXY= no_proxy= ask two >> $OUT/status; echo fixed > a.txt"
        );
        let args = [
            "--network-allow",
            "deny",
            "--sandbox",
            sandbox,
            "--sandbox-write",
            &out,
        ];
        let run = project.run(&project.agent(&script), &args).expect(0);
        let network = &run.summary["sandbox"]["network"];
        if network["enforced"] != enforced {
            eprintln!("SKIPPED: {enforced} is not to be had here: {network}");
            continue;
        }
        assert_eq!(project.notes("status"), ["200", "200"], "{enforced}");
        assert_eq!(api.model_requests().len(), 2);
        assert_eq!(network.get("denied"), None);
    }
}

#[test]
fn without_the_gateway_the_agent_has_the_key() {
    let api = ModelApi::start([]).unwrap();
    let project = project(&api);
    let agent = project.agent("echo fixed > a.txt");
    project.run(&agent, &["--gateway", "off"]).expect(0);
    let key = format!("OPENAI_API_KEY={KEY}");
    assert!(project.notes("env-1").contains(&key));
}

#[test]
fn a_limit_holds_within_a_turn_and_the_work_so_far_counts() {
    for (flag, limit, told) in [
        (
            "--max-tokens",
            "1000",
            "the token limit is reached within this turn",
        ),
        (
            "--max-cost-usd",
            "0.001",
            "the cost limit is reached within this turn",
        ),
    ] {
        let api = ModelApi::start([says("one"), says("two"), says("three")]).unwrap();
        let project = project(&api);
        // The first turn works; a second one would be needed and is not begun.
        let script = format!(
            "{ASK}ask first >> $OUT/status; echo half > a.txt; ask second >> $OUT/status; exit 1"
        );
        let run = project
            .run(&project.agent(&script), &[flag, limit])
            .expect(5);
        assert_eq!(project.notes("status"), ["200", "400"], "{flag}");
        let refused = project.notes("second").join("\n");
        assert!(refused.contains(told), "{refused}");
        assert_eq!(api.steps_left(), 2, "{flag}");
        assert_eq!(project.calls(), 1);
        let task = run.task(0);
        assert_eq!(
            json!([
                run.summary["status"],
                task["reason"],
                task["turns"][0]["assessment"]
            ]),
            json!(["budget", "budget", "changed"]),
            "{flag}: {}",
            run.stderr
        );
        assert!(run.stderr.contains(told) || run.stdout.contains(told));
        // What was done is kept where it is always kept.
        let kept = left(&project, &run);
        assert!(kept.contains("+half"), "{flag}");
    }
}

#[test]
fn the_gateway_forwards_nothing_but_what_it_is_for() {
    let api = ModelApi::start([]).unwrap();
    let project = project(&api);
    let script = r#"
      base=${OPENAI_BASE_URL%/v1}; key="authorization: Bearer $OPENAI_API_KEY"
      code() { curl -s -o /dev/null -w '%{http_code}\n' --path-as-is "$@" >> $OUT/codes; }
      code "$base/v1/responses" -d '{}'
      code "$base/v1/responses" -d '{}' -H 'authorization: Bearer guessed'
      code "$base/v1/files" -H "$key"
      code "$base/v1/organization/admin_api_keys" -H "$key"
      code "$base/v1/../v1/responses" -d '{}' -H "$key"
      code -X DELETE "$base/v1/models/gpt-5.5" -H "$key"
      code "$base/v1/messages" -d '{}' -H "$key"
      code "$base/v1/responses" -d '{"model":"gpt-5-nano","model":"gpt-5.5"}' -H "$key"
      code "$base/v1/responses" -d '{"model":"gpt-5.5","stream":true,"stream":false}' -H "$key"
      code -x "$base" http://example.com/v1/models -H "$key"
      head -c 70000000 /dev/zero | code "$base/v1/responses" -H "$key" --data-binary @-
      code "$base/"
      echo fixed > a.txt"#;
    project.run(&project.agent(script), &[]).expect(0);
    let codes = project.notes("codes");
    let expected = [
        "401", "401", "404", "404", "404", "404", "404", "400", "400", "404", "413", "200",
    ];
    assert_eq!(codes, expected);
    assert_eq!(api.requests(), []);
}

#[test]
fn a_field_without_a_value_is_no_second_one() {
    let api = ModelApi::start([says("hello")]).unwrap();
    let project = project(&api);
    let script = format!(
        "{}ask answer > $OUT/status; echo fixed > a.txt",
        ASK.replace(r#""stream":true"#, r#""stream":null"#)
    );
    let run = project.run(&project.agent(&script), &[]).expect(0);
    assert_eq!(project.notes("status"), ["200"]);
    let usage = &run.summary["usage"];
    assert_eq!(usage["tokens_in"], TOKENS_IN);
    assert!(usage["cost_usd"].as_f64() > Some(0.0), "{usage}");
}

#[test]
fn an_agent_that_goes_away_is_counted_for_what_it_has_asked() {
    let api = ModelApi::start([Step::Cut]).unwrap();
    let project = project(&api);
    let script = format!("{ASK}ask answer; echo fixed > a.txt");
    let run = project.run(&project.agent(&script), &[]).expect(0);
    // The provider has told nothing: what was sent is estimated.
    let sent = run.summary["usage"]["tokens_in"].as_u64().unwrap();
    assert!((1..TOKENS_IN).contains(&sent), "{sent}");
}

#[test]
fn where_a_key_has_to_stay_and_cannot_nothing_is_started() {
    let mut project = Project::new(&[("plan.yaml", &plan("true"))]);
    project.env("SPRAG_GATEWAY", "on");
    let run = project.run(&project.agent("echo never"), &[]).expect(4);
    assert!(
        run.stderr.contains("`gateway: on` keeps keys with Sprag"),
        "{}",
        run.stderr
    );
    assert_eq!(project.calls(), 0);
}

#[test]
fn all_four_formats_pass_and_are_counted() {
    let cases = [
        ("OPENAI", "/responses", "authorization: Bearer "),
        ("OPENAI", "/chat/completions", "authorization: Bearer "),
        ("ANTHROPIC", "/v1/messages", "x-api-key: "),
        (
            "GEMINI",
            "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse",
            "x-goog-api-key: ",
        ),
        (
            "GEMINI",
            "/v1beta/models/gemini-3.8-flash:generateContent",
            "x-goog-api-key: ",
        ),
    ];
    for (provider, path, header) in cases {
        let api = ModelApi::start([says("hello")]).unwrap();
        let mut project = project(&api);
        let base = match provider {
            "GEMINI" => "GOOGLE_GEMINI_BASE_URL".to_owned(),
            name => format!("{name}_BASE_URL"),
        };
        if provider != "OPENAI" {
            project.env(&base, api.url());
        }
        project.env(&format!("{provider}_API_KEY"), KEY);
        project.env("SPRAG_AGENT_ENV", format!("{provider}_API_KEY"));
        let script = format!(
            r#"curl -s "${base}{path}" -H "{header}${provider}_API_KEY" -d '{{"model":"m","stream":true,"max_tokens":9,
              "input":[],"messages":[{{"role":"user","content":"x"}}],"contents":[{{"role":"user","parts":[{{"text":"x"}}]}}],
              "tools":[{{"name":"Bash","type":"function","function":{{"name":"Bash"}},"functionDeclarations":[{{"name":"Bash"}}]}}]}}' > $OUT/answer
            echo fixed > a.txt"#
        );
        let run = project.run(&project.agent(&script), &[]).expect(0);
        let answer = project.notes("answer").join("\n");
        assert!(answer.contains("llo"), "{path}: {answer}");
        let usage = &run.summary["usage"];
        assert_eq!(
            json!([usage["tokens_in"], usage["tokens_out"]]),
            json!([TOKENS_IN, TOKENS_OUT]),
            "{path}"
        );
        assert!(!left(&project, &run).contains(KEY), "{path}");
    }
}
