use super::*;

#[test]
fn a_name_may_hold_spaces_and_parentheses() {
    let stat = b"42 (a) R 1 ) (b) T 7 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1 2";
    let expected = Proc {
        pid: 42,
        parent: 7,
        group: 41,
        start: 98765,
        state: State::Stopped,
    };
    assert_eq!(parse_stat(stat), Some(expected));
}

#[test]
fn only_a_zombie_without_threads_is_dead() {
    let stat = |state: &str, threads: u32| {
        format!("42 (x) {state} 7 41 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 9 1 2")
    };
    let cases = [
        ("R", 1, State::Running),
        ("S", 1, State::Running),
        ("D", 1, State::Running),
        ("t", 1, State::Stopped),
        ("X", 1, State::Dead),
        ("Z", 1, State::Dead),
        ("Z", 3, State::Running),
    ];
    for (state, threads, expected) in cases {
        let proc = parse_stat(stat(state, threads).as_bytes()).unwrap();
        assert_eq!(proc.state, expected, "{state} with {threads} threads");
    }
}

#[test]
fn garbage_is_no_process() {
    for stat in ["", "1", "1 (x", "1 (x)", "1 (x) R 2 3", "x (x) R 1 2 3"] {
        assert_eq!(parse_stat(stat.as_bytes()), None, "{stat}");
    }
}

#[test]
fn this_process_is_seen() {
    let own = find(own_pid()).unwrap();
    assert_eq!(own.pid, own_pid());
    assert!(scan().iter().any(|proc| proc.identity() == own.identity()));
    assert!(own.still_holds_its_id());
    assert!(
        !Proc {
            start: own.start + 1,
            ..own
        }
        .still_holds_its_id()
    );
    assert!(!command_line(own.pid).is_empty());
}

#[test]
fn a_signal_misses_a_process_that_took_over_the_id() {
    let own = find(own_pid()).unwrap();
    assert!(!signal(
        &Proc {
            start: own.start + 1,
            ..own
        },
        Signal::KILL
    ));
}
