//! What a task has spent of the limited resources.

use crate::spend::dollars;
use serde::{Deserialize, Serialize};

/// Tokens and dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spend {
    /// Input and output tokens, as far as they are known.
    pub tokens: u64,
    /// US dollars, as far as they are known.
    pub cost_usd: f64,
}

impl Spend {
    /// A description of the limit that is reached, if any.
    pub fn limit_reached(
        &self,
        max_tokens: Option<u64>,
        max_cost_usd: Option<f64>,
    ) -> Option<String> {
        let (tokens, cost) = (self.tokens, self.cost_usd);
        match (max_tokens, max_cost_usd) {
            (Some(limit), _) if tokens >= limit => {
                Some(format!("the token limit is reached: {tokens} of {limit}"))
            }
            (_, Some(limit)) if cost >= limit => Some(format!(
                "the cost limit is reached: {} of {}",
                dollars(cost),
                dollars(limit)
            )),
            _ => None,
        }
    }

    /// Adds what was spent besides.
    pub fn add(&mut self, more: &Self) {
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.cost_usd += more.cost_usd;
    }
}
