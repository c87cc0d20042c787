use super::*;

const LIMITS: Limits = Limits {
    request: Duration::from_secs(10),
    longest_wait: Duration::from_secs(60),
    first_wait: Duration::from_secs(1),
    attempts: 4,
    spacing: Duration::ZERO,
};

const KINDS: [Kind; 3] = [Kind::Read, Kind::Change, Kind::Create];

fn now(sent: u32) -> Now {
    Now {
        sent,
        left: None,
        clock: Timestamp::from_second(5_000).unwrap(),
        jitter: 0.0,
    }
}

fn answered(status: u16) -> Refusal {
    Refusal {
        status,
        ..Refusal::default()
    }
}

fn decide(kind: Kind, refusal: Refusal, now: &Now) -> Next {
    next(&LIMITS, kind, &Fault::Answered(refusal), now)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn what_was_refused_is_never_repeated_whatever_it_was() {
    for status in (400..500).filter(|status| *status != 429) {
        for kind in KINDS {
            assert_eq!(
                decide(kind, answered(status), &now(1)),
                Next::GiveUp,
                "{status} {kind:?}"
            );
        }
    }
}

#[test]
fn faults_of_the_server_are_repeated_for_what_may_arrive_twice_and_looked_at_otherwise() {
    for status in 500..600 {
        for kind in [Kind::Read, Kind::Change] {
            assert_eq!(
                decide(kind, answered(status), &now(1)),
                Next::Again(seconds(1))
            );
            assert_eq!(decide(kind, answered(status), &now(4)), Next::GiveUp);
        }
        assert_eq!(
            decide(Kind::Create, answered(status), &now(1)),
            Next::Look(seconds(1))
        );
        assert_eq!(
            decide(Kind::Create, answered(status), &now(4)),
            Next::Look(seconds(0))
        );
    }
}

#[test]
fn a_lost_answer_is_as_unclear_as_a_fault_of_the_server() {
    for kind in [Kind::Read, Kind::Change] {
        assert_eq!(
            next(&LIMITS, kind, &Fault::Lost, &now(1)),
            Next::Again(seconds(1))
        );
    }
    assert_eq!(
        next(&LIMITS, Kind::Create, &Fault::Lost, &now(1)),
        Next::Look(seconds(1))
    );
}

#[test]
fn what_was_never_sent_is_sent_again_whatever_it_was() {
    for kind in KINDS {
        assert_eq!(
            next(&LIMITS, kind, &Fault::Unsent, &now(2)),
            Next::Again(seconds(2))
        );
        assert_eq!(next(&LIMITS, kind, &Fault::Unsent, &now(4)), Next::GiveUp);
    }
}

#[test]
fn limits_are_waited_for_as_told_whatever_it_was() {
    for (status, wait) in [(429, 3), (403, 3), (429, 60)] {
        for kind in KINDS {
            let refusal = Refusal {
                retry_after: Some(wait),
                ..answered(status)
            };
            assert_eq!(decide(kind, refusal, &now(1)), Next::Again(seconds(wait)));
        }
    }
    let words = Refusal {
        says_limit: true,
        ..answered(403)
    };
    assert_eq!(decide(Kind::Read, words, &now(1)), Next::Again(seconds(60)));
    assert_eq!(
        decide(Kind::Read, answered(429), &now(1)),
        Next::Again(seconds(60))
    );
}

#[test]
fn the_time_of_a_reset_is_read_against_githubs_clock() {
    for skew in [-3_600, 0, 3_600] {
        let date = 5_000 + skew;
        let refusal = Refusal {
            remaining: Some(0),
            reset: Some(date + 9),
            date: Some(date),
            ..answered(403)
        };
        assert_eq!(
            decide(Kind::Read, refusal, &now(1)),
            Next::Again(seconds(10))
        );
    }
    let undated = Refusal {
        remaining: Some(0),
        reset: Some(5_009),
        ..answered(403)
    };
    assert_eq!(
        decide(Kind::Read, undated, &now(1)),
        Next::Again(seconds(10))
    );
    let past = Refusal {
        remaining: Some(0),
        reset: Some(10),
        ..answered(403)
    };
    assert_eq!(decide(Kind::Read, past, &now(1)), Next::Again(seconds(1)));
    let at_once = Refusal {
        retry_after: Some(0),
        ..answered(429)
    };
    assert_eq!(
        decide(Kind::Read, at_once, &now(1)),
        Next::Again(seconds(1))
    );
}

#[test]
fn a_limit_that_is_too_far_away_ends_at_once_and_says_when() {
    let until = |second| Next::Limited(Timestamp::from_second(second).unwrap());
    let far = Refusal {
        remaining: Some(0),
        reset: Some(2_399),
        date: Some(0),
        ..answered(403)
    };
    assert_eq!(decide(Kind::Read, far, &now(1)), until(2_400));
    let near = Refusal {
        retry_after: Some(20),
        date: Some(100),
        ..answered(429)
    };
    let hurried = Now {
        left: Some(seconds(20)),
        ..now(1)
    };
    assert_eq!(decide(Kind::Read, near.clone(), &hurried), until(120));
    assert_eq!(decide(Kind::Read, near.clone(), &now(4)), until(120));
    let huge = Refusal {
        retry_after: Some(u64::MAX),
        ..near
    };
    assert_eq!(
        decide(Kind::Read, huge, &now(1)),
        Next::Limited(Timestamp::MAX)
    );
}

#[test]
fn waits_double_are_spread_and_stay_within_the_longest() {
    let wait = |sent, jitter, left: Option<u64>| {
        let limits = Limits {
            attempts: 20,
            ..LIMITS
        };
        let now = Now {
            jitter,
            left: left.map(seconds),
            ..now(sent)
        };
        next(&limits, Kind::Read, &Fault::Lost, &now)
    };
    let again = |milliseconds| Next::Again(Duration::from_millis(milliseconds));
    assert_eq!(wait(1, 0.0, None), again(1_000));
    assert_eq!(wait(1, 1.0, None), again(1_250));
    assert_eq!(wait(2, 1.0, None), again(2_500));
    assert_eq!(wait(4, 0.5, None), again(9_000));
    assert_eq!(wait(19, 1.0, None), again(60_000));
    assert_eq!(wait(3, 1.0, Some(5)), Next::GiveUp);
    assert_eq!(wait(3, 1.0, Some(6)), again(5_000));
}

#[test]
fn a_server_in_trouble_may_say_when_to_come_back() {
    let busy = |wait| Refusal {
        retry_after: Some(wait),
        ..answered(503)
    };
    assert_eq!(
        decide(Kind::Read, busy(7), &now(1)),
        Next::Again(seconds(7))
    );
    assert_eq!(decide(Kind::Read, busy(61), &now(1)), Next::GiveUp);
}
