//! Known models with their context windows, longest responses and prices. Nothing is looked up at run time,
//! so the table ages, but every number in it can be set by the user.

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
    name: &'static str,
    /// The window to plan with, in tokens: the model's own, or the request length from which a higher price
    /// applies, whichever is less. So only the base price is ever paid.
    pub(super) window_tokens: usize,
    /// The highest response limit that the provider accepts, in tokens.
    pub(super) response_tokens: usize,
    /// Its price.
    pub(super) price: Price,
}

/// `prices` are input, cached, written and output.
const fn known(
    name: &'static str,
    [window_tokens, response_tokens]: [usize; 2],
    [input, cached, written, output]: [f64; 4],
) -> Known {
    Known {
        name,
        window_tokens,
        response_tokens,
        price: Price {
            input,
            cached,
            written,
            output,
        },
    }
}

/// The limits of OpenAI's models. Above this window, the price doubles.
const OPENAI: [usize; 2] = [272_000, 128_000];
const CLAUDE: [usize; 2] = [1_000_000, 128_000];
const GEMINI: [usize; 2] = [1_048_576, 65_536];
const HAIKU: [usize; 2] = [100_000, 128_000];
const CLAUDE_4: [usize; 2] = [200_000, 64_000];
const GPT_4: [usize; 2] = [1_047_576, 32_768];
const GEMINI_PRO: [usize; 2] = [200_000, 65_536];
const DEEPSEEK: [usize; 2] = [1_000_000, 393_216];
const DEVSTRAL: [usize; 2] = [256_000, 256_000];

/// From `model_prices_and_context_window_backup.json` of litellm 1.109.1, which names the providers' price
/// pages as its source; read on 2026-11-21. For prices that rise on a known day (Gemini 4 Argon on
/// 2026-12-01, Gemini 3.8 Flash on 2027-01-01) the later price is used, because a cost limit must not be
/// exceeded unnoticed. By provider.
const MODELS: &[(&str, &[Known])] = &[
    (
        "anthropic",
        &[
            known("claude-sonnet-5-5", CLAUDE, [2.0, 0.1, 2.5, 10.0]),
            known("claude-opus-5-5", CLAUDE, [4.0, 0.2, 5.0, 20.0]),
            known("claude-haiku-5-5", HAIKU, [0.1, 0.01, 0.125, 0.5]),
            known("claude-sonnet-5", CLAUDE, [2.0, 0.2, 2.5, 10.0]),
            known("claude-opus-5", CLAUDE, [5.0, 0.5, 6.25, 25.0]),
            known("claude-sonnet-4-6", CLAUDE, [3.0, 0.3, 3.75, 15.0]),
            known("claude-haiku-4-5", CLAUDE_4, [1.0, 0.1, 1.25, 5.0]),
            known("claude-sonnet-4-5", CLAUDE_4, [3.0, 0.3, 3.75, 15.0]),
        ],
    ),
    (
        "openai",
        &[
            known("gpt-6.1-sol", OPENAI, [2.0, 0.1, 2.5, 10.0]),
            known("gpt-6.1-terra", OPENAI, [1.0, 0.05, 1.25, 5.0]),
            known("gpt-6-astra", OPENAI, [10.0, 1.0, 12.5, 50.0]),
            known("gpt-6-sol", OPENAI, [2.0, 0.2, 2.5, 10.0]),
            known("gpt-6-luna", OPENAI, [0.1, 0.01, 0.125, 0.5]),
            known("gpt-5.6-sol", OPENAI, [4.0, 0.4, 5.0, 20.0]),
            known("gpt-5.6-terra", OPENAI, [2.0, 0.2, 2.5, 12.0]),
            known("gpt-5.6-luna", OPENAI, [0.2, 0.02, 0.25, 1.2]),
            known("gpt-5.5", OPENAI, [5.0, 0.5, 5.0, 30.0]),
            known("gpt-5.4", OPENAI, [2.5, 0.25, 2.5, 15.0]),
            known("gpt-5.4-mini", OPENAI, [0.75, 0.075, 0.75, 4.5]),
            known("gpt-4.1", GPT_4, [2.0, 0.5, 2.0, 8.0]),
        ],
    ),
    (
        "gemini",
        &[
            known("gemini-3.8-flash", GEMINI, [1.5, 0.15, 1.5, 7.5]),
            known("gemini-4-argon", GEMINI, [4.0, 0.2, 4.0, 20.0]),
            known("gemini-3.1-pro-preview", GEMINI_PRO, [2.0, 0.2, 2.0, 12.0]),
            known("gemini-2.5-pro", GEMINI_PRO, [1.25, 0.125, 1.25, 10.0]),
        ],
    ),
    (
        "deepseek",
        &[
            known("deepseek-v4-pro", DEEPSEEK, [1.32, 0.044, 1.32, 3.96]),
            known("deepseek-v4-flash", DEEPSEEK, [0.3, 0.006, 0.3, 1.2]),
        ],
    ),
    (
        "mistral",
        &[known("devstral-latest", DEVSTRAL, [0.4, 0.04, 0.4, 2.0])],
    ),
    (
        "xai",
        &[known("grok-4.7", [200_000, 500_000], [2.0, 0.5, 2.0, 6.0])],
    ),
];

/// Finds a model of a provider by its exact name or by its name with a date.
pub(super) fn find(provider: &str, model: &str) -> Option<&'static Known> {
    let (_, models) = MODELS.iter().find(|(name, _)| *name == provider)?;
    models.iter().find(|known| {
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
    let all = MODELS.iter().flat_map(|(_, models)| models.iter());
    let highest = |of: fn(&Known) -> f64| all.clone().map(of).fold(0.0, f64::max);
    let price = Price {
        input: highest(|known| known.price.input),
        cached: highest(|known| known.price.cached),
        written: highest(|known| known.price.written),
        output: highest(|known| known.price.output),
    };
    let longest = all.clone().map(|known| known.response_tokens).max();
    (price, longest.unwrap_or_default())
}

/// Whether this is a suffix such as `-20251001` or `-2026-04-23`.
fn is_date(suffix: &str) -> bool {
    let shape: String = suffix
        .chars()
        .map(|char| if char.is_ascii_digit() { '0' } else { char })
        .collect();
    shape == "-00000000" || shape == "-0000-00-00"
}

/// Whether a model is one of OpenAI's reasoning models: `o3`, `gpt-5`, `gpt-6.1-sol`, but not `gpt-4.1` or
/// `gpt-5-chat`. The two kinds refuse each other's parameters.
pub(super) fn is_reasoning(model: &str) -> bool {
    let generation = |rest: &str| {
        let digits = rest.split(|char: char| !char.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse::<u32>().ok())
    };
    let by_number = |prefix: &str, from: u32| {
        let rest = model.strip_prefix(prefix);
        rest.and_then(generation)
            .is_some_and(|number| number >= from)
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
        let of_provider = |(provider, models): &(&'static str, &'static [Known])| {
            let provider = *provider;
            models.iter().map(move |known| (provider, known))
        };
        for (provider, known) in MODELS.iter().flat_map(of_provider) {
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
            assert_eq!(find(provider, known.name), Some(known));
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
