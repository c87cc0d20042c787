//! What agents spend by way of the gateway, and how far they may go.

use crate::agents::builtin::model::{Meter, cost_of_sending};
use crate::agents::gateway::Route;
use crate::domain::agent::Usage;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What may still be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendLimits {
    /// Tokens sent and received.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// What one turn has cost by way of the gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnCost {
    /// Tokens and dollars; `None` where the agent has asked the gateway for nothing.
    pub usage: Option<Usage>,
    /// The limit for which a request was refused, in words.
    pub refused: Option<String>,
    /// A model whose price is not known, so that no limit in dollars holds for it.
    pub unpriced: Option<String>,
}

/// The keys of one provider, and the token that stands for them.
pub struct Account {
    pub(super) token: String,
    pub(super) route: Route,
    pub(super) ledger: Arc<Ledger>,
}

/// What all accounts of a run have spent. One turn is under way at a time.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<State>);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spent {
    sent: u64,
    cached: u64,
    received: u64,
    cost_usd: f64,
    requests: u64,
}

impl Spent {
    fn tokens(&self) -> u64 {
        self.sent.saturating_add(self.received)
    }

    fn replace(&mut self, old: Self, new: Self) {
        let count = |sum: &mut u64, old: u64, new: u64| {
            *sum = sum.saturating_sub(old).saturating_add(new);
        };
        count(&mut self.sent, old.sent, new.sent);
        count(&mut self.cached, old.cached, new.cached);
        count(&mut self.received, old.received, new.received);
        count(&mut self.requests, old.requests, new.requests);
        self.cost_usd += new.cost_usd - old.cost_usd;
    }
}

#[derive(Debug, Default)]
struct State {
    spent: Spent,
    /// What was spent when the turn began.
    before: Spent,
    limits: SpendLimits,
    refused: Option<String>,
    unpriced: Option<String>,
}

impl Account {
    /// What an agent shows instead of the key.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Ledger {
    /// Counts anew, for a turn that may spend this much. What was settled after the end of the turn before is
    /// counted in this one.
    pub(super) fn begin_turn(&self, limits: SpendLimits) {
        let mut state = self.lock();
        state.limits = limits;
        (state.refused, state.unpriced) = (None, None);
    }

    /// What the turn has cost so far; from here on it is the next one's.
    pub(super) fn end_turn(&self) -> TurnCost {
        let mut state = self.lock();
        let (now, before) = (state.spent, state.before);
        state.before = now;
        let unpriced = state.unpriced.take();
        let is_priced = unpriced.is_none();
        let cost = (now.cost_usd - before.cost_usd).max(0.0);
        let usage = Usage {
            tokens_in: Some(now.sent.saturating_sub(before.sent)),
            tokens_cached: Some(now.cached.saturating_sub(before.cached)),
            tokens_out: Some(now.received.saturating_sub(before.received)),
            cost_usd: is_priced.then_some(cost),
        };
        TurnCost {
            usage: (now.requests > before.requests).then_some(usage),
            refused: state.refused.take(),
            unpriced,
        }
    }

    /// Refuses a request once a limit is reached; says which one.
    pub(super) fn refusal(&self) -> Option<String> {
        let mut state = self.lock();
        let tokens = state.spent.tokens().saturating_sub(state.before.tokens());
        let cost = state.spent.cost_usd - state.before.cost_usd;
        let refused = match (state.limits.tokens, state.limits.cost_usd) {
            (Some(limit), _) if tokens >= limit => {
                format!(
                    "the token limit is reached within this turn: {tokens} of {limit} that were left"
                )
            }
            (_, Some(limit)) if cost >= limit => {
                format!(
                    "the cost limit is reached within this turn: ${cost:.2} of ${limit:.2} that were left"
                )
            }
            _ => return None,
        };
        state.refused = Some(refused.clone());
        Some(refused)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request to a model: from the moment it is let through it counts as what sending it costs at least, so
/// that requests at the same time do not pass a limit together.
pub(super) struct Request {
    account: Arc<Account>,
    model: String,
    /// Estimate of the tokens sent.
    sent: u64,
    counted: Spent,
    meter: Option<Meter>,
}

impl Request {
    pub(super) fn new(account: &Arc<Account>, model: String, bytes: usize) -> Self {
        let mut request = Self {
            account: Arc::clone(account),
            model,
            // Hardly any text has fewer bytes to a token.
            sent: (bytes / 4) as u64,
            counted: Spent::default(),
            meter: None,
        };
        let provider = request.account.route.provider.name;
        let usage = Usage {
            tokens_in: Some(request.sent),
            cost_usd: cost_of_sending(request.sent, provider, &request.model),
            ..Usage::default()
        };
        request.count(&usage);
        request
    }

    /// The response begins.
    pub(super) fn meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// More of the response, before anybody else sees it.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let Some(meter) = &mut self.meter else { return };
        meter.push(chunk);
        let so_far = meter.so_far(self.account.route.provider.name, &self.model);
        if so_far.usage.tokens_in.is_some() {
            self.count(&so_far.usage);
        }
    }

    /// The response is over, or nobody waits for it any more. What the provider has not told is estimated.
    pub(super) fn settle(&mut self) {
        let Some(mut meter) = self.meter.take() else {
            return;
        };
        meter.end();
        let provider = self.account.route.provider.name;
        let so_far = meter.so_far(provider, &self.model);
        let usage = match so_far.is_complete && so_far.usage.tokens_in.is_some() {
            true => so_far.usage,
            false => meter.at_least(self.sent, provider, &self.model),
        };
        self.count(&usage);
    }

    /// The provider has not taken the request.
    pub(super) fn forget(mut self) {
        self.meter = None;
        let nothing = Spent {
            requests: 1,
            ..Spent::default()
        };
        self.replace(nothing);
    }

    fn count(&mut self, usage: &Usage) {
        if usage.cost_usd.is_none() {
            self.account.ledger.lock().unpriced = Some(self.model.clone());
        }
        self.replace(Spent {
            sent: usage.tokens_in.unwrap_or_default(),
            cached: usage.tokens_cached.unwrap_or_default(),
            received: usage.tokens_out.unwrap_or_default(),
            cost_usd: usage.cost_usd.unwrap_or_default(),
            requests: 1,
        });
    }

    fn replace(&mut self, new: Spent) {
        let old = std::mem::replace(&mut self.counted, new);
        self.account.ledger.lock().spent.replace(old, new);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.settle();
    }
}
