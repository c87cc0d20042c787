//! Counts what agents spend through the gateway and applies their limits.

use crate::agents::gateway::Route;
use crate::domain::agent::Usage;
use crate::domain::spend::dollars;
use sprag_agent::model::{Meter, cost_of_sending, is_priced, longest_response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What may still be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SpendLimits {
    /// Tokens sent and received.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost_usd: Option<f64>,
}

/// The cost of one turn according to the gateway.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TurnCost {
    /// Tokens and dollars; `None` if the agent sent no request through the gateway.
    pub usage: Option<Usage>,
    /// The limit for which a request was refused, as text.
    pub refused: Option<String>,
    /// A model without a known price, which counts as the most expensive one.
    pub unpriced: Option<String>,
}

/// The keys of one provider, and the token that replaces them.
pub struct Account {
    pub(super) token: String,
    pub(super) route: Route,
    pub(super) ledger: Arc<Ledger>,
}

/// The spend of all accounts of a run. Only one turn runs at a time.
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
        let count = |sum: u64, old: u64, new: u64| sum.saturating_sub(old).saturating_add(new);
        self.sent = count(self.sent, old.sent, new.sent);
        self.cached = count(self.cached, old.cached, new.cached);
        self.received = count(self.received, old.received, new.received);
        self.requests = count(self.requests, old.requests, new.requests);
        self.cost_usd += new.cost_usd - old.cost_usd;
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whether a turn is under way. At other times no request is forwarded.
    is_open: bool,
    spent: Spent,
    /// The spend at the start of the turn.
    before: Spent,
    limits: SpendLimits,
    refused: Option<String>,
    unpriced: Option<String>,
}

impl Account {
    /// The token that an agent sends instead of the key.
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Ledger {
    /// Starts a turn with these limits. A request of the previous turn that ends later is counted in
    /// this one.
    pub(super) fn begin_turn(&self, limits: SpendLimits) {
        let mut state = self.lock();
        state.is_open = true;
        state.limits = limits;
        (state.refused, state.unpriced) = (None, None);
    }

    /// Ends the turn and returns its cost. Later spend belongs to the next turn.
    pub(super) fn end_turn(&self) -> TurnCost {
        let mut state = self.lock();
        state.is_open = false;
        let (now, before) = (state.spent, state.before);
        state.before = now;
        let unpriced = state.unpriced.take();
        // Without a limit in dollars, nobody is told a price that is not known.
        let is_told = unpriced.is_none() || state.limits.cost_usd.is_some();
        let cost = (now.cost_usd - before.cost_usd).max(0.0);
        let usage = Usage {
            tokens_in: Some(now.sent.saturating_sub(before.sent)),
            tokens_cached: Some(now.cached.saturating_sub(before.cached)),
            tokens_out: Some(now.received.saturating_sub(before.received)),
            cost_usd: is_told.then_some(cost),
        };
        TurnCost {
            usage: (now.requests > before.requests).then_some(usage),
            refused: state.refused.take(),
            unpriced,
        }
    }

    /// Whether a turn is under way.
    pub(super) fn is_open(&self) -> bool {
        self.lock().is_open
    }

    /// Why a request is refused, once a limit is reached.
    pub(super) fn refusal(&self) -> Option<String> {
        let mut state = self.lock();
        let tokens = state.spent.tokens().saturating_sub(state.before.tokens());
        let cost = state.spent.cost_usd - state.before.cost_usd;
        let (what, spent, limit) = match (state.limits.tokens, state.limits.cost_usd) {
            (Some(limit), _) if tokens >= limit => ("token", tokens.to_string(), limit.to_string()),
            (_, Some(limit)) if cost >= limit => ("cost", dollars(cost), dollars(limit)),
            _ => return None,
        };
        state.refused = Some(format!(
            "the {what} limit is reached within this turn: {spent} of {limit} that were left"
        ));
        state.refused.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request to a model. From the start it counts with the estimated cost of sending it, so that
/// concurrent requests cannot exceed a limit together.
pub(super) struct Request {
    account: Arc<Account>,
    model: String,
    /// Estimated tokens sent.
    sent: u64,
    counted: Spent,
    meter: Option<Meter>,
}

impl Request {
    pub(super) fn new(account: &Arc<Account>, model: String, bytes: usize) -> Self {
        let mut request = Self {
            account: Arc::clone(account),
            model,
            // Hardly any text has fewer than four bytes per token.
            sent: (bytes / 4) as u64,
            counted: Spent::default(),
            meter: None,
        };
        let provider = request.account.route.provider.name;
        if !is_priced(provider, &request.model) {
            account.ledger.lock().unpriced = Some(request.model.clone());
        }
        let usage = Usage {
            tokens_in: Some(request.sent),
            cost_usd: Some(cost_of_sending(request.sent, provider, &request.model)),
            ..Usage::default()
        };
        request.count(&usage);
        request
    }

    /// The response starts.
    pub(super) fn meter(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// Counts a chunk of the response before the agent gets it.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let Some(meter) = &mut self.meter else { return };
        meter.push(chunk);
        let so_far = meter.so_far(self.account.route.provider.name, &self.model);
        if so_far.usage.tokens_in.is_some() {
            self.count(&so_far.usage);
        }
    }

    /// The response is complete, or its reader is gone. Usage that the provider has not reported is estimated; a
    /// complete response that reports none, such as one that goes on in the background, counts as the longest.
    pub(super) fn finish(&mut self, is_whole: bool) {
        let Some(mut meter) = self.meter.take() else {
            return;
        };
        meter.end();
        let provider = self.account.route.provider.name;
        let mut so_far = meter.so_far(provider, &self.model);
        let is_told = so_far.usage.tokens_in.is_some();
        if !(so_far.is_complete && is_told) {
            let is_untold = is_whole && !is_told;
            let received = if is_untold {
                longest_response(provider, &self.model)
            } else {
                0
            };
            so_far.usage = meter.at_least(self.sent, received, provider, &self.model);
        }
        self.count(&so_far.usage);
    }

    /// The provider has not accepted the request, which costs nothing then.
    pub(super) fn forget(mut self) {
        self.meter = None;
        let nothing = Spent {
            requests: 1,
            ..Spent::default()
        };
        self.replace(nothing);
    }

    fn count(&mut self, usage: &Usage) {
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
        self.finish(false);
    }
}
