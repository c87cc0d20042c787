use super::*;

fn interrupted(spend: &str) -> Observation {
    let text = format!(r#"{{"observed":"interrupted","by":{{"by":"deadline"}}{spend}}}"#);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_step_that_is_cut_short_and_taken_up_again_has_cost_what_it_did() {
    let mut state = TaskState::default();
    let spend = r#","spend":{"tokens":40,"cost_usd":0.5}"#;
    for observation in [interrupted(spend), Observation::Resumed, interrupted(spend)] {
        state.observe(&observation);
    }
    let all = Spend {
        tokens: 80,
        cost_usd: 1.0,
    };
    assert_eq!(state.spend, all);
    assert_eq!(state.interrupted, Some(Interruption::Deadline));
}
