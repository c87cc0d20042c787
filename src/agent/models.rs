//! Known models with their context windows, longest responses and prices. Nothing is looked up at run time,
//! so the table ages, but every number in it can be set by the user.

use std::sync::LazyLock;

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Tokens sent.
    pub input: f64,
    /// Sent tokens that were read from a cache.
    pub cached: f64,
    /// Sent tokens that were written to a cache.
    pub written: f64,
    /// Tokens received.
    pub output: f64,
}

/// A known model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Known {
    provider: &'static str,
    name: &'static str,
    /// The window to plan with, in tokens: the model's own, or the request length from which a higher price
    /// applies, whichever is less. So only the base price is ever paid.
    pub(super) window_tokens: usize,
    /// The highest response limit that the provider accepts, in tokens.
    pub(super) response_tokens: usize,
    /// Its price.
    pub(super) price: Price,
}

/// From `model_prices_and_context_window_backup.json` of litellm 1.109.1, which names the providers' price
/// pages as its source; read on 2026-11-21. For prices that rise on a known day (Gemini 4 Argon on
/// 2026-12-01, Gemini 3.8 Flash on 2027-01-01) the later price is used, because a cost limit must not be
/// exceeded unnoticed.
///
/// Each line has the provider, the name, the two numbers of tokens, and the prices for input, cached, written and
/// output. For OpenAI's models, the price doubles above the window.
const TABLE: &str = "
    anthropic claude-sonnet-5-5 1000000 128000 2.0 0.1 2.5 10.0
    anthropic claude-opus-5-5 1000000 128000 4.0 0.2 5.0 20.0
    anthropic claude-haiku-5-5 100000 128000 0.1 0.01 0.125 0.5
    anthropic claude-sonnet-5 1000000 128000 2.0 0.2 2.5 10.0
    anthropic claude-opus-5 1000000 128000 5.0 0.5 6.25 25.0
    anthropic claude-sonnet-4-6 1000000 128000 3.0 0.3 3.75 15.0
    anthropic claude-haiku-4-5 200000 64000 1.0 0.1 1.25 5.0
    anthropic claude-sonnet-4-5 200000 64000 3.0 0.3 3.75 15.0
    openai gpt-6.1-sol 272000 128000 2.0 0.1 2.5 10.0
    openai gpt-6.1-terra 272000 128000 1.0 0.05 1.25 5.0
    openai gpt-6-astra 272000 128000 10.0 1.0 12.5 50.0
    openai gpt-6-sol 272000 128000 2.0 0.2 2.5 10.0
    openai gpt-6-luna 272000 128000 0.1 0.01 0.125 0.5
    openai gpt-5.6-sol 272000 128000 4.0 0.4 5.0 20.0
    openai gpt-5.6-terra 272000 128000 2.0 0.2 2.5 12.0
    openai gpt-5.6-luna 272000 128000 0.2 0.02 0.25 1.2
    openai gpt-5.5 272000 128000 5.0 0.5 5.0 30.0
    openai gpt-5.4 272000 128000 2.5 0.25 2.5 15.0
    openai gpt-5.4-mini 272000 128000 0.75 0.075 0.75 4.5
    openai gpt-4.1 1047576 32768 2.0 0.5 2.0 8.0
    gemini gemini-3.8-flash 1048576 65536 1.5 0.15 1.5 7.5
    gemini gemini-4-argon 1048576 65536 4.0 0.2 4.0 20.0
    gemini gemini-3.1-pro-preview 200000 65536 2.0 0.2 2.0 12.0
    gemini gemini-2.5-pro 200000 65536 1.25 0.125 1.25 10.0
    deepseek deepseek-v4-pro 1000000 393216 1.32 0.044 1.32 3.96
    deepseek deepseek-v4-flash 1000000 393216 0.3 0.006 0.3 1.2
    mistral devstral-latest 256000 256000 0.4 0.04 0.4 2.0
    xai grok-4.7 200000 500000 2.0 0.5 2.0 6.0";

