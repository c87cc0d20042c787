//! Measures the usage of a response while it is forwarded.

use super::assembly::Assembly;
use super::{event, priced, sse};
use crate::access::WireFormat;
use crate::models;
use crate::tokens::estimate;
use sprag_domain::agent::Usage;

/// Maximum size in bytes of a response that is not a stream of events.
const MAX_WHOLE_BYTES: usize = 32 << 20;

/// Reads a forwarded response. Unreadable content is no error, because the response belongs to the agent.
#[derive(Debug)]
pub struct Meter {
    wire: WireFormat,
    form: Form,
    assembly: Assembly,
}

#[derive(Debug)]
enum Form {
    Events(sse::Events),
    Whole(Vec<u8>),
    /// Not a model's response, or too long.
    Unreadable,
}

/// The known usage of a response so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Metered {
    /// The usage that the provider reports, with its cost if model and price are known.
    pub usage: Usage,
    /// Whether the response is complete.
    pub is_complete: bool,
}

impl Meter {
    /// Creates a meter for a response in this format, as a stream of events or as a whole.
    pub fn new(wire: WireFormat, streams: bool) -> Self {
        Self {
            wire,
            form: if streams {
                Form::Events(sse::Events::default())
            } else {
                Form::Whole(Vec::new())
            },
            assembly: Assembly::default(),
        }
    }

    /// Processes more of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        match &mut self.form {
            Form::Events(events) => match events.push(chunk) {
                Ok(complete) => complete.iter().for_each(|data| {
                    // An event of another kind is ignored, and the next one may be readable.
                    let _ = event(self.wire, data, &mut self.assembly);
                }),
                Err(_) => self.form = Form::Unreadable,
            },
            Form::Whole(whole) if whole.len() + chunk.len() <= MAX_WHOLE_BYTES => {
                whole.extend_from_slice(chunk);
            }
            Form::Whole(_) => self.form = Form::Unreadable,
            Form::Unreadable => {}
        }
    }

    /// Processes the end of the body.
    pub fn end(&mut self) {
        let rest = match std::mem::replace(&mut self.form, Form::Unreadable) {
            Form::Events(events) => events.finish(),
            Form::Whole(whole) => Some(whole),
            Form::Unreadable => None,
        };
        if let Some(data) = rest {
            let _ = event(self.wire, &data, &mut self.assembly);
        }
    }

    /// The usage known so far. The cost is that of `model` at a provider.
    pub fn so_far(&self, provider: &str, model: &str) -> Metered {
        let price = price_or_most(provider, model);
        Metered {
            usage: priced(
                self.assembly.usage,
                self.assembly.tokens_written,
                Some(price),
            ),
            is_complete: self.assembly.stop.is_some(),
        }
    }

    /// The usage of an interrupted response: the reported numbers, and estimates from its text for the
    /// missing ones. `sent` is the estimate for the request, `received` that for the response.
    pub fn at_least(&self, sent: u64, received: u64, provider: &str, model: &str) -> Usage {
        let told = self.assembly.usage;
        let words = [&self.assembly.text, &self.assembly.reasoning];
        let text: usize = words.iter().map(|text| estimate(text)).sum();
        let received = told.tokens_out.unwrap_or(received);
        let usage = Usage {
            tokens_in: Some(told.tokens_in.unwrap_or(sent)),
            tokens_out: Some(received.max(text as u64)),
            ..told
        };
        let price = price_or_most(provider, model);
        priced(usage, self.assembly.tokens_written, Some(price))
    }
}

/// Whether the price of a model is known.
pub fn is_priced(provider: &str, model: &str) -> bool {
    models::price(provider, model).is_some()
}

/// The length in tokens of the longest response of a model, or of any model if it is unknown.
pub fn longest_response(provider: &str, model: &str) -> u64 {
    let known = models::find(provider, model).map(|known| known.response_tokens);
    known.unwrap_or_else(|| models::dearest().1) as u64
}

/// The cost of a number of sent tokens.
pub fn cost_of_sending(tokens: u64, provider: &str, model: &str) -> f64 {
    tokens as f64 * price_or_most(provider, model).input / 1e6
}

/// The price of a model, or the highest known one: an agent must not get past a limit by the choice of its model.
fn price_or_most(provider: &str, model: &str) -> models::Price {
    models::price(provider, model).unwrap_or_else(|| models::dearest().0)
}
