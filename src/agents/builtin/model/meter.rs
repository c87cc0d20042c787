//! The usage of a response, read out of its body while that passes to somebody else.

use super::assembly::Assembly;
use super::{event, priced, sse};
use crate::agents::builtin::access::Wire;
use crate::agents::builtin::models;
use crate::domain::agent::Usage;
use crate::domain::builtin::tokens::estimate;

/// The most of a response that does not come in events that is read, in bytes.
const MOST_WHOLE: usize = 32 << 20;

/// Reads a response as it passes. What cannot be read is no error: the response is somebody else's.
#[derive(Debug)]
pub struct Meter {
    wire: Wire,
    form: Form,
    assembly: Assembly,
}

#[derive(Debug)]
enum Form {
    Events(sse::Events),
    Whole(Vec<u8>),
    /// It is no response of a model, or too long.
    Unreadable,
}

/// What is known of the usage of a response so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Metered {
    /// What the provider has told, with its cost where model and price are known.
    pub usage: Usage,
    /// Whether the response has come to its end.
    pub is_complete: bool,
}

impl Meter {
    /// A reader of a response in this format, which comes in events or as a whole.
    pub fn new(wire: Wire, streams: bool) -> Self {
        Self {
            wire,
            form: match streams {
                true => Form::Events(sse::Events::default()),
                false => Form::Whole(Vec::new()),
            },
            assembly: Assembly::default(),
        }
    }

    /// Takes in more of the body.
    pub fn push(&mut self, chunk: &[u8]) {
        match &mut self.form {
            Form::Events(events) => match events.push(chunk) {
                Ok(complete) => complete.iter().for_each(|data| {
                    // An event of another kind tells nothing, and the next one may.
                    let _ = event(self.wire, data, &mut self.assembly);
                }),
                Err(_) => self.form = Form::Unreadable,
            },
            Form::Whole(whole) if whole.len() + chunk.len() <= MOST_WHOLE => {
                whole.extend_from_slice(chunk);
            }
            Form::Whole(_) => self.form = Form::Unreadable,
            Form::Unreadable => {}
        }
    }

    /// Takes the end of the body in.
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

    /// What is known so far. The cost is that of `model` at a provider.
    pub fn so_far(&self, provider: &str, model: &str) -> Metered {
        let price = models::find(provider, model).map(|known| known.price);
        Metered {
            usage: priced(self.assembly.usage, self.assembly.tokens_written, price),
            is_complete: self.assembly.stop.is_some(),
        }
    }

    /// What a response that broke off has cost, from above: what was told, and of what was not told what its
    /// text takes. `sent` is the estimate for the request.
    pub fn at_least(&self, sent: u64, provider: &str, model: &str) -> Usage {
        let told = self.assembly.usage;
        let words = [&self.assembly.text, &self.assembly.reasoning];
        let text: usize = words.iter().map(|text| estimate(text)).sum();
        let received = told.tokens_out.unwrap_or_default();
        let usage = Usage {
            tokens_in: Some(told.tokens_in.unwrap_or(sent)),
            tokens_out: Some(received.max(text as u64)),
            ..told
        };
        let price = models::find(provider, model).map(|known| known.price);
        priced(usage, self.assembly.tokens_written, price)
    }
}

/// What a number of tokens sent costs, where the price of the model is known.
pub fn cost_of_sending(tokens: u64, provider: &str, model: &str) -> Option<f64> {
    let price = models::find(provider, model)?.price;
    Some(tokens as f64 * price.input / 1e6)
}