static MODELS: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = |row: &'static str| {
        let mut words = row.split_whitespace();
        let (provider, name) = (words.next()?, words.next()?);
        let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
        let [window, response, input, cached, written, output] = numbers[..] else {
            return None;
        };
        Some(Known {
            provider,
            name,
            window_tokens: window as usize,
            response_tokens: response as usize,
            price: Price {
                input,
                cached,
                written,
                output,
            },
        })
    };
    TABLE.lines().filter_map(known).collect()
});

/// Finds a model of a provider by its exact name or by its name with a date.
pub(super) fn find(provider: &str, model: &str) -> Option<&'static Known> {
    let mut models = MODELS.iter().filter(|known| known.provider == provider);
    models.find(|known| {
        let rest = model.strip_prefix(known.name);
        rest.is_some_and(|rest| rest.is_empty() || is_date(rest))
    })
}

/// The price of a model of a provider, if it is known.
pub(super) fn price(provider: &str, model: &str) -> Option<Price> {
    find(provider, model).map(|known| known.price)
}

/// The highest price of any known model, and the longest response: more than this no model is taken to cost.
pub(super) fn dearest() -> (Price, usize) {
    let highest = |of: fn(&Known) -> f64| MODELS.iter().map(of).fold(0.0, f64::max);
    let price = Price {
        input: highest(|known| known.price.input),
        cached: highest(|known| known.price.cached),
        written: highest(|known| known.price.written),
        output: highest(|known| known.price.output),
    };
    let longest = MODELS.iter().map(|known| known.response_tokens).max();
    (price, longest.unwrap_or_default())
}

/// Whether this is a suffix such as `-20251001` or `-2026-04-23`.
fn is_date(suffix: &str) -> bool {
    let shape = suffix.replace(|char: char| char.is_ascii_digit(), "0");
    shape == "-00000000" || shape == "-0000-00-00"
}

/// Whether a model is one of OpenAI's reasoning models: `o3`, `gpt-5`, `gpt-6.1-sol`, but not `gpt-4.1` or
/// `gpt-5-chat`. The two kinds refuse each other's parameters.
pub(super) fn is_reasoning(model: &str) -> bool {
    let by_number = |prefix: &str, from: u32| {
        let rest = model.strip_prefix(prefix).unwrap_or_default();
        let digits = rest.split(|char: char| !char.is_ascii_digit()).next();
        let number = digits.and_then(|digits| digits.parse::<u32>().ok());
        number.is_some_and(|number| number >= from)
    };
    (by_number("gpt-", 5) || by_number("o", 1)) && !model.contains("-chat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_its_name_and_by_its_name_with_a_date() {
        let name = |provider, model| find(provider, model).map(|known| known.name);
        for (model, expected) in [
            ("claude-haiku-4-5", Some("claude-haiku-4-5")),
            ("claude-haiku-4-5-20251001", Some("claude-haiku-4-5")),
            ("claude-haiku-4-5-latest", None),
            ("claude-sonnet-5-5", Some("claude-sonnet-5-5")),
            ("claude-sonnet-5", Some("claude-sonnet-5")),
            ("claude-sonnet-5-6", None),
        ] {
            assert_eq!(name("anthropic", model), expected, "{model}");
        }
        assert_eq!(name("openai", "gpt-5.5-2026-04-23"), Some("gpt-5.5"));
        assert_eq!(name("openrouter", "gpt-5.5"), None);
    }

    #[test]
    fn every_row_can_be_used() {
        assert_eq!(MODELS.len(), TABLE.trim().lines().count());
        for known in MODELS.iter() {
            let Price {
                input,
                cached,
                written,
                output,
            } = known.price;
            assert!(
                cached < input && input <= written && written < output,
                "{known:?}"
            );
            assert!(known.window_tokens >= 100_000, "{known:?}");
            assert_eq!(find(known.provider, known.name), Some(known));
        }
    }

    #[test]
    fn models_that_reason() {
        for (model, expected) in [
            ("gpt-6.1-sol", true),
            ("gpt-5-mini", true),
            ("gpt-10", true),
            ("o4-mini", true),
            ("gpt-4.1", false),
            ("gpt-5-chat-latest", false),
            ("gpt-oss-120b", false),
            ("ollama", false),
            ("m", false),
        ] {
            assert_eq!(is_reasoning(model), expected, "{model}");
        }
    }
}
