use super::*;

#[test]
fn what_may_be_killed_is_waited_for() {
    let own = host::find(host::own_pid()).unwrap();
    let gives_up = |waited, rounds| gives_up(waited, rounds, || vec![own]);
    assert!(!gives_up(KILL_LIMIT * 2, LEAST_ROUNDS));
    assert!(gives_up(REMOVAL_LIMIT, LEAST_ROUNDS));
    // What was started while a slow machine listed the others has not been killed yet.
    assert!(!gives_up(REMOVAL_LIMIT, LEAST_ROUNDS - 1));
}
