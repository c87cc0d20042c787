use super::*;

#[test]
fn output_puts_off_a_stall_and_never_a_timeout() {
    let began = Instant::now();
    let seconds = Duration::from_secs;
    let at = |after| began + seconds(after);
    let limits = |timeout: Option<u64>, stall: Option<u64>| Limits {
        timeout: timeout.map(seconds),
        stall: stall.map(seconds),
        ..Limits::default()
    };
    let timed_out = |after| {
        Some((
            at(after),
            Exit::TimedOut {
                after: seconds(after),
            },
        ))
    };
    let stalled = |from, after| {
        Some((
            at(from + after),
            Exit::Stalled {
                after: seconds(after),
            },
        ))
    };
    let cases = [
        (limits(None, None), 0, None),
        (limits(Some(9), None), 5, timed_out(9)),
        (limits(None, Some(3)), 0, stalled(0, 3)),
        (limits(None, Some(3)), 5, stalled(5, 3)),
        (limits(Some(9), Some(3)), 5, stalled(5, 3)),
        (limits(Some(9), Some(3)), 6, timed_out(9)),
        (limits(Some(u64::MAX), Some(u64::MAX)), 6, None),
    ];
    for (limits, last_output, expected) in cases {
        assert_eq!(
            next_limit(&limits, began, Some(at(last_output))),
            expected,
            "{limits:?}"
        );
    }
    let start = Limits {
        start: Some(seconds(2)),
        ..limits(None, Some(3))
    };
    assert_eq!(next_limit(&start, began, None), stalled(0, 2));
    assert_eq!(next_limit(&start, began, Some(at(1))), stalled(1, 3));
}
