//! How long to wait before a temporary failure is retried: one policy for every client of a server.

/// The waits between attempts: the first, their growth, and the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitPolicy {
    /// The first wait, in milliseconds.
    pub first_ms: u64,
    /// The factor by which each further wait grows.
    pub factor: u64,
    /// The longest wait, in milliseconds, even if the server asks for more.
    pub longest_ms: u64,
}

impl WaitPolicy {
    /// The wait after `failures` consecutive failures, from 1, in milliseconds. `asked_ms` is the wait that
    /// the server asks for (`Retry-After`). If it is shorter than the first wait, it is ignored and the waits
    /// grow as usual, so that `Retry-After: 0` does not cause a burst of requests.
    pub fn wait_ms(&self, failures: u32, asked_ms: Option<u64>) -> u64 {
        let growth = self.factor.saturating_pow(failures.saturating_sub(1));
        let own = self.first_ms.saturating_mul(growth);
        let asked = asked_ms.filter(|asked| *asked >= self.first_ms);
        asked.unwrap_or(own).min(self.longest_ms)
    }
}

/// A wait plus up to a quarter of it, so that clients that failed together do not retry together; never more
/// than `longest_ms`. `random` is from 0 to 1.
pub fn jittered_ms(wait_ms: u64, random: f64, longest_ms: u64) -> u64 {
    let more = (wait_ms / 4) as f64 * random.clamp(0.0, 1.0);
    wait_ms.saturating_add(more as u64).min(longest_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: WaitPolicy = WaitPolicy {
        first_ms: 2_000,
        factor: 2,
        longest_ms: 300_000,
    };

    #[test]
    fn waits_grow_to_the_longest() {
        let waits: Vec<u64> = [1, 2, 3, 9, u32::MAX]
            .into_iter()
            .map(|failures| POLICY.wait_ms(failures, None))
            .collect();
        assert_eq!(waits, [2_000, 4_000, 8_000, 300_000, 300_000]);
    }

    #[test]
    fn what_the_server_asks_for_is_kept_to_unless_it_is_a_burst_or_too_long() {
        assert_eq!(POLICY.wait_ms(3, Some(7_500)), 7_500);
        assert_eq!(POLICY.wait_ms(1, Some(u64::MAX)), 300_000);
        let bursts: Vec<u64> = (1..=4).map(|n| POLICY.wait_ms(n, Some(0))).collect();
        assert_eq!(bursts, [2_000, 4_000, 8_000, 16_000]);
    }

    #[test]
    fn jitter_adds_up_to_a_quarter() {
        let waits = [0.0, 0.5, 1.0, 7.0].map(|random| jittered_ms(8_000, random, 60_000));
        assert_eq!(waits, [8_000, 9_000, 10_000, 10_000]);
        assert_eq!(jittered_ms(8_000, 1.0, 9_000), 9_000);
    }

    proptest! {
        #[test]
        fn a_wait_is_never_longer_than_the_longest(
            failures in any::<u32>(),
            asked in any::<Option<u64>>(),
            random in any::<f64>(),
        ) {
            let wait = POLICY.wait_ms(failures, asked);
            prop_assert!((POLICY.first_ms..=POLICY.longest_ms).contains(&wait));
            let jittered = jittered_ms(wait, random, POLICY.longest_ms);
            prop_assert!((wait..=POLICY.longest_ms).contains(&jittered));
        }
    }
}
